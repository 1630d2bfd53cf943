//! Why a command line is not carried out.

/// Why a command line cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DropInError {
    /// The command line makes no sense; the text for stderr, with the tool's name.
    Usage(String),
    /// The target does not fit; the text for stderr, with the tool's name.
    Target(String),
}

impl DropInError {
    /// The text for stderr.
    pub fn text(&self) -> &str {
        match self {
            Self::Usage(text) | Self::Target(text) => text,
        }
    }
}
