//! Text pages, for terminals, log files and mails: readable without colour, never wider than the
//! style says (commands apart). A page per file; what they share is how the model's enums are said
//! in words.

mod commands;
pub(crate) mod compare;
pub(crate) mod figures;
mod graph;
pub(crate) mod health;
pub(crate) mod identity;
mod plan;
pub(crate) mod record;
mod runs;
pub(crate) mod subject;
pub(crate) mod surface;
pub(crate) mod words;

pub use commands::write_commands;
pub use compare::{MetricDetail, write_comparison};
pub use identity::write_identity;
pub use plan::{budget_line, write_plan};
pub use record::write_record;
pub use runs::write_runs;

use crate::text::{clean, columns, glue_units, wrap};

/// A message as it may be shown to people: hidden characters spelled out, and lines that are wider
/// than `width` columns broken between words. Without a width, for files and pipes, lines stay
/// whole.
pub fn message(text: &str, width: Option<usize>) -> String {
    let shown = text.lines().map(|line| match (clean(line), width) {
        (line, Some(width)) if columns(&line) > width => {
            wrap(&glue_units(&line), width, width).join("\n")
        }
        (line, _) => line,
    });
    shown.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_broken_only_where_they_must_and_never_act_on_the_terminal() {
        let text = "a path \u{1b}[2J of 4 KiB\n   ^ here";
        assert_eq!(message(text, None), "a path \\u{1b}[2J of 4 KiB\n   ^ here");
        assert_eq!(
            message(text, Some(23)),
            "a path \\u{1b}[2J of\n4 KiB\n   ^ here"
        );
    }
}
