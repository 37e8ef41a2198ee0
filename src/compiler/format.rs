//! A policy's text, set the one way. Only space changes: every token and comment stays as it is and where it is, so the
//! text means what it meant. What stands between braces is SQL and is left alone.
//!
//! Blocks stand at the margin and their lines two in; a line that goes on is two further in. The names of relations that
//! follow each other are padded to one width, and so are those of permissions and of scopes. A blank line ends such a
//! group; more than one becomes one.

use super::diagnostic::Diagnostic;
use super::layout;
use super::lexer::{Comment, Lexed, Token, TokenKind, lex};
use super::parser::parse;
use super::span::FileId;

mod spacing;

/// How far the lines of a block are set in, and a line that goes on further than its first.
const INDENT: usize = 2;
/// A longer name does not push its neighbours to the right.
const WIDEST: usize = 32;

/// The text as it should stand.
///
/// # Errors
/// What is written wrongly: a text that cannot be read is not touched.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let (_, mistakes) = parse(FileId::default(), text);
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let lexed = lex(FileId::default(), text);
    let formatted = Setter::new(text, &lexed).set();
    // The text says who may do what. Should setting it ever change more than space, it stays as it is.
    let same = same_meaning(&lexed, &lex(FileId::default(), &formatted));
    debug_assert!(same, "formatting changed more than space");
    Ok(if same { formatted } else { text.to_owned() })
}

/// Whether two texts have the same tokens in the same lines, and the same comments.
fn same_meaning(one: &Lexed<'_>, other: &Lexed<'_>) -> bool {
    let shape = |lexed: &Lexed<'_>| -> Vec<(bool, usize)> {
        layout::lines(&lexed.tokens).iter().map(|line| (line.at_margin, line.tokens.len())).collect()
    };
    let tokens = one.tokens.iter().map(|t| (t.kind, t.text)).eq(other.tokens.iter().map(|t| (t.kind, t.text)));
    let comments = one.comments.iter().map(|c| c.text).eq(other.comments.iter().map(|c| c.text));
    tokens && comments && shape(one) == shape(other)
}

/// What is padded to one width where it stands line after line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Padded {
    Relation,
    Permission,
    Scope,
}

/// A logical line.
#[derive(Debug, Clone, Copy)]
struct Line<'t, 'a> {
    tokens: &'t [Token<'a>],
    /// It stands at the margin.
    header: bool,
    /// The word that started its block.
    block: &'a str,
    padded: Option<Padded>,
    /// The width its name is padded to.
    width: usize,
}

impl<'a> Line<'_, 'a> {
    /// How many of its tokens come before the mark that is aligned.
    fn name_tokens(&self) -> usize {
        match self.padded {
            None => 0,
            Some(Padded::Relation) => 1,
            Some(Padded::Permission | Padded::Scope) => 2,
        }
    }

    fn name_width(&self) -> usize {
        let name = self.tokens.iter().take(self.name_tokens());
        name.map(|t| t.text.chars().count() + 1).sum::<usize>().saturating_sub(1)
    }

    fn start(&self) -> usize {
        self.tokens.first().map_or(0, |t| t.span.start as usize)
    }

    fn end(&self) -> usize {
        self.tokens.last().map_or(0, |t| t.span.end as usize)
    }
}

/// What stands in the text, in order.
enum Item<'t, 'a> {
    /// The token of this number in the line of this number.
    Token(&'t Token<'a>, usize, usize),
    Comment(&'t Comment<'a>),
}

struct Setter<'t, 'a> {
    text: &'a str,
    lines: Vec<Line<'t, 'a>>,
    comments: &'t [Comment<'a>],
    out: String,
    /// How far in the last line of the output begins; `None` while there is none.
    indent: Option<usize>,
    /// The last line is a block's header.
    after_header: bool,
    /// The block has no lines so far; comments may follow its header.
    empty_block: bool,
}

impl<'t, 'a> Setter<'t, 'a> {
    fn new(text: &'a str, lexed: &'t Lexed<'a>) -> Self {
        let mut lines = Vec::new();
        let mut block = "";
        for line in layout::lines(&lexed.tokens) {
            if line.at_margin {
                block = line.tokens.first().map_or("", |t| t.text);
            }
            let padded = padded(line.tokens, line.at_margin, block);
            lines.push(Line { tokens: line.tokens, header: line.at_margin, block, padded, width: 0 });
        }
        align(&mut lines, text);
        let out = String::with_capacity(text.len() + text.len() / 8);
        Setter { text, lines, comments: &lexed.comments, out, indent: None, after_header: false, empty_block: true }
    }

