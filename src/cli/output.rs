//! Results on stdout, progress on stderr, as text or as JSON.

use std::collections::HashSet;
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
    let mut lines = Lines::default();
    while let Some(progress) = receiver.recv().await {
        if let Some(words) = lines.next(&progress, Instant::now()) {
            note(&words);
        }
    }
}

/// Which progress is worth a line: notes all are, phases once, batches and waits once a second.
#[derive(Default)]
struct Lines {
    last: Option<Instant>,
    last_wait: Option<Instant>,
    /// Phases shown so far. After a wait for a lock the work starts over and comes through them again.
    phases: HashSet<String>,
}

impl Lines {
    fn next(&mut self, progress: &Progress, now: Instant) -> Option<String> {
        let recent = |last: Option<Instant>| last.is_some_and(|last| now.duration_since(last) < Duration::from_secs(1));
        let words = progress_words(progress);
        match progress {
            Progress::Batch { .. } if recent(self.last) => return None,
            // Who is in the way must be seen at once, whatever else was shown just now.
            Progress::Waiting { .. } if recent(self.last_wait) => return None,
            Progress::Waiting { .. } => self.last_wait = Some(now),
            Progress::Phase { .. } => {
                let is_new = self.phases.insert(words.clone());
                if !is_new && self.last_wait.is_some() {
                    return None;
                }
            }
            Progress::Batch { .. } | Progress::Note { .. } => {}
        }
        self.last = Some(now);
        Some(words)
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
        Progress::Waiting { seconds, blockers } if blockers.is_empty() => {
            format!("      waiting for {} for a lock that was let go of meanwhile", duration(*seconds))
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

    #[test]
    fn who_is_in_the_way_is_seen_at_once_and_phases_are_not_repeated() {
        let phase = Progress::Phase { number: 1, of: 4, title: "tables".into(), locks: "none".into() };
        let wait = |seconds| Progress::Waiting { seconds, blockers: vec!["pid 7".into()] };
        let (mut lines, start) = (Lines::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(lines.next(&phase, at(0)).as_deref(), Some("[1/4] tables"));
        assert_eq!(lines.next(&wait(0.5), at(500)).as_deref(), Some("      waiting for 0.5 s for: pid 7"));
        assert_eq!((lines.next(&phase, at(600)), lines.next(&wait(1.1), at(1100))), (None, None));
        assert_eq!(lines.next(&phase, at(1200)), None);
        assert_eq!(lines.next(&wait(1.7), at(1700)).as_deref(), Some("      waiting for 1.7 s for: pid 7"));
    }
}
