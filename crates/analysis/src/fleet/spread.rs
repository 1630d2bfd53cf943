//! Computes the distance of each row from the others, and how likely chance alone makes it, by one
//! formula from 3 rows to thousands.
//!
//! The distance of a logarithm from the median of the other rows is divided by their spread. The
//! spread is the median absolute deviation, moderated by a prior (Smyth 2004), so that three rows
//! that happen to agree do not make it zero. From thirty rows on, the tails of the faster side
//! decide how many degrees of freedom Student's t may have: faults are on the slower side.
//! docs/cluster.md explains it and tabulates simulated fleets, which `spread/tests.rs` repeats.
//! They check the constants that have no source here.

use crate::estimate::student;
use diskproof_model::fleet::FleetScale;
use std::collections::BTreeMap;

/// Fewer rows than this are not judged: of two rows, nothing shows which one is odd.
pub(super) const ROWS_MIN: usize = 3;
/// The smallest spread that is believed of a fleet, as a logarithm: about 5 %. Disks vary so much
/// from run to run.
const SPREAD_MIN: f64 = 0.05;
/// Degrees of freedom of the prior spread: it weighs as much as that of a dozen rows.
const PRIOR_FREEDOM: f64 = 4.0;
/// Degrees of freedom of a fleet's spread where its suspects are measured again: the fleet showed
/// its spread by many rows, so that it weighs more than a prior.
const SECOND_LOOK_FREEDOM: f64 = 20.0;
/// The degrees of freedom of the spread, as a share of the rows: the efficiency of the median
/// absolute deviation (Rousseeuw & Croux 1993).
const EFFICIENCY: f64 = 0.37;
/// The variance of a median over that of a mean, for normal values: π/2.
const MEDIAN_VARIANCE: f64 = 1.57;
/// From this many rows on, median and spread of all rows are as good as those of the others alone:
/// one row more hardly moves them, and a sort for each row would take too long.
const ALL_ROWS_MIN: usize = 31;
/// From this many rows on, the tails can be seen: the far quantile is then that of fifteen values.
const TAIL_ROWS_MIN: usize = 30;
/// The tails are assumed to be heavier than they look, by this much in the ratio of far to near.
const TAIL_CAUTION: f64 = 0.10;
/// Candidates for the degrees of freedom of the tails, ascending. The last one is practically
/// normal.
const TAIL_FREEDOMS: [f64; 10] = [4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 60.0, 1000.0];
/// The upper quartile of normal values.
const NORMAL_QUARTILE: f64 = 0.6745;
/// Half the rate of the others, as a logarithm. A row whose error hides such a distance cannot
/// count as alike.
const HALF_THE_RATE: f64 = std::f64::consts::LN_2;
/// A distance of one row counts as seen if chance alone makes it with at most this probability: the
/// usual 5 %.
const P_VALUE_MAX: f64 = 0.05;
/// Fewer rows than this do not show their spread: the smallest one is assumed, or that of repeated
/// runs.
const SPREAD_ROWS_MIN: usize = 5;
/// Keeps a ratio of distances finite where all rows are equal.
const DISTANCE_MIN: f64 = 1e-9;
/// The median absolute deviation times this is the standard deviation, for normal values.
const DEVIATION_PER_MAD: f64 = 1.4826;

/// A value of one row: the logarithm of a rate, or minus that of a time, so that more is faster.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// The index of the row.
    pub row: usize,
    pub log_speed: f64,
    /// The standard error that the row's own records state.
    pub error: f64,
}

/// The distance of one row from the others in a metric.
#[derive(Debug, Clone, Copy)]
pub(super) struct Distance {
    /// The index of the row.
    pub row: usize,
    /// The logarithm of its speed over the median of the others: positive is faster.
    pub log_ratio: f64,
    /// The same in standard errors.
    pub t: f64,
    /// Two-sided, for this row and metric alone.
    pub p_value: f64,
    /// The row's own error alone hides even half the rate of the others.
    pub is_imprecise: bool,
}

