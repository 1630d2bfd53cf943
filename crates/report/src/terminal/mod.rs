//! Text pages for terminals, log files and mails, one per file. They are readable without colour
//! and never wider than the style allows, except for commands.

mod blocks;
mod graph;
mod grid;
mod live_load;
mod pages;
mod ping;
mod scan;
mod sparkline;
mod trend;
mod watch;

pub use crate::describe::comparison::MetricDetail;
pub use crate::describe::fleet::FleetDetail;
pub use crate::describe::plan::budget_line;
pub use live_load::{LiveLoad, RateAt, write_live_load};
pub use pages::{
    Detail, record_page, write_answers_again, write_commands, write_comparison, write_fleet,
    write_identity, write_plan, write_runs, write_verdict_again,
};
pub use ping::RequestLines;
pub use trend::write_trends;
pub use watch::{
    WatchFacts, hidden_processes_text, seek_method_text, write_watch_facts, write_watch_heading,
    write_watch_step,
};

use crate::text::{clean, columns, glue_units, wrap};

/// Prepares a message for a terminal. Hidden characters are spelled out, and lines wider than
/// `width` columns are broken between words. Without a width, as for files and pipes, lines stay
/// whole.
pub fn message(text: &str, width: Option<usize>) -> String {
    let mut lines = Vec::new();
    for raw_line in text.lines() {
        let line = clean(raw_line);
        match width {
            Some(width) if columns(&line) > width => {
                lines.extend(wrap(&glue_units(&line), width, width));
            }
            _ => lines.push(line),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_wraps_between_words_without_escapes() {
        let text = "a path \u{1b}[2J of 4 KiB\n   ^ here";
        assert_eq!(message(text, None), "a path \\u{1b}[2J of 4 KiB\n   ^ here");
        assert_eq!(
            message(text, Some(23)),
            "a path \\u{1b}[2J of\n4 KiB\n   ^ here"
        );
    }
}
