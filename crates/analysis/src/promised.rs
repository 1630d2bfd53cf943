//! Turns the figures of a data sheet (`--spec`) into thresholds, and judges a record by them. Each
//! threshold allows a little less than the sheet promises, and names the measured figure that
//! answers it.

use crate::expect::{Expected, Quantity, Relation};
use crate::mechanics::{
    ZONES_FACTOR_MAX, begins_outside, is_outermost, links_full_from, reach, reported_rpm,
};
use crate::shape::Reach;
use diskproof_model::expectation::{Expectation, Promise};
use diskproof_model::figure::{Part, named};
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::units::format_bytes;

/// Sheets omit the time of the electronics and round in their favour: an access may take this many
/// times as long as promised. `access_time_off.rs` allows as much.
const TIME_ALLOWED: f64 = 1.15;
/// A rate may be this share of the promised one: sheets confuse MB with MiB (4.9 %) and round.
const RATE_ALLOWED: f64 = 0.95;
/// A disk may have this share of its promised size: sellers round to the digits that they print.
/// Disks hold a little more than their name (IDEMA LBA1-03: `4TB` are 4,000,787,030,016 bytes).
const SIZE_ALLOWED: f64 = 0.99;
/// A disk may report this share of the promised revolutions: reports are rounded.
const RPM_ALLOWED: f64 = 0.99;

/// The workload that answers for the read rate of a disk that does not rotate.
const SEQUENTIAL_READ: &str = "sequential-read";

/// A promised figure as a threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Promised {
    /// The threshold; its value already contains what passes beyond the promised figure.
    pub expected: Expected,
    promise: Promise,
}

/// The promises of the plan's data sheet, in the order of the table.
pub fn promised(plan: &Plan) -> Vec<Promised> {
    let Some(sheet) = plan.questions.data_sheet else {
        return Vec::new();
    };
    let mut promised = Vec::new();
    if let Some(bytes) = sheet.size_bytes {
        promised.push(promised_size(bytes as f64));
    }
    if let Some(rpm) = sheet.rpm
        && rpm > 0
    {
        let rpm = f64::from(rpm);
        promised.push(promised_rotation(rpm));
        if let Some(seek_ns) = sheet.seek_ns {
            // Half a turn, and the seek.
            let access_ns = 30e9 / rpm + seek_ns as f64;
            promised.push(promised_figure(
                "access.mean",
                "random access",
                access_ns,
                TIME_ALLOWED,
            ));
        }
    }
    if let Some(rate) = sheet.bytes_per_second {
        promised.push(promised_read_rate(plan, rate));
    }
    for (name, figure, rate) in [
        (
            "sequential writes",
            "sequential-write.throughput",
            sheet.write_bytes_per_second,
        ),
        ("random reads", "random-read-d32.iops", sheet.read_iops),
        ("random writes", "random-write-d32.iops", sheet.write_iops),
    ] {
        if let Some(rate) = rate {
            let name = name_with_size(plan, name, figure);
            promised.push(promised_figure(figure, &name, rate, RATE_ALLOWED));
        }
    }
    promised
}

/// Judges every promise by the record. The revolutions are a row of their own only where the disk
/// reports them, or where no access time answers for them.
pub(crate) fn judge_promises(record: &Record) -> Vec<Expectation> {
    let mut promises = promised(&record.plan);
    let has_access = promises
        .iter()
        .any(|promised| matches!(promised.expected.part, Part::Access(_)));
    if has_access && reported_rpm(record).is_none() {
        promises.retain(|promised| promised.expected.quantity != Quantity::Rpm);
    }
    promises
        .iter()
        .map(|promised| promised.evaluate(record))
        .collect()
}

