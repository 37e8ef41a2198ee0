use super::facts::{Caller, Datum, Facts, Holder, Share, Table};
use super::{World, needs, sql};
use crate::compiler::compile;
use crate::compiler::ident::{Ident, QualName};
use crate::compiler::model::{Model, RelId, TypeId};

const DOCS: &str = include_str!("../../../examples/docs/docs.authz");

fn model(text: &str) -> Model {
    let compiled = compile("test.authz", text);
    compiled.model.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
}

/// A table from words: numbers, true, false, NULL, anything else is text.
fn table(columns: &str, rows: &[&str]) -> Table {
    let value = |word: &str| match word {
        "NULL" => Datum::Null,
        "true" => Datum::Bool(true),
        "false" => Datum::Bool(false),
        word => word.parse().map_or_else(|_| Datum::Text(word.to_owned()), Datum::Int),
    };
    Table {
        columns: columns.split(' ').map(Ident::new).collect(),
        rows: rows.iter().map(|row| row.split(' ').map(value).collect()).collect(),
    }
}

fn docs(folders: &[&str], links: &[&str]) -> Facts {
    let mut facts = Facts::default();
    let mut add = |name: &str, columns: &str, rows: &[&str]| {
        facts.tables.insert(QualName::new("app", name), table(columns, rows));
    };
    add("users", "id active", &["1 true", "2 true", "3 false"]);
    add("orgs", "id", &["1"]);
    add("org_admins", "org_id user_id", &[]);
    add("teams", "id", &["1", "2", "3"]);
    add("team_members", "team_id user_id", &["1 2", "1 3"]);
    add("team_teams", "team_id member_team_id", &["2 1", "3 2", "1 3"]);
    add("folders", "id org_id parent_id owner_id inherit", folders);
    add("folder_links", "folder_id shown_in", links);
    add("folder_teams", "folder_id team_id", &["2 3"]);
    add("files", "id folder_id owner_id confidential", &["9 3 1 true"]);
    facts
}

fn ids(model: &Model, facts: &Facts, user: i64, ty: &str, permission: &str) -> Vec<i64> {
    let world = World::new(model, facts, 0).unwrap();
    let caller = Caller::of(model.user, vec![Datum::Int(user)]);
    let held = world.ask(&caller).unwrap();
    let ty = model.type_named(ty).unwrap();
    let permission = model.ty(ty).unwrap().permission_named(permission).unwrap();
    let number = |key: &&Vec<Datum>| match key.as_slice() {
        [Datum::Int(n)] => *n,
        other => panic!("{other:?}"),
    };
    held.permitted(ty, permission).iter().map(number).collect()
}

#[test]
fn access_comes_down_where_it_is_let_through_and_rings_end() {
    let model = model(DOCS);
    let facts = docs(&["1 1 NULL 1 true", "2 1 1 1 true", "3 1 2 1 true", "4 1 3 1 false"], &["1 3"]);
    assert_eq!(ids(&model, &facts, 1, "folder", "share"), [1, 2, 3, 4]);
    // Team 3 holds team 2, which holds team 1, where user 2 is; 4 does not inherit; 1 is shown in 3.
    assert_eq!(ids(&model, &facts, 2, "folder", "edit"), [2, 3]);
    assert_eq!(ids(&model, &facts, 2, "folder", "view"), [1, 2, 3]);
    assert_eq!(ids(&model, &facts, 2, "file", "view"), [9]);
    assert!(ids(&model, &facts, 3, "folder", "view").is_empty(), "who does not count holds nothing");
}

#[test]
fn a_ring_gives_nothing_by_itself() {
    let model = model(DOCS);
    let facts = docs(&["3 1 NULL 1 true", "5 1 NULL 1 true"], &["3 5", "5 3"]);
    assert!(ids(&model, &facts, 2, "folder", "view").is_empty());
    assert_eq!(ids(&model, &facts, 1, "folder", "view"), [3, 5]);
}

#[test]
fn shares_count_while_they_last() {
    let model = model(DOCS);
    let mut facts = docs(&["1 1 NULL 1 true"], &[]);
    let folder = model.type_named("folder").unwrap();
    let viewer = model.ty(folder).unwrap().relation_named("viewer").unwrap();
    let mut share = |starts, expires| {
        facts.shares = vec![Share {
            ty: folder,
            relation: viewer,
            object: vec![Datum::Int(1)],
            with: Holder::Everyone(model.user),
            starts,
            expires,
            caveat: None,
        }];
        ids(&model, &facts, 2, "folder", "view").len()
    };
    assert_eq!(share(None, None), 1);
    assert_eq!((share(Some(0), Some(1)), share(Some(1), None), share(None, Some(0))), (1, 0, 0));
}