/// A metric of a group of like rows: the scale, and the distance of each row.
#[derive(Debug, Clone)]
pub(super) struct JudgedColumn {
    pub scale: FleetScale,
    pub rows: Vec<Distance>,
}

/// The judged metrics of a group.
#[derive(Debug, Clone, Default)]
pub(super) struct JudgedGroup {
    /// In the order of the metrics; `None` where too few rows have the metric.
    pub columns: Vec<Option<JudgedColumn>>,
    /// The mean over the metrics, for each set of rows that have the same ones.
    pub overall: Vec<OverallColumn>,
}

/// The mean distance over several metrics.
#[derive(Debug, Clone)]
pub(super) struct OverallColumn {
    pub metrics: Vec<usize>,
    pub judged: JudgedColumn,
}

/// Judges the metrics of a group of like rows by each other; `columns` has the samples of each
/// metric. `spread_of_repeats` is the spread of the runs of one row; `None` where no row has
/// several.
pub(super) fn judge_group(columns: &[Vec<Sample>], spread_of_repeats: Option<f64>) -> JudgedGroup {
    let mut deviations_by_metric = Vec::new();
    for column in columns {
        deviations_by_metric.push(deviations(column));
    }
    let tail = tail_of_faster(&deviations_by_metric);
    let spread_of_metrics = common_spread(&deviations_by_metric);
    let mut judged = JudgedGroup::default();
    for (samples, deviations_of_column) in columns.iter().zip(&deviations_by_metric) {
        if samples.len() < ROWS_MIN {
            judged.columns.push(None);
            continue;
        }
        let floor = if samples.len() >= SPREAD_ROWS_MIN {
            spread_of_metrics.max(SPREAD_MIN)
        } else {
            spread_of_repeats.unwrap_or(0.0).max(SPREAD_MIN)
        };
        let prior = Prior {
            spread: floor,
            freedom: PRIOR_FREEDOM,
        };
        judged.columns.push(Some(judged_column(
            samples,
            deviations_of_column,
            prior,
            tail,
        )));
    }
    judged.overall = overall(&judged.columns, tail);
    judged
}

/// Judges one more row by the scale of a saved fleet.
pub(super) fn judge_by_scale(scale: &FleetScale, sample: Sample) -> Distance {
    let prior = Prior {
        spread: scale.floor,
        freedom: PRIOR_FREEDOM,
    };
    let excess_variance = (sample.error.powi(2) - scale.error_squared).max(0.0);
    let tail = Tail::new(scale.tail_freedom);
    // A document from elsewhere may say that there were none.
    Yardstick::new(scale.spread, prior, scale.rows.max(1), tail).distance(
        sample.row,
        sample.log_speed - scale.median,
        excess_variance,
    )
}

/// Judges suspects by others that were measured together with them. The prior is the fleet's
/// spread, because the suspects were chosen by another measurement; rows of one rate, as a limit
/// makes them, have a spread of 0, which is no measure of the next run. There must be others.
pub(super) fn judge_suspects(
    scale: &FleetScale,
    suspects: &[Sample],
    others: &[Sample],
) -> Vec<Distance> {
    let values: Vec<f64> = sorted(others.iter().map(|sample| sample.log_speed));
    let MedianSpread {
        median: center,
        spread,
    } = MedianSpread::of_ordered(&values);
    let prior = Prior {
        spread: scale.spread.max(SPREAD_MIN),
        freedom: SECOND_LOOK_FREEDOM,
    };
    let yardstick = Yardstick::new(spread, prior, others.len(), Tail::normal());
    suspects
        .iter()
        .map(|sample| {
            let excess_variance = (sample.error.powi(2) - scale.error_squared).max(0.0);
            yardstick.distance(sample.row, sample.log_speed - center, excess_variance)
        })
        .collect()
}

