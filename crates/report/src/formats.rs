//! The registry of output formats, which `-o`, its help and its errors read. docs/formats.md has a
//! row for each.

use crate::format::Format;
use std::path::Path;

/// Every format.
pub static FORMATS: &[&Format] = &[
    &crate::json::FORMAT,
    &crate::html::FORMAT,
    &crate::csv::FORMAT,
    &crate::markdown::FORMAT,
    &crate::svg::FORMAT,
    &crate::gnuplot::FORMAT,
    &crate::hlog::FORMAT,
    &crate::openmetrics::FORMAT,
    &crate::postgresql_conf::FORMAT,
    &crate::fio_json::FORMAT,
    &crate::schedulers::IOCOST,
    &crate::schedulers::SEASTAR,
    &crate::tracked::BENCHER,
    &crate::tracked::BIGGER_IS_BETTER,
    &crate::tracked::SMALLER_IS_BETTER,
    &crate::share::FORMAT,
];

/// The format of a file name. The longest matching extension wins.
pub fn format_of(path: &Path) -> Option<&'static Format> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let fitting = FORMATS
        .iter()
        .copied()
        .filter(|of| name.ends_with(of.extension));
    let format = fitting.max_by_key(|format| format.extension.len())?;
    (name.len() > format.extension.len()).then_some(format)
}

/// The extensions of the formats that `is_listed` selects: `.json, .html`.
pub fn extensions(is_listed: fn(&Format) -> bool) -> String {
    let listed = FORMATS.iter().filter(|format| is_listed(format));
    let extensions: Vec<&str> = listed.map(|format| format.extension).collect();
    extensions.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    #[test]
    fn format_follows_the_longest_extension() {
        let of = |name: &str| format_of(Path::new(name)).map(|format| format.extension);
        assert_eq!(of("/tmp/a.b.JSON"), Some(".json"));
        assert_eq!(of("x.svg"), Some(".svg"));
        assert_eq!(
            (of("x.fio.json"), of("fio.json")),
            (Some(".fio.json"), Some(".json"))
        );
        for name in ["svg", ".svg", "x.svgz", "x.", "/", "x.svg/..", ".fio.json"] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn svg_is_one_sheet_or_a_file_per_chart() {
        let record = crate::fixture::record();
        let paths = |name: &str| -> Vec<PathBuf> {
            let files = crate::svg::FORMAT.files(&record, Path::new(name));
            files.into_iter().map(|file| file.path).collect()
        };
        assert_eq!(paths("/a/x.y.svg"), [Path::new("/a/x.y.svg")]);
        let each = paths("/a/x-%.svg");
        let expected = PathBuf::from("/a/x-time-random-read-d32.svg");
        assert!(each.len() > 2 && each.contains(&expected), "{each:?}");
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
        // Every format that a module declares is in the list.
        let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut declared = 0;
        for entry in std::fs::read_dir(source).unwrap() {
            let path = entry.unwrap().path();
            let file = if path.is_dir() {
                path.join("mod.rs")
            } else {
                path
            };
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let declares = |line: &&str| line.starts_with("pub") && line.contains(": Format = ");
            declared += text.lines().filter(declares).count();
        }
        assert_eq!(declared, FORMATS.len());
    }

    #[test]
    fn format_without_its_data_writes_no_file() {
        let mut record = crate::fixture::record();
        let files = |record: &_, format: &Format| format.files(record, Path::new("x")).len();
        let is_general = |format: &&&Format| !format.requires.is_of_sweep();
        let mut general = FORMATS.iter().filter(is_general);
        assert!(general.all(|format| files(&record, format) == 1));
        record.measurements.clear();
        for format in FORMATS {
            let expected = usize::from(format.requires == crate::format::Requires::Nothing);
            assert_eq!(files(&record, format), expected, "{}", format.extension);
        }
    }
}
