//! The error of all parsers, and the numbers that they share.

use diskproof_model::units::UnitError;

/// Why a value cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The form is wrong.
    #[error("'{text}' is not {what}")]
    Form {
        /// The value, as given.
        text: String,
        /// The expected form, with an example.
        what: &'static str,
    },
    /// The form is right, and the value is out of range.
    #[error("{0}")]
    Value(String),
    /// A quantity in it is wrong.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

/// The error for a value that is not `what`.
pub(super) fn wrong_form(text: &str, what: &'static str) -> ValueError {
    ValueError::Form {
        text: text.to_owned(),
        what,
    }
}

/// A finite number that is not negative, in plain digits.
pub(super) fn number(text: &str) -> Option<f64> {
    let is_plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse()
        .ok()
        .filter(|value: &f64| is_plain && value.is_finite())
}

/// A number with an optional % sign.
pub(super) fn percent(text: &str) -> Option<f64> {
    number(text.strip_suffix('%').unwrap_or(text).trim_end())
}
