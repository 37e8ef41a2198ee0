//! One line of typed text with a cursor.

use ratatui::crossterm::event::KeyCode;

use crate::app::keymap::Key;

/// A line of text and where its cursor stands (in characters).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Field {
    /// The text.
    pub text: String,
    /// Characters before the cursor.
    pub cursor: usize,
    /// It may hold line ends.
    pub lines: bool,
}

impl Field {
    /// A field that holds `text`, the cursor behind it.
    pub fn with(text: impl Into<String>) -> Self {
        let text = text.into();
        Field { cursor: text.chars().count(), text, lines: false }
    }

    /// Takes a key; false when it means nothing here.
    pub fn key(&mut self, key: Key) -> bool {
        match key.code {
            KeyCode::Char('u') if key.ctrl => *self = Field { lines: self.lines, ..Field::default() },
            KeyCode::Char('j') if key.ctrl && self.lines => self.insert("\n"),
            KeyCode::Char(_) => match key.typed() {
                Some(c) => self.insert(&c.to_string()),
                None => return false,
            },
            KeyCode::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.remove(self.cursor);
            }
            KeyCode::Delete => self.remove(self.cursor),
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = (self.cursor + 1).min(self.text.chars().count()),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.chars().count(),
            _ => return false,
        }
        true
    }

    /// Puts text in at the cursor. Control characters become spaces, and so do line ends where there is one line only,
    /// so nothing pasted acts as a key.
    pub fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let kept = |c: char| !c.is_control() || (self.lines && c == '\n');
        let clean: String = text.chars().map(|c| if kept(c) { c } else { ' ' }).collect();
        let at = self.byte(self.cursor);
        self.text.insert_str(at, &clean);
        self.cursor += clean.chars().count();
    }

    fn remove(&mut self, at: usize) {
        let at = self.byte(at);
        if at < self.text.len() {
            self.text.remove(at);
        }
    }

    fn byte(&self, chars: usize) -> usize {
        self.text.char_indices().nth(chars).map_or(self.text.len(), |(at, _)| at)
    }
}
