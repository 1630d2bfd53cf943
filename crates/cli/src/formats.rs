//! What `-o FILE` can write: a table of formats by extension, and the files that each makes of a
//! record. Knows names, not how files come about.

use diskproof_model::comparison::Comparison;
use diskproof_model::record::Record;
use diskproof_report::{chart, csv, fio_json, gnuplot, hlog, html, json, openmetrics, svg};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A format of saved results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The record itself.
    Json,
    /// A page for a browser.
    Html,
    /// The charts as a picture.
    Svg,
    /// A table of figures.
    Csv,
    /// Latency distributions as HdrHistogram logs them.
    Hlog,
    /// Metrics for Prometheus.
    OpenMetrics,
    /// A script with its data.
    Gnuplot,
    /// What fio would have printed.
    FioJson,
}

/// Every format and the end of the file names that ask for it; of two that fit the longer one
/// counts.
const FORMATS: [(&str, Format); 8] = [
    (".json", Format::Json),
    (".html", Format::Html),
    (".svg", Format::Svg),
    (".csv", Format::Csv),
    (".gnuplot", Format::Gnuplot),
    (".hlog", Format::Hlog),
    (".prom", Format::OpenMetrics),
    (".fio.json", Format::FioJson),
];

/// Writes a file's content.
pub type Content<'a> = Box<dyn Fn(&mut dyn Write) -> io::Result<()> + 'a>;

/// A file to be written.
pub struct Document<'a> {
    /// Where.
    pub path: PathBuf,
    /// Its content.
    pub write: Content<'a>,
}

impl Format {
    /// The format that a file name asks for.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_lowercase();
        let (end, format) = FORMATS
            .into_iter()
            .filter(|(end, _)| name.ends_with(end))
            .max_by_key(|(end, _)| end.len())?;
        (name.len() > end.len()).then_some(format)
    }

    /// The ends of file names that there are, for messages.
    pub fn known() -> String {
        FORMATS.map(|(end, _)| end).join(", ")
    }

    /// The files that this format makes of a record; none where the record has nothing that it
    /// could show.
    pub fn documents<'a>(self, record: &'a Record, path: &Path) -> Vec<Document<'a>> {
        let write: Content<'a> = match self {
            Self::Json => Box::new(|out| json::write_record(record, out)),
            Self::Html => Box::new(|out| html::write_record(record, out)),
            Self::Csv => Box::new(|out| csv::write_record(record, out)),
            Self::Hlog => Box::new(|out| hlog::write_record(record, out)),
            Self::FioJson if !fio_json::has_place_for(record) => return Vec::new(),
            Self::FioJson => Box::new(|out| fio_json::write_record(record, out)),
            Self::OpenMetrics => Box::new(|out| openmetrics::write_record(record, out)),
            Self::Gnuplot => {
                let stem = path
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                Box::new(move |out| gnuplot::write_record(record, &stem, out))
            }
            Self::Svg => return pictures(record, path),
        };
        vec![Document {
            path: path.to_owned(),
            write,
        }]
    }

    /// Why it makes no file of a record that has nothing for it.
    pub fn why_none(self) -> &'static str {
        match self {
            Self::FioJson => {
                "fio's JSON knows workloads only, and none was measured; no file was written"
            }
            _ => "too little was measured for a picture; no file was written",
        }
    }

    /// The file that this format makes of a comparison; `None` where it knows records only.
    pub fn comparison<'a>(self, comparison: &'a Comparison, path: &Path) -> Option<Document<'a>> {
        let write: Content<'a> = match self {
            Self::Json => Box::new(|out| json::write_comparison(comparison, out)),
            Self::Html => Box::new(|out| html::write_comparison(comparison, out)),
            _ => return None,
        };
        Some(Document {
            path: path.to_owned(),
            write,
        })
    }

    /// Whether there is such a file.
    pub fn takes_comparisons(self) -> bool {
        matches!(self, Self::Json | Self::Html)
    }
}

/// Stands for the name of a chart in the name of a file: each chart then gets a file of its own.
const EACH: &str = "%";

/// One sheet with all charts; a file for each where the name says so.
fn pictures<'a>(record: &Record, path: &Path) -> Vec<Document<'a>> {
    let (charts, origin) = (chart::charts(record), chart::origin(record));
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    if charts.is_empty() {
        return Vec::new();
    }
    if !name.contains(EACH) {
        return vec![Document {
            path: path.to_owned(),
            write: Box::new(move |out| svg::write_sheet(&charts, &origin, out)),
        }];
    }
    let picture = |chart: chart::Chart| {
        let (path, origin) = (
            path.with_file_name(name.replace(EACH, &chart.id)),
            origin.clone(),
        );
        Document {
            path,
            write: Box::new(move |out| {
                svg::write_sheet(std::slice::from_ref(&chart), &origin, out)
            }),
        }
    };
    charts.into_iter().map(picture).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_follows_the_end_of_the_name() {
        assert_eq!(Format::of(Path::new("/tmp/a.b.JSON")), Some(Format::Json));
        assert_eq!(Format::of(Path::new("x.svg")), Some(Format::Svg));
        assert_eq!(
            (
                Format::of(Path::new("x.fio.json")),
                Format::of(Path::new("fio.json"))
            ),
            (Some(Format::FioJson), Some(Format::Json))
        );
        for name in ["svg", ".svg", "x.svgz", "x.", "/", "x.svg/..", ".fio.json"] {
            assert_eq!(Format::of(Path::new(name)), None, "{name}");
        }
    }

    #[test]
    fn a_picture_is_one_sheet_unless_its_name_asks_for_each_chart() {
        let record: Record =
            serde_json::from_str(include_str!("../../../tests/fixtures/check-directory.json"))
                .unwrap();
        let paths = |name: &str| {
            Format::Svg
                .documents(&record, Path::new(name))
                .into_iter()
                .map(|d| d.path)
                .collect::<Vec<_>>()
        };
        assert_eq!(paths("/a/x.y.svg"), [Path::new("/a/x.y.svg")]);
        let each = paths("/a/x-%.svg");
        assert!(
            each.len() > 2 && each.contains(&PathBuf::from("/a/x-time-random-read-d32.svg")),
            "{each:?}"
        );
    }
}
