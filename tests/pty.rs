//! The real binary in a pseudo-terminal: it starts, draws, and gives the terminal back as it was, however it ends.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

#[path = "pty/live.rs"]
mod live;
#[path = "common/server.rs"]
#[allow(dead_code)]
mod server;

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// A shell in a pseudo-terminal that runs rowdeck and writes down what `stty` says before and after, and the status.
struct Pty {
    folder: tempfile::TempDir,
    master: Box<dyn MasterPty + Send>,
    writer: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    seen: Arc<Mutex<Seen>>,
}

struct Seen {
    parser: vt100::Parser,
    bytes: usize,
    raw: Vec<u8>,
}

const POLICY: &str = "app role app_user\n\ntype user = app.users where {active}\n";

impl Pty {
    /// Starts `rowdeck policy.authz ARGUMENTS` and waits until it has drawn.
    fn start(arguments: &str, environment: &[(&str, &str)]) -> Pty {
        let pty = Pty::launch(arguments, environment);
        pty.wait_for("2 Policy");
        pty
    }

    fn launch(arguments: &str, environment: &[(&str, &str)]) -> Pty {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("policy.authz"), POLICY).unwrap();
        Pty::launch_in(folder, arguments, environment)
    }

    /// Starts it in a folder that is there already, so with the same file and the same state.
    fn launch_in(folder: tempfile::TempDir, arguments: &str, environment: &[(&str, &str)]) -> Pty {
        let pair =
            native_pty_system().openpty(PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 }).unwrap();
        let script = format!(
            "stty -g >before; sh -c 'echo $$ >pid; exec \"$0\" policy.authz {arguments}' \"$ROWDECK\"; \
             echo $? >status; stty -g >after; echo shell-again"
        );
        let mut command = CommandBuilder::new("sh");
        command.args(["-c", &script]);
        command.cwd(folder.path());
        command.env_clear();
        for name in ["PATH", "LLVM_PROFILE_FILE"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.env("HOME", folder.path());
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        command.env("ROWDECK", env!("CARGO_BIN_EXE_rowdeck"));
        for (name, value) in environment {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let seen = Arc::new(Mutex::new(Seen { parser: vt100::Parser::new(24, 80, 0), bytes: 0, raw: Vec::new() }));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let sink = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let mut seen = sink.lock().unwrap();
                seen.parser.process(&buffer[..count]);
                seen.bytes += count;
                seen.raw.extend_from_slice(&buffer[..count]);
            }
        });
        let writer = pair.master.take_writer().unwrap();
        Pty { folder, master: pair.master, writer, child, seen }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default().trim().to_owned()
    }

    fn screen(&self) -> String {
        self.seen.lock().unwrap().parser.screen().contents()
    }

    fn bytes(&self) -> usize {
        self.seen.lock().unwrap().bytes
    }

    fn wait(&self, what: &str, until: impl Fn(&Pty) -> bool) {
        let start = Instant::now();
        while !until(self) {
            assert!(start.elapsed() < Duration::from_secs(20), "waited for {what}; the screen is:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn wait_for(&self, text: &str) {
        self.wait(text, |pty| pty.screen().contains(text));
    }

    fn press(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).unwrap();
        self.writer.flush().unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.read("pid").parse().unwrap())
    }

    fn resize(&self, rows: u16, cols: u16) {
        self.seen.lock().unwrap().parser.screen_mut().set_size(rows, cols);
        self.master.resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
    }

    /// The console has ended with this status and left everything as it was.
    fn assert_restored(&self, status: &str) {
        self.wait_for("shell-again");
        let (before, after) = (self.read("before"), self.read("after"));
        assert!(!before.is_empty());
        assert_eq!(before, after, "stty differs");
        assert_eq!(self.read("status"), status);
        let seen = self.seen.lock().unwrap();
        let screen = seen.parser.screen();
        assert!(!screen.alternate_screen(), "still on the alternate screen");
        assert!(!screen.hide_cursor(), "the cursor is hidden");
        assert!(!screen.bracketed_paste(), "bracketed paste is on");
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // It has usually ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn no_server() -> &'static str {
    "--db \"host=/nonexistent/rowdeck dbname=x user=y\""
}

#[test]
fn q_gives_the_terminal_back() {
    let mut pty = Pty::start("", &[]);
    pty.wait_for("type user = app.users");
    {
        let seen = pty.seen.lock().unwrap();
        assert!(seen.parser.screen().alternate_screen() && seen.parser.screen().bracketed_paste());
    }
    pty.press("q");
    pty.assert_restored("0");
}

