//! The frame of every page: head, policy, navigation, script, data blocks. Knows nothing of what is on the page.
//!
//! The Content-Security-Policy lets the page's own script and style run, by their hashes, and nothing else; nothing can be loaded from anywhere. Hashes
//! come from sha2, so that a change of the script cannot be forgotten; maud escapes every text; data blocks have no `<` at all.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

/// uPlot 1.6.32 by Leon Sorokin, MIT, from the npm package `uplot`; see vendor/uPlot.LICENSE.
const PLOT_SCRIPT: &str = include_str!("vendor/uPlot.iife.min.js");
const PLOT_STYLE: &str = include_str!("vendor/uPlot.min.css");
const PLOT_LICENSE: &str = include_str!("vendor/uPlot.LICENSE");
const SCRIPT: &str = include_str!("script.js");
const STYLE: &str = include_str!("style.css");

/// A page before it is written.
pub(super) struct Document<'a> {
    /// Title of the window.
    pub(super) title: &'a str,
    /// Anchors and names of the sections.
    pub(super) sections: &'a [(&'a str, &'a str)],
    /// What files saved from the page are called, without extension.
    pub(super) file_name: &'a str,
    /// What is on it.
    pub(super) body: Markup,
    /// Data for the script and for reading back.
    pub(super) blocks: &'a [Block],
}

/// A data block.
pub(super) struct Block {
    /// Its id.
    pub(super) id: &'static str,
    /// Its content.
    pub(super) json: String,
}

impl Document<'_> {
    pub(super) fn render(self) -> String {
        let style = format!("{PLOT_STYLE}\n{STYLE}");
        let policy = format!(
            "default-src 'none'; script-src {} {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
            hash(PLOT_SCRIPT),
            hash(SCRIPT),
            hash(&style)
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
                    title { (self.title) }
                    // Without it browsers would ask a server for one.
                    link rel="icon" href="data:,";
                    style { (PreEscaped(style)) }
                }
                body data-file-name=(self.file_name) {
                    a.skip href="#main" { "Skip to the content" }
                    (banner(self.sections))
                    main #main tabindex="-1" { (self.body) }
                    footer { p { "Made by diskproof. This file is complete: it asks nothing of any network. Charts drawn by uPlot." } }
                    div #spoken .unseen role="status" aria-live="polite" {}
                    @for block in self.blocks {
                        script type="application/json" id=(block.id) { (PreEscaped(embedded(&block.json))) }
                    }
                    (PreEscaped(format!("<!--\nuPlot 1.6.32\n{PLOT_LICENSE}-->\n")))
                    script { (PreEscaped(PLOT_SCRIPT)) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        page.into_string()
    }
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

/// JSON that may stand in a script element: no `<`, so that no text in it ends the element or begins another, and none of the two line separators
/// that older engines take for the end of a line.
fn embedded(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", BASE64.encode(Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_our_own_script_or_style_ends_its_element() {
        for text in [PLOT_SCRIPT, SCRIPT, PLOT_STYLE, STYLE] {
            assert!(!text.contains("</script") && !text.contains("</style") && !text.contains("<!--"), "{}", &text[..60]);
            // The HTML parser turns these into something else, and the hash would no longer match.
            assert!(!text.contains(['\r', '\0']));
        }
        assert!(!PLOT_LICENSE.contains("--"));
    }

    #[test]
    fn a_hash_is_what_the_policy_demands() {
        // The example of the CSP specification, level 3, section 8.3.
        assert_eq!(hash("alert('Hello, world.');"), "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='");
    }

    #[test]
    fn embedded_json_reads_back_the_same() {
        let text = serde_json::to_string("</script><!--\u{2028}\u{2029}é<").unwrap();
        let safe = embedded(&text);
        assert!(!safe.contains(['<', '\u{2028}', '\u{2029}']));
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), "</script><!--\u{2028}\u{2029}é<");
    }
}
