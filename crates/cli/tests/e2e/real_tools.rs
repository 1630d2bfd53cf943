//! Drop-ins beside the real tools: what scripts ask them before a run, what they print, and which
//! system calls their flags make.

use crate::program::{HISTORY, Ran, argv, names, needs, program_path, random_file, run};
use diskproof_simdisk::testbed::{Loop, place};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A command line in this directory, whose output is read.
pub(crate) fn ran<S: AsRef<OsStr>>(
    program: &str,
    words: impl IntoIterator<Item = S>,
    here: &Path,
) -> Ran {
    Command::new(program)
        .args(words)
        .current_dir(here)
        .env("DISKPROOF_HISTORY", HISTORY)
        .stdin(Stdio::null())
        .output()
        .unwrap()
        .into()
}

/// The same command line by diskproof, and by the real tool.
pub(crate) fn both(line: &str, here: &Path) -> (Ran, Ran) {
    let words = argv(line);
    let ours = ran(&program_path(), ["as"].iter().chain(&words), here);
    (ours, ran(words[0], &words[1..], here))
}

/// A command line of fio by each, in a directory of its own with this job file.
fn both_apart(line: &str) -> (Ran, Ran) {
    let words = argv(line);
    let [ours, real] = [place(), place()];
    for here in [&ours, &real] {
        std::fs::write(here.path().join("jobs.fio"), JOBS).unwrap();
    }
    let all = ["as"].iter().chain(&words);
    (
        ran(&program_path(), all, ours.path()),
        ran(words[0], &words[1..], real.path()),
    )
}

/// A group of two jobs, and another job.
const JOBS: &str = "[global]\nsize=64k\ngroup_reporting\npercentile_list=50\n[one]\nrw=randread\n\
                    description=first\n[two]\nname=other\nrw=write\nblockalign=8k\n[three]\n\
                    rw=read\nstonewall\nbs=8k\npercentile_list=99\n";

/// Whether the real tool is of the version that is emulated.
fn is_fio_3_33() -> bool {
    let version = Command::new("fio").arg("--version").output();
    version.is_ok_and(|out| out.stdout.starts_with(b"fio-3.33"))
}

/// Links to the program in a new directory, two levels deep.
fn links(here: &Path) -> PathBuf {
    let bin = here.join("new/bin");
    run(["as", "--link", text(&bin)]).exits(0);
    bin
}

#[test]
fn links_are_made_in_a_new_directory_and_replace_nothing() {
    let here = place();
    let bin = links(here.path());
    assert!(names(&bin).contains(&"fio".to_owned()));
    let again = run(["as", "--link", text(&bin)]);
    again.exits(4).tells("remove the existing file");
    let file = here.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let inside = run(["as", "--link", text(&file.join("bin"))]);
    assert_ne!(inside.code, Some(0));
    inside.tells_not("remove the existing file");
}

/// How blktests (common/fio), xfstests (common/rc) and scripts find out whether fio is new enough.
#[test]
fn probes_of_test_suites_find_fio() {
    let here = place();
    let bin = links(here.path());
    let path = format!("{}:{}", text(&bin), std::env::var("PATH").unwrap());
    for probe in [
        "fio --parse-only --terse-version=4 >/dev/null 2>&1",
        "fio --cmdhelp=zonemode 2>&1 | grep -q zbd",
        "fio --cmdhelp=zonemode 2>&1 | grep -q strided",
        "test \"$(fio --version | cut -c 5- | sed 's/-.*//')\" = 3.33",
        "fio -v | cut -d- -f2 | grep -qx '[0-9.]*'",
        "grep -wq libaio <(fio --enghelp 2>/dev/null)",
        "grep -qw io_uring <<<\"$(fio --enghelp 2>/dev/null || true)\"",
        "fio --cmdhelp=all | grep -q '^rw  *: '",
        "fio --cmdhelp | grep -q '^iodepth  *: '",
        "fio --enghelp=io_uring | grep -q '^hipri'",
        "fio --enghelp=io_uring,hipri | grep -q 'type: empty or boolean'",
        "! fio --enghelp=nosuch 2>/dev/null",
        "! fio --terse-version=9 --parse-only 2>/dev/null",
        "printf '[a]\\nrw=randread\\nsize=1m\\n' >j; fio --warnings-fatal --showcmd j >/dev/null",
        "printf '[a]\\nioengine=e4defrag\\nrw=write\\nsize=1m\\natomic=1\\n' >e; \
         fio --warnings-fatal --showcmd e | grep -q 'ioengine=e4defrag .*atomic=1'",
        "! grep -wq e4defrag <(fio --enghelp)",
        "! fio e 2>/dev/null",
        "ioping -v | grep -qx 'ioping 1.3'",
        "test \"$(hdparm -V)\" = 'hdparm v9.65'",
        "sysbench --version | grep -qx 'sysbench 1.0.20'",
    ] {
        let answered = Command::new("bash")
            .args(["-c", probe])
            .current_dir(here.path())
            .env("PATH", &path)
            .env("DISKPROOF_HISTORY", HISTORY)
            .status()
            .unwrap();
        assert!(answered.success(), "{probe}");
    }
}

