//! docs/findings.md holds every finding and no other. `UPDATE_DOCS=1` writes it anew.
#![allow(clippy::unwrap_used)] // a failed step fails the test

use diskproof_analysis::rules::rules;
use std::path::Path;

const HEAD: &str = include_str!("findings_head.md");

#[test]
fn findings_reference_holds_every_finding() {
    let mut wanted = HEAD.to_owned();
    for rule in rules() {
        let taints = if rule.taints().is_some() { "yes" } else { "" };
        wanted.push_str(&format!(
            "| `{}` | {} | {} | {} | {taints} |\n",
            rule.code,
            rule.text("title"),
            rule.text("meaning"),
            rule.check.scope(),
        ));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/findings.md is out of date: UPDATE_DOCS=1 cargo test -p diskproof-analysis --test \
         findings_reference"
    );
}
