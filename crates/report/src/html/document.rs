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

/// The page contains uPlot, whose licence has to go with it.
const PLOT_LICENSE: &str = include_str!("vendor/uPlot.LICENSE");

/// The files that every page contains. The page is complete without the scripts, which load
/// nothing, store nothing, and insert text only by `textContent`.
struct Assets {
    /// The script that draws charts: uPlot 1.6.32 by Leon Sorokin, MIT, from the npm package
    /// `uplot` (see vendor/uPlot.LICENSE), and the code that uses it. It is packed like the data,
    /// and `script` unpacks it.
    drawing: String,
    /// The script that runs first.
    script: String,
    /// The style sheet.
    style: String,
}

/// Unpacks what build.rs has packed: three texts, each with a NUL after it.
fn page_assets() -> Assets {
    const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/page.zlib"));
    let mut text = String::new();
    ZlibDecoder::new(PACKED)
        .read_to_string(&mut text)
        .expect("packed by build.rs");
    let mut texts = text.split_terminator('\0');
    let mut next_text = || texts.next().expect("packed by build.rs").to_owned();
    Assets {
        drawing: next_text(),
        script: next_text(),
        style: next_text(),
    }
}

/// An entry of the navigation: a section of the page.
pub(super) struct NavigationEntry<'a> {
    /// The id of the section.
    anchor: &'a str,
    name: &'a str,
}

impl<'a> NavigationEntry<'a> {
    pub(super) fn new(anchor: &'a str, name: &'a str) -> Self {
        Self { anchor, name }
    }
}

/// Data that the page contains, for its script or for reading back.
pub(super) struct DataBlock {
    id: &'static str,
    json: String,
}

impl DataBlock {
    pub(super) fn new(id: &'static str, json: String) -> Self {
        Self { id, json }
    }
}

/// The content of a page.
pub(super) struct Document<'a> {
    /// The title of the window, already safe to show.
    pub(super) title: &'a str,
    /// The navigation.
    pub(super) sections: &'a [NavigationEntry<'a>],
    /// The name of files saved from the page, without extension.
    pub(super) file_name: &'a str,
    pub(super) body: &'a Markup,
    pub(super) data: &'a [DataBlock],
}

impl Document<'_> {
    /// The whole page.
    pub(super) fn html(&self) -> String {
        let Self {
            title,
            sections,
            file_name,
            body,
            data,
        } = self;
        let Assets {
            drawing,
            script,
            style,
        } = page_assets();
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
                    @for block in *data {
                        script type=(PACKED_TYPE) id=(block.id) { (packed_base64(&block.json)) }
                    }
                    (PreEscaped(format!("<!--\nuPlot 1.6.32\n{PLOT_LICENSE}-->\n")))
                    script type=(PACKED_TYPE) #drawing { (packed_base64(&drawing)) }
                    script { (PreEscaped(&script)) }
                }
            }
        };
        page.into_string()
    }
}

fn banner(sections: &[NavigationEntry<'_>]) -> Markup {
    html! {
        header.banner {
            div.bar {
                span.brand { "diskproof" }
                nav aria-label="Sections" {
                    ul { @for entry in sections {
                        li { a href={"#" (entry.anchor)} { (entry.name) } }
                    } }
                }
                button #theme .scripted type="button" aria-pressed="false" { "Dark" }
            }
        }
    }
}

/// Packs a text as base64 of zlib. It has a tenth to a third of the size of JSON, and no character
/// that could end the element.
fn packed_base64(json: &str) -> String {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder
        .write_all(json.as_bytes())
        .expect("a Vec takes everything");
    let bytes = encoder.finish().expect("a Vec takes everything");
    BASE64.encode(bytes)
}

/// The hash of a script or style as the Content-Security-Policy names it.
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
