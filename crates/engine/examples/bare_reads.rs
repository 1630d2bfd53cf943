//! The cost of the kernel alone: direct reads of 4 KiB at random offsets, one at a time, in a loop
//! that does nothing else. No clock, no latency, no statistics: the limit for any measurement at
//! depth 1. Prints reads per second.
//!
//!     cargo run --release -p diskproof-engine --example bare_reads -- TARGET SECONDS

use rustix::fs::{Mode, OFlags};
use std::error::Error;
use std::time::{Duration, Instant};

const BLOCK: usize = 4096;
/// Reads between two looks at the clock, which so costs nothing.
const STRETCH: u64 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let [target, seconds] = std::env::args()
        .skip(1)
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| "usage: bare_reads TARGET SECONDS")?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECT | OFlags::NOATIME;
    let file = rustix::fs::open(target, flags, Mode::empty())?;
    let blocks = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))? / BLOCK as u64;
    let mut memory = vec![1; 2 * BLOCK];
    let aligned = memory.as_ptr().align_offset(BLOCK);
    let block = &mut memory[aligned..aligned + BLOCK];
    let time = Duration::from_secs_f64(seconds.parse()?);
    let (began, mut reads, mut state) = (Instant::now(), 0, 1_u64);
    while began.elapsed() < time {
        for _ in 0..STRETCH {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let number = (u128::from(state) * u128::from(blocks)) >> 64;
            if rustix::io::pread(&file, &mut *block, number as u64 * BLOCK as u64)? != BLOCK {
                return Err("a read fell short".into());
            }
        }
        reads += STRETCH;
    }
    println!("{}", (reads as f64 / began.elapsed().as_secs_f64()).round());
    Ok(())
}
