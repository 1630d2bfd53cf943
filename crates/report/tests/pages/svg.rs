//! Every chart of every fixture as a picture: whole XML, self-contained, harmless.

use crate::{RECORDS, fixture, is_harmless, written};
use diskproof_model::record::Record;
use diskproof_report::chart::{charts, origin};
use diskproof_report::svg;
use roxmltree::{Document, Node};

fn pictures(record: &Record) -> Vec<(String, String)> {
    let origin = origin(record);
    charts(record)
        .iter()
        .map(|chart| {
            (
                chart.id.clone(),
                written(|out| svg::write_sheet(std::slice::from_ref(chart), &origin, out)),
            )
        })
        .collect()
}

#[test]
fn svg_of_a_survey_snapshot() {
    for (id, picture) in pictures(&fixture::surveyed())
        .iter()
        .filter(|(id, _)| id == "short-strokes")
    {
        insta::assert_snapshot!(format!("svg_{id}"), picture);
    }
}

#[test]
fn svg_is_a_self_contained_document() {
    for (name, record) in &*RECORDS {
        for (id, picture) in pictures(record) {
            let document =
                Document::parse(&picture).unwrap_or_else(|error| panic!("{name} {id}: {error}"));
            let root = document.root_element();
            assert_eq!(
                (root.tag_name().name(), root.tag_name().namespace()),
                ("svg", Some("http://www.w3.org/2000/svg"))
            );
            root.descendants()
                .filter(Node::is_element)
                .for_each(|element| assert_quiet(&element));
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
    let known = [
        "svg", "g", "title", "desc", "style", "rect", "text", "line", "path",
    ];
    assert!(known.contains(&element.tag_name().name()), "{element:?}");
    for attribute in element.attributes() {
        assert!(
            !attribute.name().starts_with("on") && !attribute.name().ends_with("href"),
            "{attribute:?}"
        );
        assert!(!attribute.value().contains("url("), "{attribute:?}");
    }
    for (name, most) in [
        ("x", 960.0),
        ("x1", 960.0),
        ("x2", 960.0),
        ("y", 4000.0),
        ("width", 960.0),
        ("height", 4000.0),
    ] {
        let value = element
            .attribute(name)
            .map_or(0.0, |value| value.parse().unwrap_or(f64::NAN));
        assert!((0.0..=most).contains(&value), "{name} of {element:?}");
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
        let panels: Vec<&str> = document
            .root_element()
            .children()
            .filter(|node| node.has_tag_name("g"))
            .filter_map(|g| g.attribute("transform"))
            .collect();
        let mut places = panels.clone();
        places.dedup();
        assert_eq!(
            (panels.len(), places.len()),
            (charts.len(), charts.len()),
            "{name}"
        );
        let width = document.root_element().attribute("width");
        assert_eq!(
            width,
            Some(if charts.len() < 3 { "960" } else { "1920" }),
            "{name}"
        );
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
        assert!(
            document
                .descendants()
                .all(|node| !node.has_tag_name(("http://www.w3.org/2000/svg", "script")))
        );
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
    record.curve.truncate(1);
    record.access.truncate(1);
    assert!(pictures(&record).len() >= 4);
    for rate in [0.0, 1e-30, 1e30, f64::MAX, f64::INFINITY, f64::NAN] {
        record.curve[0].bytes_per_second = rate;
        record.access[0].latency_ns = u64::MAX;
        for (id, picture) in pictures(&record) {
            Document::parse(&picture).unwrap_or_else(|error| panic!("{id}: {error}"));
            assert!(!picture.contains("NaN"), "{rate} {id}");
        }
    }
}
