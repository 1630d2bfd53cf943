//! Every text of the schema has a treatment, and an anonymous record derives to itself.

use super::places::{PLACES, is_at};
use super::*;
use diskproof_analysis::fixture;
use diskproof_model::wall_clock::{WallClock, WallSource};
use serde_json::Map;
use std::collections::BTreeSet;

const SCHEMA: &str = include_str!("../../../../../schema/record.v3.schema.json");

/// Keys of maps that are words of the system: names of errors.
const ERROR_NAMES: [&str; 3] = ["errors", "errnos", "access_errors"];

/// Walks the schema for the places of texts whose words it does not list.
struct SchemaWalk<'a> {
    definitions: &'a Map<String, Value>,
    places: BTreeSet<String>,
}

impl<'a> SchemaWalk<'a> {
    fn visit(&mut self, schema: &'a Value, place: &str, above: &[&'a str]) {
        if schema == &Value::Bool(true) {
            self.places.insert(place.to_owned());
        }
        let Some(fields) = schema.as_object() else {
            return;
        };
        if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
            let name = name.rsplit('/').next().unwrap();
            if !above.contains(&name) {
                let inside = [above, &[name]].concat();
                self.visit(&self.definitions[name], place, &inside);
            }
            return;
        }
        let is_listed = fields.contains_key("enum") || fields.contains_key("const");
        if fields
            .get("type")
            .is_some_and(|kind| kind.to_string().contains("\"string\""))
            && !is_listed
        {
            self.places.insert(place.to_owned());
        }
        for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
            for part in fields
                .get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                self.visit(part, place, above);
            }
        }
        let properties = fields.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            self.visit(property, &format!("{place}.{name}"), above);
        }
        if let Some(items) = fields.get("items") {
            self.visit(items, place, above);
        }
        if let Some(values) = fields.get("additionalProperties") {
            self.visit(values, place, above);
            let is_count = values["type"] == "integer";
            let name = place.rsplit('.').next().unwrap();
            assert!(
                !is_count || ERROR_NAMES.contains(&name),
                "{place}: its keys may be names of the machine"
            );
        }
    }
}

fn text_places() -> BTreeSet<String> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut walk = SchemaWalk {
        definitions: schema["$defs"].as_object().unwrap(),
        places: BTreeSet::new(),
    };
    walk.visit(&schema, "record", &[]);
    walk.places
}

#[test]
fn every_text_of_the_schema_has_a_treatment() {
    let places = text_places();
    assert!(places.len() > 200, "{}", places.len());
    let unknown: Vec<&String> = places
        .iter()
        .filter(|place| treatment_of(place).is_none())
        .collect();
    assert!(
        unknown.is_empty(),
        "may these texts name the machine? Add them to PLACES: {unknown:#?}"
    );
    for (treatment, ends) in PLACES {
        for end in *ends {
            let is_used = places.iter().any(|place| is_at(place, end, *treatment));
            assert!(is_used, "{end}: the schema has no such text");
        }
    }
}

/// A record with a name in every fact that has one, and processes that are called as words are.
fn named_record() -> Record {
    fixture::changed(|run| {
        let facts = &mut run.facts;
        facts.host.name = "secret-host".to_owned();
        facts.note = Some("secret note".to_owned());
        facts.ended_early = Some("/secret-path: no space left".to_owned());
        let target = &mut facts.targets[0];
        target.path = "/secret-path".to_owned();
        target.unresolved = Some("nfs: on the server secret-nas".to_owned());
        let layer = &mut target.layers[0];
        layer.kind = LayerKind::DeviceMapper;
        layer.model = Some("LVM secret-volume".to_owned());
        layer.serial = Some("SECRET".to_owned());
        let device = &mut run.measurements[2].device;
        device.read_bytes += 64 << 20;
        device.others = vec![
            fixture::process("secret-process", 40 << 20, 0),
            fixture::process("disk", 20 << 20, 0),
            fixture::process("on", 10 << 20, 0),
        ];
    })
}

