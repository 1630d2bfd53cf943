//! Writes the page of a saved record: `cargo run -p diskproof-report --example page < run.json > run.html`. The browser tests make their pages with it.

use std::io::{Read as _, Write as _};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let mut page = Vec::new();
    diskproof_report::html::write_record(&serde_json::from_str(&text)?, &mut page)?;
    std::io::stdout().write_all(&page)?;
    Ok(())
}
