//! The console as lines of text, for screen readers, logs and terminals that draw nothing: the same model, the same
//! commands by their names, the screens read out without their frames.

use std::io::{BufRead as _, Write as _};
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tokio::sync::mpsc::{self, Receiver};

use super::command::TABLE;
use super::effect::Effect;
use super::keymap::keys_strict;
use super::message::Message;
use super::model::{Level, Model, Overlay};
use super::runtime::{Options, new_model};
use super::signals::{Signals, Woken};
use super::terminal::Exit;
use super::theme::Theme;
use super::work::Work;

/// The screen that is read out has so many columns and rows.
const SIZE: (u16, u16) = (100, 60);
/// How long leaving waits for work on the server to end.
const PATIENCE: Duration = Duration::from_secs(40);
/// After a command, news is waited for so long before the screen counts as settled.
const SETTLE: Duration = Duration::from_millis(400);

const HELP: &str = "an empty line reads the screen; a command's name runs it (commands lists them); `keys ...` presses \
                    keys, such as `keys 6/file 88<enter>`; in a question its answer's number; `quit` leaves";

/// Runs until `quit` or the end of the input.
///
/// # Errors
/// When nothing can be read or written.
pub async fn run(options: Options) -> anyhow::Result<Exit> {
    let keymap = options.settings.keymap().map_err(|problems| anyhow::Error::msg(problems.join("; ")))?;
    let mut signals = Signals::listen()?;
    let (sender, messages) = mpsc::channel(1024);
    let (remote_sender, remote) = mpsc::channel(1024);
    let mut model = new_model(&options, SIZE);
    model.keymap = keymap;
    let work = Work::start(options, sender, remote_sender)?;
    let lines = read_lines()?;
    let mut plain = Plain {
        model,
        work,
        messages,
        remote,
        began: Instant::now(),
        said: String::new(),
        theme: Theme::named("mono").map_err(anyhow::Error::msg)?,
    };
    print("rowdeck, as text")?;
    print(HELP)?;
    for effect in plain.work.first_effects() {
        plain.act(effect)?;
    }
    let exit = plain.lines(lines, &mut signals).await?;
    plain.work.stop(PATIENCE).await;
    Ok(exit)
}

struct Plain {
    model: Model,
    work: Work,
    messages: Receiver<Message>,
    remote: Receiver<Message>,
    began: Instant,
    said: String,
    theme: Theme,
}

fn print(words: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", crate::text::block(words))?;
    out.flush()
}

/// Lines of stdin, read in a thread of its own; the channel ends with the input.
fn read_lines() -> std::io::Result<Receiver<String>> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::Builder::new().name("lines".into()).spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}

impl Plain {
    async fn lines(&mut self, mut lines: Receiver<String>, signals: &mut Signals) -> anyhow::Result<Exit> {
        loop {
            tokio::select! {
                biased;
                woken = signals.next() => if let Woken::Terminate(signal) = woken {
                    self.work.abandon(&self.model);
                    return Ok(Exit::Signal(signal));
                },
                Some(message) = self.messages.recv() => self.message(message)?,
                Some(message) = self.remote.recv() => self.message(message)?,
                line = lines.recv() => match line {
                    Some(line) => {
                        self.line(line.trim_end())?;
                        self.settle().await?;
                        if !self.model.done {
                            self.read_out()?;
                        }
                    }
                    None => return Ok(Exit::Code(0)),
                },
            }
            if self.model.done {
                return Ok(Exit::Code(0));
            }
        }
    }

