use super::*;
use crate::fixture::{directory, load, measurement, plan, words};
use crate::printer::{DropInError, ToolResult};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Access, CachePolicy, Layout, SyncPolicy};
use std::path::PathBuf;

#[test]
fn auto_mode_measures_every_pair_in_a_part_of_its_own() {
    let whole = plan(load(&DROP_IN, "-a").as_ref(), &directory());
    assert_eq!(whole.workloads.len(), 126 * 9);
    let small = plan(
        load(&DROP_IN, "-Ra -n 64 -g 128k -q 64k -i 0 -i 1").as_ref(),
        &directory(),
    );
    assert_eq!(small.workloads.len(), 10 * 4);
    assert_eq!(small.scratch_bytes, Some(10 << 20));
    let first = &small.workloads[0];
    assert_eq!(
        (first.name.as_str(), first.layout),
        ("write-64k-4k", Layout::Provides)
    );
    assert_eq!((first.block_bytes, first.stop.bytes), (4096, Some(65_536)));
    assert_eq!(small.workloads[4].span.start_bytes, 1 << 20);
    let large = plan(
        load(&DROP_IN, "-a -n 32m -g 32m -i 0").as_ref(),
        &directory(),
    );
    assert_eq!(large.workloads[0].block_bytes, 65_536);
    let all = plan(
        load(&DROP_IN, "-az -n 32m -g 32m -i 0").as_ref(),
        &directory(),
    );
    assert_eq!(all.workloads[0].block_bytes, 4096);
}

#[test]
fn tests_have_their_accesses_and_flags_their_policies() {
    let load = load(&DROP_IN, "-s 4m -r 64k -I -e -j 3 -f /data/x");
    assert_eq!(load.head().target.path(), &PathBuf::from("/data"));
    let plan = plan(load.as_ref(), &directory());
    let named = |name: &str| {
        let mut all = plan.workloads.iter();
        all.find(|one| one.name == format!("{name}-4096k-64k"))
            .unwrap()
    };
    assert_eq!(plan.workloads.len(), 9);
    assert_eq!(named("write").sync, SyncPolicy::AtEnd);
    assert_eq!(named("write").cache, CachePolicy::Direct);
    assert_eq!(named("read").sync, SyncPolicy::None);
    assert_eq!(named("backward-read").access, Access::Backward);
    let stride_bytes = 3 << 16;
    assert_eq!(named("stride-read").access, Access::Stride { stride_bytes });
    let record = named("record-rewrite");
    assert_eq!(
        (record.span.start_bytes, record.span.length_bytes),
        (2 << 20, Some(65_536))
    );
    assert_eq!(record.stop.bytes, Some(4 << 20));
}

#[test]
fn table_and_matrices_have_the_layout_of_the_tool() {
    let load = load(&DROP_IN, "-R -s 128 -s 64 -r 64 -r 128 -i 0 -i 2 -+n");
    let target = directory();
    let plan = plan(load.as_ref(), &target);
    let mut printer = load.printer(&plan, &target);
    let head = printer.begin();
    assert!(head.contains("\tFile size set to 128 kB\n"), "{head}");
    assert!(head.contains("\tOutput is in kBytes/sec\n"), "{head}");
    let mut text = String::new();
    for workload in &plan.workloads {
        let mut one = measurement(workload, OpKind::Read, 1, 1_000_000);
        one.ops
            .get_mut(&OpKind::Read)
            .unwrap()
            .latency
            .record(50_000);
        text.push_str(&printer.measured(&one));
    }
    let end = printer.end(&ToolResult {
        measurements: &[],
        surface: None,
        interrupted: false,
        error: None,
        unix_ns: 0,
        host_name: "vm",
    });
    text.push_str(&end.stdout);
    let blank = " ".repeat(30);
    let mut wanted = String::new();
    for (file, record, rate) in [
        (128, 64, 1_280_000),
        (128, 128, 2_560_000),
        (64, 64, 1_280_000),
    ] {
        wanted.push_str(&format!(
            "{file:>16}{record:>8}{rate:>10}{blank}{rate:>10}{rate:>10}\n"
        ));
    }
    wanted.push_str("\niozone test complete.\nExcel output is below:\n");
    for title in ["Writer", "Random read", "Random write"] {
        wanted.push_str(&format!(
            "\n\"{title} report\"\n        \"64\"  \"128\"\n\"128\"   1280000  2560000 \n\"64\"   \
             1280000 \n"
        ));
    }
    assert_eq!(text, wanted);
}

#[test]
fn usage_errors_name_the_option() {
    for (line, text) in [
        ("-t 4", "diskproof run --jobs"),
        ("-i 6", "use -i 0 to -i 5"),
        ("-i x", "not a test"),
        ("-g 1g", "-g needs -a"),
        ("-s 4 -r 8", "no record fits"),
        ("-+w 50", "-+w is not supported"),
        ("-+? 50", "invalid option -- '+'"),
        ("-V 5", "diskproof run --verify"),
        ("-r none", "not a size in kB"),
    ] {
        match (DROP_IN.start)(&words(line)) {
            Err(DropInError::Usage(error)) => assert!(error.contains(text), "{line}: {error}"),
            _ => panic!("{line}: no usage error"),
        }
    }
}
