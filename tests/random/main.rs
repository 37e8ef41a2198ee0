//! The database against the evaluator, on random data, random changes and random policies.
//!
//! Check, list, who, explain, rows through row-level security, writes under every rule, and the index's own verify are
//! one meaning in many shapes: each must agree with sets worked out in memory, for everybody and for nobody, after every
//! one of many random changes, in each read form and with clusters small enough that every path leaves them.
//!
//! `ROWDECK_SEED=7` runs one seed of each test, `ROWDECK_MINUTES=60` goes on with new seeds for that long in each. A
//! failing case is made small, printed, and written to `target/random`; moved to `tests/random/kept` it is a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

#[allow(dead_code, reason = "shared with other test binaries, which use more of it")]
#[path = "../common/server.rs"]
mod server;

mod case;
mod change;
mod compare;
mod policy;
mod shrink;
mod write;

use std::time::{Duration, Instant};

use case::{Case, Outcome};

/// Runs seeds of one kind of case, each in a database of its own.
fn seeds(name: &str, first: std::ops::Range<u64>, make: impl Fn(u64) -> Option<Case>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build().unwrap();
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let until = number("ROWDECK_MINUTES").map(|n| Instant::now() + Duration::from_secs(n * 60));
    let (seeds, mut until) = match (number("ROWDECK_SEED"), until) {
        (Some(seed), _) => (seed..seed + 1, None),
        (None, Some(until)) => (number("ROWDECK_FROM").unwrap_or(1000)..u64::MAX, Some(until)),
        (None, None) => (first, None),
    };
    let (mut worlds, mut not_built, mut checks) = (0, 0, 0);
    for seed in seeds {
        if until.take_if(|until| Instant::now() > *until).is_some() {
            break;
        }
        let Some(case) = make(seed) else {
            not_built += 1;
            continue;
        };
        match runtime.block_on(case.run()) {
            Outcome::Agrees(more) => {
                worlds += 1;
                checks += more;
            }
            Outcome::Fails(failure) if std::env::var_os("ROWDECK_MISTAKE").is_some() => {
                println!("{} {}", if failure.after == 0 { "NO SQL" } else { "CAUGHT" }, failure.what);
                return;
            }
            Outcome::Fails(failure) => {
                let small = runtime.block_on(shrink::shrink(&case, &failure));
                panic!("{name}, seed {seed}: {}\n\n{}", failure.what, small.report());
            }
        }
    }
    println!("{name}: {worlds} worlds agreed in {checks} comparisons; {not_built} policies not built");
    assert!(worlds > 0, "nothing was compared");
}

fn fixed(name: &str, policy: &str, first: std::ops::Range<u64>) {
    seeds(name, first, |seed| Some(Case::of_policy(name, policy, seed).unwrap()));
}

#[test]
fn docs() {
    fixed("docs", include_str!("policies/docs.authz"), 0..2);
}

#[test]
fn conditions() {
    fixed("conditions", include_str!("policies/conditions.authz"), 0..2);
}

#[test]
fn groups() {
    fixed("groups", include_str!("policies/groups.authz"), 0..2);
}

#[test]
fn keys() {
    fixed("keys", include_str!("policies/keys.authz"), 0..2);
}

/// A policy of its own for every seed.
#[test]
fn random_policies() {
    seeds("random_policies", 0..8, policy::case);
}

/// Cases that failed once.
#[test]
fn kept() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/random/kept");
    let mut found: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|e| e == "json"));
    found.sort();
    for path in found {
        let case: Case = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        if let Outcome::Fails(failure) = runtime.block_on(case.run()) {
            panic!("{}: {}", path.display(), failure.what);
        }
    }
}
