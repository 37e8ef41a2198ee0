//! Everything that talks to a server: connecting, the embedded server, planning and applying a policy, verifying the
//! index, asking who can see what. It uses the compiler and knows nothing of the console.

pub mod apply;
pub mod as_role;
pub mod build;
pub mod cancel;
pub mod catalog;
pub mod children;
pub mod compat;
pub mod config;
pub mod connect;
pub mod coverage;
pub mod demo;
pub mod drift;
pub mod embedded;
pub mod error;
pub mod facts;
pub mod inspect;
pub mod kept;
pub mod keys;
pub mod lint;
pub mod overview;
mod passfile;
pub mod plan;
pub mod policy_tests;
pub mod progress;
mod refusals;
pub mod secret;
pub mod server_info;
pub mod sessions;
pub mod tables;
pub mod target;
pub mod tls;
pub mod try_it;
pub mod verify;
pub mod why;
