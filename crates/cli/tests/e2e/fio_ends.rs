//! `as fio`: what ends a job, and how much it has moved then, beside the real fio where it is
//! there.

use crate::fio::{as_fio_in, files_in, moved};
use crate::program::{Ran, argv};
use diskproof_simdisk::testbed::place;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The jobs of a run.
fn jobs(ran: &Ran) -> Vec<Value> {
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    report["jobs"].as_array().unwrap().clone()
}

/// A command line in a directory.
fn run_in(place: &Path, line: &str) -> Ran {
    as_fio_in(place, &argv(&format!("--output-format=json {line}")))
}

fn runtime_ms(job: &Value) -> u64 {
    job["job_runtime"].as_u64().unwrap()
}

#[test]
fn late_request_ends_its_job_and_counts() {
    let here = place();
    let ran = run_in(
        here.path(),
        "--name=a --rw=read --size=4m --max_latency=1us --name=b --rw=read --size=1m",
    );
    ran.exits(1);
    let jobs = jobs(&ran);
    // As with fio 3.33: the first request is too slow, and the other job goes on.
    assert_eq!(moved(&jobs[0]), [1, 4096, 0, 0]);
    assert_eq!(jobs[0]["error"], 110);
    assert_eq!(moved(&jobs[1]), [256, 1 << 20, 0, 0]);
    assert_eq!(jobs[1]["error"], 0);
}

#[test]
fn failed_job_ends_the_others_only_with_exitall_on_error() {
    for (option, is_ended) in [("", false), ("--exitall_on_error", true)] {
        let here = place();
        let ran = run_in(
            here.path(),
            &format!(
                "{option} --name=a --rw=read --size=1m --max_latency=1us --name=b --rw=read \
                 --size=1m --time_based --runtime=4"
            ),
        );
        ran.exits(1);
        let jobs = jobs(&ran);
        assert_eq!(jobs[0]["error"], 110, "{option}");
        assert_eq!(runtime_ms(&jobs[1]) < 4000, is_ended, "{option}");
    }
}

#[test]
fn exitall_ends_the_jobs_that_run_together() {
    let here = place();
    let line = "--name=a --rw=read --size=1m --exitall --name=b --rw=read --size=1m --time_based \
                --runtime=60";
    let ran = run_in(here.path(), line);
    ran.exits(0);
    let jobs = jobs(&ran);
    assert_eq!(moved(&jobs[0]), [256, 1 << 20, 0, 0]);
    assert!(runtime_ms(&jobs[1]) < 60_000);
}

#[test]
fn each_job_has_its_own_time() {
    let here = place();
    let line = "--rw=read --size=1m --time_based --name=a --runtime=1 --name=b --runtime=2";
    let ran = run_in(here.path(), line);
    ran.exits(0);
    let jobs = jobs(&ran);
    let times = [runtime_ms(&jobs[0]), runtime_ms(&jobs[1])];
    assert!(
        (1000..2000).contains(&times[0]) && times[1] >= 2000,
        "{times:?}"
    );
}

#[test]
fn job_files_run_one_after_the_other() {
    let here = place();
    let options = "size=1m\n[first]\nrw=write\n";
    std::fs::write(here.path().join("a.fio"), format!("[global]\n{options}")).unwrap();
    // What a job of the first file has written is there for one of the second.
    let options = "[second]\nrw=read\nfilename=first.0.0\n";
    std::fs::write(here.path().join("b.fio"), options).unwrap();
    let ran = run_in(here.path(), "a.fio b.fio");
    ran.exits(0);
    let jobs = jobs(&ran);
    assert_eq!(moved(&jobs[0]), [0, 0, 256, 1 << 20]);
    assert_eq!(moved(&jobs[1]), [256, 1 << 20, 0, 0]);
    assert_eq!(
        (&jobs[0]["groupid"], &jobs[1]["groupid"]),
        (&0.into(), &1.into())
    );
}

#[test]
fn nothing_is_read_back_after_the_time_of_a_job() {
    let here = place();
    let ran = run_in(
        here.path(),
        "--name=a --rw=write --size=1m --verify=crc32c --runtime=1 --time_based",
    );
    ran.exits(0);
    let [reads, _, writes, _] = moved(&jobs(&ran)[0]);
    assert!(reads == 0 && writes > 0, "{reads} {writes}");
}

