//! Flags that the verb at hand does not have, but others do, or fio does: the usage error names
//! them. Knows the command line only.

use crate::args::Args;
use crate::workload::answer_to_fio;
use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The error to the words of a command line, with what to write in place of clap's advice to pass
/// the flag as a value.
pub fn told(mut error: clap::Error, words: &[String]) -> clap::Error {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let tips = match error.kind() {
        ErrorKind::UnknownArgument => tips_for_unknown(flag, words),
        // clap shows a switch as `--buffered`, and a flag with a value as `--bs <BYTES>`.
        ErrorKind::TooManyValues if !flag.contains(' ') => {
            vec![format!(
                "'{flag}' takes no value: write it alone for yes, and leave it out for no"
            )]
        }
        _ => Vec::new(),
    };
    if !tips.is_empty() {
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(tips.into_iter().map(Into::into).collect()),
        );
        // Of what clap found similar.
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Usage, ContextValue::None);
    }
    error
}

fn tips_for_unknown(flag: &str, words: &[String]) -> Vec<String> {
    if words.first().is_some_and(|verb| verb == "run") {
        let tips = tips_for_fio(flag, words);
        if !tips.is_empty() {
            return tips;
        }
    }
    let verbs = verbs_with(flag);
    let Some((last, others)) = verbs.split_last() else {
        return Vec::new();
    };
    let verbs = if others.is_empty() {
        last.clone()
    } else {
        format!("{} and {last}", others.join(", "))
    };
    vec![format!("'{flag}' belongs to {verbs}")]
}

/// For all options of fio among the words, so that a pasted command is corrected in one go. Empty
/// if the flag itself is none.
fn tips_for_fio(flag: &str, words: &[String]) -> Vec<String> {
    let name = |word: &str| {
        word.trim_start_matches('-')
            .split('=')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let answer = |word: &String| {
        answer_to_fio(&name(word)).map(|answer| format!("fio's '{}' {answer}", name(word)))
    };
    // fio takes long options after a single dash, too; clap reads letters there and names the
    // first.
    let is_single =
        |word: &&String| word.starts_with('-') && !word.starts_with("--") && name(word).len() > 1;
    let blamed = words.iter().find(|word| {
        word.split('=').next() == Some(flag) || (is_single(word) && word.starts_with(flag))
    });
    let single = blamed.filter(is_single).filter(|word| {
        answer(word).is_some() || !verbs_with(&format!("--{}", name(word))).is_empty()
    });
    if single.is_none() && blamed.and_then(answer).is_none() {
        return Vec::new();
    }
    let dashes = single.map(|word| format!("flags have two dashes here: --{}", name(word)));
    let flags = words.iter().filter(|word| word.starts_with('-'));
    dashes.into_iter().chain(flags.filter_map(answer)).collect()
}

/// The verbs that take this flag, such as `--time` or `-o`.
fn verbs_with(flag: &str) -> Vec<String> {
    let is_it = |arg: &clap::Arg| match flag.strip_prefix("--") {
        Some(long) => arg
            .get_long_and_visible_aliases()
            .is_some_and(|names| names.contains(&long)),
        None => arg
            .get_short()
            .is_some_and(|short| flag.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4]))),
    };
    let command = Args::command();
    command
        .get_subcommands()
        .filter(|verb| verb.get_arguments().any(is_it))
        .map(|verb| verb.get_name().to_owned())
        .collect()
}
