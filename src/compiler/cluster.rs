//! Grouping the objects of an inheritance graph into clusters, all at once: what the build loads.
//!
//! Nothing recurses: graphs may be chains of any depth. Objects are numbered from 0; [`NONE`] stands for none.

/// No object.
const NONE: u32 = u32::MAX;

/// Rows of numbers, one behind the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    start: Vec<usize>,
    items: Vec<u32>,
}

impl Default for Rows {
    fn default() -> Self {
        Rows { start: vec![0], items: Vec::new() }
    }
}

impl Rows {
    /// One row; empty for a number that has none.
    pub fn row(&self, i: u32) -> &[u32] {
        let i = i as usize;
        match (self.start.get(i), self.start.get(i + 1)) {
            (Some(&from), Some(&to)) => self.items.get(from..to).unwrap_or(&[]),
            _ => &[],
        }
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.start.len().saturating_sub(1)
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a row.
    fn push(&mut self, row: impl IntoIterator<Item = u32>) {
        self.items.extend(row);
        self.start.push(self.items.len());
    }

    /// The rows of `n` keys from unordered pairs `(key, item)`; items of a row are sorted and without repeats.
    fn of_pairs(n: usize, mut pairs: Vec<(u32, u32)>) -> Rows {
        pairs.sort_unstable();
        pairs.dedup();
        let mut rows = Rows { start: Vec::with_capacity(n + 1), items: Vec::with_capacity(pairs.len()) };
        rows.start.push(0);
        let mut pairs = pairs.into_iter().peekable();
        for key in 0..n {
            while let Some((_, item)) = pairs.next_if(|p| p.0 as usize == key) {
                rows.items.push(item);
            }
            rows.start.push(rows.items.len());
        }
        rows
    }
}

/// Objects in clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clusters {
    /// The cluster of each object, from 0.
    pub cluster: Vec<u32>,
    /// For each object, where its ancestors inside its cluster stand in `local_items`.
    local: Vec<(usize, usize)>,
    local_items: Vec<u32>,
    /// The objects of each cluster.
    pub members: Rows,
    /// The effective parents of each cluster's roots.
    pub edges: Rows,
    /// Every ancestor outside of each cluster, in the order of the objects.
    pub above: Rows,
}

impl Clusters {
    /// An object's ancestors inside its cluster, nearest first.
    pub fn local(&self, object: u32) -> &[u32] {
        let (from, len) = at(&self.local, object, (0, 0));
        self.local_items.get(from..from + len).unwrap_or(&[])
    }

    /// The cluster an object is in.
    pub fn of(&self, object: u32) -> u32 {
        at(&self.cluster, object, NONE)
    }
}

/// `v[i]`, or `none` past the end.
fn at<T: Copy>(v: &[T], i: u32, none: T) -> T {
    v.get(i as usize).copied().unwrap_or(none)
}

/// `v[i] = value`; nothing past the end.
fn set<T>(v: &mut [T], i: u32, value: T) {
    if let Some(slot) = v.get_mut(i as usize) {
        *slot = value;
    }
}

/// Groups `objects` objects with these effective links `(child, parent)` into clusters of at most about `size`.
pub fn cluster(objects: usize, links: Vec<(u32, u32)>, size: usize) -> Clusters {
    let parents = Rows::of_pairs(objects, links.into_iter().filter(|(c, p)| c != p).collect());
    let mut only: Vec<u32> = numbers(objects)
        .map(|x| match parents.row(x) {
            [one] => *one,
            _ => NONE,
        })
        .collect();
    let order = children_first(&mut only);
    let lead = pieces(&only, &order, size.max(1));
    let mut out = number(&only, &order, &lead);
    let mut leader = vec![NONE; out.members.len()];
    for x in numbers(objects) {
        if at(&lead, x, NONE) == x {
            set(&mut leader, out.of(x), x);
        }
    }
    for &x in &leader {
        out.edges.push(parents.row(x).iter().copied());
    }
    out.above = above(&out);
    out
}

fn numbers(n: usize) -> std::ops::Range<u32> {
    0..u32::try_from(n).unwrap_or(NONE)
}

