//! `served-from-cache`: the disks moved fewer bytes than requested, so a cache above them answered.
//! Where no counter below a loop device shows the disk's part, the loop device's own setting
//! decides: without direct I/O it goes through the page cache.

use super::rule::*;
use diskproof_model::measurement::{ByteCount, DeviceUse};

pub(super) const RULE: Rule = Rule {
    code: "served-from-cache",
    title: "A cache answered instead of the disk",
    summary: "The disks moved fewer bytes than requested, so a cache above them answered. The \
              figure is not the disk's.",
    remedy: Remedy::ByCase,
    check: Check::Run(check),
    says: Meaning::NotTheDisk {
        cause: Cause::Cache,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Smallest share of the requested bytes that the disks must have moved. Their counters are exact,
/// but a cache may rightly hold a few blocks (one just written, the tail of a read-ahead).
const SHARE_MIN: f64 = 0.95;

/// Below this share most of the figure is the cache's.
const SHARE_FAILURE: f64 = 0.5;

/// Fewer bytes than this prove nothing: a few blocks of them may rightly be in a cache.
const ASKED_BYTES_MIN: u64 = 1 << 20;

/// The bytes that were requested from a target's disks, and those that the disks counted, of a
/// workload or of the survey.
struct CountedBytes<'a> {
    /// The index of the workload; `None` for the survey.
    index: Option<usize>,
    target: usize,
    name: String,
    cache: CachePolicy,
    asked: ByteCount,
    device: &'a DeviceUse,
    /// Share of the bytes read that was never written, and so is answered without the disk.
    unwritten: f64,
    reproduce: &'a str,
}

/// The evidence that a cache answered.
struct MissingBytes {
    /// Share of the requested bytes that the disks moved.
    share: f64,
    /// `read only 10 MiB of the 100 MiB requested`; `None` where the setting of a loop device alone
    /// shows the cache.
    shortfall: Option<String>,
    evidence: Vec<Evidence>,
}

/// A workload or survey that a cache answered.
struct CacheHit<'a> {
    counted: CountedBytes<'a>,
    missing: MissingBytes,
}

/// Returns `true` if the disks' counters show that a cache answered.
pub(super) fn is_served_from_cache(record: &Record) -> bool {
    check(record).is_some()
}

fn check(record: &Record) -> Option<Diagnosis> {
    let hits = cache_hits(record);
    let worst = smallest_by(&hits, |hit| hit.missing.share)?;
    let Explanation { cause, remedy } = explanation(record, &hits);
    let scope = places(record, hits.iter().map(|hit| hit.counted.index));
    let claim = match &worst.missing.shortfall {
        None => format!(
            "The page cache answered in {scope}. {cause} No counter below it shows the disk's part."
        ),
        Some(shortfall) => format!(
            "A cache answered in {scope}: the disks {shortfall} ({} in {}). {cause}",
            format_percent(worst.missing.share),
            worst.counted.name,
        ),
    };
    let severity = failure_if(worst.missing.share < SHARE_FAILURE);
    let observations = hits.iter().flat_map(|hit| hit.missing.evidence.clone());
    Some(
        Diagnosis::new(severity, claim, observations)
            .with_remedy(remedy)
            .with_command(worst.counted.reproduce),
    )
}

fn cache_hits(record: &Record) -> Vec<CacheHit<'_>> {
    let mut counted: Vec<CountedBytes<'_>> = real_rows(record)
        .map(|measured| workload_bytes(record, measured))
        .collect();
    counted.extend(record.surface().map(survey_bytes));
    let mut hits = Vec::new();
    for counted in counted {
        let missing = missing_bytes(&counted).or_else(|| buffered_loop(record, &counted));
        if let Some(missing) = missing {
            hits.push(CacheHit { counted, missing });
        }
    }
    hits
}

fn workload_bytes<'a>(record: &'a Record, measured: Measured<'a>) -> CountedBytes<'a> {
    let row = measured.row;
    let mut cache = row.data.cache.used;
    let mut unwritten: f64 = 0.0;
    for companion in concurrent_rows(record, row) {
        // Where the page cache was allowed to answer one of those that ran together, the counters
        // prove nothing about any of them.
        if companion.data.cache.used == CachePolicy::Cached {
            cache = CachePolicy::Cached;
        }
        // Blocks that were never written are answered without the disk; they have their own
        // finding.
        if companion.data.workload.streams.is_only(OpKind::Read) {
            unwritten = unwritten.max(unwritten_share(companion));
        }
    }
    CountedBytes {
        index: Some(measured.index),
        target: row.data.target,
        name: workload_name(record, row),
        cache,
        asked: row.data.asked,
        device: &row.data.device,
        unwritten,
        reproduce: &row.figures.reproduce,
    }
}

