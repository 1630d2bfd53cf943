//! Tells how many of a job's syncs fio reports: it counts calls of fsync only, but our measurement
//! counts the calls of all kinds together.

use diskproof_model::shape::{FioOrder, FioSyncCall};

/// The call between the writes of a job in the order of fio; fsync where it has that, too.
pub(super) fn call_in_order(order: Option<&FioOrder>) -> FioSyncCall {
    let Some(order) = order else {
        return FioSyncCall::Fsync;
    };
    let mut call = FioSyncCall::Fsync;
    for sync in &order.syncs {
        if sync.call == FioSyncCall::Fsync {
            return sync.call;
        }
        call = sync.call;
    }
    call
}

/// The calls of fsync among all `syncs` between so many writes. Where a job has other calls as
/// well, their share is that of the writes at which one is due and fsync is not. Without an order
/// of fio, all syncs of a job are of one kind.
pub(super) fn fsyncs(order: Option<&FioOrder>, syncs: u64, writes: u64) -> u64 {
    let Some(order) = order else {
        return syncs;
    };
    let mut fsync_periods = Vec::new();
    let mut all_periods = Vec::new();
    for sync in &order.syncs {
        let period = u128::from(sync.writes).max(1);
        all_periods.push(period);
        if sync.call == FioSyncCall::Fsync {
            fsync_periods.push(period);
        }
    }
    if all_periods.len() < 2 {
        return syncs;
    }
    // None is due behind the last write.
    let before_last = u128::from(writes.saturating_sub(1));
    let fsyncs_due = writes_with_any(&fsync_periods, before_last);
    let all_due = writes_with_any(&all_periods, before_last);
    (u128::from(syncs) * fsyncs_due).div_ceil(all_due.max(1)) as u64
}

/// How many of the first so many writes are a multiple of any of these periods, which are above 0:
/// those of the first period and those of the others, less those of both. The work doubles with
/// each period; a job has at most one for each of fio's three calls.
fn writes_with_any(periods: &[u128], writes: u128) -> u128 {
    let Some((first, others)) = periods.split_first() else {
        return 0;
    };
    let mut common_periods = Vec::new();
    for period in others {
        common_periods.push(least_common_multiple(*first, *period));
    }
    let writes_with_both = writes_with_any(&common_periods, writes);
    writes / first + writes_with_any(others, writes) - writes_with_both
}

/// The least common multiple of two numbers above 0.
fn least_common_multiple(one: u128, other: u128) -> u128 {
    assert!(one > 0 && other > 0, "{one} and {other}");
    let (mut divisor, mut remainder) = (one, other);
    while remainder > 0 {
        (divisor, remainder) = (remainder, divisor % remainder);
    }
    one / divisor * other
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: of the writes 1 to 12, 2, 4, 6, 8, 10, 12, 3 and 9 are multiples of 2 or 3, and 5
    /// is one of 5.
    #[test]
    fn writes_with_any_period_count_once() {
        assert_eq!(writes_with_any(&[], 12), 0);
        assert_eq!(writes_with_any(&[4], 12), 3);
        assert_eq!(writes_with_any(&[2, 3], 12), 8);
        assert_eq!(writes_with_any(&[2, 3, 5], 12), 9);
        assert_eq!(writes_with_any(&[2, 4], 12), 6);
        assert_eq!(least_common_multiple(4, 6), 12);
    }
}
