//! Policy in, SQL out: what the compiler generates for the docs example, kept in full.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use rowdeck::compiler::{compile, emit};

#[test]
fn docs_policy_to_sql() {
    let text = include_str!("../examples/docs/docs.authz");
    let compiled = compile("docs.authz", text);
    assert!(!compiled.has_errors(), "{:#?}", compiled.diagnostics);
    let emitted = emit::emit(&compiled.model.unwrap()).unwrap();
    let mut sql = String::new();
    for object in &emitted.objects {
        sql.push_str(&format!("-- {:?} {} {}\n{};\n\n", object.phase, object.kind.word(), object.name, object.sql));
    }
    insta::with_settings!({ snapshot_path => "golden", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("docs.sql", sql);
    });
}