/// The paths of all keys; bins and percentiles depend on the figures.
fn add_keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(pairs) => {
            for (key, value) in pairs {
                let is_figure = path.ends_with(".bins") || path.ends_with(".percentile");
                let path = format!("{path}.{}", if is_figure { "#" } else { key });
                found.insert(path.clone());
                add_keys(value, &path, found);
            }
        }
        Value::Array(values) => {
            for value in values {
                add_keys(value, &format!("{path}[]"), found);
            }
        }
        _ => {}
    }
}

/// Every key, the options of each job, and the devices of the file.
#[test]
fn json_of_fio_has_the_keys_options_and_disks_of_the_real_one() {
    if !is_fio_3_33() {
        println!("SKIPPED: json_of_fio_has_the_keys_options_and_disks: fio 3.33");
        return;
    }
    for line in [
        "--name=a --rw=readwrite --end_fsync=1 --blockalign=8k --description=text",
        "--name=a --rw=write --fsync=4 --continue_on_error=all",
        "--name=a --rw=randrw --unified_rw_reporting=both",
        "--name=a --rw=randrw --unified_rw_reporting=mixed --description=text",
        "--rw=read --name=a --bs=8k --name=b --numjobs=2 --stonewall",
        "--group_reporting --name=a --rw=read --iodepth=1 --name=b --rw=randwrite \
         --percentile_list=90",
        "--name=a --rw=read --disk_util=0",
        "--name=a --rw=write --fdatasync=1",
        "--name=a --rw=read --gtod_reduce=1",
        "--name=a --rw=read --lat_percentiles=1 --disable_clat=1",
        "--name=a --rw=randread --numjobs=3 --group_reporting --ioengine=libaio --iodepth=4",
        "--name=a --rw=randwrite --verify=crc32c",
        // The copies behind the first one count down from the last.
        "--name=a --rw=read --filesize=64k --filename=x --numjobs=4 --offset_increment=16k",
        "--name=a --rw=randrw --rate_iops=2000 --bssplit=4k/50:8k/50",
        "--name=a --rw=rw --rate=40m,20m --number_ios=8 --thinktime=100us",
        "jobs.fio",
    ] {
        for format in ["json", "json+"] {
            let all = format!("fio --output-format={format} --size=64k {line}");
            let (ours, real) = both_apart(&all);
            let documents = [&ours, &real].map(|one| {
                one.exits(0);
                serde_json::from_str::<Value>(&one.out).unwrap()
            });
            let sets = documents.each_ref().map(|document| {
                let mut found = BTreeSet::new();
                add_keys(document, "", &mut found);
                found
            });
            assert_eq!(sets[0], sets[1], "{all}");
            let [ours, real] = &documents;
            assert_eq!(ours["global options"], real["global options"], "{all}");
            assert_eq!(disk_names(ours), disk_names(real), "{all}");
            let jobs = ours["jobs"].as_array().unwrap().iter();
            for (ours, real) in jobs.zip(real["jobs"].as_array().unwrap()) {
                assert_same_job(ours, real, line);
            }
        }
    }
}

fn disk_names(document: &Value) -> Vec<Value> {
    let disks = document["disk_util"].as_array().cloned();
    let disks = disks.unwrap_or_default().into_iter();
    disks.map(|disk| disk["name"].clone()).collect()
}

fn assert_same_job(ours: &Value, real: &Value, line: &str) {
    for key in [
        "jobname",
        "groupid",
        "error",
        "job options",
        "desc",
        "total_err",
        "first_error",
        "latency_depth",
    ] {
        assert_eq!(ours[key], real[key], "{line}: {key}");
    }
    // A mix of reads and writes is drawn at random.
    if !line.contains("readwrite") && !line.contains("randrw") {
        for direction in ["read", "write", "sync"] {
            let key = "total_ios";
            assert_eq!(
                ours[direction][key], real[direction][key],
                "{line}: {direction}"
            );
        }
    }
}

