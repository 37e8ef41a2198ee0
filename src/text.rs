//! The one way text that came from a database, a file name or a server reaches a terminal.
//!
//! A name in a table may hold an escape sequence that repaints the screen, or a bidirectional override that makes
//! `user 13` read as `user 31`. Everything that could act on the terminal or hide is shown by its code point instead:
//! `<1b>`, `<202e>`.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// True for characters that act on a terminal, reorder what is read, or cannot be seen.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

fn replace(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(|c| keep(c) || !is_unsafe(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if keep(c) || !is_unsafe(c) {
            out.push(c);
        } else {
            out.push_str(&format!("<{:02x}>", u32::from(c)));
        }
    }
    Cow::Owned(out)
}

/// `text` made safe to show on one line: control characters (line ends and tabs too), escapes, bidirectional controls
/// and invisible characters appear as `<hex>`.
pub fn line(text: &str) -> Cow<'_, str> {
    replace(text, |_| false)
}

/// `text` made safe to show over several lines: as [`line`], but line ends stay.
pub fn block(text: &str) -> Cow<'_, str> {
    replace(text, |c| c == '\n')
}

/// [`line`], cut to `cells` terminal cells with `…` as its last where something was left out.
pub fn cut(text: &str, cells: usize) -> String {
    let safe = line(text);
    let width = |c: char| c.width().unwrap_or(0);
    if safe.chars().map(width).sum::<usize>() <= cells {
        return safe.into_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in safe.chars() {
        if used + width(c) + 1 > cells {
            break;
        }
        used += width(c);
        out.push(c);
    }
    if cells > 0 {
        out.push('…');
    }
    out
}

/// `text` in lines of at most `width` cells, broken at spaces where there are some.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut out = Vec::new();
    for source in text.lines() {
        let indent: String = source.chars().take_while(|c| *c == ' ').collect();
        let mut current = String::new();
        for word in source.split(' ') {
            let needed = current.width() + usize::from(!current.is_empty()) + word.width();
            if needed > width && !current.trim().is_empty() {
                out.push(std::mem::take(&mut current));
                current.push_str(&indent);
                current.push_str(word);
            } else {
                if !current.is_empty() || word.is_empty() {
                    current.push(' ');
                }
                current.push_str(word);
            }
        }
        out.push(current);
    }
    out
}

/// `12,345`: a count with thousands set apart.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `3 rows`, `1 row`: a count with its noun, which takes an `s` for more than one.
pub fn counted(n: u64, noun: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{} {noun}{s}", count(n))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn plain_text_is_untouched() {
        for text in ["", "Q3 plan", "日本語", "e\u{301}", "🇩🇪", "👩‍💻"] {
            assert!(matches!(line(text), Cow::Borrowed(t) if t == text), "{text}");
        }
    }

    #[test]
    fn what_acts_or_hides_is_shown_by_its_code() {
        assert_eq!(line("\x1b[31mred"), "<1b>[31mred");
        assert_eq!(line("user \u{202e}31"), "user <202e>31");
        assert_eq!(line("a\u{200b}b\u{feff}"), "a<200b>b<feff>");
        assert_eq!(line("a\nb\tc\r\0"), "a<0a>b<09>c<0d><00>");
        assert_eq!(line("\u{9b}2J\u{7f}"), "<9b>2J<7f>");
        assert_eq!(line("\u{2066}x\u{2069}\u{e0041}"), "<2066>x<2069><e0041>");
    }

    #[test]
    fn blocks_keep_their_lines_only() {
        assert_eq!(block("a\nb\x1b"), "a\nb<1b>");
    }

    #[test]
    fn cutting_counts_cells() {
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(cut("a\x1bb", 6), "a<1b>b");
        assert_eq!(cut("a\x1bb", 5), "a<1b…");
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!((count(7), count(1_000), count(54_593)), ("7".into(), "1,000".into(), "54,593".into()));
        assert_eq!(counted(1, "row"), "1 row");
        assert_eq!(counted(2_000, "row"), "2,000 rows");
    }
}
