//! rowdeck: authorization inside PostgreSQL.
//!
//! A policy file says who can do what. [`compiler`] turns it into SQL (views, row-level security policies, triggers,
//! functions) without doing any input or output; [`db`] plans, applies, verifies and inspects it on a server;
//! [`bench`] measures it; [`app`] and [`views`] are the console; [`cli`] is the same actions without a screen,
//! and [`lsp`] answers editors.
//!
//! Who may use whom is checked by `tests/layering.rs`; `docs/ARCHITECTURE.md` says why.

pub mod app;
pub mod bench;
pub mod cli;
pub mod compiler;
pub mod db;
pub mod lsp;
pub mod policy_file;
pub mod policy_text;
pub mod text;
pub mod views;
