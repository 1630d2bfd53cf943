//! `SimDisk` end to end: mounted, read and written by real threads. Counts decide, never how long
//! something took on a busy machine.

// As in any test, also in the functions that tests share.
#![allow(clippy::unwrap_used)]

mod root;

use diskproof_simdisk::models::Mechanism;
use diskproof_simdisk::models::faults::{FaultDirection, MediaFault};
use diskproof_simdisk::models::flash::Flash;
use diskproof_simdisk::{DirectAccess, Medium, Model, SimDisk};
use root::{AlignedBuffer, Scratch, errno, open, open_direct, serve};
use std::os::unix::fs::FileExt;
use std::time::Instant;

const SIZE: u64 = 1 << 30;

fn flash(flash: Flash) -> Model {
    Model {
        mechanism: Mechanism::Flash(flash),
        ..Model::default()
    }
}

/// `threads` threads read `each` blocks with O_DIRECT; the seconds that took.
fn read_in_threads(disk: &SimDisk, threads: usize, each: usize, block_bytes: usize) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let file = open_direct(disk.path()).expect("O_DIRECT is accepted");
                let mut buffer = AlignedBuffer::new(block_bytes);
                for n in 0..each {
                    let offset = ((n * threads + thread) * block_bytes) as u64 % SIZE;
                    file.read_exact_at(buffer.bytes_mut(), offset)
                        .expect("a read without faults");
                }
            });
        }
    });
    start.elapsed().as_secs_f64()
}

#[test]
fn unthrottled_disk_mounts_keeps_data_and_unmounts() {
    let Some((_scratch, disk)) = serve(
        "unthrottled_disk_mounts_keeps_data_and_unmounts",
        Model::default(),
        SIZE,
    ) else {
        return;
    };
    assert_eq!(disk.path().metadata().unwrap().len(), SIZE);
    assert!(disk.path().metadata().unwrap().is_file());
    let file = open_direct(disk.path()).unwrap();
    let mut buffer = AlignedBuffer::new(4 << 20);
    buffer.bytes_mut().fill(7);
    let last = SIZE - (4 << 20);
    file.write_all_at(buffer.bytes_mut(), last).unwrap();
    file.sync_data().unwrap();
    buffer.bytes_mut().fill(0);
    file.read_exact_at(buffer.bytes_mut(), last).unwrap();
    assert!(buffer.bytes_mut().iter().all(|b| *b == 7));
    let mut small = AlignedBuffer::new(512);
    file.read_exact_at(small.bytes_mut(), 512).unwrap();
    assert!(small.bytes_mut().iter().all(|b| *b == 0));
    let stats = disk.stats();
    assert_eq!(stats.writes, 4);
    assert_eq!(stats.written_bytes, 4 << 20);
    assert_eq!(stats.flushes, 1, "{stats:?}");
    assert_eq!(stats.reads, 5);
    assert_eq!(stats.read_bytes, (4 << 20) + 512, "{stats:?}");
    let path = disk.path().to_owned();
    drop(file);
    drop(disk);
    // The mount point itself is back.
    assert_eq!(path.metadata().unwrap().len(), 0);
}

#[test]
fn concurrent_threads_never_exceed_iops_limit() {
    let limited = flash(Flash {
        iops: Some(2000),
        ..Flash::default()
    });
    let name = "concurrent_threads_never_exceed_iops_limit";
    let Some((_scratch, disk)) = serve(name, limited, SIZE) else {
        return;
    };
    let seconds = read_in_threads(&disk, 8, 250, 4096);
    let stats = disk.stats();
    assert_eq!(stats.reads, 2000);
    assert_eq!(stats.read_bytes, 2000 * 4096);
    assert_eq!(stats.writes, 0);
    assert_eq!(stats.depth_max, 8);
    let iops = 2000.0 / seconds;
    assert!(iops < 2000.0 * 1.02, "{iops}");
}

#[test]
fn disk_receives_32_requests_at_once() {
    // So slow that all have arrived before the first is answered.
    let slow = flash(Flash {
        read_latency_ns: 500_000_000,
        ..Flash::default()
    });
    let Some((_scratch, disk)) = serve("disk_receives_32_requests_at_once", slow, SIZE) else {
        return;
    };
    read_in_threads(&disk, 32, 1, 4096);
    assert_eq!((disk.stats().reads, disk.stats().depth_max), (32, 32));
}

#[test]
fn single_channel_never_beats_its_latency() {
    let model = flash(Flash {
        read_latency_ns: 2_000_000,
        channels: Some(1),
        ..Flash::default()
    });
    let name = "single_channel_never_beats_its_latency";
    let Some((_scratch, disk)) = serve(name, model, SIZE) else {
        return;
    };
    let seconds = read_in_threads(&disk, 1, 300, 4096);
    assert_eq!((disk.stats().reads, disk.stats().depth_max), (300, 1));
    assert!(seconds >= 0.6 / 1.02, "{seconds}");
}

#[test]
fn bandwidth_never_exceeds_limit() {
    let model = flash(Flash {
        read_bytes_per_s: Some(100_000_000),
        ..Flash::default()
    });
    let Some((_scratch, disk)) = serve("bandwidth_never_exceeds_limit", model, SIZE) else {
        return;
    };
    let seconds = read_in_threads(&disk, 2, 40, 1 << 20);
    assert_eq!(disk.stats().reads, 80);
    assert_eq!(disk.stats().read_bytes, 80 << 20);
    let rate = f64::from(80 << 20) / seconds;
    assert!(rate < 102e6, "{rate}");
}

