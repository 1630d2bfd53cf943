//! Adds the next step to usage errors: for flags that belong to another verb or to fio, for words
//! that are no verbs, and for targets without a verb.

use crate::commands::Args;
use crate::failure::Exit;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, CommandFactory as _};
use diskproof_compat::{drop_in_named, fio_hint};
use diskproof_model::secrets::text_without_secrets;
use diskproof_model::shell::quoted;
use diskproof_report::formats::extensions;
use diskproof_report::terminal::message;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// The command line, in which `run fio …` is `as fio …`: a pasted command runs as fio runs it. A
/// file of that name is a target.
pub(crate) fn with_pasted_fio(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = arguments.collect();
    if let [_, verb, operands @ ..] = words.as_mut_slice()
        && verb == "run"
        && is_fio_first(operands)
        && !Path::new("fio").exists()
    {
        *verb = OsString::from("as");
    }
    words
}

/// True if the first word that is no flag is `fio`.
fn is_fio_first(words: &[OsString]) -> bool {
    for word in words {
        if !word.as_encoded_bytes().starts_with(b"-") {
            return word == "fio";
        }
    }
    false
}

/// The program prints this without arguments.
const FIRST_WORDS: &str = "\
diskproof measures what a disk really does for a database. It needs no root.

  diskproof check /data                   # about a minute, the verdict first
  diskproof check /data --for postgresql  # is it fit?
  diskproof compare /old /new             # which is faster?

'diskproof --help' lists the verbs, 'diskproof VERB --help' explains one.
";

/// Rows of words that people type for a verb, and what leads on from there.
const WORDS: &str = "\
bandwidth bench benchmark measure perf performance rate slow speed test \
 throughput: diskproof check TARGET
health identify list-disks smart smartctl status temp temperature wear: diskproof info DEVICE
badblock badblocks bad-blocks burn-in burnin capacity counterfeit f3 f3probe f3read f3write fake \
 h2testw: diskproof accept DEVICE --destroy NAME, which overwrites all of it (diskproof help \
 accept.md); to only read it, diskproof curve DEVICE --scan
scan surface: diskproof curve DEVICE --scan
verify: diskproof run DIRECTORY --rw write --verify (diskproof help verify)
pdf print report result: diskproof show latest, or -o report.html
iostat iotop live monitor top: diskproof watch
pg postgres postgresql: diskproof check TARGET --for postgresql, or diskproof commit TARGET
etcd kafka mariadb mysql sqlite: diskproof check TARGET --for etcd, mysql, sqlite or a profile file
fsync wal: diskproof commit TARGET
fill soak stress sustain: diskproof run TARGET --rw write --time 1h
cron schedule timer trend: diskproof history --trend (diskproof help history.md)
discard erase fstrim trim wipe: diskproof run DEVICE --rw trim --destroy NAME, \
 which discards every block
version: diskproof --version
latency lat: diskproof ping TARGET
diff vs: diskproof compare A B
advise advice optimise optimize settings tune tuning: diskproof check TARGET, which advises on \
 settings
purge remove uninstall: the package manager that installed it; 'diskproof history' names the \
 file of saved runs";

/// Rows of words that people type for a flag; the flag that the verb must have, or nothing; and
/// what leads on. `EXTENSIONS` stands for the formats of `-o`.
const FLAG_WORDS: &str = "\
duration length period runtime run-time seconds timeout: --time: --time 30s
days hours minutes: --time: --time 2h
lat latency max-latency p95 p99 p999 percentile target-latency: --slo: --slo 'p99<=5ms'
lat latency max-latency p95 p99 p999 target-latency: --latency-target: --latency-target 5ms \
 --depth 64
outfile out-file outputfile: -o: -o FILE, whose ending selects the format: EXTENSIONS
csv format junit markdown md output-format pdf prom prometheus report save svg xml yaml: -o: \
 -o FILE, whose ending selects the format: EXTENSIONS
format output-format report: --json: --json
every interval: -i: -i 5s
cron every interval loop repeat schedule: : a timer, which starts the run again: \
 diskproof help monitoring. 'diskproof history --trend' then shows the runs
alert assert fail-if limit max min require threshold: --expect: \
 --expect 'random-read-d32.iops>=5000'
f force y yes: : the word that releases what may be destroyed: --overwrite for a file, \
 --destroy and the serial number, model or kernel name for a device
concurrency io-depth qd queue-depth queuedepth: --depth: --depth 32
block block-size size-of-block: --bs: --bs 8k
parallel threads workers: --jobs: --jobs 4
dev device dir directory disk file filename mount path target: : the target without a flag: \
 diskproof VERB /data
no-write no-writes nowrite readonly ro: --read-only: --read-only
fit fitness preset profile: --for: --for postgresql
fast short: --quick: --quick
no-color no-colour nocolor: --color: --color never
no-save nosave no-history: --no-history: --no-history
conf config configuration: : a plan file, such as diskproof run plan.toml: diskproof help plans
label tag: : diskproof history label latest NAME
baseline compare diff: : diskproof compare A B
log: -o: -o FILE.json";

