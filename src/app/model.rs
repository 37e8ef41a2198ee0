//! Everything the screen shows. Views only read it; [`super::update`] alone changes it.

pub mod activity;
pub mod apply;
pub mod bench;
pub mod field;
pub mod inspect;
pub mod link;
pub mod overview;
pub mod policy;
pub mod sql;
pub mod targets;
pub mod try_it;
pub mod verify;

use std::time::Duration;

use super::command::{Command, Place};
use super::keymap::Keymap;
use field::Field;
use link::Link;

/// The screens, in the order of their number keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Screen {
    /// Is anything wrong?
    Overview,
    /// Write the policy.
    Policy,
    /// What it becomes.
    Sql,
    /// Put it in force.
    Apply,
    /// Check the stored inheritance.
    Verify,
    /// Who can see what, and why.
    Inspect,
    /// One statement as anyone, rolled back.
    Try,
    /// Measure, live.
    Bench,
    /// Sessions and locks.
    Activity,
    /// The servers of rowdeck.toml.
    Targets,
    /// The keys, or what a code means.
    Help,
}

impl Screen {
    /// The screens with number keys.
    pub const ALL: &'static [Screen] = &[
        Screen::Overview,
        Screen::Policy,
        Screen::Sql,
        Screen::Apply,
        Screen::Verify,
        Screen::Inspect,
        Screen::Try,
        Screen::Bench,
        Screen::Activity,
        Screen::Targets,
    ];

    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Screen::Overview => "Overview",
            Screen::Policy => "Policy",
            Screen::Sql => "SQL",
            Screen::Apply => "Apply",
            Screen::Verify => "Verify",
            Screen::Inspect => "Inspect",
            Screen::Try => "Try",
            Screen::Bench => "Bench",
            Screen::Activity => "Activity",
            Screen::Targets => "Targets",
            Screen::Help => "Help",
        }
    }

    /// Its title where there is little room.
    pub fn short(self) -> &'static str {
        match self {
            Screen::Overview => "Over",
            Screen::Inspect => "Insp",
            Screen::Activity => "Act",
            Screen::Targets => "Targ",
            other => other.title(),
        }
    }

    /// The command table's name for it.
    pub fn place(self) -> Place {
        match self {
            Screen::Overview => Place::Overview,
            Screen::Policy => Place::Policy,
            Screen::Sql => Place::Sql,
            Screen::Apply => Place::Apply,
            Screen::Verify => Place::Verify,
            Screen::Inspect => Place::Inspect,
            Screen::Try => Place::Try,
            Screen::Bench => Place::Bench,
            Screen::Activity => Place::Activity,
            Screen::Targets => Place::Targets,
            Screen::Help => Place::List,
        }
    }
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Something happened.
    Info,
    /// Something went well.
    Ok,
    /// Something to look at.
    Warn,
    /// Something failed.
    Error,
}

/// What a failure is about, so that the next success of the same kind takes its message away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// The connection.
    Link,
    /// Planning an apply.
    Plan,
    /// Checking a batch of the index.
    Verify,
    /// A question of the Inspect screen.
    Inspect,
    /// The load.
    Bench,
    /// The Overview or the Activity screen's reading.
    Watch,
    /// A statement that is tried.
    Try,
}

/// The newest message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How much it matters.
    pub level: Level,
    /// What it says.
    pub text: String,
    /// For a failure that a later success makes old: what it is about.
    pub about: Option<About>,
}

/// What a confirmed question does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Nothing.
    Cancel,
    /// Apply the plan.
    Apply,
    /// Repair what verify found.
    Repair,
    /// Start the load.
    StartBench,
    /// Allow changes.
    AllowChanges,
    /// Leave, whatever runs and is unsaved.
    Quit,
    /// Save, then leave.
    SaveAndQuit,
    /// Take the recovered text.
    Recover,
    /// Throw the recovered text away.
    DropRecovery,
    /// Overwrite a file that changed on disk.
    Overwrite,
    /// Run the statement that is tried.
    Try,
    /// Cancel what another session runs.
    CancelSession,
    /// End another session.
    EndSession,
}

