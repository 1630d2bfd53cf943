//! Finds a limiter with a credit in what a target moved over time: a token bucket, which lets a
//! burst pass until its credit is spent and then its base rate. It shows itself by three things
//! together. A rate falls to a plateau that is more even than a medium. Whatever else waits for the
//! limiter gets the same plateau. And since then nothing got more than the bucket can have refilled
//! meanwhile: a disk whose writes became slow still reads as fast as before.

use super::credit::{
    REFILL_TIMES_MIN, cells_in_order, is_paid, size_of_credit, spent_again, spent_before,
    uncertain_amount,
};
use super::plateau::{
    CREDIT_RATE_RATIO, LEVEL_DIFFERENCE_MAX, Plateau, TOTAL_PLATEAU_NS_MIN, has_fallen,
    highest_rate, is_long, plateau,
};
use super::stretch::{Role, Stretch, Unit};

/// A limiter whose credit ended during the run. Amounts are in `unit`, rates in `unit` per second.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bucket {
    /// The unit of the limit.
    pub(crate) unit: Unit,
    /// The rate that is allowed without credit.
    pub(crate) base: f64,
    /// The highest rate while there was credit.
    pub(crate) burst: f64,
    /// The credit that was used, beyond what was refilled meanwhile.
    pub(crate) credit: f64,
    /// True if the bucket was seen to be full before it was used up, so that it holds no more.
    pub(crate) is_whole: bool,
    /// True if it was used up again at the moment that its refill predicts.
    pub(crate) has_refilled: bool,
    /// The moment at which it was first used up, in nanoseconds after the start of the run.
    pub(crate) spent_ns: f64,
    /// The rows that ran at the base rate, ascending.
    pub(crate) rows: Vec<usize>,
    /// True if one of these rows only reads. Where none does, a full write cache looks the same.
    pub(crate) has_reads: bool,
}

impl Bucket {
    /// The time for which a full credit allows the highest rate, in nanoseconds.
    pub(crate) fn burst_ns(&self) -> f64 {
        self.credit / (self.burst - self.base) * 1e9
    }

    /// The time in which the credit refills while nothing is moved, in nanoseconds.
    pub(crate) fn refill_ns(&self) -> f64 {
        self.credit / self.base * 1e9
    }

    /// Returns `true` if a rate is above the base for more than counting and the machine explain.
    pub(crate) fn is_above(&self, rate: f64) -> bool {
        rate > CREDIT_RATE_RATIO * self.base
    }
}

/// A bucket that would explain some plateaus.
struct Candidate {
    bucket: Bucket,
    /// The blocks of the rows that share its base rate.
    blocks: BlockSizes,
    /// The number of rows that share its base rate, more in the usual unit, and the time of its
    /// plateaus: the bucket with the largest support is the right one.
    support: f64,
}

/// The smallest and the largest block size of some rows, in bytes.
#[derive(Clone, Copy)]
struct BlockSizes {
    smallest: f64,
    largest: f64,
}

impl BlockSizes {
    fn of_rows(rows: &[RowAtBase]) -> Self {
        let mut sizes = Self {
            smallest: f64::INFINITY,
            largest: 0.0,
        };
        for row in rows {
            sizes.smallest = sizes.smallest.min(row.block_bytes);
            sizes.largest = sizes.largest.max(row.block_bytes);
        }
        sizes
    }

    /// The unit that volumes usually limit for all of them; `None` where it is not the same.
    fn usual_unit(self) -> Option<Unit> {
        let unit = Unit::usual(self.smallest);
        if unit == Unit::usual(self.largest) {
            Some(unit)
        } else {
            None
        }
    }
}

/// Rows count so much more, together, in the unit that volumes usually limit for their block sizes:
/// requests for small blocks, bytes for large ones. Rows of one size agree in both units alike, so
/// this decides between them. It is less than one row: where rows of other sizes have the same base
/// rate, too, their number decides.
const USUAL_UNIT_ROWS: f64 = 0.5;
/// The plateau time, in nanoseconds, that weighs as much as one row: 1000 s. It is so long that
/// time decides between candidates with equally many rows. With a smaller value, one long plateau
/// would outweigh several rows that share another rate.
const ROW_WEIGHT_NS: f64 = 1e12;

/// The limiter with a credit that best explains what a target moved; `None` where no credit was
/// seen to end. `stretches` are in the order of time.
pub(crate) fn find_bucket(stretches: &[Stretch]) -> Option<Bucket> {
    find_buckets(stretches).into_iter().next()
}