#[test]
fn anonymous_record_derives_to_itself() {
    let record = named_record();
    let claim = &record.findings[0].claim;
    assert!(claim.contains("secret-process"), "{claim}");
    let anonymous = anonymize(&record).unwrap();
    let text = serde_json::to_string(&anonymous.record).unwrap();
    assert!(!text.to_lowercase().contains("secret"), "{text}");
    let (derived, found) = judged_again(Record::from_json(&text).unwrap());
    assert_eq!(found, Rejudged::Same);
    assert_eq!(derived, anonymous.record);
    let model = anonymous.record.targets[0].layers[0].model.clone();
    assert_eq!(model.as_deref(), Some("LVM volume1"));
    // Sentences keep their words.
    let renamed = claim
        .replace("secret-process", "process1")
        .replace("disk (pid", "process2 (pid")
        .replace("on (pid", "process3 (pid");
    assert_eq!(anonymous.record.findings[0].claim, renamed);
}

/// The kernel's thread explains the bytes; under another name it would be a program that disturbed
/// the measurement.
#[test]
fn anonymous_record_has_the_findings_of_its_run() {
    let record = fixture::changed(|run| {
        let device = &mut run.measurements[2].device;
        device.read_bytes += 64 << 20;
        device.others = vec![fixture::process("ext4lazyinit", 0, 64 << 20)];
    });
    let anonymous = anonymize(&record).unwrap().record;
    assert_eq!(
        anonymous.measurements[2].data.device.others[0].name,
        "ext4lazyinit"
    );
    let codes = |record: &Record| -> Vec<String> {
        let findings = record.findings.iter();
        findings.map(|finding| finding.code.clone()).collect()
    };
    assert_eq!(codes(&anonymous), codes(&record));
}

/// `merge` tells hosts and disks apart by these names, and clocks by the boot.
#[test]
fn machines_of_two_records_stay_apart() {
    let placeholders = |run_id: &str| {
        let mut record = named_record();
        record.run_id = run_id.to_owned();
        record.clock.wall = Some(WallClock {
            bound_ns: None,
            source: WallSource::Nobody,
            paired_within_ns: 0,
            gained_ns: None,
            apart_ns: 0,
            boot_id: Some("secret-boot".to_owned()),
        });
        let record = anonymize(&record).unwrap().record;
        let serial = record.targets[0].layers[0].serial.clone().unwrap();
        let boot = record.clock.wall.unwrap().boot_id.unwrap();
        [record.host.name, serial, boot]
    };
    let first = placeholders("one");
    assert_eq!(first, placeholders("one"));
    for (mine, theirs) in first.iter().zip(placeholders("other")) {
        assert!(*mine != theirs && !mine.contains("secret"), "{mine}");
    }
}

#[test]
fn record_without_data_is_refused() {
    assert!(anonymize(&named_record().figures_only()).is_err());
}

#[test]
fn disk_of_a_software_target_has_no_model() {
    let mut record = fixture::record();
    let disk = &mut record.targets[0].layers[0];
    (disk.vendor, disk.model) = (Some("LIO-ORG".to_owned()), Some("acme-pgdata".to_owned()));
    disk.kind = LayerKind::Disk;
    let anonymous = anonymize(&record).unwrap().record;
    let model = anonymous.targets[0].layers[0].model.clone();
    assert_eq!(model.as_deref(), Some("volume1"));
}

#[test]
fn mount_option_keeps_values_that_name_nothing() {
    assert_eq!(public_mount_option("subvol=/@secret"), "subvol");
    assert_eq!(public_mount_option("addr=10.1.2.3"), "addr");
    assert_eq!(
        public_mount_option("errors=remount-ro"),
        "errors=remount-ro"
    );
    assert_eq!(public_mount_option("noatime"), "noatime");
}

#[test]
fn profile_of_a_user_is_a_path_and_one_of_the_program_is_none() {
    for (profile, is_kept) in [
        ("postgresql", true),
        ("Postgres", true),
        ("acme-prod.toml", false),
        ("./postgresql", false),
    ] {
        let mut text = profile.to_owned();
        replace_name(
            &mut text,
            "record.plan.questions.fit_for",
            &mut Placeholders::default(),
        );
        assert_eq!(text == profile, is_kept, "{profile}: {text}");
    }
}