/// Judges each of these rows by the others of them, with the spread of a saved fleet as the prior.
/// Fewer than [`ROWS_MIN`] rows are not judged.
pub(super) fn judge_among(scale: &FleetScale, samples: &[Sample]) -> Vec<Distance> {
    if samples.len() < ROWS_MIN {
        return Vec::new();
    }
    if samples.len() >= ALL_ROWS_MIN {
        return judge_suspects(scale, samples, samples);
    }
    let mut distances = Vec::new();
    for (index, sample) in samples.iter().enumerate() {
        let mut others = samples.to_vec();
        others.remove(index);
        distances.extend(judge_suspects(scale, &[*sample], &others));
    }
    distances
}

/// The tails of the distribution of a fleet's rows.
#[derive(Debug, Clone, Copy)]
struct Tail {
    /// Degrees of freedom of the Student t with such tails.
    freedom: f64,
    /// Its upper quartile, which the median absolute deviation estimates.
    upper_quartile: f64,
}

impl Tail {
    fn new(freedom: f64) -> Self {
        Self {
            freedom,
            upper_quartile: student::quantile(0.75, freedom),
        }
    }

    fn normal() -> Self {
        Self::new(TAIL_FREEDOMS[TAIL_FREEDOMS.len() - 1])
    }
}

/// The scale with median and spread of these logarithms of speeds, among which no odd row is. Fewer
/// than two values leave the scale as it is.
pub(super) fn scale_of_like_rows(scale: FleetScale, values: Vec<f64>) -> FleetScale {
    if values.len() < 2 {
        return scale;
    }
    let ordered = sorted(values);
    let MedianSpread { median, spread } = MedianSpread::of_ordered(&ordered);
    FleetScale {
        rows: ordered.len(),
        median,
        spread,
        ..scale
    }
}

/// A spread that is assumed before any row is seen, and its weight in degrees of freedom.
#[derive(Debug, Clone, Copy)]
struct Prior {
    spread: f64,
    freedom: f64,
}

/// The deviation of a value from the others, before the prior moderates their spread.
#[derive(Debug, Clone, Copy)]
struct Deviation {
    /// From the median of the others, as a logarithm: positive is faster.
    log_ratio: f64,
    /// The spread of the others.
    spread: f64,
}

/// The moderated spread of the other rows, by which a distance is judged.
struct Yardstick {
    /// That of a distance from the median of the others.
    variance: f64,
    /// The degrees of freedom of the Student t by which a distance is judged.
    freedom: f64,
}

impl Yardstick {
    /// The yardstick from the `spread` of `other_rows` rows: the mean of their variance and of the
    /// prior's, by their degrees of freedom, and the error of the median.
    fn new(spread: f64, prior: Prior, other_rows: usize, tail: Tail) -> Self {
        assert!(other_rows > 0, "a row is judged by others");
        let other_rows = other_rows as f64;
        let freedom_of_rows = EFFICIENCY * (other_rows - 1.0);
        let spread_of_rows = spread * NORMAL_QUARTILE / tail.upper_quartile;
        let freedom = prior.freedom + freedom_of_rows;
        let squares =
            prior.freedom * prior.spread.powi(2) + freedom_of_rows * spread_of_rows.powi(2);
        Self {
            variance: squares / freedom * (1.0 + MEDIAN_VARIANCE / other_rows),
            freedom: freedom.min(tail.freedom.max(prior.freedom)),
        }
    }

    /// The distance of a row. `excess_variance` is the variance of the row's own error beyond the
    /// usual one.
    fn distance(&self, row: usize, log_ratio: f64, excess_variance: f64) -> Distance {
        let t = log_ratio / (self.variance + excess_variance).sqrt();
        Distance {
            row,
            log_ratio,
            t,
            p_value: student::two_sided(t.abs(), self.freedom),
            is_imprecise: self.reveals_half_the_rate(0.0)
                && !self.reveals_half_the_rate(excess_variance),
        }
    }

