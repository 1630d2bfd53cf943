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
    let read = |name: String| {
        std::fs::read_to_string(Path::new("src/html").join(&name))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    // All scripts share one scope.
    let script = |names: &[&str]| {
        let all = names.iter().map(|name| read(format!("script/{name}.js")));
        "\"use strict\";\n".to_owned() + &shortened(&all.collect::<String>())
    };
    let plot = read("vendor/uPlot.iife.min.js".to_owned());
    let drawing = format!("{plot}\n{}", script(&DRAWING));
    let styles = STYLES.map(|name| read(format!("style/{name}.css")));
    let plot_style = read("vendor/uPlot.min.css".to_owned());
    let style = format!("{plot_style}\n{}", shortened(&styles.concat()));
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

/// Without leading spaces, empty lines and lines of comments. No string spans lines, and no comment
/// of a style sheet does.
fn shortened(source: &str) -> String {
    let is_comment =
        |line: &str| line.starts_with("//") || line.starts_with("/*") && line.ends_with("*/");
    let lines = source.lines().map(str::trim_start);
    let kept = lines.filter(|line| !line.is_empty() && !is_comment(line));
    kept.flat_map(|line| [line, "\n"]).collect()
}
