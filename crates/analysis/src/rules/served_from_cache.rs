//! `served-from-cache`: the disks moved clearly fewer bytes than requested, so a cache above them
//! answered. Where no counter below a loop device shows what the disk did, the loop device's own
//! setting decides: without direct I/O it goes through the page cache.

use super::evidence::{SURVEY, evidence_at, places, real, together, workload_name};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule, Taint};
use crate::estimate::smallest_by;
use diskproof_model::finding::{Evidence, Severity};
use diskproof_model::measurement::{ByteCount, DeviceUse};
use diskproof_model::op::OpKind;
use diskproof_model::plan::CachePolicy;
use diskproof_model::record::{MeasurementRecord, Record};
use diskproof_model::surface::SurfaceRecord;
use diskproof_model::target::{Layer, LayerKind};
use diskproof_model::units::{format_bytes, format_percent};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "served-from-cache",
    title: "A cache answered instead of the disk",
    meaning: "The disks moved fewer bytes than requested, so a cache above them answered. The \
              figure is not the disk's.",
    taints: Some(Taint {
        from: Severity::Note,
        why: "a cache answered instead of the disk in",
    }),
    check: Check::Run(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// Smallest share of the requested bytes that the disks must have moved. Their counters are exact,
/// but a cache may rightly hold a few blocks (one just written, the tail of a read-ahead).
const SHARE_MIN: f64 = 0.95;
/// Below this share most of the figure is the cache's.
const SHARE_FAILURE: f64 = 0.5;
/// Fewer bytes than this prove nothing.
const ASKED_BYTES_MIN: u64 = 1 << 20;

/// What was requested from a target's disks and what they did: of a workload or of the survey.
#[derive(Clone)]
struct CountedBytes<'a> {
    target: usize,
    name: String,
    /// `/measurements/2/device` or `/surface/device`.
    path: String,
    cache: CachePolicy,
    asked: ByteCount,
    device: &'a DeviceUse,
    /// Share of the bytes read that was never written, and so is answered without the disk.
    unwritten: f64,
    reproduce: &'a str,
}

struct CacheAnswer<'a> {
    counted: CountedBytes<'a>,
    index: Option<usize>,
    share: f64,
    words: String,
    evidence: Vec<Evidence>,
}

/// Whether this rule finds something.
pub(super) fn finds(record: &Record) -> bool {
    check(record).is_some()
}

fn check(record: &Record) -> Option<Diagnosis> {
    let measured = real(record).map(|(index, m)| (Some(index), of_workload(record, index, m)));
    let surveyed = record.surface.as_ref().map(|s| (None, of_survey(s)));
    let hits: Vec<CacheAnswer> = measured
        .chain(surveyed)
        .filter_map(|(index, counted)| {
            hit(index, &counted).or_else(|| {
                let evidence = vec![buffered_loop(record, &counted)?];
                Some(CacheAnswer {
                    index,
                    share: 1.0,
                    words: String::new(),
                    evidence,
                    counted,
                })
            })
        })
        .collect();
    let worst = smallest_by(&hits, |hit| hit.share)?;
    let (cause, remedy) = cause(record, &hits);
    let scope = places(record, hits.iter().map(|h| h.index));
    let claim = if worst.words.is_empty() {
        format!(
            "The page cache answered in {scope}. {cause} No counter below it shows the disk's part."
        )
    } else {
        format!(
            "A cache answered in {scope}: the disks {} ({} in {}). {cause}",
            worst.words,
            format_percent(worst.share),
            worst.counted.name,
        )
    };
    Some(Diagnosis {
        severity: if worst.share < SHARE_FAILURE {
            Severity::Failure
        } else {
            Severity::Warning
        },
        claim,
        evidence: hits.iter().flat_map(|h| h.evidence.clone()).collect(),
        remedy,
        reproduce: Some(worst.counted.reproduce.to_owned()).filter(|command| !command.is_empty()),
    })
}

fn of_workload<'a>(record: &'a Record, index: usize, m: &'a MeasurementRecord) -> CountedBytes<'a> {
    let shares = together(record, m)
        .filter(|m| m.workload.streams.is_only(OpKind::Read))
        .map(unwritten_share);
    // Where the page cache was allowed to answer one of those that ran together, the counters prove
    // nothing about any of them.
    let is_cached = together(record, m).any(|m| m.workload.cache == CachePolicy::Cached);
    CountedBytes {
        target: m.target,
        name: workload_name(record, m),
        path: format!("/measurements/{index}/device"),
        cache: if is_cached {
            CachePolicy::Cached
        } else {
            m.workload.cache
        },
        asked: m.asked,
        device: &m.device,
        // Blocks that were never written are answered without the disk; they have their own
        // finding.
        unwritten: shares.fold(0.0, f64::max),
        reproduce: &m.reproduce,
    }
}

