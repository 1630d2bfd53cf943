//! A drop-in: its names, options with their treatment, differences, exit codes and usage, all read
//! from the text file of the tool, and the function that reads its command line.

use crate::jobs::JobRequest;
use crate::load::{DropInLoad, PrimeRequest};
use crate::printer::{DropInError, ToolText};

/// A tool whose command line is understood.
#[derive(Debug)]
pub struct DropIn {
    /// The command, such as `ioping`.
    pub name: &'static str,
    /// The tool and the version that is emulated, such as `ioping 1.3`.
    pub emulates: &'static str,
    /// A noun phrase that says what the tool measures.
    pub summary: &'static str,
    /// Our own verb for the same question, such as `ping`.
    pub native: &'static str,
    /// A command line that works on every machine, without the name.
    pub example: &'static str,
    /// Every option of the tool.
    pub options: &'static [DropInOption],
    /// Differences from the tool, a sentence each.
    pub differences: &'static [&'static str],
    /// The tool's help, or the start of it.
    pub usage: &'static str,
    /// The meaning of its exit codes.
    pub exits: ExitCodes,
    /// Reads the arguments after the name.
    pub start: Start,
}

/// Reads the arguments after the name.
pub(crate) type Start = fn(&[String]) -> Result<Started, DropInError>;

/// An option of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DropInOption {
    /// The short form as it is written, such as `-c`; empty where there is only the long form.
    pub short: &'static str,
    /// The long form without dashes; empty where there is none.
    pub long: &'static str,
    /// Name of the value, such as `count`; empty where it takes none, in brackets where it is
    /// optional.
    pub value: &'static str,
    /// The effect, as an imperative.
    pub help: &'static str,
    /// The treatment here.
    pub treatment: Treatment,
    /// The text that it prints instead of a run; `None` of an option that shapes a run.
    pub prints: Option<PrintedText>,
}

impl DropInOption {
    /// The option as a user writes it: the short form where there is one.
    pub(crate) fn written(&self) -> String {
        match self.short {
            "" => format!("--{}", self.long),
            short => short.to_owned(),
        }
    }

    /// The name by which the code of a tool asks for the option: the short form without its dash or
    /// its `=`, or the long form where there is no short one.
    pub(crate) fn key(&self) -> &'static str {
        match self.short {
            "" => self.long,
            short => short.trim_start_matches('-').trim_end_matches('='),
        }
    }

    /// Fails if the option is refused, and adds a note if it has no effect.
    pub(crate) fn admit(&self, notes: &mut Vec<String>) -> Result<(), String> {
        let name = self.written();
        match self.treatment {
            Treatment::Carried => {}
            Treatment::Ignored(why) => notes.push(format!("{name} has no effect: {why}")),
            Treatment::Refused(instead) => {
                return Err(format!("{name} is not supported; {instead}"));
            }
        }
        Ok(())
    }
}

/// The treatment of an option of the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// Carried out with the effect that it has in the tool.
    Carried,
    /// Accepted without effect; the reason, as a clause.
    Ignored(&'static str),
    /// An error; what to do instead, as an imperative.
    Refused(&'static str),
}

/// The text that an option prints instead of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintedText {
    /// The tool's help.
    Help,
    /// The tool's version.
    Version,
}

/// The request that a command line makes.
pub enum Started {
    /// Text only: help or version.
    Text(ToolText),
    /// A load to be measured.
    Load(Box<dyn DropInLoad>),
    /// Jobs, from files or from the command line.
    Jobs(Box<JobRequest>),
    /// A load of processors.
    Primes(Box<PrimeRequest>),
}

impl Started {
    /// The answer to `--version`: the line of the tool, because scripts compare it.
    pub(crate) fn version(emulates: &str) -> Self {
        Self::text(format!("{emulates}\n"))
    }

    /// The help, whose end says whose it is.
    pub(crate) fn help(text: &str) -> Self {
        Self::text(format!("{text}{}", emulation()))
    }

    /// A text for stdout and nothing else.
    pub(crate) fn text(stdout: String) -> Self {
        Self::Text(ToolText::out(stdout))
    }
}

/// The end of a help.
pub(crate) fn emulation() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("\nEmulated by diskproof {version}; see 'diskproof as --help'\n")
}

