//! Finds a limiter with a credit in what a target moved over time: a token bucket, which lets a
//! burst pass until its credit is spent and then its base rate. It shows itself by three things
//! together. A rate falls to a plateau that is more even than a medium. Whatever else waits for the
//! limiter gets the same plateau. And since then nothing got more than the bucket can have refilled
//! meanwhile: a disk whose writes became slow still reads as fast as before.
//!
//! Thresholds without a source of their own were chosen, and are checked by `bucket/tests.rs` on
//! simulated volumes with a credit and on healthy disks.

use crate::estimate::{is_of_limiter, mean, scatter, step_down};
use diskproof_model::limiter::BurstCredit;

/// The unit in which a limiter counts its credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Reads and writes.
    Requests,
    /// Their bytes.
    Bytes,
}

impl Unit {
    /// Every unit, for searches that try each.
    pub(crate) const ALL: [Self; 2] = [Self::Requests, Self::Bytes];

    /// The unit of a recorded credit, whose field `unit` is that of its rates.
    pub(crate) fn of_credit(credit: &BurstCredit) -> Self {
        if credit.unit == Self::Bytes.per_second() {
            Self::Bytes
        } else {
            Self::Requests
        }
    }

    /// The unit in which volumes usually limit requests of this size.
    pub(crate) fn usual(block_bytes: f64) -> Self {
        if block_bytes >= LARGE_BYTES {
            Self::Bytes
        } else {
            Self::Requests
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Requests => Self::Bytes,
            Self::Bytes => Self::Requests,
        }
    }

    /// The unit of a rate, as figures spell it.
    pub(crate) fn per_second(self) -> &'static str {
        match self {
            Self::Requests => "1/s",
            Self::Bytes => "B/s",
        }
    }
}

/// The evidence about a limiter that the rate of a stretch can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Measured, and the next request waits for nothing but the disk.
    Closed,
    /// Measured, but paced, beside others, or at the edge of a slice: it only uses credit.
    Shared,
    /// Not measured: a warm-up, or the filling of a scratch file. It only uses credit.
    Unmeasured,
}

/// A time without a break in which one row ran, with what it moved in equal cells.
#[derive(Debug, Clone)]
pub(crate) struct Stretch {
    /// The number of the row; several stretches may belong to one.
    pub(crate) row: usize,
    /// Equal in rows that differ only in the number of requests in flight.
    pub(crate) family: String,
    /// Requests in flight over all workers.
    pub(crate) depth: f64,
    /// True if its row writes or syncs: a full write cache then looks like a limiter.
    pub(crate) has_writes: bool,
    /// The largest size of its requests.
    pub(crate) block_bytes: f64,
    /// Decides whether the stretch can show a base rate or only use credit.
    pub(crate) role: Role,
    /// True if the figures of its row count it: not a warm-up, nor a slice that was dropped.
    pub(crate) is_in_row: bool,
    /// In nanoseconds after the start of the run.
    pub(crate) start_ns: f64,
    /// The length of each cell, in nanoseconds.
    pub(crate) cell_ns: f64,
    /// Reads and writes of each cell.
    pub(crate) requests: Vec<f64>,
    /// Their bytes, one value for each cell.
    pub(crate) bytes: Vec<f64>,
}

impl Stretch {
    /// What its cells moved, in this unit.
    fn moved(&self, unit: Unit) -> &[f64] {
        match unit {
            Unit::Requests => &self.requests,
            Unit::Bytes => &self.bytes,
        }
    }

    /// The counts that a limiter in this unit makes even.
    fn counts(&self, unit: Unit) -> Vec<f64> {
        counts_in(unit, &self.requests, &self.bytes)
    }

    fn length_ns(&self) -> f64 {
        self.requests.len() as f64 * self.cell_ns
    }

    /// Its end, in nanoseconds after the start of the run.
    pub(crate) fn end_ns(&self) -> f64 {
        self.start_ns + self.length_ns()
    }