/// The limiters with a credit that explain what a target moved, at most one in each unit, the best
/// one first. A volume may limit requests and bytes: small blocks then wait for the one, and large
/// blocks for the other.
pub(crate) fn find_buckets(stretches: &[Stretch]) -> Vec<Bucket> {
    let mut all = Vec::new();
    for unit in Unit::ALL {
        all.extend(candidates(stretches, unit));
    }
    let Some(first) = most_supported(all.iter()) else {
        return Vec::new();
    };
    let mut buckets = vec![first.bucket.clone()];
    let beside = all.iter().filter(|other| are_beside(first, other));
    if let Some(second) = most_supported(beside) {
        buckets.push(second.bucket.clone());
    }
    buckets
}

/// The candidate with the largest support, of several the first.
fn most_supported<'a>(candidates: impl Iterator<Item = &'a Candidate>) -> Option<&'a Candidate> {
    let mut best: Option<&Candidate> = None;
    for candidate in candidates {
        let is_better = match best {
            None => true,
            Some(other) => candidate.support > other.support,
        };
        if is_better {
            best = Some(candidate);
        }
    }
    best
}

/// Returns `true` if one volume can have both limits: the rows of each have the block sizes that
/// wait for it and not for the other one. Two statements on one size are about one limiter.
fn are_beside(one: &Candidate, other: &Candidate) -> bool {
    let (requests, bytes) = match (one.bucket.unit, other.bucket.unit) {
        (Unit::Requests, Unit::Bytes) => (one, other),
        (Unit::Bytes, Unit::Requests) => (other, one),
        (Unit::Requests, Unit::Requests) | (Unit::Bytes, Unit::Bytes) => return false,
    };
    // Blocks of this size wait for both limits alike.
    let crossing_bytes = bytes.bucket.base / requests.bucket.base;
    requests.blocks.largest < crossing_bytes && crossing_bytes < bytes.blocks.smallest
}

/// A bucket for each base rate that the plateaus allow.
fn candidates(stretches: &[Stretch], unit: Unit) -> Vec<Candidate> {
    let plateaus: Vec<Plateau<'_>> = stretches
        .iter()
        .filter_map(|stretch| plateau(stretch, unit))
        .collect();
    let mut levels: Vec<f64> = plateaus.iter().map(|plateau| plateau.level).collect();
    levels.sort_by(f64::total_cmp);
    let mut candidates = Vec::new();
    let mut level_before = 0.0;
    for level in levels {
        if level <= level_before * (1.0 + LEVEL_DIFFERENCE_MAX) {
            continue;
        }
        level_before = level;
        let members: Vec<&Plateau<'_>> = plateaus
            .iter()
            .filter(|plateau| plateau.is_at(level))
            .collect();
        if let Some(bucket) = bucket_of_plateaus(stretches, &members, unit) {
            let total_ns: f64 = members.iter().map(|member| member.length_ns()).sum();
            let at_base = rows_at_base(stretches, &bucket);
            if lacks_usual_rows(stretches, &at_base, unit) {
                continue;
            }
            let blocks = BlockSizes::of_rows(&at_base);
            let usual_rows = if blocks.usual_unit() == Some(unit) {
                USUAL_UNIT_ROWS
            } else {
                0.0
            };
            let support = at_base.len() as f64 + usual_rows + total_ns / ROW_WEIGHT_NS;
            candidates.push(Candidate {
                bucket,
                blocks,
                support,
            });
        }
    }
    candidates
}

/// Returns `true` if the run has rows of the block sizes that volumes usually limit in this unit,
/// and none of them is at the base: small blocks at an even rate of their own limit in requests
/// would pass for the base of a credit that only streams have used.
fn lacks_usual_rows(stretches: &[Stretch], at_base: &[RowAtBase], unit: Unit) -> bool {
    let has_usual = stretches
        .iter()
        .any(|stretch| stretch.role == Role::Closed && Unit::usual(stretch.block_bytes) == unit);
    let is_usual_at_base = at_base
        .iter()
        .any(|row| Unit::usual(row.block_bytes) == unit);
    has_usual && !is_usual_at_base
}

/// A row that shares the base rate of a bucket, with what the ends of its stretches moved.
struct RowAtBase {
    row: usize,
    block_bytes: f64,
    /// In the unit of the bucket.
    moved: f64,
    requests: f64,
    length_ns: f64,
}

impl RowAtBase {
    /// Returns `true` if its mean rate is that of the bucket, but for the ends of its time.
    fn is_at(&self, base: f64) -> bool {
        if self.requests < AT_BASE_REQUESTS_MIN {
            return false;
        }
        let error = LEVEL_DIFFERENCE_MAX.max(END_REQUESTS / self.requests);
        let rate = self.moved * 1e9 / self.length_ns;
        (rate / base - 1.0).abs() <= error
    }
}

/// The rates of a few requests differ by this many of them through the ends of their time alone.
const END_REQUESTS: f64 = 2.0;
/// With fewer requests almost any rate would count as that of the base. With these it is known to a
/// tenth. Chosen, not measured.
const AT_BASE_REQUESTS_MIN: f64 = 20.0;

