//! `diskproof show`: prints a saved run as it was printed originally, or a record or comparison
//! from a file. Measures nothing.

use super::{compare, merge};
use crate::failure::{Exit, Failure};
use crate::flags::{is_stdout, output_files, parse_page_name};
use crate::output_files::{Trial, open_outputs, save_records, warn_of_left_out};
use crate::saved::{HistoryFileFlag, SavedDocument, find};
use crate::stdio::{
    ColorWhen, Presentation, Verbosity, colored_commands_page, colored_style, ignore_closed_pipe,
    to_stdout, write_record_page,
};
use diskproof_analysis::advice::advised_settings;
use diskproof_history::StoredRun;
use diskproof_model::comparison::Comparison;
use diskproof_model::fleet::FleetRecord;
use diskproof_model::record::Record;
use diskproof_report::format::Format;
use diskproof_report::formats::{extensions, format_of};
use diskproof_report::json;
use diskproof_report::terminal::{Detail, FleetDetail, MetricDetail, record_page};
use std::path::{Path, PathBuf};

/// Print a saved run, or a record from a file, judged by today's rules
#[derive(Debug, clap::Args)]
pub struct ShowFlags {
    /// An id or its beginning, latest, latest~1, a label, a file (.json, or the .html page of a
    /// report or comparison), or - for stdin
    #[arg(value_name = "RUN|FILE", default_value = "latest")]
    pub run: String,
    /// Print the record as JSON; the same as -o -
    #[arg(long)]
    pub json: bool,
    /// Print the record in this format instead: the extension of a file, or postgresql.conf
    #[arg(long, value_name = "FORMAT", value_parser = parse_format,
          conflicts_with_all = ["json", "commands"])]
    pub format: Option<&'static Format>,
    /// Also print a command of fio or another tool for each figure
    #[arg(long)]
    pub commands: bool,
    /// Recommend settings for this major version of PostgreSQL instead
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=99))]
    pub pg_version: Option<u32>,
    /// Write the record to a file instead of printing it; the extension selects the format
    /// (repeatable)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub outputs: Vec<PathBuf>,
    /// Save a page, like -o FILE.html (repeatable)
    #[arg(long, value_name = "FILE.html", value_parser = parse_page_name)]
    pub html: Vec<PathBuf>,
    /// No notes on stderr
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Print all findings, advice and conditions; of a comparison, all metrics
    #[arg(short = 'v', long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Colour the result
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorWhen,
    /// The history.
    #[command(flatten)]
    pub history_file: HistoryFileFlag,
}

impl ShowFlags {
    fn prints_json(&self) -> bool {
        self.json || self.outputs.iter().any(|path| is_stdout(path))
    }

    fn presentation(&self) -> Presentation {
        Presentation::from_json_flag(self.prints_json())
    }
}

/// Reads the format of `--format`: an extension without its dot, or `postgresql.conf`.
fn parse_format(text: &str) -> Result<&'static Format, String> {
    let name = format!("record.{text}");
    match format_of(Path::new(&name)) {
        Some(format) => Ok(format),
        None => {
            let formats = extensions(|_| true).replace('.', "");
            Err(format!(
                "unknown format; use postgresql.conf or one of {formats}"
            ))
        }
    }
}

/// Prints a record in a format; of several files that it fills, the first. Fails where the record
/// has nothing for the format.
fn print_format(record: &Record, format: &Format) -> anyhow::Result<Exit> {
    let files = format.files(record, Path::new("record"));
    let Some(file) = files.first() else {
        let text = format.requires.missing_text(record);
        return Err(if format.requires.is_undecided_by(record) {
            Failure::Undecided(text).into()
        } else {
            Failure::Usage(text).into()
        });
    };
    warn_of_left_out(record, format);
    ignore_closed_pipe(to_stdout(|out| (file.write)(out)))?;
    Ok(Exit::Done)
}

