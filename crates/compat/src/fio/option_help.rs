//! The help for options and I/O engines, `--cmdhelp` and `--enghelp`, from the table
//! `option_help.txt`. Scripts read it to find out if fio has an option.

use super::job_options::{FioHandling, fio_option};
use crate::printer::{DropInError, ToolText};
use std::fmt::Write as _;
use std::sync::LazyLock;

/// The facts of an option that --cmdhelp prints.
pub(super) struct OptionHelp {
    /// The name that stands for all.
    name: &'static str,
    /// Further names.
    aliases: Vec<&'static str>,
    /// The type of its value, as the table names it.
    pub(super) kind: &'static str,
    /// The default; empty where there is none.
    default: &'static str,
    /// The least and the greatest value; empty where it has none.
    pub(super) range: &'static str,
    /// The words that it takes, with ! where diskproof refuses the word.
    pub(super) words: Vec<&'static str>,
    /// A sentence on the effect.
    text: &'static str,
}

/// An option of I/O engines.
struct EngineOption {
    /// The engines that have it.
    engines: Vec<&'static str>,
    help: OptionHelp,
}

struct HelpTable {
    of_jobs: Vec<OptionHelp>,
    of_engines: Vec<EngineOption>,
}

/// The engines that jobs can use.
const ENGINES: [&str; 9] = [
    "mmap", "sync", "psync", "vsync", "pvsync", "pvsync2", "posixaio", "io_uring", "libaio",
];
/// Columns of a name in a list, as in fio's output.
const NAME_WIDTH: usize = 24;
/// Columns of a word before its colon, as in fio's output.
const WORD_WIDTH: usize = 20;

static TABLE: LazyLock<HelpTable> = LazyLock::new(|| {
    let text = include_str!("option_help.txt");
    let (of_jobs, of_engines) = text
        .split_once("\n[engines]\n")
        .expect("the table is part of the program, and has both parts");
    let of_jobs = of_jobs.lines().filter(|line| !line.starts_with('#'));
    HelpTable {
        of_jobs: of_jobs.map(help_of_line).collect(),
        of_engines: of_engines
            .lines()
            .filter_map(|line| line.split_once(" | "))
            .map(|(engines, line)| EngineOption {
                engines: engines.split(' ').collect(),
                help: help_of_line(line),
            })
            .collect(),
    }
});

fn help_of_line(line: &'static str) -> OptionHelp {
    let mut cells = line.split('|').map(str::trim);
    let mut names = cells.next().unwrap_or_default().split('/');
    let kind = cells.next().unwrap_or_default();
    let default = cells.next().unwrap_or_default();
    let range = cells.next().unwrap_or_default();
    let words = cells.next().unwrap_or_default();
    let text = cells.next().unwrap_or_default();
    OptionHelp {
        name: names.next().unwrap_or_default(),
        aliases: names.collect(),
        kind,
        default,
        range: match (range, kind) {
            ("none", _) => "",
            ("", "int") => "min=0, max=-1",
            ("", "bool") => "min=0, max=1",
            (range, _) => range,
        },
        words: words.split_whitespace().collect(),
        text,
    }
}

impl OptionHelp {
    fn has_name(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// The type of its value, as fio names it.
    fn kind_text(&self) -> &'static str {
        match self.kind {
            "int" => "integer value (opt=100)",
            "bool" => "boolean value (opt=1)",
            "switch" => "empty or boolean value ([0|1])",
            "time" => "string with time postfix (opt=10s)",
            "size" => "size or percentage (opt=4k, opt=10%)",
            "ranges" => "one to three ranges (opt=1k-4k[,4k-8k[,1k-8k]])",
            "scaled" => "string with possible k/m/g postfix (opt=4k)",
            "floats" => "list of floating point values separated by ':' (opt=5.9:7.8)",
            _ => "string (opt=bla)",
        }
    }

    fn is_refused(&self) -> bool {
        let option = fio_option(self.name);
        option.is_some_and(|option| matches!(option.handling, FioHandling::Refused { .. }))
    }

    /// The line of a list of options.
    fn line(&self) -> String {
        format!("{:<NAME_WIDTH$}: {}\n", self.name, self.text)
    }

    /// Everything that is known of it, as --cmdhelp prints it for one option.
    fn details(&self) -> String {
        let limit = if self.is_refused() {
            " (refused by diskproof)"
        } else {
            ""
        };
        let mut text = format!("{:>WORD_WIDTH$}: {}{limit}\n", self.name, self.text);
        for alias in &self.aliases {
            let _ = writeln!(text, "{:>WORD_WIDTH$}: {alias}", "alias");
        }
        let _ = writeln!(text, "{:>WORD_WIDTH$}: {}", "type", self.kind_text());
        let default = if self.default.is_empty() {
            "no default"
        } else {
            self.default
        };
        let _ = writeln!(text, "{:>WORD_WIDTH$}: {default}", "default");
        if !self.range.is_empty() {
            let _ = writeln!(text, "{:>WORD_WIDTH$}: {}", "range", self.range);
        }
        let mut label = "valid values";
        for word in &self.words {
            let shown = match word.strip_suffix('!') {
                Some(word) => format!("{word} (refused by diskproof)"),
                None => (*word).to_owned(),
            };
            let _ = writeln!(text, "{label:>WORD_WIDTH$}: {shown}");
            label = "";
        }
        text.push('\n');
        text
    }
}

