//! Packs what every page for a browser has in it: its scripts and its style sheet, each ended by a
//! NUL. Unpacked, they would be a hundredth of the program.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write as _;
use std::path::Path;

const SCRIPTS: [&str; 3] = ["basics", "controls", "start"];
const DRAWING: [&str; 2] = ["chart", "map"];
const STYLES: [&str; 4] = ["colours", "page", "charts", "print"];

fn main() {
    println!("cargo::rerun-if-changed=src/html");
    let plot = source("vendor/uPlot.iife.min.js");
    let drawing = format!("{plot}\n{}", script(&DRAWING));
    let mut styles = String::new();
    for name in STYLES {
        styles.push_str(&source(&format!("style/{name}.css")));
    }
    let plot_style = source("vendor/uPlot.min.css");
    let style = format!("{plot_style}\n{}", shortened(&styles));
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    for text in [drawing, script(&SCRIPTS), style] {
        // A NUL would end the text, and parsers of HTML change both.
        assert!(!text.contains(['\r', '\0']) && !text.contains("<!--"));
        assert!(!text.contains("</script") && !text.contains("</style"));
        packed.write_all(text.as_bytes()).expect("a Vec grows");
        packed.write_all(b"\0").expect("a Vec grows");
    }
    let out = std::env::var("OUT_DIR").expect("cargo sets it for build scripts");
    let packed = packed.finish().expect("a Vec grows");
    std::fs::write(Path::new(&out).join("page.zlib"), packed).expect("OUT_DIR is writable");
}

/// A source file of the pages.
fn source(name: &str) -> String {
    let path = Path::new("src/html").join(name);
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// These scripts in one text, because all of them share one scope.
fn script(names: &[&str]) -> String {
    let mut all = String::new();
    for name in names {
        all.push_str(&source(&format!("script/{name}.js")));
    }
    format!("\"use strict\";\n{}", shortened(&all))
}

/// Without leading spaces, empty lines and lines of comments. No string spans lines, and no comment
/// of a style sheet does.
fn shortened(source: &str) -> String {
    let mut kept = String::new();
    for line in source.lines() {
        let code = line.trim_start();
        if !code.is_empty() && !is_comment(code) {
            kept.push_str(code);
            kept.push('\n');
        }
    }
    kept
}

fn is_comment(line: &str) -> bool {
    line.starts_with("//") || (line.starts_with("/*") && line.ends_with("*/"))
}