    /// Returns `true` if a row at half the rate of the others would be seen despite this error.
    fn reveals_half_the_rate(&self, excess_variance: f64) -> bool {
        let t = HALF_THE_RATE / (self.variance + excess_variance).sqrt();
        student::two_sided(t, self.freedom) <= P_VALUE_MAX
    }
}

/// Judges the rows of one metric. `deviations` has that of each sample, in the same order; there
/// are at least two.
fn judged_column(
    samples: &[Sample],
    deviations: &[Deviation],
    prior: Prior,
    tail: Tail,
) -> JudgedColumn {
    debug_assert_eq!(samples.len(), deviations.len());
    let others = samples.len() - 1;
    let error_squared = median(&sorted(samples.iter().map(|sample| sample.error.powi(2))));
    let mut rows = Vec::new();
    for (sample, deviation) in samples.iter().zip(deviations) {
        let excess_variance = (sample.error.powi(2) - error_squared).max(0.0);
        let yardstick = Yardstick::new(deviation.spread, prior, others, tail);
        rows.push(yardstick.distance(sample.row, deviation.log_ratio, excess_variance));
    }
    let values = sorted(samples.iter().map(|sample| sample.log_speed));
    let MedianSpread {
        median: center,
        spread,
    } = MedianSpread::of_ordered(&values);
    JudgedColumn {
        scale: FleetScale {
            rows: samples.len(),
            median: center,
            spread,
            floor: prior.spread,
            error_squared,
            tail_freedom: tail.freedom,
        },
        rows,
    }
}

/// Judges the mean of t over the metrics like one more metric, among rows that have the same
/// metrics.
fn overall(columns: &[Option<JudgedColumn>], tail: Tail) -> Vec<OverallColumn> {
    let prior = Prior {
        spread: 1.0,
        freedom: PRIOR_FREEDOM,
    };
    let mut overall = Vec::new();
    for (metrics, means) in means_by_metrics(columns) {
        if metrics.len() < 2 || means.len() < ROWS_MIN {
            continue;
        }
        let mut samples = Vec::new();
        for mean in &means {
            samples.push(Sample {
                row: mean.row,
                log_speed: mean.t,
                error: 0.0,
            });
        }
        let mut judged = judged_column(&samples, &deviations(&samples), prior, tail);
        for (row, mean) in judged.rows.iter_mut().zip(&means) {
            // The margin is about rates, not about t.
            row.log_ratio = mean.log_ratio;
        }
        overall.push(OverallColumn { metrics, judged });
    }
    overall
}

/// The mean of a row over the metrics that it has.
struct MeanDistance {
    row: usize,
    log_ratio: f64,
    t: f64,
}

/// The means of the rows, by the set of metrics that a row has.
fn means_by_metrics(columns: &[Option<JudgedColumn>]) -> BTreeMap<Vec<usize>, Vec<MeanDistance>> {
    let mut distances: BTreeMap<usize, Vec<(usize, Distance)>> = BTreeMap::new();
    for (metric, column) in columns.iter().enumerate() {
        for distance in column.iter().flat_map(|column| &column.rows) {
            distances
                .entry(distance.row)
                .or_default()
                .push((metric, *distance));
        }
    }
    let mut means: BTreeMap<Vec<usize>, Vec<MeanDistance>> = BTreeMap::new();
    for (row, distances_of_row) in distances {
        let metrics = distances_of_row.iter().map(|(metric, _)| *metric).collect();
        let count = distances_of_row.len() as f64;
        let (mut log_ratio_sum, mut t_sum) = (0.0, 0.0);
        for (_, distance) in &distances_of_row {
            log_ratio_sum += distance.log_ratio;
            t_sum += distance.t;
        }
        means.entry(metrics).or_default().push(MeanDistance {
            row,
            log_ratio: log_ratio_sum / count,
            t: t_sum / count,
        });
    }
    means
}

