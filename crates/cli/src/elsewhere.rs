//! Flags that the verb at hand does not have, but others do: the usage error names them. Knows the command line only.

use crate::args::Args;
use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The error, with the verbs that have the flag in place of clap's advice to pass it as a value.
pub fn told(mut error: clap::Error) -> clap::Error {
    let unknown = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(flag))) => flag.clone(),
        _ => return error,
    };
    let verbs = verbs_with(&unknown);
    if let Some((last, others)) = verbs.split_last() {
        let verbs = if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) };
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![format!("'{unknown}' belongs to {verbs}").into()]));
    }
    error
}

/// The verbs that take this flag, such as `--time` or `-o`.
fn verbs_with(flag: &str) -> Vec<String> {
    let is_it = |arg: &clap::Arg| match flag.strip_prefix("--") {
        Some(long) => arg.get_long_and_visible_aliases().is_some_and(|names| names.contains(&long)),
        None => arg.get_short().is_some_and(|short| flag.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4]))),
    };
    let command = Args::command();
    command.get_subcommands().filter(|verb| verb.get_arguments().any(is_it)).map(|verb| verb.get_name().to_owned()).collect()
}
