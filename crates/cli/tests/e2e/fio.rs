//! `as fio` alongside the real fio: published command lines, keys of the JSON, logs.

use crate::program::{
    PipedRun, Ran, argv, eventually, names, needs, program, program_path, random_file, run,
    with_enough_time,
};
use diskproof_simdisk::testbed::{Loop, Mount, place};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

fn as_tool(words: &[&str]) -> Ran {
    run(["as"].iter().chain(words))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Command lines of manuals and blogs, with smaller sizes and times: of etcd, YABS, Proxmox, Ceph,
/// AWS, Google Cloud, Oracle, and of fio's own users. `DIR` is a directory.
const PUBLISHED: &[&str] = &[
    "--rw=write --ioengine=sync --fdatasync=1 --directory=DIR --size=64k --bs=2300 --name=mytest",
    "--name=setup --ioengine=libaio --rw=read --bs=64k --iodepth=64 --numjobs=2 --size=1M \
     --runtime=1 --gtod_reduce=1 --filename=DIR/test.fio --direct=1 --minimal",
    "--name=rand_rw_4k --ioengine=libaio --rw=randrw --rwmixread=50 --bs=4k --iodepth=64 \
     --numjobs=2 --size=1M --runtime=1 --gtod_reduce=1 --direct=1 --filename=DIR/test.fio \
     --group_reporting --minimal",
    "--ioengine=libaio --filename=DIR/sdx --size=64k --direct=1 --sync=1 --rw=write --bs=4K \
     --numjobs=1 --iodepth=1 --runtime=1 --time_based --name=fio",
    "-ioengine=libaio -sync=1 -direct=1 -name=test -bs=4k -iodepth=1 -rw=randwrite -size=64k \
     -runtime=1 -filename=DIR/sdx",
    "--directory=DIR --ioengine=psync --name fio_test_file --direct=1 --rw=randwrite --bs=16k \
     --size=64k --numjobs=4 --time_based --runtime=1 --group_reporting --norandommap",
    "--name=write_throughput --directory=DIR --numjobs=2 --size=2M --time_based --runtime=1s \
     --ramp_time=1s --ioengine=libaio --direct=1 --verify=0 --bs=1M --iodepth=8 --rw=write \
     --group_reporting=1 --iodepth_batch_submit=64 --iodepth_batch_complete_max=64",
    "--filename=DIR/sdx --size=1M --direct=1 --rw=randread --bs=256k --ioengine=libaio \
     --iodepth=4 --runtime=1 --numjobs=4 --time_based --group_reporting \
     --name=throughput-test-job --eta-newline=1 --readonly",
    "--randrepeat=1 --ioengine=libaio --direct=1 --gtod_reduce=1 --name=test \
     --filename=DIR/random_read_write.fio --bs=4k --iodepth=64 --size=1M --readwrite=randrw \
     --rwmixread=75",
    "--name=randwrite --ioengine=libaio --iodepth=1 --rw=randwrite --bs=4k --direct=0 --size=256k \
     --numjobs=4 --runtime=1 --group_reporting --directory=DIR",
];

/// Lines of TiDB, Firecracker, OceanBase, the Phoronix Test Suite and OpenZFS's performance tests,
/// with smaller sizes and times, in their order: some read what others left.
const PUBLISHED_IN_ORDER: &[&str] = &[
    "-ioengine=psync -bs=32k -fdatasync=1 -thread -rw=randrw -percentage_random=100,0 -size=1m \
     -filename=DIR/fio_randread_write_test.txt -name=test -iodepth=4 -runtime=1 -numjobs=2 \
     -group_reporting",
    "-ioengine=psync -bs=32k -fdatasync=1 -thread -rw=randread -percentage_random=100,0 -size=1m \
     -filename=DIR/fio_randread_write_test.txt -name=test -iodepth=4 -runtime=1 -numjobs=2 \
     -group_reporting",
    "--name=randread-4096 --numjobs=2 --runtime=1 --time_based --ramp_time=1 --size=1m --direct=1 \
     --filename=DIR/vdb --rw=randread --randrepeat=0 --bs=4096 --ioengine=libaio --iodepth=32 \
     --cpus_allowed=0,1 --cpus_allowed_policy=split",
    "--filename=DIR/ob --direct=1 --rw=randwrite --ioengine=libaio --bs=16k --size=1m \
     --iodepth=128 --iodepth_batch_complete=8 --iodepth_low=16 --numjobs=1 --runtime=1 \
     --group_reporting --name=iops-test",
    "--name=test --rw=randread --ioengine=io_uring --iodepth=64 --size=1m --direct=1 --buffered=0 \
     --force_async=4 --ramp_time=1 --runtime=1 --time_based --clat_percentiles=0 --disable_lat=1 \
     --disable_clat=1 --disable_slat=1 --filename=DIR/fiofile --bs=4k",
    "--name=job --filename_format=file$jobnum --group_reporting=1 --fallocate=0 --ioengine=psync \
     --bs=64k --rw=write --thread=1 --directory=DIR --numjobs=2 --filesize=1m \
     --buffer_compress_percentage=33 --buffer_compress_chunk=4096",
    "--name=job --filename_format=file$jobnum --nrfiles=16 --group_reporting=1 --fallocate=0 \
     --overwrite=0 --thread=1 --rw=randrw --rwmixread=70 --time_based=1 --directory=DIR \
     --runtime=1 --bs=8k --ioengine=psync --sync=0 --direct=0 --numjobs=2 --randseed=1 \
     --buffer_compress_percentage=66 --buffer_pattern=0xdeadbeef --buffer_compress_chunk=4096",
];

/// The job files of Azure and kubestr.
const PUBLISHED_FILES: &[&str] = &[
    "[global]\nsize=1m\ndirect=1\niodepth=256\nioengine=libaio\nbs=4k\nnumjobs=1\n\n[writer1]\n\
     rw=randwrite\ndirectory=DIR\n[reader1]\nrw=randread\ndirectory=DIR\n",
    "[global]\nrandrepeat=0\nverify=0\nioengine=libaio\ndirect=1\ngtod_reduce=1\n[job1]\n\
     name=read_iops\nbs=4K\niodepth=64\nsize=1m\nreadwrite=randread\ntime_based\nramp_time=1s\n\
     runtime=1s\ndirectory=DIR\n[job2]\nname=write_bw\nbs=128K\niodepth=64\nsize=1m\n\
     readwrite=randwrite\ntime_based\nramp_time=1s\nruntime=1s\ndirectory=DIR\n",
];

#[test]
fn published_commands_of_fio_run_as_printed() {
    let here = place();
    let data = here.path().join("data");
    std::fs::create_dir(&data).unwrap();
    for line in PUBLISHED {
        let line = line.replace("DIR", text(&data));
        let words: Vec<&str> = std::iter::once("fio")
            .chain(line.split_whitespace())
            .collect();
        // The printed line reads a device.
        if line.contains("--readonly") {
            random_file(&data.join("sdx"), 1 << 20);
        }
        let ran = as_tool(&words);
        ran.exits(0).shows("fio-3.33");
        // Each copy without a file name has its own file.
        let copies = line
            .split("numjobs=")
            .nth(1)
            .and_then(|rest| rest.chars().next());
        let kept = match copies.filter(|_| !line.contains("-filename=")) {
            Some(copies) => copies.to_digit(10).unwrap() as usize,
            None => 1,
        };
        assert_eq!(names(&data).len(), kept, "{line}");
        for name in names(&data) {
            std::fs::remove_file(data.join(name)).unwrap();
        }
    }
    for line in PUBLISHED_IN_ORDER {
        let line = line.replace("DIR", text(&data));
        let words: Vec<&str> = std::iter::once("fio").chain(argv(&line)).collect();
        as_tool(&words).exits(0);
    }
    for content in PUBLISHED_FILES {
        let file = here.path().join("job.ini");
        std::fs::write(&file, content.replace("DIR", text(&data))).unwrap();
        let ran = as_tool(&["fio", "--output-format=json", text(&file)]);
        ran.exits(0);
        let json: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(json["jobs"].as_array().unwrap().len(), 2);
    }
}

/// The jobs of dbench on one file: copies go beyond the end of the file that the first job made.
#[test]
fn file_of_an_earlier_job_grows_as_in_fio_and_other_files_do_not() {
    let here = place();
    let file = here.path().join("fiotest");
    let job = |rw: &str, more: &[&str]| {
        let (name, rw) = (format!("--filename={}", text(&file)), format!("--rw={rw}"));
        let fixed = format!("fio --name=job --size=2M --direct=1 --bs=64k {name} {rw}");
        let fixed = argv(&fixed);
        as_tool(
            &[
                &fixed[..],
                &["--ioengine=libaio", "--output-format=json"],
                more,
            ]
            .concat(),
        )
    };
    let length = || std::fs::metadata(&file).unwrap().len();
    let copies = ["--numjobs=3", "--offset_increment=1M"];
    for (rw, more, bytes) in [
        ("randread", &[][..], 2 << 20),
        ("read", &copies, 4 << 20),
        ("write", &copies, 4 << 20),
        ("randwrite", &["--offset=3M"], 5 << 20),
    ] {
        let ran = job(rw, more);
        if ran.err.contains("only read unless") {
            println!("SKIPPED: file_of_an_earlier_job_grows: no extended attributes here");
            return;
        }
        ran.exits(0);
        assert_eq!(length(), bytes, "{rw}");
    }
    let content = vec![7; 1 << 20];
    std::fs::write(&file, &content).unwrap();
    let ran = job("randread", &[]);
    ran.exits(1).tells("truncate -s 2097152");
    assert!(std::fs::read(&file).unwrap() == content);
}

#[test]
fn as_fio_adds_up_a_job_on_several_files() {
    let here = place();
    let names: Vec<String> = ["one", "two"]
        .map(|name| {
            let file = here.path().join(name);
            std::fs::write(&file, vec![0xee; 1 << 20]).unwrap();
            text(&file).to_owned()
        })
        .to_vec();
    let ran = as_tool(&[
        "fio",
        "--name=a",
        "--rw=randread",
        "--bs=4k",
        "--ioengine=libaio",
        "--iodepth=8",
        "--number_ios=200",
        "--output-format=json",
        &format!("--filename={}", names.join(":")),
    ]);
    ran.exits(0);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    let jobs = json["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0]["read"]["total_ios"].as_u64(), Some(200));
    assert_eq!(jobs[0]["latency_depth"].as_u64(), Some(8));
    // Programs that read JSON read stderr with it.
    assert_eq!(ran.err, "");
}

#[test]
fn as_fio_ends_a_job_once_its_rate_is_steady() {
    let here = place();
    let directory = format!("--directory={}", text(here.path()));
    let job = |limit: &str, runtime: &str| {
        let ran = as_tool(&[
            "fio",
            &directory,
            "--name=a",
            "--rw=randread",
            "--size=64k",
            "--time_based",
            "--cpus_allowed=0",
            "--prioclass=2",
            "--prio=1",
            "--ss_dur=2",
            "--output-format=normal,json",
            &format!("--runtime={runtime}"),
            &format!("--ss={limit}"),
        ]);
        ran.exits(0);
        let json = &ran.out[ran.out.find("\n{").unwrap()..];
        let json = &json[..json.find("\n}").unwrap() + 2];
        let json: Value = serde_json::from_str(json).unwrap();
        (json["jobs"][0].clone(), ran.out)
    };
    // Any two rates, unless one of them is 0.
    let (found, out) = job("iops:100.1%", "60");
    let steady = &found["steadystate"];
    assert_eq!(
        (steady["attained"].as_u64(), steady["duration"].as_u64()),
        (Some(1), Some(2))
    );
    assert_eq!(steady["ss"].as_str(), Some("iops:100.100000%"));
    assert_eq!(steady["data"]["iops"].as_array().map(Vec::len), Some(2));
    assert!(found["job_runtime"].as_u64().unwrap() < 55_000, "{found}");
    assert!(out.contains("  steadystate  : attained=yes, bw="), "{out}");
    let (found, out) = job("iops:0%", "3");
    assert_eq!(found["steadystate"]["attained"].as_u64(), Some(0));
    assert!(out.contains("  steadystate  : attained=no, bw="), "{out}");
}

#[test]
fn as_fio_writes_the_data_of_the_job() {
    let here = place();
    let file = here.path().join("data");
    for (options, holds) in [
        (
            &["--zero_buffers"][..],
            (|block| block.iter().all(|byte| *byte == 0)) as fn(&[u8]) -> bool,
        ),
        (&["--buffer_pattern=0xab12"], |block| {
            block.chunks(2).all(|pair| pair == [0xab, 0x12])
        }),
        (
            &[
                "--buffer_compress_percentage=50",
                "--buffer_compress_chunk=4k",
            ],
            |block| {
                block[2048..].iter().all(|byte| *byte == 0)
                    && block[..64].iter().any(|byte| *byte > 0)
            },
        ),
        (&[], |block| {
            block
                .chunks(512)
                .all(|sector| sector.iter().any(|byte| *byte > 0))
        }),
    ] {
        std::fs::write(&file, vec![0xee; 1 << 20]).unwrap();
        let name = format!("--filename={}", text(&file));
        let own = format!("as --overwrite fio --name=a --rw=write --size=64k {name}");
        let own = argv(&own);
        let ran = run(own.iter().chain(options));
        ran.exits(0);
        let written = std::fs::read(&file).unwrap();
        assert!(written[..64 << 10].chunks(4096).all(holds), "{options:?}");
    }
}

#[test]
fn as_fio_repeats_its_output_while_jobs_run() {
    let here = place();
    let directory = format!("--directory={}", text(here.path()));
    let mut words = vec!["fio", &directory, "--status-interval=100ms"];
    words.extend([
        "--output-format=json",
        "--name=a",
        "--rw=randread",
        "--numjobs=2",
        "--size=256k",
        "--time_based",
        "--runtime=2",
        "--direct=1",
    ]);
    let ran = as_tool(&words);
    ran.exits(0);
    let documents = serde_json::Deserializer::from_str(&ran.out).into_iter();
    let documents: Vec<Value> = documents.map(Result::unwrap).collect();
    assert!(documents.len() > 1, "{}", documents.len());
    let mut before = 0;
    for document in &documents {
        let jobs = document["jobs"].as_array().unwrap();
        assert_eq!(jobs.len(), 2);
        let sum = |key: &str| -> u64 {
            let of = |job: &Value| job["read"][key].as_u64().unwrap();
            jobs.iter().map(of).sum()
        };
        let ops = sum("total_ios");
        assert!(ops >= before && sum("io_bytes") == ops * 4096, "{document}");
        before = ops;
    }
    assert!(before > 0);
}

#[test]
fn jobs_of_a_flow_keep_to_their_shares() {
    let here = place();
    let directory = format!("--directory={}", text(here.path()));
    let mut words = vec!["fio", &directory, "--output-format=json", "--rw=randread"];
    words.extend(["--size=256k", "--time_based", "--runtime=1", "--direct=1"]);
    words.extend(["--name=one", "--flow=1", "--name=four", "--flow=4"]);
    let ran = as_tool(&words);
    ran.exits(0);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    let reads = |job: usize| document["jobs"][job]["read"]["total_ios"].as_u64().unwrap();
    let (one, four) = (reads(0), reads(1));
    // A job that starts or ends a moment later than the other differs by a few operations.
    assert!(four.abs_diff(one * 4) <= 64 + four / 10, "{one} {four}");
}

#[test]
fn sysbench_prints_its_lines_while_it_runs() {
    let here = place();
    let mut sysbench = Command::new(program_path())
        .args(["as", "--no-history", "sysbench", "fileio"])
        .args(argv(
            "--file-total-size=16M --file-num=1 --file-test-mode=rndrd --time=60",
        ))
        .args(["--report-interval=1", "run"])
        .current_dir(here.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(sysbench.stdout.take().unwrap()).lines();
    let line = lines
        .map(Result::unwrap)
        .find(|line| line.starts_with("[ "));
    // The first line comes long before the end.
    assert!(line.is_some_and(|line| line.contains("s ] reads: ")));
    assert_eq!(sysbench.try_wait().unwrap(), None);
    sysbench.kill().unwrap();
    sysbench.wait().unwrap();
}

#[test]
fn as_fio_writes_logs_of_rates_and_latencies() {
    let here = place();
    let prefix = here.path().join("log");
    let directory = format!("--directory={}", text(here.path()));
    let (bw, iops) = (
        format!("--write_bw_log={}", text(&prefix)),
        format!("--write_iops_log={}", text(&prefix)),
    );
    let lat = format!("--write_lat_log={}", text(&prefix));
    let ran = as_tool(&argv(&format!(
        "fio {directory} {bw} {iops} {lat} --log_avg_msec=200 --name=a --rw=randrw --numjobs=2 \
         --size=256k --time_based --runtime=1 --direct=1"
    )));
    ran.exits(0).tells_not("write_bw_log");
    for number in 1..=2 {
        let rows = |suffix: &str| -> Vec<Vec<u64>> {
            let path = here.path().join(format!("log_{suffix}.{number}.log"));
            let text = std::fs::read_to_string(path).unwrap();
            let row = |line: &str| line.split(", ").map(|part| part.parse().unwrap()).collect();
            text.lines().map(row).collect()
        };
        let (bw, iops) = (rows("bw"), rows("iops"));
        assert_eq!(bw.len(), iops.len());
        assert!(bw.len() >= 2, "{bw:?}");
        for (bw, iops) in bw.iter().zip(&iops) {
            assert_eq!((bw.len(), bw[0] % 200, bw[3], bw[4]), (5, 0, 0, 0));
            assert_eq!((bw[0], bw[2]), (iops[0], iops[2]));
            // Of 4 KiB each.
            assert!(bw[1].abs_diff(iops[1] * 4) <= 4, "{bw:?} {iops:?}");
        }
        let (lat, clat) = (rows("lat"), rows("clat"));
        assert_eq!(lat, clat);
        // One request after the other takes at most the time of a line.
        let is_known = |row: &Vec<u64>| row.len() == 5 && row[0].is_multiple_of(200) && row[1] > 0;
        assert!(!lat.is_empty() && lat.iter().all(is_known), "{lat:?}");
    }
}

/// The requests of each direction, and the syncs, in a log of requests.
fn logged_requests(log: &str) -> [usize; 3] {
    [" read ", " write ", " sync "].map(|word| log.matches(word).count())
}

#[test]
fn real_fio_replays_the_log_of_requests() {
    needs!("fio");
    let here = place();
    let log_path = here.path().join("log");
    let directory = format!("--directory={}", text(here.path()));
    let log_option = format!("--write_iolog={}", text(&log_path));
    let ran = as_tool(&argv(&format!(
        "fio {directory} {log_option} --name=a --rw=randrw --size=256k --nrfiles=2 --fsync=8 \
         --output-format=json"
    )));
    let own: Value = serde_json::from_str(&ran.exits(0).out).unwrap();
    let counted = |json: &Value| {
        ["read", "write", "sync"].map(|kind| json["jobs"][0][kind]["total_ios"].as_u64().unwrap())
    };
    let log = std::fs::read_to_string(&log_path).unwrap();
    assert_eq!(
        logged_requests(&log).map(|count| count as u64),
        counted(&own)
    );
    let replayed = Command::new("fio")
        .args(["--name=b", "--rw=randrw", "--output-format=json"])
        .arg(format!("--read_iolog={}", text(&log_path)))
        .current_dir(here.path())
        .output()
        .unwrap();
    let theirs: Value = serde_json::from_slice(&replayed.stdout).unwrap();
    assert_eq!(theirs["jobs"][0]["error"].as_u64(), Some(0));
    assert_eq!(counted(&theirs)[..2], counted(&own)[..2]);
}

/// The program in this directory.
fn ran_in<'a>(directory: &Path, words: impl IntoIterator<Item = &'a str>) -> Ran {
    let mut command = program(words);
    command.current_dir(directory);
    Ran::of(command)
}

/// `as fio` with these options in this directory. The record is `r.json` there.
fn fio_in(directory: &Path, options: &[&str]) -> Ran {
    let words = ["as", "--no-history", "-o", "r.json", "fio"];
    ran_in(directory, words.into_iter().chain(options.iter().copied()))
}

#[test]
fn as_fio_runs_the_commands_of_jobs_and_a_record_does_not() {
    let here = place();
    let content = |name: &str| std::fs::read_to_string(here.path().join(name)).unwrap();
    let options = [
        "--size=64k",
        "--name=a",
        "--numjobs=2",
        "--exec_prerun=echo ran >> marker; echo out; echo err >&2",
        "--exec_postrun=wc -l < marker",
        "--name=b",
        "--stonewall",
        // Output of an earlier job is there.
        "--exec_prerun=cat a.postrun.txt a.0.0 | head -c 1",
    ];
    fio_in(here.path(), &options)
        .exits(0)
        .shows("a : Saving output of prerun in a.prerun.txt\n")
        .shows("b : Saving output of prerun in b.prerun.txt\n");
    assert_eq!(content("a.prerun.txt"), "out\nerr\n");
    assert_eq!(content("a.postrun.txt"), "2\n");
    assert_eq!(content("b.prerun.txt"), "2");
    let alone = ["--name=g", "--size=64k", "--exec_prerun=echo ran >> alone"];
    fio_in(here.path(), &alone).exits(0);
    ran_in(here.path(), ["run", "r.json", "--no-history"]).exits(0);
    assert_eq!(content("alone").lines().count(), 1);

    let failing = ["--name=c", "--size=64k", "--exec_prerun=echo why; exit 3"];
    let failed = fio_in(here.path(), &failing);
    assert_eq!(failed.code, Some(1), "{failed}");
    failed.tells("exec_prerun 'echo why; exit 3' failed");
    assert_eq!(content("c.prerun.txt"), "why\n");
    // What is to be undone is undone after a failed job, too.
    let late = [
        "--name=d",
        "--size=64k",
        "--max_latency=1us",
        "--exec_postrun=echo undone",
    ];
    fio_in(here.path(), &late);
    assert_eq!(content("d.postrun.txt"), "undone\n");
    // Nor is a job left as it is beside one whose command fails.
    let beside = [
        "--size=64k",
        "--name=e",
        "--exec_prerun=true",
        "--exec_postrun=echo undone",
        "--name=f",
        "--exec_prerun=exit 3",
    ];
    assert_eq!(fio_in(here.path(), &beside).code, Some(1));
    assert_eq!(content("e.postrun.txt"), "undone\n");
}

/// A file of 1,500,160 bytes ends inside a page. The page stays when the file grows.
#[test]
fn file_that_ends_inside_a_page_keeps_its_content_when_it_grows() {
    let here = place();
    let path = here.path().join("f");
    let verify = ["--verify=pattern", "--verify_pattern=0x5a", "--bs=512"];
    let own = ["--filename=f", "--size=1500160", "--name=own"];
    let written = [&own[..], &verify, &["--rw=write"]].concat();
    fio_in(here.path(), &written).exits(0);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1_500_160);
    let growing = ["--filename=f", "--size=2m", "--rw=randread", "--name=grows"];
    fio_in(here.path(), &growing).exits(0);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 2 << 20);
    let read = [&own[..], &verify, &["--rw=read"]].concat();
    fio_in(here.path(), &read).exits(0);
}