fn unwritten_share(row: &Row) -> f64 {
    let unwritten_bytes = row.data.unwritten_bytes.unwrap_or(0);
    let holes = unwritten_bytes as f64 / row.data.span_bytes.max(1) as f64;
    // A device does not report holes, but reads of them return zeros.
    let sample = row.data.zero_blocks;
    holes.max(sample.zero as f64 / sample.sampled.max(1) as f64)
}

fn survey_bytes(surface: &SurfaceRecord) -> CountedBytes<'_> {
    CountedBytes {
        index: None,
        target: surface.data.target,
        name: SURVEY.to_owned(),
        cache: surface.data.cache.used,
        asked: surface.data.asked,
        device: &surface.data.device,
        unwritten: 0.0,
        reproduce: &surface.figures.reproduce,
    }
}

/// The setting of a loop device that goes through the page cache, where the counters say nothing
/// because they are its own, or there are none.
fn buffered_loop(record: &Record, counted: &CountedBytes<'_>) -> Option<MissingBytes> {
    if counted.cache == CachePolicy::Cached || counted.asked.total() == 0 {
        return None;
    }
    let layers = &record.targets.get(counted.target)?.layers;
    let layer = layers.iter().position(is_buffered_loop)?;
    let device = counted.device;
    if device.unresolved.is_none() && !device.disks.contains(&layers[layer].name) {
        return None;
    }
    let path = format!("/targets/{}/layers/{layer}/backing_direct", counted.target);
    Some(MissingBytes {
        share: 1.0,
        shortfall: None,
        evidence: vec![evidence_at(path, 0.0, 1.0, "direct I/O")],
    })
}

fn is_buffered_loop(layer: &Layer) -> bool {
    layer.kind == LayerKind::Loop && layer.backing_direct == Some(false)
}

/// Bytes that were requested in one direction, and those that the disks moved. Reads and writes
/// count separately: writes of other processes must not hide that our reads did not reach the disk.
struct DirectionBytes {
    verb: &'static str,
    /// The counter of the disks, below their use in the record.
    counter: &'static str,
    asked: u64,
    moved: u64,
    /// A smaller share of the requested bytes shows a cache; below 0 where nearly all blocks were
    /// never written.
    share_min: f64,
}

impl DirectionBytes {
    fn share(&self) -> f64 {
        self.moved as f64 / self.asked as f64
    }

    fn is_short(&self) -> bool {
        self.asked >= ASKED_BYTES_MIN && self.share() < self.share_min
    }
}

/// Where the disks moved fewer bytes than requested; `None` where they did not.
fn missing_bytes(counted: &CountedBytes<'_>) -> Option<MissingBytes> {
    let device = counted.device;
    let is_counted = device.unresolved.is_none() && device.accounted.is_some();
    if counted.cache == CachePolicy::Cached || !is_counted {
        return None;
    }
    let mut short = vec![
        DirectionBytes {
            verb: "read",
            counter: "read_bytes",
            asked: counted.asked.read_bytes,
            moved: device.read_bytes,
            share_min: SHARE_MIN - counted.unwritten,
        },
        DirectionBytes {
            verb: "wrote",
            counter: "write_bytes",
            asked: counted.asked.write_bytes,
            moved: device.write_bytes,
            share_min: SHARE_MIN,
        },
    ];
    short.retain(DirectionBytes::is_short);
    let worst = smallest_by(&short, |direction| direction.share())?;
    let mut observations = Vec::new();
    for direction in &short {
        let path = format!("{}/device/{}", data_path(counted.index), direction.counter);
        let moved_min = direction.share_min * direction.asked as f64;
        observations.push(evidence_at(path, direction.moved as f64, moved_min, "B"));
    }
    let shortfall = format!(
        "{} only {} of the {} requested",
        worst.verb,
        format_bytes(worst.moved),
        format_bytes(worst.asked)
    );
    Some(MissingBytes {
        share: worst.share(),
        shortfall: Some(shortfall),
        evidence: observations,
    })
}

