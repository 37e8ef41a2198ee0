use super::{diff, prove};
use crate::compiler::compile;
use crate::compiler::evaluate::facts::{Datum, Facts, Table};
use crate::compiler::ident::QualName;
use crate::compiler::model::Model;

fn model(text: &str) -> Model {
    let compiled = compile("test.authz", text);
    compiled.model.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
}

const POLICY: &str = "app role a\ntype user = app.users where {active}\ntype org = app.orgs\n  member : user = app.members(org_id -> user_id)\n\
                      type folder = app.folders\n  org : org = org_id\n  parent : folder = parent_id\n  owner : user = owner_id\n";

#[test]
fn an_invariant_that_does_not_hold_has_a_world_to_read() {
    let text =
        format!("{POLICY}  can edit = owner or parent.edit\ninvariants\n  never folder: edit and not org.member\n");
    let proofs = prove(&model(&text), 500, 1).unwrap();
    let found = proofs[0].counterexample.as_ref().unwrap();
    assert!(found.principal.starts_with("user "), "{found:?}");
    // The person and the folder: nothing else is needed, and nothing else is left.
    assert_eq!(found.rows.len(), 2, "{found:?}");
    assert!(found.rows.iter().any(|row| row.starts_with("app.folders: ") && row.contains("org_id NULL")), "{found:?}");
}

#[test]
fn an_invariant_that_holds_is_tried_in_every_world() {
    let text = format!(
        "{POLICY}  can edit = (owner or org.member) and org.member\ninvariants\n  never folder: edit and not org.member\n"
    );
    let proofs = prove(&model(&text), 200, 1).unwrap();
    assert_eq!((proofs[0].worlds, &proofs[0].counterexample), (200, &None));
}

#[test]
fn two_policies_differ_in_who_gains_and_loses() {
    let old = model(&format!("{POLICY}  can edit = owner or parent.edit\n"));
    let new = model(&format!("{POLICY}  can edit = parent.edit or org.member\n"));
    let mut facts = Facts::default();
    let mut add = |name: &str, columns: &[&str], rows: Vec<Vec<Datum>>| {
        let table = Table { rows, ..Table::with_columns(columns) };
        facts.tables.insert(QualName::new("app", name), table);
    };
    let n = Datum::Int;
    add("users", &["id", "active"], vec![vec![n(1), Datum::Bool(true)], vec![n(2), Datum::Bool(true)]]);
    add("orgs", &["id"], vec![vec![n(7)]]);
    add("members", &["org_id", "user_id"], vec![vec![n(7), n(2)]]);
    let rows = vec![vec![n(3), n(7), Datum::Null, n(1)], vec![n(4), Datum::Null, n(3), Datum::Null]];
    add("folders", &["id", "org_id", "parent_id", "owner_id"], rows);
    let changes = diff((&old, &facts), (&new, &facts), 0).unwrap();
    let said: Vec<_> = changes.iter().map(|c| (c.principal.as_str(), c.gained, c.lost)).collect();
    assert_eq!(said, [("user 1", 0, 2), ("user 2", 2, 0)]);
    assert_eq!(
        changes[1].gains.as_ref().unwrap().how,
        ["edit on folder 3", "org of folder 3 is org 7", "user 2 is member of org 7"]
    );
    assert_eq!(changes[0].loses.as_ref().unwrap().object, "folder 3");
}
