//! The frame of every page: head, policy, navigation, script and data blocks.
//!
//! The Content-Security-Policy allows the page's own script and style by their hashes, so the page
//! cannot load anything. maud escapes every text; data blocks are base64, which has no `<`.

use super::saved_page::PACKED_TYPE;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};
use std::io::{Read as _, Write as _};

const PLOT_LICENSE: &str = include_str!("vendor/uPlot.LICENSE");

/// What every page has, unpacked (build.rs): what draws, its script, its style sheet.
///
/// What draws is uPlot 1.6.32 by Leon Sorokin, MIT, from the npm package `uplot` (see
/// vendor/uPlot.LICENSE), and what uses it; the script unpacks it as it does the data. The page is
/// complete without the script, which loads nothing, stores nothing, and inserts text only by
/// `textContent`.
fn page_assets() -> [String; 3] {
    const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/page.zlib"));
    let mut text = String::new();
    ZlibDecoder::new(PACKED)
        .read_to_string(&mut text)
        .expect("packed by build.rs");
    let mut texts = text.split_terminator('\0').map(str::to_owned);
    std::array::from_fn(|_| texts.next().expect("packed by build.rs"))
}

/// A page from the title of its window, the anchors and names of its sections, and its content.
/// Files saved from it have this name and an extension. Data for the script and for reading back
/// have an id and JSON.
pub(super) fn page(
    title: &str,
    sections: &[(&str, &str)],
    file_name: &str,
    body: &Markup,
    blocks: &[(&str, String)],
) -> String {
    let [drawing, script, style] = page_assets();
    let policy = format!(
        "default-src 'none'; script-src {} {}; style-src {}; img-src data:; base-uri 'none'; \
         form-action 'none'",
        csp_hash(&drawing),
        csp_hash(&script),
        csp_hash(&style)
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                // Without it browsers would request one from a server.
                link rel="icon" href="data:,";
                style { (PreEscaped(&style)) }
            }
            body data-file-name=(file_name) {
                a.skip href="#main" { "Skip to the content" }
                (banner(sections))
                main #main tabindex="-1" { (body) }
                footer {
                    p {
                        "Made by diskproof. This file is self-contained and makes no network \
                         requests. Charts by uPlot."
                    }
                }
                div #spoken .unseen role="status" aria-live="polite" {}
                @for (id, json) in blocks {
                    script type=(PACKED_TYPE) id=(id) { (packed_base64(json)) }
                }
                (PreEscaped(format!("<!--\nuPlot 1.6.32\n{PLOT_LICENSE}-->\n")))
                script type=(PACKED_TYPE) #drawing { (packed_base64(&drawing)) }
                script { (PreEscaped(&script)) }
            }
        }
    };
    page.into_string()
}

fn banner(sections: &[(&str, &str)]) -> Markup {
    html! {
        header.banner {
            div.bar {
                span.brand { "diskproof" }
                nav aria-label="Sections" {
                    ul { @for (id, name) in sections { li { a href={"#" (id)} { (name) } } } }
                }
                button #theme .scripted type="button" aria-pressed="false" { "Dark" }
            }
        }
    }
}

/// A tenth to a third of the JSON's size, and nothing in it that could end the element.
fn packed_base64(json: &str) -> String {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder
        .write_all(json.as_bytes())
        .expect("a Vec takes everything");
    let bytes = encoder.finish().expect("a Vec takes everything");
    BASE64.encode(bytes)
}

fn csp_hash(text: &str) -> String {
    let digest = BASE64.encode(Sha256::digest(text.as_bytes()));
    format!("'sha256-{digest}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It stands in a comment.
    #[test]
    fn licence_ends_no_comment() {
        assert!(!PLOT_LICENSE.contains("--"));
    }

    #[test]
    fn hash_has_the_form_of_the_policy() {
        // The example of the CSP specification, level 3, section 8.3.
        assert_eq!(
            csp_hash("alert('Hello, world.');"),
            "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"
        );
    }

    #[test]
    fn packed_data_contain_no_markup() {
        let text = packed_base64(&"</script><!--\u{2028}é".repeat(100));
        let is_base64 = text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+/=".contains(c));
        assert!(is_base64 && text.len() < 200, "{text}");
    }
}
