//! Whether the figures come from the disk. `served-from-cache`: the disks moved clearly fewer bytes
//! than requested, so a cache above them answered. Where no counter below a loop device shows what
//! the disk did, the loop device's own setting decides: without direct I/O it goes through the page
//! cache. `cache-answered`: the survey saw what no disk can do: more than the link below carries,
//! or random accesses in less time than a turning platter takes to come round. What the disks' own
//! counters show is not reported again. `not-direct`: direct I/O was asked for, and refused.
//! `unproven`: no disk could be found or counted below the target, so nothing confirms that the
//! figures come from one.

use super::rule::*;
use crate::mechanics::{link_bytes_per_second, links, reported_rpm};
use diskproof_model::measurement::{ByteCount, DeviceUse};

pub(super) const SERVED_FROM_CACHE: Rule = Rule {
    code: "served-from-cache",
    check: Check::Run(check_served_from_cache),
    says: Meaning::NotTheDisk {
        cause: Cause::Cache,
    },
    #[cfg(test)]
    examples: tests::SERVED_FROM_CACHE,
};

/// Smallest share of the requested bytes that the disks must have moved. Their counters are exact,
/// but a cache may rightly hold a few blocks (one just written, the tail of a read-ahead).
const SHARE_MIN: f64 = 0.95;
/// Below this share most of the figure is the cache's.
const SHARE_FAILURE: f64 = 0.5;
/// Fewer bytes than this prove nothing.
const ASKED_BYTES_MIN: u64 = 1 << 20;

/// What was requested from a target's disks and what they did: of a workload or of the survey.
struct CountedBytes<'a> {
    /// Of the workload; `None` of the survey.
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

/// What shows that a cache answered: the share that the disks moved, in words, and where.
type Missing = (f64, String, Vec<Evidence>);

/// Whether the disks' counters show that a cache answered.
pub(super) fn is_served_from_cache(record: &Record) -> bool {
    check_served_from_cache(record).is_some()
}

fn check_served_from_cache(record: &Record) -> Option<Diagnosis> {
    let measured = real(record).map(|(index, m)| of_workload(record, index, m));
    let hits: Vec<(CountedBytes, Missing)> = measured
        .chain(record.surface().map(of_survey))
        .filter_map(|counted| {
            let missing = missing_bytes(&counted).or_else(|| buffered_loop(record, &counted))?;
            Some((counted, missing))
        })
        .collect();
    let (worst, (share, words, _)) = smallest_by(&hits, |(_, (share, ..))| *share)?;
    let (cause, remedy) = which_cache(record, &hits);
    let scope = places(record, hits.iter().map(|(counted, _)| counted.index));
    let claim = if words.is_empty() {
        format!(
            "The page cache answered in {scope}. {cause} No counter below it shows the disk's part."
        )
    } else {
        format!(
            "A cache answered in {scope}: the disks {} ({} in {}). {cause}",
            words,
            format_percent(*share),
            worst.name,
        )
    };
    Some(Diagnosis {
        severity: failure_if(*share < SHARE_FAILURE),
        claim,
        evidence: hits
            .iter()
            .flat_map(|(_, (.., seen))| seen.clone())
            .collect(),
        remedy,
        reproduce: Some(worst.reproduce.to_owned()).filter(|command| !command.is_empty()),
    })
}

fn of_workload<'a>(record: &'a Record, index: usize, m: &'a Row) -> CountedBytes<'a> {
    let shares = together(record, m)
        .filter(|m| m.data.workload.streams.is_only(OpKind::Read))
        .map(unwritten_share);
    // Where the page cache was allowed to answer one of those that ran together, the counters prove
    // nothing about any of them.
    let is_cached = together(record, m).any(|m| m.data.cache.used == CachePolicy::Cached);
    CountedBytes {
        index: Some(index),
        target: m.data.target,
        name: workload_name(record, m),
        cache: if is_cached {
            CachePolicy::Cached
        } else {
            m.data.cache.used
        },
        asked: m.data.asked,
        device: &m.data.device,
        // Blocks that were never written are answered without the disk; they have their own
        // finding.
        unwritten: shares.fold(0.0, f64::max),
        reproduce: &m.figures.reproduce,
    }
}

