//! The language server: what the console knows of a policy, for any editor. It speaks over stdin and stdout, has one
//! thread, and answers from the newest text; findings are sent when nothing waits to be read.

mod complete;
mod features;
mod position;
mod project;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::{self, Notification as _};
use lsp_types::request::{self, Request as _};
use lsp_types::{
    CompletionOptions, DiagnosticSeverity, HoverProviderCapability, OneOf, PublishDiagnosticsParams,
    ServerCapabilities, TextDocumentSyncCapability, TextDocumentSyncKind, Uri,
};
use serde::de::DeserializeOwned;

use crate::compiler::diagnostic::{Diagnostic, Severity};
use position::Lines;
use project::{Documents, Project};

/// Serves one editor until it leaves. Gives the exit code: 0 after a shutdown, 1 when the editor just went away.
///
/// # Errors
/// When what it sends is not the protocol, in one sentence.
pub fn serve() -> Result<u8, String> {
    // Deep policies take more stack than a thread has by itself.
    let thread = std::thread::Builder::new().name("lsp".into()).stack_size(16 << 20).spawn(on_stdio);
    let thread = thread.map_err(|e| format!("cannot start: {e}"))?;
    thread.join().unwrap_or_else(|_| Err("the language server failed, which is a mistake of ours".to_owned()))
}

fn on_stdio() -> Result<u8, String> {
    let (connection, threads) = Connection::stdio();
    let ended = on_connection(connection);
    // The reader has ended by an exit, by the end of its input, or by garbage; the writer ends with the connection.
    threads.join().map_err(|e| format!("what the editor sends is not the language server protocol: {e}"))?;
    ended
}

/// Serves an editor on this connection.
///
/// # Errors
/// When it does not keep to the protocol.
pub fn on_connection(connection: Connection) -> Result<u8, String> {
    let capabilities = serde_json::to_value(capabilities()).map_err(|e| e.to_string())?;
    if connection.initialize(capabilities).is_err() {
        // Nobody asked anything; whether it was garbage, the reader says.
        return Ok(1);
    }
    let mut server = Server { documents: Documents::default(), projects: BTreeMap::new(), told: BTreeSet::new() };
    let mut changed = false;
    loop {
        if changed && connection.receiver.is_empty() {
            changed = false;
            for message in server.findings() {
                if connection.sender.send(message).is_err() {
                    return Ok(1);
                }
            }
        }
        let Ok(message) = connection.receiver.recv() else { return Ok(1) };
        match message {
            Message::Request(request) => {
                if request.method == request::Shutdown::METHOD {
                    return Ok(u8::from(!connection.handle_shutdown(&request).unwrap_or(false)));
                }
                let response = server.answer(request);
                if connection.sender.send(response.into()).is_err() {
                    return Ok(1);
                }
            }
            Message::Notification(told) if told.method == notification::Exit::METHOD => return Ok(1),
            Message::Notification(told) => changed |= server.take(told),
            Message::Response(_) => {}
        }
    }
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::FULL)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some([".", "#", ":", "$", " "].map(str::to_owned).to_vec()),
            ..CompletionOptions::default()
        }),
        ..ServerCapabilities::default()
    }
}

struct Server {
    documents: Documents,
    /// What was worked out since the last change, by the main file.
    projects: BTreeMap<PathBuf, Rc<Project>>,
    /// The documents that were sent findings.
    told: BTreeSet<String>,
}

/// The arguments of a request.
fn arguments<T: DeserializeOwned>(params: serde_json::Value) -> Result<T, String> {
    serde_json::from_value(params).map_err(|e| e.to_string())
}

fn json(value: impl serde::Serialize) -> Result<serde_json::Value, String> {
    serde_json::to_value(value).map_err(|e| e.to_string())
}

impl Server {
    /// Takes what the editor tells; whether texts changed.
    fn take(&mut self, told: Notification) -> bool {
        match told.method.as_str() {
            notification::DidOpenTextDocument::METHOD => {
                let Ok(params) = arguments::<lsp_types::DidOpenTextDocumentParams>(told.params) else { return false };
                self.documents.set(params.text_document.uri.as_str(), params.text_document.text);
            }
            notification::DidChangeTextDocument::METHOD => {
                let Ok(params) = arguments::<lsp_types::DidChangeTextDocumentParams>(told.params) else { return false };
                // Each change is the whole text, as was agreed; the last one counts.
                let Some(last) = params.content_changes.into_iter().next_back() else { return false };
                self.documents.set(params.text_document.uri.as_str(), last.text);
            }
            notification::DidCloseTextDocument::METHOD => {
                let Ok(params) = arguments::<lsp_types::DidCloseTextDocumentParams>(told.params) else { return false };
                self.documents.close(params.text_document.uri.as_str());
            }
            // Included files that are not open, and rowdeck.toml, may have changed with it.
            notification::DidSaveTextDocument::METHOD => {}
            _ => return false,
        }
        self.projects.clear();
        true
    }

