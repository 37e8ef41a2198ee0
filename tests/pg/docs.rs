//! The graphs of the docs example, made by hand: `parent{inherit}`, and that with `shown` links.

use rowdeck::compiler::ident::{Ident, QualName};
use rowdeck::compiler::model::*;
use rowdeck::compiler::span::Span;

/// A model with the type `folder` alone, and its two graphs.
pub fn model() -> Model {
    let this = TypeId(0);
    let source = |place| Source { subject: Subject::Type(this), place, span: Span::default() };
    let relation = |name: &str, place| Relation {
        name: name.to_owned(),
        sources: vec![source(place)],
        to_objects: true,
        span: Span::default(),
    };
    let inherit = Condition { sql: "inherit".to_owned(), span: Span::default() };
    let parent = GraphLink { child: this, parent: this, relation: RelId(0), source: 0, condition: Some(inherit) };
    let shown = GraphLink { child: this, parent: this, relation: RelId(1), source: 0, condition: None };
    let folder = TypeDef {
        name: "folder".to_owned(),
        table: QualName::new("app", "folders"),
        key: vec![KeyColumn { column: Ident::new("id"), ty: KeyType::Bigint }],
        condition: None,
        signs_in: false,
        relations: vec![
            relation("parent", Place::Column { columns: vec![Ident::new("parent_id")] }),
            relation(
                "shown",
                Place::Table {
                    table: QualName::new("app", "folder_links"),
                    object: vec![Ident::new("folder_id")],
                    subject: vec![Ident::new("shown_in")],
                    condition: None,
                },
            ),
        ],
        permissions: Vec::new(),
        roles: None,
        span: Span::default(),
    };
    Model {
        app_role: Ident::new("app_user"),
        user: this,
        types: vec![folder],
        graphs: vec![Graph { links: vec![parent.clone()] }, Graph { links: vec![parent, shown] }],
        rules: Vec::new(),
        caveats: Vec::new(),
        scopes: Vec::new(),
        invariants: Vec::new(),
        tests: Vec::new(),
    }
}

/// The example's tables that the graphs read, without the rest.
pub const SCHEMA: &str = "CREATE SCHEMA app; CREATE SCHEMA authz; CREATE SCHEMA authz_int;
CREATE TABLE app.folders (
  id bigint PRIMARY KEY,
  parent_id bigint REFERENCES app.folders ON DELETE CASCADE ON UPDATE CASCADE,
  name text NOT NULL DEFAULT '',
  inherit boolean NOT NULL DEFAULT true
);
CREATE INDEX ON app.folders (parent_id);
CREATE TABLE app.folder_links (
  folder_id bigint NOT NULL REFERENCES app.folders ON DELETE CASCADE ON UPDATE CASCADE,
  shown_in bigint NOT NULL REFERENCES app.folders ON DELETE CASCADE ON UPDATE CASCADE,
  PRIMARY KEY (folder_id, shown_in)
);
CREATE INDEX ON app.folder_links (shown_in);";