    /// The mean rate per second over the whole stretch.
    fn rate(&self, unit: Unit) -> f64 {
        per_second(self.moved(unit), self.cell_ns)
    }
}

/// The counts of cells that a limiter in this unit makes even: requests, or bytes as requests of
/// the mean size. Only where sizes are mixed do the two differ.
pub(crate) fn counts_in(unit: Unit, requests: &[f64], bytes: &[f64]) -> Vec<f64> {
    let request_bytes = bytes.iter().sum::<f64>() / requests.iter().sum::<f64>();
    match unit {
        Unit::Bytes if request_bytes > 0.0 => {
            bytes.iter().map(|cell| cell / request_bytes).collect()
        }
        Unit::Bytes | Unit::Requests => requests.to_vec(),
    }
}

/// The mean rate per second of cells of this length; 0 without cells.
fn per_second(cells: &[f64], cell_ns: f64) -> f64 {
    if cells.is_empty() {
        return 0.0;
    }
    mean(cells) * 1e9 / cell_ns
}

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
        rate > USES_CREDIT_ABOVE * self.base
    }
}

/// A rate above this multiple of the base uses credit.
const USES_CREDIT_ABOVE: f64 = 1.02;
/// Plateaus of one limiter differ by less than this share, or by two requests.
const LEVEL_DIFFERENCE_MAX: f64 = 0.01;
/// A plateau is even up to this standard deviation over its mean: a medium scatters more.
const EVEN_SCATTER_MAX: f64 = 0.004;
/// With fewer requests even cells may be chance.
const REQUESTS_MIN: f64 = 40.0;
/// If cells are too few for a deviation, their running count may lie in a range of so many requests
/// around a straight line.
const LINE_REQUESTS: f64 = 2.0;
/// A fall: the rate before it is at least this multiple of the plateau after it.
const FALL_MIN: f64 = 1.1;
/// The same where the earlier rate had fewer requests in flight: a disk may answer a deeper queue a
/// little slower.
const SHALLOWER_FALL_MIN: f64 = 1.3;
/// Two stretches of one rate may differ by this many standard errors of their counts.
const CHANCE_ERRORS: f64 = 3.0;
/// All plateaus together must last at least this long. Where they are all of one row, one of them
/// must.
const PLATEAUS_NS_MIN: f64 = 1e9;
/// A shorter even end of a stretch is not a plateau.
const PLATEAU_NS_MIN: f64 = 200e6;
/// A bucket may be overdrawn by what it refills in this time, because the end of its credit is
/// known to a cell only. If the time is too short, a true limiter is rejected. If it is too long, a
/// disk that recovers for a moment passes for a limiter.
const OVERDRAWN_NS: f64 = 100e6;
/// It may also be overdrawn by this many requests, because some complete together.
const OVERDRAWN_REQUESTS: f64 = 16.0;
/// A shorter stretch does not show a rate.
const RATE_NS_MIN: f64 = 100e6;

/// The even end of a stretch: the rate of the limiter once its credit is used up.
#[derive(Debug, Clone)]
struct Plateau<'a> {
    stretch: &'a Stretch,
    /// The index of the plateau's first cell.
    from: usize,
    /// The mean rate per second.
    level: f64,
    /// The counts of its cells, in requests.
    counts: Vec<f64>,
    requests: f64,
    /// The rate before it in the same stretch; `None` where all of it is even.
    before: Option<f64>,
}

impl Plateau<'_> {
    fn start_ns(&self) -> f64 {
        self.stretch.start_ns + self.from as f64 * self.stretch.cell_ns
    }

    fn length_ns(&self) -> f64 {
        self.stretch.length_ns() - self.from as f64 * self.stretch.cell_ns
    }

    /// Returns `true` if its rate is this level, but for chance.
    fn is_at(&self, level: f64) -> bool {
        (self.level / level - 1.0).abs() <= LEVEL_DIFFERENCE_MAX.max(2.0 / self.requests)
    }
}