fn unwritten_share(m: &MeasurementRecord) -> f64 {
    let holes = m.unwritten_bytes.unwrap_or(0) as f64 / m.workload.span_bytes.max(1) as f64;
    // A device does not report holes, but reads of them return zeros.
    holes.max(m.zero_blocks.zero as f64 / m.zero_blocks.sampled.max(1) as f64)
}

fn of_survey(s: &SurfaceRecord) -> CountedBytes<'_> {
    CountedBytes {
        target: s.target,
        name: SURVEY.to_owned(),
        path: "/surface/device".to_owned(),
        cache: s.cache,
        asked: s.asked,
        device: &s.device,
        unwritten: 0.0,
        reproduce: &s.reproduce,
    }
}

/// The setting of a loop device that goes through the page cache, where the counters say nothing
/// because they are its own, or there are none.
fn buffered_loop(record: &Record, counted: &CountedBytes<'_>) -> Option<Evidence> {
    let device = counted.device;
    if counted.cache == CachePolicy::Cached || counted.asked.total() == 0 {
        return None;
    }
    let layers = &record.targets.get(counted.target)?.layers;
    let layer = layers.iter().position(is_buffered_loop)?;
    let is_blind = device.unresolved.is_some() || device.disks.contains(&layers[layer].name);
    let path = format!("/targets/{}/layers/{layer}/backing_direct", counted.target);
    is_blind.then(|| evidence_at(path, 0.0, 1.0, "direct I/O"))
}

fn is_buffered_loop(layer: &Layer) -> bool {
    layer.kind == LayerKind::Loop && layer.backing_direct == Some(false)
}

/// Reads and writes count separately: writes of other processes must not hide that our reads did
/// not reach the disk.
fn hit<'a>(index: Option<usize>, counted: &CountedBytes<'a>) -> Option<CacheAnswer<'a>> {
    let (asked, device) = (counted.asked, counted.device);
    let is_counted = device.unresolved.is_none() && device.accounted.is_some();
    if counted.cache == CachePolicy::Cached || !is_counted {
        return None;
    }
    let (reads, writes) = (asked.read_bytes, asked.write_bytes);
    let read_min = SHARE_MIN - counted.unwritten;
    let directions = [
        ("read", "read_bytes", reads, device.read_bytes, read_min),
        (
            "wrote",
            "write_bytes",
            writes,
            device.write_bytes,
            SHARE_MIN,
        ),
    ];
    let share = |asked: u64, did: u64| did as f64 / asked as f64;
    let missed = directions.into_iter().filter(|(.., asked, did, least)| {
        *asked >= ASKED_BYTES_MIN && share(*asked, *did) < *least
    });
    let missed: Vec<_> = missed.collect();
    let &(verb, _, asked, did, _) =
        smallest_by(&missed, |(_, _, asked, did, _)| share(*asked, *did))?;
    let evidence = missed.iter().map(|(_, place, asked, did, least)| {
        let path = format!("{}/{place}", counted.path);
        evidence_at(path, *did as f64, least * *asked as f64, "B")
    });
    Some(CacheAnswer {
        index,
        share: share(asked, did),
        words: format!(
            "{verb} only {} of the {} requested",
            format_bytes(did),
            format_bytes(asked)
        ),
        evidence: evidence.collect(),
        counted: counted.clone(),
    })
}

