use super::*;
use crate::fixture::{directory, load, measurement, plan, result, words};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::Layout;

#[test]
fn auto_mode_measures_every_pair_in_a_part_of_its_own() {
    let of = |line| plan(load(&DROP_IN, line).as_ref(), &directory());
    assert_eq!(of("-a").workloads().len(), 126 * 9);
    let small = of("-Ra -n 64 -g 128k -q 64k -i 0 -i 1");
    assert_eq!(small.workloads().len(), 10 * 4);
    assert_eq!(small.scratch_bytes(), Some(10 << 20));
    let first = &small.workloads()[0];
    assert_eq!(
        (first.name.as_str(), first.layout),
        ("write-64k-4k", Layout::Provides)
    );
    assert_eq!((first.block_bytes, first.stop.bytes), (4096, Some(65_536)));
    assert_eq!(small.workloads()[4].span.start_bytes, 1 << 20);
    assert_eq!(
        of("-a -n 32m -g 32m -i 0").workloads()[0].block_bytes,
        65_536
    );
    assert_eq!(
        of("-az -n 32m -g 32m -i 0").workloads()[0].block_bytes,
        4096
    );
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
    for workload in plan.workloads() {
        let mut one = measurement(workload, OpKind::Read, 1, 1_000_000);
        let read = one.ops.get_mut(&OpKind::Read).unwrap();
        read.latency.record(50_000);
        text.push_str(&printer.measured(&one));
    }
    text.push_str(&printer.end(&result(&[])).stdout);
    let blank = " ".repeat(30);
    let mut wanted = String::new();
    for (file, record, rate) in [
        (128, 64, 1_280_000),
        (128, 128, 2_560_000),
        (64, 64, 1_280_000),
    ] {
        wanted += &format!("{file:>16}{record:>8}{rate:>10}{blank}{rate:>10}{rate:>10}\n");
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
fn size_that_is_given_twice_is_refused() {
    for line in ["-s 64 -s 64", "-s 64 -r 4 -r 16 -r 4"] {
        match (DROP_IN.start)(&words(line)) {
            Err(error) => assert!(error.text().contains("given twice"), "{line}"),
            Ok(_) => panic!("{line}"),
        }
    }
}
