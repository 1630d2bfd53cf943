//! Finds the moment after which a row ran at the base rate of a limiter, so that its figures can be
//! those of the base.

use super::bucket::Bucket;
use super::plateau::CREDIT_RATE_RATIO;
use super::stretch::{Stretch, per_second, request_amount};

/// A row is compared with the base in batches of this length.
const BATCH_NS: f64 = 100e6;
/// The part of a row after its last burst counts from this length on.
const SUSTAINED_NS_MIN: f64 = 500e6;
/// What short pauses refilled may add this share to the rate after a burst: plateaus of one limiter
/// differ by as much. Chosen, not measured.
const REFILLED_SHARE_MAX: f64 = 0.01;
/// The end of a burst is known to a batch, and the rest of its credit may pass in the next one.
const OVERDRAWN_BATCHES: f64 = 1.0;

/// A part of a row, about [`BATCH_NS`] long.
struct Batch {
    /// Its start by the clock of the run.
    start_ns: f64,
    /// Its end in the measured time of the row.
    end_ns: f64,
    length_ns: f64,
    moved: f64,
    /// True if its rate is above the base for more than the place of its ends explains.
    is_high: bool,
}

/// The measured time of a row after which it used no credit, in nanoseconds. From there on its
/// figures are those of the base. `None` where it never used any, or where too little is left.
///
/// A standstill refills a little credit, and so does the gap between two slices; what passes at
/// once after it is no burst, but the base rate that came late. See [`is_at_base`].
pub(crate) fn sustained_from_ns(stretches: &[Stretch], row: usize, bucket: &Bucket) -> Option<f64> {
    let batches = batches_of_row(stretches, row, bucket);
    let row_end_ns = batches.last()?.end_ns;
    for (number, batch) in batches.iter().enumerate() {
        let later = &batches[number + 1..];
        let ends_burst = batch.is_high && !later.first().is_some_and(|next| next.is_high);
        if ends_burst && is_at_base(batch, later, bucket) {
            let is_long = row_end_ns - batch.end_ns >= SUSTAINED_NS_MIN;
            return is_long.then_some(batch.end_ns);
        }
    }
    None
}

/// Returns `true` if all that passed after a burst is the base rate: what was above it was refilled
/// since the burst, and is too little to change the rate.
fn is_at_base(burst_end: &Batch, later: &[Batch], bucket: &Bucket) -> bool {
    let per_ns = bucket.base / 1e9;
    let allowed = OVERDRAWN_BATCHES * bucket.burst * BATCH_NS / 1e9;
    let mut last_ns = burst_end.start_ns + burst_end.length_ns;
    let (mut tokens, mut above, mut moved) = (0.0, 0.0, 0.0);
    for batch in later {
        let batch_end_ns = batch.start_ns + batch.length_ns;
        tokens += (batch_end_ns - last_ns) * per_ns - batch.moved;
        last_ns = batch_end_ns;
        moved += batch.moved;
        if batch.is_high {
            above += batch.moved - batch.length_ns * per_ns;
            if tokens < -allowed {
                return false;
            }
        } else {
            // The bucket is empty, whatever small error of the base rate has added up.
            tokens = tokens.max(0.0);
        }
    }
    above <= REFILLED_SHARE_MAX * moved
}

