//! Every I/O engine on a real scratch file: counts, bytes, spans and limits must be exact. These
//! tests do not check speed.
#![allow(clippy::unwrap_used)] // a failed step fails the test

mod counts;
mod limits;
#[path = "../support/mod.rs"]
mod support;
mod verify;
