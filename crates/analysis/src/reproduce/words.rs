//! Helps to build the command lines of all tools: words that depend on a condition, and the warning
//! at the end of a line that destroys data.

/// The warning at the end of a line that destroys data. A shell takes it for a comment. A shell
/// that does not passes it to fio as job files, and fio stops before it writes.
pub(super) const OVERWRITE_WARNING: &str = "# overwrites the content of the target";

/// The words whose conditions are true.
pub(super) fn words_if<const N: usize>(words: [(bool, &str); N]) -> Vec<String> {
    let mut given = Vec::new();
    for (is_given, word) in words {
        if is_given {
            given.push(word.to_owned());
        }
    }
    given
}
