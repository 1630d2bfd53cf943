//! Why a command line is not carried out.

use crate::printer::ToolText;

/// Why a command line cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DropInError {
    /// The command line makes no sense; the text for stderr, with the tool's name.
    Usage(String),
    /// The same, with text for stdout.
    Printed(ToolText),
    /// The target does not fit; the text for stderr, with the tool's name.
    Target(String),
    /// The tool has an exit code of its own for this; the text for stderr.
    Code(u8, String),
}

impl DropInError {
    /// All that is printed, for stdout and stderr.
    pub fn text(&self) -> String {
        let ToolText { stdout, stderr } = self.printed();
        stdout + &stderr
    }

    /// What is printed.
    pub fn printed(&self) -> ToolText {
        match self {
            Self::Printed(text) => text.clone(),
            Self::Usage(text) | Self::Target(text) | Self::Code(_, text) => ToolText::err(text),
        }
    }
}