impl Promised {
    /// Compares the promise with the record, and leaves open what the survey did not reach.
    fn evaluate(&self, record: &Record) -> Expectation {
        let mut expectation = self.expected.evaluate(record);
        let is_open = match self.expected.part {
            // In a part of the surface the arm has less far to go than the sheet's average.
            Part::Access(_) => expectation.met && !covers_whole_surface(record),
            Part::Curve => !expectation.met && !covers_outermost_zone(record),
            Part::Workload => {
                !expectation.met
                    && (self.is_limited_by_bandwidth(record, expectation.observed)
                        || self.depends_on_place(record, expectation.observed))
            }
            _ => false,
        };
        if is_open && expectation.objection.is_none() {
            expectation.met = false;
            expectation.undecided = true;
        }
        expectation.promise = Some(self.promise.clone());
        expectation
    }

    /// The row of the workload that answers for it; `None` where it was not measured.
    fn row<'r>(&self, record: &'r Record) -> Option<&'r Row> {
        record
            .measurements
            .iter()
            .find(|row| row.data.workload.name == self.expected.workload)
    }

    /// Returns `true` if it is the rate of a rotating disk's fastest zone, and the slower place of
    /// a file or a partition explains the miss.
    fn depends_on_place(&self, record: &Record, observed: Option<f64>) -> bool {
        let sheet = record.plan.questions.data_sheet;
        let is_of_platter = sheet.is_some_and(|sheet| sheet.rpm.is_some());
        if self.promise.unit != "B/s" || !is_of_platter {
            return false;
        }
        let Some(row) = self.row(record) else {
            return false;
        };
        let is_at_edge = record
            .targets
            .get(row.data.target)
            .is_some_and(|target| is_outermost(target, row.data.span_start_bytes));
        let fastest = observed.unwrap_or(0.0) * ZONES_FACTOR_MAX;
        !is_at_edge && fastest >= self.promise.passes
    }

    /// Returns `true` if the size of the operations explains a rate below the promise, because a
    /// data sheet counts operations of 4 KiB. That holds if the bytes would suffice for as many
    /// small operations, if the bandwidth of the link or of the sheet was used up, or if fewer
    /// requests were in flight than any disk needs for the promised rate.
    fn is_limited_by_bandwidth(&self, record: &Record, observed: Option<f64>) -> bool {
        let (Some(observed), Some(row)) = (observed, self.row(record)) else {
            return false;
        };
        let block_bytes = row.data.workload.block_bytes;
        if self.promise.unit != "1/s" || block_bytes <= SHEET_BLOCK_BYTES {
            return false;
        }
        let bytes_per_second = observed * f64::from(block_bytes);
        let sheet = record.plan.questions.data_sheet;
        let is_link_full = links_full_from(record, row.data.target)
            .is_some_and(|full_from| bytes_per_second >= full_from);
        let is_sheet_reached = sheet
            .and_then(|sheet| sheet.bytes_per_second)
            .is_some_and(|bandwidth| bytes_per_second >= SHEET_SHARE * bandwidth);
        let workload = &row.data.workload;
        let depth = row.data.limited_depth().unwrap_or(workload.depth);
        let in_flight = f64::from(depth) * f64::from(workload.workers);
        let is_queue_short = in_flight / self.promise.passes < LATENCY_LEAST_S;
        let bytes_suffice = bytes_per_second >= self.promise.passes * f64::from(SHEET_BLOCK_BYTES);
        is_link_full || is_sheet_reached || is_queue_short || bytes_suffice
    }
}

/// Data sheets count operations of this size.
const SHEET_BLOCK_BYTES: u32 = 4096;
/// The queue is too short for a promise if each request had to be answered in less than this, in
/// seconds: larger operations of flash take longer. Chosen, not measured.
const LATENCY_LEAST_S: f64 = 50e-6;
/// From this share of the sheet's bandwidth on the bandwidth is the limit: sheets state the best
/// case. Chosen, not measured.
const SHEET_SHARE: f64 = 0.85;

/// Returns `true` if the access times are those of the whole surface.
fn covers_whole_surface(record: &Record) -> bool {
    match record.surface() {
        Some(surface) => reach(record, surface) == Reach::Whole,
        None => false,
    }
}

