//! The only place that waits, spawns, reads keys and draws. All pending messages are taken, then it draws once: at once
//! after a key, at most thirty times a second after data, never when nothing happened.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{Clear, ClearType};
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::command::Command;
use super::effect::Effect;
use super::keymap::{Key, Keymap};
use super::message::Message;
use super::model::targets::TargetRow;
use super::model::{Level, Model, Screen as Shown};
use super::settings::Settings;
use super::signals::{Signals, Woken};
use super::terminal::{self, Exit, Guard};
use super::theme::Theme;
use super::work::Work;
use crate::db::target::Target;

/// Data redraws are at least this far apart.
const FRAME: Duration = Duration::from_millis(33);

/// How often is looked whether the terminal is still there, where no signal says that it is not.
const LOOK: Duration = Duration::from_secs(2);

/// How long leaving waits for work on the server to end, and how long when we are being ended.
const PATIENCE: Duration = Duration::from_secs(40);
const HURRY: Duration = Duration::from_secs(4);

/// A target of rowdeck.toml, or why it cannot be used.
pub type Named = (String, Result<Target, String>);

/// What the console is opened on.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The server, when there is one.
    pub target: Option<Target>,
    /// The policy's file.
    pub policy: Option<PathBuf>,
    /// The targets of rowdeck.toml.
    pub targets: Vec<Named>,
    /// The rowdeck.toml they are from.
    pub config: Option<PathBuf>,
    /// The screen to begin with; when not given, Overview on a server and Policy without one.
    pub screen: Option<Shown>,
    /// As lines of text.
    pub plain: bool,
    /// The user's settings.
    pub settings: Settings,
    /// A theme's name, before that of the settings.
    pub theme: Option<String>,
    /// Where unsaved text is kept; the user's state directory when not given.
    pub state: Option<PathBuf>,
}

type Screen = Terminal<CrosstermBackend<std::io::Stdout>>;

/// Runs the console until it is left.
///
/// # Errors
/// When there is no terminal, or it stops answering.
pub async fn run(options: Options) -> anyhow::Result<Exit> {
    let environment = |name: &str| std::env::var(name).ok();
    let settings = &options.settings;
    let wanted = options.theme.clone().or_else(|| environment("ROWDECK_THEME")).or_else(|| settings.theme.clone());
    let theme = Theme::choose(wanted.as_deref(), settings.colours, &environment).map_err(anyhow::Error::msg)?;
    let keymap = settings.keymap().map_err(|problems| anyhow::Error::msg(problems.join("; ")))?;
    let signals = Signals::listen()?;
    let guard = Guard::take()?;
    let result = Runtime::start(options, theme, keymap, signals)?.run().await;
    drop(guard);
    result
}

struct Runtime {
    model: Model,
    theme: Theme,
    screen: Screen,
    input: Receiver<Event>,
    messages: Receiver<Message>,
    /// News of the server that is the target now.
    remote: Receiver<Message>,
    work: Work,
    signals: Signals,
    started: Instant,
    /// Something changed since the last draw; a key draws at once.
    changed: bool,
    at_once: bool,
    drawn: Instant,
}

impl Runtime {
    fn start(options: Options, theme: Theme, keymap: Keymap, signals: Signals) -> anyhow::Result<Self> {
        let screen = fresh_screen()?;
        let size = screen.size()?;
        let (sender, messages) = mpsc::channel(1024);
        let (remote_sender, remote) = mpsc::channel(1024);
        let mut model = new_model(&options, (size.width, size.height));
        model.keymap = keymap;
        if let Some(words) = theme.words() {
            model.say(Level::Info, words);
        }
        let work = Work::start(options, sender, remote_sender)?;
        let input = read_keys()?;
        let now = Instant::now();
        Ok(Runtime {
            model,
            theme,
            screen,
            input,
            messages,
            remote,
            work,
            signals,
            started: now,
            changed: true,
            at_once: true,
            drawn: now,
        })
    }

    async fn run(mut self) -> anyhow::Result<Exit> {
        for effect in self.work.first_effects() {
            self.act(effect)?;
        }
        loop {
            if terminal::panicked() {
                return Ok(Exit::Code(101));
            }
            self.draw_when_due()?;
            let woken = self.wait().await;
            if let Some(exit) = self.take(woken)? {
                terminal::give_back();
                self.work.stop(HURRY).await;
                return Ok(exit);
            }
            self.take_pending()?;
            if self.model.done {
                // The terminal is free while the server lets go of what ran.
                terminal::give_back();
                self.work.stop(PATIENCE).await;
                return Ok(Exit::Code(0));
            }
        }
    }

