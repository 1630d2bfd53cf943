//! `SimDisk` end to end: mounted, read and written by real threads. Counts decide, never how long something took on a busy machine.

mod root;

use diskproof_simdisk::models::Mechanism;
use diskproof_simdisk::models::faults::{Direction, Fault};
use diskproof_simdisk::models::flash::Flash;
use diskproof_simdisk::{DirectAccess, Medium, Model, SimDisk};
use root::{AlignedBuffer, Scratch, open_direct};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

const SIZE: u64 = 1 << 30;

fn flash(flash: Flash) -> Model {
    Model { mechanism: Mechanism::Flash(flash), ..Model::default() }
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
                    file.read_exact_at(buffer.bytes_mut(), offset).expect("a read without faults");
                }
            });
        }
    });
    start.elapsed().as_secs_f64()
}

#[test]
fn an_unthrottled_disk_mounts_keeps_data_and_unmounts() {
    if root::missing("an_unthrottled_disk_mounts_keeps_data_and_unmounts") {
        return;
    }
    let scratch = Scratch::new();
    let disk = SimDisk::serve(Model::default(), SIZE, &scratch.path("disk")).unwrap();
    assert_eq!(disk.path().metadata().unwrap().len(), SIZE);
    assert!(disk.path().metadata().unwrap().is_file());
    let file = open_direct(disk.path()).unwrap();
    let mut buffer = AlignedBuffer::new(4 << 20);
    buffer.bytes_mut().fill(7);
    file.write_all_at(buffer.bytes_mut(), SIZE - (4 << 20)).unwrap();
    file.sync_data().unwrap();
    buffer.bytes_mut().fill(0);
    file.read_exact_at(buffer.bytes_mut(), SIZE - (4 << 20)).unwrap();
    assert!(buffer.bytes_mut().iter().all(|b| *b == 7));
    let mut small = AlignedBuffer::new(512);
    file.read_exact_at(small.bytes_mut(), 512).unwrap();
    assert!(small.bytes_mut().iter().all(|b| *b == 0));
    let stats = disk.stats();
    assert_eq!((stats.writes, stats.written_bytes, stats.flushes), (4, 4 << 20, 1), "{stats:?}");
    assert_eq!((stats.reads, stats.read_bytes), (5, (4 << 20) + 512), "{stats:?}");
    let path = disk.path().to_owned();
    drop(file);
    drop(disk);
    assert_eq!(path.metadata().unwrap().len(), 0, "the mount point itself is back");
}