/// Every object after all objects it is the only parent of. A ring of only parents is opened by taking one of its
/// members' only parent away, which then tops a cluster.
fn children_first(only: &mut [u32]) -> Vec<u32> {
    let mut waiting = vec![0u32; only.len()];
    for &p in only.iter() {
        if p != NONE {
            let n = at(&waiting, p, 0) + 1;
            set(&mut waiting, p, n);
        }
    }
    let mut order: Vec<u32> = Vec::with_capacity(only.len());
    let mut done = vec![false; only.len()];
    let mut ready: Vec<u32> = numbers(only.len()).filter(|&x| at(&waiting, x, 0) == 0).collect();
    let mut next_cut = 0;
    loop {
        while let Some(x) = ready.pop() {
            order.push(x);
            set(&mut done, x, true);
            release(only, &mut waiting, &mut ready, x);
        }
        // Everything left is in a ring, or waits for one below it.
        while at(&done, next_cut, false) {
            next_cut += 1;
        }
        if next_cut as usize >= only.len() {
            return order;
        }
        let mut x = next_cut;
        let mut steps = 0;
        // Up the ring's tail until surely inside the ring.
        while steps <= only.len() && at(only, x, NONE) != NONE {
            x = at(only, x, NONE);
            steps += 1;
        }
        release(only, &mut waiting, &mut ready, x);
        set(only, x, NONE);
    }
}

/// The only parent of `x` waits for one child less.
fn release(only: &[u32], waiting: &mut [u32], ready: &mut Vec<u32>, x: u32) {
    let p = at(only, x, NONE);
    if p != NONE {
        let left = at(waiting, p, 1) - 1;
        set(waiting, p, left);
        if left == 0 {
            ready.push(p);
        }
    }
}

/// For each object: itself when it leads a cluster, the leader of its siblings' cluster when it is a root beside one,
/// [`NONE`] when it is inside its parent's cluster.
///
/// From the leaves up, each object takes in the pieces of its children, smallest first, while they fit; those that do
/// not fit become clusters, several small ones together.
fn pieces(only: &[u32], order: &[u32], size: usize) -> Vec<u32> {
    let children = Rows::of_pairs(
        only.len(),
        numbers(only.len()).map(|x| (at(only, x, NONE), x)).filter(|(p, _)| *p != NONE).collect(),
    );
    let mut piece = vec![1usize; only.len()];
    let mut lead: Vec<u32> = numbers(only.len()).collect();
    let mut sorted: Vec<u32> = Vec::new();
    for &x in order {
        sorted.clear();
        sorted.extend_from_slice(children.row(x));
        sorted.sort_by_key(|&c| at(&piece, c, 0));
        let mut total = 1;
        let (mut group, mut group_total) = (NONE, 0);
        for &c in &sorted {
            let n = at(&piece, c, 0);
            if total + n <= size {
                total += n;
                set(&mut lead, c, NONE);
            } else if group != NONE && group_total + n <= size {
                group_total += n;
                set(&mut lead, c, group);
            } else {
                (group, group_total) = (c, n);
            }
        }
        set(&mut piece, x, total);
    }
    lead
}

/// Numbers the clusters, and writes down each object's cluster and local ancestors.
fn number(only: &[u32], order: &[u32], lead: &[u32]) -> Clusters {
    let mut out = Clusters { cluster: vec![NONE; only.len()], local: vec![(0, 0); only.len()], ..Clusters::default() };
    let mut count = 0u32;
    // Parents before children.
    for &x in order.iter().rev() {
        let leader = at(lead, x, NONE);
        if leader == NONE {
            let p = at(only, x, NONE);
            let (from, len) = at(&out.local, p, (0, 0));
            let start = out.local_items.len();
            out.local_items.push(p);
            out.local_items.extend_from_within(from..from + len);
            set(&mut out.local, x, (start, len + 1));
            let c = at(&out.cluster, p, NONE);
            set(&mut out.cluster, x, c);
        } else {
            let mut c = at(&out.cluster, leader, NONE);
            if c == NONE {
                c = count;
                count += 1;
                set(&mut out.cluster, leader, c);
            }
            set(&mut out.cluster, x, c);
        }
    }
    let pairs = numbers(only.len()).map(|x| (at(&out.cluster, x, NONE), x)).collect();
    out.members = Rows::of_pairs(count as usize, pairs);
    out
}

/// The least fixpoint of `above`: clusters that reach each other (a ring) share one set, found once for all of them,
/// after every cluster they depend on.
fn above(c: &Clusters) -> Rows {
    let n = c.members.len();
    let (component, members) = components(c, n);
    let mut sets = Rows::default();
    let mut mark = vec![NONE; c.cluster.len()];
    let mut found: Vec<u32> = Vec::new();
    for k in numbers(members.len()) {
        found.clear();
        for &m in members.row(k) {
            for &p in c.edges.row(m) {
                let k_of_p = at(&component, c.of(p), NONE);
                let outer = if k_of_p == k { &[][..] } else { sets.row(k_of_p) };
                for &a in std::iter::once(&p).chain(c.local(p)).chain(outer) {
                    if at(&mark, a, k) != k {
                        set(&mut mark, a, k);
                        found.push(a);
                    }
                }
            }
        }
        found.sort_unstable();
        sets.push(found.iter().copied());
    }
    let mut out = Rows::default();
    for m in numbers(n) {
        out.push(sets.row(at(&component, m, NONE)).iter().copied());
    }
    out
}

