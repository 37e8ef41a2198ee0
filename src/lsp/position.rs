//! The protocol counts lines and UTF-16 units; the compiler counts bytes.

use lsp_types::{Position, Range};

use crate::compiler::span::Span;

/// A text with the beginnings of its lines.
pub(super) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Lines { text, starts }
    }

    fn line(&self, number: usize) -> &'a str {
        let start = self.starts.get(number).copied().unwrap_or(self.text.len());
        let end = self.starts.get(number + 1).copied().unwrap_or(self.text.len());
        self.text.get(start..end).unwrap_or_default()
    }

    /// The byte at a position; past the end of a line is its end, past the last line the end of the text.
    pub(super) fn offset(&self, position: Position) -> usize {
        let number = usize::try_from(position.line).unwrap_or(usize::MAX);
        let Some(start) = self.starts.get(number) else { return self.text.len() };
        let mut units = position.character as usize;
        let mut at = *start;
        for c in self.line(number).trim_end_matches(['\n', '\r']).chars() {
            // A position inside a pair of units is the place before it.
            if units < c.len_utf16() {
                break;
            }
            units -= c.len_utf16();
            at += c.len_utf8();
        }
        at
    }

    /// The position of a byte.
    pub(super) fn position(&self, at: usize) -> Position {
        let at = at.min(self.text.len());
        let number = self.starts.partition_point(|start| *start <= at).saturating_sub(1);
        let start = self.starts.get(number).copied().unwrap_or(0);
        let units: usize = self
            .line(number)
            .char_indices()
            .take_while(|(offset, _)| start + offset < at)
            .map(|(_, c)| c.len_utf16())
            .sum();
        let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Position::new(small(number), small(units))
    }

    pub(super) fn range(&self, span: Span) -> Range {
        Range::new(self.position(span.start as usize), self.position(span.end as usize))
    }

    /// The whole text.
    pub(super) fn whole(&self) -> Range {
        Range::new(Position::new(0, 0), self.position(self.text.len()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn units_are_those_of_utf_16() {
        let text = "a žluť\r\n😀b = c\nlast";
        let lines = Lines::of(text);
        let b = text.find('b').unwrap();
        assert_eq!(lines.position(b), Position::new(1, 2));
        assert_eq!(lines.offset(Position::new(1, 2)), b);
        assert_eq!(lines.offset(Position::new(1, 1)), b - 4, "inside a pair is before it");
        assert_eq!(lines.offset(Position::new(0, 99)), text.find('\r').unwrap());
        assert_eq!(lines.offset(Position::new(9, 0)), text.len());
        for (at, _) in text.char_indices().filter(|(_, c)| !matches!(c, '\r' | '\n')) {
            assert_eq!(lines.offset(lines.position(at)), at);
        }
        assert_eq!(lines.whole().end, Position::new(2, 4));
    }
}
