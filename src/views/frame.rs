//! The frame of every screen: where we are, the screens, the newest message, the keys that matter now.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::hints;
use super::widgets::{duration, field, lines, styled};
use crate::app::model::link::{Facts, Link};
use crate::app::model::{Level, Model, Screen};
use crate::app::theme::{Role, Theme};

/// Draws it and returns the area of the screen inside it.
pub fn draw(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) -> Rect {
    let row = |y: u16| Rect { x: area.x, y: area.y + y, width: area.width, height: 1 };
    let last = area.height.saturating_sub(1);
    frame.buffer_mut().set_style(row(0), theme.style(Role::Header));
    lines(frame, row(0), vec![header(model, theme, usize::from(area.width))]);
    lines(frame, row(1), vec![screens(model, theme, usize::from(area.width))]);
    match &model.export {
        Some(name) => field(frame, theme, row(last - 1), " write to a new file: ", name),
        None => lines(frame, row(last - 1), vec![notice(model, theme, usize::from(area.width))]),
    }
    lines(frame, row(last), vec![keys(model, theme, usize::from(area.width))]);
    Rect { x: area.x, y: area.y + 2, width: area.width, height: area.height.saturating_sub(4) }
}

/// A piece of the header: how soon it may be left out where there is no room (0: never), its role and its words, a
/// short form of them too.
struct Piece {
    rank: u8,
    role: Role,
    words: String,
    short: Option<String>,
}

impl Piece {
    fn new(rank: u8, role: Role, words: impl Into<String>) -> Self {
        Piece { rank, role, words: words.into(), short: None }
    }

    fn or(mut self, short: impl Into<String>) -> Self {
        self.short = Some(short.into());
        self
    }
}

fn header(model: &Model, theme: &Theme, width: usize) -> Line<'static> {
    let mut pieces = Vec::new();
    if model.production {
        pieces.push(Piece::new(0, Role::Danger, "PRODUCTION"));
    }
    match &model.link {
        Link::Unused => pieces.push(Piece::new(0, Role::Header, "no database")),
        Link::Connecting => pieces.push(Piece::new(0, Role::Header, "connecting ...")),
        Link::Up(facts) => pieces.extend(facts_pieces(facts)),
        Link::Down { last, since, reason, tries, retry_at } => {
            let age = duration(model.clock.saturating_sub(*since).as_secs_f64());
            let old = if last.is_some() { ", data is that old" } else { "" };
            let short = format!("NOT CONNECTED {age}");
            pieces.push(Piece::new(0, Role::Danger, format!("NOT CONNECTED for {age}{old}")).or(short));
            if let Some(at) = retry_at {
                let wait = duration(at.saturating_sub(model.clock).as_secs_f64());
                pieces.push(Piece::new(2, Role::Header, format!("try {} in {wait}", tries + 1)));
            }
            if let Some(facts) = last {
                pieces.extend(facts_pieces(facts));
            }
            pieces.push(Piece::new(3, Role::Header, reason.clone()));
        }
    }
    if model.read_only {
        pieces.push(Piece::new(0, Role::Header, "READ-ONLY"));
    }
    fit(theme, &model.target, pieces, width)
}

fn facts_pieces(facts: &Facts) -> Vec<Piece> {
    let mut pieces = vec![
        Piece::new(0, Role::Header, format!("db {}", facts.database)).or(facts.database.clone()),
        Piece::new(0, Role::Header, format!("role {}", facts.role)).or(facts.role.clone()),
    ];
    pieces.extend(facts.dangers.iter().map(|danger| Piece::new(0, Role::Danger, danger.clone())));
    pieces.push(Piece::new(0, Role::Header, format!("PG {}", facts.version)));
    pieces.push(match &facts.policy {
        Some(policy) => {
            let (name, version) = (&policy.name, policy.version);
            Piece::new(0, Role::Header, format!("policy {name} v{version}")).or(format!("{name} v{version}"))
        }
        None => Piece::new(0, Role::Header, "no policy in force").or("no policy"),
    });
    pieces.push(Piece::new(4, Role::Header, facts.tls.clone()));
    pieces.push(Piece::new(5, Role::Header, facts.server.clone()));
    if facts.development {
        pieces.push(Piece::new(6, Role::Header, "development database"));
    }
    pieces
}

