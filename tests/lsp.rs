//! The language server as an editor meets it: the real program, over its pipes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    id: u64,
    told: Vec<Value>,
}

impl Editor {
    /// Starts the server without saying anything.
    fn silent() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rowdeck"))
            .arg("lsp")
            .env("HOME", std::env::temp_dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Editor { child, input, output, id: 0, told: Vec::new() }
    }

    fn start() -> Self {
        let mut editor = Editor::silent();
        let answer = editor.ask("initialize", json!({ "capabilities": {} }));
        assert_eq!(answer["capabilities"]["hoverProvider"], true);
        editor.tell("initialized", json!({}));
        editor
    }

    fn raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        self.raw(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server is gone");
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    fn answer(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params }));
        loop {
            let message = self.read();
            if message["id"] == self.id {
                return message;
            }
            self.told.push(message);
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// The next findings of a document.
    fn findings(&mut self, uri: &str) -> Vec<Value> {
        loop {
            let message = if self.told.is_empty() { self.read() } else { self.told.remove(0) };
            if message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri {
                return message["params"]["diagnostics"].as_array().unwrap().clone();
            }
        }
    }

    fn open(&mut self, uri: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": "authz", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }

    fn change(&mut self, uri: &str, text: &str) {
        self.tell(
            "textDocument/didChange",
            json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [{ "text": text }] }),
        );
    }

    /// What is offered at the end of a text.
    fn offered(&mut self, uri: &str, text: &str) -> Vec<String> {
        self.change(uri, text);
        let line = text.matches('\n').count();
        let character = text.rsplit('\n').next().unwrap().encode_utf16().count();
        let items = self.ask(
            "textDocument/completion",
            json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": character } }),
        );
        let items = items.as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
    }

    fn ended(mut self) -> (i32, String) {
        drop(self.input.take());
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "the server does not end");
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code().unwrap(), said)
    }

    fn leave(mut self) {
        self.ask("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        let (code, said) = self.ended();
        assert_eq!((code, said.as_str()), (0, ""));
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Multi-byte text before names on their lines: columns count UTF-16 units.
const POLICY: &str = "\
app role app_user
type user = app.users
type folder = app.folders where {name <> '😀ž'}
  parent : folder = parent_id
  owner : user = \"😀č\"
  can view = {title <> '😀'} or owner or parent.view

rules app.folders
  select : view

test \"x\"
  given ann = {INSERT INTO app.users DEFAULT VALUES RETURNING id}
  user $ann cannot view folder 1
";

fn at(text: &str, line: &str, part: &str) -> Value {
    let number = text.lines().position(|l| l.contains(line)).unwrap();
    let written = text.lines().nth(number).unwrap();
    let units = written[..written.find(part).unwrap()].encode_utf16().count();
    json!({ "line": number, "character": units })
}

fn range(text: &str, line: &str, part: &str) -> Value {
    let start = at(text, line, part);
    let end = start["character"].as_u64().unwrap() + part.encode_utf16().count() as u64;
    json!({ "start": start, "end": { "line": start["line"], "character": end } })
}

#[test]
fn an_editor_is_answered() {
    let mut editor = Editor::start();
    let uri = "file:///nowhere/p.authz";
    editor.open(uri, POLICY);
    let found = editor.findings(uri);
    assert!(found.iter().all(|f| f["severity"] != 1), "{found:?}");

    // A mistake behind two astral characters.
    let wrong = POLICY.replace("or owner or", "or onwer or");
    editor.change(uri, &wrong);
    let found = editor.findings(uri);
    let mistake = found.iter().find(|f| f["severity"] == 1).unwrap();
    assert_eq!((&mistake["code"], &mistake["range"]), (&json!("AZ203"), &range(&wrong, "can view", "onwer")));
    assert!(mistake["message"].as_str().unwrap().contains("did you mean \"owner\""), "{mistake}");
    editor.change(uri, POLICY);
    assert!(editor.findings(uri).iter().all(|f| f["severity"] != 1));

    let place = |line: &str, part: &str| json!({ "textDocument": { "uri": uri }, "position": at(POLICY, line, part) });
    let hover = editor.ask("textDocument/hover", place("can view", "owner"));
    assert_eq!(hover["contents"]["value"], "```authz\ntype folder\n  owner : user = \"😀č\"\n```");
    assert_eq!(hover["range"], range(POLICY, "can view", "owner"));

    let declared = editor.ask("textDocument/definition", place("or parent.view", "parent"));
    assert_eq!(declared[0]["range"], range(POLICY, "parent : folder", "parent"));

    let mut params = place("parent : folder", "folder");
    params["context"] = json!({ "includeDeclaration": true });
    let used = editor.ask("textDocument/references", params);
    let lines: Vec<u64> =
        used.as_array().unwrap().iter().map(|u| u["range"]["start"]["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [2, 3, 7, 12]);
    let given = editor.ask("textDocument/definition", place("user $ann", "$ann"));
    assert_eq!(given[0]["range"], range(POLICY, "given ann", "ann"));

    let symbols = editor.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": uri } }));
    let names: Vec<&str> = symbols.as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["user", "folder", "app.folders", "x"]);
    assert_eq!(symbols[1]["children"][2]["name"], "view");

    let edits = editor.ask(
        "textDocument/formatting",
        json!({ "textDocument": { "uri": uri }, "options": { "tabSize": 2, "insertSpaces": true } }),
    );
    assert_eq!(edits[0]["newText"].as_str().unwrap(), rowdeck::compiler::format::format(POLICY).unwrap());
    editor.change(uri, "type user app.users\n");
    let edits = editor.ask(
        "textDocument/formatting",
        json!({ "textDocument": { "uri": uri }, "options": { "tabSize": 2, "insertSpaces": true } }),
    );
    assert_eq!(edits, Value::Null, "what cannot be read is left alone");
    editor.leave();
}

#[test]
fn names_are_offered_where_they_fit() {
    let mut editor = Editor::start();
    let uri = "untitled:p";
    editor.open(uri, POLICY);
    let head = "app role r\ntype user = app.users\ntype team = app.teams\n  member : user = app.m(a -> b)\n\
                type note = app.notes\n  author : user = a\n  in : team = t\n  can edit = author\n";
    let mut offered = |text: &str| editor.offered(uri, &format!("{head}{text}"));
    let has = |offered: &[String], wanted: &[&str]| wanted.iter().all(|w| offered.iter().any(|o| o == w));
    assert!(has(&offered("ru"), &["rules", "type", "test"]));
    let found = offered("  can view = ");
    assert!(has(&found, &["author", "in", "edit", "not", "signed_in"]) && !has(&found, &["member"]), "{found:?}");
    assert_eq!(offered("  can view = author "), ["or", "and"]);
    assert_eq!(offered("  can view = in."), ["member"]);
    assert_eq!(offered("  can view = in.me"), ["member"]);
    assert!(has(&offered("  x : us"), &["user", "team", "note", "anyone"]));
    assert_eq!(offered("  x : team#"), ["member"]);
    assert_eq!(
        offered("rules app.notes\n  select : "),
        ["author", "in", "edit", "not", "signed_in", "anyone", "nobody", "roles"]
    );
    assert!(has(&offered("rules app.notes\n  "), &["select", "mask"]));
    assert!(has(&offered("rules "), &["app.notes", "app.teams"]));
    assert_eq!(offered("invariants\n  never "), ["user", "team", "note"]);
    assert_eq!(offered("test\n  user 3 can "), ["edit"]);
    assert_eq!(offered("test\n  user 3 can edit "), ["note"]);
    assert_eq!(offered("test \"t\"\n  given n = {I}\n  user 3 can edit note "), ["$n"]);
    assert!(has(&offered("scope s = select\ntest\n  user 3 with scope "), &["read", "s"]));
    assert!(offered("  can view = {auth").is_empty());
    assert!(offered("  -- can view = ").is_empty());
    editor.leave();
}

#[test]
fn included_files_are_one_policy() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::write(root.join("rowdeck.toml"), "policy = \"main.authz\"\n").unwrap();
    let main =
        "app role r\ninclude \"people.authz\"\ntype note = app.notes\n  author : user = a\n  can view = author\n";
    std::fs::write(root.join("main.authz"), main).unwrap();
    std::fs::write(root.join("people.authz"), "type user = app.users\n").unwrap();
    let uri = |name: &str| format!("file://{}", Path::new(&root).join(name).display());
    let (main_uri, people_uri) = (uri("main.authz"), uri("people.authz"));
    let mut editor = Editor::start();
    // Alone it has no app role; as a part of the policy it has no mistakes.
    editor.open(&people_uri, "type user = app.users\n");
    assert!(editor.findings(&people_uri).is_empty());
    editor.open(&main_uri, main);
    assert!(editor.findings(&main_uri).is_empty());
    let place = json!({ "textDocument": { "uri": main_uri }, "position": at(main, "author : user", "user") });
    let declared = editor.ask("textDocument/definition", place);
    assert_eq!(declared[0]["uri"], people_uri.as_str());
    // What is typed and not saved counts, and the mistake is in the other file.
    editor.told.clear();
    editor.change(&people_uri, "type person = app.users\n");
    let found = editor.findings(&main_uri);
    assert!(found.iter().any(|f| f["code"] == "AZ201"), "{found:?}");
    editor.leave();
}

#[test]
fn garbage_is_answered_or_refused_and_never_a_panic() {
    let mut editor = Editor::start();
    let uri = "file:///nowhere/p.authz";
    let refused = editor.answer("textDocument/hover", json!({ "nonsense": [1, 2] }));
    assert_eq!(refused["error"]["code"], -32602);
    assert_eq!(editor.answer("no/such", json!(null))["error"]["code"], -32601);
    let place = json!({ "textDocument": { "uri": uri }, "position": { "line": 9, "character": 9 } });
    assert_eq!(editor.ask("textDocument/hover", place.clone()), Value::Null, "not open");
    editor.tell("textDocument/didOpen", json!("what"));
    editor.tell("no/such/thing", json!({}));
    for text in ["{", "\u{0}\u{feff}\u{202e}", "type \"", "test\n user $", &"(".repeat(5_000), &"a\n".repeat(3000)] {
        editor.open(uri, text);
        for method in ["textDocument/hover", "textDocument/definition", "textDocument/completion"] {
            editor.ask(method, place.clone());
        }
        let far = json!({ "textDocument": { "uri": uri }, "position": { "line": 4_294_967_295_u32, "character": 4_294_967_295_u32 } });
        editor.ask("textDocument/completion", far);
        editor.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": uri } }));
    }
    editor.leave();

    for garbage in
        [&b"hello\r\n\r\n"[..], b"Content-Length: 5\r\n\r\n{oops", b"Content-Length: 9999999\r\n\r\n", b"\xff\xfe\x00"]
    {
        let mut editor = Editor::silent();
        editor.raw(garbage);
        let (code, said) = editor.ended();
        assert_eq!(code, 1, "{said}");
        assert!(!said.contains("panicked"), "{said}");
    }
    // An editor that goes away without a word.
    let editor = Editor::start();
    assert_eq!(editor.ended().0, 1);
}