fn unwritten_share(m: &Row) -> f64 {
    let holes = m.data.unwritten_bytes.unwrap_or(0) as f64 / m.data.span_bytes.max(1) as f64;
    // A device does not report holes, but reads of them return zeros.
    holes.max(m.data.zero_blocks.zero as f64 / m.data.zero_blocks.sampled.max(1) as f64)
}

fn of_survey(s: &SurfaceRecord) -> CountedBytes<'_> {
    CountedBytes {
        index: None,
        target: s.data.target,
        name: SURVEY.to_owned(),
        cache: s.data.cache.used,
        asked: s.data.asked,
        device: &s.data.device,
        unwritten: 0.0,
        reproduce: &s.figures.reproduce,
    }
}

/// The setting of a loop device that goes through the page cache, where the counters say nothing
/// because they are its own, or there are none.
fn buffered_loop(record: &Record, counted: &CountedBytes<'_>) -> Option<Missing> {
    let device = counted.device;
    if counted.cache == CachePolicy::Cached || counted.asked.total() == 0 {
        return None;
    }
    let layers = &record.targets.get(counted.target)?.layers;
    let layer = layers.iter().position(is_buffered_loop)?;
    let is_blind = device.unresolved.is_some() || device.disks.contains(&layers[layer].name);
    let path = format!("/targets/{}/layers/{layer}/backing_direct", counted.target);
    let evidence = evidence_at(path, 0.0, 1.0, "direct I/O");
    is_blind.then(|| (1.0, String::new(), vec![evidence]))
}

fn is_buffered_loop(layer: &Layer) -> bool {
    layer.kind == LayerKind::Loop && layer.backing_direct == Some(false)
}

/// Where the disks moved fewer bytes than requested; `None` where they did not. Reads and writes
/// count separately: writes of other processes must not hide that our reads did not reach the disk.
fn missing_bytes(counted: &CountedBytes<'_>) -> Option<Missing> {
    let (asked, device) = (counted.asked, counted.device);
    let is_counted = device.unresolved.is_none() && device.accounted.is_some();
    if counted.cache == CachePolicy::Cached || !is_counted {
        return None;
    }
    let (reads, writes) = (asked.read_bytes, asked.write_bytes);
    let read_min = SHARE_MIN - counted.unwritten;
    let (read, written) = (device.read_bytes, device.write_bytes);
    let directions = [
        ("read", "read_bytes", reads, read, read_min),
        ("wrote", "write_bytes", writes, written, SHARE_MIN),
    ];
    let share = |asked: u64, did: u64| did as f64 / asked as f64;
    let missed = directions.into_iter().filter(|(.., asked, did, least)| {
        *asked >= ASKED_BYTES_MIN && share(*asked, *did) < *least
    });
    let missed: Vec<_> = missed.collect();
    let &(verb, _, asked, did, _) =
        smallest_by(&missed, |(_, _, asked, did, _)| share(*asked, *did))?;
    let evidence = missed.iter().map(|(_, place, asked, did, least)| {
        let path = format!("{}/device/{place}", data_path(counted.index));
        evidence_at(path, *did as f64, least * *asked as f64, "B")
    });
    let share = share(asked, did);
    let (did, asked) = (format_bytes(did), format_bytes(asked));
    let words = format!("{verb} only {did} of the {asked} requested");
    Some((share, words, evidence.collect()))
}

