use super::*;
use crate::drop_in::Treatment;
use crate::fixture::{device, load, measurement, plan, result, text_of};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::CachePolicy;
use std::collections::BTreeSet;

#[test]
fn both_timings_run_the_cache_first() {
    let load = load(&DROP_IN, "-tT /dev/sda");
    let target = device(10 << 30);
    let plan = plan(load.as_ref(), &target);
    let names: Vec<&str> = plan
        .workloads()
        .iter()
        .map(|workload| workload.name.as_str())
        .collect();
    assert_eq!(names, ["cached-reads", "device-reads"]);
    assert_eq!(plan.workloads()[0].cache, CachePolicy::Cached);
    assert_eq!(plan.workloads()[1].cache, CachePolicy::Buffered);
    let mut printer = load.printer(&plan, &target);
    let mut text = printer.begin();
    let times_ns = [1_990_000_000, 3_010_000_000];
    for ((workload, count), wall_ns) in plan.workloads().iter().zip([6892, 210]).zip(times_ns) {
        let one = measurement(workload, OpKind::Read, count, wall_ns);
        text.push_str(&printer.measured(&one));
    }
    assert_eq!(printer.end(&result(&[])).stdout, "");
    assert_eq!(
        text,
        "\n/dev/sda:\n Timing cached reads:   13784 MB in  1.99 seconds = 6926.63 MB/sec\n \
         Timing buffered disk reads: 420 MB in  3.01 seconds = 139.53 MB/sec\n"
    );
}

/// The options in the help of the real one.
#[test]
fn options_are_those_of_the_help() {
    let help = text_of("hdparm-9.65.help");
    let real: BTreeSet<String> = help
        .lines()
        .filter(|line| line.starts_with(" -"))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    let written = DROP_IN.options.iter().map(|option| match option.short {
        "" => format!("--{}", option.long),
        short => short.to_owned(),
    });
    assert_eq!(written.collect::<BTreeSet<_>>(), real);
    let carried = |option: &&crate::drop_in::DropInOption| option.treatment == Treatment::Carried;
    assert_eq!(DROP_IN.options.iter().filter(carried).count(), 7);
}

/// What hdparm has printed when it finds that it cannot read.
#[test]
fn small_file_is_an_error_of_the_device_timing() {
    for (line, wanted, stdout) in [
        ("-t", 5, "\n/dev/sda:\n Timing buffered disk reads: "),
        ("-tT", 5, "\n/dev/sda:\n Timing buffered disk reads: "),
        ("-qt --direct", 5, " Timing O_DIRECT disk reads: "),
        ("-T", 0, "\n/dev/sda:\n"),
    ] {
        let load = load(&DROP_IN, &format!("{line} /dev/sda"));
        let target = device(1 << 20);
        let context = PlanContext {
            target: &target,
            seed: 1,
            argv: &[],
        };
        let Err(DropInError::Code(code, text)) = load.plan(&context) else {
            panic!("{line}");
        };
        assert_eq!((code, text.stdout.as_str()), (wanted, stdout), "{line}");
    }
}

/// As hdparm 9.65 ends it on a loop device. The offset concerns only reads of the device.
#[test]
fn offset_behind_the_end_is_that_of_a_failed_seek() {
    let target = device(1 << 30);
    let context = PlanContext {
        target: &target,
        seed: 1,
        argv: &[],
    };
    for (line, is_possible) in [
        ("-T --offset 5", true),
        ("-t --offset 5", false),
        ("-tT --offset 5", false),
        ("-t --offset 0", true),
    ] {
        let load = load(&DROP_IN, &format!("{line} /dev/sda"));
        match load.plan(&context) {
            Ok(_) => assert!(is_possible, "{line}"),
            Err(DropInError::Code(22, text)) => {
                assert!(!is_possible, "{line}");
                assert_eq!(text.stderr, "lseek() failed: Invalid argument\n");
            }
            Err(error) => panic!("{line}: {error:?}"),
        }
    }
}
