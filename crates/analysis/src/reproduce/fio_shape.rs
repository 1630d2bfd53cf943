//! Writes the options of fio for the rarely used part of a workload: order, start times, content,
//! early ends and threads. Every field stands in a pattern, so that a new one does not compile
//! before somebody has decided about it.

use super::fio_job::sync_value;
use super::words::words_if;
use diskproof_model::shape::{
    AccessAdvice, Arrivals, BlockContent, EarlyEnds, LoadShape, RequestOrder, RunFollow,
    StartTimes, ThinkCount, ThinkTime, ThreadSetup, WriteContent,
};

/// The options for the shape of the load; `None` where fio has none. Each field is named, so that a
/// new one cannot be forgotten. The number of operations at each random offset is part of `--rw`.
pub(super) fn shape_options(shape: &LoadShape) -> Option<Vec<String>> {
    let LoadShape {
        order,
        starts,
        ends,
        content,
        threads,
        // A log changes no request.
        logs_requests: _,
        final_sync,
        // The depth that a search found for it is the depth of the workload.
        latency_target: _,
    } = shape;
    let mut words = order_options(order)?;
    words.extend(start_options(starts)?);
    words.extend(content_options(content)?);
    words.extend(ending_options(ends)?);
    words.extend(thread_options(threads)?);
    words.extend(words_if([(*final_sync, "--end_fsync=1")]));
    Some(words)
}

fn order_options(order: &RequestOrder) -> Option<Vec<String>> {
    let RequestOrder {
        align_bytes,
        random_run,
        // Stands with the offsets: the default of fio is to visit each block once.
        each_block_once: _,
        // Each job of fio has a map of its own: with one job that is the same.
        workers_share_map: _,
        in_order,
        // Shares are the same; fio draws each operation.
        even_mix: _,
        zone_stride,
        fio,
    } = order;
    // A job of fio is repeated by its own line.
    if !in_order.is_empty() || fio.is_some() {
        return None;
    }
    let mut words = Vec::new();
    if let Some(bytes) = align_bytes {
        words.push(format!("--blockalign={bytes}"));
    }
    let is_identical = random_run.is_some_and(|run| run.follow == RunFollow::Identical);
    words.extend(words_if([(is_identical, "--rw_sequencer=identical")]));
    if let Some(zones) = zone_stride {
        words.push("--zonemode=strided".to_owned());
        words.push(format!("--zonesize={}", zones.zone_bytes));
        words.push(format!("--zonerange={}", zones.zone_bytes));
        words.push(format!("--zoneskip={}", zones.skip_bytes));
    }
    Some(words)
}

fn start_options(starts: &StartTimes) -> Option<Vec<String>> {
    let StartTimes {
        arrivals,
        // With the rate of the workload, because jobs share it.
        kind_rate: _,
        // A line is for one workload, whose warm-up is its own.
        own_warmup: _,
        think,
        delay_ns,
        flow,
    } = starts;
    if flow.is_some() {
        return None;
    }
    let mut words = words_if([(*arrivals == Arrivals::Poisson, "--rate_process=poisson")]);
    if let Some(think) = think {
        words.extend(think_options(think));
    }
    if *delay_ns > 0 {
        words.push(format!("--startdelay={}us", delay_ns.div_ceil(1000)));
    }
    Some(words)
}

fn think_options(think: &ThinkTime) -> Vec<String> {
    let mut words = vec![format!("--thinktime={}us", think.pause_ns.div_ceil(1000))];
    if think.pause_ops > 1 {
        words.push(format!("--thinktime_blocks={}", think.pause_ops));
    }
    let is_started = think.counted == ThinkCount::Started;
    words.extend(words_if([(is_started, "--thinktime_blocks_type=issue")]));
    if let Some(busy_ns) = think.busy_ns {
        words.push(format!("--thinktime_iotime={}us", busy_ns.div_ceil(1000)));
    }
    words
}

fn content_options(content: &BlockContent) -> Option<Vec<String>> {
    let BlockContent {
        written,
        known,
        verified_times,
        verified_reads,
        is_checked_in_time,
        shares_verified,
        laid_out,
    } = content;
    // What is compared with a pattern is written with it, and a check is another load.
    let is_checked = known.is_some()
        || verified_times.is_some()
        || verified_reads.is_some()
        || *is_checked_in_time
        || *shares_verified
        || laid_out.is_some();
    if is_checked {
        return None;
    }
    Some(match written {
        Some(content) => written_options(content),
        None => Vec::new(),
    })
}

fn written_options(content: &WriteContent) -> Vec<String> {
    let mut words = Vec::new();
    match (content.filler_percent, content.filler.is_empty()) {
        (0, _) => {}
        (100.., true) => words.push("--zero_buffers".to_owned()),
        (percent, is_zeros) => {
            if !is_zeros {
                let mut digits = String::new();
                for byte in &content.filler {
                    digits.push_str(&format!("{byte:02x}"));
                }
                words.push(format!("--buffer_pattern=0x{digits}"));
            }
            if percent < 100 {
                words.push(format!("--buffer_compress_percentage={percent}"));
                words.push(format!("--buffer_compress_chunk={}", content.chunk_bytes));
            }
        }
    }
    if content.repeat_percent > 0 {
        words.push(format!("--dedupe_percentage={}", content.repeat_percent));
    }
    words.extend(words_if([
        (content.repeated_blocks > 0, "--dedupe_mode=working_set"),
        (content.shares_repeated, "--dedupe_global=1"),
        (content.keeps_buffers, "--scramble_buffers=0"),
    ]));
    words
}

fn ending_options(ends: &EarlyEnds) -> Option<Vec<String>> {
    let EarlyEnds {
        latency_limit_ns,
        // A load that the target did not serve ended early; until then it was the same.
        overload_ns: _,
        rate_floors,
        steady,
        // Decides between two limits of operations, of which fio's is the same without a warm-up.
        ops_after_warmup: _,
        // A line is for one target, and for workloads that do not fail.
        ends_group: _,
        failure_ends_group: _,
        // So do all jobs of fio.
        at_bad_block: _,
    } = ends;
    if !rate_floors.is_empty() || steady.is_some() {
        return None;
    }
    let mut words = Vec::new();
    if let Some(limit_ns) = latency_limit_ns {
        words.push(format!("--max_latency={}us", limit_ns.div_ceil(1000)));
    }
    Some(words)
}

fn thread_options(threads: &ThreadSetup) -> Option<Vec<String>> {
    let ThreadSetup {
        scheduling,
        opened_with,
        advice,
        write_life,
        // Without an option, fio's buffers are ordinary pages, too.
        ordinary_pages: _,
    } = threads;
    if scheduling.is_some() {
        return None;
    }
    let mut words = Vec::new();
    if let Some(flag) = opened_with {
        words.push(format!("--sync={}", sync_value(*flag)));
    }
    if let Some(advice) = advice {
        let value = match advice {
            AccessAdvice::Normal => "0",
            AccessAdvice::Random => "random",
            AccessAdvice::Sequential => "sequential",
        };
        words.push(format!("--fadvise_hint={value}"));
    }
    if let Some(life) = write_life {
        words.push(format!("--write_hint={}", life.as_str()));
    }
    Some(words)
}