/// The rows that share the base rate once the credit is used up: those with a plateau, and those
/// with too few requests for one, as large blocks have, that end at this rate. Credit that was
/// refilled is used at the begin of a stretch, so its second half counts.
fn rows_at_base(stretches: &[Stretch], bucket: &Bucket) -> Vec<RowAtBase> {
    let mut rows: Vec<RowAtBase> = Vec::new();
    for stretch in stretches {
        // The stretch in which the credit ended is one of a plateau.
        let has_plateau = bucket.rows.contains(&stretch.row);
        let is_after = stretch.start_ns >= bucket.spent_ns
            || (has_plateau && stretch.end_ns() > bucket.spent_ns);
        if stretch.role != Role::Closed || !is_after {
            continue;
        }
        let half = stretch.requests.len() / 2;
        let end = RowAtBase {
            row: stretch.row,
            block_bytes: stretch.block_bytes,
            moved: stretch.moved(bucket.unit)[half..].iter().sum(),
            requests: stretch.requests[half..].iter().sum(),
            length_ns: (stretch.requests.len() - half) as f64 * stretch.cell_ns,
        };
        match rows.iter_mut().find(|row| row.row == stretch.row) {
            Some(row) => {
                row.moved += end.moved;
                row.requests += end.requests;
                row.length_ns += end.length_ns;
            }
            None => rows.push(end),
        }
    }
    rows.retain(|row| bucket.rows.contains(&row.row) || row.is_at(bucket.base));
    rows
}

/// The bucket whose base rate these plateaus show; `None` where they do not prove a limiter.
fn bucket_of_plateaus(
    stretches: &[Stretch],
    members: &[&Plateau<'_>],
    unit: Unit,
) -> Option<Bucket> {
    let total_ns: f64 = members.iter().map(|member| member.length_ns()).sum();
    let base = members
        .iter()
        .map(|member| member.level * member.length_ns())
        .sum::<f64>()
        / total_ns;
    let fallen_members: Vec<&&Plateau<'_>> = members
        .iter()
        .filter(|member| has_fallen(stretches, member, base, unit))
        .collect();
    let mut rows: Vec<usize> = members.iter().map(|member| member.stretch.row).collect();
    rows.sort_unstable();
    rows.dedup();
    let is_sure = rows.len() > 1 || fallen_members.iter().any(|member| is_long(member));
    if fallen_members.is_empty() || total_ns < TOTAL_PLATEAU_NS_MIN || !is_sure {
        return None;
    }
    let spent_ns = members
        .iter()
        .map(|member| member.start_ns())
        .fold(f64::INFINITY, f64::min);
    if !is_paid(stretches, members, base, unit) {
        return None;
    }
    let burst = highest_rate(stretches, base, unit)?;
    let first_amount = spent_before(stretches, spent_ns, base, unit);
    let uncertain = uncertain_amount(members, base, unit);
    // A rate that was a little higher for a moment did not spend a credit.
    if first_amount <= uncertain {
        return None;
    }
    let later = spent_again(stretches, members, base, unit);
    let size = size_of_credit(first_amount, &later);
    let refill_min = REFILL_TIMES_MIN * uncertain;
    Some(Bucket {
        unit,
        base,
        burst,
        credit: size.amount,
        is_whole: size.is_whole,
        has_refilled: later.iter().any(|spent| spent.is_refill(refill_min)),
        spent_ns,
        rows,
        has_reads: members.iter().any(|member| !member.stretch.has_writes),
    })
}

/// The most credit that can have been refilled by a moment. The bucket was empty when it was first
/// used up.
pub(crate) fn tokens(stretches: &[Stretch], bucket: &Bucket, now_ns: f64) -> f64 {
    let mut members = Vec::new();
    for stretch in stretches {
        if let Some(plateau) = plateau(stretch, bucket.unit)
            && plateau.is_at(bucket.base)
        {
            members.push(plateau);
        }
    }
    let members: Vec<&Plateau<'_>> = members.iter().collect();
    let (mut tokens, mut last_ns) = (0.0f64, bucket.spent_ns);
    for cell in cells_in_order(stretches, &members, bucket.unit) {
        if cell.start_ns < last_ns {
            continue;
        }
        tokens += (cell.start_ns - last_ns) * bucket.base / 1e9;
        last_ns = cell.start_ns;
        tokens = if cell.is_empty {
            0.0
        } else {
            tokens - cell.moved
        };
        tokens = tokens.max(0.0);
    }
    tokens += (now_ns - last_ns).max(0.0) * bucket.base / 1e9;
    tokens.min(bucket.credit)
}

#[cfg(test)]
mod tests;
