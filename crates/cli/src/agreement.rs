//! Asks the user to agree to what changes more than a target: `--yes` agrees, else an answer on the
//! terminal does.

use crate::failure::Failure;
use crate::stdio::{Verbosity, eprint_line};
use std::io::{self, IsTerminal};

/// Who answers for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// `--yes` was given.
    Given,
    /// The user has to answer on the terminal.
    Asked,
}

impl Agreement {
    /// The agreement that the flag `--yes` gives, or leaves to the terminal.
    pub(crate) fn from_yes_flag(yes: bool) -> Self {
        if yes { Self::Given } else { Self::Asked }
    }
}

/// Has the user agree to what the notice says, unless `--yes` has. The question says what is to be
/// done, and ends with a question mark. Fails unless the answer is yes.
pub(crate) fn agree(
    notice: &str,
    question: &str,
    agreement: Agreement,
    verbosity: Verbosity,
) -> Result<(), Failure> {
    if agreement == Agreement::Given {
        verbosity.note(notice);
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::Unconfirmed(format!(
            "this run needs your word; add --yes to agree. {notice}"
        )));
    }
    // The user may think for longer than an inspection may take; the gate begins its time anew.
    crate::inspection::end();
    eprint_line(notice);
    eprint_line(&format!("{question} Type 'yes' to agree."));
    let mut answer = String::new();
    // An answer that cannot be read is no consent.
    let _ = io::stdin().read_line(&mut answer);
    if answer.trim().eq_ignore_ascii_case("yes") {
        Ok(())
    } else {
        Err(Failure::Unconfirmed("nothing was changed".to_owned()))
    }
}
