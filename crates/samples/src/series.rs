//! Counts events over time in cells of equal length, thinned by merging neighbours so that memory
//! stays constant and no maximum is lost.

use crate::packed::{NUMBER_MAX, Packed, Packer, Unpacker};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most cells of a series that is read back. A packed text of some bytes could claim any
/// number, and memory is taken for all of them.
const CELLS_MAX: u64 = 8192;

/// One cell of a series: a stretch of time with the sums over its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
pub struct Cell {
    /// Operations that completed in the cell.
    pub ops: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Operations that failed in the cell.
    pub errors: u64,
    /// The longest latency among them, in nanoseconds.
    pub latency_max_ns: u64,
    /// Latencies of these events, summed, in nanoseconds; not in records.
    #[serde(skip)]
    pub latency_sum_ns: u64,
}

impl Cell {
    /// One operation that succeeded.
    pub fn single(bytes: u64, latency_ns: u64) -> Self {
        Self {
            ops: 1,
            bytes,
            errors: 0,
            latency_max_ns: latency_ns,
            latency_sum_ns: latency_ns,
        }
    }

    /// Adds another cell's events to this one.
    #[inline]
    pub fn merge(&mut self, other: &Self) {
        // Records also come from files, whose figures may be of any size.
        self.ops = self.ops.saturating_add(other.ops);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.errors = self.errors.saturating_add(other.errors);
        self.latency_max_ns = self.latency_max_ns.max(other.latency_max_ns);
        self.latency_sum_ns = self.latency_sum_ns.saturating_add(other.latency_sum_ns);
    }

    /// The events of the first `part_ns` of the `whole_ns` that the cell lasts, as if they were
    /// even. Bytes and latencies are those of whole operations.
    fn part(&self, part_ns: u128, whole_ns: u128) -> Self {
        let ops = scaled(self.ops, part_ns, whole_ns);
        // Of a cell without operations, what remains is shared by time.
        let (part, whole) = match self.ops {
            0 => (part_ns, whole_ns),
            all => (u128::from(ops), u128::from(all)),
        };
        Self {
            ops,
            bytes: scaled(self.bytes, part, whole),
            errors: scaled(self.errors, part_ns, whole_ns),
            // On the side that has more of the operations, and the odd one of two halves.
            latency_max_ns: if part_ns * 2 >= whole_ns {
                self.latency_max_ns
            } else {
                0
            },
            latency_sum_ns: scaled(self.latency_sum_ns, part, whole),
        }
    }

    /// The events of the cell that are not in this [part](Self::part) of it.
    fn rest(&self, part: &Self) -> Self {
        Self {
            ops: self.ops - part.ops,
            bytes: self.bytes - part.bytes,
            errors: self.errors - part.errors,
            latency_max_ns: if part.latency_max_ns == 0 {
                self.latency_max_ns
            } else {
                0
            },
            latency_sum_ns: self.latency_sum_ns - part.latency_sum_ns,
        }
    }

    /// The events of all these cells.
    fn sum<'a>(cells: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for cell in cells {
            sum.merge(cell);
        }
        sum
    }
}

/// `amount * part / whole`, rounded to the nearest whole number; `part` is at most `whole`.
fn scaled(amount: u64, part: u128, whole: u128) -> u64 {
    ((u128::from(amount) * part + whole / 2) / whole) as u64
}

/// Events over time. JSON has a list per kind of number, which is less than half as long as cells
/// with names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Columns", into = "Columns")]
pub struct TimeSeries {
    /// Start of the first cell, in nanoseconds after the start of the measured time.
    pub start_ns: u64,
    /// Length of each cell in nanoseconds.
    pub interval_ns: u64,
    /// The cells, without gaps.
    pub cells: Vec<Cell>,
}

impl TimeSeries {
    /// An empty series with cells of `interval_ns`.
    pub fn new(interval_ns: u64) -> Self {
        Self {
            start_ns: 0,
            interval_ns: interval_ns.max(1),
            cells: Vec::new(),
        }
    }

    /// Adds a cell's events at the time `at_ns` after the start. When the series would exceed
    /// `cells_max`, neighbours are merged and the interval doubles.
    #[inline]
    pub fn add(&mut self, at_ns: u64, cell: &Cell, cells_max: usize) {
        while (at_ns / self.interval_ns) as usize >= cells_max.max(2) {
            *self = self.coarser(2);
        }
        let index = (at_ns / self.interval_ns) as usize;
        if index >= self.cells.len() {
            self.cells.resize(index + 1, Cell::default());
        }
        self.cells[index].merge(cell);
    }

