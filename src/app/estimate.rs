//! How many entries of the server's lock table an apply will hold at its end, about, from the emitted objects alone. The
//! plan made by the server's own catalog is exact about tables; this one is there while typing.

use std::collections::BTreeSet;

use crate::compiler::objects::{Emitted, ObjectKind};

/// Catalog tables and indexes any DDL transaction holds locks on.
const CATALOG: u64 = 40;

/// What an apply of these objects holds at its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Locks {
    /// Entries in the lock table, about.
    pub entries: u64,
    /// The strongest lock on each table that was there before: its name and the lock's.
    pub tables: Vec<(String, &'static str)>,
}

/// Counts them: a new table with its TOAST table and their indexes, an index, a view, and each lock on a table that was
/// there before. Functions and grants take none of their own.
pub fn locks(emitted: &Emitted) -> Locks {
    let mut entries = CATALOG;
    let mut held = BTreeSet::new();
    for object in &emitted.objects {
        entries += match object.kind {
            ObjectKind::Table => 4,
            ObjectKind::Index | ObjectKind::View => 1,
            _ => 0,
        };
        held.extend(object.locks.iter().cloned());
    }
    entries += held.len() as u64;
    let mut tables: Vec<(String, &'static str)> = Vec::new();
    for lock in &held {
        // The set is ordered by table and then by strength, so the last of a table is its strongest.
        let name = lock.table.plain();
        match tables.last_mut() {
            Some(last) if last.0 == name => last.1 = lock.mode.sql(),
            _ => tables.push((name, lock.mode.sql())),
        }
    }
    Locks { entries, tables }
}
