//! The published contracts of the record and of the comparison: made from the types, as committed,
//! and kept by what the program really prints.

use crate::program;
use crate::program::{SHORT, argv, check, needs, random_file};
use boon::{Compiler, Schemas};
use diskproof_model::comparison::{COMPARISON_SCHEMA, Comparison};
use diskproof_model::fleet::{FLEET_SCHEMA, FleetRecord};
use diskproof_model::plan::{METHOD_VERSION, PLAN_SCHEMA};
use diskproof_model::record::{RECORD_SCHEMA, Record};
use diskproof_simdisk::testbed::{Loop, place};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A published shape.
struct Contract {
    /// A name, not a place: validators need nothing from the network.
    id: &'static str,
    title: &'static str,
    file: &'static str,
    /// What its `schema` always holds.
    schema: &'static str,
    of_the_types: fn(SchemaGenerator) -> Schema,
}

const RECORD: Contract = Contract {
    id: "urn:diskproof:schema:record.v3",
    title: "diskproof record, version 1",
    file: "record.v3.schema.json",
    schema: RECORD_SCHEMA,
    of_the_types: |generator| generator.into_root_schema_for::<Record>(),
};

const COMPARISON: Contract = Contract {
    id: "urn:diskproof:schema:comparison.v1",
    title: "diskproof comparison, version 1",
    file: "comparison.v1.schema.json",
    schema: COMPARISON_SCHEMA,
    of_the_types: |generator| generator.into_root_schema_for::<Comparison>(),
};

const FLEET: Contract = Contract {
    id: "urn:diskproof:schema:fleet.v1",
    title: "diskproof fleet, version 1",
    file: "fleet.v1.schema.json",
    schema: FLEET_SCHEMA,
    of_the_types: |generator| generator.into_root_schema_for::<FleetRecord>(),
};

impl Contract {
    fn path(&self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../schema")
            .join(self.file)
    }

    fn generated(&self) -> Value {
        let generator = schemars::generate::SchemaSettings::draft2020_12()
            .for_serialize()
            .into_generator();
        let mut schema = (self.of_the_types)(generator);
        let mut named = serde_json::Map::new();
        named.insert("$schema".to_owned(), schema.remove("$schema").unwrap());
        named.insert("$id".to_owned(), json!(self.id));
        schema.remove("title");
        named.insert("title".to_owned(), json!(self.title));
        let Value::Object(rest) = schema.to_value() else {
            panic!("a schema is an object")
        };
        named.extend(rest);
        named["properties"]["schema"]["const"] = json!(self.schema);
        Value::Object(named)
    }

    fn committed(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.path()).unwrap()).unwrap()
    }

    fn assert_valid(&self, document: &str, what: &str) {
        let document: Value = serde_json::from_str(document)
            .unwrap_or_else(|error| panic!("{what}: {error}: {document}"));
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource(self.id, self.committed()).unwrap();
        let schema = compiler.compile(self.id, &mut schemas).unwrap();
        schemas
            .validate(&document, schema)
            .unwrap_or_else(|error| panic!("{what}: {error:#}"));
    }
}

/// As committed; what the descriptions say of constants and types is said for readers who do not
/// have the code.
fn text_of(schema: &Value) -> String {
    let text = format!("{}\n", serde_json::to_string_pretty(schema).unwrap());
    let constants = [
        ("RECORD_SCHEMA", RECORD_SCHEMA),
        ("COMPARISON_SCHEMA", COMPARISON_SCHEMA),
        ("FLEET_SCHEMA", FLEET_SCHEMA),
        ("PLAN_SCHEMA", PLAN_SCHEMA),
        ("METHOD_VERSION", &METHOD_VERSION.to_string()),
    ];
    let text = constants.iter().fold(text, |text, (name, value)| {
        text.replace(&format!("[`{name}`]"), &format!("`{value}`"))
    });
    text.replace("[`", "`")
        .replace("`]", "`")
        .replace("`None`", "null")
}

fn assert_valid(document: &str, what: &str) {
    RECORD.assert_valid(document, what);
}

#[test]
fn the_committed_schemas_are_those_of_the_types() {
    for contract in [RECORD, COMPARISON, FLEET] {
        let text = text_of(&contract.generated());
        if std::env::var_os("UPDATE_SCHEMA").is_some_and(|value| value == "1") {
            std::fs::write(contract.path(), &text).unwrap();
        }
        let committed = std::fs::read_to_string(contract.path()).unwrap_or_default();
        let file = contract.file;
        assert!(
            committed == text,
            "{file}: the types have changed; if that is meant: UPDATE_SCHEMA=1 cargo test -p \
             diskproof --test schema"
        );
    }
}