/// Makes everything fit: first leaves out what may be, the least important first, then takes the short forms, then cuts
/// the target's name, which comes first; last the line is cut where the terminal ends.
fn fit(theme: &Theme, target: &str, mut pieces: Vec<Piece>, width: usize) -> Line<'static> {
    const SEPARATOR: usize = 3;
    let target = crate::text::line(target).into_owned();
    pieces.retain(|piece| !piece.words.is_empty() && piece.words != target);
    for piece in &mut pieces {
        piece.words = crate::text::line(&piece.words).into_owned();
    }
    let taken = |pieces: &[Piece]| 1 + pieces.iter().map(|piece| piece.words.width() + SEPARATOR).sum::<usize>();
    while taken(&pieces) + target.width() > width {
        let least = pieces.iter().enumerate().max_by_key(|(_, piece)| piece.rank).map(|(at, piece)| (at, piece.rank));
        match least {
            Some((at, rank)) if rank > 0 => drop(pieces.remove(at)),
            _ => break,
        }
    }
    if taken(&pieces) + target.width() > width {
        for piece in &mut pieces {
            if let Some(short) = piece.short.take() {
                piece.words = crate::text::line(&short).into_owned();
            }
        }
    }
    let room = width.saturating_sub(taken(&pieces)).max(6);
    let mut spans = vec![styled(theme, Role::Header, format!(" {}", crate::text::cut(&target, room)))];
    for piece in pieces {
        spans.push(styled(theme, Role::Header, " · "));
        spans.push(styled(theme, piece.role, piece.words));
    }
    Line::from(spans)
}

fn screens(model: &Model, theme: &Theme, width: usize) -> Line<'static> {
    let jobs: Vec<&str> = model.jobs.iter().map(|job| super::job_word(*job)).collect();
    let jobs = if jobs.is_empty() { String::new() } else { format!("  {}", jobs.join(", ")) };
    // What runs stays in sight: it is the titles of other screens that get shorter.
    let room = width.saturating_sub(jobs.width() + if model.screen == Screen::Help { 6 } else { 0 });
    let labels = [(usize::MAX, 1), (usize::MAX, 0), (6, 0), (4, 0), (3, 0), (0, 0)]
        .into_iter()
        .map(|(letters, pad)| labels(model, letters, pad))
        .find(|labels| labels.iter().map(|(label, _)| label.width()).sum::<usize>() <= room)
        .unwrap_or_default();
    let mut spans: Vec<Span> = labels.into_iter().map(|(label, role)| styled(theme, role, label)).collect();
    if model.screen == Screen::Help {
        spans.push(styled(theme, Role::Selected, " Help "));
    }
    if !jobs.is_empty() {
        spans.push(styled(theme, Role::Warn, jobs));
    }
    Line::from(spans)
}

/// The screens' numbers and names, those not shown cut to so many letters.
fn labels(model: &Model, letters: usize, pad: usize) -> Vec<(String, Role)> {
    let pad = " ".repeat(pad);
    let screens = (1..).zip(Screen::ALL);
    screens
        .map(|(number, screen)| {
            let here = *screen == model.screen;
            let whole = here || letters == usize::MAX;
            let title = if whole { screen.title() } else { screen.short() };
            let title: String = title.chars().take(if here { usize::MAX } else { letters }).collect();
            let space = if title.is_empty() { "" } else { " " };
            let role = if here { Role::Selected } else { Role::Text };
            (format!("{pad} {}{space}{title}{pad}", number % 10), role)
        })
        .collect()
}

fn notice(model: &Model, theme: &Theme, width: usize) -> Line<'static> {
    let Some(notice) = &model.notice else { return Line::default() };
    let (role, word) = match notice.level {
        Level::Info => (Role::Text, ""),
        Level::Ok => (Role::Ok, "✓ "),
        Level::Warn => (Role::Warn, "! "),
        Level::Error => (Role::Error, "✗ "),
    };
    Line::from(styled(theme, role, format!(" {word}{}", crate::text::cut(&notice.text, width.saturating_sub(4)))))
}

fn keys(model: &Model, theme: &Theme, width: usize) -> Line<'static> {
    let mut spans = Vec::new();
    let mut used = 0;
    for command in hints::now(model) {
        let row = command.row();
        let key = model.keymap.key(command);
        if key.is_empty() {
            continue;
        }
        let (key, words) = (format!(" {key}"), format!(" {} ", row.hint));
        used += key.width() + words.width();
        if used > width {
            break;
        }
        spans.push(styled(theme, Role::Key, key));
        spans.push(styled(theme, Role::Text, words));
    }
    Line::from(spans)
}
