//! Makes a target ready for one workload: page cache, alignment, span, I/O engine, write journal.
//! Writes nothing; a scratch file must have its content before.

use crate::io::Extent;
use crate::load::block_calls::BlockCalls;
use crate::load::transaction::{Log, SplitSpan};
use crate::load::write_journal::{BLOCKS_MAX, WriteJournal};
use crate::run::block_calls::{checked_calls, device_call};
use crate::run::error::{RunError, unsuitable};
use crate::run::first_request::{EarlyErrors, SlowTarget};
use crate::run::limits::{extent_of, largest_block, parts_of};
use crate::run::select::{EngineUseCase, select};
use crate::run::watched_call::{Patience, call_before_run, write_back_before_run};
use diskproof_device::OpenTarget;
use diskproof_model::measurement::{CacheUse, MeasuredSpan, Measurement, PerOp};
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, EngineKind, Layout, SyncPolicy, Verify, Workload,
};
use diskproof_model::shape::AccessAdvice;
use diskproof_model::signed::can_be_signed;
use diskproof_model::slice::EarlierSlices;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A target made ready for one workload.
pub(crate) struct PreparedTarget {
    /// The facts known before its run: workload, target, span, page cache, I/O engine.
    pub known: Measurement,
    /// The span as bytes of the target.
    pub extent: Extent,
    /// The data and the log, where the steps are transactions.
    pub transaction_span: Option<SplitSpan>,
    /// The journal of a verified workload.
    pub journal: Option<Arc<WriteJournal>>,
    /// The work of its slices so far on the target: it goes on behind them.
    pub earlier: EarlierSlices,
    /// The seed of the order in which workers that share a map of the blocks take them.
    pub order_seed: u64,
    /// The calls that carry out operations without data of their own.
    pub calls: Option<BlockCalls>,
}

/// Refuses a workload that writes on a target opened for reading.
pub(crate) fn check_writable(workload: &Workload, target: &OpenTarget) -> Result<(), RunError> {
    if workload.writes() && !target.is_writable() {
        let why = "writes, but the target is open only for reading. Release it with --destroy or \
                   --overwrite, or name a directory";
        return Err(unsuitable(workload, target, why.to_owned()));
    }
    Ok(())
}

/// Chooses span and I/O engine on a target whose content and page cache are ready. All workloads
/// that run together keep up to `in_flight_max` requests in flight on all targets; `seed` is that
/// of the write journal.
///
/// What the workload alone rules out is refused before the file is prepared and engines are tried.
pub(crate) fn prepare_target(
    workload: &Workload,
    target: &mut OpenTarget,
    cache: CacheUse,
    in_flight_max: u64,
    slow: Option<SlowTarget>,
    seed: u64,
    patience: Patience<'_>,
) -> Result<PreparedTarget, RunError> {
    let size_bytes = if workload.layout == Layout::Provides {
        target.capacity_bytes()
    } else {
        target.usable_bytes()
    };
    let extent = extent_of(workload.span, size_bytes);
    check_span(
        workload,
        target,
        u64::from(largest_block(workload)),
        extent.length,
    )?;
    if let Some(what) = workload.order_fault() {
        let why = format!("its requests have {what}");
        return Err(unsuitable(workload, target, why));
    }
    let calls = checked_calls(workload, target)?;
    let transaction_span = split_for(workload, extent, target)?;
    let journal = journal_for(workload, extent, target, seed)?;

    make_room(workload, cache.used, extent, target);
    advise(workload, target);
    if let Some(life) = workload.shape.threads.write_life {
        target.expect_write_life(life)?;
    }
    let unwritten_bytes = if workload.reads() {
        target.unwritten_bytes(extent.start, extent.length)
    } else {
        None
    };

    let use_case = EngineUseCase {
        workload,
        target,
        cache: cache.used,
        in_flight_max,
        slow,
    };
    let selected = select(&use_case, patience)?;
    if let Some(is_punted) = selected.is_punted {
        target.note_nowait(!is_punted);
    }
    let mut ops = PerOp::new();
    selected.errors.count_in(&mut ops);
    check_parts(workload, selected.engine.used, extent, target)?;
    if workload.checks_reads() && selected.engine.used == EngineKind::Mmap {
        let why = "a memory mapping has no buffers to check; use another engine";
        return Err(unverifiable(workload, target, why));
    }
    let span = MeasuredSpan::new(extent.start, extent.length);
    Ok(PreparedTarget {
        known: Measurement {
            unwritten_bytes,
            punted: selected.is_punted,
            silence_before_ns: target.take_silence_ns(),
            first_answer_ns: target.take_first_answer_ns(),
            ops,
            ..Measurement::unmeasured(workload.clone(), span, selected.engine, cache)
        },
        extent,
        transaction_span,
        journal,
        earlier: EarlierSlices::default(),
        order_seed: seed,
        calls,
    })
}