    fn draw_when_due(&mut self) -> anyhow::Result<()> {
        let due = self.at_once || self.drawn.elapsed() >= FRAME;
        if self.changed && due {
            let (model, theme) = (&self.model, &self.theme);
            self.screen.draw(|frame| crate::views::draw(model, theme, frame))?;
            (self.changed, self.at_once) = (false, false);
            self.drawn = Instant::now();
        }
        Ok(())
    }

    async fn wait(&mut self) -> Woken {
        let frame = self.changed.then(|| FRAME.saturating_sub(self.drawn.elapsed()));
        let clock = self.model.wants_clock();
        tokio::select! {
            biased;
            () = terminal::panic_seen() => Woken::Panic,
            signal = self.signals.next() => signal,
            event = self.input.recv() => event.map_or(Woken::InputEnded, |event| Woken::Input(Box::new(event))),
            message = self.messages.recv() => message.map_or(Woken::InputEnded, |m| Woken::Message(Box::new(m))),
            Some(message) = self.remote.recv() => Woken::Message(Box::new(message)),
            () = tokio::time::sleep(frame.unwrap_or_default()), if frame.is_some() => Woken::Frame,
            () = tokio::time::sleep(Duration::from_secs(1)), if clock => Woken::Clock,
        }
    }

    fn take(&mut self, woken: Woken) -> anyhow::Result<Option<Exit>> {
        match woken {
            Woken::Input(event) => self.event(*event)?,
            Woken::Message(message) => self.message(*message)?,
            Woken::Clock => self.tick()?,
            Woken::Frame => {}
            Woken::Suspend => self.suspend()?,
            Woken::Panic => return Ok(Some(Exit::Code(101))),
            Woken::Terminate(signal) => {
                self.work.abandon(&self.model);
                return Ok(Some(Exit::Signal(signal)));
            }
            Woken::InputEnded => {
                // The terminal is gone without a SIGHUP; nobody can answer anything.
                self.work.abandon(&self.model);
                return Ok(Some(Exit::Code(1)));
            }
        }
        Ok(None)
    }

    /// Takes what else is there already, so that a burst is drawn once.
    fn take_pending(&mut self) -> anyhow::Result<()> {
        for _ in 0..4096 {
            if self.model.done {
                break;
            }
            if let Ok(event) = self.input.try_recv() {
                self.event(event)?;
            } else if let Ok(message) = self.messages.try_recv() {
                self.message(message)?;
            } else if let Ok(message) = self.remote.try_recv() {
                self.message(message)?;
            } else {
                break;
            }
        }
        Ok(())
    }

    fn event(&mut self, event: Event) -> anyhow::Result<()> {
        let message = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => Message::Key(Key::from_event(key)),
            Event::Paste(text) => Message::Paste(text),
            Event::Resize(columns, rows) => Message::Resize(columns, rows),
            _ => return Ok(()),
        };
        #[cfg(debug_assertions)]
        panic_when_asked(&message);
        self.at_once = true;
        self.message(message)
    }

    fn message(&mut self, message: Message) -> anyhow::Result<()> {
        let clock = Message::Clock(self.started.elapsed());
        // A clock message wants nothing done.
        super::update(&mut self.model, clock);
        let effects = super::update(&mut self.model, message);
        self.changed = true;
        for effect in effects {
            self.act(effect)?;
        }
        self.work.watch(self.model.watching());
        Ok(())
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        self.message(Message::Clock(self.started.elapsed()))
    }

    fn act(&mut self, effect: Effect) -> anyhow::Result<()> {
        match effect {
            Effect::Suspend => self.suspend()?,
            Effect::Redraw => {
                self.screen = fresh_screen()?;
                (self.changed, self.at_once) = (true, true);
            }
            Effect::NextTheme => {
                self.theme = self.theme.next();
                let words = format!("theme: {}", self.theme.name);
                self.model.say(Level::Info, words);
            }
            Effect::Copy(text) => {
                let in_tmux = std::env::var_os("TMUX").is_some();
                match super::clipboard::sequence(&text, in_tmux) {
                    Some(sequence) => {
                        let mut out = std::io::stdout();
                        out.write_all(sequence.as_bytes())?;
                        out.flush()?;
                    }
                    None => {
                        let key = self.model.keymap.key(Command::Export).to_owned();
                        let words = format!("too long for the terminal's clipboard; not sent ({key} writes a file)");
                        self.model.say(Level::Warn, words);
                    }
                }
            }
            Effect::SwitchTarget(name) => {
                let (sender, remote) = mpsc::channel(1024);
                self.remote = remote;
                self.work.switch(&name, sender);
            }
            Effect::Quit => self.model.done = true,
            other => self.work.act(other),
        }
        Ok(())
    }

    fn suspend(&mut self) -> anyhow::Result<()> {
        terminal::suspend()?;
        self.screen = fresh_screen()?;
        let size = self.screen.size()?;
        (self.changed, self.at_once) = (true, true);
        self.message(Message::Resize(size.width, size.height))
    }
}

