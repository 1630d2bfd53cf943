//! Rates for github-action-benchmark's `customBiggerIsBetter`: a JSON list of name, unit, value and
//! range (<https://github.com/benchmark-action/github-action-benchmark>).

use crate::format::Format;
use crate::tracked::tracked;
use diskproof_model::comparison::Direction;
use diskproof_model::record::Record;
use serde_json::{Value, json};
use std::io::{self, Write};

/// The format.
pub const FORMAT: Format = Format::new(
    ".bigger.json",
    "rates for github-action-benchmark's customBiggerIsBetter",
    |record, out| write_better(record, Direction::Higher, out),
);

/// Writes the figures of which this direction is better, an element each. Shares and counts have no
/// unit and no better direction.
pub(crate) fn write_better(
    record: &Record,
    better: Direction,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut all = tracked(record);
    all.retain(|of| of.figure.unit != "1" && Direction::of_unit(of.figure.unit) == better);
    let elements = all.iter().map(|of| {
        let figure = &of.figure;
        let mut element = json!({
            "name": format!("{}.{}", of.subject, of.metric),
            "unit": figure.unit,
            "value": figure.value,
        });
        if let Some(half) = figure.half_width_95.filter(|half| half.is_finite()) {
            element["range"] = json!(format!("± {half}"));
        }
        element
    });
    serde_json::to_writer_pretty(&mut *out, &elements.collect::<Vec<Value>>())?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_stands_in_one_of_the_two_lists() {
        let record = crate::html::tests::record();
        let units = |better| {
            let mut out = Vec::new();
            write_better(&record, better, &mut out).unwrap();
            let list: Vec<Value> = serde_json::from_slice(&out).unwrap();
            let unit = |of: &Value| of["unit"].as_str().unwrap().to_owned();
            list.iter().map(unit).collect::<Vec<_>>()
        };
        let (bigger, smaller) = (units(Direction::Higher), units(Direction::Lower));
        assert!(bigger.iter().all(|unit| unit == "1/s" || unit == "B/s"));
        assert!(smaller.iter().all(|unit| unit == "ns"));
        let of_unit = tracked(&record);
        let of_unit = of_unit.iter().filter(|of| of.figure.unit != "1");
        assert_eq!(bigger.len() + smaller.len(), of_unit.count());
        assert!(!bigger.is_empty() && !smaller.is_empty());
    }
}
