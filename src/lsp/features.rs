//! What is under the cursor, and where it is declared and used.

use lsp_types::{
    DocumentSymbol, GotoDefinitionResponse, Hover, HoverContents, Location, MarkupContent, MarkupKind, SymbolKind,
    TextEdit,
};

use super::position::Lines;
use super::project::Project;
use crate::compiler::codes;
use crate::compiler::outline::{OutlineItem, OutlineKind, outline};
use crate::compiler::span::{FileId, Span};
use crate::compiler::symbols::Symbol;

fn covers(span: Span, file: FileId, at: usize) -> bool {
    span.file == file && span.start as usize <= at && at <= span.end as usize
}

/// What the name at a place names, and where that name stands.
fn named(project: &Project, file: FileId, at: usize) -> Option<(Vec<&Symbol>, Span)> {
    let span = project.names.iter().find(|name| covers(name.span, file, at))?.span;
    let here = project.names.iter().filter(|name| name.span == span);
    Some((here.map(|name| &name.symbol).collect(), span))
}

pub(super) fn hover(project: &Project, file: FileId, at: usize) -> Option<Hover> {
    let sources = &project.analysis.compiled.sources;
    let lines = Lines::of(&sources.file(file)?.text);
    let shown = |words: String, span: Span| Hover {
        contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value: words }),
        range: Some(lines.range(span)),
    };
    if let Some((symbols, span)) = named(project, file, at) {
        let declared: Vec<String> = project
            .names
            .iter()
            .filter(|name| name.declares && symbols.contains(&&name.symbol))
            .filter_map(|name| {
                let line = sources.places(name.span).0.line;
                let written = sources.file(name.span.file)?.text.lines().nth(line - 1)?.trim();
                Some(match &name.symbol {
                    Symbol::Member(ty, _) => format!("type {ty}\n  {written}"),
                    _ => written.to_owned(),
                })
            })
            .collect();
        if !declared.is_empty() {
            return Some(shown(format!("```authz\n{}\n```", declared.join("\n")), span));
        }
    }
    let found = project.analysis.found.iter().find(|found| covers(found.span, file, at))?;
    let page = codes::by_number(found.code.0)?;
    Some(shown(format!("**{}**: {}\n\n{}", page.name(), page.title, page.help), found.span))
}

fn locations(project: &Project, spans: impl Iterator<Item = Span>) -> Vec<Location> {
    spans
        .filter_map(|span| {
            let text = &project.analysis.compiled.sources.file(span.file)?.text;
            Some(Location::new(project.uri(span.file)?, Lines::of(text).range(span)))
        })
        .collect()
}

pub(super) fn definition(project: &Project, file: FileId, at: usize) -> Option<GotoDefinitionResponse> {
    let (symbols, _) = named(project, file, at)?;
    let declared = project.names.iter().filter(|name| name.declares && symbols.contains(&&name.symbol));
    Some(GotoDefinitionResponse::Array(locations(project, declared.map(|name| name.span))))
}

pub(super) fn references(project: &Project, file: FileId, at: usize, declared: bool) -> Option<Vec<Location>> {
    let (symbols, _) = named(project, file, at)?;
    let mut spans: Vec<Span> = project
        .names
        .iter()
        .filter(|name| symbols.contains(&&name.symbol) && (declared || !name.declares))
        .map(|name| name.span)
        .collect();
    spans.sort_by_key(|span| (span.file, span.start));
    spans.dedup();
    Some(locations(project, spans.into_iter()))
}

pub(super) fn symbols(project: &Project, file: FileId) -> Vec<DocumentSymbol> {
    let Some(source) = project.analysis.compiled.sources.file(file) else { return Vec::new() };
    let lines = Lines::of(&source.text);
    let items = outline(&project.analysis.compiled.ast);
    items.iter().filter(|item| item.span.file == file).map(|item| symbol(item, &lines)).collect()
}

#[allow(deprecated, reason = "the type has no other constructor")]
fn symbol(item: &OutlineItem, lines: &Lines<'_>) -> DocumentSymbol {
    let own = lines.range(item.span);
    let children: Vec<DocumentSymbol> = item.children.iter().map(|child| symbol(child, lines)).collect();
    let mut range = own;
    if let Some(last) = children.iter().map(|child| child.range.end).max() {
        range.end = range.end.max(last);
    }
    DocumentSymbol {
        // An empty name is refused by editors.
        name: if item.name.is_empty() { "?".to_owned() } else { item.name.clone() },
        detail: None,
        kind: match item.kind {
            OutlineKind::Type => SymbolKind::CLASS,
            OutlineKind::Relation => SymbolKind::FIELD,
            OutlineKind::Permission => SymbolKind::METHOD,
            OutlineKind::Caveat => SymbolKind::BOOLEAN,
            OutlineKind::Scope => SymbolKind::ENUM,
            OutlineKind::Rules => SymbolKind::MODULE,
            OutlineKind::Rule => SymbolKind::PROPERTY,
            OutlineKind::Invariants => SymbolKind::CONSTANT,
            OutlineKind::Test => SymbolKind::FUNCTION,
        },
        tags: None,
        deprecated: None,
        range,
        selection_range: own,
        children: Some(children),
    }
}

/// The one edit that sets a text; `None` where it cannot be read, which its findings say.
pub(super) fn formatted(text: &str) -> Option<Vec<TextEdit>> {
    let set = crate::compiler::format::format(text).ok()?;
    if set == text {
        return Some(Vec::new());
    }
    Some(vec![TextEdit::new(Lines::of(text).whole(), set)])
}