    /// Adds another series over the same time. The cells of the sum are as long as the longer ones
    /// of both. Where that is no multiple of the shorter ones, those that cross a border are
    /// divided there, see `divided_into`.
    #[inline]
    pub fn merge(&mut self, other: &Self) {
        let longer_ns = self.interval_ns.max(other.interval_ns);
        if self.interval_ns < longer_ns {
            *self = self.with_interval(longer_ns);
        }
        let other = other.with_interval(longer_ns);
        if other.cells.len() > self.cells.len() {
            self.cells.resize(other.cells.len(), Cell::default());
        }
        for (mine, theirs) in self.cells.iter_mut().zip(&other.cells) {
            mine.merge(theirs);
        }
    }

    /// Returns the same series in cells of `interval_ns`, which are no shorter than its own.
    fn with_interval(&self, interval_ns: u64) -> Self {
        if interval_ns == self.interval_ns {
            self.clone()
        } else if interval_ns.is_multiple_of(self.interval_ns) {
            self.coarser((interval_ns / self.interval_ns) as usize)
        } else {
            self.divided_into(interval_ns)
        }
    }

    /// Returns the same series in cells of `interval_ns`, which are longer than its own and no
    /// multiple of them. A cell that crosses the border of two new ones is divided by time, as if
    /// its events were even. Its longest latency goes where the larger part of it lies.
    fn divided_into(&self, interval_ns: u64) -> Self {
        let own_ns = u128::from(self.interval_ns);
        let new_ns = u128::from(interval_ns);
        let mut divided = Self::new(interval_ns);
        divided.start_ns = self.start_ns;
        for (index, cell) in self.cells.iter().enumerate() {
            let cell_start_ns = index as u128 * own_ns;
            let new_index = (cell_start_ns / new_ns) as usize;
            let border_ns = (new_index as u128 + 1) * new_ns;
            let before_ns = own_ns.min(border_ns - cell_start_ns);
            let before = cell.part(before_ns, own_ns);
            divided.cell_mut(new_index).merge(&before);
            if before_ns < own_ns {
                divided.cell_mut(new_index + 1).merge(&cell.rest(&before));
            }
        }
        divided
    }

    /// The cell with this number, which is added where the series ends before it.
    fn cell_mut(&mut self, index: usize) -> &mut Cell {
        if index >= self.cells.len() {
            self.cells.resize(index + 1, Cell::default());
        }
        &mut self.cells[index]
    }

    /// Returns the same series in cells `factor` times as long.
    pub fn coarser(&self, factor: usize) -> Self {
        let together = factor.max(1);
        Self {
            start_ns: self.start_ns,
            interval_ns: self.interval_ns.saturating_mul(together as u64),
            cells: self.cells.chunks(together).map(Cell::sum).collect(),
        }
    }

    /// Returns the same series in cells of at least `interval_ns` and at most `cells_max` cells.
    /// Cells that are too many are merged two by two until they are not, as [`Self::add`] does, so
    /// that the longer cells of two series are mostly a multiple of the shorter ones.
    pub fn thinned(&self, interval_ns: u64, cells_max: usize) -> Self {
        let mut factor = interval_ns.div_ceil(self.interval_ns.max(1)).max(1) as usize;
        while self.cells.len().div_ceil(factor) > cells_max.max(1) {
            factor *= 2;
        }
        self.coarser(factor)
    }

    /// The sum of the cells that start from `start_ns` on and before `end_ns`, both after the start
    /// of the measured time.
    pub fn total_between(&self, start_ns: u64, end_ns: u64) -> Cell {
        let mut total = Cell::default();
        let mut cell_ns = self.start_ns;
        for cell in &self.cells {
            if (start_ns..end_ns).contains(&cell_ns) {
                total.merge(cell);
            }
            cell_ns = cell_ns.saturating_add(self.interval_ns);
        }
        total
    }

    /// Bytes of an operation on average, rounded down; 0 without operations.
    fn bytes_per_op(&self) -> u64 {
        let total = self.total();
        total.bytes / total.ops.max(1)
    }

    /// The sum of all cells.
    pub fn total(&self) -> Cell {
        Cell::sum(&self.cells)
    }
}