/// Prints the run, comparison or fleet, or writes it to the files.
pub fn run(show: &ShowFlags) -> anyhow::Result<Exit> {
    if show.format.is_some() && show.outputs.iter().any(|path| is_stdout(path)) {
        let text =
            "--format and -o - both print on stdout. Omit one of them, or name a file with -o";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    let StoredRun {
        mut record,
        page: mut saved_page,
        ..
    } = match find(&show.run, show.history_file.file())? {
        SavedDocument::Run(stored) => *stored,
        SavedDocument::Comparison(comparison) => return show_comparison(show, &comparison),
        SavedDocument::Fleet(fleet) => return show_fleet(show, &fleet),
    };
    if let Some(version) = show.pg_version {
        // A file of the record has this question, too, so that its advice and its question agree.
        record.plan.questions.postgres_version = Some(version);
        record.advice = advised_settings(&record);
        saved_page = None;
    }
    let paths = output_files(&[&show.outputs, &show.html]);
    let outputs = open_outputs(&paths, show.history_file.file(), Trial::Create)?;
    save_records(&record, &outputs, Verbosity::lines(show.quiet))?;
    if let Some(format) = show.format {
        return print_format(&record, format);
    }
    if show.prints_json() {
        ignore_closed_pipe(to_stdout(|out| json::write_record(&record, out)))?;
    } else if outputs.is_empty() || show.commands {
        let page = page_of_run(show, &record, saved_page);
        ignore_closed_pipe(to_stdout(|out| {
            write_record_page(&record, &page, show.color, out)
        }))?;
    }
    Ok(Exit::Done)
}

/// The page of a run as the flags select it. `saved_page` is the one that was printed at its end.
fn page_of_run(show: &ShowFlags, record: &Record, saved_page: Option<String>) -> String {
    let mut page = match saved_page {
        Some(saved_page) if !show.verbose => saved_page,
        _ if show.verbose => record_page(record, Detail::Whole, &colored_style()),
        _ => record_page(record, Detail::Short, &colored_style()),
    };
    let commands = colored_commands_page(record);
    // The saved page of a run with --commands already ends with them.
    if show.commands && !page.ends_with(&commands) {
        page = format!("{page}\n{commands}");
    }
    page
}

fn show_fleet(show: &ShowFlags, fleet: &FleetRecord) -> anyhow::Result<Exit> {
    if show.format.is_some() || show.pg_version.is_some() || show.commands {
        let text = format!(
            "{}: this is a fleet of runs; --format, --pg-version and --commands print single ones",
            show.run
        );
        return Err(Failure::Usage(text).into());
    }
    let paths = output_files(&[&show.outputs, &show.html]);
    let outputs = merge::open_outputs(&paths, show.history_file.file())?;
    merge::save(fleet, &outputs, Verbosity::lines(show.quiet))?;
    if show.prints_json() || outputs.is_empty() {
        let detail = if show.verbose {
            FleetDetail::All
        } else {
            FleetDetail::Differing
        };
        merge::print(fleet, show.presentation(), detail, show.color)?;
    }
    Ok(Exit::Done)
}

fn show_comparison(show: &ShowFlags, comparison: &Comparison) -> anyhow::Result<Exit> {
    let problem = if show.format.is_some() {
        "--format prints runs, but this is a comparison. Use -o FILE"
    } else if show.pg_version.is_some() {
        "a comparison has no settings. Show one of its runs with --pg-version"
    } else if show.commands {
        "a comparison has no commands. Show one of its runs with --commands"
    } else {
        return write_comparison(show, comparison);
    };
    Err(Failure::Usage(format!("{}: {problem}", show.run)).into())
}

fn write_comparison(show: &ShowFlags, comparison: &Comparison) -> anyhow::Result<Exit> {
    let paths = output_files(&[&show.outputs, &show.html]);
    let outputs = compare::open_outputs(&paths, show.history_file.file())?;
    compare::save_comparison(comparison, &outputs, Verbosity::lines(show.quiet))?;
    if show.prints_json() || outputs.is_empty() {
        let detail = if show.verbose {
            MetricDetail::All
        } else {
            MetricDetail::Independent
        };
        compare::print_comparison(comparison, show.presentation(), detail, show.color)?;
    }
    Ok(Exit::Done)
}