/// A console on these options that has read nothing yet.
pub(super) fn new_model(options: &Options, size: (u16, u16)) -> Model {
    let target = options.target.as_ref();
    let name = target.map_or_else(|| "offline".to_owned(), target_name);
    let mut model = Model::new(name, size);
    model.read_only = target.is_some_and(|t| t.read_only);
    model.production = target.is_some_and(|t| t.production);
    if target.is_some() {
        model.link = super::model::link::Link::Connecting;
    }
    let clean = |path: &PathBuf| crate::text::line(&path.display().to_string()).into_owned();
    model.targets.rows = options.targets.iter().map(target_row).collect();
    model.targets.file = options.config.as_ref().map(clean);
    model.targets.at = model.targets.rows.iter().position(|row| row.name == model.target).unwrap_or(0);
    model.screen = options.screen.unwrap_or(if target.is_some() { Shown::Overview } else { Shown::Policy });
    model.previous = model.screen;
    model
}

/// A target as the screen shows it; never its password.
fn target_row((name, target): &Named) -> TargetRow {
    let clean = |text: &str| crate::text::line(text).into_owned();
    let (production, read_only) = target.as_ref().map_or((false, false), |t| (t.production, t.read_only));
    TargetRow {
        name: clean(name),
        place: target.as_ref().map(Target::describe).map_err(|why| clean(why)),
        production,
        read_only,
        tls: target.as_ref().map_or_else(|_| String::new(), |t| t.tls.words().to_owned()),
    }
}

/// The target's name, or its hosts when it has none. Never its password.
fn target_name(target: &Target) -> String {
    let hosts = || target.hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    target.name.clone().unwrap_or_else(hosts)
}

/// An emptied terminal that the next draw fills whole. `Terminal::clear` would ask the terminal for its cursor and wait
/// for the answer, which on a slow link or a dumb terminal never comes in time.
fn fresh_screen() -> std::io::Result<Screen> {
    execute!(std::io::stdout(), Clear(ClearType::All))?;
    Terminal::new(CrosstermBackend::new(std::io::stdout()))
}

/// Reads keys in a thread of its own, because reading a terminal blocks. The thread ends with the terminal or with us.
fn read_keys() -> std::io::Result<Receiver<Event>> {
    let (sender, receiver): (Sender<Event>, Receiver<Event>) = mpsc::channel(1024);
    std::thread::Builder::new().name("keys".into()).spawn(move || {
        loop {
            match event::poll(LOOK) {
                Ok(true) => {
                    let Ok(event) = event::read() else { return };
                    if sender.blocking_send(event).is_err() {
                        return;
                    }
                }
                // A terminal that is gone reads as one that has nothing to say, for ever.
                Ok(false) if terminal::is_there() => {}
                _ => return,
            }
        }
    })?;
    Ok(receiver)
}

/// In debug builds F12 panics when the tests ask for it by this variable, to see the terminal restored.
#[cfg(debug_assertions)]
#[allow(clippy::panic, reason = "a panic on purpose, only in debug builds and only when a test asks for it")]
fn panic_when_asked(message: &Message) {
    let asked = Message::Key(Key::plain(ratatui::crossterm::event::KeyCode::F(12)));
    if matches!((message, &asked), (Message::Key(a), Message::Key(b)) if a == b)
        && std::env::var_os("ROWDECK_TEST_PANIC").is_some()
    {
        panic!("asked to panic by ROWDECK_TEST_PANIC");
    }
}

/// The user's state directory for the console.
pub fn state_folder() -> Option<PathBuf> {
    let dirs = directories::ProjectDirs::from("", "", "rowdeck")?;
    Some(dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir()).join("unsaved").as_path().to_owned())
        .filter(|path| path.is_absolute() && path != Path::new("/"))
}
