//! The registry of output formats, which `-o`, its help and its errors read. docs/formats.md has a
//! row for each.

use crate::format::{Format, RecordWriter, Requires};
use crate::{csv, fio_json, gnuplot, hlog, html, json, markdown, openmetrics};
use crate::{forum_post, postgresql_conf, schedulers, svg, tracked};
use diskproof_model::comparison::Direction;
use std::path::Path;

/// Every format.
pub static FORMATS: &[&Format] = &[
    &Format {
        comparison: Some(json::write_comparison),
        fleet: Some(json::write_fleet),
        identity: Some(json::write_identity),
        ..Format::new(
            ".json",
            "the record: everything that was measured",
            json::write_record,
        )
    },
    &Format {
        comparison: Some(html::write_comparison),
        fleet: Some(html::write_fleet),
        ..Format::new(
            ".html",
            "a page for a browser, with the record inside",
            html::write_record,
        )
    },
    &Format {
        comparison: Some(csv::write_comparison),
        fleet: Some(csv::write_fleet),
        ..Format::new(
            ".csv",
            "one row per figure, for spreadsheets and scripts",
            csv::write_record,
        )
    },
    &Format {
        comparison: Some(markdown::write_comparison),
        fleet: Some(markdown::write_fleet),
        ..Format::new(
            ".md",
            "the verdict and tables, for tickets and pull requests",
            markdown::write_record,
        )
    },
    &Format {
        count_left_out: None,
        extension: ".svg",
        description: "all charts on one sheet; with % in the name a file per chart",
        requires: Requires::Charts,
        record: RecordWriter::Files(svg::pictures),
        comparison: Some(svg::write_comparison),
        fleet: None,
        identity: None,
    },
    &Format {
        count_left_out: None,
        extension: ".gnuplot",
        description: "all charts as a gnuplot script with its data",
        requires: Requires::Nothing,
        record: RecordWriter::Files(gnuplot::files),
        comparison: None,
        fleet: None,
        identity: None,
    },
    &Format {
        // The distributions of steps on files stand in .json and .csv.
        requires: Requires::Workloads,
        ..Format::new(
            ".hlog",
            "every latency distribution, for HdrHistogram's tools",
            hlog::write_record,
        )
    },
    &Format {
        fleet: Some(openmetrics::write_fleet),
        ..Format::new(
            ".prom",
            "metrics for node_exporter's textfile collector",
            openmetrics::write_record,
        )
    },
    &Format::new(
        ".conf",
        "settings with their reasons, to include in postgresql.conf",
        postgresql_conf::write_record,
    ),
    &Format {
        requires: Requires::Workloads,
        ..Format::new(
            ".fio.json",
            "the figures as fio prints them with --output-format=json+",
            fio_json::write_record,
        )
    },
    &Format {
        requires: Requires::Reads,
        ..Format::new(
            ".iocost",
            "Linux' io.cost.model and io.cost.qos, from a sweep or rays",
            schedulers::write_iocost,
        )
    },
    &Format {
        requires: Requires::ReadsAndWrites,
        ..Format::new(
            ".yaml",
            "Seastar's io-properties.yaml, from a sweep or rays",
            schedulers::write_seastar,
        )
    },
    &Format {
        requires: Requires::SaturatedRays,
        ..Format::new(
            ".ceph",
            "Ceph's osd_mclock_max_capacity_iops, from rays",
            schedulers::write_ceph,
        )
    },
    &Format {
        requires: Requires::Rays,
        ..Format::new(
            ".cockroach",
            "CockroachDB's provisioned bandwidth, from rays",
            schedulers::write_cockroach,
        )
    },
    &Format {
        requires: Requires::Figures,
        count_left_out: Some(tracked::count_left_out),
        ..Format::new(
            ".bmf.json",
            "Bencher Metric Format, to follow figures from build to build",
            tracked::write_bencher,
        )
    },
    &Format {
        requires: Requires::Figures,
        count_left_out: Some(tracked::count_left_out),
        ..Format::new(
            ".bigger.json",
            "rates for github-action-benchmark's customBiggerIsBetter",
            |record, out| tracked::write_better(record, Direction::Higher, out),
        )
    },
    &Format {
        requires: Requires::Figures,
        count_left_out: Some(tracked::count_left_out),
        ..Format::new(
            ".smaller.json",
            "latencies for github-action-benchmark's customSmallerIsBetter",
            |record, out| tracked::write_better(record, Direction::Lower, out),
        )
    },
    &Format::new(
        ".share.txt",
        "ten lines for a forum or chat, without names of the machine",
        forum_post::write_record,
    ),
];

