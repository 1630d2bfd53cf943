//! `diskproof man`: writes the manual pages. Touches no disk.

use super::Args;
use crate::failure::{Exit, Failure};
use crate::output_files::save_file;
use crate::stdio::eprint_line;
use anyhow::Context as _;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use diskproof_compat::{DropIn, Treatment, drop_ins};
use diskproof_device::TrustedDirectory;
use diskproof_model::shell::quoted;
use diskproof_report::format::OutputFile;
use std::path::{Path, PathBuf};

/// Below the help of `man`.
const HELP: &str = concat!(
    "Examples:\n",
    "  diskproof man /usr/local/share/man/man1\n",
    "  diskproof man . && man ./diskproof-check.1",
);

/// Write the manual pages into a directory
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct ManFlags {
    /// An existing directory; pages in it are replaced
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// An entry of the section EXIT STATUS.
struct ExitStatus {
    code: &'static str,
    meaning: &'static str,
}

const fn exit_status(code: &'static str, meaning: &'static str) -> ExitStatus {
    ExitStatus { code, meaning }
}

/// The exit codes of all verbs, which every page lists.
const EXIT_STATUSES: [ExitStatus; 7] = [
    exit_status("0", "success"),
    exit_status(
        "1",
        "a condition of --expect was missed, or one of --fail-on holds",
    ),
    exit_status("2", "the command line is invalid"),
    exit_status("3", "refused for safety; nothing was touched"),
    exit_status("4", "the run failed, or the target returned errors"),
    exit_status("5", "the measurement could not decide a condition"),
    exit_status("130", "interrupted; partial results were printed and saved"),
];

/// Writes a page for the program, each verb and each drop-in.
pub fn run(flags: &ManFlags) -> anyhow::Result<Exit> {
    let directory = &flags.directory;
    if !directory.is_dir() {
        let shown = quoted(&directory.display().to_string());
        return Err(Failure::Usage(format!(
            "man: {shown} is not a directory. To create it: mkdir -p {shown}"
        ))
        .into());
    }
    // Before the first page: refuses a path that leads through a symlink of another user. The pages
    // are written by path, so a link that appears later is not noticed.
    TrustedDirectory::open(directory).map_err(Failure::Path)?;
    let mut program = Args::command();
    program.build();
    let verbs: Vec<Command> = program.get_subcommands().cloned().collect();
    let names: Vec<String> = verbs.iter().map(page_name).collect();
    write_page(directory, "diskproof", program, &names)?;
    for verb in verbs {
        let name = page_name(&verb);
        write_page(directory, &name, verb, &["diskproof".to_owned()])?;
    }
    for tool in drop_ins() {
        write_drop_in(directory, tool)?;
    }
    let count = names.len() + 1 + drop_ins().len();
    eprint_line(&format!("wrote {count} pages to {}", directory.display()));
    Ok(Exit::Done)
}

fn page_name(verb: &Command) -> String {
    format!("diskproof-{}", verb.get_name())
}

/// Writes the page of the program or a verb. `related` are the pages that it refers to.
fn write_page(
    directory: &Path,
    name: &str,
    command: Command,
    related: &[String],
) -> anyhow::Result<()> {
    let help = match command.get_after_help() {
        Some(help) => help.to_string(),
        None => String::new(),
    };
    let has_verbs = command.has_subcommands();
    let man = Man::new(command.display_name(name.to_owned()))
        .title(name)
        .source(concat!("diskproof ", env!("CARGO_PKG_VERSION")))
        .manual("Disk measurements");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_verbs {
        man.render_subcommands_section(&mut page)?;
    }
    page_end(&help, related).to_writer(&mut page)?;
    save(directory, name, &page)
}

fn save(directory: &Path, name: &str, page: &[u8]) -> anyhow::Result<()> {
    let path = directory.join(format!("{name}.1"));
    let file = OutputFile::new(&path, |out| out.write_all(page));
    save_file(&file).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}

/// Writes the page of a drop-in, such as `diskproof-as-ioping.1`.
fn write_drop_in(directory: &Path, tool: &DropIn) -> anyhow::Result<()> {
    let name = format!("diskproof-as-{}", tool.name);
    let mut page = Roff::new();
    let title = [name.as_str(), "1", "", "diskproof", "Disk measurements"];
    page.control("TH", title);
    page.control("SH", ["NAME"]);
    page.text([roman(format!("{name} - {}", tool.summary))]);
    page.control("SH", ["SYNOPSIS"]);
    page.text([
        bold("diskproof as"),
        roman(" [FLAGS] "),
        bold(tool.name),
        roman(" [ARGUMENTS]"),
    ]);
    page.control("SH", ["DESCRIPTION"]);
    page.text([roman(format!(
        "Runs the command line of {} on diskproof's engine and prints the output of that tool.",
        tool.emulates
    ))]);
    for difference in tool.differences {
        page.control("PP", []);
        page.text([roman(*difference)]);
    }
    page.control("SH", ["OPTIONS"]);
    for option in tool.options {
        let names = match (option.short, option.long) {
            (short, "") => short.to_owned(),
            ("", long) => format!("--{long}"),
            (short, long) => format!("{short}, --{long}"),
        };
        let meaning = match option.treatment {
            Treatment::Carried => option.help.to_owned(),
            Treatment::Ignored(why) => format!("no effect: {why}"),
            Treatment::Refused(instead) => format!("refused: {instead}"),
        };
        page.control("TP", []);
        page.text([bold(format!("{names} {}", option.value))]);
        page.text([roman(meaning)]);
    }
    write_drop_in_end(&mut page, tool);
    save(directory, &name, page.render().as_bytes())
}

/// Writes the exit codes of a tool, a command line that works, and related pages.
fn write_drop_in_end(page: &mut Roff, tool: &DropIn) {
    let exits = tool.exits;
    let usage = exits.usage.to_string();
    let target = exits.target.to_string();
    let run = exits.run.to_string();
    let signal = match exits.signal {
        Some(code) => code.to_string(),
        None => "128 + number".to_owned(),
    };
    page.control("SH", ["EXIT STATUS"]);
    write_exit_code(page, "0", "success");
    write_exit_code(page, &usage, "the command line is invalid");
    write_exit_code(page, &target, "the target is missing, too small or refused");
    if exits.unreadable != exits.target {
        let unreadable = exits.unreadable.to_string();
        write_exit_code(page, &unreadable, "you may not read the target");
    }
    write_exit_code(page, &run, "the run failed");
    write_exit_code(page, &signal, "a signal ended the run");
    page.control("SH", ["EXAMPLES"]);
    page.control("nf", []);
    let example = format!("diskproof as {} {}", tool.name, tool.example);
    page.text([roman(example)]);
    page.text([roman("diskproof as --link ~/bin")]);
    page.control("fi", []);
    page.control("SH", ["SEE ALSO"]);
    page.text([
        bold("diskproof-as"),
        roman("(1), "),
        bold(format!("diskproof-{}", tool.native)),
        roman("(1)"),
    ]);
}

fn write_exit_code(page: &mut Roff, code: &str, meaning: &str) {
    page.control("TP", []);
    page.text([bold(code)]);
    page.text([roman(meaning)]);
}

/// The text below the help, whose indented lines stay as they are, and the sections that clap does
/// not know.
fn page_end(help: &str, related: &[String]) -> Roff {
    let mut page = Roff::new();
    if !help.is_empty() {
        page.control("SH", ["NOTES"]);
    }
    let mut is_indented = false;
    for line in help.lines() {
        let was_indented = is_indented;
        is_indented = line.starts_with("  ");
        if is_indented && !was_indented {
            page.control("nf", []);
        } else if was_indented && !is_indented {
            page.control("fi", []);
        }
        if line.is_empty() {
            page.control("PP", []);
        } else {
            page.text([roman(line)]);
        }
    }
    if is_indented {
        page.control("fi", []);
    }
    page.control("SH", ["EXIT STATUS"]);
    for status in &EXIT_STATUSES {
        write_exit_code(&mut page, status.code, status.meaning);
    }
    page.control("SH", ["SEE ALSO"]);
    for (index, name) in related.iter().enumerate() {
        let end = if index + 1 == related.len() { "" } else { "," };
        page.text([bold(name), roman(format!("(1){end}"))]);
    }
    page
}
