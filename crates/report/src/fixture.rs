//! What the tests of this crate share: records that runs made, and pages as text.

use crate::style::{Color, Style};
use diskproof_model::comparison::Comparison;
use diskproof_model::finding::Severity;
use diskproof_model::fleet::{
    FLEET_SCHEMA, FleetBasis, FleetDistance, FleetGroup, FleetMetric, FleetOutcome, FleetRecord,
    FleetRow, FleetScale, FleetValue, RowState, RowUnit,
};
use diskproof_model::fleet_sum::{FleetSum, SumStorage, WorkloadSum};
use diskproof_model::metric::{Direction, Figure};
use diskproof_model::op::OpKind;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::saved::{Headline, SavedDisk, SavedFinding, SavedRun};
use diskproof_model::target::TargetKind;
use std::io::{self, Write};

/// A real record of `check`.
pub(crate) fn record() -> Record {
    let text = include_str!("../../../tests/fixtures/check-directory.json");
    Record::from_json(text).unwrap()
}

/// A real comparison.
pub(crate) fn comparison() -> Comparison {
    serde_json::from_str(include_str!("../../../tests/fixtures/comparison.json")).unwrap()
}

/// So many sides of 1,000 requests per second each; `node7` has 200.
pub(crate) fn fleet(sides: usize) -> FleetRecord {
    FleetRecord {
        schema: FLEET_SCHEMA.to_owned(),
        tool: comparison().tool,
        margin: 0.1,
        basis: FleetBasis::EachOther,
        outcome: FleetOutcome::Differs,
        summary: format!("{} of {sides} sides alike; 1 differs: node7.", sides - 1),
        rows_are: RowUnit::Sides,
        groups: vec![FleetGroup {
            kind: TargetKind::Directory,
            rotational: None,
            model: String::new(),
            disk_bytes: 0,
            rows: sides,
            spread: Some(0.02),
            metrics: vec![fleet_metric(sides)],
            overall: Vec::new(),
            facts: Vec::new(),
            findings: Vec::new(),
        }],
        rows: (0..sides).map(fleet_row).collect(),
        tested: Vec::new(),
        missing: Vec::new(),
        surplus: 0,
        unexpected: Vec::new(),
        unmet: Vec::new(),
        refused: Vec::new(),
        sum: None,
        examples: Vec::new(),
    }
}

fn fleet_metric(rows: usize) -> FleetMetric {
    FleetMetric {
        metric: "random-read-d32.iops".to_owned(),
        subject: "random-read-d32".to_owned(),
        figure: Figure::Iops,
        better: Direction::Higher,
        unit: "1/s".to_owned(),
        rows,
        example: None,
        target: 0,
        five_numbers: vec![980.0, 990.0, 1000.0, 1010.0, 1020.0],
        scale: Some(FleetScale {
            rows,
            median: 1000_f64.ln(),
            spread: 0.02,
            floor: 0.05,
            error_squared: 0.0,
            tail_freedom: 50.0,
        }),
        latencies: Vec::new(),
    }
}

fn fleet_row(number: usize) -> FleetRow {
    let (value, state) = match number {
        7 => (200.0, RowState::Slower),
        _ => (1000.0, RowState::Alike),
    };
    FleetRow {
        name: format!("node{number}"),
        host: format!("node{number}"),
        rank: None,
        target: String::new(),
        disks: Vec::new(),
        serials: Vec::new(),
        machine: None,
        identity: None,
        runs: Vec::new(),
        group: Some(0),
        state,
        values: vec![FleetValue {
            metric: 0,
            value,
            error: 0.0,
            state,
            distance: Some(FleetDistance {
                speed: value / 1000.0,
                t: 0.0,
                p_value: 1.0,
                p_adjusted: 1.0,
            }),
            not_judged: None,
            latencies: Vec::new(),
        }],
        overall: None,
        reasons: Vec::new(),
        findings: Vec::new(),
        not_judged: None,
    }
}

/// What three hosts gave together in five slots: 9,000 requests per second.
pub(crate) fn fleet_sum() -> FleetSum {
    FleetSum {
        summary: "3 hosts together".to_owned(),
        members: Vec::new(),
        left_out: Vec::new(),
        slots: 5,
        storage: SumStorage::Separate,
        workloads: vec![WorkloadSum {
            workload: "random-read-d32".to_owned(),
            op: OpKind::Read,
            slots: 5,
            iops: Estimate::new(5, 9000.0, Some(12.5), "1/s"),
            throughput: Estimate::new(5, 36_864_000.0, None, "B/s"),
            overlap: 0.75,
            latencies: None,
        }],
        undecided: Vec::new(),
        earlier_launches: Vec::new(),
        starts: None,
    }
}

/// What a writer writes.
pub(crate) fn written(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A page of this width without colours.
pub(crate) const fn plain(width: usize) -> Style {
    Style {
        width,
        color: Color::Plain,
    }
}

/// Fails unless the text shows all of these, whose spaces may be hard ones or line ends.
#[track_caller]
pub(crate) fn assert_shows(text: &str, parts: &[&str]) {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(words.contains(part), "{part:?} is missing:\n{text}");
    }
}

/// A headline of reads, known to a thousandth.
fn saved_figure(workload: &str, value: f64, unit: &str) -> Headline {
    Headline {
        workload: workload.to_owned(),
        operation: "read".to_owned(),
        target: None,
        value,
        half_width_95: Some(value * 1e-3),
        unit: unit.to_owned(),
        objection: None,
    }
}

/// A saved run that ended early, with the figures of a check and a curve.
pub(crate) fn saved_run() -> SavedRun {
    SavedRun {
        run_id: "3f2a91c07d6e4b58".to_owned(),
        started: "2026-11-20T10:00:00Z".to_owned(),
        verb: "check".to_owned(),
        targets: vec!["/srv/data".to_owned()],
        disks: vec![SavedDisk {
            name: "sda".to_owned(),
            model: Some("FAKE".to_owned()),
            serial: Some("F00D".to_owned()),
        }],
        host: "db1".to_owned(),
        label: Some("base".to_owned()),
        note: None,
        partial: true,
        undecided: false,
        only_observed: false,
        machine: None,
        imported: false,
        command: None,
        method: 1,
        worst: Some(SavedFinding {
            severity: Severity::Failure,
            code: "io-errors".to_owned(),
        }),
        findings: Vec::new(),
        figures: vec![
            saved_figure("random-read-d32", 98100.0, "1/s"),
            saved_figure("curve", 1.5e8, "B/s"),
            saved_figure("access", 12_600_000.0, "ns"),
        ],
    }
}