/// The cache that answered, as far as the layers show it.
fn explanation(record: &Record, hits: &[CacheHit<'_>]) -> Explanation {
    for (index, target) in record.targets.iter().enumerate() {
        if !hits.iter().any(|hit| hit.counted.target == index) {
            continue;
        }
        if let Some(layer) = target.layers.iter().find(|layer| is_buffered_loop(layer)) {
            let name = &layer.name;
            let cause = format!(
                "{name} passes its I/O through the page cache of the filesystem that holds its \
                 file."
            );
            let remedy =
                format!("Bypass it with losetup --direct-io=on /dev/{name}, and measure again.");
            return Explanation::new(cause, remedy);
        }
    }
    let is_buffered = hits
        .iter()
        .any(|hit| hit.counted.cache == CachePolicy::Buffered);
    if is_buffered {
        Explanation::new(
            "These workloads went through the kernel's page cache.",
            "Measure a filesystem or a device that supports O_DIRECT, or use a --size of several \
             times the memory.",
        )
    } else {
        Explanation::new(
            "Direct I/O was on, so a lower layer has a cache: the filesystem, a cache device, or \
             compression.",
            "Do not compare these figures with those of a disk. Measure the block device below \
             the cache, or use a --size larger than the cache.",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states, surveyed};
    use diskproof_model::measurement::Measurement;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || {
            fixture::all_faulty(|measurement| {
                measurement.device.read_bytes = measurement.asked.read_bytes / 10;
                measurement.device.write_bytes = measurement.asked.write_bytes * 9 / 10;
            })
        },
        || unmoved(|measurement| measurement.cache.used = CachePolicy::Cached),
    );

    /// The disks moved nothing.
    fn unmoved(change: impl Fn(&mut Measurement)) -> Record {
        fixture::all_faulty(|measurement| {
            (
                measurement.device.read_bytes,
                measurement.device.write_bytes,
            ) = (0, 0);
            change(measurement);
        })
    }

    /// The diagnosis of two workloads that ran together, one of them with this cache.
    fn with_companion(cache: CachePolicy) -> Option<Diagnosis> {
        let names = ["random-read-d1", "sequential-read"];
        let mut run = fixture::together(&names);
        for measurement in &mut run.measurements {
            if names.contains(&measurement.workload.name.as_str()) {
                measurement.device.read_bytes = measurement.asked.read_bytes / 3;
                measurement.device.accounted = Some(0.3);
            }
            if measurement.workload.name == names[1] {
                measurement.cache.used = cache;
            }
        }
        check(&fixture::judge(run))
    }

    #[test]
    fn page_cache_of_one_companion_spares_all() {
        assert_eq!(with_companion(CachePolicy::Cached), None);
        let claim = with_companion(CachePolicy::Direct).unwrap().claim;
        states(&claim, &["2 of 8 workloads"]);
    }

    #[test]
    fn fires_once_for_all_workloads() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Failure, 10)
        );
        states(&finding.claim, &["all 8 workloads"]);
    }

    #[test]
    fn buffered_loop_device_is_named() {
        let record = fixture::changed(|run| {
            let mut layer = fixture::layer("loop3", LayerKind::Loop, &["sda1"]);
            layer.backing_direct = Some(false);
            run.facts.targets[0].layers.insert(0, layer);
            run.measurements[3].device.read_bytes /= 2;
            run.measurements[3].device.read_bytes += 100;
        });
        let finding = check(&record).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["loop3"]);
        states(&finding.remedy, &["losetup --direct-io=on /dev/loop3"]);
    }

    /// The diagnosis of a run on a loop device, with the counters of this disk.
    fn on_loop(backing_direct: bool, counted: &str) -> Option<Diagnosis> {
        check(&fixture::changed(|run| {
            // On a network filesystem or FUSE nothing lies below the loop device.
            let mut layer = fixture::layer("loop3", LayerKind::Loop, &[]);
            layer.backing_direct = Some(backing_direct);
            run.facts.targets[0].layers = vec![layer];
            for measurement in &mut run.measurements {
                measurement.device.disks = vec![counted.to_owned()];
            }
        }))
    }

    #[test]
    fn buffered_loop_device_without_counters_below_is_enough() {
        let finding = on_loop(false, "loop3").unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["all 8 workloads", "loop3"]);
        states(&finding.remedy, &["losetup --direct-io=on /dev/loop3"]);
        assert_eq!(
            finding.evidence[0].path,
            "/targets/0/layers/0/backing_direct"
        );
        assert_eq!(on_loop(true, "loop3"), None);
        assert_eq!(on_loop(false, "sda"), None, "counters of the disk");
    }

    #[test]
    fn survey_is_compared_with_the_counters() {
        assert_eq!(check(&surveyed::record()), None);
        let less = surveyed::faulty(|survey| survey.device.read_bytes /= 3);
        let finding = check(&less).unwrap();
        assert_eq!(finding.evidence.len(), 1);
        assert_eq!(
            finding.evidence[0].path,
            "/results/0/data/device/read_bytes"
        );
    }

    #[test]
    fn silent_where_it_must_not_judge() {
        assert_eq!(check(&fixture::record()), None);
        let spared: [fn(&mut Measurement); 3] = [
            |measurement| measurement.device.unresolved = Some("overlayfs".to_owned()),
            |measurement| measurement.engine.used = EngineKind::Null,
            |measurement| {
                (measurement.asked.read_bytes, measurement.asked.write_bytes) = (1 << 19, 1 << 19)
            },
        ];
        for (row, spare) in spared.into_iter().enumerate() {
            assert_eq!(check(&unmoved(spare)), None, "{row}");
        }
        let holes = fixture::faulty("random-read-d32", |measurement| {
            measurement.device.read_bytes = 0;
            measurement.unwritten_bytes = Some(fixture::SPAN_BYTES);
        });
        assert_eq!(check(&holes), None, "they have their own finding");
    }
}