/// The format of a file name. The longest matching extension wins.
pub fn format_of(path: &Path) -> Option<&'static Format> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let format = FORMATS
        .iter()
        .filter(|format| name.ends_with(format.extension))
        .max_by_key(|format| format.extension.len())?;
    if name.len() > format.extension.len() {
        Some(format)
    } else {
        None
    }
}

/// The extensions of the formats that `is_listed` selects: `.json, .html`.
pub fn extensions(is_listed: fn(&Format) -> bool) -> String {
    let mut extensions = Vec::new();
    for format in FORMATS {
        if is_listed(format) {
            extensions.push(format.extension);
        }
    }
    extensions.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::op::OpKind;
    use diskproof_model::record::Record;
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    #[test]
    fn format_follows_the_longest_extension() {
        assert_eq!(extension_of("/tmp/a.b.JSON"), Some(".json"));
        assert_eq!(extension_of("x.svg"), Some(".svg"));
        assert_eq!(extension_of("x.fio.json"), Some(".fio.json"));
        assert_eq!(extension_of("fio.json"), Some(".json"));
        for name in ["svg", ".svg", "x.svgz", "x.", "/", "x.svg/..", ".fio.json"] {
            assert_eq!(extension_of(name), None, "{name}");
        }
    }

    fn extension_of(name: &str) -> Option<&'static str> {
        Some(format_of(Path::new(name))?.extension)
    }

    #[test]
    fn svg_is_one_sheet_or_a_file_per_chart() {
        let record = crate::fixture::record();
        assert_eq!(paths(&record, "/a/x.y.svg"), [Path::new("/a/x.y.svg")]);
        let each = paths(&record, "/a/x-%.svg");
        let expected = PathBuf::from("/a/x-time-random-read-d32.svg");
        assert!(each.len() > 2 && each.contains(&expected), "{each:?}");
    }

    /// The files that a record becomes under this name.
    fn paths(record: &Record, name: &str) -> Vec<PathBuf> {
        let format = format_of(Path::new(name)).unwrap();
        let files = format.files(record, Path::new(name));
        files.into_iter().map(|file| file.path).collect()
    }

    #[test]
    fn registry_is_complete_and_documented() {
        let docs = include_str!("../../../docs/formats.md");
        let extensions: BTreeSet<&str> = FORMATS.iter().map(|format| format.extension).collect();
        assert_eq!(
            extensions.len(),
            FORMATS.len(),
            "an extension names one format"
        );
        for format in FORMATS {
            let row = format!("| `{}` | {} |", format.extension, format.description);
            assert!(docs.contains(&row), "docs/formats.md lacks the row {row}");
        }
        let sentence = format!(
            "A comparison (`compare A B -o x.html`) is written as {}; a fleet (`merge`) as {}; the \
             result of `info` as {}.",
            listed(|format| format.comparison.is_some()),
            listed(|format| format.fleet.is_some()),
            listed(|format| format.identity.is_some())
        );
        let words: Vec<&str> = docs.split_whitespace().collect();
        let has_sentence = words.join(" ").contains(&sentence);
        assert!(has_sentence, "docs/formats.md lacks: {sentence}");
        let kinds = OpKind::ALL.map(|kind| format!("`{}`", kind.as_str()));
        let kinds = format!("`op` is {}, or empty", kinds.join(", "));
        assert!(docs.contains(&kinds), "docs/formats.md: {kinds}");
    }

    /// The extensions as the documentation lists them.
    fn listed(is_listed: fn(&Format) -> bool) -> String {
        let bare = extensions(is_listed);
        format!("`{}`", bare.replace(", ", "`, `"))
    }

    #[test]
    fn format_without_its_data_writes_no_file() {
        let mut record = crate::fixture::record();
        let path = Path::new("x");
        for format in FORMATS {
            if format.requires.is_planned_by(&record.plan) {
                let files = format.files(&record, path).len();
                assert_eq!(files, 1, "{}", format.extension);
            }
        }
        record.measurements.clear();
        for format in FORMATS {
            let files = format.files(&record, path).len();
            let expected = usize::from(format.requires == Requires::Nothing);
            assert_eq!(files, expected, "{}", format.extension);
        }
    }
}
