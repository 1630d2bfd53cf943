//! The record back from a saved page. The page is ours or somebody's: nothing in it is believed but what reads as a record.

use diskproof_model::record::Record;

/// Where the record stands in the page.
pub(super) const RECORD_ID: &str = "record";

/// Where a comparison stands in its page.
pub(super) const COMPARISON_ID: &str = "comparison";

/// Why no record could be read from a page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// Not a page of a run.
    #[error("there is no record in this page; only pages that diskproof made of a run with -o FILE.html hold one")]
    NoRecord,
    /// Cut off, or changed.
    #[error("the record in this page cannot be read: {0}; the file may be cut off, or an editor or mail program changed it")]
    Unreadable(#[from] serde_json::Error),
}

/// The JSON text of the record in a page, as `--json` would have it but for white space. A `<` inside is written as `\u003c`, so the first closing tag is
/// the end. A browser that saves a page may write the tag in another way: its id decides.
pub fn record_json(page: &str) -> Result<&str, PageError> {
    let id = format!("id=\"{RECORD_ID}\"");
    let block = page.match_indices("<script").find_map(|(at, _)| {
        let (tag, rest) = page[at..].split_once('>')?;
        tag.contains(&id).then(|| rest.split_once("</script").map_or(rest, |(json, _)| json))
    });
    block.ok_or(PageError::NoRecord)
}

/// The record in a page.
pub fn read_record(page: &str) -> Result<Record, PageError> {
    Ok(serde_json::from_str(record_json(page)?)?)
}