#[test]
fn fleets_are_valid() {
    let place = place();
    let file = place.path().join("data");
    random_file(&file, 4 << 20);
    let mut files = Vec::new();
    for name in ["a.json", "b.json", "c.json"] {
        let path = place.path().join(name);
        let words = ["--time", "1s", "-o", path.to_str().unwrap()];
        let mut command =
            program::program([&["check", file.to_str().unwrap()], &words[..]].concat());
        command.env("PMI_RANK", files.len().to_string());
        program::Ran::of(command).exits(0);
        files.push(path.to_str().unwrap().to_owned());
    }
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let ran = program::run([&["merge", "--json"], &names[..]].concat());
    FLEET.assert_valid(&ran.out, "merge --json");
}

#[test]
fn comparisons_are_valid() {
    let place = place();
    let file = place.path().join("data");
    random_file(&file, 4 << 20);
    let record = |name: &str| {
        let path = place.path().join(name);
        let ran = check(
            &file,
            &["--time", "1s", "--quiet", "-o", path.to_str().unwrap()],
        );
        ran.exits(0);
        path.to_str().unwrap().to_owned()
    };
    let (a, b) = (record("a.json"), record("b.json"));
    for arguments in [
        vec!["compare", &a, &b, &a, "--json"],
        vec![
            "compare",
            &a,
            &format!("{a},{b}"),
            "--json",
            "--fail-on",
            "sequential-read.p99>1000%",
        ],
    ] {
        COMPARISON.assert_valid(&program::run(arguments).out, "comparison");
    }
}

#[test]
fn a_directory_and_a_file_give_valid_records() {
    let place = place();
    let ran = check(
        place.path(),
        &[
            &SHORT[..],
            &argv("--json --note words --expect random-read-d1.p50<=1ns"),
        ]
        .concat(),
    );
    ran.exits(1);
    assert_valid(&ran.out, "directory");
    assert_names_of_record(&serde_json::from_str(&ran.out).unwrap());

    let file = place.path().join("data");
    random_file(&file, 4 << 20);
    let ran = check(&file, &["--time", "1s", "--json"]);
    ran.exits(0);
    assert_valid(&ran.out, "file");
}

fn at<'a>(record: &'a Value, pointer: &str) -> &'a Value {
    record
        .pointer(pointer)
        .unwrap_or_else(|| panic!("{pointer} is missing in {record:#}"))
}

fn assert_has(record: &Value, place: &str, names: &str) {
    for name in names.split(' ') {
        let _ = at(record, &format!("{place}/{name}"));
    }
}

/// The names of a measurement that others rely on.
fn assert_names_of_measurement(record: &Value, place: &str) {
    let has = |place: &str, names: &str| assert_has(record, place, names);
    has(
        &format!("{place}/data/workload"),
        "name block_bytes depth workers engine cache",
    );
    has(
        &format!("{place}/data"),
        "wall_ns cpu/user_ns cpu/system_ns ops span_bytes engine/used cache/used",
    );
    has(&format!("{place}/figures"), "ops reproduce");
    has(
        &format!("{place}/data/device"),
        "read_bytes write_bytes accounted others",
    );
    for kind in at(record, &format!("{place}/figures/ops"))
        .as_object()
        .unwrap()
        .keys()
    {
        let measured = format!("{place}/data/ops/{kind}");
        has(&measured, "count bytes series");
        has(&format!("{measured}/latency"), "sum_ns min_ns max_ns hdr");
        let op = format!("{place}/figures/ops/{kind}");
        has(
            &format!("{op}/latency"),
            "mean p50 p90 p99 p99.9 p99.99 max",
        );
        has(&format!("{op}/iops"), "n value half_width_95");
        has(&format!("{op}/throughput"), "n value half_width_95");
        let unit = |part: &str| at(record, &format!("{op}/{part}/unit"));
        assert_eq!(
            [unit("latency"), unit("iops"), unit("throughput")],
            [&json!("ns"), &json!("1/s"), &json!("B/s")]
        );
    }
}

