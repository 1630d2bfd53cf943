//! The lines as text, and as fio itself reads and runs them.

use super::fio::rw_value;
use super::fio_job::whole_percents;
use super::words::OVERWRITE_WARNING;
use super::*;
use crate::fixture::{self, states};
use diskproof_model::group::Group;
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::{
    Access, BlockShare, CachePolicy, Distribution, EngineKind, Ping, SyncCall, SyncPolicy, Task,
    Workload, WriteFlag, Zone,
};
use diskproof_model::record::Record;
use diskproof_model::shape::{FloorUnit, FlowShare, LoadShape, RateFloor, ZoneStride};
use diskproof_model::stream::Streams;
use std::process::Command;

fn case(name: &str) -> (Measurement, TargetIdentity, Workload) {
    let mut record = fixture::record();
    let ran = fixture::measured(&mut record, name).data.clone();
    let mut asked = record.plan.workloads().iter();
    let asked = asked
        .find(|workload| workload.name == name)
        .unwrap()
        .clone();
    (ran, record.targets.swap_remove(0), asked)
}

fn line(
    name: &str,
    change: impl Fn(&mut Measurement, &mut TargetIdentity, &mut Workload),
) -> String {
    let (mut workload, mut target, mut asked) = case(name);
    change(&mut workload, &mut target, &mut asked);
    alone(&workload, &target, &asked)
}

fn alone(ran: &Measurement, target: &TargetIdentity, asked: &Workload) -> String {
    let member = RanWorkload { ran, asked };
    fio_command(&[member], target, Group::alone(asked))
}

#[test]
fn huge_pages_that_raised_the_figure_are_in_the_line() {
    let (mut ran, target, asked) = case("random-read-d32");
    (ran.workload.block_bytes, ran.workload.workers) = (256 << 10, 2);
    let with = |features: &[&str]| {
        let mut ran = ran.clone();
        ran.engine.features = features.iter().map(|f| (*f).to_owned()).collect();
        alone(&ran, &target, &asked)
    };
    let line = with(&["fixed-files", "huge-pages"]);
    let (command, comment) = line.split_once('#').unwrap();
    assert!(!command.contains("mmaphuge"), "{line}");
    states(comment, &["sysctl vm.nr_hugepages=10", "--mem=mmaphuge"]);
    assert!(!with(&["fixed-files"]).contains("huge"));
}

fn fio_is_missing(test: &str) -> bool {
    let missing = Command::new("fio").arg("--version").output().is_err();
    if missing {
        eprintln!("SKIPPED: {test}: fio is not installed");
    }
    missing
}

