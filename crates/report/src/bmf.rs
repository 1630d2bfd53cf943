//! Bencher Metric Format: a JSON object of benchmarks, each an object of measures with their value
//! and the ends of its interval (<https://bencher.dev/docs/reference/bencher-metric-format>).

use crate::format::Format;
use crate::tracked::tracked;
use diskproof_model::record::Record;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// The format.
pub const FORMAT: Format = Format::new(
    ".bmf.json",
    "Bencher Metric Format, to follow figures from build to build",
    write_record,
);

/// Writes an object with an object per workload and kind of operation.
fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let mut benchmarks: Map<String, Value> = Map::new();
    for of in tracked(record) {
        let figure = &of.figure;
        let mut measure = json!({ "value": figure.value });
        if let Some(half) = figure.half_width_95.filter(|half| half.is_finite()) {
            measure["lower_value"] = json!((figure.value - half).max(0.0));
            measure["upper_value"] = json!(figure.value + half);
        }
        let measures = benchmarks.entry(of.subject).or_insert_with(|| json!({}));
        // A measure's name becomes its slug, which has no dots.
        measures[of.metric.replace('.', "-")] = measure;
    }
    serde_json::to_writer_pretty(&mut *out, &benchmarks)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_surrounds_the_value_and_is_absent_where_unknown() {
        let record = crate::html::tests::record();
        let mut out = Vec::new();
        write_record(&record, &mut out).unwrap();
        let json: Value = serde_json::from_slice(&out).unwrap();
        let rate = &record.measurements[0].ops.values().next().unwrap().iops;
        let benchmarks = json.as_object().unwrap();
        let measures = benchmarks.values().flat_map(|of| of.as_object().unwrap());
        let mut has_rate = false;
        for (name, of) in measures {
            assert!(!name.contains('.'), "{name}");
            let value = of["value"].as_f64().unwrap();
            let ends = [&of["lower_value"], &of["upper_value"]].map(Value::as_f64);
            if let [Some(low), Some(high)] = ends {
                assert!(low <= value && value <= high, "{name} {of}");
                has_rate |= name == "iops" && value == rate.value;
            }
        }
        assert!(has_rate, "{json}");
    }
}
