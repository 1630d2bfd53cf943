//! Text pages, for terminals, log files and mails: readable without colour, never wider than the style says (commands apart).
//! A page per file; what they share is how the model's enums are said in words.

mod commands;
mod figures;
mod identity;
mod plan;
mod record;
mod subject;
mod words;

pub use commands::write_commands;
pub use identity::write_identity;
pub use plan::{budget_line, write_plan};
pub use record::write_record;
