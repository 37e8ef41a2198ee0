//! Results on stdout, progress on stderr, as text or as JSON.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::mpsc::Receiver;

use crate::db::error::DbError;
use crate::db::progress::{Progress, Reporter};
use crate::text;

/// Where results go.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// As JSON.
    pub json: bool,
}

impl Output {
    /// Writes one line of text to stdout. The text is made safe first; its line ends and tabs stay.
    pub fn line(self, words: &str) -> Result<(), DbError> {
        let fields: Vec<_> = words.split('\t').map(text::block).collect();
        write_out(&format!("{}\n", fields.join("\t")))
    }

    /// Writes a value as one line of JSON to stdout.
    pub fn json<T: Serialize>(self, value: &T) -> Result<(), DbError> {
        let json = serde_json::to_string(value).map_err(|e| DbError::Unexpected(format!("no JSON of it: {e}")))?;
        write_out(&format!("{json}\n"))
    }

    /// Writes text as it is (SQL, a policy), with what could act on a terminal taken out only when it is one.
    pub fn raw(self, words: &str) -> Result<(), DbError> {
        if std::io::stdout().is_terminal() { write_out(&text::block(words)) } else { write_out(words) }
    }
}

fn write_out(words: &str) -> Result<(), DbError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(words.as_bytes()).and_then(|()| out.flush()) {
        // Whoever reads us (head, less) has had enough.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Err(DbError::Stopped("nobody reads the output".into())),
        other => other.map_err(|e| DbError::io("cannot write the output", e)),
    }
}

/// Writes one line to stderr. That it cannot be written is nobody's concern.
pub fn note(words: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", text::block(words));
}

/// Shows a stream of progress on stderr until it ends. Dropping the reporter ends it.
pub fn show_progress() -> (Reporter, tokio::task::JoinHandle<()>) {
    let (reporter, receiver) = Reporter::channel();
    (reporter, tokio::spawn(print_progress(receiver)))
}

async fn print_progress(mut receiver: Receiver<Progress>) {
    let mut last: Option<Instant> = None;
    while let Some(progress) = receiver.recv().await {
        // A line a second is enough of batches and waits; phases and notes all count.
        let frequent = matches!(progress, Progress::Batch { .. } | Progress::Waiting { .. });
        if frequent && last.is_some_and(|last| last.elapsed() < Duration::from_secs(1)) {
            continue;
        }
        last = Some(Instant::now());
        note(&progress_words(&progress));
    }
}

/// One line for people.
fn progress_words(progress: &Progress) -> String {
    match progress {
        Progress::Phase { number, of, title, locks } => {
            let locks = if locks == "none" { String::new() } else { format!(" (locks {locks})") };
            format!("[{number}/{of}] {title}{locks}")
        }
        Progress::Batch { batch, of, rows, rows_of, rate, left } => {
            let batches = of.map_or_else(|| format!("batch {batch}"), |of| format!("batch {batch} of {of}"));
            let of = rows_of.map_or_else(String::new, |of| format!(" of {}", text::count(of)));
            let left = left.map_or_else(String::new, |left| format!(", {} left", duration(left)));
            format!("      {batches}: {}{of}, {}/s{left}", text::count(*rows), text::count(rate.max(0.0) as u64))
        }
        Progress::Waiting { seconds, blockers } => {
            format!("      waiting for {} for: {}", duration(*seconds), blockers.join("; "))
        }
        Progress::Note { text } => format!("      {text}"),
    }
}

/// `0.4 s`, `12 s`, `3:05 min`.
pub fn duration(seconds: f64) -> String {
    let seconds = seconds.max(0.0);
    if seconds < 10.0 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    if whole < 120 { format!("{whole} s") } else { format!("{}:{:02} min", whole / 60, whole % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_carry_their_unit() {
        assert_eq!((duration(0.04).as_str(), duration(59.6).as_str()), ("0.0 s", "60 s"));
        assert_eq!(duration(185.0), "3:05 min");
    }

    #[test]
    fn progress_is_one_line() {
        let batch =
            Progress::Batch { batch: 3, of: None, rows: 1000, rows_of: Some(5000), rate: 250.0, left: Some(16.0) };
        assert_eq!(progress_words(&batch), "      batch 3: 1,000 of 5,000, 250/s, 16 s left");
        let phase = Progress::Phase { number: 1, of: 4, title: "tables".into(), locks: "none".into() };
        assert_eq!(progress_words(&phase), "[1/4] tables");
    }
}
