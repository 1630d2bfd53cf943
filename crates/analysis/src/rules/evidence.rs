//! What the rules share: which measurements they examine, how they point into the record, and how
//! they name what a finding concerns. Holds no threshold.

use crate::estimate;
use diskproof_model::finding::{Evidence, Severity};
use diskproof_model::plan::EngineKind;
use diskproof_model::record::{MeasurementRecord, Record};
use diskproof_model::series::TimeSeries;
use diskproof_model::target::Layer;

/// The name of the survey in a list of workloads.
pub(super) const SURVEY: &str = "the survey";

/// A measurement and its place in the record.
pub(super) type Measured<'a> = (usize, &'a MeasurementRecord);

/// Every measurement that did real I/O.
pub(super) fn real(record: &Record) -> impl Iterator<Item = Measured<'_>> {
    record
        .measurements
        .iter()
        .enumerate()
        .filter(|(_, m)| m.workload.engine != EngineKind::Null)
}

/// The measurement and those of the workloads that ran at the same time on the same target, which
/// share its device counters.
pub(super) fn together<'a>(
    record: &'a Record,
    m: &'a MeasurementRecord,
) -> impl Iterator<Item = &'a MeasurementRecord> {
    let is_concurrent = |other: &MeasurementRecord| {
        other.target == m.target && m.workload.together_with.contains(&other.workload.name)
    };
    std::iter::once(m).chain(
        record
            .measurements
            .iter()
            .filter(move |other| is_concurrent(other)),
    )
}

/// An observation at `/measurements/INDEX/PLACE`.
pub(crate) fn evidence(
    index: usize,
    place: &str,
    observed: f64,
    threshold: f64,
    unit: &str,
) -> Evidence {
    let path = format!("/measurements/{index}/{place}");
    evidence_at(path, observed, threshold, unit)
}

/// An observation anywhere in the record.
pub(super) fn evidence_at(
    path: impl Into<String>,
    observed: f64,
    threshold: f64,
    unit: &str,
) -> Evidence {
    Evidence {
        path: path.into(),
        observed,
        threshold,
        unit: unit.to_owned(),
    }
}

/// With more workloads than these, a finding names the first few: those of a sweep are a hundred.
const NAMES_MAX: usize = 20;
const NAMES_SHOWN: usize = 4;

/// The workloads that a finding concerns: `all 8 workloads`, `2 of 8 workloads (random-read-d1,
/// random-read-d32)`.
pub(super) fn scope(record: &Record, indices: impl IntoIterator<Item = usize>) -> String {
    let mut indices: Vec<usize> = indices.into_iter().collect();
    indices.dedup();
    let names: Vec<String> = indices
        .iter()
        .map(|i| workload_name(record, &record.measurements[*i]))
        .collect();
    match (names.len(), record.measurements.len()) {
        (1, 1) => names[0].clone(),
        (hit, all) if hit == all => format!("all {all} workloads"),
        (hit, all) if hit > NAMES_MAX => {
            let (first, more) = (names[..NAMES_SHOWN].join(", "), hit - NAMES_SHOWN);
            format!("{hit} of {all} workloads ({first} and {more} more)")
        }
        (hit, all) => format!("{hit} of {all} workloads ({})", names.join(", ")),
    }
}

/// The name of a workload; with its layer or target where it ran on several.
pub(super) fn workload_name(record: &Record, m: &MeasurementRecord) -> String {
    let name = &m.workload.name;
    let is_elsewhere =
        |other: &MeasurementRecord| &other.workload.name == name && other.target != m.target;
    if !record.measurements.iter().any(is_elsewhere) {
        return name.clone();
    }
    let mut layers = record.plan.layers.iter().flat_map(|plan| &plan.layers);
    let layer = layers.find(|layer| layer.target == Some(m.target));
    let target = record.targets.get(m.target);
    let place = layer
        .map(|layer| &layer.name)
        .or(target.map(|target| &target.path));
    place.map_or_else(|| name.clone(), |place| format!("{name} on {place}"))
}

