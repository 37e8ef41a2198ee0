//! The frame of every screen: where we are, the screens, the newest message, the keys that matter now.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::hints;
use super::widgets::{duration, lines, styled};
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
    lines(frame, row(last - 1), vec![notice(model, theme, usize::from(area.width))]);
    lines(frame, row(last), vec![keys(model, theme, usize::from(area.width))]);
    Rect { x: area.x, y: area.y + 2, width: area.width, height: area.height.saturating_sub(4) }
}

/// A piece of the header: how soon it may be left out where there is no room (0: never), its role and its words.
struct Piece(u8, Role, String);

fn header(model: &Model, theme: &Theme, width: usize) -> Line<'static> {
    let mut pieces = vec![Piece(1, Role::Header, model.target.clone())];
    match &model.link {
        Link::Unused => pieces.push(Piece(0, Role::Header, "no database".into())),
        Link::Connecting => pieces.push(Piece(0, Role::Header, "connecting ...".into())),
        Link::Up(facts) => pieces.extend(facts_pieces(facts)),
        Link::Down { last, since, reason, tries, retry_at } => {
            let age = duration(model.clock.saturating_sub(*since).as_secs_f64());
            let old = if last.is_some() { ", data is that old" } else { "" };
            pieces.push(Piece(0, Role::Danger, format!("NOT CONNECTED for {age}{old}")));
            if let Some(at) = retry_at {
                let wait = duration(at.saturating_sub(model.clock).as_secs_f64());
                pieces.push(Piece(2, Role::Header, format!("try {} in {wait}", tries + 1)));
            }
            if let Some(facts) = last {
                pieces.extend(facts_pieces(facts));
            }
            pieces.push(Piece(3, Role::Header, reason.clone()));
        }
    }
    if model.production {
        pieces.insert(1, Piece(0, Role::Danger, "PRODUCTION".into()));
    }
    if model.read_only {
        pieces.push(Piece(0, Role::Header, "READ-ONLY".into()));
    }
    fit(theme, pieces, width)
}

fn facts_pieces(facts: &Facts) -> Vec<Piece> {
    let mut pieces = vec![
        Piece(5, Role::Header, facts.server.clone()),
        Piece(0, Role::Header, format!("db {}", facts.database)),
        Piece(0, Role::Header, format!("role {}", facts.role)),
    ];
    pieces.extend(facts.dangers.iter().map(|danger| Piece(0, Role::Danger, danger.clone())));
    pieces.push(Piece(0, Role::Header, format!("PG {}", facts.version)));
    pieces.push(match &facts.policy {
        Some(policy) => Piece(0, Role::Header, format!("{} v{}", policy.name, policy.version)),
        None => Piece(0, Role::Header, "no policy".into()),
    });
    pieces.push(Piece(4, Role::Header, facts.tls.clone()));
    if facts.development {
        pieces.push(Piece(6, Role::Header, "development database".into()));
    }
    pieces
}

/// Leaves out what may be left out, the least important first, until the rest fits; then cuts.
fn fit(theme: &Theme, mut pieces: Vec<Piece>, width: usize) -> Line<'static> {
    pieces.retain(|piece| !piece.2.is_empty());
    let total = |pieces: &[Piece]| pieces.iter().map(|piece| piece.2.width() + 3).sum::<usize>();
    while total(&pieces) > width + 1 {
        let least = pieces.iter().enumerate().max_by_key(|(_, piece)| piece.0).map(|(at, piece)| (at, piece.0));
        match least {
            Some((at, rank)) if rank > 0 => {
                pieces.remove(at);
            }
            _ => break,
        }
    }
    let mut spans = vec![styled(theme, Role::Header, " ")];
    for (at, piece) in pieces.into_iter().enumerate() {
        if at > 0 {
            spans.push(styled(theme, Role::Header, " · "));
        }
        spans.push(styled(theme, piece.1, crate::text::line(&piece.2).into_owned()));
    }
    Line::from(spans)
}

fn screens(model: &Model, theme: &Theme, width: usize) -> Line<'static> {
    let mut spans: Vec<Span> = Vec::new();
    let narrow = width < 70;
    for (at, screen) in Screen::ALL.iter().enumerate() {
        let title = if narrow { screen.title().chars().take(3).collect() } else { screen.title().to_owned() };
        let label = format!(" {} {title} ", at + 1);
        let role = if *screen == model.screen { Role::Selected } else { Role::Text };
        spans.push(styled(theme, role, label));
    }
    if model.screen == Screen::Help {
        spans.push(styled(theme, Role::Selected, " Help "));
    }
    if !model.jobs.is_empty() {
        let words: Vec<&str> = model.jobs.iter().map(|job| super::job_word(*job)).collect();
        spans.push(styled(theme, Role::Warn, format!("  {}", words.join(", "))));
    }
    Line::from(spans)
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
        let (key, words) = (format!(" {}", command.key()), format!(" {} ", row.hint));
        used += key.width() + words.width();
        if used > width {
            break;
        }
        spans.push(styled(theme, Role::Key, key));
        spans.push(styled(theme, Role::Text, words));
    }
    Line::from(spans)
}
