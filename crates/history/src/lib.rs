//! Saved records. The only crate that knows SQL.
#![forbid(unsafe_code)]
