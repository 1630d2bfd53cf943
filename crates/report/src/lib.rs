//! Pages and documents: one `Record` (or identity, plan, comparison) in, bytes out through `&mut
//! dyn Write`. Depends on the model only.
#![forbid(unsafe_code)]

pub mod ascii;
mod capacity;
pub mod chart;
pub mod csv;
mod describe;
pub mod fio_json;
#[cfg(test)]
mod fixture;
pub mod format;
pub mod formats;
pub mod gnuplot;
pub mod hlog;
pub mod html;
pub mod json;
mod labels;
pub mod markdown;
pub mod openmetrics;
mod page;
pub mod postgresql_conf;
mod schedulers;
pub mod share;
pub mod style;
pub mod svg;
pub mod terminal;
mod text;
mod tracked;

pub use describe::expectations::unmet_text;
pub use format::Examined;
