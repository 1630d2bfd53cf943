//! What several fuzz targets do with a document that was read: everything that `show`, `export` and
//! `compare` do with it.

use diskproof_analysis::compare::{MARGIN, Question, Run, RunGroup, compare};
use diskproof_analysis::fleet::{self, Fleet, FleetQuestion, Surplus};
use diskproof_model::comparison::Comparison;
use diskproof_model::document::AnyDocument;
use diskproof_model::fleet::FleetRecord;
use diskproof_model::record::{Record, Tool};
use diskproof_model::saved::SavedRun;
use diskproof_report::formats::FORMATS;
use diskproof_report::style::{Color, Style};
use diskproof_report::terminal::{self, FleetDetail, MetricDetail};
use std::path::Path;

const STYLE: Style = Style {
    width: 80,
    color: Color::Ansi,
};

/// Reads a text and uses whatever it holds.
pub fn use_text(text: &str) {
    match AnyDocument::from_json(text) {
        Ok(AnyDocument::Record(record)) => use_record(&record),
        Ok(AnyDocument::Comparison(comparison)) => use_comparison(&comparison),
        Ok(AnyDocument::Fleet(fleet)) => use_fleet(*fleet),
        Err(error) => drop(error.to_string()),
    }
}

/// Prints the fleet in every format, and judges its examples by it.
pub fn use_fleet(judged: FleetRecord) {
    let mut out = Vec::new();
    terminal::write_fleet(&judged, FleetDetail::All, &STYLE, &mut out)
        .expect("writing to memory cannot fail");
    for format in FORMATS {
        if let Some(write) = format.fleet {
            out.clear();
            write(&judged, &mut out).expect("writing to memory cannot fail");
        }
    }
    let question = FleetQuestion {
        tool: judged.tool.clone(),
        margin: fleet::MARGIN,
        missing: Vec::new(),
        surplus: Surplus::default(),
        refused: Vec::new(),
    };
    let examples = judged.examples.clone();
    let mut by_reference = Fleet::with_reference(judged, None);
    for example in &examples {
        by_reference.add(example);
    }
    drop(by_reference.judge(question));
}

/// Prints the record in every format, and compares it with itself.
pub fn use_record(record: &Record) {
    drop(terminal::record_page(
        record,
        terminal::Detail::Whole,
        &STYLE,
    ));
    let mut out = Vec::new();
    terminal::write_commands(record, &STYLE, &mut out).expect("writing to memory cannot fail");
    for format in FORMATS {
        let name = format!("data{}", format.extension);
        for file in format.files(record, Path::new(&name)) {
            out.clear();
            (file.write)(&mut out).expect("writing to memory cannot fail");
            if format.extension == ".json" {
                read_again(record, &out);
            }
        }
    }
    drop(SavedRun::from_record(record, None));
    compare_with_itself(record);
}

/// NaN and infinity become null, which not every field can be; nothing else is lost.
fn read_again(record: &Record, json: &[u8]) {
    if let Ok(again) = Record::from_json(&String::from_utf8_lossy(json)) {
        assert_eq!(again.measurements.len(), record.measurements.len());
    }
}

fn compare_with_itself(record: &Record) {
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
        history: vec![side("c")],
        limits: Vec::new(),
    };
    if let Ok(comparison) = compare(&question) {
        use_comparison(&comparison);
    }
}

/// Prints the comparison in every format that has it.
fn use_comparison(comparison: &Comparison) {
    let mut out = Vec::new();
    terminal::write_comparison(comparison, MetricDetail::All, &STYLE, &mut out)
        .expect("writing to memory cannot fail");
    for write in FORMATS.iter().filter_map(|format| format.comparison) {
        out.clear();
        write(comparison, &mut out).expect("writing to memory cannot fail");
    }
}
