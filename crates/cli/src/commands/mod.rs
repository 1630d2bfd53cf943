//! The verbs: one file each, with its flags, its help and its plan, and one line in the list below.

use crate::failure::Exit;
use clap::{Parser, Subcommand};

/// Declares the verbs: the file, which has a function `run`, the name, and the type of the flags,
/// which holds the help. Help, dispatch and usage errors all read this list. `cargo fmt` skips
/// modules that a macro declares: format a verb's file with `rustfmt --edition 2024 FILE`. `./test`
/// checks their format.
macro_rules! verbs {
    ($($file:ident: $Verb:ident($Flags:ident),)*) => {
        $(pub mod $file;)*

        /// A verb with its flags.
        #[derive(Debug, Subcommand)]
        pub enum Verb {
            $(
                // clap ignores this expression and takes the help from the flags' type.
                #[doc = concat!("`diskproof ", stringify!($file), "`")]
                $Verb(Box<$file::$Flags>),
            )*
        }

        impl Verb {
            /// Runs the verb.
            pub fn run(&self) -> anyhow::Result<Exit> {
                match self {
                    $(Self::$Verb(flags) => $file::run(flags),)*
                }
            }
        }

        #[cfg(test)]
        const FILES: &[&str] = &[$(stringify!($file)),*];
    };
}

verbs! {
    check: Check(CheckFlags),
    commit: Commit(CommitFlags),
    sweep: Sweep(SweepFlags),
    load: Load(LoadFlags),
    run: Run(RunFlags),
    sustain: Sustain(SustainFlags),
    curve: Curve(CurveFlags),
    accept: Accept(AcceptFlags),
    powercut: Powercut(PowercutFlags),
    ping: Ping(PingFlags),
    files: Files(FilesFlags),
    watch: Watch(WatchFlags),
    info: Info(InfoFlags),
    show: Show(ShowFlags),
    compare: Compare(CompareFlags),
    merge: Merge(MergeFlags),
    history: History(HistoryFlags),
    export: Export(ExportFlags),
    as_tool: As(AsFlags),
    completions: Completions(CompletionsFlags),
    man: Man(ManFlags),
    help: Help(HelpFlags),
}

