//! Filling a graph's index: its objects and effective links are read once, grouped in this program, and loaded with
//! `COPY`. It runs inside the caller's transaction, which keeps writers away (the upkeep triggers' lock) meanwhile.
//!
//! Keys are opaque bytes here: they are read and written in PostgreSQL's binary form, whatever their type.

mod wire;

use std::collections::HashMap;
use std::time::Instant;

use bytes::Bytes;
use futures_util::{SinkExt, TryStreamExt};
use tokio_postgres::Client;

use super::error::DbError;
use super::progress::{Progress, Reporter};
use crate::compiler::cluster::{self, Clusters};
use crate::compiler::ident::QualName;
use crate::compiler::objects::GraphTables;
use wire::{Reader, Writer};

/// Rows of the index loaded between two reports.
const BATCH: usize = 20_000;

/// What a build made.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Built {
    /// Objects.
    pub nodes: u64,
    /// Clusters.
    pub clusters: u64,
    /// Links between clusters.
    pub edges: u64,
    /// Seconds it took.
    pub seconds: f64,
}

/// Builds the index of one graph from nothing; what is in it is dropped.
pub async fn build(
    client: &Client,
    graph: &GraphTables,
    cluster_size: u32,
    reporter: &Reporter,
) -> Result<Built, DbError> {
    let start = Instant::now();
    let table = |part: &str| QualName::new("authz_int", format!("{}_{part}", graph.name)).to_string();
    let (node, cluster, edge) = (table("node"), table("cluster"), table("edge"));
    client.batch_execute(&format!("TRUNCATE {node}, {cluster}, {edge}")).await?;
    for statement in &graph.prepare {
        client.batch_execute(statement).await?;
    }
    let keys = column_of_keys(client, &format!("SELECT o.id FROM ({}) AS o ORDER BY 1", graph.objects_sql)).await?;
    let numbers = number_keys(&keys)?;
    let links = read_links(client, &graph.links_sql, &numbers).await?;
    drop(numbers);
    let size = usize::try_from(cluster_size).unwrap_or(usize::MAX);
    let n = keys.len();
    let clusters = tokio::task::spawn_blocking(move || cluster::cluster(n, links, size))
        .await
        .map_err(|e| DbError::Unexpected(format!("grouping the objects of {} failed: {e}", graph.title)))?;

    let edges: usize = (0..clusters.edges.len()).map(|c| clusters.edges.row(number(c)).len()).sum();
    let mut load = Load {
        client,
        reporter,
        start: Instant::now(),
        done: 0,
        of: keys.len() + clusters.members.len() + edges,
        batches: 0,
    };
    let rows = Rows { keys: &keys, clusters: &clusters, element: wire::element_oid(graph.key_type)? };
    let all = clusters.members.len();
    load.table(&cluster, rows.all_clusters()).await?;
    load.table(&edge, rows.all_edges()).await?;
    load.table(&node, rows.all_nodes()).await?;
    client
        .batch_execute(&format!(
            "SELECT pg_catalog.setval('{sequence}', {last}, {called}); ANALYZE {node}, {cluster}, {edge}",
            sequence = table("cluster_id"),
            last = all.max(1),
            called = all > 0,
        ))
        .await?;
    Ok(Built {
        nodes: keys.len() as u64,
        clusters: all as u64,
        edges: edges as u64,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// Objects and clusters are numbered by `u32`; [`number_keys`] refuses more.
fn number(i: usize) -> u32 {
    u32::try_from(i).unwrap_or(u32::MAX)
}

/// Runs a query by `COPY`, in binary form.
async fn copy_out(client: &Client, query: &str) -> Result<Bytes, DbError> {
    let stream = client.copy_out(&format!("COPY ({query}\n) TO STDOUT (FORMAT binary)")).await?;
    let whole = stream
        .try_fold(bytes::BytesMut::new(), |mut whole, chunk| async move {
            whole.extend_from_slice(&chunk);
            Ok(whole)
        })
        .await?;
    Ok(whole.freeze())
}

async fn column_of_keys(client: &Client, query: &str) -> Result<Vec<Bytes>, DbError> {
    let mut reader = Reader::new(copy_out(client, query).await?)?;
    let mut keys = Vec::new();
    while let Some([key]) = reader.row()? {
        keys.push(key);
    }
    Ok(keys)
}

fn number_keys(keys: &[Bytes]) -> Result<HashMap<&[u8], u32>, DbError> {
    let too_many = || DbError::Usage(format!("{} objects are more than one graph can hold", keys.len()));
    let mut numbers = HashMap::with_capacity(keys.len());
    for (i, key) in keys.iter().enumerate() {
        let i = u32::try_from(i).ok().filter(|&i| i < u32::MAX).ok_or_else(too_many)?;
        if numbers.insert(key.as_ref(), i).is_some() {
            return Err(DbError::Usage("two rows have the same key; an inheriting type needs a unique one".to_owned()));
        }
    }
    Ok(numbers)
}

async fn read_links(client: &Client, query: &str, numbers: &HashMap<&[u8], u32>) -> Result<Vec<(u32, u32)>, DbError> {
    let mut reader = Reader::new(copy_out(client, query).await?)?;
    let mut links = Vec::new();
    while let Some([child, parent]) = reader.row()? {
        let (Some(&child), Some(&parent)) = (numbers.get(child.as_ref()), numbers.get(parent.as_ref())) else {
            return Err(DbError::Unexpected("a link to an object that is not there".to_owned()));
        };
        links.push((child, parent));
    }
    Ok(links)
}

/// The rows of the index in binary form.
struct Rows<'a> {
    keys: &'a [Bytes],
    clusters: &'a Clusters,
    element: u32,
}

impl Rows<'_> {
    fn key(&self, object: u32) -> &[u8] {
        self.keys.get(object as usize).map_or(&[], Bytes::as_ref)
    }

    /// A cluster's id in the database.
    fn id(c: u32) -> i64 {
        i64::from(c) + 1
    }

    fn cluster(&self, c: u32) -> Writer {
        let size = i32::try_from(self.clusters.members.row(c).len()).unwrap_or(i32::MAX);
        let above = self.clusters.above.row(c);
        Writer::row(3).i64(Self::id(c)).i32(size).array(self.element, above.iter().map(|&a| self.key(a)))
    }

    fn edges(&self, c: u32) -> impl Iterator<Item = Writer> {
        let parents = self.clusters.edges.row(c).iter();
        parents.map(move |&p| Writer::row(3).i64(Self::id(c)).bytes(self.key(p)).i64(Self::id(self.clusters.of(p))))
    }

    fn nodes(&self, c: u32) -> impl Iterator<Item = Writer> {
        self.clusters.members.row(c).iter().map(move |&x| {
            let local = self.clusters.local(x).iter().map(|&a| self.key(a));
            Writer::row(3).bytes(self.key(x)).i64(Self::id(c)).array(self.element, local)
        })
    }
}

/// Rows on their way. Boxed, so that a build may move between threads: the compiler cannot prove it of closures that
/// borrow and live across a wait.
type Stream<'a> = Box<dyn Iterator<Item = Writer> + Send + 'a>;

impl Rows<'_> {
    fn count(&self) -> u32 {
        number(self.clusters.members.len())
    }

    fn all_clusters(&self) -> Stream<'_> {
        Box::new((0..self.count()).map(|c| self.cluster(c)))
    }

    fn all_edges(&self) -> Stream<'_> {
        Box::new((0..self.count()).flat_map(|c| self.edges(c)))
    }

    fn all_nodes(&self) -> Stream<'_> {
        Box::new((0..self.count()).flat_map(|c| self.nodes(c)))
    }
}

