//! Reads back what a verified workload wrote, and names every block that is not what it should be.

use crate::buffers::Buffers;
use crate::clock::{Clock, MonotonicClock};
use crate::ledger::Ledger;
use diskproof_model::measurement::{BadBlock, VerifyResult};
use diskproof_model::progress::{Control, Phase, Progress, Watch};
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_target::OpenTarget;
use std::io;

/// Blocks that lie side by side are read together, up to this size.
const READ_BYTES: usize = 1 << 20;
/// How many bad blocks are named; all are counted.
const NAMED_MAX: usize = 100;
/// How often the watcher is asked.
const TICK_NS: u64 = 50_000_000;

/// Checks every block that the ledger knows. Ends early, with what was checked so far, when the watcher interrupts.
pub fn verify(
    name: &str,
    target: &OpenTarget,
    ledger: &Ledger,
    block_bytes: u32,
    watch: &mut dyn Watch,
) -> io::Result<(VerifyResult, Control)> {
    let block = block_bytes as usize;
    let mut buffers = Buffers::new(1, READ_BYTES.max(block))?;
    let mut result = VerifyResult::default();
    let (start_ns, mut series) = (MonotonicClock.now(), TimeSeries::new(TICK_NS));
    let total = ledger.written().count().max(1);
    let mut told = Control::Continue;
    let mut ticked_ns = 0;
    let mut written = ledger.written().peekable();
    while let Some((offset, generation)) = written.next() {
        let mut run = vec![generation];
        while run.len() < (READ_BYTES / block).max(1)
            && let Some((_, next)) = written.next_if(|(at, _)| *at == offset + (run.len() * block) as u64)
        {
            run.push(next);
        }
        check_run(target, ledger, &mut buffers, offset, &run, block, &mut result);
        let elapsed_ns = MonotonicClock.now() - start_ns;
        series.add(elapsed_ns, &Cell { ops: run.len() as u64, bytes: (run.len() * block) as u64, ..Cell::default() }, 1024);
        if elapsed_ns >= ticked_ns + TICK_NS || ticked_ns == 0 {
            ticked_ns = elapsed_ns;
            let done = Some(result.blocks as f64 / total as f64);
            told =
                watch.tick(&Progress { name, phase: Phase::Verify, elapsed_ns, done, series: &series, silence: None, resume_bytes: None });
        }
        if told == Control::Interrupt {
            break;
        }
    }
    Ok((result, told))
}

fn check_run(
    target: &OpenTarget,
    ledger: &Ledger,
    buffers: &mut Buffers,
    offset: u64,
    run: &[u32],
    block: usize,
    result: &mut VerifyResult,
) {
    let outcome = read_all(target, buffers.bytes_mut(0, run.len() * block), offset);
    for (index, generation) in run.iter().enumerate() {
        let at = offset + (index * block) as u64;
        let bad = match &outcome {
            Ok(()) => ledger.complaint(&buffers.bytes(0, run.len() * block)[index * block..][..block], at, *generation),
            // One bad sector fails the whole read: block by block tells which.
            Err(_) => match read_all(target, buffers.bytes_mut(0, block), at) {
                Ok(()) => ledger.complaint(buffers.bytes(0, block), at, *generation),
                Err(error) => Some(BadBlock { offset_bytes: at, why: format!("cannot be read: {error}") }),
            },
        };
        result.blocks += 1;
        if let Some(bad) = bad {
            result.bad_blocks += 1;
            if result.bad.len() < NAMED_MAX {
                result.bad.push(bad);
            }
        }
    }
}

fn read_all(target: &OpenTarget, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pread(target.fd(), &mut bytes[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(moved) => done += moved,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
