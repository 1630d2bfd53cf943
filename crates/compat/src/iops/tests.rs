use super::*;
use crate::fixture::{device, load, measurement, plan};
use diskproof_model::measurement::OpKind;

fn printed(line: &str, size_bytes: u64, iops: &[u64]) -> String {
    let (load, target) = (load(&DROP_IN, line), device(size_bytes));
    let plan = plan(load.as_ref(), &target);
    let mut printer = load.printer(&plan, &target);
    let mut text = printer.begin();
    for (workload, iops) in plan.workloads().iter().zip(iops) {
        let one = measurement(workload, OpKind::Read, *iops, 10_000_000_000);
        text.push_str(&printer.measured(&one));
    }
    text
}

/// The published output of two versions.
#[test]
fn both_spellings_of_units_are_those_of_the_tool() {
    assert_eq!(
        printed("--num_threads 1 /dev/md1", 6_001_000_000_000, &[439, 467]),
        "/dev/md1,   6.00 TB, 1 threads:\n \
         512   B blocks:   43.9 IO/s,  21.9 KiB/s (179.8 kbit/s)\n   \
         1 KiB blocks:   46.7 IO/s,  46.7 KiB/s (382.6 kbit/s)\n"
    );
    assert_eq!(
        printed("/dev/sda", 3_000_500_000_000, &[796, 623]),
        "/dev/sda,   3.00 T, sectorsize=512B, #threads=32, pattern=random:\n \
         512  B blocks:   79.6 IO/s,  40.8 kB/s (326.0 kbit/s)\n   \
         1 kB blocks:   62.3 IO/s,  63.8 kB/s (510.4 kbit/s)\n"
    );
    assert_eq!(
        printed("-m /dev/sda", 3_000_500_000_000, &[796, 623]),
        "/dev/sda, 3000500000000.00  , sectorsize=512B, #threads=32, pattern=random:\n \
         512  B blocks:   79.6 IO/s, 40755.2  B/s (326041.6  bit/s)\n \
         1024  B blocks:   62.3 IO/s, 63795.2  B/s (510361.6  bit/s)\n"
    );
}

#[test]
fn sizes_double_until_the_device_or_memory_ends_them() {
    let load = load(&DROP_IN, "-n 4 -t 1 /dev/sda");
    let sizes = |bytes| plan(load.as_ref(), &device(bytes)).workloads().len();
    assert_eq!(sizes(1 << 20), 11);
    assert_eq!(sizes(1 << 40), 20);
    let one = crate::fixture::load(&DROP_IN, "-b 8192 -p sequential /dev/sda");
    assert_eq!(plan(one.as_ref(), &device(1 << 40)).workloads().len(), 1);
}

#[test]
fn a_slow_block_size_is_the_last() {
    let (load, target) = (load(&DROP_IN, "-n 16 /dev/sda"), device(1 << 40));
    let plan = plan(load.as_ref(), &target);
    let mut printer = load.printer(&plan, &target);
    let one = |count| measurement(&plan.workloads()[0], OpKind::Read, count, 10_000_000_000);
    printer.measured(&one(41));
    assert!(!printer.is_complete());
    assert!(printer.measured(&one(40)).contains(" 4.0 IO/s"));
    assert!(printer.is_complete());
    assert_eq!(printer.measured(&one(0)), "");
}