/// Gives a scratch file the length or the blocks that a server would give it before such writes.
fn make_room(workload: &Workload, cache: CachePolicy, extent: Extent, target: &OpenTarget) {
    if workload.writes() && cache == CachePolicy::Direct {
        target.lengthen(extent.end());
    }
    if appends_records(workload, cache) {
        target.reserve(extent.end());
    }
}

/// Gives the kernel the advice of the workload, or else the order in which it reads: only a
/// sequential one gains by read-ahead.
fn advise(workload: &Workload, target: &mut OpenTarget) {
    match workload.shape.threads.advice {
        Some(AccessAdvice::Normal) => target.advise_normal(),
        Some(AccessAdvice::Random) => target.advise_random(),
        Some(AccessAdvice::Sequential) => target.advise_sequential(),
        None if matches!(workload.access, Access::Sequential) => target.advise_sequential(),
        None => target.advise_random(),
    }
}

/// Refuses a span that is too short to be divided among the workers.
fn check_parts(
    workload: &Workload,
    engine: EngineKind,
    extent: Extent,
    target: &OpenTarget,
) -> Result<(), RunError> {
    let block_bytes = largest_block(workload);
    let parts = parts_of(workload, engine);
    if extent.length / u64::from(block_bytes) >= parts {
        return Ok(());
    }
    let why = format!(
        "divides the span into {parts} parts of at least {block_bytes} bytes each, but the span \
         has {}. Use a larger span, or smaller --jobs and --depth",
        extent.length
    );
    Err(unsuitable(workload, target, why))
}

/// True for a workload that appends records to a new file and makes them durable as it goes: a log,
/// for which servers reserve the space first.
fn appends_records(workload: &Workload, cache: CachePolicy) -> bool {
    workload.layout == Layout::Provides
        && workload.writes_partial_blocks(cache)
        && !matches!(workload.sync, SyncPolicy::None | SyncPolicy::AtEnd)
}

/// Refuses a span that is too short.
pub(crate) fn check_span(
    workload: &Workload,
    target: &OpenTarget,
    least_bytes: u64,
    span_bytes: u64,
) -> Result<(), RunError> {
    if span_bytes >= least_bytes {
        return Ok(());
    }
    let why = format!(
        "needs at least {least_bytes} bytes, but the span has {span_bytes}. Use a smaller block or \
         a larger span"
    );
    Err(unsuitable(workload, target, why))
}

fn unverifiable(workload: &Workload, target: &OpenTarget, why: &str) -> RunError {
    unsuitable(workload, target, format!("cannot be verified: {why}"))
}

/// Says why a workload cannot have transactions: a plan from a file may contain anything.
fn why_no_transactions(workload: &Workload) -> Option<&'static str> {
    let is_synced = match workload.sync {
        SyncPolicy::Every { writes, .. } => writes <= 1,
        SyncPolicy::Shared { .. } | SyncPolicy::OtherDescriptor { .. } => true,
        SyncPolicy::None | SyncPolicy::AtEnd | SyncPolicy::WithWrite { .. } => false,
    };
    if !is_synced {
        Some("needs a sync after each log record to make transactions durable")
    } else if workload.stop.bytes.is_some() {
        Some("cannot limit transactions by bytes; limit operations or time")
    } else if workload.verify != Verify::Off {
        Some("cannot verify what transactions write")
    } else if !workload.block_mix.is_empty() || !workload.streams.other_sizes().is_empty() {
        Some("needs blocks of one size in its transactions")
    } else if !matches!(workload.access, Access::Random { .. }) {
        Some("needs random blocks for its transactions")
    } else if workload.layout == Layout::Provides {
        Some("cannot give a file its content by transactions")
    } else {
        None
    }
}

/// The data and the log of a workload of transactions; `None` for others.
fn split_for(
    workload: &Workload,
    extent: Extent,
    target: &OpenTarget,
) -> Result<Option<SplitSpan>, RunError> {
    let Some(transaction) = workload.transaction else {
        return Ok(None);
    };
    if let Some(why) = why_no_transactions(workload) {
        return Err(unsuitable(workload, target, why.to_owned()));
    }
    let block_bytes = u64::from(workload.block_bytes);
    match Log::split_span(extent, transaction) {
        Some(split) if split.data.length >= block_bytes => Ok(Some(split)),
        _ => {
            let why = format!(
                "needs a block of {block_bytes} bytes and a log of {} bytes, but the span has {}. \
                 Use a larger --size or --span",
                transaction.log_span_bytes, extent.length
            );
            Err(unsuitable(workload, target, why))
        }
    }
}