/// Events over time: equal cells without gaps, and in each list one number for each cell.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Columns {
    /// Start of the first cell, in nanoseconds after the start of the measured time.
    start_ns: u64,
    /// Length of each cell in nanoseconds.
    interval_ns: u64,
    /// Operations that completed in the cell.
    #[serde(default)]
    ops: Vec<u64>,
    /// Bytes that they moved.
    #[serde(default)]
    bytes: Vec<u64>,
    /// Operations that failed in the cell; absent where none did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    errors: Vec<u64>,
    /// The longest latency among them, in nanoseconds.
    #[serde(default)]
    latency_max_ns: Vec<u64>,
    /// Cell by cell, as records of earlier builds have them in place of the columns.
    #[serde(default, skip_serializing)]
    cells: Vec<Cell>,
}

impl From<TimeSeries> for Columns {
    fn from(series: TimeSeries) -> Self {
        let mut columns = Self {
            start_ns: series.start_ns,
            interval_ns: series.interval_ns,
            ops: Vec::new(),
            bytes: Vec::new(),
            errors: Vec::new(),
            latency_max_ns: Vec::new(),
            cells: Vec::new(),
        };
        let has_errors = series.total().errors > 0;
        for cell in &series.cells {
            columns.ops.push(cell.ops);
            columns.bytes.push(cell.bytes);
            columns.latency_max_ns.push(cell.latency_max_ns);
            if has_errors {
                columns.errors.push(cell.errors);
            }
        }
        columns
    }
}

impl TryFrom<Columns> for TimeSeries {
    type Error = &'static str;

    fn try_from(columns: Columns) -> Result<Self, Self::Error> {
        let count = columns.ops.len();
        let has_all_numbers = columns.bytes.len() == count && columns.latency_max_ns.len() == count;
        let has_all_or_no_errors = columns.errors.is_empty() || columns.errors.len() == count;
        // A series has columns or cells, never both.
        let has_both_forms = count > 0 && !columns.cells.is_empty();
        if !has_all_numbers || !has_all_or_no_errors || has_both_forms {
            return Err("the lists of a series differ in length");
        }
        if columns.interval_ns == 0 {
            return Err("the cells of a series have no length");
        }
        let mut cells = columns.cells;
        for index in 0..count {
            cells.push(Cell {
                ops: columns.ops[index],
                bytes: columns.bytes[index],
                errors: columns.errors.get(index).copied().unwrap_or_default(),
                latency_max_ns: columns.latency_max_ns[index],
                latency_sum_ns: 0,
            });
        }
        Ok(Self {
            start_ns: columns.start_ns,
            interval_ns: columns.interval_ns,
            cells,
        })
    }
}

/// A series as one text, about a tenth as long as its numbers: base64 (RFC 4648) of a raw deflate
/// stream (RFC 1951) of unsigned LEB128 numbers, which follow each other without separators. First
/// the start of the first cell in nanoseconds after the start of the measured time; the length of
/// each cell in nanoseconds; `b`, the bytes of an operation; and `n`, the number of cells. Then
/// five columns of `n` numbers: the operations that completed in each cell; those that failed; the
/// longest latency in nanoseconds (0 where it stands in an earlier cell); a sum of latencies (0 in
/// records); and its bytes minus its operations times `b`, modulo 2^64.
#[derive(JsonSchema)]
#[schemars(transparent)]
#[allow(dead_code, reason = "the schema describes it; nothing makes one")]
pub struct PackedSeries(String);

/// The number of cells that a packed series claims to have; 0 where it cannot be read, which is an
/// error where the series is unpacked.
pub fn cells_of_packed(text: &str) -> u64 {
    let Ok(mut numbers) = Unpacker::decode(text) else {
        return 0;
    };
    // The start, the length of a cell and the bytes of an operation stand before the count.
    for _ in 0..3 {
        if numbers.number().is_err() {
            return 0;
        }
    }
    match numbers.number() {
        Ok(count) => count.min(CELLS_MAX),
        Err(_) => 0,
    }
}

impl Packed for TimeSeries {
    fn pack(&self, packer: &mut Packer) {
        let columns: [fn(&Cell) -> u64; 4] = [
            |cell| cell.ops,
            |cell| cell.errors,
            |cell| cell.latency_max_ns,
            |cell| cell.latency_sum_ns.min(NUMBER_MAX as u64),
        ];
        let per_op = self.bytes_per_op();
        packer.push(self.start_ns);
        packer.push(self.interval_ns);
        packer.push(per_op);
        packer.push(self.cells.len() as u64);
        for column in columns {
            for cell in &self.cells {
                packer.push(column(cell));
            }
        }
        for cell in &self.cells {
            // These differences are mostly zero, since most operations have one size.
            packer.push(cell.bytes.wrapping_sub(cell.ops.wrapping_mul(per_op)));
        }
    }

