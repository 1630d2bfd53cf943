//! Elements that several sections use. Every text from a record or a device passes [`shown`] or
//! [`shown_whole`], which make hidden characters visible; maud escapes all texts.

use crate::text::{clean, glue_units};
use maud::{Markup, html};

/// Longer foreign texts are cut on the page, and their length is stated; the record holds them
/// whole.
const SHOWN_CHARS_MAX: usize = 300;
/// Our own texts that are longer hold foreign ones of an absurd length. A list of some hundred
/// workloads, and the reason after it, is shorter.
const SENTENCES_CHARS_MAX: usize = 8000;

/// Foreign text for the page: hidden characters spelled out, an absurd length cut.
pub(super) fn shown(text: &str) -> String {
    let chars = text.chars().count();
    if chars <= SHOWN_CHARS_MAX {
        return clean(text);
    }
    let start: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    format!("{}… ({chars} characters)", clean(&start))
}

/// Our own sentences, whose end may qualify their beginning. They may hold foreign names: hidden
/// characters are spelled out, and only an absurd length is cut. No line breaks between a figure
/// and its unit.
pub(super) fn shown_whole(text: &str) -> String {
    if text.chars().count() > SENTENCES_CHARS_MAX {
        shown(text)
    } else {
        glue_units(&clean(text))
    }
}

/// A text that begins a sentence.
pub(super) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// The anchor of a finding: letters, digits and hyphens, whatever its code is.
pub(super) fn finding_anchor(code: &str) -> String {
    format!("finding-{}", letters_and_digits(code))
}

/// The rest of a longer name is dropped: file names have at most 255 bytes.
const ANCHOR_CHARS_MAX: usize = 80;

/// A name for anchors and files: everything but ASCII letters and digits is a hyphen.
pub(super) fn letters_and_digits(name: &str) -> String {
    name.chars()
        .take(ANCHOR_CHARS_MAX)
        .map(letter_or_hyphen)
        .collect()
}

fn letter_or_hyphen(letter: char) -> char {
    if letter.is_ascii_alphanumeric() {
        letter
    } else {
        '-'
    }
}

/// A section with its heading.
pub(super) fn section(id: &str, heading: &str, content: &Markup) -> Markup {
    html! {
        section id=(id) aria-labelledby={(id) "-heading"} {
            h2 id={(id) "-heading"} { (heading) }
            (content)
        }
    }
}

/// A whole command line, or several lines of a file, with a button that copies it. Lines break
/// between words, not at the hyphens of a flag.
pub(super) fn command(text: &str, what: &str) -> Markup {
    html! {
        div.command {
            pre tabindex="0" role="region" aria-label={"Command: " (shown(what))} {
                code {
                    @for (number, line) in text.lines().enumerate() {
                        @if number > 0 { "\n" }
                        @for (index, word) in clean(line).split(' ').enumerate() {
                            @if index > 0 { " " }
                            i { (word) }
                        }
                    }
                }
            }
            // The script names it after the command.
            button.copy.scripted { "Copy" }
        }
    }
}

/// A table that may be wider than the page: it scrolls in its own frame, also by keyboard.
pub(super) fn wide_table(label: &str, table: &Markup) -> Markup {
    html! { div.wide tabindex="0" role="region" aria-label=(label) { (table) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_harmless_and_short() {
        assert_eq!(shown("a\u{202e}b"), "a\\u{202e}b");
        let long = shown(&"x".repeat(10_000));
        assert!(long.len() < 400 && long.ends_with("… (10000 characters)"));
        let absurd = shown_whole(&"x".repeat(10_000));
        assert!(absurd.len() < 400 && absurd.ends_with("… (10000 characters)"));
        assert_eq!(shown_whole(&"x".repeat(7000)).len(), 7000);
    }

    #[test]
    fn figure_and_unit_stay_on_one_line() {
        assert_eq!(
            shown_whole("after 4 min 58 s, or up to 1020 KiB more"),
            "after 4\u{a0}min 58\u{a0}s, or up to 1020\u{a0}KiB more"
        );
    }

    #[test]
    fn command_is_never_cut() {
        let text = format!("fio  --filename=/{}\nnext = 1 # line", "x".repeat(5000));
        let markup = command(&text, "name").into_string();
        let markup = markup.replace("<i>", "").replace("</i>", "");
        assert!(markup.contains(&format!("<code>{text}</code>")), "{markup}");
    }
}
