//! Foreign text made safe to print, measured in terminal columns, and broken into lines.

use textwrap::WordSeparator;
use textwrap::core::{Word, break_words};
use textwrap::wrap_algorithms::wrap_first_fit;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A space at which no line may break; printed as a space.
const GLUE: char = '\u{a0}';
/// Longer phrases may break: unbroken they would leave half of a narrow line empty.
const GLUE_COLUMNS_MAX: usize = 32;

/// True if a character acts on the terminal or on the text around it instead of being visible:
/// control characters (C0, C1, DEL), line and paragraph separators, zero-width characters, the
/// marks that reverse the direction of text (CVE-2021-42574) and invisible tags.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        )
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text with every hidden character spelled out, as `\n` or `\u{1b}`: a device's name must not
/// move the cursor.
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            clean.extend(c.escape_default())
        } else {
            clean.push(c)
        }
    }
    clean
}

/// The width of a text on a terminal, in columns.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// The text as one word, so that `4 GiB` never stands on two lines.
pub(crate) fn glue(text: &str) -> String {
    if columns(text) > GLUE_COLUMNS_MAX {
        text.to_owned()
    } else {
        text.replace(' ', &GLUE.to_string())
    }
}

/// Phrases, each glued, joined with commas.
pub(crate) fn list<T: AsRef<str>>(phrases: impl IntoIterator<Item = T>) -> String {
    let glued: Vec<String> = phrases
        .into_iter()
        .map(|phrase| glue(phrase.as_ref()))
        .collect();
    glued.join(", ")
}

/// Texts joined as they are; `None` without any.
pub(crate) fn joined(texts: impl IntoIterator<Item = String>, gap: &str) -> Option<String> {
    let all: Vec<String> = texts.into_iter().collect();
    if all.is_empty() {
        return None;
    }
    Some(all.join(gap))
}

/// A decimal number without trailing zeros.
pub(crate) fn trimmed(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

/// Groups values by key, the keys in the order in which they occur first.
pub(crate) fn grouped<K: PartialEq, V>(
    pairs: impl IntoIterator<Item = (K, V)>,
) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// Each value once, in the order in which they occur first.
pub(crate) fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for value in values {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// Units that follow a number after a space.
const UNITS: [&str; 21] = [
    "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "PiB", "kB/s", "MB/s", "GB/s", "ns",
    "µs", "ms", "s", "min", "h", "%", "times",
];

/// Running text in which no line breaks between a number and its unit.
pub(crate) fn glue_units(text: &str) -> String {
    let mut glued = String::with_capacity(text.len());
    for word in text.split(' ') {
        let unit = word.trim_end_matches(['.', ',', ';', ':', ')']);
        let after_number = glued.ends_with(|c: char| c.is_ascii_digit());
        if !glued.is_empty() {
            let is_unit = after_number && UNITS.contains(&unit);
            glued.push(if is_unit { GLUE } else { ' ' });
        }
        glued.push_str(word);
    }
    glued
}

/// Breaks text at spaces into lines: the first takes at most `first` columns, the others `rest`.
/// Cuts a word that is wider than `rest`. Never empty; linear in the length of the text.
pub(crate) fn wrap(text: &str, first: usize, rest: usize) -> Vec<String> {
    let words = WordSeparator::AsciiSpace.find_words(text);
    let mut words = break_words(words.filter(|word| !word.is_empty()), rest);
    if first < rest {
        // Without it a word that fits only the later lines would overflow the first one.
        words.insert(0, Word::from(""));
    }
    for word in &mut words {
        // One space between words, however many the text has.
        word.whitespace = if word.is_empty() { "" } else { " " };
    }
    wrap_first_fit(&words, &[first as f64, rest as f64])
        .into_iter()
        .map(line_text)
        .collect()
}

fn line_text(words: &[Word<'_>]) -> String {
    let filled: Vec<&str> = words
        .iter()
        .map(|word| word.word)
        .filter(|word| !word.is_empty())
        .collect();
    // A glued phrase that was cut may end or begin with its glue.
    filled.join(" ").replace(GLUE, " ").trim().to_owned()
}

/// The text, cut with `…` at its end if it takes more than `most` columns.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    format!("{}…", &text[..fitting(text, most.saturating_sub(1).max(1))])
}

/// Length in bytes of the longest beginning of `word` that takes at most `room` columns; at least
/// one character.
fn fitting(word: &str, room: usize) -> usize {
    let mut taken = 0;
    for (index, c) in word.char_indices() {
        taken += c.width().unwrap_or(0);
        if taken > room && index > 0 {
            return index;
        }
    }
    word.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_spelled_out() {
        let spelled = clean("a\u{1b}]0;owned\u{7}\r\nb\u{9b}2J\u{202e}");
        assert_eq!(spelled, "a\\u{1b}]0;owned\\u{7}\\r\\nb\\u{9b}2J\\u{202e}");
        assert_eq!(clean("WD–Blue ±µ≤× 硬盘"), "WD–Blue ±µ≤× 硬盘");
    }

    #[test]
    fn wrap_breaks_at_spaces_and_cuts_long_words() {
        assert_eq!(wrap("one two three", 7, 7), ["one two", "three"]);
        assert_eq!(wrap("one two three", 3, 9), ["one", "two three"]);
        assert_eq!(
            wrap("/a/very/long/path", 6, 6),
            ["/a/ver", "y/long", "/path"]
        );
        let glued = format!("holds {} now", glue("4 GiB"));
        assert_eq!(wrap(&glued, 9, 9), ["holds", "4 GiB now"]);
        assert_eq!(wrap("硬盘硬盘", 5, 5), ["硬盘", "硬盘"]);
        assert_eq!(wrap("", 5, 5), [""]);
    }

    /// The old wrapping moved the rest of a word for every line that it cut: 1 MB took 40 s and
    /// 6.7 GB, and these inputs would take hours. No clock is needed to tell the two apart.
    #[test]
    fn wrap_is_linear_for_long_words_and_for_many_words() {
        const WIDTH: usize = 71;
        let word = "x".repeat(16 << 20);
        let lines = wrap(&word, WIDTH, WIDTH);
        assert_eq!(lines.len(), word.len().div_ceil(WIDTH));
        assert_eq!(lines.concat(), word);
        let held: usize = lines.iter().map(String::capacity).sum();
        assert!(held <= 2 * word.len(), "{held} bytes for {}", word.len());
        let words = "ab ".repeat(1_000_000);
        let lines = wrap(&words, WIDTH, WIDTH);
        assert_eq!(lines.len(), 1_000_000_usize.div_ceil((WIDTH + 1) / 3));
    }

    #[test]
    fn wrap_keeps_numbers_and_units_together() {
        let text = glue_units("the disk moved 4.5 GiB more (1948 %), in 91 s a day");
        let lines = [
            "the disk moved",
            "4.5 GiB more",
            "(1948 %), in 91 s",
            "a day",
        ];
        assert_eq!(wrap(&text, 17, 17), lines);
    }

    #[test]
    fn wrap_leaves_a_narrow_first_line_empty() {
        assert_eq!(wrap("abcdef", 3, 6), ["", "abcdef"]);
    }
}
