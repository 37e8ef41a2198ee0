//! Compiles the text beside the keys: one thread, and the newest text replaces any that waits.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use tokio::sync::mpsc;

use super::message::Message;
use super::model::policy::{Finding, Outcome};
use super::terminal;
use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::objects::Emitted;
use crate::compiler::span::{FileId, SourceMap};
use crate::policy_file::{Analysis, compile_file};

/// A text to compile.
#[derive(Debug)]
struct Request {
    revision: u64,
    name: PathBuf,
    text: String,
}

/// The thread that compiles.
#[derive(Debug)]
pub struct Compiler {
    requests: Sender<Request>,
}

impl Compiler {
    /// Starts the thread; its results go to `sender`.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(sender: mpsc::Sender<Message>) -> std::io::Result<Self> {
        let (requests, receiver) = channel();
        std::thread::Builder::new()
            .name("compile".into())
            .stack_size(16 << 20)
            .spawn(move || work(&receiver, &sender))?;
        Ok(Compiler { requests })
    }

    /// Compiles this text when the one before is done.
    pub fn compile(&self, revision: u64, name: PathBuf, text: String) {
        // The thread ends only with the console.
        let _ = self.requests.send(Request { revision, name, text });
    }
}

fn work(receiver: &Receiver<Request>, sender: &mpsc::Sender<Message>) {
    while let Ok(mut request) = receiver.recv() {
        while let Ok(newer) = receiver.try_recv() {
            request = newer;
        }
        let outcome = outcome(request.revision, &request.name, &request.text);
        if sender.blocking_send(Message::Compiled(Box::new(outcome))).is_err() {
            return;
        }
    }
}

/// Compiles one text. A panic of the compiler is a failure to tell, never the end of the console and of unsaved text.
pub fn outcome(revision: u64, name: &Path, text: &str) -> Outcome {
    let began = Instant::now();
    let result = terminal::caught(|| compile(name, text));
    let seconds = began.elapsed().as_secs_f64();
    match result {
        Ok((findings, emitted)) => {
            Outcome { revision, findings, emitted: emitted.map(Arc::new), seconds, failure: None }
        }
        Err(words) => Outcome {
            revision,
            findings: Vec::new(),
            emitted: None,
            seconds,
            failure: Some(format!("the compiler failed on this text, which is a mistake of ours: {words}")),
        },
    }
}

fn compile(name: &Path, text: &str) -> (Vec<Finding>, Option<Emitted>) {
    let analysis = Analysis::of(compile_file(name, text));
    let found = analysis.found.iter().map(|found| finding(&analysis.compiled.sources, found)).collect();
    (found, analysis.emitted)
}

/// A finding as the screen shows it: lines and columns from 0, and nothing in its words that steers a terminal.
fn finding(sources: &SourceMap, found: &Diagnostic) -> Finding {
    let (from, to) = sources.places(found.span);
    let other = (found.span.file != FileId::default()).then(|| sources.file(found.span.file)).flatten();
    Finding {
        code: found.code.to_string(),
        severity: found.severity,
        line: from.line.saturating_sub(1),
        column: from.column.saturating_sub(1),
        end_line: to.line.saturating_sub(1),
        end_column: to.column.saturating_sub(1),
        message: crate::text::line(&found.message).into_owned(),
        help: found.help.as_ref().map(|help| crate::text::line(help).into_owned()),
        file: other.map(|file| crate::text::line(&file.name).into_owned()),
    }
}