/// Returns `true` if the fastest place of the disk was surveyed.
fn covers_outermost_zone(record: &Record) -> bool {
    record
        .surface()
        .is_some_and(|surface| begins_outside(record, surface))
}

fn promised_rotation(rpm: f64) -> Promised {
    let rotation = promise("rotation", rpm, RPM_ALLOWED * rpm, "rpm");
    let expression = format!("rpm>={:.0}", rotation.passes);
    let quantity = Quantity::Rpm;
    with_threshold(
        Part::Other,
        "rpm",
        quantity,
        Relation::AtLeast,
        expression,
        rotation,
    )
}

fn promised_size(bytes: f64) -> Promised {
    let size = promise("size", bytes, SIZE_ALLOWED * bytes, "B");
    let expression = format!("size>={:.0}", size.passes);
    let quantity = Quantity::DiskSize;
    with_threshold(
        Part::Other,
        "size",
        quantity,
        Relation::AtLeast,
        expression,
        size,
    )
}

/// A promise on a figure in the names of thresholds, such as `curve.max`. `what` names it in the
/// table, and `allowed` is the factor by which the measured figure may be worse.
fn promised_figure(figure: &str, what: &str, promised: f64, allowed: f64) -> Promised {
    let catalogued = named(figure).expect("the catalogue has the figure");
    let limit = allowed * promised;
    let unit = catalogued.metric.unit;
    let (relation, text) = match unit {
        "ns" => (Relation::AtMost, format!("{figure}<={:.0}us", limit / 1e3)),
        "B/s" => {
            let text = format!("{figure}>={}MB/s", three_decimals(limit / 1e6));
            (Relation::AtLeast, text)
        }
        _ => (
            Relation::AtLeast,
            format!("{figure}>={}", three_decimals(limit)),
        ),
    };
    let quantity = if catalogued.part == Part::Curve {
        Quantity::FastestLevel {
            otherwise: catalogued.metric,
        }
    } else {
        Quantity::Figure(catalogued.metric)
    };
    with_threshold(
        catalogued.part,
        catalogued.subject,
        quantity,
        relation,
        text,
        promise(what, promised, limit, unit),
    )
}

/// A promise with the figure that answers it. `expression` is the threshold as a user would write
/// it, and `promise.passes` its value.
fn with_threshold(
    part: Part,
    workload: &str,
    quantity: Quantity,
    relation: Relation,
    expression: String,
    promise: Promise,
) -> Promised {
    Promised {
        expected: Expected {
            expression,
            part,
            workload: workload.to_owned(),
            op: None,
            quantity,
            relation,
            threshold: promise.passes,
        },
        promise,
    }
}

/// The promised read rate. A rotating disk is fastest in its outermost zone, so the curve answers
/// for it. Other disks need a queue, so the workload answers for them.
fn promised_read_rate(plan: &Plan, rate: f64) -> Promised {
    let rotates = match plan.questions.data_sheet {
        Some(sheet) => sheet.rpm.is_some(),
        None => false,
    };
    let has_curve = match plan.survey() {
        Some(survey) => survey.curve.is_some(),
        None => false,
    };
    let has_workload = plan
        .workloads()
        .iter()
        .any(|workload| workload.name == SEQUENTIAL_READ);
    let (figure, what) = if has_workload && !(has_curve && rotates) {
        ("sequential-read.throughput", "sequential reads")
    } else {
        ("curve.max", "transfer rate")
    };
    promised_figure(figure, what, rate, RATE_ALLOWED)
}

/// The name of a promise with the block size of its workload, on which IOPS depend: `4 KiB random
/// reads`.
fn name_with_size(plan: &Plan, what: &str, figure: &str) -> String {
    let workload = figure.strip_suffix(".iops");
    for planned in plan.workloads() {
        if Some(planned.name.as_str()) == workload {
            return format!("{} {what}", format_bytes(u64::from(planned.block_bytes)));
        }
    }
    what.to_owned()
}