/// The batches of a row, in the order of time.
fn batches_of_row(stretches: &[Stretch], row: usize, bucket: &Bucket) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut measured_ns = 0.0;
    for stretch in stretches {
        if stretch.row != row || !stretch.is_in_row {
            continue;
        }
        let batch_cells = (BATCH_NS / stretch.cell_ns).ceil().max(1.0) as usize;
        // A batch may hold two requests more by the place of its ends alone.
        let rate_of_request = request_amount(stretch, bucket.unit) * 1e9 / BATCH_NS;
        let rate_max = CREDIT_RATE_RATIO * bucket.base + 2.0 * rate_of_request;
        let mut cells_before = 0;
        for cells in stretch.moved(bucket.unit).chunks(batch_cells) {
            let start_ns = cells_before as f64 * stretch.cell_ns;
            let length_ns = cells.len() as f64 * stretch.cell_ns;
            cells_before += cells.len();
            batches.push(Batch {
                start_ns: stretch.start_ns + start_ns,
                end_ns: measured_ns + start_ns + length_ns,
                length_ns,
                moved: cells.iter().sum(),
                is_high: cells.len() == batch_cells
                    && per_second(cells, stretch.cell_ns) > rate_max,
            });
        }
        measured_ns += stretch.length_ns();
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::stretch::{Role, Unit};

    const CELL_NS: f64 = 1e7;

    /// A volume of 1000/s, and 3000/s while 400 requests of credit last.
    fn bucket() -> Bucket {
        Bucket {
            unit: Unit::Requests,
            base: 1000.0,
            burst: 3000.0,
            credit: 400.0,
            is_whole: false,
            has_refilled: false,
            spent_ns: 20.0 * CELL_NS,
            rows: vec![0],
            has_reads: true,
        }
    }

    fn stretch_from(start_ns: f64, cells: &[f64]) -> Stretch {
        Stretch {
            row: 0,
            family: "reads".to_owned(),
            depth: 32.0,
            has_writes: false,
            block_bytes: 8192.0,
            role: Role::Closed,
            is_in_row: true,
            start_ns,
            cell_ns: CELL_NS,
            requests: cells.to_vec(),
            bytes: cells.iter().map(|cell| cell * 8192.0).collect(),
        }
    }

    /// Twenty cells above the base, then sixty at it: the row used no credit after 200 ms.
    #[test]
    fn row_is_sustained_after_its_last_burst() {
        let mut cells = vec![30.0; 20];
        cells.extend([10.0; 60]);
        let stretches = [stretch_from(0.0, &cells)];
        let from_ns = sustained_from_ns(&stretches, 0, &bucket()).unwrap();
        assert_eq!(from_ns, 20.0 * CELL_NS);
        assert_eq!(sustained_from_ns(&stretches, 1, &bucket()), None);
        // Less than half a second at the base is not enough.
        let short = [stretch_from(0.0, &cells[..60])];
        assert_eq!(sustained_from_ns(&short, 0, &bucket()), None);
    }

    /// Two seconds of burst, then twenty rounds of five seconds with a gap between them, in each of
    /// which this many requests pass at once first.
    fn rounds(gap_ns: f64, at_once: usize) -> Vec<Stretch> {
        let mut stretches = vec![stretch_from(0.0, &[30.0; 200])];
        let mut start_ns = 200.0 * CELL_NS;
        for _ in 0..20 {
            let mut cells = vec![10.0; 500];
            for cell in &mut cells[..at_once / 20] {
                *cell += 20.0;
            }
            stretches.push(stretch_from(start_ns + gap_ns, &cells));
            start_ns += gap_ns + 500.0 * CELL_NS;
        }
        stretches
    }

    /// The gap of 40 ms refills 40 requests, which pass in the first 20 ms of a round: the rate is
    /// the base since the burst and the first of them, not since the last.
    #[test]
    fn gaps_between_rounds_are_no_burst() {
        let refilled = rounds(40e6, 40);
        let from_ns = sustained_from_ns(&refilled, 0, &bucket());
        assert_eq!(from_ns, Some(210.0 * CELL_NS));
        // A gap of 300 ms refills 300, a share of 6 % of a round: the figures begin after the last.
        let pauses = rounds(300e6, 300);
        let last_ns = (200.0 + 19.0 * 500.0) * CELL_NS;
        let from_ns = sustained_from_ns(&pauses, 0, &bucket()).unwrap();
        assert!((from_ns - last_ns - 2e8).abs() < 1e8, "{from_ns}");
    }

    /// A dip in a burst does not end it: what passes after it was not refilled since.
    #[test]
    fn dip_in_a_burst_does_not_end_it() {
        let mut cells = vec![30.0; 200];
        cells[150..160].fill(5.0);
        cells.extend(vec![10.0; 50_000]);
        let stretches = [stretch_from(0.0, &cells)];
        let from_ns = sustained_from_ns(&stretches, 0, &bucket());
        assert_eq!(from_ns, Some(200.0 * CELL_NS));
    }
}
