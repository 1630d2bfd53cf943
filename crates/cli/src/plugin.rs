//! `check_diskproof`: a plugin of Nagios and Icinga, when the program is started through a link of
//! that name. One line with performance data on stdout; 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.

use crate::commands::{Args, Verb};
use crate::failure::{Exit, Failure};
use crate::saved::{HistoryFileFlag, open_if_there, place};
use clap::Parser;
use diskproof_history::Filter;
use diskproof_model::finding::Severity;
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;
use diskproof_model::units::{format_duration, format_latency, parse_duration};
use jiff::Timestamp;
use std::path::Path;
use std::sync::mpsc::channel;

/// The name of the link.
const NAME: &str = "check_diskproof";

/// Requests a second, and for how long: a hundred, so that ten lie beyond the 90th percentile.
const LOAD: &str = "--rw randread --bs 4k --rate 25 --time 4s --size 16M --quiet --no-history";

/// A plugin for Nagios and Icinga: 25 reads of 4 KiB a second for 4 s, or the newest saved run
///
/// In a directory it reads a scratch file of 16 MiB, which it writes first. A device or a regular
/// file is only read. --newest measures nothing.
#[derive(Debug, Parser)]
#[command(name = NAME, version, max_term_width = 80)]
struct PluginFlags {
    /// Directory, regular file or block device
    #[arg(short, long, default_value = ".")]
    path: String,
    /// Warn if the 90th percentile of the read times exceeds this
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration, default_value = "20ms")]
    warning: u64,
    /// Critical if it exceeds this
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    critical: u64,
    /// Instead of reading: the age and the worst finding of the newest complete run on the path
    #[arg(long)]
    newest: bool,
    /// With --newest: unknown if it is older than this
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "48h")]
    max_age: u64,
    /// The history.
    #[command(flatten)]
    history_file: HistoryFileFlag,
}

/// Findings after which the figures say nothing about the disk.
const DOUBTS: [&str; 4] = ["disturbed", "starved", "served-from-cache", "unproven"];

/// A state and what the line says of it.
#[derive(Debug, Clone, PartialEq)]
struct Answer {
    state: State,
    text: String,
    /// Performance data; empty for none.
    data: String,
}

/// In the order of their exit codes.
const WORDS: [&str; 4] = ["OK", "WARNING", "CRITICAL", "UNKNOWN"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ok,
    Warning,
    Critical,
    Unknown,
}

impl State {
    fn of(value: u64, warning: u64, critical: u64) -> Self {
        match value {
            value if value > critical => Self::Critical,
            value if value > warning => Self::Warning,
            _ => Self::Ok,
        }
    }
}

fn unknown(text: impl Into<String>) -> Answer {
    Answer {
        state: State::Unknown,
        text: text.into(),
        data: String::new(),
    }
}

/// Runs as the plugin if the program was started as one.
pub(crate) fn run_as_link() -> Option<Exit> {
    let first = std::env::args_os().next()?;
    if Path::new(&first).file_name()? != NAME {
        return None;
    }
    let flags = match PluginFlags::try_parse() {
        Ok(flags) => flags,
        Err(error) if !error.use_stderr() => {
            let _ = error.print();
            return Some(Exit::Done);
        }
        Err(error) => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            return Some(print(&unknown(line.trim_start_matches("error: "))));
        }
    };
    let judge = if flags.newest { newest } else { measured };
    let answer = judge(&flags).unwrap_or_else(|error| unknown(format!("{error:#}")));
    Some(print(&answer))
}

fn print(answer: &Answer) -> Exit {
    // A line break or a bar in the text would end it.
    let text = answer.text.replace('\n', " ").replace('|', "/");
    let (word, data) = (WORDS[answer.state as usize], &answer.data);
    let line = format!("DISKPROOF {word} - {text}{data}\n");
    let _ = crate::stdio::print_text(&line);
    Exit::Tool(answer.state as u8)
}

/// Measures, and judges the 90th percentile.
fn measured(flags: &PluginFlags) -> anyhow::Result<Answer> {
    let words = ["diskproof", "run", flags.path.as_str()].into_iter();
    let words = words.chain(LOAD.split(' '));
    let Verb::Run(run) = Args::try_parse_from(words)?.verb else {
        unreachable!("the words are those of run");
    };
    let (sender, measured) = channel();
    let ended =
        crate::commands::run::run_quietly(&run, move |record| Ok(sender.send(record.clone())?));
    match (measured.try_recv(), ended) {
        (Ok(record), _) => Ok(judged(&record, flags.warning, flags.critical)),
        (Err(_), Err(error)) => Err(error),
        (Err(_), Ok(_)) => Ok(unknown("nothing was measured")),
    }
}

