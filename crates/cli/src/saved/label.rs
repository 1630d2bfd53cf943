//! The references to a run that are not files: labels, ids and `latest`.

use super::document::is_file;

/// Longer labels would not fit into a list.
const LABEL_MAX: usize = 40;
/// Names the newest run.
const LATEST: &str = "latest";

/// Checks a label: it must not look like anything else that names a run.
pub(crate) fn parse_label(text: &str) -> Result<String, String> {
    let wrong = match () {
        () if text.is_empty() => "is empty",
        () if text.chars().count() > LABEL_MAX => "is longer than 40 characters",
        () if text.contains(|c: char| c.is_control() || c == '/') => {
            "contains a slash or a control character"
        }
        () if text.trim() != text => "begins or ends with a space",
        () if text == LATEST || text.starts_with("latest~") => "already names the newest run",
        () if text == "-" || is_file(text) => "looks like a file",
        () if text.len() == 32 && is_hex(text) => "looks like the id of a run",
        () => return Ok(text.to_owned()),
    };
    Err(format!(
        "the label {wrong}. Use a word or two, such as before-upgrade"
    ))
}

/// How many runs before the newest; `Some(None)` when that is not a number.
pub(super) fn is_latest(reference: &str) -> Option<Option<u64>> {
    let back = reference.strip_prefix(LATEST)?;
    match back.strip_prefix('~') {
        Some(back) => Some(back.parse().ok()),
        None if back.is_empty() => Some(Some(0)),
        None => None,
    }
}

pub(super) fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_that_looks_like_another_reference_is_refused() {
        for label in ["before-upgrade", "2026", "cafe", "PM9A3 neu", "v1.2"] {
            assert_eq!(parse_label(label).as_deref(), Ok(label));
        }
        let id = "0123456789abcdef0123456789abcdef";
        for label in [
            "",
            "latest",
            "latest~1",
            "a.json",
            "a/b",
            "-",
            " x",
            "a\u{1b}b",
            id,
            &"x".repeat(41),
        ] {
            assert!(parse_label(label).is_err(), "{label}");
        }
    }

    #[test]
    fn latest_with_an_optional_number_names_the_newest_runs() {
        assert_eq!(
            (is_latest("latest"), is_latest("latest~2")),
            (Some(Some(0)), Some(Some(2)))
        );
        assert_eq!(
            (
                is_latest("latest~x"),
                is_latest("latest2"),
                is_latest("late")
            ),
            (Some(None), None, None)
        );
    }
}
