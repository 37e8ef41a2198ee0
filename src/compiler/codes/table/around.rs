//! AZ82x and AZ83x: ways around row-level security that are in a database. Each finding of `rowdeck lint` has the
//! statement that closes it.

use super::plain;
use crate::compiler::codes::CodeInfo;

/// See the module.
pub(super) const AROUND: &[CodeInfo] = &[
    plain(
        820,
        "a role that is not subject to row-level security",
        "It is a superuser, has BYPASSRLS or as good as that, or is a member of a role that is; the finding says through which. Take the attribute or the membership away, or connect the app as another login role.",
    ),
    plain(
        821,
        "row-level security that is off, or forced",
        "Off, the rules do nothing: ENABLE ROW LEVEL SECURITY. Forced, the owner's upkeep of the index no longer sees every row: NO FORCE ROW LEVEL SECURITY.",
    ),
    plain(
        822,
        "the app's role owns a governed table",
        "Row-level security does not bind owners. Give the table to the role that applies, or connect the app as another login role; never FORCE row-level security.",
    ),
    plain(
        823,
        "a policy on a governed table that the policy file did not make",
        "A permissive one allows what the file does not, a restrictive one refuses what it allows. Drop it, and say what it was for in the file.",
    ),
    plain(
        824,
        "a partition or child that no rule judges when used directly",
        "Rules stand on the table they are written for. Enable row-level security on the partition as well: without policies nobody but its owner uses it directly.",
    ),
    plain(
        825,
        "a view over a governed table that reads as its owner",
        "Whoever may read the view reads rows the rules hide. Make it security_invoker; rows that are then missing were never allowed. A materialized view cannot be filtered: take the grant away.",
    ),
    plain(
        826,
        "a function over a governed table that runs as its owner",
        "Whatever it does is done without the rules. Make it SECURITY INVOKER, take EXECUTE away, or let it ask authz.can first and accept the finding.",
    ),
    plain(
        827,
        "a function that runs as its owner with a search_path that can be hijacked",
        "PostgreSQL looks for tables in pg_temp first unless the path names it elsewhere, so a caller's temporary table takes the place of the one meant. Pin search_path, with pg_temp last.",
    ),
    plain(
        828,
        "TRUNCATE, TRIGGER or REFERENCES for the app",
        "Rules do not judge them: TRUNCATE empties the table, TRIGGER runs code as whoever writes, REFERENCES tells which rows exist. Revoke them.",
    ),
    plain(
        829,
        "a table the policy trusts that the app may write",
        "Whoever writes a membership gives access. Revoke the writes, or give the table rules.",
    ),
    plain(
        830,
        "a masked column that is readable in the table itself",
        "The mask is in the view alone. Revoke SELECT on the column; SELECT on the whole table includes it.",
    ),
    plain(
        831,
        "a unique index or foreign key that tells whether a row exists",
        "A violation names a row that somebody may not see. Make the key one nobody guesses, put the owner into it, or accept it.",
    ),
    plain(
        832,
        "a trigger of the index that does not fire",
        "What is written meanwhile is not in the index. Enable it, then run rowdeck verify --repair.",
    ),
    plain(
        833,
        "a grant on what the policy made",
        "The schemas authz, authz_gen and authz_int are granted as the apply left them. Revoke what was added.",
    ),
    plain(
        834,
        "a schema of the app's in which others may create objects",
        "An object of theirs takes the place of one that is meant. Revoke CREATE on the schema.",
    ),
    plain(
        835,
        "JIT is on for the app",
        "PostgreSQL overestimates what a read under rules costs and compiles its plan, which can take longer than the read. ALTER ROLE ... SET jit = off.",
    ),
    plain(
        836,
        "a table the app reads that no rule filters",
        "That may be right, for a list of countries say. If not, give it rules or take the grant away.",
    ),
];