/// Prints what clap has to say: help and version on stdout, which is no error, or a usage error
/// with our hints on stderr.
pub(crate) fn report(error: clap::Error) -> ExitCode {
    let line = crate::provenance::command_line();
    let arguments = line.get(1..).unwrap_or_default();
    if arguments.is_empty() {
        crate::stdio::eprint_text(FIRST_WORDS);
        return Exit::Usage.into();
    }
    let hinted = with_hints(error, arguments);
    if !hinted.use_stderr() {
        // A closed stdout changes nothing about the exit code.
        let _ = hinted.print();
        return Exit::Done.into();
    }
    // clap repeats arguments as they are. What acts on the terminal is spelled out and secrets are
    // hidden, both without colours.
    let plain = hinted.render().to_string();
    let has_hidden = arguments
        .iter()
        .any(|argument| message(argument, None) != *argument);
    if has_hidden || text_without_secrets(&plain) != plain {
        let text = message(&plain, None);
        crate::stdio::eprint_text(&format!("{text}\n"));
    } else {
        // A closed stderr changes nothing about the exit code.
        let _ = hinted.print();
    }
    Exit::Usage.into()
}

/// The error, with our hints in place of clap's advice to pass the flag as a value.
fn with_hints(mut error: clap::Error, arguments: &[String]) -> clap::Error {
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) {
        if let Some(hint) = hint_for_word(word) {
            suggest(&mut error, vec![hint]);
            error.remove(ContextKind::SuggestedSubcommand);
        }
        return error;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let hints = match error.kind() {
        ErrorKind::UnknownArgument => hints_for_unknown(flag, arguments),
        // clap shows a switch as `--buffered`, and a flag with a value as `--bs <BYTES>`.
        ErrorKind::TooManyValues if !flag.contains(' ') => {
            vec![format!(
                "'{flag}' takes no value; write it alone, or omit it"
            )]
        }
        _ => Vec::new(),
    };
    if hints.is_empty() {
        // clap's advice to pass the flag as a value after `--`.
        error.remove(ContextKind::Suggested);
    } else {
        suggest(&mut error, hints);
        // clap's own suggestion of a similar flag.
        error.remove(ContextKind::SuggestedArg);
    }
    error
}

/// Puts the hints in the place of clap's suggestions and usage line.
fn suggest(error: &mut clap::Error, hints: Vec<String>) {
    error.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(hints.into_iter().map(Into::into).collect()),
    );
    error.insert(ContextKind::Usage, ContextValue::None);
}

/// The hint for a word that is no verb: it may be a target, another tool, or a word for a verb.
fn hint_for_word(word: &str) -> Option<String> {
    if word.contains('/') || word == "." || Path::new(word).exists() {
        return Some(format!("to measure it: diskproof check {}", quoted(word)));
    }
    if drop_in_named(word).is_some() {
        return Some(format!("the command line of {word}: diskproof as {word} …"));
    }
    let lowercase = word.to_lowercase();
    for row in WORDS.lines() {
        if let Some((words, step)) = row.split_once(": ")
            && words.split(' ').any(|known| known == lowercase)
        {
            return Some(format!("try {step}"));
        }
    }
    None
}

/// The hints for a flag or operand that the verb does not take.
fn hints_for_unknown(flag: &str, arguments: &[String]) -> Vec<String> {
    let verb = match arguments.first() {
        Some(verb) => verb.as_str(),
        None => "",
    };
    // A verb with a workload of its own takes fio's words.
    if has_flag(verb, "--rw") {
        let hints = hints_for_fio(flag, arguments);
        if !hints.is_empty() {
            return hints;
        }
    }
    if !flag.starts_with('-') {
        return if takes_one_target(verb) {
            vec![format!(
                "{verb} measures one target; to measure two against each other: diskproof compare \
             A B"
            )]
        } else {
            Vec::new()
        };
    }
    if let Some(hint) = hint_for_flag_word(flag, verb) {
        return vec![hint];
    }
    let verbs = verbs_with(flag);
    let Some((last, others)) = verbs.split_last() else {
        return Vec::new();
    };
    if others.is_empty() {
        return vec![format!("'{flag}' is a flag of {last}")];
    }
    let listed = others.join(", ");
    vec![format!("'{flag}' is a flag of {listed} and {last}")]
}

/// The hint for a word that is no flag of this verb.
fn hint_for_flag_word(flag: &str, verb: &str) -> Option<String> {
    let word = option_name(flag).to_lowercase().replace('_', "-");
    for row in FLAG_WORDS.lines() {
        let mut parts = row.splitn(3, ": ");
        let Some(words) = parts.next() else { continue };
        let Some(needed_flag) = parts.next() else {
            continue;
        };
        let Some(hint) = parts.next() else { continue };
        let is_meant = words.split(' ').any(|known| known == word);
        if is_meant && (needed_flag.is_empty() || has_flag(verb, needed_flag)) {
            let step = hint
                .trim_start()
                .replace("EXTENSIONS", &extensions(|_| true))
                .replace("VERB", verb);
            return Some(format!("try {step}"));
        }
    }
    None
}