/// Which cache answered, as far as the layers show, and what to do about it.
fn which_cache(record: &Record, hits: &[(CountedBytes<'_>, Missing)]) -> (String, String) {
    let all = record.targets.iter().enumerate();
    let targets = all.filter(|(i, _)| hits.iter().any(|(hit, _)| hit.target == *i));
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
        .any(|(hit, _)| hit.cache == CachePolicy::Buffered)
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

pub(super) const CACHE_ANSWERED: Rule = Rule {
    code: "cache-answered",
    check: Check::Survey(check_cache_answered),
    says: Meaning::NotTheDisk {
        cause: Cause::Cache,
    },
    #[cfg(test)]
    examples: tests::CACHE_ANSWERED,
};

/// A rate counts as above the link from this share on: the link's rate is exact, a sample's time is
/// not quite.
const LINK_SHARE: f64 = 1.05;
/// An access counts as one without a platter when it takes less than this share of a turn; of
/// honest ones as few in a hundred do, before any seek.
const TURN_SHARE: f64 = 0.05;
/// Smallest share of random accesses that must be that fast: honest ones and a read-ahead that
/// happened to fit are fewer.
const FAST_MIN: f64 = 0.15;

fn check_cache_answered(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface()?;
    if is_served_from_cache(record) {
        return None;
    }
    let mut seen = above_the_link(record, surface);
    seen.extend(faster_than_the_platter(record, surface));
    seen.first()?;
    let (words, evidence): (Vec<String>, Vec<Evidence>) = seen.into_iter().unzip();
    Some(Diagnosis::new(
        Severity::Warning,
        format!("A cache answered, not the disk: {}.", words.join("; ")),
        evidence,
    ))
}

fn above_the_link(record: &Record, surface: &SurfaceRecord) -> Vec<(String, Evidence)> {
    let Some(link) = link_bytes_per_second(record, surface.data.target) else {
        return Vec::new();
    };
    let names = links(record, surface.data.target).into_iter().map(|at| {
        let speed = at.link.speed.as_ref();
        speed.map_or(at.link.bus.clone(), |speed| {
            format!("{} {speed}", at.link.bus)
        })
    });
    let names = names.collect::<Vec<_>>().join(", ");
    let most = LINK_SHARE * link;
    let top = surface.figures.rate.as_ref().map(|r| r.max);
    let burst = surface.data.burst.as_ref().map(|b| b.throughput.value);
    let burst_path = "/results/0/data/burst/throughput/value";
    let rates = [
        (
            "the highest rate of the curve",
            "/results/0/figures/rate/max",
            top,
        ),
        ("reading the same bytes again", burst_path, burst),
    ];
    let above = rates.into_iter().filter_map(|(what, path, rate)| {
        let rate = rate.filter(|rate| *rate > most)?;
        let words = format!(
            "{what} ran at {}, but the link ({names}) carries only {}",
            format_throughput(rate),
            format_throughput(link)
        );
        Some((words, evidence_at(path, rate, most, "B/s")))
    });
    above.collect()
}

/// By what the system says of the disk; what the user says of it is `access-time-off`'s.
fn faster_than_the_platter(record: &Record, surface: &SurfaceRecord) -> Option<(String, Evidence)> {
    let sheet = record.plan.questions.data_sheet;
    if sheet.is_some_and(|sheet| sheet.rpm.is_some()) {
        return None;
    }
    let rpm = reported_rpm(record)?;
    let turn_ns = 60e9 / f64::from(rpm);
    let random = surface.figures.seeks.get(&SeekPattern::Random)?;
    let accesses = record.access().iter();
    let accesses = accesses.filter(|a| a.seek == SeekPattern::Random);
    let accesses: Vec<f64> = accesses.map(|a| a.latency_ns as f64).collect();
    let fast_ns = TURN_SHARE * turn_ns;
    let fast = accesses.iter().filter(|ns| **ns < fast_ns).count();
    let share = fast as f64 / accesses.len().max(1) as f64;
    let words = format!(
        "{} of {} random accesses took less than {}, but at {rpm} rpm half a turn alone takes {}",
        format_percent(share),
        accesses.len(),
        format_latency(fast_ns as u64),
        format_latency((turn_ns / 2.0) as u64)
    );
    let path = "/results/0/figures/seeks/random/min_ns";
    let evidence = evidence_at(path, random.min_ns as f64, fast_ns, "ns");
    (share >= FAST_MIN).then_some((words, evidence))
}

pub(super) const NOT_DIRECT: Rule = Rule {
    code: "not-direct",
    check: Check::Run(check_not_direct),
    says: Meaning::NotTheDisk {
        cause: Cause::PageCache,
    },
    #[cfg(test)]
    examples: tests::NOT_DIRECT,
};

fn check_not_direct(record: &Record) -> Option<Diagnosis> {
    let workloads = real(record)
        .filter(|(_, m)| {
            m.data.cache.asked == CachePolicy::Direct && m.data.cache.used != CachePolicy::Direct
        })
        .map(|(index, m)| (Some(index), m.data.target, m.data.cache.why.as_ref()));
    // A survey always asks for direct I/O.
    let surveys = record.surface().into_iter();
    let survey = surveys
        .filter(|s| s.data.cache.used != CachePolicy::Direct && s.data.engine != EngineKind::Null)
        .map(|s| (None, s.data.target, s.data.cache.why.as_ref()));
    let hits: Vec<_> = workloads.chain(survey).collect();
    let &(_, target, why) = hits.first()?;
    let target = record.targets.get(target);
    let filesystem = target
        .and_then(|target| target.filesystem.as_ref())
        .map_or("the target", |f| &f.kind);
    let why = why.map_or(String::new(), |why| format!(" ({why})"));
    let indices = || hits.iter().map(|(index, ..)| *index);
    let evidence = indices().map(|index| {
        let path = data_path(index) + "/cache/used";
        evidence_at(path, 0.0, 1.0, "direct I/O")
    });
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "{filesystem} refused direct I/O{why}, so {} went through the page cache, which was \
             emptied during the run. Figures may include the speed of memory.",
            places(record, indices())
        ),
        evidence,
    ))
}