#[test]
fn files_are_laid_out_with_the_data_of_the_job() {
    let here = place();
    let data = "--buffer_pattern=0x55aa";
    run_in(here.path(), &format!("--name=a --rw=read --size=1m {data}")).exits(0);
    let line = "--name=a --rw=read --size=1m --verify=pattern --verify_pattern=0x55aa";
    let ran = run_in(here.path(), line);
    ran.exits(0);
    assert_eq!(moved(&jobs(&ran)[0]), [256, 1 << 20, 0, 0]);
}

#[test]
fn jobs_verify_a_file_that_others_write() {
    let here = place();
    let line = "--name=a --rw=write --size=1m --verify=md5 --numjobs=2 --filename=x";
    let ran = run_in(here.path(), line);
    ran.exits(0);
    for job in jobs(&ran) {
        assert_eq!(moved(&job), [256, 1 << 20, 256, 1 << 20]);
    }
}

#[test]
fn pre_read_is_none_of_the_reads_of_a_job() {
    let here = place();
    let ran = run_in(here.path(), "--name=a --rw=randread --size=1m --pre_read=1");
    ran.exits(0);
    let jobs = jobs(&ran);
    assert_eq!(jobs.len(), 1);
    assert_eq!(moved(&jobs[0]), [256, 1 << 20, 0, 0]);
}

#[test]
fn verified_blocks_of_zeros_are_good() {
    let here = place();
    let line = "--name=a --rw=write --size=1m --zero_buffers --name=b --stonewall --rw=read \
                --filename=a.0.0 --size=1m --verify=pattern --verify_pattern=0";
    let ran = run_in(here.path(), line);
    ran.exits(0);
    assert_eq!(jobs(&ran)[1]["error"], 0);
}

/// One line for each way in which requests follow each other.
const ORDERS: [&str; 20] = [
    "--rw=write --size=1m --bsrange=4k-16k --loops=3",
    "--rw=randrw --size=1m --bs=4k,64k --ioengine=libaio --iodepth=4 --direct=1",
    "--rw=rw --size=256k --fsync=4 --loops=2",
    "--rw=randread --size=1m --offset=25% --loops=3",
    "--rw=read --size=1m --offset=25% --nrfiles=4 --loops=2",
    "--rw=write --size=1000k --nrfiles=7 --openfiles=2 --file_service_type=random:3",
    "--rw=read:8k --size=1m --bssplit=4k/50:8k/50 --nrfiles=2",
    "--rw=randrw --size=1m --percentage_random=30,70 --numjobs=2 --group_reporting",
    "--rw=randread --size=1m --zonemode=strided --zonesize=64k --zonerange=128k --zoneskip=64k",
    "--rw=randwrite --size=1m --bs=4k --ba=8k",
    "--rw=randrw --size=1m --rwmixread=0 --bsrange=4k-32k,8k-16k",
    "--rw=rw --size=1m --rwmixread=100",
    "--rw=write:8k --size=4m --verify=null",
    "--rw=write:8k --size=4m --bs=4k,8k --verify=null",
    "--rw=randwrite --size=1m --verify=pattern --verify_pattern=%o --nrfiles=4",
    "--rw=randwrite --size=1500001 --direct=1",
    "--rw=randwrite --bs=128k --size=3m --filename=a:b:c --offset=1m --numjobs=3 \
     --offset_increment=1m",
    "--rw=read --size=1m --filename=a:b --numjobs=2 --offset_increment=64k --loops=2",
    // The copies behind the first one count down from the last.
    "--rw=read --filesize=4m --numjobs=4 --offset_increment=1m --filename=a",
    "--rw=randwrite --filesize=2m --numjobs=3 --offset_increment=512k --bs=4k,8k",
];

#[test]
fn requests_are_those_of_the_real_fio() {
    for line in ORDERS {
        let (here, other) = (place(), place());
        let whole_line = format!("--output-format=json --name=j {line}");
        let words = argv(&whole_line);
        let Ok(real) = Command::new("fio")
            .args(&words)
            .current_dir(other.path())
            .output()
        else {
            eprintln!("SKIPPED: requests_are_those_of_the_real_fio: fio is missing");
            return;
        };
        let report: Value = serde_json::from_slice(&real.stdout).unwrap();
        let ran = as_fio_in(here.path(), &words);
        ran.exits(0);
        let found = jobs(&ran);
        for (index, job) in report["jobs"].as_array().unwrap().iter().enumerate() {
            assert_eq!(moved(&found[index]), moved(job), "{line}");
            let syncs = |job: &Value| job["sync"]["total_ios"].as_u64();
            assert_eq!(syncs(&found[index]), syncs(job), "{line}");
        }
        assert_eq!(files_in(here.path()), files_in(other.path()), "{line}");
    }
}