/// The commands that stand beside the figures of a check, of each kind that `run` has, and of
/// several workloads at once, with the real fio and without huge pages.
#[test]
fn printed_commands_run_with_the_real_fio() {
    let test = "printed_commands_run_with_the_real_fio";
    if Command::new("fio").arg("--version").output().is_err() {
        println!("SKIPPED: {test}: fio is not installed");
        return;
    }
    let (here, out) = (place(), place());
    let short = argv("--size 64M --time 1s --no-history --json -q");
    let mut runs: Vec<Vec<&str>> = vec![vec!["check", text(here.path())]];
    for load in [
        &["--rw", "rw", "--bs", "64k", "--depth", "4"][..],
        &["--rw", "randwrite", "--fdatasync", "1"],
        &["--rw", "write", "--sync", "dsync"],
        &argv("--rw randread --bssplit 4k/60:64k/40 --depth 8"),
        &["--rw", "randrw", "--rwmixread", "70", "--rate", "500"],
        &argv("--rw randread --distribution zipf:1.2 --jobs 3"),
        &["--rw", "read", "--bs", "1M", "--depth", "8", "--buffered"],
    ] {
        runs.push([&["run", text(here.path())][..], load].concat());
    }
    let mut commands = 0;
    for words in runs {
        let ran = run(words.iter().chain(&short));
        ran.exits(0);
        for measurement in ran.record().measurements {
            let printed =
                measurement
                    .figures
                    .reproduce
                    .replacen("fio ", "fio --output-format=json ", 1);
            let mut shell = Command::new("sh");
            let shell = shell.args(["-c", &printed]).current_dir(out.path());
            let output = shell.output().unwrap();
            let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let is_good = output.status.success() && json["jobs"][0]["error"] == 0;
            assert!(
                is_good,
                "{printed}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            let done = ["read", "write"].map(|kind| json["jobs"][0][kind]["total_ios"].as_u64());
            assert!(done.into_iter().flatten().sum::<u64>() > 0, "{printed}");
            commands += 1;
        }
    }
    assert!(commands >= 15, "{commands}");
    assert!(names(here.path()).is_empty() && names(out.path()).is_empty());
}

/// Runs `as fio` in a directory.
pub(crate) fn as_fio_in(place: &Path, words: &[&str]) -> Ran {
    let mut command = crate::program::program(["as", "fio"]);
    command.args(words).current_dir(place);
    Ran::of(command)
}

/// The first job of an output in JSON.
fn first_job(ran: &Ran) -> Value {
    ran.json()["jobs"][0].clone()
}

#[test]
fn as_fio_compares_blocks_with_a_pattern() {
    let here = place();
    let here = here.path();
    std::fs::write(here.join("good"), [0x55; 1 << 20]).unwrap();
    let mut bad = vec![0x55; 1 << 20];
    bad[123_456] = 0x58;
    std::fs::write(here.join("bad"), bad).unwrap();
    let line = "--name=v --rw=read --bs=4k --size=1m --output-format=json";
    for (file, verify, code) in [
        ("good", "--verify=pattern --verify_pattern=0x55", 0),
        ("bad", "--verify=pattern --verify_pattern=0x55", 1),
        ("good", "--verify=pattern --verify_pattern=0x5455", 1),
        // Blocks without a checksum of ours cannot be verified.
        ("good", "--verify=crc32c", 1),
    ] {
        let file = format!("--filename={file}");
        let words: Vec<&str> = argv(line).into_iter().chain(argv(verify)).collect();
        let words: Vec<&str> = words.into_iter().chain([file.as_str()]).collect();
        let ran = as_fio_in(here, &words);
        ran.exits(code);
        let wanted = if code == 0 { 0 } else { 84 };
        assert_eq!(first_job(&ran)["error"], wanted, "{words:?}");
        if code != 0 {
            assert_ne!(ran.err, "", "{words:?}");
        }
        if let Ok(real) = Command::new("fio").args(&words).current_dir(here).output() {
            assert_eq!(real.status.code(), Some(code), "{words:?}");
        }
    }
    // What it writes is what another program finds.
    let line = "--name=w --filename=new --rw=randwrite --bs=4k --size=64k --verify=pattern \
                --verify_pattern=0x1234";
    as_fio_in(here, &argv(line)).exits(0);
    let written = std::fs::read(here.join("new")).unwrap();
    assert_eq!(written.len(), 65536);
    assert!(written.chunks(2).all(|pair| pair == [0x12, 0x34]));
}

#[test]
fn job_that_ends_in_its_warm_up_is_reported_as_in_fio() {
    let here = place();
    for (options, ops, has_latencies) in [
        ("--ramp_time=5", 256, false),
        ("--ramp_time=5 --number_ios=40", 40, false),
        ("--number_ios=40", 40, true),
    ] {
        let line = format!("--name=t --rw=write --size=1m --output-format=json {options}");
        let ran = as_fio_in(here.path(), &argv(&line));
        ran.exits(0);
        let write = &first_job(&ran)["write"];
        assert_eq!(
            (&write["total_ios"], &write["io_bytes"]),
            (&ops.into(), &(ops * 4096).into())
        );
        let mean_ns = write["lat_ns"]["mean"].as_f64().unwrap();
        assert_eq!(mean_ns > 0.0, has_latencies, "{options}");
    }
}

#[test]
fn mix_of_one_direction_never_touches_the_other() {
    let here = place();
    for (mix, reads, writes) in [("100", 256, 0), ("0", 0, 256)] {
        let line = format!(
            "--name=t --rw=randrw --rwmixread={mix} --rate_iops=5000 --size=1m \
             --output-format=json"
        );
        let job = first_job(&as_fio_in(here.path(), &argv(&line)));
        let ios = |kind: &str| job[kind]["total_ios"].clone();
        assert_eq!(
            (ios("read"), ios("write")),
            (reads.into(), writes.into()),
            "{mix}"
        );
    }
    // Each direction has its rate, whatever the mix is.
    let line = "--name=t --rw=randrw --rwmixread=30 --rate_iops=5000,3000 --size=1m \
                --output-format=json";
    let job = first_job(&as_fio_in(here.path(), &argv(line)));
    assert_eq!(job["read"]["total_ios"], 160);
    assert_eq!(job["write"]["total_ios"], 96);
}

#[test]
fn new_files_stay_where_fio_leaves_them() {
    let here = place();
    let here = here.path();
    let sizes = || -> Vec<(String, u64)> {
        let names = names(here).into_iter();
        names
            .map(|name| {
                (
                    name.clone(),
                    std::fs::metadata(here.join(name)).unwrap().len(),
                )
            })
            .collect()
    };
    let pair = "--name=pair --filename=part1:part2 --rw=randwrite --bs=4k --size=8m --direct=1 \
                --ioengine=libaio --iodepth=2";
    for _ in 0..2 {
        as_fio_in(here, &argv(pair)).exits(0);
        let part = |name: &str| (name.to_owned(), 4 << 20);
        assert_eq!(sizes(), [part("part1"), part("part2")]);
    }
    let lay =
        "--name=lay --filename_format=file$jobnum --rw=write --bs=1m --filesize=2m --numjobs=2";
    as_fio_in(here, &argv(lay)).exits(0);
    let read = "--name=read --filename_format=file$jobnum --rw=randread --bs=8k --direct=1 \
                --numjobs=2 --group_reporting --output-format=json";
    let ran = as_fio_in(here, &argv(read));
    ran.exits(0);
    assert_eq!(first_job(&ran)["read"]["io_bytes"], 4 << 20);
    // A file of another program is not written without a word.
    std::fs::write(here.join("foreign"), [7; 1 << 20]).unwrap();
    let write = "--name=w --filename=foreign --rw=write --size=1m";
    as_fio_in(here, &argv(write)).exits(1);
    assert_eq!(std::fs::read(here.join("foreign")).unwrap(), [7; 1 << 20]);
}

#[test]
fn sections_on_several_directories_may_differ() {
    let here = place();
    for name in ["log", "data"] {
        std::fs::create_dir(here.path().join(name)).unwrap();
    }
    let job = "[log]\ndirectory=log\nrw=write\nbs=8k\nsize=256k\nfdatasync=1\n[data]\n\
               directory=data\nrw=randread\nbs=8k\nsize=1m\nioengine=libaio\niodepth=16\n";
    std::fs::write(here.path().join("job.fio"), job).unwrap();
    let ran = as_fio_in(here.path(), &["--output-format=json", "job.fio"]);
    ran.exits(0);
    let report = ran.json();
    let bytes = |job: usize, kind: &str| report["jobs"][job][kind]["io_bytes"].clone();
    assert_eq!(
        (bytes(0, "write"), bytes(0, "read")),
        (262_144.into(), 0.into())
    );
    assert_eq!(
        (bytes(1, "write"), bytes(1, "read")),
        (0.into(), (1 << 20).into())
    );
    assert_eq!(names(&here.path().join("log")), ["log.0.0"]);
    assert_eq!(names(&here.path().join("data")), ["data.0.0"]);
    // The native verb, which leaves nothing.
    let mut command = crate::program::program(["run", "job.fio", "--no-history"]);
    command.current_dir(here.path());
    Ran::of(command).exits(0).shows("log").shows("data");
}

#[test]
fn verified_blocks_are_read_back_after_each_lap() {
    for (laps, ops) in [("--loops=3", 48), ("--io_size=256k", 32)] {
        let line = format!(
            "--output-format=json --name=j --rw=write --size=64k {laps} --verify=md5 \
             --filename=a:b"
        );
        let words = argv(&line);
        let (here, other) = (place(), place());
        let ran = as_fio_in(here.path(), &words);
        ran.exits(0);
        let bytes = ops * 4096;
        assert_eq!(moved(&first_job(&ran)), [ops, bytes, ops, bytes], "{laps}");
        if let Ok(real) = Command::new("fio")
            .args(&words)
            .current_dir(other.path())
            .output()
        {
            let report: Value = serde_json::from_slice(&real.stdout).unwrap();
            assert_eq!(
                moved(&report["jobs"][0]),
                [ops, bytes, ops, bytes],
                "{laps}"
            );
        }
    }
}

#[test]
fn several_files_of_a_job_stay_and_are_used_again() {
    use std::os::unix::fs::MetadataExt;
    let here = place();
    let job = argv("--output-format=json --name=j --rw=write --size=1500k --filename=a:b");
    let sizes = || -> Vec<(String, u64)> {
        let mut found = Vec::new();
        for name in names(here.path()) {
            let metadata = here.path().join(&name).metadata().unwrap();
            // Nothing but less than a block at the end has no content.
            assert!(
                metadata.blocks() * 512 >= 187 * 4096,
                "{name}: {metadata:?}"
            );
            found.push((name, metadata.len()));
        }
        found
    };
    let left = [("a".to_owned(), 768_000), ("b".to_owned(), 768_000)];
    // The second run finds its own files.
    for _ in 0..2 {
        let ran = as_fio_in(here.path(), &job);
        ran.exits(0);
        // fio 3.33: each file has 187 whole blocks.
        assert_eq!(first_job(&ran)["write"]["total_ios"], 374);
        assert_eq!(sizes(), left);
    }
    // Fewer bytes of it leave the files as long as they are, and ours.
    let less = argv("--output-format=json --name=j --rw=write --size=512k --filename=a:b");
    for _ in 0..2 {
        let ran = as_fio_in(here.path(), &less);
        ran.exits(0);
        assert_eq!(first_job(&ran)["write"]["total_ios"], 128);
    }
    assert_eq!(sizes(), left);
    let read = argv("--output-format=json --name=j --rw=randread --nrfiles=2 --size=64k");
    as_fio_in(here.path(), &read).exits(0);
    let both = ["a", "b", "j.0.0", "j.0.1"];
    assert_eq!(names(here.path()), both);
    assert_eq!(
        std::fs::metadata(here.path().join("j.0.1")).unwrap().len(),
        32 << 10
    );
    // A file that another program has written is nobody's to overwrite.
    std::fs::write(here.path().join("b"), vec![7; 768_000]).unwrap();
    as_fio_in(here.path(), &job).exits(1);
    assert_eq!(
        std::fs::read(here.path().join("b")).unwrap(),
        vec![7; 768_000]
    );
    assert_eq!(names(here.path()), both);
}

/// The filesystem has room for the files of one job only.
#[test]
fn files_of_an_earlier_job_are_not_counted_twice_where_space_is_short() {
    needs!("losetup", "mkfs.ext4");
    let outside = place();
    let device = Loop::sparse(&outside.path().join("disk.img"), 128 << 20, &[]);
    let mut made = Command::new("mkfs.ext4");
    let made = made.args(["-qF", "-m", "0"]).arg(&device.node).status();
    assert!(made.unwrap().success());
    let point = outside.path().join("mounted");
    std::fs::create_dir(&point).unwrap();
    let _mount = Mount::new("ext4", device.node.to_str().unwrap(), &point, "rw");
    let job = argv("--name=j --rw=write --bs=1M --nrfiles=3 --size=72M");
    for _ in 0..2 {
        as_fio_in(&point, &job).exits(0);
    }
    // Other names are new files.
    let other = argv("--name=k --rw=write --bs=1M --nrfiles=3 --size=72M");
    let refused = as_fio_in(&point, &other);
    refused.exits(1);
    assert!(refused.err.contains("72 MiB are needed"), "{}", refused.err);
}

/// What a job has moved, read and written.
pub(crate) fn moved(job: &Value) -> [u64; 4] {
    let figure = |kind: &str, key: &str| job[kind][key].as_u64().unwrap();
    [
        figure("read", "total_ios"),
        figure("read", "io_bytes"),
        figure("write", "total_ios"),
        figure("write", "io_bytes"),
    ]
}

/// The files in a directory with their sizes, without fio's states of verification.
pub(crate) fn files_in(place: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for name in names(place) {
        if !name.ends_with("-verify.state") {
            let size = place.join(&name).metadata().unwrap().len();
            found.push((name, size));
        }
    }
    found
}

#[test]
fn several_files_have_the_bytes_of_the_real_fio() {
    const LINES: [(&str, [u64; 4]); 9] = [
        (
            "--rw=randread --nrfiles=3 --ioengine=libaio --iodepth=4 --direct=1",
            [192, 786_432, 0, 0],
        ),
        (
            "--rw=write --filename=a:b:c --ioengine=io_uring --iodepth=7 --fsync=16",
            [0, 0, 192, 786_432],
        ),
        (
            "--rw=randwrite --nrfiles=2 --ioengine=libaio --iodepth=3 --verify=crc32c",
            [192, 786_432, 192, 786_432],
        ),
        (
            "--rw=randread --nrfiles=2 --ioengine=mmap --offset=64k",
            [192, 786_432, 0, 0],
        ),
        (
            "--rw=randwrite --nrfiles=2 --ioengine=mmap",
            [0, 0, 192, 786_432],
        ),
        (
            "--rw=write --nrfiles=2 --verify=pattern --verify_pattern=0x55 --loops=2",
            [384, 1_572_864, 384, 1_572_864],
        ),
        (
            "--rw=randwrite --nrfiles=2 --filesize=512k --offset=64k",
            [0, 0, 192, 786_432],
        ),
        (
            "--rw=read --nrfiles=2 --offset=25% --io_size=200k",
            [50, 204_800, 0, 0],
        ),
        (
            "--rw=read --nrfiles=4 --file_service_type=random:2",
            [192, 786_432, 0, 0],
        ),
    ];
    for (options, wanted) in LINES {
        let here = place();
        let line = format!("--output-format=json --name=j --size=768k {options}");
        let words = argv(&line);
        let mut runs = 1;
        // The second run uses the files of the first, of which fio would take the percentage.
        if !options.contains('%') {
            runs = 2;
        }
        for _ in 0..runs {
            let ran = as_fio_in(here.path(), &words);
            ran.exits(0);
            assert_eq!(moved(&first_job(&ran)), wanted, "{options}");
        }
        let other = place();
        let Ok(real) = Command::new("fio")
            .args(&words)
            .current_dir(other.path())
            .output()
        else {
            continue;
        };
        let report: Value = serde_json::from_slice(&real.stdout).unwrap();
        assert_eq!(moved(&report["jobs"][0]), wanted, "{options}");
        assert_eq!(files_in(here.path()), files_in(other.path()), "{options}");
    }
}

#[test]
fn base_of_units_applies_to_the_options_behind_it() {
    for (line, bytes, ops) in [
        (
            "--kb_base=1000 --rw=write --size=1M --bs=4k",
            1_000_000,
            250,
        ),
        (
            "--rw=write --size=1M --bs=4k --kb_base=1000",
            1_048_576,
            256,
        ),
    ] {
        let mut words = vec!["--name=a", "--output-format=json"];
        words.extend(argv(line));
        let here = place();
        let ran = as_fio_in(here.path(), &words);
        ran.exits(0);
        // What fio 3.33 moves.
        assert_eq!(moved(&first_job(&ran)), [0, 0, ops, bytes], "{line}");
    }
}

/// The second job of each line has no `ramp_time`, and is busy beyond that of the first.
#[test]
fn warm_up_of_a_job_is_none_of_the_others() {
    let here = place();
    for (options, ops) in [("", 50), ("--ramp_time=100ms", 40)] {
        let line = format!(
            "--name=a --rw=write --size=1m --ramp_time=300ms --output-format=json --name=b \
             --rw=read --size=200k --rate_iops=100 {options}"
        );
        let ran = as_fio_in(here.path(), &argv(&line));
        ran.exits(0);
        let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(json["jobs"][0]["write"]["io_bytes"], 1 << 20);
        let count = json["jobs"][1]["read"]["total_ios"].as_i64().unwrap();
        assert!((count - ops).abs() <= 2, "{options}: {count}");
        let has_latencies = json["jobs"][1]["read"]["lat_ns"]["mean"].as_f64() > Some(0.0);
        assert!(has_latencies, "{options}");
    }
}

/// As with fio 3.33: a job that checks what it reads ends with the first bad block.
#[test]
fn bad_block_ends_a_job_unless_it_goes_on() {
    let here = place();
    let mut content = vec![0x55; 1 << 20];
    content[40_960] = 0;
    content[81_920] = 0;
    std::fs::write(here.path().join("file"), content).unwrap();
    for (options, ops, code) in [
        ("--rw=read", 11, 1),
        ("--rw=write --verify_only", 11, 1),
        ("--rw=read --continue_on_error=io", 11, 1),
        ("--rw=read --continue_on_error=verify", 256, 0),
    ] {
        let line = format!(
            "--name=a --filename=file --size=1m --verify=pattern --verify_pattern=0x55 \
             --output-format=json {options}"
        );
        let ran = as_fio_in(here.path(), &argv(&line));
        // diskproof reports no damaged block as a success.
        ran.exits(1);
        let job = first_job(&ran);
        assert_eq!(job["read"]["total_ios"], ops, "{options}");
        assert_eq!(job["error"], 84, "{options}");
        let goes_on = code == 0;
        assert_eq!(job["total_err"] == 2, goes_on, "{options}");
        if let Ok(real) = Command::new("fio")
            .args(argv(&line))
            .current_dir(here.path())
            .output()
        {
            assert_eq!(real.status.code(), Some(code), "{options}");
        }
    }
}

#[test]
fn failed_verify_names_the_file_and_the_place_in_it() {
    let here = place();
    let job = |options: &str| {
        let line = format!("--name=j --bs=4k --verify=pattern {options}");
        as_fio_in(here.path(), &argv(&line))
    };
    let files = "--verify_pattern=0x11 --size=128k --filename=a:b";
    job(&format!("--rw=write {files}")).exits(0);
    job("--rw=write --verify_pattern=0x22 --filename=b --offset=16k --size=8k").exits(0);
    let ran = job(&format!("--rw=read {files} --continue_on_error=verify"));
    ran.exits(1);
    for (place, count) in [
        ("a offset", 0),
        ("b offset 16384:", 1),
        ("b offset 20480:", 1),
    ] {
        let found = ran.err.matches(&format!("/{place}")).count();
        assert_eq!(found, count, "{place}: {}", ran.err);
    }
    assert!(ran.err.contains("2 of 32 blocks"), "{}", ran.err);
}

#[test]
fn heading_is_that_of_the_real_fio() {
    let Ok(_) = Command::new("fio").arg("--version").output() else {
        eprintln!("SKIPPED: heading_is_that_of_the_real_fio: fio is missing");
        return;
    };
    for line in [
        "--name=a --rw=read --kb_base=1000 --size=1M --bs=4k",
        "--name=a --rw=read --size=1M --bs=4k --kb_base=1000",
        "--kb_base=1000 --name=a --rw=readwrite --size=2M --bsrange=4k-16k --bs=1k",
        "--name=a --rw=randread:8 --size=1m --bssplit=4k/50:8k/50,64k",
        "--name=a --rw=write --size=1m --bs=,8k --numjobs=2",
    ] {
        let head = |text: &str| -> Vec<String> {
            let lines = text
                .lines()
                .take_while(|line| !line.starts_with("Starting"));
            lines.map(str::to_owned).collect()
        };
        let (here, other) = (place(), place());
        let words = argv(line);
        let ran = as_fio_in(here.path(), &words);
        ran.exits(0);
        let real = Command::new("fio")
            .args(&words)
            .current_dir(other.path())
            .output()
            .unwrap();
        let real = String::from_utf8(real.stdout).unwrap();
        assert_eq!(head(&ran.out), head(&real), "{line}");
    }
}

#[test]
fn files_of_an_earlier_run_give_a_job_its_size() {
    let (here, other) = (place(), place());
    let write = argv("--output-format=json --name=j --rw=write --nrfiles=2 --size=1m");
    as_fio_in(here.path(), &write).exits(0);
    let has_real = Command::new("fio")
        .args(&write)
        .current_dir(other.path())
        .output()
        .is_ok();
    for (options, kib) in [
        ("", 1024),
        ("--size=50%", 512),
        ("--offset=25%", 768),
        ("--size=50% --offset=75%", 256),
    ] {
        let line = format!("--output-format=json --name=j --rw=read --nrfiles=2 {options}");
        let words = argv(&line);
        let wanted = [kib / 4, kib * 1024, 0, 0];
        let ran = as_fio_in(here.path(), &words);
        ran.exits(0);
        assert_eq!(moved(&first_job(&ran)), wanted, "{options}");
        if has_real {
            let real = Command::new("fio")
                .args(&words)
                .current_dir(other.path())
                .output()
                .unwrap();
            let report: Value = serde_json::from_slice(&real.stdout).unwrap();
            assert_eq!(moved(&report["jobs"][0]), wanted, "{options}");
        }
    }
}

/// The probes of blktests (common/iopoll) and xfstests (`_require_fio`).
#[test]
fn probes_with_jobs_and_without_are_answered() {
    let here = place();
    let polled = argv("--parse-only --name=test --ioengine=pvsync2 --hipri=1");
    as_fio_in(here.path(), &polled).exits(0);
    let text = "[global]\nrw=write\niodepth=128*1\nruntime=40+30\n";
    std::fs::write(here.path().join("global"), text).unwrap();
    for probe in ["--parse-only", "--showcmd", "--warnings-fatal --showcmd"] {
        let line = format!("{probe} global");
        let ran = as_fio_in(here.path(), &argv(&line));
        ran.exits(0);
        if probe.contains("showcmd") {
            assert_eq!(
                ran.out,
                "fio --rw=write --iodepth='128*1' --runtime=40+30 \n"
            );
        }
    }
    as_fio_in(here.path(), &["global"]).exits(1);
}

/// What another program writes to a file while a run reads it, or after the run has written it, is
/// not diskproof's own: neither that run nor a later one overwrites it.
#[test]
fn file_changed_during_a_run_is_not_overwritten() {
    let precious = vec![7; 1 << 20];
    // The read is alone on its file, and goes on until it is interrupted.
    let reads = "rw=randread\nsize=1m\ntime_based\nruntime=60\n";
    for (section_of_file, section_of_other) in [
        (
            format!("[r]\nfilename=F\n{reads}"),
            "[w]\nfilename=W\nrw=write\nsize=1m\n".to_owned(),
        ),
        (
            "[w]\nfilename=F\nrw=write\nsize=1m\n".to_owned(),
            format!("[r]\nstonewall\nfilename=W\n{reads}"),
        ),
    ] {
        let here = place();
        let here = here.path();
        as_fio_in(here, &argv("--name=own --filename=F --rw=write --size=1m")).exits(0);
        std::fs::write(here.join("job.fio"), section_of_file + &section_of_other).unwrap();
        let run = PipedRun::of(program(["as", "fio", "job.fio"]).current_dir(here));
        // The other file is whole once the write to this one is over, or was none.
        let is_whole = || {
            std::fs::read(here.join("W")).is_ok_and(|data| {
                data.len() == 1 << 20 && data[data.len() - 4096..].iter().any(|byte| *byte != 0)
            })
        };
        assert!(eventually(is_whole));
        overwrite(&here.join("F"), &precious);
        run.interrupt().exits(128);
        let again = as_fio_in(
            here,
            &argv("--name=again --filename=F --rw=write --size=1m"),
        );
        again.exits(1).tells("F");
        assert_eq!(std::fs::read(here.join("F")).unwrap(), precious);
        // The other file is still diskproof's own.
        as_fio_in(
            here,
            &argv("--name=again --filename=W --rw=write --size=1m"),
        )
        .exits(0);
    }
}

/// Writes to a file without changing its length.
fn overwrite(path: &Path, data: &[u8]) {
    let mut file = std::fs::File::options().write(true).open(path).unwrap();
    std::io::Write::write_all(&mut file, data).unwrap();
}

#[test]
fn file_changed_before_its_section_is_not_overwritten() {
    let precious = vec![7; 1 << 20];
    with_enough_time(&["3", "30"], |seconds| {
        let here = place();
        let here = here.path();
        as_fio_in(here, &argv("--name=own --filename=F --rw=write --size=1m")).exits(0);
        let job = format!(
            "[r]\nfilename=W\nrw=randread\nsize=1m\ntime_based\nruntime={seconds}\n\
             [w]\nstonewall\nfilename=F\nrw=write\nsize=1m\n"
        );
        std::fs::write(here.join("job.fio"), job).unwrap();
        let mut command = program(["as", "fio", "job.fio"]);
        let run = PipedRun::of(command.current_dir(here));
        run.wait_for_run();
        overwrite(&here.join("F"), &precious);
        let ran = run.wait();
        if ran.code == Some(0) {
            return Err("the file was changed too late".to_owned());
        }
        ran.exits(1).tells("another program changed");
        assert_eq!(std::fs::read(here.join("F")).unwrap(), precious);
        Ok(())
    });
}
