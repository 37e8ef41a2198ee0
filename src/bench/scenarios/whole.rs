//! Scenarios with a course of their own.

use crate::bench::scenario::{Criterion, Family, How, Load, Scenario};

const DONE: (&str, &str) = ("ok", "the statement did what it should");
const REFUSED: (&str, &str) = ("refused", "a read that showed nothing, or a no");

const NOTHING_FAILED: Criterion = Criterion {
    words: "nothing failed or was cut off, and everything written was taken back",
    allowed: &["ok", "refused"],
    required: &["ok"],
    verify: false,
};

/// `live`
pub static LIVE: Scenario = Scenario {
    name: "live",
    family: Family::Whole,
    measures: "steady reads and tree writes beside each other, with big moves: the console's Bench screen without the screen",
    preparation: "reads the tree, to choose writes that the policy allows; everything is taken back afterwards",
    outcomes: &[DONE, REFUSED],
    criterion: NOTHING_FAILED,
    load: Load::MANY,
    how: How::Own,
};

/// `big-move`
pub static BIG_MOVE: Scenario = Scenario {
    name: "big-move",
    family: Family::Whole,
    measures: "the folder with the most below it into another root and back, beside steady tree writes",
    preparation: "as for live",
    outcomes: &[DONE, REFUSED],
    criterion: Criterion {
        words: "nothing failed, every move was done, and the index is exact afterwards",
        verify: true,
        ..NOTHING_FAILED
    },
    load: Load::MANY,
    how: How::Own,
};

/// `scale`
pub static SCALE: Scenario = Scenario {
    name: "scale",
    family: Family::Whole,
    measures: "the gate at 20 thousand to a million folders: reads, writes by 1, 10 and 50 clients, both, a big move, lists",
    preparation: "a server of its own with the docs example at the size asked for; --again measures on a kept one",
    outcomes: &[DONE, REFUSED],
    criterion: Criterion {
        words: "tree writes p95 under 50 ms and reads p95 under 5 ms beside each other, no failed write, verify true after \
                the writes, every list exact",
        verify: true,
        ..NOTHING_FAILED
    },
    load: Load::MANY,
    how: How::Own,
};

/// `versus-closure`
pub static VERSUS: Scenario = Scenario {
    name: "versus-closure",
    family: Family::Whole,
    measures: "the index and the rules beside closure tables and beside none at all: the ratios that are aimed for",
    preparation: "a server of its own with the same data in three databases",
    outcomes: &[DONE, REFUSED],
    criterion: Criterion {
        words: "both indexes are exact, nothing failed, and every target is met",
        verify: true,
        ..NOTHING_FAILED
    },
    load: Load::MANY,
    how: How::Own,
};
