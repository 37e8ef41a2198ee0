//! Making a failing case small: without later transactions, without statements, without lines of the policy.

use crate::case::{Case, Failure, Outcome, compile};

/// Tries at most this often: each try is a database of its own.
const MOST_TRIES: usize = 150;

/// The smallest case found that fails alike.
pub async fn shrink(case: &Case, failure: &Failure) -> Case {
    let mut best = Case { probe: failure.probe.clone(), ..case.clone() };
    best.transactions.truncate(failure.after.max(1));
    // One transaction for each statement is easier to make smaller; if that fails no more, all stay together.
    let mut tries = 0;
    if !fails(&best, &mut tries).await {
        best = case.clone();
        best.transactions.truncate(failure.after + 1);
    }
    let mut size = best.transactions.iter().map(Vec::len).sum::<usize>() / 2;
    while size > 0 {
        best = without_statements(best, size, &mut tries).await;
        size /= 2;
    }
    best.transactions.retain(|t| !t.is_empty());
    without_lines(best, &mut tries).await
}

async fn fails(case: &Case, tries: &mut usize) -> bool {
    *tries += 1;
    *tries <= MOST_TRIES && matches!(case.run().await, Outcome::Fails(failure) if failure.after > 0)
}

async fn without_statements(mut best: Case, size: usize, tries: &mut usize) -> Case {
    let mut at = 0;
    loop {
        let all: usize = best.transactions.iter().map(Vec::len).sum();
        if at >= all || *tries > MOST_TRIES {
            return best;
        }
        let mut smaller = best.clone();
        let mut number = 0;
        for transaction in &mut smaller.transactions {
            transaction.retain(|_| {
                number += 1;
                !(at..at + size).contains(&(number - 1))
            });
        }
        // What is compared after the last transaction is what failed; an emptied one before it is dropped.
        let last = smaller.transactions.pop().unwrap_or_default();
        smaller.transactions.retain(|t| !t.is_empty());
        smaller.transactions.push(last);
        if fails(&smaller, tries).await {
            best = smaller;
        } else {
            at += size;
        }
    }
}

async fn without_lines(mut best: Case, tries: &mut usize) -> Case {
    let mut at = best.policy.len();
    while at > 0 && *tries <= MOST_TRIES {
        at -= 1;
        let mut smaller = best.clone();
        let line = smaller.policy.remove(at);
        if !line.trim().is_empty() && compile(&smaller.policy_text()).is_ok() && fails(&smaller, tries).await {
            best = smaller;
        }
    }
    best
}