    fn set(mut self) -> String {
        let lines = std::mem::take(&mut self.lines);
        let mut comments = self.comments.iter().peekable();
        let mut items = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            for (at, token) in line.tokens.iter().enumerate() {
                while let Some(comment) = comments.next_if(|c| c.span.start < token.span.start) {
                    items.push(Item::Comment(comment));
                }
                items.push(Item::Token(token, number, at));
            }
        }
        items.extend(comments.map(Item::Comment));
        // What comes next says how far in a comment stands, so comments look ahead.
        let mut next: Vec<Option<(usize, usize)>> = vec![None; items.len()];
        let mut following = None;
        for (slot, item) in next.iter_mut().zip(&items).rev() {
            *slot = following;
            if let Item::Token(_, number, at) = item {
                following = Some((*number, *at));
            }
        }
        let mut end = 0;
        for (item, next) in items.iter().zip(next) {
            end = match item {
                Item::Token(token, number, at) => {
                    if let Some(line) = lines.get(*number) {
                        self.token(token, line, *at, end);
                    }
                    token.span.end as usize
                }
                Item::Comment(comment) => {
                    let next = next.and_then(|(number, at)| lines.get(number).map(|line| (line, at)));
                    self.comment(comment, next, end);
                    comment.span.end as usize
                }
            };
        }
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out
    }

    /// Starts a line of the output. `blank`: where the text has blank lines before it, one stays.
    fn start_line(&mut self, indent: usize, blank: bool) {
        if let Some(last) = self.indent {
            let ends_block = indent == 0 && last > 0;
            let first_of_block = indent > 0 && self.after_header;
            if ends_block || (blank && !first_of_block) {
                self.out.push('\n');
            }
            self.out.push('\n');
        }
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.indent = Some(indent);
        self.after_header = false;
    }

    fn token(&mut self, token: &Token<'a>, line: &Line<'t, 'a>, at: usize, end: usize) {
        let indent = if line.header { 0 } else { INDENT };
        if at == 0 {
            self.start_line(indent, blank_between(self.text, end, token.span.start as usize));
            self.after_header = line.header;
            self.empty_block = line.header;
        } else if token.starts_line {
            let header = self.after_header;
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(' ', indent + INDENT));
            self.after_header = header;
        } else if line.padded.is_some() && at == line.name_tokens() {
            let padding = line.width.saturating_sub(line.name_width()) + 1;
            self.out.extend(std::iter::repeat_n(' ', padding));
        } else if spacing::space_before(line.tokens, at, line.block, line.header) {
            self.out.push(' ');
        }
        self.out.push_str(token.text);
    }

    fn comment(&mut self, comment: &Comment<'a>, next: Option<(&Line<'t, 'a>, usize)>, end: usize) {
        if !comment.own_line {
            self.out.push_str("  ");
            self.out.push_str(comment.text);
            return;
        }
        let indent = match next {
            Some((line, at)) if at > 0 => {
                // In the middle of a line that goes on; nothing may part it.
                self.out.push('\n');
                let indent = if line.header { 0 } else { INDENT };
                self.out.extend(std::iter::repeat_n(' ', indent + INDENT));
                self.out.push_str(comment.text);
                return;
            }
            Some((line, _)) if !line.header => INDENT,
            _ if self.empty_block || at_margin(self.text, comment.span.start as usize) => 0,
            _ => INDENT,
        };
        self.start_line(indent, blank_between(self.text, end, comment.span.start as usize));
        self.out.push_str(comment.text);
    }
}

/// Whether nothing stands before `at` on its line.
fn at_margin(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    before.is_empty() || before.ends_with('\n')
}

/// Whether a blank line stands between two places.
fn blank_between(text: &str, from: usize, to: usize) -> bool {
    text.get(from..to).unwrap_or_default().bytes().filter(|b| *b == b'\n').count() > 1
}

fn padded(tokens: &[Token<'_>], header: bool, block: &str) -> Option<Padded> {
    let second = tokens.get(1)?;
    match (block, header) {
        ("scope", true) => Some(Padded::Scope),
        ("type", false) if second.kind == TokenKind::Colon => Some(Padded::Relation),
        ("type", false) if tokens.first().is_some_and(|t| t.text == "can") => Some(Padded::Permission),
        _ => None,
    }
    // What is aligned must stand on the first line of its own.
    .filter(|kind| {
        let mark = if *kind == Padded::Relation { 1 } else { 2 };
        tokens.get(1..=mark).is_some_and(|part| part.iter().all(|t| !t.starts_line))
    })
}

/// Gives the lines that follow each other, without a blank line between them, the width of the widest name.
fn align(lines: &mut [Line<'_, '_>], text: &str) {
    let mut start = 0;
    while start < lines.len() {
        let group = group_length(lines.get(start..).unwrap_or_default(), text);
        let members = lines.get_mut(start..start + group).unwrap_or_default();
        let width = members.iter().map(|line| line.name_width()).filter(|w| *w <= WIDEST).max().unwrap_or(0);
        members.iter_mut().for_each(|line| line.width = width);
        start += group;
    }
}

/// How many of these lines, at least one, are padded alike.
fn group_length(lines: &[Line<'_, '_>], text: &str) -> usize {
    let pairs = lines.iter().zip(lines.iter().skip(1));
    let alike = pairs.take_while(|(one, next)| {
        let between = text.get(one.end()..next.start()).unwrap_or_default();
        let whole_lines = between.matches('\n').count().saturating_sub(1);
        let blank = between.split('\n').skip(1).take(whole_lines).any(|line| line.trim().is_empty());
        one.padded.is_some() && one.padded == next.padded && !blank
    });
    1 + alike.count()
}
