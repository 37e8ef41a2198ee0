//! The docs policy compiles to the model it says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use rowdeck::compiler::model::{Command, Expr, Place, Subject, TypeId};
use rowdeck::compiler::{Compiled, compile};

fn docs() -> Compiled {
    let text = std::fs::read_to_string("examples/docs/docs.authz").unwrap();
    compile("docs.authz", &text)
}

#[test]
fn the_docs_policy_has_no_mistakes() {
    let compiled = docs();
    assert!(!compiled.has_errors(), "{:#?}", compiled.diagnostics);
    let model = compiled.model.unwrap();
    assert_eq!(model.app_role.as_str(), "app_user");
    assert_eq!(model.user, TypeId(0));
    let folder = &model.types[model.type_named("folder").unwrap().0];
    let editor = &folder.relations[folder.relation_named("editor").unwrap().0];
    assert_eq!(editor.sources.len(), 3);
    assert!(matches!(editor.sources[0].subject, Subject::Group(..)));
    assert!(matches!(editor.sources[2].place, Place::Shared { .. }));
    assert!(folder.relations[folder.relation_named("parent").unwrap().0].to_objects);
}

#[test]
fn permissions_that_inherit_over_the_same_links_share_a_graph() {
    let model = docs().model.unwrap();
    let folder = &model.types[model.type_named("folder").unwrap().0];
    let graph = |name: &str| folder.permissions[folder.permission_named(name).unwrap().0].inherits.clone().unwrap();
    assert_eq!(graph("share").graph, graph("edit").graph);
    assert_ne!(graph("edit").graph, graph("view").graph);
    assert_eq!(model.graphs.len(), 2);
    let view = &model.graphs[graph("view").graph.0];
    assert_eq!(view.links.len(), 2);
    assert_eq!(view.links[0].condition.as_ref().unwrap().sql, "inherit");
    assert_eq!(view.links[1].condition, None);
    let Expr::Or(base) = graph("view").base else { panic!("the base of view is edit or viewer") };
    assert_eq!(base.len(), 2);
}

#[test]
fn rules_keep_their_commands() {
    let model = docs().model.unwrap();
    let rules = &model.rules[0].rules;
    assert_eq!(rules.len(), 6);
    assert!(matches!(&rules[3].command, Command::UpdateBefore(columns) if columns.len() == 3));
    assert!(matches!(&rules[4].command, Command::UpdateAfter(columns) if columns.is_empty()));
}

fn folder_policy(lines: &str) -> Compiled {
    compile(
        "p.authz",
        &format!(
            "app role app_user\ntype user = app.users\n\
             type project = app.projects\n  member : user = app.pm(project_id -> user_id)\n  can view = member\n  can deep = member\n  can tier = member\n\
             type folder = app.folders\n  parent : folder = parent_id\n  parent : project = project_id\n  \
             shown : folder = app.shown(folder_id -> shown_in)\n  owner : user = owner_id\n{lines}"
        ),
    )
}

/// The links of a permission's graph as `source{condition}`, and how many terms its base has.
fn inherited(compiled: &Compiled, name: &str) -> (Vec<String>, usize) {
    let model = compiled.model.as_ref().unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics));
    let folder = &model.types[model.type_named("folder").unwrap().0];
    let inherits = folder.permissions[folder.permission_named(name).unwrap().0].inherits.as_ref().unwrap();
    let links = model.graphs[inherits.graph.0].links.iter().map(|link| {
        let condition = link.condition.as_ref().map(|c| format!("{{{}}}", c.sql)).unwrap_or_default();
        format!("{}.{}{condition}", folder.relations[link.relation.0].name, link.source)
    });
    let terms = if let Expr::Or(all) = &inherits.base { all.len() } else { 1 };
    (links.collect(), terms)
}

#[test]
fn inheriting_terms_are_found_wherever_they_stand() {
    let compiled = folder_policy(
        "  can view = (owner or (parent.view or ({a} and (shown.view)))) or nobody\n  \
         can deep = (owner or parent.deep or (shown.deep and not {a})) and {not archived}\n  \
         can tier = view or (parent.tier and {a} and ({b} or {c}))\n",
    );
    // `parent` also reaches projects, where nothing is inherited: that is part of the base.
    assert!(!compiled.has_errors(), "{:#?}", compiled.diagnostics);
    assert_eq!(inherited(&compiled, "view"), (vec!["parent.0".into(), "shown.0{a}".into()], 3));
    let (links, _) = inherited(&compiled, "deep");
    assert_eq!(links, ["parent.0{not archived}", "shown.0{((a) IS NOT TRUE) AND (not archived)}"]);
    assert_eq!(inherited(&compiled, "tier").0, ["parent.0{(a) AND ((b) OR (c))}"]);
}

