//! Whatever is typed, the compiler answers: no panic, no runaway recursion, no quadratic time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use rowdeck::compiler::include::NoFiles;
use rowdeck::compiler::lexer::highlight;
use rowdeck::compiler::{Compiled, compile, compile_bytes, outline};

const DOCS: &str = include_str!("../examples/docs/docs.authz");

/// Everything an editor does with a text.
fn exercise(text: &str) -> Compiled {
    let compiled = compile("p.authz", text);
    for diagnostic in compiled.diagnostics.iter().chain(&compiled.lints(None)) {
        diagnostic.render(&compiled.sources);
        diagnostic.finding(&compiled.sources);
    }
    outline::outline(&compiled.ast);
    let mut end = 0;
    for (range, _) in highlight(text) {
        assert!(end <= range.start && range.start < range.end, "classes overlap or are empty at {range:?}");
        assert!(text.get(range.clone()).is_some(), "a class ends inside a character at {range:?}");
        end = range.end;
    }
    assert_eq!(compiled.model.is_some(), !compiled.has_errors());
    compiled
}

/// The nearest place at or before a byte of the docs policy where a character starts.
fn boundary(at: usize) -> usize {
    (0..=at).rev().find(|at| DOCS.is_char_boundary(*at)).unwrap()
}

/// Pieces that policies are made of, so that random texts get past the lexer.
fn fragment() -> impl Strategy<Value = String> {
    let words = [
        "type",
        "user",
        "app",
        "role",
        "rules",
        "test",
        "can",
        "view",
        "edit",
        "owner",
        "parent",
        "or",
        "and",
        "not",
        "shared",
        "by",
        "if",
        "where",
        "update",
        "select",
        "after",
        "before",
        "given",
        "as",
        "sees",
        "allowed",
        "include",
        "scope",
        "caveat",
        "never",
        "invariants",
        "anyone",
        "link",
        "roles",
        "from",
        "principal",
        "mask",
        "cascade",
        "this",
    ];
    let marks = [
        ":",
        "=",
        ",",
        ".",
        "->",
        "#",
        "*",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "'",
        "\"",
        "$",
        "$$",
        "$x$",
        "--",
        "/*",
        "*/",
        "\n",
        "\n  ",
        "\n\n",
        "\t",
        "\r\n",
        "{x}",
        "{a = 'b'}",
        "app.t",
        "(id uuid)",
        "$ann",
        "3",
        "é",
        "\u{feff}",
        "日本",
        "\0",
        ";",
    ];
    prop_oneof![
        proptest::sample::select(words.to_vec()).prop_map(str::to_owned),
        proptest::sample::select(marks.to_vec()).prop_map(str::to_owned),
        Just(" ".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in any::<String>()) {
        exercise(&text);
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let compiled = compile_bytes("p.authz", &bytes, &NoFiles);
        prop_assert!(compiled.model.is_none());
    }

    #[test]
    fn any_fragments(parts in proptest::collection::vec(fragment(), 0..120)) {
        exercise(&parts.concat());
        exercise(&parts.join(" "));
    }

    #[test]
    fn the_docs_policy_with_a_piece_replaced(from in 0.0..1.0f64, length in 0usize..40, with in fragment()) {
        let at = boundary((DOCS.len() as f64 * from) as usize);
        let end = boundary((at + length).min(DOCS.len()));
        exercise(&format!("{}{with}{}", &DOCS[..at], &DOCS[end..]));
    }

    #[test]
    fn the_docs_policy_with_two_lines_swapped(a in 0usize..50, b in 0usize..50) {
        let mut lines: Vec<&str> = DOCS.lines().collect();
        let (a, b) = (a % lines.len(), b % lines.len());
        lines.swap(a, b);
        exercise(&lines.join("\n"));
    }
}

const HEAD: &str =
    "app role app_user\ntype user = app.users\ntype note = app.notes\n  author : user = author_id\n  can view = ";

#[test]
fn deep_nesting_is_a_mistake_and_not_a_crash() {
    for (open, close) in [("(", ")"), ("not ", ""), ("not (", ")"), ("(author or ", ")")] {
        let text = format!("{HEAD}{}author{}\n", open.repeat(5000), close.repeat(5000));
        let compiled = exercise(&text);
        let codes: Vec<u16> = compiled.diagnostics.iter().map(|d| d.code.0).collect();
        assert_eq!(codes, [102], "{open}");
    }
    // As deep as is allowed, and everything after the parser still walks it.
    let text = format!("{HEAD}{}author{}\n", "not (".repeat(50), ")".repeat(50));
    assert!(exercise(&text).model.is_some());
    exercise(&"(".repeat(100_000));
    exercise(&"{".repeat(100_000));
    exercise(&format!("{HEAD}{{{}x{}}}", "(".repeat(100_000), ")".repeat(100_000)));
}

/// Time per megabyte must not grow with the size. Sizes are small enough for an unoptimised build; a quadratic step
/// anywhere would take minutes.
#[test]
fn time_grows_with_the_text_and_no_faster() {
    let lines: [(&str, String); 20] = [
        ("permissions", (0..20_000).map(|n| format!("  can p{n} = author or p{}\n", n + 1)).collect()),
        ("relations", (0..20_000).map(|n| format!("  r{n} : user = c{n}\n")).collect()),
        ("one relation", (0..3_000).map(|n| format!("  r : user = c{n}\n")).collect()),
        ("types", (0..20_000).map(|n| format!("type t{n} = app.t{n}\n")).collect()),
        ("unknown names", (0..5_000).map(|n| format!("  can p{n} = nothing{n}\n")).collect()),
        ("unclosed braces", "  a : user = x where {'\n".repeat(20_000)),
        ("unclosed braces on one line", "{'".repeat(200_000)),
        ("unclosed dollars", "{$a$ $b$ ".repeat(100_000)),
        ("unclosed comments", "{/* ".repeat(100_000)),
        ("words", "word ".repeat(200_000)),
        ("margins", "x\n".repeat(50_000)),
        ("one long or", "a or ".repeat(100_000)),
        ("open parentheses", "  can x = (\n".repeat(20_000)),
        ("braces on one line", "{x} ".repeat(200_000)),
        ("quotes on one line", "\"x\" ".repeat(200_000)),
        ("braces after an unclosed one", format!("  a : user = {{'\n{}", "  can p = {x}\n".repeat(20_000))),
        ("a ring", (0..5_000).map(|n| format!("  can p{n} = author or p{}\n", (n + 1) % 5_000)).collect()),
        ("many rings", (0..5_000).map(|n| format!("  can p{n} = author or p{}\n", n ^ 1)).collect()),
        ("unknown names on one line", format!("  can x = {}\n", "no or ".repeat(50_000))),
        ("rules", (0..2_000).map(|n| format!("rules app.t{n}\n  update c{n} : view\n")).collect()),
    ];
    for (name, text) in lines {
        let started = Instant::now();
        exercise(&format!(
            "app role app_user\ntype user = app.users\ntype note = app.notes\n  author : user = a\n{text}"
        ));
        let took = started.elapsed();
        println!("{name}: {took:?} for {} KB", text.len() / 1024);
        assert!(took < Duration::from_secs(20), "{name} took {took:?}");
    }
}

/// How long a keystroke takes, for people: `cargo test --release --test robust keystroke -- --nocapture`.
#[test]
fn what_a_keystroke_costs() {
    let mut large = String::from("app role app_user\ntype user = app.users\n");
    for n in 0..1000 {
        large.push_str(&format!(
            "type t{n} = app.t{n}\n  parent : t{n} = parent_id\n  up : t{} = up_id\n  owner : user = owner_id\n  \
             viewer : user shared\n  can share = owner or parent.share\n  can view = share or viewer or up.owner or (parent.view and {{inherit}})\n\
             rules app.t{n}\n  select : view\n  update : share\n  update after : share\n",
            n / 2
        ));
    }
    for (name, text) in [("docs", DOCS), ("a thousand tables", large.as_str())] {
        // The best of many: the first ones warm the caches, and other programs may have the processor.
        let rounds = if cfg!(debug_assertions) { 2 } else { 100 };
        let best = (0..rounds).map(|_| {
            let started = Instant::now();
            let compiled = compile("p.authz", text);
            let model = compiled.model.as_ref().unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
            let emitted = rowdeck::compiler::emit::emit(model).unwrap();
            assert!(!emitted.objects.is_empty());
            compiled.lints(None);
            highlight(text);
            started.elapsed()
        });
        println!("{name}: {:?} for {} KB", best.min().unwrap(), text.len() / 1024);
    }
}
