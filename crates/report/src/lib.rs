//! Pages and documents: a record, a comparison, a fleet or a plan in, bytes out through `&mut dyn
//! Write`. `describe` decides what a page says, as blocks; `terminal`, `html` and `markdown` lay
//! blocks out. `chart` makes charts, which `svg`, `html`, `gnuplot` and `terminal` draw. Each other
//! format has a file, and `formats` lists all of them. Depends on the model only.
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
mod forum_post;
pub mod gnuplot;
pub mod hlog;
pub mod html;
pub mod json;
mod labels;
pub mod markdown;
pub mod openmetrics;
mod page;
mod percentiles;
pub mod postgresql_conf;
mod schedulers;
mod server_versions;
pub mod style;
pub mod svg;
pub mod terminal;
mod text;
mod tracked;

pub use describe::expectations::unmet_text;
pub use format::Examined;