/// The names that others rely on.
fn assert_names_of_record(record: &Value) {
    let at = |pointer: &str| at(record, pointer);
    let count = |pointer: &str| at(pointer).as_array().unwrap().len();
    let has = |place: &str, names: &str| assert_has(record, place, names);
    has(
        "",
        "schema tool method run_id started partial host plan targets measurements findings advice",
    );
    assert_eq!(
        (at("/schema"), at("/tool/name"), at("/method")),
        (
            &json!("diskproof.record/3"),
            &json!("diskproof"),
            &json!(METHOD_VERSION)
        )
    );
    assert!(at("/tool/version").is_string() && at("/started").as_str().unwrap().ends_with('Z'));
    assert_eq!(
        (at("/partial"), at("/targets/0/kind")),
        (&json!(false), &json!("directory"))
    );
    has("/targets/0", "path size_bytes layers");

    let mut names = Vec::new();
    for index in 0..count("/measurements") {
        let place = format!("/measurements/{index}");
        names.push(at(&format!("{place}/data/workload/name")).as_str().unwrap());
        assert_names_of_measurement(record, &place);
    }
    names.sort_unstable();
    let expected = "commit-fdatasync mixed-random mixed-sequential random-read-d1 random-read-d32 \
                    random-write-d32 sequential-read sequential-write";
    assert_eq!(names.join(" "), expected);
    (0..count("/findings")).for_each(|index| {
        has(
            &format!("/findings/{index}"),
            "code severity claim evidence remedy",
        )
    });
    assert!(count("/advice") > 0);
    (0..count("/advice"))
        .for_each(|index| has(&format!("/advice/{index}"), "setting value range why from"));
    assert_eq!(
        (at("/expectations/0/met"), at("/note")),
        (&json!(false), &json!("words"))
    );
}

/// Another program reads histogram, series and counters of each row by the schema alone.
#[test]
fn rows_are_read_by_a_program_that_knows_only_the_schema() {
    needs!("python3");
    let place = place();
    let saved = place.path().join("run.json");
    let arguments = format!(
        "run {} --rw randrw --bs 8k --depth 4 --time 500ms --size 16M -q --no-history -o {}",
        place.path().display(),
        saved.display()
    );
    program::run(argv(&arguments)).exits(0);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/read_record.py");
    let output = std::process::Command::new("python3")
        .args([script, saved.to_str().unwrap()])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let read: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{stderr}"));
    let record = program::saved_record(&saved);
    let m = &record.measurements[0];
    assert_eq!(read.as_array().unwrap().len(), m.data.ops.len());
    for (read, (kind, op)) in read.as_array().unwrap().iter().zip(m.ops()) {
        let disk_bytes = m.data.device.read_bytes + m.data.device.write_bytes;
        let counts = [
            ("count", op.data.count),
            ("bytes", op.data.bytes),
            ("latencies", op.data.latency.count()),
            ("cells", op.data.series.total().ops),
            ("cell_bytes", op.data.series.total().bytes),
            ("longest_ns", op.data.series.total().latency_max_ns),
            ("interval_ns", op.data.series.interval_ns),
            ("disk_bytes", disk_bytes),
        ];
        for (name, expected) in counts {
            assert_eq!(read[name], json!(expected), "{} {name}", kind.as_str());
        }
        let mean_ns = read["mean_ns"].as_f64().unwrap();
        assert!((mean_ns / op.figures.latency.mean - 1.0).abs() < 1e-9);
        let lowest_ns = read["lowest_ns"].as_f64().unwrap();
        assert!((lowest_ns / op.figures.latency.min as f64 - 1.0).abs() < 2e-3);
    }
}

#[test]
fn evidence_points_into_its_record() {
    let place = place();
    let ran = check(place.path(), &[&SHORT[..], &["--json"]].concat());
    let record: Value = serde_json::from_str(&ran.out).unwrap();
    for evidence in record["findings"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|f| f["evidence"].as_array().unwrap())
    {
        let pointer = evidence["path"].as_str().unwrap();
        assert!(
            record.pointer(pointer).is_some(),
            "{pointer} points nowhere in {record:#}"
        );
    }
}

#[test]
fn a_block_device_gives_a_valid_record() {
    needs!("losetup");
    let place = place();
    random_file(&place.path().join("image"), 16 << 20);
    let device = Loop::over(&place.path().join("image"), &["--direct-io=on"]);
    let ran = check(&device.node, &["--time", "1s", "--json"]);
    ran.exits(0);
    assert_valid(&ran.out, "loop device");
}

#[test]
fn a_run_that_is_interrupted_gives_a_valid_record() {
    let place = place();
    let arguments = format!(
        "check {} --time 30s --size 16M --json",
        place.path().display()
    );
    let arguments = argv(&arguments);
    let running = program::PipedRun::start(arguments);
    // Wherever it is hit from here on, even before anything was measured, a record must come.
    running.wait_for_run();
    let ran = running.interrupt();
    ran.exits(130);
    assert_valid(&ran.out, "interrupted");
    assert!(ran.record().partial);
}