#[test]
fn faults_reach_the_program() {
    let faults = vec![
        MediaFault::Broken {
            span: 8192..12_288,
            direction: FaultDirection::Read,
        },
        MediaFault::Short {
            span: 1 << 20..2 << 20,
            direction: FaultDirection::Both,
            max_bytes: 4096,
        },
        MediaFault::EnospcAfter { bytes: 64 << 10 },
    ];
    let model = Model {
        faults,
        ..Model::default()
    };
    let Some((_scratch, disk)) = serve("faults_reach_the_program", model, SIZE) else {
        return;
    };
    let file = open_direct(disk.path()).unwrap();
    let mut buffer = AlignedBuffer::new(64 << 10);
    let buffer = buffer.bytes_mut();
    let broken = file.read_at(&mut buffer[..4096], 8192);
    assert_eq!(errno(broken), Some(libc::EIO));
    assert_eq!(file.read_at(&mut buffer[..8192], 0).unwrap(), 8192);
    // A short read and a short write, and then what still fits.
    assert_eq!(file.read_at(buffer, 1 << 20).unwrap(), 4096);
    assert_eq!(file.write_at(buffer, 1 << 20).unwrap(), 4096);
    assert_eq!(file.write_at(buffer, 4 << 20).unwrap(), 60 << 10);
    assert_eq!(errno(file.write_at(buffer, 4 << 20)), Some(libc::ENOSPC));
    assert_eq!(disk.stats().errors, 2);
    assert_eq!(disk.stats().written_bytes, 64 << 10);
}

#[test]
fn transfers_stop_at_end_of_disk() {
    let Some((_scratch, disk)) = serve("transfers_stop_at_end_of_disk", Model::default(), 1 << 20)
    else {
        return;
    };
    let file = open_direct(disk.path()).unwrap();
    let mut buffer = AlignedBuffer::new(8192);
    let buffer = buffer.bytes_mut();
    assert_eq!(file.read_at(buffer, (1 << 20) - 4096).unwrap(), 4096);
    assert_eq!(file.read_at(buffer, 1 << 20).unwrap(), 0);
    assert_eq!(errno(file.write_at(buffer, 1 << 20)), Some(libc::ENOSPC));
    assert_eq!(errno(file.set_len(4096)), Some(libc::EPERM));
    assert_eq!(disk.path().metadata().unwrap().len(), 1 << 20);
}

#[test]
fn buffered_io_uses_page_cache() {
    let Some((_scratch, disk)) = serve("buffered_io_uses_page_cache", Model::default(), SIZE)
    else {
        return;
    };
    let file = open(disk.path());
    let mut buffer = vec![0; 4096];
    file.read_exact_at(&mut buffer, 0).unwrap();
    let once = disk.stats().read_bytes;
    for _ in 0..10 {
        file.read_exact_at(&mut buffer, 0).unwrap();
    }
    assert_eq!(disk.stats().read_bytes, once, "answered by the cache");
    file.write_all_at(&buffer, 0).unwrap();
    assert_eq!(disk.stats().written_bytes, 4096, "writes go through it");
    file.sync_all().unwrap();
    assert_eq!(disk.stats().written_bytes, 4096);
    assert_eq!(disk.stats().flushes, 1);
}

#[test]
fn disk_refuses_direct_io_when_set() {
    if root::missing("disk_refuses_direct_io_when_set") {
        return;
    }
    let scratch = Scratch::new();
    let refusing = |direct| Model {
        direct,
        ..Model::default()
    };
    let serve =
        |direct, name: &str| SimDisk::serve(refusing(direct), SIZE, &scratch.path(name)).unwrap();
    let at_open = serve(DirectAccess::RefusedAtOpen, "a");
    assert_eq!(errno(open_direct(at_open.path())), Some(libc::EINVAL));
    let late = serve(DirectAccess::RefusedAtTransfer, "b");
    let file = open_direct(late.path()).unwrap();
    let mut buffer = AlignedBuffer::new(4096);
    let refused = file.read_at(buffer.bytes_mut(), 0);
    assert_eq!(errno(refused), Some(libc::EINVAL));
    let read = open(late.path()).read_at(buffer.bytes_mut(), 0);
    assert_eq!(read.unwrap(), 4096);
    assert_eq!(at_open.stats().reads, 0);
}

#[test]
fn dropped_disk_fails_io_of_open_file() {
    let never = flash(Flash {
        read_latency_ns: 3_600_000_000_000,
        ..Flash::default()
    });
    let Some((_scratch, disk)) = serve("dropped_disk_fails_io_of_open_file", never, SIZE) else {
        return;
    };
    let file = open_direct(disk.path()).unwrap();
    let reader = std::thread::spawn(move || {
        let mut buffer = AlignedBuffer::new(4096);
        let result = file.read_at(buffer.bytes_mut(), 0);
        (result, file.read_at(buffer.bytes_mut(), 0))
    });
    while disk.stats().reads == 0 {
        std::thread::yield_now();
    }
    drop(disk);
    let (under_way, later) = reader.join().unwrap();
    assert!(under_way.is_err() && later.is_err());
}

#[test]
fn backing_file_keeps_content() {
    if root::missing("backing_file_keeps_content") {
        return;
    }
    let scratch = Scratch::new();
    let medium = Medium::File(scratch.path("image"));
    let serve =
        || SimDisk::serve_on(Model::default(), 1 << 20, &scratch.path("disk"), &medium).unwrap();
    let disk = serve();
    open(disk.path()).write_all_at(b"kept", 5000).unwrap();
    drop(disk);
    let again = serve();
    let mut buffer = [0; 4];
    open(again.path()).read_exact_at(&mut buffer, 5000).unwrap();
    assert_eq!(&buffer, b"kept");
}