/// Loading, with progress.
struct Load<'a> {
    client: &'a Client,
    reporter: &'a Reporter,
    start: Instant,
    done: usize,
    of: usize,
    batches: u64,
}

impl Load<'_> {
    async fn table(&mut self, table: &str, rows: Stream<'_>) -> Result<(), DbError> {
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let sink = self.client.copy_in(&format!("COPY {table} FROM STDIN (FORMAT binary)")).await?;
            let mut sink = std::pin::pin!(sink);
            let mut buffer = wire::header();
            let mut n = 0;
            for row in rows.by_ref().take(BATCH) {
                row.append_to(&mut buffer);
                n += 1;
                if buffer.len() > 256 * 1024 {
                    sink.send(buffer.split().freeze()).await?;
                }
            }
            wire::trailer(&mut buffer);
            sink.send(buffer.freeze()).await?;
            sink.finish().await?;
            self.report(n).await;
        }
        Ok(())
    }

    async fn report(&mut self, rows: usize) {
        self.done += rows;
        self.batches += 1;
        let seconds = self.start.elapsed().as_secs_f64().max(1e-6);
        let rate = self.done as f64 / seconds;
        self.reporter
            .send(Progress::Batch {
                batch: self.batches,
                of: None,
                rows: self.done as u64,
                rows_of: Some(self.of as u64),
                rate,
                left: Some((self.of - self.done) as f64 / rate),
            })
            .await;
    }
}
