//! Keys as people write them (`ctrl-p`, `F5`, `enter`), and which command a key means where.

use std::collections::BTreeMap;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::command::{Command, Place, Row, TABLE};

/// One key with its modifiers, in one form for each key: an upper-case letter carries no `shift`, and `ctrl` letters are
/// lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// The key.
    pub code: KeyCode,
    /// Control was held.
    pub ctrl: bool,
    /// Alt was held. No command needs it; it is kept so that such a key is not mistaken for the plain one.
    pub alt: bool,
    /// Shift was held, where the character does not say so itself.
    pub shift: bool,
}

impl Key {
    /// A key without modifiers.
    pub fn plain(code: KeyCode) -> Self {
        Key { code, ctrl: false, alt: false, shift: false }
    }

    /// The key of a terminal event.
    pub fn from_event(event: KeyEvent) -> Self {
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let alt = event.modifiers.contains(KeyModifiers::ALT);
        let shift = event.modifiers.contains(KeyModifiers::SHIFT);
        match event.code {
            KeyCode::Char(c) if ctrl => Key { code: KeyCode::Char(c.to_ascii_lowercase()), ctrl, alt, shift: false },
            KeyCode::Char(c) => Key { code: KeyCode::Char(c), ctrl, alt, shift: false },
            KeyCode::BackTab => Key { code: KeyCode::Tab, ctrl, alt, shift: true },
            code => Key { code, ctrl, alt, shift },
        }
    }

    /// The key as an event, for the text editor.
    pub fn to_event(self) -> KeyEvent {
        let mut modifiers = KeyModifiers::NONE;
        modifiers.set(KeyModifiers::CONTROL, self.ctrl);
        modifiers.set(KeyModifiers::ALT, self.alt);
        modifiers.set(KeyModifiers::SHIFT, self.shift);
        KeyEvent::new(self.code, modifiers)
    }

    /// Reads one key as people write it; `None` when there is no such key.
    pub fn parse(text: &str) -> Option<Self> {
        let (mut ctrl, mut alt, mut shift) = (false, false, false);
        let mut rest = text;
        loop {
            if let Some(tail) = rest.strip_prefix("ctrl-") {
                (ctrl, rest) = (true, tail);
            } else if let Some(tail) = rest.strip_prefix("alt-") {
                (alt, rest) = (true, tail);
            } else if let Some(tail) = rest.strip_prefix("shift-") {
                (shift, rest) = (true, tail);
            } else {
                break;
            }
        }
        Some(Key { code: parse_code(rest)?, ctrl, alt, shift })
    }

    /// The character this key types, when it types one.
    pub fn typed(self) -> Option<char> {
        match self.code {
            KeyCode::Char(c) if !self.ctrl && !self.alt => Some(c),
            _ => None,
        }
    }
}

fn parse_code(text: &str) -> Option<KeyCode> {
    let mut chars = text.chars();
    if let (Some(only), None) = (chars.next(), chars.next()) {
        return Some(KeyCode::Char(only));
    }
    let code = match text.to_ascii_lowercase().as_str() {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "space" => KeyCode::Char(' '),
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pgup" => KeyCode::PageUp,
        "pgdn" => KeyCode::PageDown,
        "lt" => KeyCode::Char('<'),
        other => KeyCode::F(other.strip_prefix('f')?.parse().ok().filter(|n| (1..=12).contains(n))?),
    };
    Some(code)
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (held, word) in [(self.ctrl, "ctrl-"), (self.alt, "alt-"), (self.shift, "shift-")] {
            if held {
                f.write_str(word)?;
            }
        }
        let word = match self.code {
            KeyCode::Char(' ') => "space",
            KeyCode::Char(c) => return write!(f, "{c}"),
            KeyCode::F(n) => return write!(f, "F{n}"),
            KeyCode::Enter => "enter",
            KeyCode::Esc => "esc",
            KeyCode::Tab => "tab",
            KeyCode::Backspace => "backspace",
            KeyCode::Delete => "delete",
            KeyCode::Up => "up",
            KeyCode::Down => "down",
            KeyCode::Left => "left",
            KeyCode::Right => "right",
            KeyCode::Home => "home",
            KeyCode::End => "end",
            KeyCode::PageUp => "pgup",
            KeyCode::PageDown => "pgdn",
            _ => "?",
        };
        f.write_str(word)
    }
}

/// Reads a string of keys such as `<ctrl-p>verify<enter>`. What is not a key is left out; tests compare what they
/// wanted with what they got by [`keys_strict`].
pub fn keys(text: &str) -> Vec<Key> {
    keys_strict(text).unwrap_or_default()
}

