//! Turns clauses into sentences, sentences into clauses, and names into an enumeration.

/// A sentence that begins with a small letter, to follow a colon or a comma.
pub(crate) fn uncapitalised(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().to_string() + letters.as_str(),
        None => String::new(),
    }
}

/// A clause as a sentence, with its capital letter and its period.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => String::new(),
    }
}

/// `a, b and c`; empty for no names.
pub(crate) fn enumerated<T: AsRef<str>>(names: &[T]) -> String {
    let Some((last, others)) = names.split_last() else {
        return String::new();
    };
    if others.is_empty() {
        return last.as_ref().to_owned();
    }
    let others: Vec<&str> = others.iter().map(AsRef::as_ref).collect();
    format!("{} and {}", others.join(", "), last.as_ref())
}
