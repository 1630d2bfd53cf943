//! Why a job file cannot be used.

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