/// As [`keys`], but says which part is no key.
///
/// # Errors
/// Names the part between angle brackets that is no key.
pub fn keys_strict(text: &str) -> Result<Vec<Key>, String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some((name, after)) = rest.strip_prefix('<').and_then(|tail| tail.split_once('>')) {
            found.push(Key::parse(name).ok_or_else(|| format!("no key is called {name:?}"))?);
            rest = after;
        } else {
            found.push(match first {
                '\n' => Key::plain(KeyCode::Enter),
                other => Key::plain(KeyCode::Char(other)),
            });
            rest = rest.get(first.len_utf8()..).unwrap_or("");
        }
    }
    Ok(found)
}

/// The command a key usually means in the first of these places that knows it.
pub fn lookup(key: Key, places: &[Place]) -> Option<Command> {
    let name = key.to_string();
    places.iter().find_map(|place| {
        TABLE.iter().find(|row| row.place == *place && row.keys.contains(&name.as_str())).map(|row| row.id)
    })
}

/// The keys in force: the usual ones, or those of the user's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keymap(Vec<(Command, Place, Vec<String>)>);

impl Default for Keymap {
    fn default() -> Self {
        let keys = |row: &Row| row.keys.iter().map(|key| (*key).to_owned()).collect();
        Keymap(TABLE.iter().map(|row| (row.id, row.place, keys(row))).collect())
    }
}

/// Without a key for one of these a question could not be answered, or the console not be left.
const NEEDED: &[Command] = &[
    Command::DialogAccept,
    Command::DialogCancel,
    Command::DialogNext,
    Command::FieldAccept,
    Command::FieldCancel,
    Command::LeaveEditor,
    Command::PaletteRun,
    Command::PaletteClose,
    Command::ReplaceStop,
    Command::CompleteClose,
    Command::Interrupt,
    Command::Back,
];

impl Keymap {
    /// The usual keys with these changes: commands by name, each with all its keys.
    ///
    /// # Errors
    /// Everything that cannot be.
    pub fn with(changes: &BTreeMap<String, Vec<String>>) -> Result<Keymap, Vec<String>> {
        let mut map = Keymap::default();
        let mut problems = Vec::new();
        for (name, keys) in changes {
            let Some(row) = TABLE.iter().find(|row| row.name == name) else {
                let near = TABLE.iter().map(|row| (strsim::damerau_levenshtein(row.name, name), row.name)).min();
                let near = near
                    .filter(|(far, _)| *far <= 4)
                    .map_or(String::new(), |(_, near)| format!("; did you mean {near}?"));
                problems.push(format!("keys: there is no command {:?}{near}", crate::text::line(name)));
                continue;
            };
            let mut read = Vec::new();
            for text in keys {
                match Key::parse(text) {
                    Some(key) if key.alt => {
                        problems.push(format!("keys: {name}: a terminal cannot tell {text} from esc and a key"))
                    }
                    Some(key) => read.push(key.to_string()),
                    None => problems.push(format!("keys: {name}: no key is called {:?}", crate::text::line(text))),
                }
            }
            if read.is_empty() && NEEDED.contains(&row.id) {
                problems.push(format!("keys: {name} cannot be without a key"));
                continue;
            }
            if let Some((.., known)) = map.0.iter_mut().find(|(id, ..)| *id == row.id) {
                *known = read;
            }
        }
        problems.extend(map.clashes());
        if problems.is_empty() { Ok(map) } else { Err(problems) }
    }

    /// Keys that mean two things in one place, or on a screen something else than everywhere.
    fn clashes(&self) -> Vec<String> {
        let everywhere = [Place::Screens, Place::Anywhere];
        let own = |place: Place| {
            super::model::Screen::ALL.iter().any(|screen| screen.place() == place) && place != Place::List
        };
        let mut found = Vec::new();
        for (at, (first, place, keys)) in self.0.iter().enumerate() {
            for (second, other, others) in self.0.iter().skip(at + 1) {
                let together = place == other
                    || (everywhere.contains(place) && (own(*other) || everywhere.contains(other)))
                    || (everywhere.contains(other) && own(*place));
                for key in keys.iter().filter(|key| together && others.contains(key)) {
                    let (first, second) = (first.row().name, second.row().name);
                    found.push(format!("keys: {key} would mean both {first} and {second}"));
                }
            }
        }
        found
    }

    /// All keys of a command.
    pub fn keys(&self, command: Command) -> &[String] {
        self.0.iter().find(|(id, ..)| *id == command).map_or(&[], |(.., keys)| keys)
    }

    /// The key that is shown for a command; nothing when it has none.
    pub fn key(&self, command: Command) -> &str {
        self.keys(command).first().map_or("", String::as_str)
    }

    /// The command a key means in the first of these places that knows it.
    pub fn lookup(&self, key: Key, places: &[Place]) -> Option<Command> {
        let name = key.to_string();
        places.iter().find_map(|place| {
            self.0.iter().find(|(_, of, keys)| of == place && keys.contains(&name)).map(|(id, ..)| *id)
        })
    }
}