pub(super) const UNPROVEN: Rule = Rule {
    code: "unproven",
    check: Check::Run(check_unproven),
    says: Meaning::NotTheDisk {
        cause: Cause::Unconfirmed,
    },
    #[cfg(test)]
    examples: tests::UNPROVEN,
};

fn check_unproven(record: &Record) -> Option<Diagnosis> {
    let measured = real(record).map(|(index, m)| (Some(index), &m.data.device));
    let surveyed = record.surface().into_iter().map(|s| (None, &s.data.device));
    let hits: Vec<(Option<usize>, &str)> = measured
        .chain(surveyed)
        .filter_map(|(index, device)| Some((index, device.unresolved.as_deref()?)))
        .collect();
    let &(_, why) = hits.first()?;
    let evidence = |&(index, _): &(Option<usize>, &str)| {
        let path = data_path(index) + "/device/accounted";
        evidence_at(path, 0.0, 1.0, "of the bytes")
    };
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "No counter confirms that a disk moved the bytes of {} ({why}). A cache may have \
             answered, and syncs may not have reached a medium.",
            places(record, hits.iter().map(|(index, _)| *index)),
        ),
        hits.iter().map(evidence),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::{self, SurveyedDisk, rotating};
    use crate::fixture::{self, states};
    use crate::judge::RunFacts;
    use diskproof_model::health::DiskHealth;
    use diskproof_model::measurement::{CacheUse, Measurement};
    use diskproof_model::surface::{DataSheet, SurfaceMeasurement};
    use diskproof_model::verdict::{Grade, TrustLevel};

    pub(super) const SERVED_FROM_CACHE: Examples = Examples::of(
        || {
            fixture::all_faulty(|m| {
                m.device.read_bytes = m.asked.read_bytes / 10;
                m.device.write_bytes = m.asked.write_bytes * 9 / 10;
            })
        },
        || unmoved(|m| m.cache.used = CachePolicy::Cached),
    );
    pub(super) const CACHE_ANSWERED: Examples =
        Examples::of(|| on_link(92e6, 700e6), || on_link(140e6, 149e6));
    pub(super) const NOT_DIRECT: Examples = Examples::of(
        || fixture::all_faulty(|m| refuse(&mut m.cache)),
        || {
            fixture::all_faulty(|m| {
                (m.cache.asked, m.cache.used) = (CachePolicy::Buffered, CachePolicy::Buffered)
            })
        },
    );
    pub(super) const UNPROVEN: Examples = Examples::of(
        || {
            fixture::all_faulty(|m| {
                m.device.unresolved = Some("fuse has no block device".to_owned());
                m.device.accounted = None;
            })
        },
        fixture::record,
    );

    /// The disks moved nothing.
    fn unmoved(change: impl Fn(&mut Measurement)) -> Record {
        fixture::all_faulty(|m| {
            (m.device.read_bytes, m.device.write_bytes) = (0, 0);
            change(m);
        })
    }

    fn refuse(cache: &mut CacheUse) {
        (cache.used, cache.why) = (CachePolicy::Buffered, Some("open: EINVAL".to_owned()));
    }

    #[test]
    fn page_cache_of_one_companion_spares_all() {
        let names = ["random-read-d1", "sequential-read"];
        let found = |cache: CachePolicy| {
            let mut run = fixture::together(&names);
            for m in &mut run.1 {
                if names.contains(&m.workload.name.as_str()) {
                    m.device.read_bytes = m.asked.read_bytes / 3;
                    m.device.accounted = Some(0.3);
                }
                if m.workload.name == names[1] {
                    m.cache.used = cache;
                }
            }
            check_served_from_cache(&fixture::judge(run))
        };
        assert_eq!(found(CachePolicy::Cached), None);
        states(
            &found(CachePolicy::Direct).unwrap().claim,
            &["2 of 8 workloads"],
        );
    }

    #[test]
    fn fires_once_for_all_workloads() {
        let finding = check_served_from_cache(&(SERVED_FROM_CACHE.fires)()).unwrap();
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
            run.0.targets[0].layers.insert(0, layer);
            run.1[3].device.read_bytes /= 2;
            run.1[3].device.read_bytes += 100;
        });
        let finding = check_served_from_cache(&record).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["loop3"]);
        states(&finding.remedy, &["losetup --direct-io=on /dev/loop3"]);
    }

    #[test]
    fn buffered_loop_device_without_counters_below_is_enough() {
        let found = |direct: bool, counted: &str| {
            check_served_from_cache(&fixture::changed(|run| {
                // On a network filesystem or FUSE nothing lies below the loop device.
                let mut layer = fixture::layer("loop3", LayerKind::Loop, &[]);
                layer.backing_direct = Some(direct);
                run.0.targets[0].layers = vec![layer];
                for m in &mut run.1 {
                    m.device.disks = vec![counted.to_owned()];
                }
            }))
        };
        let finding = found(false, "loop3").unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["all 8 workloads", "loop3"]);
        states(&finding.remedy, &["losetup --direct-io=on /dev/loop3"]);
        assert_eq!(
            finding.evidence[0].path,
            "/targets/0/layers/0/backing_direct"
        );
        assert_eq!(found(true, "loop3"), None);
        assert_eq!(found(false, "sda"), None, "counters of the disk");
    }

    #[test]
    fn survey_is_compared_with_the_counters() {
        assert_eq!(check_served_from_cache(&surveyed::record()), None);
        let less = surveyed::faulty(|survey| survey.device.read_bytes /= 3);
        let finding = check_served_from_cache(&less).unwrap();
        assert_eq!(finding.evidence.len(), 1);
        assert_eq!(
            finding.evidence[0].path,
            "/results/0/data/device/read_bytes"
        );
    }

    #[test]
    fn silent_where_it_must_not_judge() {
        assert_eq!(check_served_from_cache(&fixture::record()), None);
        let spared: [fn(&mut Measurement); 3] = [
            |m| m.device.unresolved = Some("overlayfs".to_owned()),
            |m| m.engine.used = EngineKind::Null,
            |m| (m.asked.read_bytes, m.asked.write_bytes) = (1 << 19, 1 << 19),
        ];
        for (row, spare) in spared.into_iter().enumerate() {
            assert_eq!(check_served_from_cache(&unmoved(spare)), None, "{row}");
        }
        let holes = fixture::faulty("random-read-d32", |m| {
            m.device.read_bytes = 0;
            m.unwritten_bytes = Some(fixture::SPAN_BYTES);
        });
        assert_eq!(
            check_served_from_cache(&holes),
            None,
            "they have their own finding"
        );
    }

    /// A disk on SATA 1.5 Gbps, which carries 150 MB/s.
    fn on_link(rate: f64, burst: f64) -> Record {
        let mut run = rotating(|disk| (disk.outer, disk.inner) = (rate, rate / 2.0)).run(1);
        let link = run.0.targets[0].layers[0].link.as_mut().unwrap();
        (link.speed, link.bytes_per_second_max) = (Some("1.5 Gbps".to_owned()), Some(150_000_000));
        run.1.burst = Some(surveyed::burst(burst));
        surveyed::judge(run)
    }

    /// A disk that says that it turns, of whose random accesses a cache answers these percent.
    fn cached(rpm: Option<u32>, percent: usize) -> (RunFacts, SurfaceMeasurement) {
        let mut run = SurveyedDisk::rotating().run(1);
        run.0.health = vec![DiskHealth {
            disk: "sda".to_owned(),
            rotation_rpm: rpm,
            ..DiskHealth::default()
        }];
        for (_, access) in run
            .1
            .access
            .iter_mut()
            .enumerate()
            .filter(|(i, _)| i % 100 < percent)
        {
            access.latency_ns = 40_000;
        }
        run
    }

    #[test]
    fn more_than_the_link_carries_is_a_cache() {
        let finding = check_cache_answered(&(CACHE_ANSWERED.fires)()).unwrap();
        states(&finding.claim, &["700 MB/s", "SATA 1.5 Gbps", "150 MB/s"]);
        let both = check_cache_answered(&on_link(400e6, 700e6)).unwrap();
        assert_eq!(both.evidence.len(), 2);
    }

    #[test]
    fn faster_than_the_platter_is_a_cache() {
        let finding = check_cache_answered(&surveyed::judge(cached(Some(7200), 50))).unwrap();
        states(&finding.claim, &["50 % of 400", "417 µs", "7200 rpm"]);
    }

    #[test]
    fn what_a_disk_and_its_link_can_do_is_no_finding() {
        assert_eq!(check_cache_answered(&surveyed::record()), None);
        for (rpm, percent) in [(Some(7200), 5), (Some(0), 100), (None, 100)] {
            let record = surveyed::judge(cached(rpm, percent));
            assert_eq!(check_cache_answered(&record), None, "{rpm:?} {percent}");
        }
        let mut told = cached(Some(7200), 100);
        told.0.plan.questions.data_sheet = Some(DataSheet {
            rpm: Some(7200),
            ..DataSheet::default()
        });
        let mut counted = cached(Some(7200), 100);
        counted.1.device.read_bytes = 0;
        for (run, by) in [(told, "access-time-off"), (counted, "served-from-cache")] {
            assert_eq!(
                check_cache_answered(&surveyed::judge(run)),
                None,
                "{by} tells it"
            );
        }
    }

    #[test]
    fn a_refusal_is_reported_with_its_reason() {
        let finding = check_not_direct(&(NOT_DIRECT.fires)()).unwrap();
        states(&finding.claim, &["ext4", "open: EINVAL", "all 8 workloads"]);
        assert_eq!(finding.evidence.len(), 8);
        let survey = surveyed::faulty(|survey| refuse(&mut survey.cache));
        let finding = check_not_direct(&survey).unwrap();
        states(&finding.claim, &["open: EINVAL", "the survey"]);
        assert_eq!(finding.evidence[0].path, "/results/0/data/cache/used");
    }

    #[test]
    fn unproven_figures_are_never_good_and_named_in_the_trust_line() {
        let verdict = (UNPROVEN.fires)().verdict.unwrap();
        let grades: Vec<Option<Grade>> = verdict.grades.iter().map(|use_| use_.grade).collect();
        assert_eq!(grades, [None; 4]);
        assert_eq!(verdict.trust.level, TrustLevel::Doubtful);
        assert_eq!(verdict.worst.unwrap().code, "unproven");
        let proven = fixture::record().verdict.unwrap();
        assert!(proven.grades.iter().all(|use_| use_.grade.is_some()));
    }
}
