//! Answers `--cmdhelp` and `--enghelp`, about options and I/O engines, from the table
//! `option_help.txt`. Scripts read the answers to find out if fio has an option.

use super::job_options::{FioHandling, fio_option};
use crate::printer::{DropInError, ToolText};
use std::fmt::Write as _;
use std::sync::LazyLock;

/// The type of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Text,
    Int,
    Bool,
    Switch,
    Time,
    Size,
    Ranges,
    /// A number with a unit.
    Scaled,
    Floats,
}

impl ValueKind {
    /// The type of this name in the table, which is part of the program: a misspelt one panics.
    fn named(name: &str) -> Self {
        match name {
            "text" => Self::Text,
            "int" => Self::Int,
            "bool" => Self::Bool,
            "switch" => Self::Switch,
            "time" => Self::Time,
            "size" => Self::Size,
            "ranges" => Self::Ranges,
            "scaled" => Self::Scaled,
            "floats" => Self::Floats,
            other => panic!("option_help.txt: '{other}' is no type"),
        }
    }

    /// The type as fio names it.
    fn as_fio(self) -> &'static str {
        match self {
            Self::Text => "string (opt=bla)",
            Self::Int => "integer value (opt=100)",
            Self::Bool => "boolean value (opt=1)",
            Self::Switch => "empty or boolean value ([0|1])",
            Self::Time => "string with time postfix (opt=10s)",
            Self::Size => "size or percentage (opt=4k, opt=10%)",
            Self::Ranges => "one to three ranges (opt=1k-4k[,4k-8k[,1k-8k]])",
            Self::Scaled => "string with possible k/m/g postfix (opt=4k)",
            Self::Floats => "list of floating point values separated by ':' (opt=5.9:7.8)",
        }
    }
}

/// The facts of an option that --cmdhelp prints.
pub(super) struct OptionHelp {
    /// The name that stands for all.
    name: &'static str,
    /// Further names.
    aliases: Vec<&'static str>,
    pub(super) kind: ValueKind,
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
    job_options: Vec<OptionHelp>,
    engine_options: Vec<EngineOption>,
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
    let (job_part, engine_part) = text
        .split_once("\n[engines]\n")
        .expect("the table is part of the program, and has both parts");
    let mut table = HelpTable {
        job_options: Vec::new(),
        engine_options: Vec::new(),
    };
    for line in job_part.lines().filter(|line| !line.starts_with('#')) {
        table.job_options.push(OptionHelp::from_line(line));
    }
    for line in engine_part.lines() {
        let (engines, line) = line
            .split_once(" | ")
            .expect("an option of engines begins with their names");
        table.engine_options.push(EngineOption {
            engines: engines.split(' ').collect(),
            help: OptionHelp::from_line(line),
        });
    }
    table
});

impl OptionHelp {
    /// Reads a line of the table, without the engines before it. A line with too few or too many
    /// cells panics.
    fn from_line(line: &'static str) -> Self {
        let cells: Vec<&'static str> = line.split('|').map(str::trim).collect();
        let [names, kind, default, range, words, text] = cells[..] else {
            panic!("option_help.txt: '{line}' has not six cells");
        };
        let (name, aliases) = match names.split_once('/') {
            Some((name, aliases)) => (name, aliases.split('/').collect()),
            None => (names, Vec::new()),
        };
        let kind = ValueKind::named(kind);
        Self {
            name,
            aliases,
            kind,
            default,
            range: match (range, kind) {
                ("none", _) => "",
                ("", ValueKind::Int) => "min=0, max=-1",
                ("", ValueKind::Bool) => "min=0, max=1",
                (range, _) => range,
            },
            words: words.split_whitespace().collect(),
            text,
        }
    }

    fn has_name(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
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
        let _ = writeln!(text, "{:>WORD_WIDTH$}: {}", "type", self.kind.as_fio());
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

/// False for an option of other I/O engines than this one. Of an engine that no job can use,
/// nothing is known.
pub fn engine_has(engine: &str, option: &str) -> bool {
    let mut of_others = false;
    for known in &TABLE.engine_options {
        if known.help.has_name(option) {
            if known.engines.contains(&engine) {
                return true;
            }
            of_others = true;
        }
    }
    !of_others || !ENGINES.contains(&engine)
}

/// The facts of an option under its first name, also of one of I/O engines.
pub(super) fn help_of(name: &str) -> Option<&'static OptionHelp> {
    let of_engines = TABLE.engine_options.iter().map(|option| &option.help);
    let mut helps = TABLE.job_options.iter().chain(of_engines);
    helps.find(|option| option.name == name)
}

/// The answer to `--cmdhelp`: about one option, or a line about each.
pub(super) fn option_help(name: Option<&str>) -> ToolText {
    let options = &TABLE.job_options;
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
    let mut options_of_engine = TABLE
        .engine_options
        .iter()
        .filter(|option| option.engines.contains(&engine))
        .map(|option| &option.help);
    match option {
        Some(name) => match options_of_engine.find(|option| option.has_name(name)) {
            Some(option) => Ok(ToolText::out(option.details())),
            None => {
                let text = format!("No such command: {name}\n");
                Err(DropInError::Code(1, ToolText::err(text)))
            }
        },
        None => {
            let lines: String = options_of_engine.map(OptionHelp::line).collect();
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
        for option in &TABLE.job_options {
            let known = fio_option(option.name).map(|known| known.name());
            assert_eq!(known, Some(option.name));
            for alias in &option.aliases {
                let known = fio_option(alias).map(|known| known.name());
                assert_eq!(known, Some(option.name), "{alias}");
            }
            assert!(!option.text.is_empty(), "{}", option.name);
        }
        for option in &TABLE.engine_options {
            assert!(
                fio_option(option.help.name).is_some(),
                "{}",
                option.help.name
            );
        }
        // fio takes both kinds of switch without a value.
        for option in FIO_OPTIONS.iter().filter(|option| option.is_switch) {
            let found = TABLE
                .job_options
                .iter()
                .find(|help| help.name == option.name());
            let is_switch = found.is_none_or(|help| help.kind == ValueKind::Switch);
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
