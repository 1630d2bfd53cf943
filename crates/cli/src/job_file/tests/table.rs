//! The table of options, and its copy in docs/job-files.md.

use super::super::options;
use super::*;

const HEAD: &str = include_str!("../../../../../docs/job-files.md");
const TABLE: &str = "\n| option of fio | becomes |\n|---|---|\n";

#[test]
fn option_table_has_one_row_per_name() {
    let mut seen = std::collections::BTreeSet::new();
    for row in options::ROWS {
        assert!(
            matches!(row.handling, options::Handling::Refused(_)) || !row.text.is_empty(),
            "{:?}",
            row.names
        );
        for name in row.names.iter().flat_map(|names| names.split('/')) {
            assert!(seen.insert(name), "{name} stands twice");
        }
    }
    assert_eq!(
        (
            options::canonical("blocksize"),
            options::canonical("nonsense")
        ),
        (Some("bs"), None)
    );
}

/// docs/job-files.md ends with this table. UPDATE_DOCS=1 writes it.
#[test]
fn docs_table_matches_the_option_table() {
    let names = |row: &options::OptionRow| {
        row.names
            .iter()
            .map(|names| format!("`{}`", names.replace('/', "`, `")))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let becomes = |row: &options::OptionRow| match row.handling {
        options::Handling::Translated => row.text.to_owned(),
        options::Handling::Ignored => format!("ignored: {}", row.text),
        options::Handling::Refused([]) => format!(
            "refused: {}",
            options::refusal(options::canonical(row.names[0]).unwrap_or(row.names[0]))
        ),
        options::Handling::Refused(harmless) => {
            let values: Vec<String> = harmless.iter().map(|value| format!("`{value}`")).collect();
            let first = row.names[0].split('/').next().unwrap_or_default();
            format!(
                "refused, except {}: {}",
                values.join(", "),
                options::refusal(first)
            )
        }
    };
    let rows: String = options::ROWS
        .iter()
        .map(|row| format!("| {} | {} |\n", names(row), becomes(row)))
        .collect();
    let head = HEAD.split_once(TABLE).map_or(HEAD, |(head, _)| head);
    let (path, wanted) = (
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/job-files.md"),
        format!("{head}{TABLE}{rows}"),
    );
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/job-files.md is out of date: UPDATE_DOCS=1 cargo test -p diskproof --lib \
         docs_table_matches"
    );
}
