//! `SimDisk` end to end: mounted, read and written by real threads. Counts decide, never how long
//! something took on a busy machine.

// As in any test, also in the functions that tests share.
#![allow(clippy::unwrap_used)]

mod root;

use diskproof_simdisk::models::Mechanism;
use diskproof_simdisk::models::faults::{FaultDirection, MediaFault};
use diskproof_simdisk::models::flash::Flash;
use diskproof_simdisk::{DirectAccess, Medium, Model, SimDisk};
use root::{AlignedBuffer, Scratch, open_direct};
use std::fs::File;
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
    if root::missing("unthrottled_disk_mounts_keeps_data_and_unmounts") {
        return;
    }
    let scratch = Scratch::new();
    let disk = SimDisk::serve(Model::default(), SIZE, &scratch.path("disk")).unwrap();
    assert_eq!(disk.path().metadata().unwrap().len(), SIZE);
    assert!(disk.path().metadata().unwrap().is_file());
    let file = open_direct(disk.path()).unwrap();
    let mut buffer = AlignedBuffer::new(4 << 20);
    buffer.bytes_mut().fill(7);
    file.write_all_at(buffer.bytes_mut(), SIZE - (4 << 20))
        .unwrap();
    file.sync_data().unwrap();
    buffer.bytes_mut().fill(0);
    file.read_exact_at(buffer.bytes_mut(), SIZE - (4 << 20))
        .unwrap();
    assert!(buffer.bytes_mut().iter().all(|b| *b == 7));
    let mut small = AlignedBuffer::new(512);
    file.read_exact_at(small.bytes_mut(), 512).unwrap();
    assert!(small.bytes_mut().iter().all(|b| *b == 0));
    let stats = disk.stats();
    assert_eq!(
        (stats.writes, stats.written_bytes, stats.flushes),
        (4, 4 << 20, 1),
        "{stats:?}"
    );
    assert_eq!(
        (stats.reads, stats.read_bytes),
        (5, (4 << 20) + 512),
        "{stats:?}"
    );
    let path = disk.path().to_owned();
    drop(file);
    drop(disk);
    assert_eq!(
        path.metadata().unwrap().len(),
        0,
        "the mount point itself is back"
    );
}

#[test]
fn concurrent_threads_never_exceed_iops_limit() {
    if root::missing("concurrent_threads_never_exceed_iops_limit") {
        return;
    }
    let scratch = Scratch::new();
    let disk = SimDisk::serve(
        flash(Flash {
            iops: Some(2000),
            ..Flash::default()
        }),
        SIZE,
        &scratch.path("disk"),
    )
    .unwrap();
    let seconds = read_in_threads(&disk, 8, 250, 4096);
    let stats = disk.stats();
    assert_eq!(
        (stats.reads, stats.read_bytes, stats.writes),
        (2000, 2000 * 4096, 0)
    );
    assert_eq!(stats.depth_max, 8);
    let iops = 2000.0 / seconds;
    assert!(iops < 2000.0 * 1.02, "{iops}");
}

#[test]
fn disk_receives_32_requests_at_once() {
    if root::missing("disk_receives_32_requests_at_once") {
        return;
    }
    let scratch = Scratch::new();
    // So slow that all have arrived before the first is answered.
    let slow = Flash {
        read_latency_ns: 500_000_000,
        ..Flash::default()
    };
    let disk = SimDisk::serve(flash(slow), SIZE, &scratch.path("disk")).unwrap();
    read_in_threads(&disk, 32, 1, 4096);
    assert_eq!((disk.stats().reads, disk.stats().depth_max), (32, 32));
}

#[test]
fn single_channel_never_beats_its_latency() {
    if root::missing("single_channel_never_beats_its_latency") {
        return;
    }
    let scratch = Scratch::new();
    let model = flash(Flash {
        read_latency_ns: 2_000_000,
        channels: Some(1),
        ..Flash::default()
    });
    let disk = SimDisk::serve(model, SIZE, &scratch.path("disk")).unwrap();
    let seconds = read_in_threads(&disk, 1, 300, 4096);
    assert_eq!((disk.stats().reads, disk.stats().depth_max), (300, 1));
    assert!(seconds >= 0.6 / 1.02, "{seconds}");
}

#[test]
fn bandwidth_never_exceeds_limit() {
    if root::missing("bandwidth_never_exceeds_limit") {
        return;
    }
    let scratch = Scratch::new();
    let model = flash(Flash {
        read_bytes_per_s: Some(100_000_000),
        ..Flash::default()
    });
    let disk = SimDisk::serve(model, SIZE, &scratch.path("disk")).unwrap();
    let seconds = read_in_threads(&disk, 2, 40, 1 << 20);
    assert_eq!(
        (disk.stats().reads, disk.stats().read_bytes),
        (80, 80 << 20)
    );
    let rate = f64::from(80 << 20) / seconds;
    assert!(rate < 102e6, "{rate}");
}