/// Which cache answered, as far as the layers show, and what to do about it.
fn cause(record: &Record, hits: &[CacheAnswer<'_>]) -> (String, String) {
    let all = record.targets.iter().enumerate();
    let targets = all.filter(|(i, _)| hits.iter().any(|hit| hit.counted.target == *i));
    let mut layers = targets.flat_map(|(_, target)| &target.layers);
    if let Some(layer) = layers.find(|layer| is_buffered_loop(layer)) {
        let name = &layer.name;
        return (
            format!(
                "{name} passes its I/O through the page cache of the filesystem that holds its \
                 file."
            ),
            format!("Bypass it with losetup --direct-io=on /dev/{name}, and measure again."),
        );
    }
    let (cause, remedy) = if hits
        .iter()
        .any(|hit| hit.counted.cache == CachePolicy::Buffered)
    {
        (
            "These workloads went through the kernel's page cache.",
            "Measure a filesystem or a device that supports O_DIRECT, or use a --size of several \
         times the memory.",
        )
    } else {
        (
            "Direct I/O was on, so a lower layer has a cache: the filesystem, a cache device, or \
         compression.",
            "Do not compare these figures with those of a disk. Measure the block device below \
         the cache, or use a --size larger than the cache.",
        )
    };
    (cause.to_owned(), remedy.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    pub(super) fn fires() -> Record {
        fixture::all_faulty(|m| {
            (m.device.read_bytes, m.device.write_bytes) =
                (m.asked.read_bytes / 10, m.asked.write_bytes * 9 / 10)
        })
    }

    pub(super) fn silent() -> Record {
        fixture::all_faulty(|m| {
            (m.device.read_bytes, m.device.write_bytes) = (0, 0);
            m.cache.used = CachePolicy::Cached;
        })
    }

    #[test]
    fn page_cache_of_one_companion_spares_all() {
        let (reads, scan) = ("random-read-d1", "sequential-read");
        let record = |cache: CachePolicy| {
            let mut run = fixture::together(&[reads, scan]);
            for m in run
                .1
                .iter_mut()
                .filter(|m| [reads, scan].contains(&m.workload.name.as_str()))
            {
                m.device.read_bytes = m.asked.read_bytes / 3;
                m.device.accounted = Some(0.3);
            }
            run.1
                .iter_mut()
                .filter(|m| m.workload.name == scan)
                .for_each(|m| m.cache.used = cache);
            check(&fixture::judge(run))
        };
        assert_eq!(record(CachePolicy::Cached), None);
        assert!(
            record(CachePolicy::Direct)
                .unwrap()
                .claim
                .contains("2 of 8 workloads")
        );
    }

    #[test]
    fn fires_once_for_all_workloads() {
        let finding = check(&fires()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Failure, 10)
        );
        assert!(
            finding
                .claim
                .starts_with("A cache answered in all 8 workloads: the disks read only"),
            "{}",
            finding.claim
        );
    }

    #[test]
    fn buffered_loop_device_is_named() {
        let mut run = fixture::run();
        let mut layer = fixture::layer("loop3", LayerKind::Loop, &["sda1"]);
        layer.backing_direct = Some(false);
        run.0.targets[0].layers.insert(0, layer);
        run.1[3].device.read_bytes /= 2;
        run.1[3].device.read_bytes += 100;
        let finding = check(&fixture::judge(run)).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding.claim.contains("loop3")
                && finding.remedy.contains("losetup --direct-io=on /dev/loop3"),
            "{finding:?}"
        );
    }

    #[test]
    fn buffered_loop_device_without_counters_below_is_enough() {
        let record = |direct: bool, counted: &str| {
            let mut run = fixture::run();
            // On a network filesystem or FUSE nothing lies below the loop device.
            let mut layer = fixture::layer("loop3", LayerKind::Loop, &[]);
            layer.backing_direct = Some(direct);
            run.0.targets[0].layers = vec![layer];
            for m in &mut run.1 {
                m.device.disks = vec![counted.to_owned()];
            }
            fixture::judge(run)
        };
        let finding = check(&record(false, "loop3")).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding.claim.starts_with(
                "The page cache answered in all 8 workloads. loop3 passes its I/O through the \
                 page cache"
            ) && finding.remedy.contains("losetup --direct-io=on /dev/loop3"),
            "{finding:?}"
        );
        assert_eq!(
            finding.evidence[0].path,
            "/targets/0/layers/0/backing_direct"
        );
        assert_eq!(check(&record(true, "loop3")), None);
        assert_eq!(check(&record(false, "sda")), None, "counters of the disk");
    }

    #[test]
    fn survey_is_compared_with_the_counters() {
        let mut run = crate::fixture::surveyed::SurveyedDisk::rotating().run(1);
        assert_eq!(check(&crate::fixture::surveyed::judge(run.clone())), None);
        run.1.device.read_bytes /= 3;
        let finding = check(&crate::fixture::surveyed::judge(run)).unwrap();
        assert!(
            finding
                .claim
                .starts_with("A cache answered in the survey: the disks read only"),
            "{}",
            finding.claim
        );
        assert_eq!(
            (finding.evidence.len(), finding.evidence[0].path.as_str()),
            (1, "/surface/device/read_bytes")
        );
    }

    #[test]
    fn silent_where_it_must_not_judge() {
        assert_eq!(check(&fixture::record()), None);
        let nothing = |m: &mut diskproof_model::measurement::Measurement| {
            (m.device.read_bytes, m.device.write_bytes) = (0, 0)
        };
        let spared: [fn(&mut diskproof_model::measurement::Measurement); 4] = [
            |m| m.cache.used = CachePolicy::Cached,
            |m| m.device.unresolved = Some("overlayfs".to_owned()),
            |m| m.engine.used = diskproof_model::plan::EngineKind::Null,
            |m| (m.asked.read_bytes, m.asked.write_bytes) = (1 << 19, 1 << 19),
        ];
        for spare in spared {
            let record = fixture::all_faulty(|m| {
                nothing(m);
                spare(m);
            });
            assert_eq!(check(&record), None);
        }
    }

    #[test]
    fn holes_have_their_own_finding() {
        let record = fixture::faulty("random-read-d32", |m| {
            m.unwritten_bytes = Some(fixture::SPAN_BYTES);
            m.device.read_bytes = 0;
        });
        assert_eq!(check(&record), None);
    }
}