/// The lines before the first figure, and the number of fields of each version.
#[test]
fn text_of_fio_has_the_heading_and_fields_of_the_real_one() {
    if !is_fio_3_33() {
        println!("SKIPPED: text_of_fio_has_the_heading_and_fields_of_the_real_one: fio 3.33");
        return;
    }
    for options in [
        "--rw=readwrite",
        "--rw=randread:8 --bsrange=4k-16k --numjobs=2",
        "--rw=randrw --bssplit=4k/50:8k/50 --continue_on_error=io",
        "--rw=randwrite --bs=4k,8k --description=text",
    ] {
        let line = format!("fio --size=256k --name=a {options}");
        let (ours, real) = both_apart(&line);
        let [mine, theirs] = [&ours, &real].map(|one| one.exits(0).out.lines().next());
        assert_eq!(mine, theirs, "{line}");
    }
    for version in 2..=5 {
        for unified in ["none", "mixed", "both"] {
            let line = format!(
                "fio --size=256k --name=a --rw=randrw --continue_on_error=io --description=text \
                 --minimal --terse-version={version} --unified_rw_reporting={unified}"
            );
            let (ours, real) = both_apart(&line);
            let [mine, theirs] = [&ours, &real].map(|one| {
                let lines = one.exits(0).out.lines();
                lines
                    .map(|line| line.split(';').count())
                    .collect::<Vec<_>>()
            });
            assert_eq!(mine, theirs, "{line}");
        }
    }
}

/// An exporter reads terse lines by position while the job runs, a dashboard each JSON document.
#[test]
fn status_lines_of_fio_have_the_device_of_the_file() {
    needs!("losetup");
    let here = place();
    let file = here.path().join("image");
    random_file(&file, 4 << 20);
    let device = Loop::over(&file, &[]);
    let name = device.node.file_name().and_then(OsStr::to_str).unwrap();
    let job = format!(
        "as fio --name=a --filename={} --rw=randread --bs=4k --direct=1 --runtime=2 --time_based \
         --status-interval=200ms",
        device.node.display()
    );
    let job = argv(&job);
    let terse = run(job
        .iter()
        .chain(&["--output-format=terse", "--terse-version=5"]));
    let fields: Vec<usize> = terse
        .exits(0)
        .out
        .lines()
        .map(|line| line.split(';').count())
        .collect();
    assert!(
        fields.len() > 1 && fields.iter().all(|count| *count == 189),
        "{fields:?}"
    );
    let json = run(job.iter().chain(&["--output-format=json"]));
    let documents = serde_json::Deserializer::from_str(&json.exits(0).out).into_iter();
    let documents: Vec<Value> = documents.map(Result::unwrap).collect();
    assert!(documents.len() > 1);
    let mut before = 0;
    for document in &documents {
        let disks = document["disk_util"].as_array().unwrap();
        assert_eq!((disks.len(), disks[0]["name"].as_str()), (1, Some(name)));
        let reads = disks[0]["read_ios"].as_u64().unwrap();
        assert!(reads >= before, "{document}");
        before = reads;
    }
    assert!(before > 0);
}

/// How often each of these system calls was made, by a command line below strace.
fn calls(program: &str, words: &[&str], here: &Path) -> usize {
    let trace = here.join("trace");
    let mut strace = Command::new("strace");
    strace.args([
        "-f",
        "-qq",
        "-e",
        "trace=fsync,fdatasync",
        "-o",
        text(&trace),
    ]);
    let mut command = strace.arg(program).args(words).current_dir(here);
    command = command
        .env("DISKPROOF_HISTORY", HISTORY)
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    let lines = std::fs::read_to_string(&trace).unwrap();
    std::fs::remove_file(&trace).unwrap();
    lines.matches("sync(").count()
}

/// -b syncs seeks that write, not each write of a block: 1,024 of them here.
#[test]
fn bonnie_syncs_as_often_as_the_real_one() {
    needs!("strace", "bonnie++");
    let here = place();
    let line = "-u root -f -n 0 -s 8:8192:64:2 -r 1 -q -d .";
    for flags in [&[][..], &["-b"]] {
        let words = [&argv(line)[..], flags].concat();
        let ours = [&["as", "--no-history", "bonnie++"][..], &words].concat();
        let ours = calls(&program_path(), &ours, here.path());
        let real = calls("bonnie++", &words, here.path());
        // At the end of each test, and of a tenth of 64 seeks.
        let most = if flags.is_empty() { 12 } else { 12 + 32 };
        assert!((3..=most).contains(&ours), "{flags:?}: {ours}");
        assert!((3..=most).contains(&real), "{flags:?}: {real}");
    }
}