/// Measures what a disk really does for a database, proves the figures, explains them and
/// recommends what to do.
#[derive(Debug, Parser)]
#[command(name = "diskproof")]
#[command(version = concat!(env!("CARGO_PKG_VERSION"), env!("DISKPROOF_COMMIT")))]
#[command(
    max_term_width = 80,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Args {
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    use std::collections::BTreeSet;

    #[test]
    fn command_line_is_consistent() {
        Args::command().debug_assert();
    }

    /// A tool that a link starts gets the flags that are not parsed.
    #[test]
    fn flags_that_are_not_given_are_the_defaults_of_their_types() {
        let parsed = Args::try_parse_from(["diskproof", "as", "dd"]).unwrap();
        let Verb::As(flags) = parsed.verb else {
            panic!("no tool");
        };
        let defaults = crate::flags::MeasuringFlags::default();
        assert_eq!(format!("{:?}", flags.measuring), format!("{defaults:?}"));
    }

    /// Values of which each flag that takes one accepts at least one.
    const VALUES: [&str; 14] = [
        "1",
        "1s",
        "10%",
        "4k",
        "randread",
        "read",
        "fdatasync",
        "on",
        "uring",
        "x.iops<-1%",
        "p99<=5ms",
        "0-50%",
        "2026-11-20",
        "x.html",
    ];

    /// The flags of a verb, each as somebody types it with a value that it accepts.
    fn typed_flags(verb: &clap::Command) -> Vec<String> {
        let mut typed = Vec::new();
        for flag in verb.get_arguments() {
            let Some(long) = flag.get_long() else {
                continue;
            };
            if flag
                .get_num_args()
                .is_none_or(|count| count.min_values() == 0)
            {
                typed.push(format!("--{long}"));
                continue;
            }
            for value in VALUES {
                let with_value = format!("--{long}={value}");
                if !matches!(
                    refusal(verb, &[&with_value]).map(|error| error.kind()),
                    Some(ErrorKind::ValueValidation | ErrorKind::InvalidValue)
                ) {
                    typed.push(with_value);
                    break;
                }
            }
        }
        typed
    }

    /// Why a command line of this verb with these flags is refused.
    fn refusal(verb: &clap::Command, flags: &[&str]) -> Option<clap::Error> {
        let mut line = vec!["diskproof", verb.get_name()];
        for positional in verb.get_positionals() {
            if positional.is_required_set() {
                line.push("x");
            }
        }
        line.extend(flags);
        Args::try_parse_from(line).err()
    }

    /// The flags that a command line lacks; operands are another matter.
    fn lacking_flags(error: &clap::Error) -> Vec<String> {
        match (error.kind(), error.get(ContextKind::InvalidArg)) {
            (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(lacking))) => lacking
                .iter()
                .filter(|name| name.contains("--"))
                .cloned()
                .collect(),
            _ => Vec::new(),
        }
    }

    /// clap accepts a flag without the one that it needs where a third one excludes that, and then
    /// nothing reads it: each excludes the third one itself.
    #[test]
    fn flag_that_needs_another_is_not_accepted_beside_one_that_excludes_that() {
        let mut count = 0;
        let mut program = Args::command();
        program.build();
        for verb in program.get_subcommands() {
            let flags = typed_flags(verb);
            for flag in &flags {
                let Some(alone) = refusal(verb, &[flag]) else {
                    continue;
                };
                let lacking = lacking_flags(&alone);
                if lacking.is_empty() {
                    continue;
                }
                count += 1;
                for other in &flags {
                    let other_name = other.split('=').next().unwrap();
                    let is_lacking = lacking.iter().any(|text| {
                        text.split(|letter: char| !letter.is_alphanumeric() && letter != '-')
                            .any(|word| word == other_name)
                    });
                    assert!(
                        is_lacking || other == flag || refusal(verb, &[flag, other]).is_some(),
                        "{} {flag} {other}",
                        verb.get_name()
                    );
                }
            }
        }
        assert!(count > 20, "{count}");
    }

    /// The examples of a help text, each as one pastes it.
    fn examples(help: &str) -> Vec<&str> {
        let (_, examples) = help.split_once("Examples:\n").unwrap_or_default();
        examples.lines().collect()
    }

    /// The lines below the flags of a verb that clap breaks, also within quotes.
    fn long_lines_of_help(command: &clap::Command) -> Vec<String> {
        let help = command.get_after_help().map(ToString::to_string);
        let mut long = Vec::new();
        for line in help.unwrap_or_default().lines() {
            if line.chars().count() > 80 {
                long.push(format!("{}: {line}", command.get_name()));
            }
        }
        for inner in command.get_subcommands() {
            long.extend(long_lines_of_help(inner));
        }
        long
    }

    #[test]
    fn lines_of_help_are_not_broken_again() {
        assert_eq!(long_lines_of_help(&Args::command()), [""; 0]);
    }

    #[test]
    fn examples_can_be_pasted() {
        let mut count = 0;
        for verb in Args::command().get_subcommands() {
            let help = verb.get_after_help().map(ToString::to_string);
            for line in examples(&help.unwrap_or_default()) {
                let command = line.split(" # ").next().unwrap().trim();
                // A comment without its sign would be arguments.
                assert!(!command.contains("  "), "{line}");
                assert_eq!(command.matches('\'').count() % 2, 0, "{line}");
                count += 1;
            }
        }
        assert!(count > 60, "{count}");
    }

    #[test]
    fn registry_holds_every_file_and_every_verb_has_help() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands");
        let files: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "rs"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .filter(|stem| stem != "mod")
            .collect();
        let listed: BTreeSet<String> = FILES.iter().map(|&file| file.to_owned()).collect();
        assert_eq!(
            listed, files,
            "each file of src/commands has a line in verbs!"
        );
        for verb in Args::command().get_subcommands() {
            let about = verb.get_about().map(ToString::to_string);
            let is_sentence = about.as_ref().is_some_and(|about| about.contains(' '));
            assert!(is_sentence, "{}: {about:?}", verb.get_name());
        }
    }
}
