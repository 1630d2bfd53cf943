//! What several fuzz targets do with a document that was read: everything that `show`, `export` and
//! `compare` do with it.

use diskproof_analysis::compare::{MARGIN, Question, Run, RunGroup, compare};
use diskproof_model::comparison::Comparison;
use diskproof_model::document::AnyDocument;
use diskproof_model::record::{Record, Tool};
use diskproof_model::saved::SavedRun;
use diskproof_report::style::{Color, Style};
use diskproof_report::terminal::{self, MetricDetail};
use diskproof_report::{chart, csv, fio_json, gnuplot, hlog, html, json, openmetrics, svg};

const STYLE: Style = Style {
    width: 80,
    color: Color::Ansi,
};

/// Reads a text and uses whatever it holds.
pub fn use_text(text: &str) {
    match AnyDocument::from_json(text) {
        Ok(AnyDocument::Record(record)) => use_record(&record),
        Ok(AnyDocument::Comparison(comparison)) => use_comparison(&comparison),
        Err(error) => drop(error.to_string()),
    }
}

/// Prints the record in every format, and compares it with itself.
pub fn use_record(record: &Record) {
    let mut out = Vec::new();
    let mut write = |write: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| {
        out.clear();
        write(&mut out).expect("writing to memory cannot fail");
    };
    write(&|out| terminal::write_record(record, &STYLE, out));
    write(&|out| terminal::write_commands(record, &STYLE, out));
    write(&|out| html::write_record(record, out));
    write(&|out| csv::write_record(record, out));
    write(&|out| hlog::write_record(record, out));
    write(&|out| openmetrics::write_record(record, out));
    write(&|out| gnuplot::write_record(record, "data", out));
    write(&|out| svg::write_sheet(&chart::charts(record), &chart::origin(record), out));
    if fio_json::has_place_for(record) {
        write(&|out| fio_json::write_record(record, out));
    }
    write(&|out| json::write_record(record, out));
    // NaN and infinity become null, which not every field can be; nothing else is lost.
    if let Ok(again) = Record::from_json(&String::from_utf8_lossy(&out)) {
        assert_eq!(again.measurements.len(), record.measurements.len());
    }
    drop(SavedRun::of(record, None));
    let side = |label: &str| RunGroup {
        label: label.to_owned(),
        runs: vec![Run {
            name: label.to_owned(),
            record,
        }],
    };
    let question = Question {
        tool: Tool {
            name: "diskproof".to_owned(),
            version: "0".to_owned(),
        },
        margin: MARGIN,
        baseline: side("a"),
        candidates: vec![side("b")],
        limits: Vec::new(),
    };
    if let Ok(comparison) = compare(&question) {
        use_comparison(&comparison);
    }
}

/// Prints the comparison in every format.
pub fn use_comparison(comparison: &Comparison) {
    let mut out = Vec::new();
    terminal::write_comparison(comparison, MetricDetail::All, &STYLE, &mut out)
        .and_then(|()| html::write_comparison(comparison, &mut out))
        .and_then(|()| json::write_comparison(comparison, &mut out))
        .expect("writing to memory cannot fail");
}