    fn unpack(numbers: &mut Unpacker) -> Result<Self, &'static str> {
        let (start_ns, interval_ns) = (numbers.amount()?, numbers.amount()?);
        let (per_op, count) = (numbers.number()?, numbers.number()?);
        if interval_ns == 0 || count > CELLS_MAX {
            return Err("its cells have no length, or there are too many");
        }
        let mut cells = vec![Cell::default(); count as usize];
        let columns: [fn(&mut Cell) -> &mut u64; 4] = [
            |cell| &mut cell.ops,
            |cell| &mut cell.errors,
            |cell| &mut cell.latency_max_ns,
            |cell| &mut cell.latency_sum_ns,
        ];
        for column in columns {
            for cell in &mut cells {
                *column(cell) = numbers.amount()?;
            }
        }
        for cell in &mut cells {
            cell.bytes = numbers
                .number()?
                .wrapping_add(cell.ops.wrapping_mul(per_op));
            if u128::from(cell.bytes) > NUMBER_MAX {
                return Err("a number in it is beyond every measurement");
            }
        }
        Ok(Self {
            start_ns,
            interval_ns,
            cells,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn json_has_a_list_per_number_and_cells_are_still_read() {
        let lists = concat!(
            r#"{"start_ns":0,"interval_ns":5,"ops":[1,2],"#,
            r#""bytes":[3,4],"latency_max_ns":[5,6]}"#
        );
        let cell = |ops, bytes, latency_max_ns| Cell {
            ops,
            bytes,
            latency_max_ns,
            ..Cell::default()
        };
        let mut series = TimeSeries::new(5);
        series.cells = vec![cell(1, 3, 5), cell(2, 4, 6)];
        assert_eq!(serde_json::to_string(&series).unwrap(), lists);
        let cells = r#"{"start_ns":0,"interval_ns":5,"cells":[
            {"ops":1,"bytes":3,"errors":0,"latency_max_ns":5},
            {"ops":2,"bytes":4,"errors":0,"latency_max_ns":6}]}"#;
        for text in [lists, cells] {
            assert_eq!(serde_json::from_str::<TimeSeries>(text).unwrap(), series);
        }
        series.cells[1].errors = 7;
        let text = serde_json::to_string(&series).unwrap();
        assert!(text.contains(r#""errors":[0,7]"#), "{text}");
        assert_eq!(serde_json::from_str::<TimeSeries>(&text).unwrap(), series);
        let uneven = lists.replace("[3,4]", "[3]");
        assert!(serde_json::from_str::<TimeSeries>(&uneven).is_err());
        // Readers divide by the length.
        let no_length = lists.replace("\"interval_ns\":5", "\"interval_ns\":0");
        assert!(serde_json::from_str::<TimeSeries>(&no_length).is_err());
    }

    /// 100 and 120 ms: the sum has cells of 120 ms, and each has its part of those of 100 ms.
    #[test]
    fn merged_cells_cover_the_same_time() {
        let steady = |interval_ns: u64, seconds: u64| {
            let mut series = TimeSeries::new(interval_ns);
            for _ in 0..seconds * 1_000_000_000 / interval_ns {
                series.cells.push(Cell {
                    ops: interval_ns / 1_000_000,
                    ..Cell::default()
                });
            }
            series
        };
        for (one_ms, other_ms, sum_ms) in [(100, 120, 120), (120, 100, 120), (20, 80, 80)] {
            let mut sum = steady(one_ms * 1_000_000, 6);
            sum.merge(&steady(other_ms * 1_000_000, 6));
            assert_eq!(sum.interval_ns, sum_ms * 1_000_000);
            let all: Vec<u64> = sum.cells.iter().map(|cell| cell.ops).collect();
            assert_eq!(all, vec![2 * sum_ms; (6000 / sum_ms) as usize]);
        }
    }

    /// The lengths of the cells of many hosts have a least common multiple of 2.52 s.
    #[test]
    fn merging_many_lengths_keeps_the_longest_of_them() {
        let mut sum = TimeSeries::new(10_000_000);
        for tens_of_ms in 1..=9 {
            let interval_ns = tens_of_ms * 10_000_000;
            let mut host = TimeSeries::new(interval_ns);
            for index in 0..1000 / tens_of_ms {
                host.add(index * interval_ns, &Cell::single(8192, 1000), 1024);
            }
            let latest_ns = 7_000_000_000 + tens_of_ms;
            host.add(latest_ns, &Cell::single(8192, 5_000_000 * tens_of_ms), 1024);
            sum.merge(&host);
        }
        assert_eq!(sum.interval_ns, 90_000_000);
        let total = sum.total();
        assert_eq!(total.bytes, total.ops * 8192);
        for cell in &sum.cells {
            assert_eq!(cell.bytes, cell.ops * 8192);
        }
        let longest = sum
            .cells
            .iter()
            .position(|cell| cell.latency_max_ns == 45_000_000);
        assert_eq!(longest, Some(7_000_000_000 / 90_000_000));
    }

    #[test]
    fn thinning_to_a_count_doubles_the_cells() {
        let mut series = TimeSeries::new(10_000_000);
        for (count, factor) in [(500, 1), (501, 2), (1024, 4), (1000, 2)] {
            series.cells = vec![Cell::single(1, 1); count];
            let thinned = series.thinned(1, 500);
            assert_eq!(thinned.interval_ns, factor * 10_000_000, "{count} cells");
        }
        series.cells = vec![Cell::single(1, 1); 5001];
        assert_eq!(series.thinned(30_000_000, 500).interval_ns, 120_000_000);
    }

    #[test]
    fn extreme_lengths_keep_every_operation() {
        let mut sum = TimeSeries::new(u64::MAX - 1);
        sum.cells = vec![Cell::single(1, 1)];
        let mut other = TimeSeries::new(u64::MAX - 2);
        other.cells = vec![Cell::single(1, 1), Cell::single(1, 1)];
        for (mut one, two) in [(sum.clone(), &other), (other.clone(), &sum)] {
            one.merge(two);
            assert_eq!(one.total().ops, 3);
        }
    }

    /// Events in the order of their times, as they come.
    fn events() -> impl Strategy<Value = Vec<(u64, Cell)>> {
        let event = (
            0u64..2_000_000,
            0u64..1000,
            0u64..1 << 30,
            0u64..3,
            0u64..1 << 40,
            0u64..1 << 50,
        );
        let cell = |(at_ns, ops, bytes, errors, latency_max_ns, latency_sum_ns)| {
            (
                at_ns,
                Cell {
                    ops,
                    bytes,
                    errors,
                    latency_max_ns,
                    latency_sum_ns,
                },
            )
        };
        proptest::collection::vec(event.prop_map(cell), 1..200)
    }

    proptest! {
        /// However far a series is thinned, while it grows or after, its sums and its maximum are
        /// those of all events, the maximum at its time.
        #[test]
        fn thinning_keeps_sums_and_maxima(
            events in events(),
            interval_ns in 1u64..5000,
            cells_max in 2usize..300,
            later in 1usize..40,
        ) {
            let mut whole = Cell::default();
            let mut series = TimeSeries::new(interval_ns);
            for (at_ns, cell) in &events {
                whole.merge(cell);
                series.add(*at_ns, cell, cells_max);
                prop_assert!(series.cells.len() <= cells_max);
            }
            let longest_ns = whole.latency_max_ns;
            let mut longest = events.iter().filter(|(_, cell)| cell.latency_max_ns == longest_ns);
            let (first_ns, is_only) = (longest.next().unwrap().0, longest.next().is_none());
            let thinned = series.thinned(interval_ns * 7, 10);
            for series in [series.clone(), series.coarser(later), thinned] {
                prop_assert_eq!(series.total(), whole);
                let at = (first_ns / series.interval_ns) as usize;
                prop_assert!(!is_only || series.cells[at].latency_max_ns == longest_ns);
            }
        }

        /// The same for series that were thinned to different degrees.
        #[test]
        fn merging_keeps_sums_and_maxima(
            one in events(),
            other in events(),
            cells_max in 2usize..100,
        ) {
            let series = |events: &[(u64, Cell)], cells_max| {
                let mut series = TimeSeries::new(1000);
                for (at_ns, cell) in events {
                    series.add(*at_ns, cell, cells_max);
                }
                series
            };
            let (mut sum, other_series) = (series(&one, cells_max), series(&other, 3000));
            sum.merge(&other_series);
            let mut whole = Cell::default();
            one.iter().chain(&other).for_each(|(_, cell)| whole.merge(cell));
            prop_assert_eq!(sum.total(), whole);
        }
    }
}