    /// Answers a request. A failure of ours is that request's alone.
    fn answer(&mut self, request: Request) -> Response {
        let Request { id, method, params } = request;
        match catch_unwind(AssertUnwindSafe(|| self.result(&method, params))) {
            Ok(Some(Ok(result))) => Response::new_ok(id, result),
            Ok(Some(Err(why))) => Response::new_err(id, ErrorCode::InvalidParams as i32, why),
            Ok(None) => Response::new_err(id, ErrorCode::MethodNotFound as i32, format!("{method} is not known here")),
            Err(_) => Response::new_err(id, ErrorCode::InternalError as i32, "a mistake of ours".to_owned()),
        }
    }

    fn result(&mut self, method: &str, params: serde_json::Value) -> Option<Result<serde_json::Value, String>> {
        Some(match method {
            request::HoverRequest::METHOD => arguments::<lsp_types::HoverParams>(params)
                .and_then(|params| json(self.at(&params.text_document_position_params, features::hover))),
            request::GotoDefinition::METHOD => arguments::<lsp_types::GotoDefinitionParams>(params)
                .and_then(|params| json(self.at(&params.text_document_position_params, features::definition))),
            request::References::METHOD => arguments::<lsp_types::ReferenceParams>(params).and_then(|params| {
                let declared = params.context.include_declaration;
                json(self.at(&params.text_document_position, |project, file, at| {
                    features::references(project, file, at, declared)
                }))
            }),
            request::Completion::METHOD => arguments::<lsp_types::CompletionParams>(params)
                .and_then(|params| json(self.at(&params.text_document_position, complete::complete))),
            request::DocumentSymbolRequest::METHOD => {
                arguments::<lsp_types::DocumentSymbolParams>(params).and_then(|params| {
                    let project = self.project(params.text_document.uri.as_str());
                    json(project.map(|(project, file)| features::symbols(&project, file)))
                })
            }
            request::Formatting::METHOD => {
                arguments::<lsp_types::DocumentFormattingParams>(params).and_then(|params| {
                    json(self.documents.text(params.text_document.uri.as_str()).and_then(features::formatted))
                })
            }
            _ => return None,
        })
    }

    /// Asks about a place of a document that is open.
    fn at<T>(
        &mut self,
        place: &lsp_types::TextDocumentPositionParams,
        ask: impl FnOnce(&Project, crate::compiler::span::FileId, usize) -> Option<T>,
    ) -> Option<T> {
        let (project, file) = self.project(place.text_document.uri.as_str())?;
        let text = &project.analysis.compiled.sources.file(file)?.text;
        let at = Lines::of(text).offset(place.position);
        ask(&project, file, at)
    }

    /// The policy a document belongs to, and which of its files it is.
    fn project(&mut self, uri: &str) -> Option<(Rc<Project>, crate::compiler::span::FileId)> {
        let path = self.documents.path(uri)?;
        if let Some(found) = self.projects.values().find_map(|p| Some((p.clone(), p.file(&path)?))) {
            return Some(found);
        }
        let project = Rc::new(Project::of(&self.documents, &path));
        let file = project.file(&path)?;
        self.projects.insert(project.root.clone(), project.clone());
        Some((project, file))
    }

    /// The findings of every open document's policy, and nothing for documents that have none any more.
    fn findings(&mut self) -> Vec<Message> {
        let mut all: BTreeMap<String, Vec<lsp_types::Diagnostic>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for uri in self.documents.open() {
            let compiled = catch_unwind(AssertUnwindSafe(|| self.project(&uri)));
            let Ok(Some((project, _))) = compiled else { continue };
            all.entry(uri).or_default();
            if seen.insert(project.root.clone()) {
                for (uri, found) in project_findings(&project, &self.documents) {
                    all.entry(uri).or_default().extend(found);
                }
            }
        }
        let gone: Vec<String> = self.told.iter().filter(|uri| !all.contains_key(*uri)).cloned().collect();
        self.told = all.keys().cloned().collect();
        let messages = all.into_iter().chain(gone.into_iter().map(|uri| (uri, Vec::new())));
        messages.filter_map(|(uri, diagnostics)| published(&uri, diagnostics)).collect()
    }
}

fn published(uri: &str, diagnostics: Vec<lsp_types::Diagnostic>) -> Option<Message> {
    let uri: Uri = uri.parse().ok()?;
    let params = PublishDiagnosticsParams { uri, diagnostics, version: None };
    Some(Notification::new(notification::PublishDiagnostics::METHOD.to_owned(), params).into())
}

fn project_findings(project: &Project, documents: &Documents) -> Vec<(String, Vec<lsp_types::Diagnostic>)> {
    let sources = &project.analysis.compiled.sources;
    project
        .files()
        .filter_map(|(file, path)| {
            let lines = Lines::of(&sources.file(file)?.text);
            let here = project.analysis.found.iter().filter(|found| found.span.file == file);
            Some((documents.uri(path), here.map(|found| finding(found, &lines)).collect()))
        })
        .collect()
}

fn finding(found: &Diagnostic, lines: &Lines<'_>) -> lsp_types::Diagnostic {
    let help = found.help.as_ref().map_or_else(String::new, |help| format!("\n{help}"));
    lsp_types::Diagnostic {
        range: lines.range(found.span),
        severity: Some(match found.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
            Severity::Info => DiagnosticSeverity::INFORMATION,
        }),
        code: Some(lsp_types::NumberOrString::String(found.code.to_string())),
        source: Some("rowdeck".to_owned()),
        message: format!("{}{help}", found.message),
        ..lsp_types::Diagnostic::default()
    }
}