fn judged(record: &Record, warning: u64, critical: u64) -> Answer {
    let path = record.plan.targets.join(", ");
    let mut measured = record.measurements.iter();
    let Some(op) = measured.find_map(|m| m.ops.get(&OpKind::Read)) else {
        return unknown(format!("{path}: nothing was measured"));
    };
    let ms = |ns: u64| ns as f64 / 1e6;
    let data = |name: &str, ns, limits: &str| format!(" {name}={}ms;{limits};0;", ms(ns));
    let limits = format!("{};{}", ms(warning), ms(critical));
    let errors: u64 = op.errors.values().sum();
    let latency = &op.latency;
    let mut values = " |".to_owned();
    values.extend(latency.p90.map(|ns| data("p90", ns, &limits)));
    values.extend(latency.p50.map(|ns| data("median", ns, ";")));
    values.push_str(&data("max", latency.max, ";"));
    values.push_str(&format!(" errors={errors};;0;0;"));
    let (state, text) = if errors > 0 {
        let all = op.count + errors;
        (State::Critical, format!("{errors} of {all} reads failed"))
    } else if let Some(finding) = doubt(record) {
        (State::Unknown, finding.to_owned())
    } else if let Some(p90) = latency.p90 {
        let text = format!(
            "90 % of {} reads within {}, the longest took {}",
            op.count,
            format_latency(p90),
            format_latency(latency.max)
        );
        (State::of(p90, warning, critical), text)
    } else {
        let text = format!("only {} reads were answered within 4 s", op.count);
        (State::Critical, text)
    };
    Answer {
        state,
        text: format!("{path}: {text}"),
        data: values,
    }
}

/// Why the figures say nothing about the disk.
fn doubt(record: &Record) -> Option<&str> {
    let mut findings = record.findings.iter();
    let found = findings.find(|finding| DOUBTS.contains(&finding.code.as_str()))?;
    Some(found.heading())
}

/// Judges what the history has.
fn newest(flags: &PluginFlags) -> anyhow::Result<Answer> {
    let path = Path::new(&flags.path);
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let place = place(flags.history_file.file())?;
    let filter = Filter {
        target: Some(path.to_string_lossy().into_owned()),
        ..Filter::default()
    };
    let runs = match open_if_there(&place)? {
        Some(history) => history.list(&filter).map_err(Failure::History)?.runs,
        None => Vec::new(),
    };
    let newest = runs.iter().find(|run| !run.partial);
    Ok(match newest {
        None => unknown(format!("{}: no saved run", path.display())),
        Some(run) => judged_saved(run, Timestamp::now(), flags.max_age),
    })
}

fn judged_saved(run: &SavedRun, now: Timestamp, max_age_ns: u64) -> Answer {
    let path = run.targets.join(", ");
    let Ok(started) = run.started.parse::<Timestamp>() else {
        return unknown(format!("{path}: the time of the newest run cannot be read"));
    };
    let age_s = now.duration_since(started).as_secs().max(0) as u64;
    let data = format!(" | age={age_s}s;;{};0;", max_age_ns / 1_000_000_000);
    let age = format_duration(age_s * 1_000_000_000);
    let of_worst = run.worst.as_ref().and_then(|worst| {
        let state = match (worst.code.as_str(), worst.severity) {
            (_, Severity::Failure) => State::Critical,
            (code, _) if DOUBTS.contains(&code) => State::Unknown,
            ("imprecise", _) => return None,
            (_, Severity::Warning) => State::Warning,
            _ => return None,
        };
        Some((state, format!("{}, {age} ago", worst.code)))
    });
    let (state, text) = match of_worst {
        _ if age_s * 1_000_000_000 > max_age_ns => {
            (State::Unknown, format!("last measured {age} ago"))
        }
        Some(of_worst) => of_worst,
        None => (State::Ok, format!("no warning, measured {age} ago")),
    };
    let text = format!("{path}: {text}");
    Answer { state, text, data }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_exceeded_not_reached() {
        assert_eq!(State::of(20, 20, 100), State::Ok);
        assert_eq!(State::of(21, 20, 100), State::Warning);
        assert_eq!(State::of(101, 20, 100), State::Critical);
        assert_eq!([State::Ok as u8, State::Unknown as u8], [0, 3]);
    }

    #[test]
    fn newest_run_counts_while_it_is_young() {
        let run = |worst: Option<Severity>| SavedRun {
            run_id: String::new(),
            started: "2026-11-20T10:00:00Z".to_owned(),
            verb: "check".to_owned(),
            targets: vec!["/data".to_owned()],
            disks: Vec::new(),
            host: String::new(),
            label: None,
            note: None,
            partial: false,
            method: 9,
            worst: worst.map(|severity| diskproof_model::saved::WorstFinding {
                severity,
                code: "io-errors".to_owned(),
            }),
            figures: Vec::new(),
        };
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let state = |worst, age| judged_saved(&run(worst), now, age).state;
        let day = 86_400_000_000_000;
        assert_eq!(state(None, day), State::Ok);
        assert_eq!(state(Some(Severity::Note), day), State::Ok);
        assert_eq!(state(Some(Severity::Warning), day), State::Warning);
        assert_eq!(state(Some(Severity::Failure), day), State::Critical);
        assert_eq!(state(Some(Severity::Failure), day / 24), State::Unknown);
    }
}
