//! Holds the values of a flag that has a few, each with its word, its aliases and its help.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A value of a flag.
pub(crate) struct Choice<T> {
    /// The word on the command line. Aliases follow, each after a `/`.
    pub words: &'static str,
    pub value: T,
    /// One phrase, as clap lists it beside the word.
    pub help: &'static str,
}

/// The value that a word or one of its aliases names; `None` for other words.
pub(crate) fn chosen<T: Clone>(choices: &[Choice<T>], word: &str) -> Option<T> {
    for choice in choices {
        if choice.words.split('/').any(|known| known == word) {
            return Some(choice.value.clone());
        }
    }
    None
}

/// clap's parser of a flag with these values, whose words and aliases its help lists.
pub(crate) fn one_of<T: Clone + Send + Sync>(
    choices: &'static [Choice<T>],
) -> impl TypedValueParser<Value = T> {
    let mut possible_values = Vec::new();
    for choice in choices {
        let mut words = choice.words.split('/');
        let shown = PossibleValue::new(words.next().unwrap_or_default());
        possible_values.push(shown.aliases(words).help(choice.help));
    }
    PossibleValuesParser::new(possible_values)
        .try_map(move |word| chosen(choices, &word).ok_or("no such value"))
}

/// Values, a line each, which rustfmt leaves alone.
macro_rules! choices {
    ($($words:literal $value:expr, $help:literal;)*) => {
        &[$($crate::flags::Choice { words: $words, value: $value, help: $help }),*]
    };
}
pub(crate) use choices;
