//! Why a job file cannot be used.

/// What an error quotes of a long line, so that the message after it stays visible.
const QUOTED_CHARS_MAX: usize = 60;

/// Why a job file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {text}", at_line(*.line))]
pub struct JobFileError {
    /// The file, which may be an included one.
    pub file: String,
    /// Line, from 1; 0 for an option of the command line.
    pub line: usize,
    /// What is wrong, and what to do.
    pub text: String,
}

fn at_line(line: usize) -> String {
    match line {
        0 => String::new(),
        line => format!(": line {line}"),
    }
}

/// Text of the file for an error message, shortened where it is long.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