/// The deviation of each row from the others, in the order of the samples; empty for too few rows.
fn deviations(samples: &[Sample]) -> Vec<Deviation> {
    if samples.len() < ROWS_MIN {
        return Vec::new();
    }
    let values = sorted(samples.iter().map(|sample| sample.log_speed));
    let usual_of_all = if samples.len() >= ALL_ROWS_MIN {
        Some(MedianSpread::of_ordered(&values))
    } else {
        None
    };
    let mut deviations = Vec::new();
    for sample in samples {
        let usual = match usual_of_all {
            Some(usual_of_all) => usual_of_all,
            None => {
                let mut others = values.clone();
                let index_of_row = others.partition_point(|value| *value < sample.log_speed);
                others.remove(index_of_row);
                MedianSpread::of_ordered(&others)
            }
        };
        deviations.push(Deviation {
            log_ratio: sample.log_speed - usual.median,
            spread: usual.spread,
        });
    }
    deviations
}

/// The spread of the median metric; 0 where all have too few rows to show theirs. That of each
/// metric is the lower quartile over its rows, which an odd row among the others does not widen.
fn common_spread(columns: &[Vec<Deviation>]) -> f64 {
    let mut spreads = Vec::new();
    for column in columns {
        if column.len() >= SPREAD_ROWS_MIN {
            let ordered = sorted(column.iter().map(|deviation| deviation.spread));
            spreads.push(ordered[column.len() / 4]);
        }
    }
    median(&sorted(spreads))
}

/// The Student t with the tails of the faster side.
fn tail_of_faster(columns: &[Vec<Deviation>]) -> Tail {
    let mut faster = Vec::new();
    for column in columns {
        if column.len() < TAIL_ROWS_MIN {
            continue;
        }
        for deviation in column {
            if deviation.log_ratio > 0.0 {
                faster.push(deviation.log_ratio / deviation.spread.max(DISTANCE_MIN));
            }
        }
    }
    if faster.is_empty() {
        return Tail::normal();
    }
    let ordered = sorted(faster);
    // The 95 % and 50 % quantiles of one side are the 97.5 % and 75 % quantiles of both.
    let far = ordered[ordered.len() * 95 / 100];
    let near = ordered[ordered.len() / 2].max(DISTANCE_MIN);
    let ratio = far / near + TAIL_CAUTION;
    for freedom in TAIL_FREEDOMS.into_iter().rev() {
        let tail = Tail::new(freedom);
        if ratio <= student::quantile(0.975, freedom) / tail.upper_quartile {
            return tail;
        }
    }
    Tail::new(TAIL_FREEDOMS[0])
}

/// The centre and the spread of some values.
#[derive(Debug, Clone, Copy)]
struct MedianSpread {
    median: f64,
    /// The standard deviation that the median absolute deviation suggests.
    spread: f64,
}

impl MedianSpread {
    /// Those of values in ascending order.
    fn of_ordered(ordered: &[f64]) -> Self {
        let center = median(ordered);
        let deviations = sorted(ordered.iter().map(|value| (value - center).abs()));
        let factor = DEVIATION_PER_MAD * small_sample_factor(ordered.len());
        Self {
            median: center,
            spread: factor * median(&deviations),
        }
    }
}

/// The factor that makes the deviation unbiased for so many normal values (Croux & Rousseeuw 1992).
fn small_sample_factor(count: usize) -> f64 {
    match count {
        0 | 1 => 1.0,
        2 => 1.196,
        3 => 1.495,
        4 => 1.363,
        5 => 1.206,
        6 => 1.200,
        7 => 1.140,
        8 => 1.129,
        9 => 1.107,
        _ => count as f64 / (count as f64 - 0.8),
    }
}

/// The median of values in ascending order; 0 without values.
pub(super) fn median(ordered: &[f64]) -> f64 {
    match ordered.len() {
        0 => 0.0,
        count => f64::midpoint(ordered[(count - 1) / 2], ordered[count / 2]),
    }
}

/// The values in ascending order.
pub(super) fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut ordered: Vec<f64> = values.into_iter().collect();
    ordered.sort_by(f64::total_cmp);
    ordered
}

#[cfg(test)]
mod tests;