    /// Takes news until there is none for a moment.
    async fn settle(&mut self) -> anyhow::Result<()> {
        for _ in 0..200 {
            let message = tokio::select! {
                Some(message) = self.messages.recv() => message,
                Some(message) = self.remote.recv() => message,
                () = tokio::time::sleep(SETTLE) => return Ok(()),
            };
            self.message(message)?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> anyhow::Result<()> {
        if line.is_empty() {
            return Ok(());
        }
        if let Some(keys) = line.strip_prefix("keys ") {
            match keys_strict(keys) {
                Ok(keys) => keys.into_iter().try_for_each(|key| self.message(Message::Key(key)))?,
                Err(why) => print(&why)?,
            }
            return Ok(());
        }
        if let Some(Overlay::Dialog(dialog)) = &mut self.model.overlay {
            match line.parse::<usize>().ok().and_then(|n| n.checked_sub(1)).filter(|n| *n < dialog.answers.len()) {
                Some(answer) => {
                    dialog.at = answer;
                    self.run(super::command::Command::DialogAccept)?;
                }
                // The database's name, where it must be typed.
                None => line.chars().try_for_each(|c| {
                    self.message(Message::Key(super::keymap::Key::plain(ratatui::crossterm::event::KeyCode::Char(c))))
                })?,
            }
            return Ok(());
        }
        if let Some(field) = self.model.field_mut() {
            field.insert(line);
            return self.run(super::command::Command::FieldAccept);
        }
        if line == "commands" {
            for command in self.model.palette_matches("") {
                print(&format!("{}: {}", command.row().name, command.row().words))?;
            }
            return Ok(());
        }
        match TABLE.iter().find(|row| row.name == line) {
            Some(row) => self.run(row.id),
            None => {
                print(&format!("there is no command {line:?}; commands lists them"))?;
                Ok(())
            }
        }
    }

    fn run(&mut self, command: super::command::Command) -> anyhow::Result<()> {
        let effects = super::update::run(&mut self.model, command);
        self.effects(effects)
    }

    fn message(&mut self, message: Message) -> anyhow::Result<()> {
        super::update(&mut self.model, Message::Clock(self.began.elapsed()));
        let effects = super::update(&mut self.model, message);
        self.effects(effects)
    }

    fn effects(&mut self, effects: Vec<Effect>) -> anyhow::Result<()> {
        for effect in effects {
            self.act(effect)?;
        }
        self.work.watch(self.model.watching());
        let said = self.model.notice.as_ref().map_or_else(String::new, |notice| {
            let word = match notice.level {
                Level::Info => "note",
                Level::Ok => "fine",
                Level::Warn => "warning",
                Level::Error => "ERROR",
            };
            format!("{word}: {}", notice.text)
        });
        if said != self.said && !said.is_empty() {
            print(&said)?;
        }
        self.said = said;
        Ok(())
    }

    fn act(&mut self, effect: Effect) -> anyhow::Result<()> {
        match effect {
            Effect::Quit => self.model.done = true,
            Effect::Copy(text) => print(&text)?,
            Effect::SwitchTarget(name) => {
                let (sender, remote) = mpsc::channel(1024);
                self.remote = remote;
                self.work.switch(&name, sender);
            }
            Effect::Suspend | Effect::Redraw | Effect::NextTheme => {}
            other => self.work.act(other),
        }
        Ok(())
    }

    /// The screen without its frames, blank lines and list of other screens.
    fn read_out(&self) -> anyhow::Result<()> {
        let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1))?;
        terminal.draw(|frame| crate::views::draw(&self.model, &self.theme, frame))?;
        let buffer = terminal.backend().buffer();
        for (number, y) in (buffer.area.top()..buffer.area.bottom()).enumerate() {
            let mut row = String::new();
            for x in buffer.area.left()..buffer.area.right() {
                row.push_str(buffer.cell((x, y)).map_or(" ", |cell| cell.symbol()));
            }
            let frame = |c: char| ('\u{2500}'..='\u{257f}').contains(&c);
            let words: Vec<String> = row
                .split(|c| frame(c))
                .map(|part| part.trim().split_whitespace().collect::<Vec<_>>().join(" "))
                .filter(|part| !part.is_empty())
                .collect();
            if number == 1 {
                print(&format!("screen: {}", self.model.screen.title()))?;
            } else if !words.is_empty() {
                print(&words.join(" | "))?;
            }
        }
        if let Some(Overlay::Dialog(dialog)) = &self.model.overlay {
            for (number, (words, _)) in (1..).zip(&dialog.answers) {
                print(&format!("{number}: {words}"))?;
            }
        }
        Ok(())
    }
}