/// The exit codes of a tool, by what went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitCodes {
    /// The command line makes no sense.
    pub usage: u8,
    /// The target cannot be used: it is missing, refused or too small.
    pub target: u8,
    /// The user may not read the target; that of the target where the tool has no other.
    pub unreadable: u8,
    /// The target cannot be opened for the direct I/O that the command line requests.
    pub direct: u8,
    /// Exit code after a run that failed.
    pub run: u8,
    /// A signal ended the run; `None`: as a shell reports a process that died of it.
    pub signal: Option<u8>,
}

impl DropIn {
    /// Reads the file of a tool. It is part of the program, so that a fault in it is one of the
    /// program: the tests read all files.
    pub(crate) fn read(text: &'static str, start: Start) -> Self {
        parse(text, start).unwrap_or_else(|why| panic!("{why}"))
    }
}

fn parse(text: &'static str, start: Start) -> Result<DropIn, String> {
    let (head, after_head) = split_at_mark(text, "\n[options]\n")?;
    let (options, after_options) = split_at_mark(after_head, "\n[differences]\n")?;
    let (differences, usage) = split_at_mark(after_options, "\n[usage]\n")?;
    Ok(DropIn {
        name: field(head, "name")?,
        emulates: field(head, "emulates")?,
        summary: field(head, "summary")?,
        native: field(head, "native")?,
        example: field(head, "example")?,
        options: read_options(options)?.leak(),
        differences: read_differences(differences).leak(),
        usage,
        exits: read_exits(field(head, "exits")?)?,
        start,
    })
}

/// The text before the mark, and the text after it.
fn split_at_mark(text: &'static str, mark: &str) -> Result<(&'static str, &'static str), String> {
    match text.split_once(mark) {
        Some(parts) => Ok(parts),
        None => Err(format!("{mark:?} is missing")),
    }
}

/// The value of a line `name: value`.
fn field(head: &'static str, name: &str) -> Result<&'static str, String> {
    for line in head.lines() {
        if let Some((key, value)) = line.split_once(": ")
            && key == name
        {
            return Ok(value);
        }
    }
    Err(format!("'{name}: ' is missing"))
}

/// The sentences of a list whose lines are wrapped.
fn read_differences(list: &str) -> Vec<&'static str> {
    let mut sentences = Vec::new();
    for lines in list.trim_start_matches("* ").split("\n* ") {
        let words: Vec<&str> = lines.split_whitespace().collect();
        let sentence: &'static str = words.join(" ").leak();
        sentences.push(sentence);
    }
    sentences
}

/// Reads a list such as `usage 1, target 2, unreadable 13, direct 3, run 4, signal 0`. Without
/// `unreadable` or `direct` its code is that of the target; without `signal` the run ends as a
/// shell reports it.
fn read_exits(text: &str) -> Result<ExitCodes, String> {
    let target = required_exit_code(text, "target")?;
    Ok(ExitCodes {
        usage: required_exit_code(text, "usage")?,
        target,
        unreadable: exit_code(text, "unreadable").unwrap_or(target),
        direct: exit_code(text, "direct").unwrap_or(target),
        run: required_exit_code(text, "run")?,
        signal: exit_code(text, "signal"),
    })
}

fn required_exit_code(exits: &str, name: &str) -> Result<u8, String> {
    match exit_code(exits, name) {
        Some(code) => Ok(code),
        None => Err(format!("exits: {name} is missing")),
    }
}

fn exit_code(exits: &str, name: &str) -> Option<u8> {
    for part in exits.split(", ") {
        if let Some((word, number)) = part.split_once(' ')
            && word == name
        {
            return number.parse().ok();
        }
    }
    None
}

/// Reads the options of all lines. A line that is only a form has the rest of the next line that
/// has one.
fn read_options(lines: &'static str) -> Result<Vec<DropInOption>, String> {
    let mut options = Vec::new();
    let mut forms = Vec::new();
    for line in lines.lines() {
        if line.is_empty() {
            continue;
        }
        let (form, rest) = line.split_once(" | ").unwrap_or((line, ""));
        forms.push(form);
        if rest.is_empty() {
            continue;
        }
        for form in forms.drain(..) {
            match read_option(form, rest) {
                Ok(option) => options.push(option),
                Err(why) => return Err(format!("{line}: {why}")),
            }
        }
    }
    match forms.first() {
        None => Ok(options),
        Some(form) => Err(format!("{form}: not an option")),
    }
}