/// The limiter with a credit that best explains what a target moved; `None` where no credit was
/// seen to end. `stretches` are in the order of time.
pub(crate) fn find_bucket(stretches: &[Stretch]) -> Option<Bucket> {
    let mut best: Option<Candidate> = None;
    for unit in Unit::ALL {
        for candidate in candidates(stretches, unit) {
            let is_better = match &best {
                None => true,
                Some(other) => candidate.support > other.support,
            };
            if is_better {
                best = Some(candidate);
            }
        }
    }
    best.map(|candidate| candidate.bucket)
}

/// A bucket that would explain some plateaus.
struct Candidate {
    bucket: Bucket,
    /// The number of rows that share its base rate, weighted by the usual unit, and the time that
    /// they had it: the bucket with the largest support is the right one.
    support: f64,
}

/// A row counts this much more in the unit that volumes usually limit for its block size: requests
/// for small blocks, bytes for large ones.
const USUAL_UNIT_WEIGHT: f64 = 1.5;
/// The plateau time, in nanoseconds, that weighs as much as one row: 1000 s. It is so long that
/// time decides between candidates with equally many rows. With a smaller value, one long plateau
/// would outweigh several rows that share another rate.
const ROW_WEIGHT_NS: f64 = 1e12;

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
            let row_weight = if Unit::usual(members[0].stretch.block_bytes) == unit {
                USUAL_UNIT_WEIGHT
            } else {
                1.0
            };
            let support = bucket.rows.len() as f64 * row_weight + total_ns / ROW_WEIGHT_NS;
            candidates.push(Candidate { bucket, support });
        }
    }
    candidates
}

/// From this block size on, bandwidth is what volumes limit.
const LARGE_BYTES: f64 = 262_144.0;

/// The even end of a stretch, or all of it; `None` where it does not end evenly.
fn plateau(stretch: &Stretch, unit: Unit) -> Option<Plateau<'_>> {
    if stretch.role != Role::Closed {
        return None;
    }
    // The last cell may not be full.
    let full_cells = stretch.requests.len().checked_sub(1)?;
    let counts = stretch.counts(unit);
    let requests = &counts[..full_cells];
    let cells_min = (PLATEAU_NS_MIN / stretch.cell_ns).ceil() as usize;
    // The step comes first: a short burst hardly makes the whole uneven.
    let step = step_down(requests, cells_min.max(2), FALL_MIN)
        .filter(|step| is_even(&requests[step.tail..], stretch.cell_ns));
    let (from, before) = match step {
        Some(step) => {
            let before = per_second(&stretch.moved(unit)[..step.head], stretch.cell_ns);
            (step.tail, Some(before))
        }
        None if is_even(requests, stretch.cell_ns) => (0, None),
        None => return None,
    };
    let plateau_requests = &requests[from..];
    // The rest of a burst after a pause may hide in the first fifth of an even whole.
    let settled = from + plateau_requests.len() / 5;
    let level = per_second(&stretch.moved(unit)[settled..full_cells], stretch.cell_ns);
    if level <= 0.0 {
        return None;
    }
    Some(Plateau {
        stretch,
        from,
        level,
        counts: counts[from..].to_vec(),
        requests: plateau_requests.iter().sum(),
        before,
    })
}