/// Runs a line as a user would paste it.
fn paste(line: &str) {
    let output = Command::new("sh")
        .arg("-c")
        .arg(line)
        .output()
        .expect("sh runs");
    assert!(
        output.status.success(),
        "{line}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_lines_of_check_read_as_a_person_would_write_them() {
    assert_eq!(
        line("random-read-d32", |_, _, _| {}),
        "fio --name=random-read-d32 --directory=/data --unlink=1 --rw=randread --bs=8192 \
         --ioengine=io_uring --iodepth=32 --numjobs=1 --direct=1 --size=4294967296 \
         --norandommap --randrepeat=0 --runtime=8s --time_based --ramp_time=500ms \
         --group_reporting"
    );
    assert_eq!(
        line("commit-fdatasync", |_, _, asked| asked.warmup_ns = 0),
        "fio --name=commit-fdatasync --directory=/data --overwrite=1 --unlink=1 --rw=write \
         --bs=8192 --ioengine=psync --iodepth=1 --numjobs=1 --direct=1 --size=4294967296 \
         --fdatasync=1 --runtime=8s --time_based --group_reporting"
    );
}

#[test]
fn devices_are_read_only_unless_the_workload_wrote() {
    let device = |_: &mut Measurement, target: &mut TargetIdentity, _: &mut Workload| {
        (target.kind, target.path) = (
            TargetKind::BlockDevice,
            "/dev/disk/by-path/pci-0000:00:1f.2".to_owned(),
        );
    };
    let read = line("random-read-d1", device);
    let name = r"'--filename=/dev/disk/by-path/pci-0000\:00\:1f.2' --rw";
    states(&read, &["fio --readonly ", name]);
    let write = line("random-write-d32", device);
    assert!(
        !write.contains("--readonly") && write.ends_with(OVERWRITE_WARNING),
        "{write}"
    );
}

#[test]
fn patterns_speak_the_modifiers_of_fio() {
    let stride = |mib: u64| Access::Stride {
        stride_bytes: mib << 20,
    };
    let random = |distribution| Access::Random { distribution };
    let hot = Distribution::HotCold {
        access_percent: 90.0,
        size_percent: 10.0,
    };
    let third = Zone {
        access_percent: 100.0 / 3.0,
        size_percent: 100.0 / 3.0,
    };
    for (access, option) in [
        (Access::Backward, "--rw=read:-2097152 "),
        (stride(4), "--rw=read:3145728 "),
        (stride(1), "--rw=read "),
        (random(hot), "--random_distribution=zoned:90/10:10/90 "),
        (
            random(Distribution::Zipf { theta: 1.1 }),
            "--random_distribution=zipf:1.1 ",
        ),
        (
            Access::Zoned {
                zones: vec![third; 3],
            },
            "zoned:33/33:34/34:33/33 ",
        ),
    ] {
        states(
            &line("sequential-read", |w, _, _| {
                w.workload.access = access.clone()
            }),
            &[option],
        );
    }
    assert_eq!(whole_percents(&[0.2, 59.8, 40.0]), [1, 59, 40]);
}

#[test]
fn buffered_writes_are_written_back_as_they_go() {
    let every = SyncPolicy::Every {
        writes: 1,
        call: SyncCall::Fsync,
    };
    for (sync, expected) in [
        (SyncPolicy::None, true),
        (SyncPolicy::AtEnd, true),
        (every, false),
    ] {
        let text = line("random-write-d32", |w, _, _| {
            (w.cache.used, w.workload.sync) = (CachePolicy::Buffered, sync);
        });
        let back = " --sync_file_range=wait_before,write,wait_after:1 ";
        assert_eq!(text.contains(back), expected, "{text}");
    }
}

#[test]
fn laps_and_the_page_cache_are_those_of_fio() {
    let text = line("random-read-d32", |w, _, asked| {
        (w.cache.used, asked.drops_cache_first) = (CachePolicy::Cached, true);
        w.workload.shape.order.each_block_once = true;
    });
    states(&text, &[" --direct=0 --invalidate=1 "]);
    assert!(!text.contains("--norandommap"), "{text}");
    let text = line("random-read-d32", |w, _, _| {
        w.cache.used = CachePolicy::Cached
    });
    states(&text, &[" --direct=0 --invalidate=0 "]);
}

#[test]
fn limits_and_rates_are_shared_among_jobs() {
    let text = line("mixed-random", |w, _, asked| {
        (w.workload.workers, w.workload.rate) = (4, Some(1000.0));
        asked.stop.bytes = Some(8 << 20);
    });
    let limits = " --rate_iops=125,125 --rate_process=linear --io_size=2097152 --runtime=8s \
                  --ramp_time=500ms ";
    states(
        &text,
        &[
            limits,
            "--filename=diskproof-fio.tmp",
            "--numjobs=4 --thread",
        ],
    );
}

fn every_access() -> [Access; 7] {
    [
        Access::Sequential,
        Access::Backward,
        Access::Stride {
            stride_bytes: 1 << 16,
        },
        Access::Random {
            distribution: Distribution::Uniform,
        },
        Access::Random {
            distribution: Distribution::Zipf { theta: 1.1 },
        },
        Access::Random {
            distribution: Distribution::HotCold {
                access_percent: 90.0,
                size_percent: 10.5,
            },
        },
        Access::Zoned {
            zones: vec![
                Zone {
                    access_percent: 33.3,
                    size_percent: 20.0,
                },
                Zone {
                    access_percent: 66.7,
                    size_percent: 80.0,
                },
            ],
        },
    ]
}

#[test]
fn fio_understands_every_line() {
    if fio_is_missing("fio_understands_every_line") {
        return;
    }
    let accesses = every_access();
    let syncs = [
        SyncPolicy::None,
        SyncPolicy::AtEnd,
        SyncPolicy::Every {
            writes: 1,
            call: SyncCall::Fdatasync,
        },
        SyncPolicy::Every {
            writes: 4,
            call: SyncCall::Fsync,
        },
    ];
    let engines = [
        EngineKind::Uring,
        EngineKind::Aio,
        EngineKind::Sync,
        EngineKind::Mmap,
        EngineKind::Null,
    ];
    let caches = [
        CachePolicy::Direct,
        CachePolicy::Buffered,
        CachePolicy::Cached,
    ];
    let kinds = [TargetKind::Directory, TargetKind::File];
    for i in 0..20 {
        let text = line("mixed-random", |w, target, asked| {
            w.workload.streams = Streams::with_reads([1000, 0, 500, 333][i % 4]);
            w.workload.access = accesses[i % 7].clone();
            w.workload.sync = if w.workload.streams.is_only(OpKind::Read) {
                SyncPolicy::None
            } else {
                syncs[i / 2 % 4]
            };
            w.engine.used = engines[i % 5];
            w.cache.used = if w.engine.used == EngineKind::Mmap {
                CachePolicy::Buffered
            } else {
                caches[i % 3]
            };
            w.workload.rate = [None, Some(0.5), Some(1e5)][i / 3 % 3];
            w.workload.workers = [1, 4][i / 5 % 2];
            w.span_start_bytes = [0, 1 << 20][i / 7 % 2];
            let share = |block_bytes, weight| BlockShare {
                block_bytes,
                weight,
            };
            w.workload.block_mix = if i % 11 == 0 {
                vec![share(4096, 1), share(8192, 2)]
            } else {
                Vec::new()
            };
            target.kind = kinds[i / 4 % 2];
            target.path = ["/tmp", "/tmp/it's: a $HOME\\file"][i / 4 % 2].to_owned();
            asked.stop.bytes = (i % 3 == 0).then_some(1 << 20);
            asked.stop.ops = (i % 3 == 1).then_some(1000);
        });
        paste(&text.replacen("fio ", "fio --parse-only ", 1));
    }
}

#[test]
fn fio_does_what_the_line_means() {
    if fio_is_missing("fio_does_what_the_line_means") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("it's: a disk");
    std::fs::write(&path, vec![1u8; 128 << 10]).unwrap();
    let log = directory.path().join("log");
    let offsets = |access: Access| {
        let text = line("random-read-d1", |w, target, asked| {
            (w.workload.access, w.span_bytes, w.cache.used) =
                (access.clone(), 64 << 10, CachePolicy::Buffered);
            w.span_start_bytes = 32 << 10;
            (target.kind, target.path) = (TargetKind::File, path.to_str().unwrap().to_owned());
            (asked.stop.time_ns, asked.stop.ops, asked.warmup_ns) = (None, Some(5), 0);
        });
        let _ = std::fs::remove_file(&log);
        paste(&format!("{text} --write_iolog={}", log.display()));
        let log = std::fs::read_to_string(&log).unwrap();
        let reads = log.lines().filter(|l| l.contains(" read "));
        reads
            .map(|l| l.split(' ').rev().nth(1).unwrap().parse::<u64>().unwrap() / 8192)
            .collect::<Vec<_>>()
    };
    assert_eq!(offsets(Access::Sequential), [4, 5, 6, 7, 8]);
    assert_eq!(
        offsets(Access::Stride {
            stride_bytes: 2 * 8192
        }),
        [4, 6, 8, 10, 4],
        "the fifth begins the next pass"
    );
    let backward = offsets(Access::Backward);
    assert!(
        backward.windows(2).all(|w| w[1] + 1 == w[0] || w[0] == 4)
            && backward.iter().all(|b| (4..12).contains(b)),
        "{backward:?}"
    );
}

fn ping_of(run: &mut fixture::FixtureRun) -> &mut Ping {
    match &mut run.facts.plan.tasks[..] {
        [Task::Ping(ping)] => ping,
        tasks => panic!("{tasks:?}"),
    }
}

fn ioping_of(change: impl Fn(&mut fixture::FixtureRun)) -> String {
    let mut run = fixture::ping::ping_run(&[(0, 100_000); 10]);
    ping_of(&mut run).requests.idle_ns.clear();
    change(&mut run);
    let record: Record = fixture::judge(run);
    record.measurements[0].figures.reproduce.clone()
}

#[test]
fn ping_of_a_directory_is_repeated_by_ioping() {
    let reads = ioping_of(|run| ping_of(run).workload.stop.ops = Some(10));
    assert_eq!(
        reads,
        "ioping -c 10 -i 1000000us -a 1 -s 4096 -S 4294967296 -D /data"
    );
}

#[test]
fn writes_to_a_device_are_marked_and_what_ioping_cannot_do_has_no_line() {
    let synced = |call| SyncPolicy::Every { writes: 1, call };
    let writes = ioping_of(|run| {
        let workload = &mut run.measurements[0].workload;
        (workload.streams, workload.sync) = (Streams::with_reads(500), synced(SyncCall::Fdatasync));
        (run.facts.targets[0].kind, run.facts.targets[0].path) =
            (TargetKind::BlockDevice, "/dev/sdz".to_owned());
    });
    states(&writes, &[" -D -G -WWW /dev/sdz # overwrites"]);
    let fsync = ioping_of(|run| {
        let workload = &mut run.measurements[0].workload;
        (workload.streams, workload.sync) = (Streams::with_reads(0), synced(SyncCall::Fsync));
    });
    assert_eq!(fsync, "");
    let gaps = ioping_of(|run| ping_of(run).requests.idle_ns = vec![0, 5]);
    assert_eq!(gaps, "");
}

/// fio has no word for reads beside trims.
#[test]
fn what_fio_cannot_do_has_no_line() {
    let mut workload = Workload::named("w");
    assert_eq!(rw_value(&workload).as_deref(), Some("randread"));
    workload.streams = Streams::from_chains(&[&[OpKind::Read], &[OpKind::Trim]], 900, &[]);
    assert_eq!(rw_value(&workload), None);
    let trims = |kind| {
        line("random-write-d32", |w, target, _| {
            w.workload.streams = Streams::doing(&[OpKind::Trim]);
            target.kind = kind;
        })
    };
    assert_eq!(trims(TargetKind::Directory), "");
    states(&trims(TargetKind::BlockDevice), &["--rw=randtrim"]);
}

#[test]
fn jobs_end_together_only_where_the_workloads_did() {
    let (ran, target, mut asked) = case("random-read-d1");
    let line = |asked: &[Workload]| {
        let mut members = Vec::new();
        for one in asked {
            members.push(RanWorkload {
                ran: &ran,
                asked: one,
            });
        }
        fio_command(&members, &target, Group::new(0, asked))
    };
    let together = line(&[asked.clone(), asked.clone()]);
    states(&together, &["fio --exitall --exit_what=all --"]);
    asked.ends_alone = true;
    let alone = line(&[asked.clone(), asked.clone()]);
    assert!(
        !alone.contains("exitall") && alone.contains("--new_group"),
        "{alone}"
    );
    let other = Workload {
        ends_alone: false,
        ..asked.clone()
    };
    assert_eq!(line(&[asked, other]), "", "fio has one switch for all jobs");
}

#[test]
fn jobs_of_ordered_workloads_share_the_span() {
    let jobs = |access: Access, engine, depth| {
        line("sequential-read", |w, _, _| {
            w.workload.access = access.clone();
            (w.workload.workers, w.workload.depth, w.engine.used) = (4, depth, engine);
        })
    };
    let stride = Access::Stride {
        stride_bytes: 4 << 20,
    };
    let parts = " --size=1073741824 --offset_increment=1073741824 ";
    states(&jobs(Access::Sequential, EngineKind::Uring, 8), &[parts]);
    states(&jobs(stride, EngineKind::Aio, 8), &[parts]);
    states(&jobs(Access::Sequential, EngineKind::Sync, 1), &[parts]);
    assert_eq!(jobs(Access::Sequential, EngineKind::Sync, 8), "");
    let eighths = " --size=134217728 --offset_increment=134217728 ";
    states(&jobs(Access::Backward, EngineKind::Sync, 8), &[eighths]);
    let random = Access::Random {
        distribution: Distribution::Uniform,
    };
    let anywhere = jobs(random, EngineKind::Uring, 8);
    states(&anywhere, &[" --size=4294967296 --norandommap "]);
}

/// udev names disks with backslashes. fio drops one only before a colon.
#[test]
fn backslashes_of_a_path_stay() {
    let text = line("random-read-d1", |_, target, _| {
        (target.kind, target.path) = (TargetKind::BlockDevice, r"/dev/by-label/My\x20Disk".into());
    });
    states(&text, &[r"'--filename=/dev/by-label/My\x20Disk' "]);
}

#[test]
fn operations_beyond_a_pass_are_bytes_for_fio() {
    let ended = |span_bytes, has_mix| {
        line("random-read-d1", |w, _, asked| {
            w.span_bytes = span_bytes;
            if has_mix {
                for block_bytes in [4096, 8192] {
                    w.workload.block_mix.push(BlockShare {
                        block_bytes,
                        weight: 1,
                    });
                }
            }
            (asked.stop.time_ns, asked.stop.ops) = (None, Some(5000));
        })
    };
    states(&ended(4 << 30, false), &["--number_ios=5000"]);
    states(&ended(4 << 20, false), &["--io_size=40960000"]);
    assert_eq!(ended(4 << 20, true), "");
}

#[test]
fn a_rate_or_a_share_that_fio_would_round_far_off_has_no_line() {
    let offered = |rate| {
        line("random-read-d32", |w, _, _| {
            (w.workload.rate, w.workload.workers) = (Some(rate), 32);
        })
    };
    states(&offered(3200.0), &["--rate_iops=100 "]);
    assert_eq!(offered(10.0), "");
    let mixed = |permille| {
        line("mixed-random", |w, _, _| {
            w.workload.streams = Streams::with_reads(permille);
        })
    };
    states(&mixed(985), &["--rwmixread=99 "]);
    assert_eq!(mixed(999), "", "fio would write nothing");
    let hot = |size_percent| {
        line("random-read-d1", |w, _, _| {
            w.workload.access = Access::Random {
                distribution: Distribution::HotCold {
                    access_percent: 90.0,
                    size_percent,
                },
            };
        })
    };
    states(&hot(1.0), &["zoned:90/1:10/99 "]);
    assert_eq!(hot(0.1), "");
}

#[test]
fn a_shape_is_in_the_line_or_there_is_none() {
    let shaped = |change: fn(&mut LoadShape)| {
        line("sequential-read", |w, _, _| change(&mut w.workload.shape))
    };
    let zones = shaped(|shape| {
        shape.order.zone_stride = Some(ZoneStride {
            zone_bytes: 1 << 20,
            skip_bytes: 3 << 20,
        });
    });
    states(
        &zones,
        &["--zonemode=strided --zonesize=1048576 --zonerange=1048576 --zoneskip=3145728"],
    );
    let opened = shaped(|shape| shape.threads.opened_with = Some(WriteFlag::OpenDsync));
    states(&opened, &["--sync=dsync"]);
    let limited = shaped(|shape| shape.ends.latency_limit_ns = Some(5_000_000));
    states(&limited, &["--max_latency=5000us"]);
    let none: [fn(&mut LoadShape); 5] = [
        |shape| shape.order.in_order = vec![OpKind::Write],
        |shape| {
            shape.starts.flow = Some(FlowShare {
                number: 1,
                weight: 2,
                pause_ns: 0,
            });
        },
        |shape| shape.content.verified_times = Some(2),
        |shape| shape.content.verified_reads = Some(200),
        |shape| {
            shape.ends.rate_floors = vec![RateFloor {
                of_writes: false,
                floor: 100.0,
                unit: FloorUnit::Ops,
                over_ns: 1_000_000_000,
            }];
        },
    ];
    for change in none {
        assert_eq!(shaped(change), "");
    }
}

/// The depth of a disk that is too slow for the one that was asked, and of one whose first request
/// was slow before one slice of several.
#[test]
fn the_depth_is_the_one_that_ran() {
    for (achieved_depth, option) in [(1.9, "--iodepth=2 "), (28.3, "--iodepth=32 ")] {
        let text = line("random-read-d32", |w, _, _| {
            (w.engine.depth, w.achieved_depth) = (Some(2), achieved_depth);
        });
        states(&text, &[option]);
    }
}