/// The strongly connected components of the clusters (Tarjan, without recursion), each after those it depends on.
fn components(c: &Clusters, n: usize) -> (Vec<u32>, Rows) {
    let mut component = vec![NONE; n];
    let mut members = Rows::default();
    let mut index = vec![NONE; n];
    let mut low = vec![NONE; n];
    let mut next = 0;
    let mut stack: Vec<u32> = Vec::new();
    let mut path: Vec<(u32, usize)> = Vec::new();
    for root in numbers(n) {
        if at(&index, root, 0) != NONE {
            continue;
        }
        path.push((root, 0));
        while let Some((m, i)) = path.pop() {
            if i == 0 {
                set(&mut index, m, next);
                set(&mut low, m, next);
                next += 1;
                stack.push(m);
            }
            let Some(&p) = c.edges.row(m).get(i) else {
                let lowest = at(&low, m, 0);
                if let Some((parent, _)) = path.last() {
                    let lower = at(&low, *parent, 0).min(lowest);
                    set(&mut low, *parent, lower);
                }
                if lowest == at(&index, m, 0) {
                    let k = u32::try_from(members.len()).unwrap_or(NONE);
                    let from = stack.iter().rposition(|&s| s == m).unwrap_or(0);
                    let whole = stack.split_off(from);
                    whole.iter().for_each(|&s| set(&mut component, s, k));
                    members.push(whole);
                }
                continue;
            };
            path.push((m, i + 1));
            let q = c.of(p);
            if at(&index, q, 0) == NONE {
                path.push((q, 0));
            } else if at(&component, q, 0) == NONE {
                let lower = at(&low, m, 0).min(at(&index, q, 0));
                set(&mut low, m, lower);
            }
        }
    }
    (component, members)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;
    use std::collections::BTreeSet;

    /// Every object's ancestors by walking, and the invariants of clusters.
    fn check(n: usize, links: &[(u32, u32)], size: usize) -> Clusters {
        let c = cluster(n, links.to_vec(), size);
        let parents = Rows::of_pairs(n, links.iter().copied().filter(|(a, b)| a != b).collect());
        for x in numbers(n) {
            let mut seen = BTreeSet::new();
            let mut todo = parents.row(x).to_vec();
            while let Some(a) = todo.pop() {
                if seen.insert(a) {
                    todo.extend_from_slice(parents.row(a));
                }
            }
            let found: BTreeSet<u32> = c.local(x).iter().chain(c.above.row(c.of(x))).copied().collect();
            assert_eq!(found, seen, "ancestors of {x} in {links:?} at {size}");
            match c.local(x) {
                [] => assert_eq!(c.edges.row(c.of(x)), parents.row(x)),
                [p, rest @ ..] => {
                    assert_eq!(parents.row(x), [*p]);
                    assert_eq!((c.of(x), rest), (c.of(*p), c.local(*p)));
                }
            }
        }
        for k in numbers(c.members.len()) {
            let roots = c.members.row(k).iter().filter(|&&x| c.local(x).is_empty()).count();
            assert!(roots == 1 || c.edges.row(k).len() == 1, "roots of {k}");
            assert!((1..=size.max(1)).contains(&c.members.row(k).len()), "size of {k}");
        }
        c
    }

    #[test]
    fn a_chain_fills_its_clusters() {
        let links: Vec<_> = (1..2000).map(|x| (x, x - 1)).collect();
        let c = check(2000, &links, 256);
        assert_eq!(c.members.len(), 8);
        assert_eq!(c.above.row(c.of(1999)).len() + c.local(1999).len(), 1999);
    }

    #[test]
    fn siblings_that_do_not_fit_share_clusters() {
        let links: Vec<_> = (1..1000).map(|x| (x, 0)).collect();
        assert_eq!(check(1000, &links, 100).members.len(), 10);
    }

    #[test]
    fn rings_end_and_hold_no_more_than_they_reach() {
        check(3, &[(0, 1), (1, 2), (2, 0)], 256);
        check(3, &[(0, 1), (1, 2), (2, 0)], 2);
        check(5, &[(0, 1), (1, 0), (2, 0), (3, 2), (0, 4)], 2);
        check(2, &[(0, 0), (1, 0)], 3);
        check(0, &[], 3);
    }

    #[test]
    fn random_graphs_agree_with_a_walk() {
        let mut seed = 7u64;
        let mut next = |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for round in 0..150 {
            let n = 1 + next(60);
            let mut links: Vec<(u32, u32)> =
                (1..n).filter(|_| round % 3 > 0).map(|x| (x as u32, next(x) as u32)).collect();
            for _ in 0..next(n) {
                links.push((next(n) as u32, next(n) as u32));
            }
            for size in [1, 2, 3, 10, 256] {
                check(n as usize, &links, size);
            }
        }
    }
}