#[test]
fn faults_reach_the_program() {
    if root::missing("faults_reach_the_program") {
        return;
    }
    let scratch = Scratch::new();
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
    let disk = SimDisk::serve(
        Model {
            faults,
            ..Model::default()
        },
        SIZE,
        &scratch.path("disk"),
    )
    .unwrap();
    let file = open_direct(disk.path()).unwrap();
    let mut buffer = AlignedBuffer::new(64 << 10);
    let buffer = buffer.bytes_mut();
    assert_eq!(
        file.read_at(&mut buffer[..4096], 8192)
            .unwrap_err()
            .raw_os_error(),
        Some(libc::EIO)
    );
    assert_eq!(file.read_at(&mut buffer[..8192], 0).unwrap(), 8192);
    assert_eq!(file.read_at(buffer, 1 << 20).unwrap(), 4096, "a short read");
    assert_eq!(
        file.write_at(buffer, 1 << 20).unwrap(),
        4096,
        "a short write"
    );
    assert_eq!(
        file.write_at(buffer, 4 << 20).unwrap(),
        60 << 10,
        "what still fits"
    );
    assert_eq!(
        file.write_at(buffer, 4 << 20).unwrap_err().raw_os_error(),
        Some(libc::ENOSPC)
    );
    assert_eq!(
        (disk.stats().errors, disk.stats().written_bytes),
        (2, 64 << 10)
    );
}

#[test]
fn transfers_stop_at_end_of_disk() {
    if root::missing("transfers_stop_at_end_of_disk") {
        return;
    }
    let scratch = Scratch::new();
    let disk = SimDisk::serve(Model::default(), 1 << 20, &scratch.path("disk")).unwrap();
    let file = open_direct(disk.path()).unwrap();
    let mut buffer = AlignedBuffer::new(8192);
    let buffer = buffer.bytes_mut();
    assert_eq!(file.read_at(buffer, (1 << 20) - 4096).unwrap(), 4096);
    assert_eq!(file.read_at(buffer, 1 << 20).unwrap(), 0);
    assert_eq!(
        file.write_at(buffer, 1 << 20).unwrap_err().raw_os_error(),
        Some(libc::ENOSPC)
    );
    assert_eq!(
        file.set_len(4096).unwrap_err().raw_os_error(),
        Some(libc::EPERM)
    );
    assert_eq!(disk.path().metadata().unwrap().len(), 1 << 20);
}

#[test]
fn buffered_io_uses_page_cache() {
    if root::missing("buffered_io_uses_page_cache") {
        return;
    }
    let scratch = Scratch::new();
    let disk = SimDisk::serve(Model::default(), SIZE, &scratch.path("disk")).unwrap();
    let file = File::options()
        .read(true)
        .write(true)
        .open(disk.path())
        .unwrap();
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
    assert_eq!(
        (disk.stats().written_bytes, disk.stats().flushes),
        (4096, 1)
    );
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
    let at_open = SimDisk::serve(
        refusing(DirectAccess::RefusedAtOpen),
        SIZE,
        &scratch.path("a"),
    )
    .unwrap();
    assert_eq!(
        open_direct(at_open.path()).unwrap_err().raw_os_error(),
        Some(libc::EINVAL)
    );
    let late = SimDisk::serve(
        refusing(DirectAccess::RefusedAtTransfer),
        SIZE,
        &scratch.path("b"),
    )
    .unwrap();
    let file = open_direct(late.path()).unwrap();
    let mut buffer = AlignedBuffer::new(4096);
    assert_eq!(
        file.read_at(buffer.bytes_mut(), 0)
            .unwrap_err()
            .raw_os_error(),
        Some(libc::EINVAL)
    );
    assert_eq!(
        File::open(late.path())
            .unwrap()
            .read_at(buffer.bytes_mut(), 0)
            .unwrap(),
        4096
    );
    assert_eq!(at_open.stats().reads, 0);
}

#[test]
fn dropped_disk_fails_io_of_open_file() {
    if root::missing("dropped_disk_fails_io_of_open_file") {
        return;
    }
    let scratch = Scratch::new();
    let never = Flash {
        read_latency_ns: 3_600_000_000_000,
        ..Flash::default()
    };
    let disk = SimDisk::serve(flash(never), SIZE, &scratch.path("disk")).unwrap();
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
    assert!(
        under_way.is_err() && later.is_err(),
        "{under_way:?} {later:?}"
    );
}

#[test]
fn backing_file_keeps_content() {
    if root::missing("backing_file_keeps_content") {
        return;
    }
    let scratch = Scratch::new();
    let medium = Medium::File(scratch.path("image"));
    let disk =
        SimDisk::serve_on(Model::default(), 1 << 20, &scratch.path("disk"), &medium).unwrap();
    File::options()
        .write(true)
        .open(disk.path())
        .unwrap()
        .write_all_at(b"kept", 5000)
        .unwrap();
    drop(disk);
    let again =
        SimDisk::serve_on(Model::default(), 1 << 20, &scratch.path("disk"), &medium).unwrap();
    let mut buffer = [0; 4];
    File::open(again.path())
        .unwrap()
        .read_exact_at(&mut buffer, 5000)
        .unwrap();
    assert_eq!(&buffer, b"kept");
}
