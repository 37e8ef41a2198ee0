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
    assert!(matches!(&rules[3].command, Command::UpdateBefore(columns) if columns.len() == 2));
    assert!(matches!(&rules[4].command, Command::UpdateAfter(columns) if columns.is_empty()));
}
