//! Every chart of every fixture as a picture: whole XML, self-contained, harmless.

use crate::{RECORDS, fixture, is_harmless, written};
use diskproof_model::record::Record;
use diskproof_report::chart::{Chart, charts, origin};
use diskproof_report::svg;
use roxmltree::{Document, Node};

fn pictures(record: &Record) -> Vec<(String, String)> {
    let origin = origin(record);
    let picture = |chart: &Chart| {
        let charts = std::slice::from_ref(chart);
        (
            chart.id.clone(),
            written(|out| svg::write_sheet(charts, &origin, out)),
        )
    };
    charts(record).iter().map(picture).collect()
}

#[test]
fn svg_of_a_survey_snapshot() {
    let pictures = pictures(&fixture::surveyed());
    let strokes = pictures.iter().find(|(id, _)| id == "short-strokes");
    insta::assert_snapshot!("svg_short-strokes", strokes.unwrap().1);
}

#[test]
fn svg_is_a_self_contained_document() {
    for (name, record) in &*RECORDS {
        for (id, picture) in pictures(record) {
            let document =
                Document::parse(&picture).unwrap_or_else(|error| panic!("{name} {id}: {error}"));
            let root = document.root_element();
            assert!(
                root.has_tag_name(("http://www.w3.org/2000/svg", "svg")),
                "{name} {id}"
            );
            let elements = root.descendants().filter(Node::is_element);
            elements.for_each(|element| assert_quiet(&element));
            assert!(picture.chars().all(is_harmless), "{name} {id}");
            assert!(
                !picture.contains("NaN") && !picture.contains("inf\""),
                "{name} {id}"
            );
            assert!(
                picture.len() < 200_000,
                "{name} {id}: {} bytes",
                picture.len()
            );
        }
    }
}

/// Nothing that runs, loads or points anywhere; and everything within the picture.
fn assert_quiet(element: &Node<'_, '_>) {
    let mut known = "svg g title desc style rect text line path".split(' ');
    assert!(
        known.any(|name| name == element.tag_name().name()),
        "{element:?}"
    );
    for attribute in element.attributes() {
        let name = attribute.name();
        assert!(
            !name.starts_with("on") && !name.ends_with("href"),
            "{attribute:?}"
        );
        assert!(!attribute.value().contains("url("), "{attribute:?}");
    }
    for (names, most) in [
        (&["x", "x1", "x2", "width"][..], 960.0),
        (&["y", "height"], 4000.0),
    ] {
        for value in names.iter().filter_map(|name| element.attribute(*name)) {
            let value = value.parse().unwrap_or(f64::NAN);
            assert!((0.0..=most).contains(&value), "{element:?}");
        }
    }
}

#[test]
fn sheet_contains_every_chart_side_by_side() {
    for (name, record) in &*RECORDS {
        let charts = charts(record);
        if charts.is_empty() {
            continue;
        }
        let sheet = written(|out| svg::write_sheet(&charts, &origin(record), out));
        let document = Document::parse(&sheet).unwrap_or_else(|error| panic!("{name}: {error}"));
        let root = document.root_element();
        let panels = root.children().filter(|node| node.has_tag_name("g"));
        let mut places: Vec<&str> = panels.filter_map(|g| g.attribute("transform")).collect();
        assert_eq!(places.len(), charts.len(), "{name}");
        places.dedup();
        assert_eq!(places.len(), charts.len(), "{name}");
        let width = if charts.len() < 3 { "960" } else { "1920" };
        assert_eq!(root.attribute("width"), Some(width), "{name}");
    }
}

#[test]
fn prom_labels_from_the_disk_are_escaped() {
    let mut record = fixture::surveyed();
    let evil = "</text><script>alert(1)</script>\"'&\u{0}\u{fffe}\u{202e}".to_owned();
    record.targets[0].layers[0].model = Some(evil.clone());
    record.host.name = evil;
    for (_, picture) in pictures(&record) {
        let document = Document::parse(&picture).unwrap();
        let is_script = |node: Node<'_, '_>| node.tag_name().name() == "script";
        assert!(!document.descendants().any(is_script));
        let texts: String = document
            .descendants()
            .filter_map(|node| node.text())
            .collect();
        assert!(
            texts.contains("</text><script>alert(1)</script>\"'&\\u{0}"),
            "{texts}"
        );
    }
}

#[test]
fn svg_draws_single_points_and_odd_numbers() {
    let mut record = fixture::surveyed();
    let surface = record.surface_mut().unwrap();
    surface.data.curve.truncate(1);
    surface.data.access.truncate(1);
    assert!(pictures(&record).len() >= 4);
    for rate in [0.0, 1e-30, 1e30, f64::MAX, f64::INFINITY, f64::NAN] {
        let surface = record.surface_mut().unwrap();
        surface.data.curve[0].bytes_per_second = rate;
        surface.data.access[0].latency_ns = u64::MAX;
        for (id, picture) in pictures(&record) {
            Document::parse(&picture).unwrap_or_else(|error| panic!("{id}: {error}"));
            assert!(!picture.contains("NaN"), "{rate} {id}");
        }
    }
}