#[test]
fn signals_give_the_terminal_back_and_are_the_reason_seen() {
    for (signal, status) in
        [(Signal::SIGTERM, "143"), (Signal::SIGHUP, "129"), (Signal::SIGINT, "130"), (Signal::SIGQUIT, "131")]
    {
        let pty = Pty::start("", &[]);
        pty.signal(signal);
        pty.assert_restored(status);
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_panic_gives_the_terminal_back_before_its_words() {
    let mut pty = Pty::start("", &[("ROWDECK_TEST_PANIC", "1")]);
    pty.press("\x1b[24~");
    pty.assert_restored("101");
    let raw = String::from_utf8_lossy(&pty.seen.lock().unwrap().raw).into_owned();
    let left = raw.rfind("\x1b[?1049l").expect("the alternate screen was left");
    assert!(raw[left..].contains("asked to panic"), "the words come after");
}

#[test]
fn an_unreachable_server_is_said_and_the_console_stays() {
    let mut pty = Pty::start(no_server(), &[]);
    pty.wait_for("NOT CONNECTED");
    pty.press("5");
    pty.wait_for("not connected; trying again");
    pty.press("q");
    pty.assert_restored("0");
}

#[test]
fn a_paste_presses_no_key_but_is_text_in_the_editor() {
    let mut pty = Pty::start("", &[]);
    pty.press("\x1b[200~q\ny\nDROP\x1b[201~");
    pty.wait_for("pasted text was ignored");
    pty.press("i");
    pty.wait_for("editing");
    pty.press("\x1b[200~q\ny\nDROP\n\x1b[201~");
    pty.wait_for("DROP");
    assert!(pty.screen().contains("unsaved"));
    pty.press("\x1bq");
    pty.wait_for("Leave rowdeck?");
    // Into the question: nothing is answered.
    pty.press("\x1b[200~\t\t\n\x1b[201~");
    pty.wait_for("a paste does not answer a question");
    pty.press("\t\t\r");
    pty.assert_restored("0");
    assert_eq!(pty.read("policy.authz"), POLICY.trim());
}

#[test]
fn typing_shows_a_mistake_and_saving_is_whole() {
    let mut pty = Pty::start("", &[]);
    pty.wait_for("type user");
    // Without a pause a terminal's Escape and the next key are one Alt key.
    pty.press("i");
    pty.wait_for("editing");
    pty.press("nonsense\r");
    pty.wait_for("AZ1");
    pty.press("\x13");
    pty.wait_for("is saved");
    assert_eq!(pty.read("policy.authz"), format!("nonsense\n{}", POLICY.trim()));
    pty.press("\x1b");
    pty.wait_for("enter edit");
    pty.press("q");
    pty.assert_restored("0");
}

fn kept_file(home: &Path) -> Option<PathBuf> {
    let folder = home.join(".local/state/rowdeck/unsaved");
    std::fs::read_dir(folder).ok()?.filter_map(Result::ok).map(|entry| entry.path()).next()
}

fn kept(home: &Path) -> Option<String> {
    std::fs::read_to_string(kept_file(home)?).ok()
}

#[test]
fn text_of_a_killed_console_is_offered_again() {
    let mut pty = Pty::start("", &[]);
    pty.wait_for("type user");
    pty.press("i");
    pty.wait_for("editing");
    pty.press("-- not saved yet\r");
    pty.wait("the text to be kept", |pty| kept(pty.folder.path()).is_some_and(|text| text.contains("not saved yet")));
    pty.signal(Signal::SIGKILL);
    pty.wait_for("shell-again");
    let state = kept_file(pty.folder.path()).unwrap();
    assert_eq!(std::fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o600);
    let folder = std::mem::replace(&mut pty.folder, tempfile::tempdir().unwrap());
    drop(pty);
    let mut pty = Pty::launch_in(folder, "", &[]);
    pty.wait_for("Unsaved text was kept");
    pty.press("\t\r");
    pty.wait_for("not saved yet");
    pty.press("q");
    pty.wait_for("Leave rowdeck?");
    pty.press("\t\t\r");
    pty.wait_for("shell-again");
    assert!(kept_file(pty.folder.path()).is_none(), "nothing is kept once it was thrown away on purpose");
}

#[test]
fn ctrl_z_gives_the_terminal_back_and_fg_returns() {
    let mut pty = Pty::start("", &[]);
    pty.press("\x1a");
    pty.wait("the alternate screen to be left", |pty| !pty.seen.lock().unwrap().parser.screen().alternate_screen());
    assert!(!pty.seen.lock().unwrap().parser.screen().hide_cursor());
    pty.signal(Signal::SIGCONT);
    pty.wait_for("type user");
    pty.press("q");
    pty.assert_restored("0");
}

#[test]
fn a_resize_storm_changes_nothing_but_the_size() {
    let mut pty = Pty::start("", &[]);
    for at in 0_u16..200 {
        pty.resize(1 + at * 7 % 50, 1 + at * 13 % 150);
    }
    pty.resize(3, 10);
    pty.wait_for("too small");
    pty.resize(24, 80);
    pty.wait_for("type user");
    pty.press("q");
    pty.assert_restored("0");
}

#[test]
fn nothing_is_drawn_while_nothing_happens_and_a_typed_character_is_cheap() {
    let mut pty = Pty::start("", &[]);
    pty.wait_for("type user");
    std::thread::sleep(Duration::from_millis(600));
    let before = pty.bytes();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(pty.bytes(), before, "idle, but something was drawn");
    pty.press("i");
    pty.wait_for("editing");
    std::thread::sleep(Duration::from_millis(300));
    let mut costs = Vec::new();
    for letter in "-- a comment".chars() {
        let before = pty.bytes();
        pty.press(&letter.to_string());
        std::thread::sleep(Duration::from_millis(200));
        costs.push(pty.bytes() - before);
    }
    costs.sort_unstable();
    assert!(costs[costs.len() / 2] < 300, "bytes for each typed character: {costs:?}");
}
