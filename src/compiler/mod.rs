//! From policy text to SQL objects: lexer, parser, resolver, model, lints, emitter. No input or output happens here,
//! and nothing here knows a terminal, a runtime or a database driver.

pub mod diagnostic;
pub mod emit;
pub mod ident;
pub mod model;
pub mod objects;
pub mod span;
