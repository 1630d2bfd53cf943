//! Reads the record, the comparison or the fleet out of a saved page. The page may come from a
//! stranger: only the data block is read, and no more of it than a document may have.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use diskproof_model::document::DocumentError;
use diskproof_model::limits::DOCUMENT_BYTES_MAX;
use diskproof_model::record::Record;
use flate2::read::ZlibDecoder;
use std::io::Read as _;

/// The type of a data block: zlib (RFC 1950) in base64. Browsers do not run scripts of unknown
/// types.
pub(super) const PACKED_TYPE: &str = "application/zlib;base64";

/// Id of the record's data block.
pub(super) const RECORD_ID: &str = "record";

/// Id of a comparison's data block.
pub(super) const COMPARISON_ID: &str = "comparison";

/// Id of a fleet's data block.
pub(super) const FLEET_ID: &str = "fleet";

/// Why nothing could be read from a page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// Not a page of diskproof.
    #[error("the page contains no record; use a page that diskproof wrote with -o FILE.html")]
    NoRecord,
    /// Cut off, or changed.
    #[error(
        "cannot read the data in the page: {0}. The file may be truncated or changed by an editor \
         or mail program"
    )]
    Unreadable(String),
}

/// The JSON text of the record, the comparison or the fleet in a page. The id decides: browsers
/// that save a page may write the tag differently.
pub fn page_json(page: &str) -> Result<String, PageError> {
    let ids = [RECORD_ID, COMPARISON_ID, FLEET_ID].map(|id| format!("id=\"{id}\""));
    let mut rest = page;
    while let Some(at) = rest.find("<script") {
        let Some((tag, after)) = rest[at..].split_once('>') else {
            break;
        };
        if ids.iter().any(|id| tag.contains(id)) {
            let content = match after.split_once("</script") {
                Some((content, _)) => content,
                None => after,
            };
            return if tag.contains(PACKED_TYPE) {
                unpacked_json(content)
            } else {
                // Pages of versions before the packing.
                Ok(content.to_owned())
            };
        }
        rest = after;
    }
    Err(PageError::NoRecord)
}

/// Unpacks a data block. Fails for one that unpacks to more than a document may have.
fn unpacked_json(content: &str) -> Result<String, PageError> {
    // Mail programs break lines.
    let content: String = content.split_ascii_whitespace().collect();
    let bytes = BASE64.decode(content).map_err(unreadable)?;
    let mut json = String::new();
    // Some kB of zlib can become many GB.
    let mut decoder = ZlibDecoder::new(bytes.as_slice()).take(DOCUMENT_BYTES_MAX as u64 + 1);
    decoder.read_to_string(&mut json).map_err(unreadable)?;
    if json.len() > DOCUMENT_BYTES_MAX {
        return Err(unreadable(DocumentError::TooLarge));
    }
    Ok(json)
}

fn unreadable(error: impl std::error::Error) -> PageError {
    PageError::Unreadable(error.to_string())
}

/// The record in a page.
pub fn read_record(page: &str) -> Result<Record, PageError> {
    Record::from_json(&page_json(page)?).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write as _;

    /// The button saves the block that the page has.
    #[test]
    fn script_saves_every_kind_of_document() {
        let script = include_str!("script/start.js");
        let (_, after) = script.split_once("async function saveRecord() {").unwrap();
        let (saving, _) = after.split_once("\n}").unwrap();
        for id in [RECORD_ID, COMPARISON_ID, FLEET_ID] {
            assert!(saving.contains(&format!("script#{id}")), "{id}");
        }
    }

    #[test]
    fn unpacked_page_is_read() {
        let json = r#"{"note": "\u003c"}"#;
        let script = r#"<script type="application/json" id="record">"#;
        let page = format!("<!DOCTYPE html>{script}{json}</script>");
        assert_eq!(page_json(&page).unwrap(), json);
    }

    #[test]
    fn page_of_script_tags_is_read_once() {
        // Reading on from each of the tags would take hours.
        for end in ["", ">"] {
            let page = "<script".repeat(5_000_000) + end;
            assert!(matches!(page_json(&page), Err(PageError::NoRecord)));
        }
        let page = "<script></script>".repeat(1_000_000) + "<script id=\"record\">{}</script>";
        assert_eq!(page_json(&page).unwrap(), "{}");
    }

    #[test]
    fn page_that_inflates_beyond_the_limit_is_refused() {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        let chunk = vec![b' '; 1 << 20];
        for _ in 0..=DOCUMENT_BYTES_MAX >> 20 {
            encoder.write_all(&chunk).unwrap();
        }
        let data = BASE64.encode(encoder.finish().unwrap());
        let page = format!("<script type=\"{PACKED_TYPE}\" id=\"record\">{data}</script>");
        let message = page_json(&page).unwrap_err().to_string();
        assert!(message.contains("64 MiB"), "{message}");
    }

    #[test]
    fn broken_lines_are_joined() {
        let page = format!(
            "<script type=\"{PACKED_TYPE}\" id=\"comparison\">\neJyrrgUA\r\nAXUA+Q==\n</script>"
        );
        assert_eq!(page_json(&page).unwrap(), "{}");
    }
}
