//! Helpers for the tests of the parsers.

use std::fmt::{Debug, Display};
use std::str::FromStr;

/// Parses a value; errors are text.
pub(super) fn parse<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse::<T>().map_err(|error| error.to_string())
}

/// Each value is rejected with an error that contains the second text.
pub(super) fn assert_rejected<T: FromStr<Err: Display> + Debug>(cases: &[(&str, &str)]) {
    for (text, part) in cases {
        let error = parse::<T>(text).expect_err(text);
        assert!(error.contains(part), "{text}: {error}");
    }
}