/// The facts of an option under its first name, also of one of I/O engines.
pub(super) fn help_of(name: &str) -> Option<&'static OptionHelp> {
    let of_engines = TABLE.of_engines.iter().map(|option| &option.help);
    let mut all = TABLE.of_jobs.iter().chain(of_engines);
    all.find(|option| option.name == name)
}

/// The answer to `--cmdhelp`: about one option, or a line about each.
pub(super) fn option_help(name: Option<&str>) -> ToolText {
    let options = &TABLE.of_jobs;
    match name {
        None | Some("all") => {
            ToolText::out(options.iter().map(OptionHelp::line).collect::<String>())
        }
        Some(name) => match options.iter().find(|option| option.has_name(name)) {
            Some(option) => ToolText::out(option.details()),
            // As in fio, this is no error.
            None => ToolText::err(format!("No such command: {name}\n")),
        },
    }
}

/// The answer to `--enghelp`: the engines, the options of one, or about one of these, which follows
/// the engine and a comma.
pub(super) fn engine_help(words: Option<&str>) -> Result<ToolText, DropInError> {
    let Some(words) = words else {
        let engines = ENGINES.map(|engine| format!("\t{engine}\n")).concat();
        return Ok(ToolText::out(format!("Available IO engines:\n{engines}")));
    };
    let (engine, option) = match words.split_once(',') {
        Some((engine, option)) => (engine, Some(option)),
        None => (words, None),
    };
    if !ENGINES.contains(&engine) {
        let text = format!("fio: engine {engine} not loadable\nIO engine {engine} not found\n");
        return Err(DropInError::Code(1, ToolText::err(text)));
    }
    let mut own = TABLE
        .of_engines
        .iter()
        .filter(|option| option.engines.contains(&engine))
        .map(|option| &option.help);
    match option {
        Some(name) => match own.find(|option| option.has_name(name)) {
            Some(option) => Ok(ToolText::out(option.details())),
            None => {
                let text = format!("No such command: {name}\n");
                Err(DropInError::Code(1, ToolText::err(text)))
            }
        },
        None => {
            let lines: String = own.map(OptionHelp::line).collect();
            if lines.is_empty() {
                return Ok(ToolText::out(format!(
                    "IO engine {engine} has no options\n"
                )));
            }
            Ok(ToolText::out(lines))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::job_options::FIO_OPTIONS;
    use super::*;

    #[test]
    fn help_knows_every_option_under_the_first_name_of_the_job_options() {
        for option in &TABLE.of_jobs {
            let known = fio_option(option.name).map(|known| known.name());
            assert_eq!(known, Some(option.name));
            for alias in &option.aliases {
                let known = fio_option(alias).map(|known| known.name());
                assert_eq!(known, Some(option.name), "{alias}");
            }
            assert!(!option.text.is_empty(), "{}", option.name);
        }
        for option in &TABLE.of_engines {
            assert!(
                fio_option(option.help.name).is_some(),
                "{}",
                option.help.name
            );
        }
        // fio takes both kinds of switch without a value.
        for option in FIO_OPTIONS.iter().filter(|option| option.is_switch) {
            let found = TABLE.of_jobs.iter().find(|help| help.name == option.name());
            let is_switch = found.is_none_or(|help| help.kind == "switch");
            assert!(is_switch, "{}", option.name());
        }
    }

    #[test]
    fn help_has_the_lines_of_fio() {
        assert_eq!(
            option_help(Some("ss_dur")).stdout,
            "steadystate_duration: Judge the rate over this time\n               alias: ss_dur\n\
             \x20               type: string with time postfix (opt=10s)\n\
             \x20            default: 0\n\n"
        );
        let zones = option_help(Some("zonemode")).stdout;
        assert!(zones.contains("\n        valid values: none\n                    : strided\n"));
        assert!(zones.contains(": zbd (refused by diskproof)\n"));
        assert_eq!(option_help(None), option_help(Some("all")));
        assert_eq!(option_help(None).stdout.lines().count(), 217);
        assert_eq!(option_help(Some("nosuch")).stdout, "");
        assert!(engine_help(None).unwrap().stdout.contains("\n\tlibaio\n"));
        let polls = engine_help(Some("io_uring,hipri")).unwrap().stdout;
        assert!(polls.starts_with("               hipri: "), "{polls}");
        for words in ["nosuch", "libaio,nosuch"] {
            let error = engine_help(Some(words));
            assert!(matches!(error, Err(DropInError::Code(1, _))), "{words}");
        }
    }
}