/// Reads a line of an option: `-c, --count N | carried | help`, `-k | ignored | why` or
/// `-b | refused | instead`, of which the last two may go on with `| help`. An option that prints a
/// text has the word `help` or `version` in place of `carried`.
fn read_option(form: &'static str, rest: &'static str) -> Result<DropInOption, String> {
    let cells: Vec<&str> = rest.split(" | ").collect();
    let (word, text, text_of_help) = match cells.as_slice() {
        [word, text] => (*word, *text, ""),
        [word, text, help] => (*word, *text, *help),
        _ => return Err("not an option".to_owned()),
    };
    let (treatment, help) = match word {
        "carried" | "help" | "version" => (Treatment::Carried, text),
        "ignored" => (Treatment::Ignored(text), text_of_help),
        "refused" => (Treatment::Refused(text), text_of_help),
        _ => return Err(format!("'{word}' is no treatment")),
    };
    let prints = match word {
        "help" => Some(PrintedText::Help),
        "version" => Some(PrintedText::Version),
        _ => None,
    };
    let (mut short, mut long, mut value) = ("", "", "");
    for word in form.split_whitespace() {
        match (word.strip_prefix("--"), word.trim_end_matches(',')) {
            (Some(name), _) => long = name,
            (None, name) if short.is_empty() && long.is_empty() => short = name,
            (None, name) => value = name,
        }
    }
    Ok(DropInOption {
        short,
        long,
        value,
        help,
        treatment,
        prints,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name: a\nemulates: a 1\nsummary: s\nnative: run\nexample: x\n";

    fn tool(rest: &str) -> Result<DropIn, String> {
        let text = format!("{HEAD}{rest}\n[differences]\n* One\n  two.\n* Three.\n\n[usage]\nu\n");
        parse(text.leak(), |_| unreachable!())
    }

    #[test]
    fn options_have_forms_treatments_and_texts() {
        let lines = "-c, --count N | carried | count\n--async\n--direct | ignored | always\n\
                     -I, --time [format] | refused | omit it | print times\n-h | help | print\n";
        let exits = "exits: usage 1, target 2, run 3\n\n[options]\n";
        let tool = tool(&format!("{exits}{lines}")).unwrap();
        let [count, asynchronous, direct, time, help] = tool.options else {
            panic!("{:?}", tool.options);
        };
        assert_eq!((count.short, count.long, count.value), ("-c", "count", "N"));
        assert_eq!((count.help, count.treatment), ("count", Treatment::Carried));
        assert_eq!((direct.short, direct.long), ("", "direct"));
        assert_eq!(asynchronous.long, "async");
        for option in [asynchronous, direct] {
            assert_eq!(option.treatment, Treatment::Ignored("always"));
        }
        assert_eq!((time.value, time.help), ("[format]", "print times"));
        assert_eq!(time.treatment, Treatment::Refused("omit it"));
        assert_eq!(help.prints, Some(PrintedText::Help));
        assert_eq!(tool.differences, ["One two.", "Three."]);
        assert_eq!((tool.exits.target, tool.exits.signal), (2, None));
        assert_eq!((tool.exits.unreadable, tool.exits.direct), (2, 2));
        assert_eq!(tool.usage, "u\n");
    }

    #[test]
    fn faults_name_their_line() {
        for (exits, options, fault) in [
            ("usage 1, target 2", "\n[options]\n", "run is missing"),
            ("usage 1", "", "[options]"),
            (
                "usage 1, target 2, run 3",
                "\n[options]\n-c | count\n",
                "-c | count",
            ),
            (
                "usage 1, target 2, run 3",
                "\n[options]\n-c | kept | x\n",
                "'kept'",
            ),
            (
                "usage 1, target 2, run 3",
                "\n[options]\n-k | help | x\n-c\n",
                "-c: not",
            ),
        ] {
            let why = tool(&format!("exits: {exits}\n{options}")).unwrap_err();
            assert!(why.contains(fault), "{why}");
        }
    }
}