/// The same with the survey among them, which has no index: `all 8 workloads and the survey`.
pub(super) fn places(record: &Record, indices: impl IntoIterator<Item = Option<usize>>) -> String {
    let indices: Vec<Option<usize>> = indices.into_iter().collect();
    let workloads: Vec<usize> = indices.iter().copied().flatten().collect();
    match (workloads.is_empty(), indices.contains(&None)) {
        (false, false) => scope(record, workloads),
        (false, true) => format!("{} and {SURVEY}", scope(record, workloads)),
        (true, _) => SURVEY.to_owned(),
    }
}

/// A place or a size on a surface, in the units of disk makers: `41.2 GB`.
pub(super) fn gigabytes(bytes: u64) -> String {
    match bytes as f64 / 1e9 {
        gb if gb >= 9_995.0 => format!("{:.1} TB", gb / 1e3),
        gb if gb >= 99.95 => format!("{gb:.0} GB"),
        gb if gb >= 0.9995 => format!("{gb:.1} GB"),
        gb => format!("{:.0} MB", gb * 1e3),
    }
}

/// The rate of a point of the curve, compared with what it should be.
pub(super) fn point_evidence(index: usize, record: &Record, expected: f64) -> Evidence {
    let path = format!("/curve/{index}/bytes_per_second");
    evidence_at(path, record.curve[index].bytes_per_second, expected, "B/s")
}

/// The operations that a reader looks at, over time.
pub(super) fn headline_series(m: &MeasurementRecord) -> Option<TimeSeries> {
    estimate::summed(m.headline_ops().iter().map(|(_, op)| &op.series))
}

/// Where the record has a workload, or the survey, which has no index.
pub(super) fn part_path(index: Option<usize>) -> String {
    index.map_or("/surface".to_owned(), |index| {
        format!("/measurements/{index}")
    })
}

/// A warning if it is serious, else a note.
pub(super) fn warning_if(is_serious: bool) -> Severity {
    if is_serious {
        Severity::Warning
    } else {
        Severity::Note
    }
}

/// The path of a target, as its user wrote it.
pub(super) fn target_path(record: &Record, target: usize) -> &str {
    let target = record.targets.get(target);
    target.map_or("the target", |target| &target.path)
}

/// Every layer of every target, with its path in the record.
pub(super) fn layers(record: &Record) -> impl Iterator<Item = (String, &Layer)> {
    let targets = record.targets.iter().enumerate();
    targets.flat_map(|(t, target)| {
        let layers = target.layers.iter().enumerate();
        layers.map(move |(l, layer)| (format!("/targets/{t}/layers/{l}"), layer))
    })
}

/// Requests that this workload wants in flight.
pub(crate) fn wanted_depth(m: &MeasurementRecord) -> f64 {
    f64::from(m.workload.depth) * f64::from(m.workload.workers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn scope_names_the_workloads() {
        let record = fixture::record();
        assert_eq!(scope(&record, 0..8), "all 8 workloads");
        assert_eq!(
            scope(&record, [2, 2, 3]),
            "2 of 8 workloads (random-read-d1, random-read-d32)"
        );
    }

    #[test]
    fn scope_tells_layers_and_targets_apart() {
        use diskproof_model::layers::{LayersPlan, PlannedLayer};
        let mut record = fixture::record();
        let mut second = record.measurements[2].clone();
        second.target = 1;
        record.measurements.push(second);
        let mut target = record.targets[0].clone();
        (record.targets[0].path, target.path) = ("/data".to_owned(), "/dev/dm-0".to_owned());
        record.targets.push(target);
        assert_eq!(
            scope(&record, [2, 3, 8]),
            "3 of 9 workloads (random-read-d1 on /data, random-read-d32, random-read-d1 on \
             /dev/dm-0)"
        );
        let layer = |target: usize, name: &str| PlannedLayer {
            name: name.to_owned(),
            path: name.to_owned(),
            device_kind: None,
            target: Some(target),
            skipped: None,
            one_of: 1,
        };
        record.plan.layers = Some(LayersPlan {
            layers: vec![layer(0, "file on ext4"), layer(1, "dm-0 (crypt data)")],
            unresolved: None,
        });
        assert_eq!(
            scope(&record, [2, 8]),
            "2 of 9 workloads (random-read-d1 on file on ext4, random-read-d1 on dm-0 (crypt \
             data))"
        );
    }
}