#[test]
fn several_types_inherit_in_one_graph_and_denies_are_kept_apart() {
    let compiled = compile(
        "docs.authz",
        "app role app_user\ntype user = app.users\n\
         type space = app.spaces\n  home : folder = folder_id\n  lead : user = lead_id\n  hidden : user = hidden_id\n  \
         can hide = hidden or home.hide\n  can view = (lead or home.view) and {open} and not hide\n\
         type folder = app.folders\n  parent : folder = parent_id\n  space : space = space_id\n  owner : user = owner_id\n  \
         can hide = owner or parent.hide or space.hide\n  can view = (parent.view or space.view) and not hide\n\
         type file = app.files\n  folder : folder = folder_id\n  can view = folder.view\n",
    );
    let model = compiled.model.as_ref().unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics));
    let of = |ty: &str, name: &str| {
        let ty = &model.types[model.type_named(ty).unwrap().0];
        ty.permissions[ty.permission_named(name).unwrap().0].inherits.clone()
    };
    let (space, folder) = (of("space", "view").unwrap(), of("folder", "view").unwrap());
    assert_eq!((space.graph, &space.members), (folder.graph, &folder.members));
    assert_eq!((space.members.len(), space.denies.len(), folder.denies.len()), (2, 1, 1));
    assert!(matches!(folder.base, Expr::Nobody(_)), "only spaces start it: {:?}", folder.base);
    let links = &model.graphs[space.graph.0].links;
    assert_eq!(links.len(), 3);
    assert_eq!(links.iter().filter(|l| l.condition.as_ref().is_some_and(|c| c.sql == "open")).count(), 1);
    // The deny has the same links without the condition.
    assert_ne!(of("space", "hide").unwrap().graph, space.graph);
    assert_eq!(of("file", "view"), None);
}

#[test]
fn graphs_are_shared_by_what_they_link_and_not_by_where_they_are_written() {
    let compiled = folder_policy(
        "  can view = owner or (parent.view and {inherit}) or shown.view\n  \
         can edit = shown.edit or owner or ({ inherit } and parent.edit)\n  \
         can read = owner or parent.read\n",
    );
    // Projects have no `edit` and no `read`.
    assert_eq!(compiled.diagnostics.len(), 2);
    let compiled = folder_policy(
        "  can view = owner or (parent.view and {inherit}) or shown.view\n  can open = shown.open or owner or view\n  \
         can seen = shown.seen or view\n",
    );
    assert_eq!(compiled.model.unwrap().graphs.len(), 2);
}

#[test]
fn the_outline_and_the_colours_work_while_there_are_mistakes() {
    use rowdeck::compiler::lexer::{TokenClass, highlight};
    use rowdeck::compiler::outline::{OutlineKind, outline};
    let text = "type folder = app.folders\n  owner : usr = owner_id -- who\n  can view = owner or {name = 'x'} or\nrules app.folders\n  update a after : view\n";
    let items = outline(&compile("p", text).ast);
    let names: Vec<(&str, usize)> = items.iter().map(|i| (i.name.as_str(), i.children.len())).collect();
    assert_eq!(names, [("folder", 2), ("app.folders", 1)]);
    assert_eq!(
        (items[0].children[1].kind, items[1].children[0].name.as_str()),
        (OutlineKind::Permission, "update a after")
    );
    let classes: Vec<(&str, TokenClass)> =
        highlight(text).into_iter().map(|(range, class)| (&text[range], class)).collect();
    for expected in [
        ("type", TokenClass::Keyword),
        ("folder", TokenClass::Declaration),
        ("owner", TokenClass::Declaration),
        ("-- who", TokenClass::Comment),
        ("view", TokenClass::Declaration),
        ("'x'", TokenClass::Text),
        ("{name = ", TokenClass::Sql),
        ("after", TokenClass::Keyword),
        ("view", TokenClass::Name),
    ] {
        assert!(classes.contains(&expected), "{expected:?} is not in {classes:?}");
    }
}

#[test]
fn a_comment_in_a_condition_takes_nothing_with_it() {
    let text = "app role a\ntype user = app.users where {active -- not gone\n}\ntype note = app.notes where {a /* é */ = '--' --}\n}\n";
    let model = compile("p", text).model.unwrap();
    let conditions: Vec<&str> = model.types.iter().map(|t| t.condition.as_ref().unwrap().sql.as_str()).collect();
    assert_eq!(conditions, ["active            \n", "a          = '--'    \n"]);
}