/// Returns `true` if requests completed more evenly than any medium answers them.
fn is_even(requests: &[f64], cell_ns: f64) -> bool {
    let total: f64 = requests.iter().sum();
    if total < REQUESTS_MIN || (requests.len() as f64) * cell_ns < PLATEAU_NS_MIN {
        return false;
    }
    if let Some(scatter) = scatter(requests) {
        return scatter <= EVEN_SCATTER_MAX;
    }
    let per_cell = total / requests.len() as f64;
    // The distance of the running count from a straight line.
    let mut distance: f64 = 0.0;
    let (mut lowest, mut highest) = (0.0f64, 0.0f64);
    for cell in requests {
        distance += cell - per_cell;
        lowest = lowest.min(distance);
        highest = highest.max(distance);
    }
    highest - lowest <= LINE_REQUESTS
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
    if fallen_members.is_empty() || total_ns < PLATEAUS_NS_MIN || !is_sure {
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

/// Returns `true` if the rate was higher before a plateau: earlier in its stretch, or in an earlier
/// stretch of the same family with at most as many requests in flight.
fn has_fallen(stretches: &[Stretch], plateau: &Plateau<'_>, base: f64, unit: Unit) -> bool {
    if let Some(before) = plateau.before
        && before >= FALL_MIN * base
    {
        return true;
    }
    let stretch = plateau.stretch;
    for earlier in stretches {
        let is_comparable = earlier.start_ns < stretch.start_ns
            && earlier.role == Role::Closed
            && earlier.family == stretch.family
            && earlier.length_ns() >= RATE_NS_MIN
            && earlier.depth <= stretch.depth;
        if !is_comparable {
            continue;
        }
        let fall_min = if earlier.depth < stretch.depth {
            SHALLOWER_FALL_MIN
        } else {
            FALL_MIN
        };
        // Few requests differ by chance.
        let requests: f64 = earlier.requests.iter().sum();
        let by_chance = CHANCE_ERRORS / requests.min(plateau.requests).max(1.0).sqrt();
        if earlier.rate(unit) >= (fall_min + by_chance) * base {
            return true;
        }
    }
    false
}

/// Returns `true` if a plateau is even for longer than chance explains.
fn is_long(plateau: &Plateau<'_>) -> bool {
    let counts = &plateau.counts;
    plateau.length_ns() >= PLATEAUS_NS_MIN
        && (is_of_limiter(counts) || scatter(counts).is_none() && plateau.requests >= REQUESTS_MIN)
}

/// A fall to an even rate, too shortly before the end to prove a limiter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LateFall {
    pub(crate) unit: Unit,
    /// The rate after it, in `unit` per second.
    pub(crate) after: f64,
    /// The time from it to the end, in nanoseconds.
    pub(crate) lasted_ns: f64,
    /// The rows that fell to that rate, ascending.
    pub(crate) rows: Vec<usize>,
}

/// The fall within the last second of the stretches to a rate that is as even as a limiter's, and
/// to which all that ran after it keeps; `None` where there is none, or where it has too few
/// requests to tell evenness from chance.
pub(crate) fn late_fall(stretches: &[Stretch]) -> Option<LateFall> {
    let last = stretches
        .iter()
        .filter(|stretch| stretch.role == Role::Closed)
        .max_by(|a, b| a.end_ns().total_cmp(&b.end_ns()))?;
    // Blocks of one size are equally even in both units.
    let usual = Unit::usual(last.block_bytes);
    late_fall_in(stretches, last.end_ns(), usual)
        .or_else(|| late_fall_in(stretches, last.end_ns(), usual.other()))
}

/// The late fall in counts of this unit.
fn late_fall_in(stretches: &[Stretch], end_ns: f64, unit: Unit) -> Option<LateFall> {
    let late: Vec<Plateau<'_>> = stretches
        .iter()
        .filter_map(|stretch| plateau(stretch, unit))
        .filter(|plateau| plateau.start_ns() >= end_ns - PLATEAUS_NS_MIN)
        .filter(|plateau| is_of_limiter(&plateau.counts))
        .collect();
    for first in &late {
        let level = first.level;
        let members: Vec<&Plateau<'_>> =
            late.iter().filter(|plateau| plateau.is_at(level)).collect();
        if is_late_fall(stretches, &members, level, unit) {
            let mut rows: Vec<usize> = members.iter().map(|member| member.stretch.row).collect();
            rows.sort_unstable();
            rows.dedup();
            return Some(LateFall {
                unit,
                after: level,
                lasted_ns: end_ns - first.start_ns(),
                rows,
            });
        }
    }
    None
}

/// Returns `true` if these plateaus of one level follow on a clearly higher rate of the same load,
/// and all else keeps to the level since then.
fn is_late_fall(stretches: &[Stretch], members: &[&Plateau<'_>], level: f64, unit: Unit) -> bool {
    let has_fallen = members
        .iter()
        .any(|member| has_fallen(stretches, member, level, unit));
    if !has_fallen {
        return false;
    }
    let mut same_load = stretches.to_vec();
    same_load.retain(|stretch| {
        members
            .iter()
            .any(|member| member.stretch.family == stretch.family)
    });
    // Single requests of a queue that empties are a little slower, too.
    match highest_rate(&same_load, level, unit) {
        Some(highest) => {
            highest >= SHALLOWER_FALL_MIN * level && is_paid(stretches, members, level, unit)
        }
        None => false,
    }
}

/// A cell of any stretch, in the order of time.
#[derive(Clone, Copy)]
struct PlacedCell {
    start_ns: f64,
    moved: f64,
    /// True if it belongs to a plateau, during which the bucket is empty.
    is_empty: bool,
}

/// All cells of the stretches in the order of time; those of plateaus are marked as empty.
fn cells_in_order(stretches: &[Stretch], members: &[&Plateau<'_>], unit: Unit) -> Vec<PlacedCell> {
    let mut cells = Vec::new();
    for stretch in stretches {
        let own_plateau = members
            .iter()
            .find(|plateau| std::ptr::eq(plateau.stretch, stretch));
        for (number, moved) in stretch.moved(unit).iter().enumerate() {
            cells.push(PlacedCell {
                start_ns: stretch.start_ns + number as f64 * stretch.cell_ns,
                moved: *moved,
                is_empty: own_plateau.is_some_and(|plateau| number >= plateau.from),
            });
        }
    }
    cells.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
    cells
}

/// The amount by which the tokens of a bucket are uncertain: what it refills until a cell shows its
/// end, or a few requests that complete together.
fn uncertain_amount(members: &[&Plateau<'_>], base: f64, unit: Unit) -> f64 {
    let each = match unit {
        Unit::Requests => 1.0,
        Unit::Bytes => members
            .iter()
            .map(|member| member.stretch.block_bytes)
            .fold(0.0, f64::max)
            .min(LARGE_BYTES),
    };
    (base * OVERDRAWN_NS / 1e9).max(OVERDRAWN_REQUESTS * each)
}

/// Returns `true` if a bucket that was empty at the first plateau could have paid for all that
/// passed afterwards.
fn is_paid(stretches: &[Stretch], members: &[&Plateau<'_>], base: f64, unit: Unit) -> bool {
    let allowed = uncertain_amount(members, base, unit);
    let (mut tokens, mut last_ns) = (0.0, None);
    for cell in cells_in_order(stretches, members, unit) {
        let Some(from_ns) = last_ns else {
            if cell.is_empty {
                last_ns = Some(cell.start_ns);
            }
            continue;
        };
        tokens += (cell.start_ns - from_ns) * base / 1e9;
        last_ns = Some(cell.start_ns);
        if cell.is_empty {
            tokens = 0.0;
            continue;
        }
        // The cell refills while it passes, which the next one adds.
        tokens -= cell.moved;
        if tokens < -(allowed + cell.moved) {
            return false;
        }
    }
    true
}

/// The credit that was used beyond the refill until a moment, in `unit`. The bucket is assumed to
/// be full at first.
pub(crate) fn spent_before(stretches: &[Stretch], until_ns: f64, base: f64, unit: Unit) -> f64 {
    let (mut used, mut last_ns) = (0.0f64, None);
    for cell in cells_in_order(stretches, &[], unit) {
        if cell.start_ns >= until_ns {
            break;
        }
        let passed_ns = cell.start_ns - last_ns.unwrap_or(cell.start_ns);
        used = (used - passed_ns * base / 1e9).max(0.0) + cell.moved;
        last_ns = Some(cell.start_ns);
    }
    let passed_ns = until_ns - last_ns.unwrap_or(until_ns);
    (used - passed_ns * base / 1e9).max(0.0)
}

/// A credit that was used up again after it had refilled.
struct SpentAgain {
    /// The amount that was used beyond the refill.
    used: f64,
    /// The amount that a bucket without an end would still have had.
    spilled: f64,
}

/// A refill is known well enough to be compared with what was used if it is this many times the
/// uncertain amount.
const REFILL_TIMES_MIN: f64 = 10.0;

impl SpentAgain {
    /// Returns `true` if it was used up when the refill was, of at least this amount.
    fn is_refill(&self, amount_min: f64) -> bool {
        self.used >= amount_min && self.spilled.abs() <= SPILLED_SHARE_MIN * self.used
    }
}

/// The credits that were used up after the first one, in the order of time. `members` are the
/// plateaus, during which the bucket is empty.
fn spent_again(
    stretches: &[Stretch],
    members: &[&Plateau<'_>],
    base: f64,
    unit: Unit,
) -> Vec<SpentAgain> {
    let mut spent = Vec::new();
    let mut last_ns = None;
    let (mut tokens, mut used) = (0.0, 0.0f64);
    for cell in cells_in_order(stretches, members, unit) {
        let Some(from_ns) = last_ns else {
            if cell.is_empty {
                last_ns = Some(cell.start_ns);
            }
            continue;
        };
        let refilled = (cell.start_ns - from_ns) * base / 1e9;
        last_ns = Some(cell.start_ns);
        tokens += refilled;
        used = (used - refilled).max(0.0);
        if !cell.is_empty {
            tokens -= cell.moved;
            used += cell.moved;
            continue;
        }
        if used > 0.0 {
            spent.push(SpentAgain {
                used,
                spilled: tokens,
            });
        }
        (tokens, used) = (0.0, 0.0);
    }
    spent
}

/// A bucket has spilled, and so was full, if at least this share of what was used then is missing
/// from its refill: less may be the error of the base rate.
const SPILLED_SHARE_MIN: f64 = 0.1;
/// Amounts that differ by less than this share are the same.
const SAME_AMOUNT_SHARE: f64 = 0.03;

/// The size of a bucket, as far as the run shows it.
struct CreditSize {
    amount: f64,
    /// True if the bucket was full before this amount was used, so that it holds no more.
    is_whole: bool,
}

/// The size of a bucket that was used up first at this amount, and then at others. Whether it was
/// full at the start of the run is not known. A bucket that spilled before it was used up again
/// was full, unless that gave less than it had at first: something else used the credit, then.
fn size_of_credit(first_amount: f64, later: &[SpentAgain]) -> CreditSize {
    let mut size = CreditSize {
        amount: first_amount,
        is_whole: false,
    };
    for spent in later {
        let was_full = spent.spilled >= SPILLED_SHARE_MIN * spent.used;
        if spent.used > (1.0 + SAME_AMOUNT_SHARE) * size.amount {
            size.amount = spent.used;
            size.is_whole = was_full;
        } else if spent.used >= (1.0 - SAME_AMOUNT_SHARE) * size.amount {
            size.is_whole |= was_full;
        }
    }
    size
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

/// The highest rate above the base, of a stretch or of its part before its plateau; `None` where no
/// rate is clearly above it.
fn highest_rate(stretches: &[Stretch], base: f64, unit: Unit) -> Option<f64> {
    let mut highest = 0.0f64;
    for stretch in stretches {
        if stretch.role != Role::Closed {
            continue;
        }
        let cells = stretch.moved(unit);
        let cells_min = (RATE_NS_MIN / stretch.cell_ns).ceil().max(1.0) as usize;
        let fast_cells = cells
            .iter()
            .take_while(|cell| **cell * 1e9 / stretch.cell_ns > (USES_CREDIT_ABOVE * base))
            .count();
        let length = fast_cells.max(cells_min).min(cells.len());
        if length >= cells_min {
            highest = highest.max(per_second(&cells[..length], stretch.cell_ns));
        }
        highest = highest.max(match plateau(stretch, unit) {
            Some(plateau) => plateau.before.unwrap_or(0.0),
            None => stretch.rate(unit),
        });
    }
    if highest >= FALL_MIN * base {
        Some(highest)
    } else {
        None
    }
}

/// A rate that was kept without a pause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HeldRate {
    /// In the unit of the caller's question, per second.
    pub(crate) rate: f64,
    /// The time for which it was kept.
    pub(crate) held_ns: f64,
}

/// A rate counts as kept while every stretch reaches at least this share of it. Chosen: a medium's
/// rate varies by 1 to 10 %.
const HELD_SHARE: f64 = 0.9;
/// Two stretches follow each other without a pause if at most this time passes between them.
const PAUSE_NS_MAX: f64 = 50e6;

/// The highest rate of a stretch, and the longest time without a pause for which about that rate
/// was kept. Only such a time excludes a credit, because slower times refill it.
pub(crate) fn held_rate(stretches: &[Stretch], unit: Unit) -> Option<HeldRate> {
    let rate = stretches
        .iter()
        .filter(|stretch| stretch.role != Role::Unmeasured && stretch.length_ns() >= RATE_NS_MIN)
        .map(|stretch| stretch.rate(unit))
        .fold(0.0, f64::max);
    if rate <= 0.0 {
        return None;
    }
    // A slower stretch between two others makes a pause.
    let mut fast: Vec<&Stretch> = stretches
        .iter()
        .filter(|stretch| stretch.rate(unit) >= HELD_SHARE * rate)
        .collect();
    fast.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
    let (mut longest_ns, mut begin_ns, mut end_ns) = (0.0f64, 0.0, f64::NEG_INFINITY);
    for stretch in fast {
        if stretch.start_ns - end_ns > PAUSE_NS_MAX {
            begin_ns = stretch.start_ns;
        }
        end_ns = end_ns.max(stretch.end_ns());
        longest_ns = longest_ns.max(end_ns - begin_ns);
    }
    Some(HeldRate {
        rate,
        held_ns: longest_ns,
    })
}

/// A row is compared with the base in batches of this length.
const BATCH_NS: f64 = 100e6;
/// The part of a row after its last burst counts from this length on.
const SUSTAINED_NS_MIN: f64 = 500e6;

/// The measured time of a row after which it used no credit, in nanoseconds. From there on its
/// figures are those of the base. `None` where it never used any, or where too little is left.
pub(crate) fn sustained_from_ns(stretches: &[Stretch], row: usize, bucket: &Bucket) -> Option<f64> {
    let (mut measured_ns, mut burst_end_ns) = (0.0, None);
    for stretch in stretches {
        if stretch.row != row || !stretch.is_in_row {
            continue;
        }
        let cells = stretch.moved(bucket.unit);
        let batch_cells = (BATCH_NS / stretch.cell_ns).ceil().max(1.0) as usize;
        // A batch may hold two requests more by the place of its ends alone.
        let rate_of_request = request_amount(stretch, bucket.unit) * 1e9 / BATCH_NS;
        let rate_max = USES_CREDIT_ABOVE * bucket.base + 2.0 * rate_of_request;
        for (number, batch) in cells.chunks(batch_cells).enumerate() {
            let is_whole = batch.len() == batch_cells;
            if is_whole && per_second(batch, stretch.cell_ns) > rate_max {
                let end_cell = (number + 1) * batch_cells;
                burst_end_ns = Some(measured_ns + end_cell as f64 * stretch.cell_ns);
            }
        }
        measured_ns += stretch.length_ns();
    }
    let burst_end_ns = burst_end_ns?;
    if measured_ns - burst_end_ns < SUSTAINED_NS_MIN {
        return None;
    }
    Some(burst_end_ns)
}

/// The amount of one request in the unit: 1, or its bytes.
fn request_amount(stretch: &Stretch, unit: Unit) -> f64 {
    match unit {
        Unit::Requests => 1.0,
        Unit::Bytes => stretch.block_bytes,
    }
}

#[cfg(test)]
mod tests;