/// The first column, which is where the blocks begin.
fn offsets(lines: &str) -> Vec<String> {
    lines
        .lines()
        .filter(|line| !line.starts_with("# ") && !line.starts_with("#block"))
        .filter(|line| !line.starts_with("#loops"))
        .filter_map(|line| line.trim_start_matches('#').split(' ').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn zcav_skips_to_the_blocks_of_the_real_one() {
    needs!("zcav");
    let here = place();
    random_file(&here.path().join("image"), 48 << 20);
    for options in [
        "-b 4 -s 2",
        "-b 4 -s 3",
        "-b 5 -s 3",
        "-b 4 -s 20",
        "-b 40 -s 2",
        "-b 4 -s 2 -r 16",
        "-b 4 -r 8:20",
        "-b 4 -c 2 -s 2",
    ] {
        let (ours, real) = both(&format!("zcav {options} image"), here.path());
        let [mine, theirs] = [&ours, &real].map(|one| offsets(&one.exits(0).out));
        assert_eq!(mine, theirs, "{options}");
    }
    // The heading comes before the error of a single pass.
    for options in ["-b 100", "-b 100 -c 2"] {
        let (ours, real) = both(&format!("zcav {options} image"), here.path());
        assert_eq!((ours.code, &ours.out), (real.code, &real.out), "{options}");
        assert_eq!(ours.code, Some(2));
    }
}

/// Blocks that are larger than their file, and old names of options.
#[test]
fn sysbench_runs_lines_that_the_real_one_runs() {
    needs!("sysbench");
    let here = place();
    let lines_of = |ran: &Ran, wanted: &[&str]| -> Vec<String> {
        let is_wanted = |line: &&str| wanted.iter().any(|part| line.contains(part));
        ran.out
            .lines()
            .filter(is_wanted)
            .map(str::to_owned)
            .collect()
    };
    for options in [
        "--file-num=1 --file-total-size=4096 --file-block-size=16384 --file-fsync-all=on",
        "--file-num=4 --file-total-size=16384 --file-block-size=16384",
        "--file-num=2 --file-total-size=64K --num-threads=2 --max-requests=9 --max-time=7",
        "--file-num=1 --file-total-size=64K --num-threads=1 --tx-rate=90000 --threads=2",
    ] {
        let prepared = format!("fileio {options} prepare");
        ran("sysbench", argv(&prepared), here.path()).exits(0);
        let line =
            format!("sysbench fileio {options} --file-test-mode=rndwr --time=1 --events=20 run");
        let (ours, real) = both(&line, here.path());
        let shown = [
            "WARNING",
            "files,",
            "total file size",
            "Block size",
            "Number of",
            "Target transaction",
            "total number of events",
        ];
        for one in [&ours, &real] {
            one.exits(0);
        }
        assert_eq!(lines_of(&ours, &shown), lines_of(&real, &shown), "{line}");
        // A request ends with its file.
        if options.contains("4096") {
            assert_eq!(lines_of(&ours, &["4KiB each"]).len(), 1);
        }
    }
    let line = "sysbench fileio --file-num=1 --file-total-size=64K --file-test-mode=rndrd --time=2 \
                --report-interval=1 run";
    let ours = ran(
        &program_path(),
        ["as"].iter().chain(&argv(line)),
        here.path(),
    );
    assert_eq!(lines_of(&ours, &["s ] reads:"]).len(), 1, "{}", ours.out);
}

/// Exit codes, and what is on stdout before an error.
#[test]
fn errors_of_tools_end_as_those_of_the_real_ones() {
    needs!("hdparm", "ioping");
    let here = place();
    std::fs::write(here.path().join("small"), [1; 1000]).unwrap();
    for line in [
        "hdparm",
        "hdparm -t",
        "hdparm -t nosuch",
        "hdparm -t small",
        "hdparm -T small",
        "hdparm -tT small",
        "hdparm -qt small",
        "hdparm -t --direct small",
        "hdparm -t .",
        "hdparm -t --offset 5 small",
    ] {
        let (ours, real) = both(line, here.path());
        assert_eq!(ours.code, real.code, "{line}: {}{}", ours.err, real.err);
        if line.contains("small") {
            assert_eq!(ours.out.trim_end(), real.out.trim_end(), "{line}");
        }
    }
    let pg_test_fsync = "/usr/lib/postgresql/15/bin/pg_test_fsync";
    if Path::new(pg_test_fsync).exists() {
        let words = ["-s", "1", "-f", "/nosuch/file"];
        let real = ran(pg_test_fsync, words, here.path());
        let own = ["as", "pg_test_fsync"];
        let ours = ran(&program_path(), own.iter().chain(&words), here.path());
        assert_eq!((ours.code, &ours.out), (real.code, &real.out));
        assert_eq!(ours.out.lines().count(), 2);
    }
}

#[test]
fn dd_of_no_block_makes_the_file_of_the_real_one() {
    let here = place();
    for (index, operands) in [
        "count=0",
        "bs=1M count=0 seek=3",
        "count=0 status=noxfer conv=fsync",
        "count=0B bs=4k oflag=direct",
    ]
    .into_iter()
    .enumerate()
    {
        let bin = ["ours", "real"].map(|who| format!("{who}{index}"));
        let [ours, real] = &bin;
        let words = format!("as dd if=/dev/zero of={ours} {operands}");
        let mine = ran(&program_path(), argv(&words), here.path());
        let words = format!("if=/dev/zero of={real} {operands}");
        let theirs = ran("dd", argv(&words), here.path());
        assert_eq!((mine.code, theirs.code), (Some(0), Some(0)), "{operands}");
        for one in [&mine, &theirs] {
            one.tells("0+0 records in\n0+0 records out\n");
        }
        assert_eq!(mine.err.contains("copied"), theirs.err.contains("copied"));
        let length = |name: &str| std::fs::metadata(here.path().join(name)).unwrap().len();
        assert_eq!(length(ours), length(real), "{operands}");
    }
    // dd would empty a file that is there.
    random_file(&here.path().join("kept"), 4096);
    let kept = ran(
        &program_path(),
        argv("as dd if=/dev/zero of=kept count=0"),
        here.path(),
    );
    kept.exits(1);
    assert_eq!(
        std::fs::metadata(here.path().join("kept")).unwrap().len(),
        4096
    );
    let read = ran(
        &program_path(),
        argv("as dd if=kept of=/dev/null count=0"),
        here.path(),
    );
    read.exits(0).tells_first("0+0 records in\n");
}

/// The order of accesses that a command tells the kernel to expect, under strace.
fn advised_orders(program: &str, words: &[&str], here: &Path) -> BTreeSet<String> {
    let mut all = vec!["-f", "-qq", "-o", "trace", "-e", "trace=fadvise64", program];
    all.extend(words);
    ran("strace", all, here).exits(0);
    let trace = std::fs::read_to_string(here.join("trace")).unwrap();
    let mut orders = BTreeSet::new();
    for order in ["NORMAL", "RANDOM", "SEQUENTIAL"] {
        // The kernel expects no order by default.
        if trace.contains(&format!("POSIX_FADV_{order}")) && order != "NORMAL" {
            orders.insert(order.to_owned());
        }
    }
    orders
}

/// Read-ahead doubles in a file whose reads are said to be sequential, and is off in one of random
/// reads.
#[test]
fn kernel_expects_the_order_that_the_real_tool_tells_it() {
    needs!("strace", "ioping");
    let here = place();
    crate::program::random_file(&here.path().join("data"), 2 << 20);
    for line in [
        "ioping -c 3 -i 0 -L data",
        "ioping -c 3 -i 0 data",
        "ioping -C -c 3 -i 0 -L data",
        "dd if=data of=/dev/null bs=64k count=4",
    ] {
        let words = argv(line);
        let real = advised_orders(words[0], &words[1..], here.path());
        let own_words = [&["as", "--quiet"], &words[..]].concat();
        let own = advised_orders(&program_path(), &own_words, here.path());
        assert_eq!(own, real, "{line}");
    }
}

/// The last requests before the end have no other sync.
#[test]
fn sysbench_syncs_what_it_wrote_last() {
    let here = place();
    let run = "fileio --file-total-size=2M --file-num=1 --time=0 --events=100 run";
    for (options, is_synced) in [
        ("--file-test-mode=rndwr", true),
        ("--file-test-mode=rndwr --file-fsync-freq=1000", true),
        ("--file-test-mode=rndwr --file-fsync-end=off", false),
        ("--file-test-mode=rndrd", false),
    ] {
        let line = format!("as --quiet sysbench {options} {run}");
        let own = ran(&program_path(), argv(&line), here.path());
        own.exits(0);
        let syncs = own
            .out
            .lines()
            .find(|line| line.contains("fsyncs/s"))
            .unwrap();
        let per_second: f64 = syncs.split_whitespace().last().unwrap().parse().unwrap();
        assert_eq!(per_second > 0.0, is_synced, "{options}: {syncs}");
    }
}
