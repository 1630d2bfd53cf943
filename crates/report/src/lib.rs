//! Pages and documents: one `Record` (or identity, or plan) in, bytes out through `&mut dyn Write`.
//! Knows the model only: nothing of the terminal's size, of files, of how a figure was measured or a finding came about.
#![forbid(unsafe_code)]

pub mod chart;
pub mod html;
pub mod json;
mod page;
pub mod style;
pub mod svg;
pub mod terminal;
mod text;
pub mod verdict;