/// Rounds to three decimals.
fn three_decimals(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

fn promise(name: &str, promised: f64, passes: f64, unit: &str) -> Promise {
    Promise {
        name: name.to_owned(),
        promised,
        passes,
        unit: unit.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture::surveyed::{self, SurveyedDisk, rotating};
    use diskproof_model::expectation::ExpectationOutcome::{self, Met, Missed, Undecided};
    use diskproof_model::op::OpKind;
    use diskproof_model::record::Estimate;
    use diskproof_model::surface::DataSheet;
    use diskproof_model::target::{Layer, LayerKind, Link, TargetKind};

    fn outcomes(record: &Record) -> Vec<(String, ExpectationOutcome)> {
        let rows = judge_promises(record);
        let row = |row: &Expectation| (row.promise.clone().unwrap().name, row.outcome());
        rows.iter().map(row).collect()
    }

    fn surveyed(disk: &SurveyedDisk, sheet: DataSheet) -> Vec<(String, ExpectationOutcome)> {
        let mut run = disk.run(7);
        run.facts.plan.questions.data_sheet = Some(sheet);
        outcomes(&surveyed::judge(run))
    }

    fn row(name: &str, outcome: ExpectationOutcome) -> (String, ExpectationOutcome) {
        (name.to_owned(), outcome)
    }

    const ACCESS: &str = "random access";

    /// After a pause, a disk that read ahead answers one sample too fast.
    #[test]
    fn single_fast_sample_keeps_no_promise() {
        let disk = rotating(|disk| disk.outer = 80e6);
        let mut run = disk.run(7);
        run.facts.plan.questions.data_sheet = Some(DataSheet {
            rpm: Some(disk.rpm),
            bytes_per_second: Some(92e6),
            ..DataSheet::default()
        });
        run.surface.curve[1].bytes_per_second = 95e6;
        let kept = outcomes(&surveyed::judge(run));
        assert!(kept.contains(&row("transfer rate", Missed)), "{kept:?}");
    }

    #[test]
    fn every_promise_is_a_row_also_when_all_are_kept() {
        let disk = SurveyedDisk::rotating();
        let rpm = disk.rpm;
        let honest = DataSheet {
            rpm: Some(rpm),
            seek_ns: Some(disk.seek_ns as u64),
            bytes_per_second: Some(disk.outer),
            ..DataSheet::default()
        };
        let kept = [row(ACCESS, Met), row("transfer rate", Met)];
        assert_eq!(surveyed(&disk, honest), kept);
        let boastful = DataSheet {
            rpm: Some(2 * rpm),
            seek_ns: honest.seek_ns.map(|ns| ns / 2),
            bytes_per_second: Some(1.5 * disk.outer),
            ..honest
        };
        let broken = [row(ACCESS, Missed), row("transfer rate", Missed)];
        assert_eq!(surveyed(&disk, boastful), broken);
        let rpm_alone = DataSheet {
            rpm: Some(rpm),
            ..DataSheet::default()
        };
        assert_eq!(surveyed(&disk, rpm_alone), [row("rotation", Undecided)]);
    }

    #[test]
    fn a_part_of_the_surface_neither_keeps_an_access_time_nor_breaks_a_rate() {
        let part = rotating(|disk| disk.span = 0.5..0.6);
        let sheet = DataSheet {
            rpm: Some(part.rpm),
            seek_ns: Some(part.seek_ns as u64),
            bytes_per_second: Some(part.outer),
            ..DataSheet::default()
        };
        let open = [row(ACCESS, Undecided), row("transfer rate", Undecided)];
        assert_eq!(surveyed(&part, sheet), open);
    }

    /// The promise of 4 TB on a device with this layer and this many bytes on top.
    fn sized(kind: LayerKind, top_bytes: u64, disks_bytes: &[u64]) -> ExpectationOutcome {
        let mut record = fixture::record();
        let mut top = layer("top", kind, top_bytes);
        let mut layers = Vec::new();
        for (index, bytes) in disks_bytes.iter().enumerate() {
            let disk = layer(&format!("sd{index}"), LayerKind::Disk, *bytes);
            top.below.push(disk.name.clone());
            layers.push(disk);
        }
        layers.insert(0, top);
        record.targets[0].kind = TargetKind::BlockDevice;
        record.targets[0].layers = layers;
        record.plan.questions.data_sheet = Some(DataSheet {
            size_bytes: Some(4_000_000_000_000),
            ..DataSheet::default()
        });
        let rows = judge_promises(&record);
        assert_eq!(rows.len(), 1);
        rows[0].outcome()
    }

    fn layer(name: &str, kind: LayerKind, size_bytes: u64) -> Layer {
        Layer {
            name: name.to_owned(),
            kind,
            size_bytes,
            ..Layer::default()
        }
    }

    #[test]
    fn size_is_that_of_the_device_or_of_the_one_disk_below_a_part_of_it() {
        const SOLD: u64 = 4_000_787_030_016;
        const SMALL: u64 = 3_959_999_999_999;
        assert_eq!(sized(LayerKind::Disk, SOLD, &[]), Met);
        assert_eq!(sized(LayerKind::Disk, 4_000_000_000_000, &[]), Met);
        assert_eq!(sized(LayerKind::Disk, SMALL + 1, &[]), Met);
        assert_eq!(sized(LayerKind::Disk, SMALL, &[]), Missed);
        assert_eq!(sized(LayerKind::Partition, 1 << 30, &[SOLD]), Met);
        assert_eq!(sized(LayerKind::Partition, SOLD, &[SMALL]), Missed);
        // A volume is sold as such, whatever lies below.
        assert_eq!(sized(LayerKind::Md, 2 * SOLD, &[SOLD, SOLD]), Met);
        assert_eq!(sized(LayerKind::Loop, SMALL, &[SOLD]), Missed);
        assert_eq!(sized(LayerKind::Partition, SOLD, &[SOLD, SOLD]), Undecided);
    }

    #[test]
    fn size_of_a_directory_is_that_of_its_one_disk() {
        let mut record = fixture::record();
        let disks = record.targets[0].disks();
        let sizes: Vec<u64> = disks.map(|disk| disk.size_bytes).collect();
        let [size_bytes] = sizes[..] else {
            panic!("one disk: {sizes:?}");
        };
        for (promised, outcome) in [(size_bytes, Met), (2 * size_bytes, Missed)] {
            record.plan.questions.data_sheet = Some(DataSheet {
                size_bytes: Some(promised),
                ..DataSheet::default()
            });
            assert_eq!(outcomes(&record), [row("size", outcome)]);
        }
        record.targets[0].layers.clear();
        assert_eq!(outcomes(&record), [row("size", Undecided)]);
    }

    #[test]
    fn workloads_answer_where_nothing_rotates() {
        let mut record = fixture::record();
        record.plan.questions.data_sheet = Some(DataSheet {
            bytes_per_second: Some(500e6),
            read_iops: Some(10_000.0),
            write_iops: Some(20_000.0),
            ..DataSheet::default()
        });
        let rows = judge_promises(&record);
        let seen = rows
            .iter()
            .map(|row| (row.expression.as_str(), row.outcome()));
        let expected = [
            ("sequential-read.throughput>=475MB/s", Missed),
            ("random-read-d32.iops>=9500", Met),
            ("random-write-d32.iops>=19000", Missed),
        ];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
        let promise = rows[1].promise.clone().unwrap();
        assert_eq!((promise.promised, promise.passes), (10_000.0, 9500.0));
        for row in rows {
            let expected: Expected = row.expression.parse().unwrap();
            assert_eq!(expected.evaluate(&record).met, row.met);
        }
    }

    /// 98,000/s of 4 KiB are 401 MB/s. A disk that moves 8 KiB at 565 MB/s fills its link, and one
    /// that moves as many bytes as promised may keep the promise; one that moves 41 MB/s does not.
    #[test]
    fn bandwidth_leaves_a_promise_of_small_operations_open() {
        let mut record = fixture::record();
        record.plan.questions.data_sheet = Some(DataSheet {
            read_iops: Some(98_000.0),
            ..DataSheet::default()
        });
        for layer in &mut record.targets[0].layers {
            layer.link = Some(Link {
                bytes_per_second_max: Some(600_000_000),
                ..Link::default()
            });
        }
        for (iops, block_bytes, expected) in [
            (69_000.0, 8192, Undecided),
            (50_000.0, 8192, Undecided),
            (5_000.0, 8192, Missed),
            (69_000.0, 4096, Missed),
        ] {
            let row = fixture::measured(&mut record, "random-read-d32");
            row.data.workload.block_bytes = block_bytes;
            let reads = row.figures.ops.get_mut(&OpKind::Read).unwrap();
            reads.iops = Estimate::new(30, iops, Some(0.01 * iops), "1/s");
            assert_eq!(judge_promises(&record)[0].outcome(), expected, "{iops}");
        }
    }

    /// 32 requests in flight make 1,400,000/s only if each takes 23 µs.
    #[test]
    fn short_queue_breaks_no_promise() {
        let mut record = fixture::record();
        record.plan.questions.data_sheet = Some(DataSheet {
            read_iops: Some(1_400_000.0),
            ..DataSheet::default()
        });
        assert_eq!(judge_promises(&record)[0].outcome(), Undecided);
    }

    /// 147 MB/s may be the inner zones of 250; 20 MB/s are no zone of such a disk.
    #[test]
    fn place_of_a_file_leaves_a_promised_rate_open_within_the_zones() {
        for (rate, on_disk, expected) in [
            (147e6, false, Undecided),
            (20e6, false, Missed),
            (147e6, true, Missed),
        ] {
            let mut record = fixture::record();
            record.plan.questions.data_sheet = Some(DataSheet {
                rpm: Some(7200),
                write_bytes_per_second: Some(250e6),
                ..DataSheet::default()
            });
            if on_disk {
                record.targets[0].kind = TargetKind::BlockDevice;
                record.targets[0].layers = vec![layer("sda", LayerKind::Disk, 1 << 40)];
            }
            let writes = fixture::measured(&mut record, "sequential-write");
            let figures = writes.figures.ops.get_mut(&OpKind::Write).unwrap();
            figures.throughput = Estimate::new(30, rate, Some(0.01 * rate), "B/s");
            let rows = judge_promises(&record);
            let row = rows
                .iter()
                .find(|row| row.expression.starts_with("sequential-write"))
                .unwrap();
            assert_eq!(row.outcome(), expected, "{rate} {on_disk}");
        }
    }

    /// The second half of a disk as a partition: its first byte is not the disk's fastest place.
    #[test]
    fn rate_of_a_partition_breaks_no_promise_of_its_disk() {
        let disk = rotating(|disk| disk.outer = 80e6);
        let mut run = disk.run(7);
        run.facts.plan.questions.data_sheet = Some(DataSheet {
            rpm: Some(disk.rpm),
            bytes_per_second: Some(250e6),
            ..DataSheet::default()
        });
        let mut record = surveyed::judge(run);
        assert!(outcomes(&record).contains(&row("transfer rate", Missed)));
        let mut partition = layer("sda2", LayerKind::Partition, record.targets[0].size_bytes);
        partition.below = vec![record.targets[0].layers[0].name.clone()];
        record.targets[0].layers.insert(0, partition);
        assert!(outcomes(&record).contains(&row("transfer rate", Undecided)));
    }
}
