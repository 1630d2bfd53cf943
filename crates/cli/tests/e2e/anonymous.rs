//! `export --anonymous`: no format names the machine, and the record still derives from its data.

use crate::program::{argv, run};
use diskproof_model::record::Record;
use diskproof_report::formats::FORMATS;
use diskproof_simdisk::testbed::place;

#[test]
fn no_format_names_the_machine() {
    let place = place();
    let target = place.path().join("secret-directory");
    std::fs::create_dir(&target).unwrap();
    let record = place.path().join("record.json");
    let words = format!("run {} --rw randread --time 1s", target.display());
    let words = argv(&words);
    let save = format!("--size 16M --note secret-note -o {}", record.display());
    let save = argv(&save);
    run(words.into_iter().chain(save)).exits(0);

    // Facts that a machine need not have.
    let text = std::fs::read_to_string(&record).unwrap();
    let mut known: Record = serde_json::from_str(&text).unwrap();
    known.host.name = "secret-host".to_owned();
    for layer in &mut known.targets[0].layers {
        layer.serial = Some("SECRET-SERIAL".to_owned());
    }
    let process = || diskproof_model::measurement::OtherProcess {
        pid: 1,
        name: "secret-process".to_owned(),
        read_bytes: 1 << 30,
        write_bytes: 1 << 30,
        ended: false,
    };
    known.measurements[0].data.device.others = vec![process()];
    std::fs::write(&record, serde_json::to_string(&known).unwrap()).unwrap();

    let mut files = Vec::new();
    for format in FORMATS {
        if format.requires.is_met_by(&known) {
            let file = place.path().join(format!("out{}", format.extension));
            files.push(file.display().to_string());
        }
    }
    let export = ["export", record.to_str().unwrap(), "--anonymous"];
    let exported = run(export.into_iter().chain(files.iter().map(String::as_str)));
    exported.exits(0);
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap().to_lowercase();
        // A page holds the record compressed: what `show` prints of it is below.
        assert!(!text.contains("secret"), "{file}");
        assert!(!text.is_empty(), "{file}");
    }
    for extension in [".json", ".html"] {
        let file = &place
            .path()
            .join(format!("out{extension}"))
            .display()
            .to_string();
        let ran = run(["show", file, "--json"]);
        ran.exits(0).tells_nothing();
        assert!(!ran.out.to_lowercase().contains("secret"), "{file}");
        let shown = ran.record();
        assert_eq!(
            shown.measurements[0].figures.ops,
            known.measurements[0].figures.ops
        );
        assert_eq!(shown.host.kernel, known.host.kernel);
    }
}