/// Says why no read can show whether a workload's blocks came back; `None` where it can.
fn why_unverifiable(workload: &Workload) -> Option<&'static str> {
    let block = workload.block_bytes;
    let order = &workload.shape.order;
    let content_is_known = workload.shape.content.known.is_some();
    if order.fio.is_some() {
        return why_unverifiable_as_fio(workload);
    }
    let is_unaligned = order.align_bytes.is_some_and(|bytes| bytes != block);
    if is_unaligned || order.random_run.is_some() {
        return Some("offsets must be multiples of the block, each chosen independently");
    }
    if workload.checks_reads() && content_is_known {
        return None;
    }
    let has_other_sizes =
        !workload.block_mix.is_empty() || !workload.streams.other_sizes().is_empty();
    if has_other_sizes || (!content_is_known && !can_be_signed(block)) {
        return Some("blocks must have one size, at least 64 bytes and a multiple of 8");
    }
    if let Some(zones) = order.zone_stride
        && !(zones.zone_bytes.is_multiple_of(u64::from(block))
            && zones.skip_bytes.is_multiple_of(u64::from(block)))
    {
        return Some("parts and gaps that are no multiples of the block make blocks overlap");
    }
    match workload.access {
        Access::Stride { stride_bytes } if stride_bytes % u64::from(block) != 0 => {
            Some("a stride that is not a multiple of the block makes blocks overlap")
        }
        _ => None,
    }
}

/// Says why the blocks of an order of fio cannot be verified. They have several sizes, and the
/// journal knows what is common to these.
fn why_unverifiable_as_fio(workload: &Workload) -> Option<&'static str> {
    if workload.shape.content.known.is_some() {
        return None;
    }
    let signed = workload.signed_bytes();
    if !can_be_signed(signed) {
        return Some(
            "block sizes, and the places where blocks begin, must be multiples of at least 64 \
             bytes, a multiple of 8",
        );
    }
    if workload.checks_reads() && signed != workload.block_bytes {
        return Some(
            "a read of several blocks, or of a part of one, finds no signature of its own",
        );
    }
    None
}

/// The journal of a workload that signs what it writes; `None` for others.
fn journal_for(
    workload: &Workload,
    extent: Extent,
    target: &OpenTarget,
    seed: u64,
) -> Result<Option<Arc<WriteJournal>>, RunError> {
    if workload.verify == Verify::Off {
        return Ok(None);
    }
    if let Some(why) = why_unverifiable(workload) {
        return Err(unverifiable(workload, target, why));
    }
    if workload.checks_reads() {
        return Ok(None);
    }
    let block = workload.signed_bytes();
    if extent.length / u64::from(block) > BLOCKS_MAX {
        let why = format!(
            "the span has more than {BLOCKS_MAX} blocks; use a smaller --span or a larger block"
        );
        return Err(unverifiable(workload, target, &why));
    }
    let journal = WriteJournal::new(seed, extent.start, extent.length, block)
        .with_pattern(workload.shape.content.known.clone())
        .with_other_writers(workload.shape.content.shares_verified);
    Ok(Some(Arc::new(journal)))
}

/// Proves direct I/O on a target where the workload wants it, before [`set_cache`]. This sends the
/// first request of all to the target, which may never answer it. Returns the error of the disk on
/// it.
pub(crate) fn prove_direct(
    workload: &Workload,
    target: &mut OpenTarget,
    patience: Patience<'_>,
) -> Result<EarlyErrors, RunError> {
    let mut errors = EarlyErrors::default();
    let is_mapped = workload.engine == EngineChoice::Fixed(EngineKind::Mmap);
    if is_mapped || workload.cache != CachePolicy::Direct {
        return Ok(errors);
    }
    let Some(trial) = target.direct_trial()? else {
        return Ok(errors);
    };
    let answered = Arc::new(AtomicBool::new(false));
    let run = call_before_run(workload, target, patience, &answered, move |files| {
        files.first().map(|fd| trial.run(fd))
    })?;
    let Some(outcome) = run else {
        return Ok(errors);
    };
    let tried = outcome?;
    if let Some(failed) = tried.failed() {
        errors.add(failed.op, failed.errno);
    }
    target.note_direct(&tried);
    Ok(errors)
}

/// Treats the page cache as the workload wants, as far as the target allows.
pub(crate) fn set_cache(
    workload: &Workload,
    target: &mut OpenTarget,
    patience: Patience<'_>,
) -> Result<CacheUse, RunError> {
    let mmap = workload.engine == EngineChoice::Fixed(EngineKind::Mmap);
    if mmap && workload.cache == CachePolicy::Direct {
        let buffered = target.choose_cache(CachePolicy::Buffered)?;
        empty_cache(workload, target, buffered.used, patience)?;
        return Ok(CacheUse {
            asked: CachePolicy::Direct,
            why: Some("a memory mapping always goes through the page cache".to_owned()),
            ..buffered
        });
    }
    let cache = target.choose_cache(workload.cache)?;
    if workload.drops_cache_first && cache.used == CachePolicy::Cached {
        write_back_before_run(workload, target, patience)?;
        target.drop_cache();
    } else {
        empty_cache(workload, target, cache.used, patience)?;
    }
    Ok(cache)
}