/// A hint for every option of fio among the arguments, so that one error corrects a whole pasted
/// command. Empty if `flag` is not an option of fio.
fn hints_for_fio(flag: &str, arguments: &[String]) -> Vec<String> {
    let Some(rejected) = arguments
        .iter()
        .find(|argument| is_rejected(argument, flag))
    else {
        return Vec::new();
    };
    let mut hints = Vec::new();
    let name = option_name(rejected);
    if has_single_dash(rejected)
        && (fio_hint(name).is_some() || !verbs_with(&format!("--{name}")).is_empty())
    {
        hints.push(format!("flags take two dashes: --{name}"));
    } else if fio_hint(name).is_none() {
        return Vec::new();
    }
    let mut names_job = false;
    for argument in arguments {
        if !argument.starts_with('-') {
            continue;
        }
        let option = option_name(argument);
        names_job |= option == "name";
        if let Some(answer) = fio_hint(option) {
            hints.push(format!("fio's '{option}' {answer}"));
        }
    }
    if names_job {
        let words: Vec<String> = arguments[1..].iter().map(|word| quoted(word)).collect();
        hints.push(format!(
            "to run it like fio: diskproof as fio {}",
            words.join(" ")
        ));
    }
    hints
}

/// True if clap means this argument by the flag that it reports. fio accepts long options after a
/// single dash; clap takes them for letters and reports the first one.
fn is_rejected(argument: &str, flag: &str) -> bool {
    argument.split('=').next() == Some(flag)
        || (has_single_dash(argument) && argument.starts_with(flag))
}

/// The name in `--name=value`.
fn option_name(argument: &str) -> &str {
    let option = argument.trim_start_matches('-');
    match option.split_once('=') {
        Some((name, _)) => name,
        None => option,
    }
}

fn has_single_dash(argument: &str) -> bool {
    argument.starts_with('-') && !argument.starts_with("--") && option_name(argument).len() > 1
}

/// True if a verb measures, and has one operand: its target.
fn takes_one_target(verb: &str) -> bool {
    if !has_flag(verb, "--dry-run") {
        return false;
    }
    match Args::command().find_subcommand(verb) {
        Some(command) => command
            .get_positionals()
            .any(|operand| matches!(operand.get_action(), ArgAction::Set)),
        None => false,
    }
}

/// True if a verb takes a flag, such as `--time` or `-o`.
fn has_flag(verb: &str, flag: &str) -> bool {
    verbs_with(flag).iter().any(|name| name == verb)
}

/// The verbs that take this flag, such as `--time` or `-o`.
fn verbs_with(flag: &str) -> Vec<String> {
    let mut verbs = Vec::new();
    for verb in Args::command().get_subcommands() {
        if verb.get_arguments().any(|argument| is_flag(argument, flag)) {
            verbs.push(verb.get_name().to_owned());
        }
    }
    verbs
}

fn is_flag(argument: &clap::Arg, flag: &str) -> bool {
    if let Some(long) = flag.strip_prefix("--") {
        match argument.get_long_and_visible_aliases() {
            Some(names) => names.contains(&long),
            None => false,
        }
    } else {
        match argument.get_short() {
            Some(short) => flag == format!("-{short}"),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_for_a_flag_leads_to_a_flag_of_the_verb() {
        for (flag, verb, expected) in [
            ("--duration", "check", "--time"),
            ("--csv", "check", ".csv"),
            ("--junit", "compare", "-o"),
            ("--every", "check", "diskproof help monitoring"),
            ("--threshold", "check", "--expect"),
            ("--force", "run", "--overwrite"),
            ("--queue_depth", "sweep", "--depth"),
            ("--target", "check", "diskproof check /data"),
        ] {
            let hint = hint_for_flag_word(flag, verb);
            let hint = hint.unwrap_or_else(|| panic!("{flag}"));
            assert!(hint.contains(expected), "{flag}: {hint}");
        }
        assert_eq!(hint_for_flag_word("--nonsense", "check"), None);
        // The verb has no time.
        assert_eq!(hint_for_flag_word("--duration", "info"), None);
    }

    /// The words of the trials from outside that had no tip, or that of a flag which only looks
    /// alike.
    #[test]
    fn synonyms_of_a_latency_a_time_and_a_file_have_a_hint() {
        for (flag, verb, expected) in [
            ("--p99", "load", "--slo"),
            ("--target-latency", "load", "--slo"),
            ("--latency", "run", "--latency-target"),
            ("--hours", "sustain", "--time"),
            ("--outfile", "check", "-o"),
        ] {
            let hint = hint_for_flag_word(flag, verb).unwrap_or_default();
            assert!(hint.contains(expected), "{flag} of {verb}: {hint}");
        }
        for word in ["tune", "uninstall"] {
            assert!(hint_for_word(word).is_some(), "{word}");
        }
    }

    #[test]
    fn every_flag_of_the_table_is_a_flag() {
        for row in FLAG_WORDS.lines() {
            let parts: Vec<&str> = row.splitn(3, ": ").collect();
            let [_, flag, _] = parts.as_slice() else {
                panic!("{row}");
            };
            assert!(flag.is_empty() || !verbs_with(flag).is_empty(), "{row}");
        }
    }
}