/// A question that waits for an answer. The first answer is the harmless one and is marked at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    /// What it is about.
    pub title: String,
    /// What will happen.
    pub lines: Vec<String>,
    /// The answers and what they do.
    pub answers: Vec<(String, Answer)>,
    /// The marked answer.
    pub at: usize,
    /// What must be typed before any answer but the first counts, and what was typed so far (on production).
    pub typed: Option<(String, Field)>,
}

/// The list of commands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Palette {
    /// What was typed.
    pub filter: Field,
    /// The marked command among those that match.
    pub at: usize,
}

/// What lies over the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overlay {
    /// A question.
    Dialog(Dialog),
    /// The list of commands.
    Palette(Palette),
}

/// What the Help screen shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HelpState {
    /// A page about a code, when one is open; the keys otherwise.
    pub page: Option<(String, String)>,
    /// First line shown.
    pub top: usize,
    /// The cursor was in the policy's text, and is again when help is left.
    pub editing: bool,
}

/// Work that runs in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Job {
    /// Planning an apply.
    Plan,
    /// Applying.
    Apply,
    /// Checking the index.
    Verify,
    /// Repairing the index.
    Repair,
    /// The load.
    Bench,
    /// The policy's tests.
    Tests,
}

impl Job {
    /// What it is, and what leaving now does to it.
    pub fn leaving(self) -> &'static str {
        match self {
            Job::Plan => "a plan is being made; it changes nothing and is dropped",
            Job::Apply => "an apply runs; it is cancelled on the server and rolled back as a whole",
            Job::Verify => "a verify runs; it stops after this batch and changes nothing",
            Job::Repair => "a repair runs; the batch that is open is rolled back, the others stay",
            Job::Bench => "a benchmark runs; it stops and its last screen is lost",
            Job::Tests => "tests run; each is rolled back",
        }
    }
}

/// What a screen reads again every two seconds while it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// The Overview screen.
    Overview,
    /// The Activity screen.
    Sessions,
}

/// Everything the screen shows.
#[derive(Debug)]
pub struct Model {
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// Time since the console started, as of the last clock message.
    pub clock: Duration,
    /// The screen shown.
    pub screen: Screen,
    /// The screen to go back to from Help.
    pub previous: Screen,
    /// What lies over it.
    pub overlay: Option<Overlay>,
    /// Where we are connected.
    pub link: Link,
    /// The target's name, without any password.
    pub target: String,
    /// Changes to the database are refused.
    pub read_only: bool,
    /// The target is marked as production: dangerous commands want the database's name typed.
    pub production: bool,
    /// The keys in force.
    pub keymap: Keymap,
    /// The name of the file that the table on the screen is to be written to, while it is typed.
    pub export: Option<Field>,
    /// The newest message.
    pub notice: Option<Notice>,
    /// Work that runs.
    pub jobs: Vec<Job>,
    /// The Overview screen.
    pub overview: overview::Overview,
    /// The Policy screen.
    pub policy: policy::Policy,
    /// The SQL screen.
    pub sql: sql::Sql,
    /// The Apply screen.
    pub apply: apply::Apply,
    /// The Verify screen.
    pub verify: verify::Verify,
    /// The Inspect screen.
    pub inspect: inspect::Inspect,
    /// The Try it screen.
    pub try_it: try_it::TryIt,
    /// The Bench screen.
    pub bench: bench::Bench,
    /// The Activity screen.
    pub activity: activity::Activity,
    /// The Targets screen.
    pub targets: targets::Targets,
    /// The Help screen.
    pub help: HelpState,
    /// Set when the console is to end.
    pub done: bool,
}

impl Model {
    /// A console that has read no file and reached no server yet.
    pub fn new(target: impl Into<String>, size: (u16, u16)) -> Self {
        Model {
            size,
            clock: Duration::ZERO,
            screen: Screen::Policy,
            previous: Screen::Policy,
            overlay: None,
            link: Link::Unused,
            target: target.into(),
            read_only: false,
            production: false,
            keymap: Keymap::default(),
            export: None,
            notice: None,
            jobs: Vec::new(),
            overview: overview::Overview::default(),
            policy: policy::Policy::default(),
            sql: sql::Sql::default(),
            apply: apply::Apply::default(),
            verify: verify::Verify::default(),
            inspect: inspect::Inspect::default(),
            try_it: try_it::TryIt::default(),
            bench: bench::Bench::default(),
            activity: activity::Activity::default(),
            targets: targets::Targets::default(),
            help: HelpState::default(),
            done: false,
        }
    }

