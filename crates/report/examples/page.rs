//! Writes the page of a saved record or comparison: `cargo run -p diskproof-report --example page <
//! run.json > run.html`. The browser tests make their pages with it.

use diskproof_report::html;
use std::io::{Read as _, Write as _};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let document: serde_json::Value = serde_json::from_str(&text)?;
    let mut page = Vec::new();
    match document.get("baseline") {
        Some(_) => html::write_comparison(&serde_json::from_str(&text)?, &mut page)?,
        None => html::write_record(&serde_json::from_str(&text)?, &mut page)?,
    }
    std::io::stdout().write_all(&page)?;
    Ok(())
}