/// Empties the page cache where the workload needs that. One that writes blocks in part would only
/// have to read them again, as no server does.
fn empty_cache(
    workload: &Workload,
    target: &OpenTarget,
    used: CachePolicy,
    patience: Patience<'_>,
) -> Result<(), RunError> {
    if workload.writes_partial_blocks(used) {
        write_back_before_run(workload, target, patience)
    } else if target.must_be_empty_for(used) {
        write_back_before_run(workload, target, patience)?;
        target.drop_cache();
        Ok(())
    } else {
        Ok(())
    }
}

/// Refuses block sizes, starts and strides that direct I/O or discards do not take.
pub(crate) fn check_alignment(
    workload: &Workload,
    cache: CachePolicy,
    extent: Extent,
    target: &OpenTarget,
) -> Result<(), RunError> {
    let discards = device_call(workload, target).is_some();
    if cache != CachePolicy::Direct && !discards {
        return Ok(());
    }
    let unit = target.alignment_bytes();
    let mut aligned: Vec<(&str, u64)> = Vec::new();
    for bytes in workload.block_sizes() {
        aligned.push(("block size", u64::from(bytes)));
    }
    let align_bytes = workload.shape.order.align_bytes.unwrap_or(0);
    aligned.push(("alignment of offsets", u64::from(align_bytes)));
    aligned.push(("start of the span", extent.start));
    if let Access::Stride { stride_bytes } = workload.access {
        aligned.push(("stride", stride_bytes));
    }
    for (what, bytes) in aligned {
        if bytes % u64::from(unit) != 0 {
            let path = target.identity().path.clone();
            return Err(RunError::Alignment {
                path,
                workload: workload.name.clone(),
                what,
                bytes,
                unit,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::loads::order_of_two_files;
    use diskproof_model::shape::{BlockPattern, FioSizes, ZoneStride};
    use diskproof_model::stream::Streams;

    /// The sizes of a job as fio orders it, and its gap, with and without a known pattern.
    #[test]
    fn what_writes_as_fio_have_in_common_is_verified() {
        let pattern = BlockPattern {
            bytes: vec![0x5a],
            offset_places: Vec::new(),
            files: None,
        };
        for (least_bytes, most_bytes, gap_bytes, is_unaligned, signed) in [
            (4096, 16_384, 0, false, 4096),
            (4096, 4096, 0, true, 4096),
            (4096, 8192, 0, true, 1),
            (4100, 4100, 0, false, 4100),
            (4096, 4096, 40, false, 8),
            (4096, 4096, -512, false, 512),
        ] {
            let mut order = order_of_two_files();
            order.places.gap_bytes = gap_bytes;
            order.files.count = 1;
            let sizes = FioSizes {
                least_bytes,
                most_bytes,
                split: Vec::new(),
                is_unaligned,
            };
            order.kinds.remove(0);
            order.kinds[0].align_bytes = u64::from(least_bytes);
            order.kinds[0].sizes = sizes;
            let mut workload = Workload {
                streams: Streams::with_reads(0),
                block_bytes: most_bytes,
                verify: Verify::Checksum,
                ..Workload::named("w")
            };
            workload.shape.order.fio = Some(Box::new(order));
            assert_eq!(workload.signed_bytes(), signed, "{least_bytes} {gap_bytes}");
            let why = why_unverifiable(&workload);
            assert_eq!(
                why.is_none(),
                can_be_signed(signed),
                "{least_bytes} {gap_bytes}: {why:?}"
            );
            workload.shape.content.known = Some(pattern.clone());
            assert_eq!(why_unverifiable(&workload), None);
        }
    }

    /// Such a block began inside of one that the journal knew, and was reported as corrupted.
    #[test]
    fn blocks_behind_gaps_of_a_part_of_a_block_cannot_be_verified() {
        for (zone_bytes, skip_bytes, can_be_verified) in [
            (65_536, 8192, false),
            (98_304, 65_536, false),
            (65_536, 131_072, true),
        ] {
            let mut workload = Workload {
                block_bytes: 65_536,
                verify: Verify::Checksum,
                ..Workload::named("w")
            };
            let zones = ZoneStride {
                zone_bytes,
                skip_bytes,
            };
            workload.shape.order.zone_stride = Some(zones);
            let why = why_unverifiable(&workload);
            assert_eq!(why.is_none(), can_be_verified, "{zones:?}: {why:?}");
        }
    }
}