#[test]
fn a_yes_is_explained_row_by_row() {
    let model = model(DOCS);
    let facts = docs(&["1 1 NULL 1 true", "2 1 1 1 true", "3 1 2 1 true"], &[]);
    let world = World::new(&model, &facts, 0).unwrap();
    let caller = Caller::of(model.user, vec![Datum::Int(2)]);
    let held = world.ask(&caller).unwrap();
    let file = model.type_named("file").unwrap();
    let view = model.ty(file).unwrap().permission_named("view").unwrap();
    let steps: Vec<String> = held.why(file, view, &[Datum::Int(9)]).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        steps,
        [
            "view on file 9",
            "edit on file 9",
            "folder of file 9 is folder 3",
            "edit on folder 3",
            "parent of folder 3 is folder 2",
            "edit on folder 2",
            "editor of folder 2 is member of team 3",
            "member of team 3 is member of team 2",
            "member of team 2 is member of team 1",
            "user 2 is member of team 1",
        ]
    );
}

#[test]
fn what_a_policy_needs_is_told() {
    let needed = needs(&model(DOCS)).unwrap();
    let columns = |name: &str| needed[&QualName::new("app", name)].iter().map(|c| c.as_str()).collect::<Vec<_>>();
    assert_eq!(columns("folders"), ["id", "inherit", "org_id", "owner_id", "parent_id"]);
    assert_eq!(columns("team_teams"), ["member_team_id", "team_id"]);
    assert_eq!(needed.len(), 10);
}

#[test]
fn conditions_have_three_values_and_nothing_is_guessed() {
    let rows = table("a b t", &["1 NULL x"]);
    let facts =
        Facts { tables: [(QualName::new("s", "r"), table("a c", &["1 true", "2 false"]))].into(), ..Facts::default() };
    let worth = |text: &str| {
        let parsed = sql::parse(text)?;
        let context = [("k".to_owned(), "v".to_owned())].into();
        let asked = sql::Asked { facts: &facts, uid: &Datum::Int(7), context: &context, arguments: &context, now: 5 };
        let scope = sql::Scope { alias: None, table: &rows, row: &rows.rows[0], outer: None };
        sql::eval(&parsed, Some(&scope), &asked)
    };
    let (yes, no, unknown) = (Ok(Datum::Bool(true)), Ok(Datum::Bool(false)), Ok(Datum::Null));
    for (text, expected) in [
        ("a = 1 and not b = 2", &unknown),
        ("a = 2 and b = 2", &no),
        ("a = 1 or b = 2", &yes),
        ("b is null and this.a is not null", &yes),
        ("(b = 1) is not true", &yes),
        ("b in (1, 2)", &unknown),
        ("a in (b, 1)", &yes),
        ("a not in (2, 3)", &yes),
        ("a not in (2, b)", &unknown),
        ("b is distinct from 1", &yes),
        ("a between 0 and 1 and a % 2 = 1", &yes),
        ("a + 2 * 3 = 7 and t = 'x' and t || 'y' <> 'x'", &yes),
        ("coalesce(b, a) = 1", &yes),
        ("authz.uid() = 7 and authz.ctx('k') = 'v' and authz.ctx('other') is null", &yes),
        ("exists (select 1 from s.r where r.a = this.a and c)", &yes),
        ("exists (select from s.r x where x.a = this.a + 1 and c)", &no),
        ("exists (select * from s.r as x where a = 2)", &yes),
        ("a in (select r.a from s.r where not c)", &no),
        ("\"a\" = 1 AND A = 1", &yes),
    ] {
        assert_eq!(worth(text), *expected, "{text}");
    }
    for text in [
        "t < 'y'",
        "random() < 1",
        "a = 1.5",
        "(select 1) = a",
        "s.f(a)",
        "t like 'x'",
        "a",
        "other = 1",
        "case when a = 1 then true end",
    ] {
        assert!(worth(text).is_err() || text == "a", "{text}: {:?}", worth(text));
    }
}

#[test]
fn a_deny_beneath_inheritance_is_worked_out_first() {
    let text = "app role a\ntype user = app.users\ntype f = app.f\n  parent : f = parent_id\n  owner : user = owner_id\n  \
                blocked : user = blocked_id\n  can hidden = blocked or parent.hidden\n  can view = owner or parent.view\n  \
                can open = view and not hidden\n";
    let model = model(text);
    let mut facts = Facts::default();
    facts.tables.insert(QualName::new("app", "users"), table("id", &["1", "2"]));
    let rows = ["1 NULL 1 NULL", "2 1 NULL 1", "3 2 NULL NULL"];
    facts.tables.insert(QualName::new("app", "f"), table("id parent_id owner_id blocked_id", &rows));
    assert_eq!(ids(&model, &facts, 1, "f", "view"), [1, 2, 3]);
    assert_eq!(ids(&model, &facts, 1, "f", "open"), [1]);
    let world = World::new(&model, &facts, 0).unwrap();
    let caller = Caller::nobody();
    assert!(world.ask(&caller).unwrap().related(TypeId(1), RelId(1)).is_empty());
}