    /// The line of text that has the keys, if one has.
    pub fn field(&self) -> Option<&Field> {
        match (&self.overlay, self.screen) {
            (Some(Overlay::Palette(palette)), _) => Some(&palette.filter),
            (Some(Overlay::Dialog(dialog)), _) => dialog.typed.as_ref().map(|(_, field)| field),
            (None, _) if self.export.is_some() => self.export.as_ref(),
            (None, Screen::Policy) => self.policy.search.as_ref(),
            (None, Screen::Sql) => self.sql.search.as_ref(),
            (None, Screen::Inspect) => self.inspect.field.as_ref(),
            (None, Screen::Try) => self.try_it.field.as_ref(),
            _ => None,
        }
    }

    /// The same, to change it.
    pub fn field_mut(&mut self) -> Option<&mut Field> {
        match (&mut self.overlay, self.screen) {
            (Some(Overlay::Palette(palette)), _) => Some(&mut palette.filter),
            (Some(Overlay::Dialog(dialog)), _) => dialog.typed.as_mut().map(|(_, field)| field),
            (None, _) if self.export.is_some() => self.export.as_mut(),
            (None, Screen::Policy) => self.policy.search.as_mut(),
            (None, Screen::Sql) => self.sql.search.as_mut(),
            (None, Screen::Inspect) => self.inspect.field.as_mut(),
            (None, Screen::Try) => self.try_it.field.as_mut(),
            _ => None,
        }
    }

    /// The places whose keys count now, the nearest first.
    pub fn places(&self) -> Vec<Place> {
        match &self.overlay {
            Some(Overlay::Dialog(_)) => return vec![Place::Dialog],
            Some(Overlay::Palette(_)) => return vec![Place::Palette],
            None => {}
        }
        if self.field().is_some() {
            return vec![Place::Field, Place::Anywhere];
        }
        if self.screen == Screen::Policy && self.policy.replacing.is_some() {
            return vec![Place::Replacing, Place::Anywhere];
        }
        if self.screen == Screen::Policy && self.policy.editing && self.policy.completion.is_some() {
            return vec![Place::Completing, Place::Editor, Place::Anywhere];
        }
        if self.screen == Screen::Policy && self.policy.editing {
            return vec![Place::Editor, Place::Anywhere];
        }
        vec![self.screen.place(), Place::List, Place::Screens, Place::Anywhere]
    }

    /// True while this kind of work runs.
    pub fn runs(&self, job: Job) -> bool {
        self.jobs.contains(&job)
    }

    /// Shows a message on the line above the hints.
    pub fn say(&mut self, level: Level, text: impl Into<String>) {
        self.notice = Some(Notice { level, text: crate::text::line(&text.into()).into_owned(), about: None });
    }

    /// Shows a failure, until something else is said or the same kind of work succeeds.
    pub fn fail(&mut self, about: About, text: impl Into<String>) {
        self.say(Level::Error, text);
        if let Some(notice) = &mut self.notice {
            notice.about = Some(about);
        }
    }

    /// Work of this kind succeeded: the message about its last failure goes.
    pub fn worked(&mut self, about: About) {
        if self.notice.as_ref().is_some_and(|notice| notice.about == Some(about)) {
            self.notice = None;
        }
    }

    /// What is to be read again and again while it is on the screen.
    pub fn watching(&self) -> Option<Watched> {
        match self.screen {
            Screen::Overview if self.link.is_up() => Some(Watched::Overview),
            Screen::Activity if self.link.is_up() => Some(Watched::Sessions),
            _ => None,
        }
    }

    /// True when the clock must go on: an age, a rate or a time left is on the screen.
    pub fn wants_clock(&self) -> bool {
        !self.jobs.is_empty() || self.link.wants_clock() || self.try_it.waiting.is_some()
    }

    /// Commands that can run now and whose words hold every word typed in the palette; the best match first.
    pub fn palette_matches(&self, filter: &str) -> Vec<Command> {
        super::update::palette::matches(self, filter)
    }
}
