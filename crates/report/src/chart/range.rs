//! The range of an axis, the position of a value on it, and its labels. All printers use it, so
//! that their axes agree.

use super::types::{Axis, AxisSide, Chart, Scale, Series, SeriesMark};
use crate::text::trimmed;

/// Steps between labels that read as round, times a power of ten.
const STEPS: [f64; 5] = [1.0, 2.0, 2.5, 5.0, 10.0];
/// More steps, for an axis whose labels stand on the grid lines of another one.
const STEPS_SHARED: [f64; 10] = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
/// The most labels on a horizontal axis. Chosen for pictures about 1000 pixels wide.
const TICKS_ACROSS: usize = 10;
/// As many labels of percentiles fit beside one another on their axis: they are two to five
/// characters long. Chosen for pictures about 1000 pixels wide.
const PERCENTILE_LABELS_MAX: f64 = 13.0;
/// Percentiles that get a label if the nines leave room.
const PERCENTILES_BETWEEN: [f64; 6] = [75.0, 95.0, 25.0, 99.5, 99.95, 99.995];
/// The most labels on a vertical axis.
const TICKS_UPWARD: usize = 6;
/// Bars take this share of the distance between two neighbours.
const BAR_SHARE: f64 = 0.7;
/// A logarithmic axis that spans fewer decades than this has labels at 1, 2 and 5. With more, three
/// labels for each decade would stand too close. Chosen, just below four whole decades.
const DECADES_FOR_POWERS_ALONE: f64 = 3.9;
/// Divisions by a step miss whole numbers by less than this.
const ROUNDING: f64 = 1e-9;
/// Logarithms and powers miss a tick by a smaller factor than this.
const TICK_TOLERANCE: f64 = 1e-3;

/// The ends of an axis and its labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    /// The scale.
    pub scale: Scale,
    /// The value at the start.
    pub low: f64,
    /// The value at the end; larger than `low`.
    pub high: f64,
    /// Where labels stand, ascending.
    pub ticks: Vec<f64>,
}

/// The ranges of a chart's axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranges {
    /// The horizontal axis.
    pub x: Range,
    /// The left axis.
    pub y: Range,
    /// The right axis, if any. If both are linear, its labels stand on the left axis's grid lines.
    pub y_right: Option<Range>,
}

impl Ranges {
    /// The range of an axis.
    pub(crate) fn along(&self, side: AxisSide) -> &Range {
        match (side, &self.y_right) {
            (AxisSide::X, _) => &self.x,
            (AxisSide::Right, Some(right)) => right,
            _ => &self.y,
        }
    }
}

impl Chart {
    /// The range of each axis, so that everything is visible.
    pub fn ranges(&self) -> Ranges {
        let y = Range::rounded(&self.y, &self.heights(AxisSide::Left));
        let y_right = self
            .y_right
            .as_ref()
            .map(|axis| Range::with_lines_of(&y, axis, &self.heights(AxisSide::Right)));
        Ranges {
            x: self.range_across(),
            y,
            y_right,
        }
    }

    /// The series that decide the ends of the axes: those that are drawn until the reader chooses
    /// others.
    fn drawn_series(&self) -> &[Series] {
        &self.series[..self.shown_at_first()]
    }

    fn range_across(&self) -> Range {
        let mut values = self.guide_values(AxisSide::X);
        for series in self.drawn_series() {
            values.extend(series.points.iter().map(|point| point.x));
        }
        let ends = Ends::around(&values);
        let room = self.bar_width().unwrap_or(0.0);
        Range::tight(&Axis {
            min: Some(self.x.min.unwrap_or(ends.low - room)),
            max: Some(self.x.max.unwrap_or(ends.high + room)),
            ..self.x.clone()
        })
    }

    /// All values of a vertical axis: points, the upper ends of their error bars, and guides. The
    /// lower ends may be cut off: an axis of rates begins at zero.
    fn heights(&self, side: AxisSide) -> Vec<f64> {
        let mut heights = self.guide_values(side);
        for series in self.drawn_series() {
            if series.side != side {
                continue;
            }
            for point in &series.points {
                heights.push(point.y);
                if let Some(half_width) = point.half_width_95 {
                    heights.push(point.y + half_width);
                }
            }
        }
        heights
    }

    /// The values of an axis that guides mark.
    fn guide_values(&self, side: AxisSide) -> Vec<f64> {
        self.guides
            .iter()
            .filter(|guide| guide.axis == side)
            .map(|guide| guide.value)
            .collect()
    }

    /// The width of bars in values of the horizontal axis, so that neighbours do not touch; `None`
    /// without bars.
    pub fn bar_width(&self) -> Option<f64> {
        let bars = self
            .series
            .iter()
            .find(|series| series.mark == SeriesMark::Bars)?;
        let mut places: Vec<f64> = bars.points.iter().map(|point| point.x).collect();
        places.sort_by(f64::total_cmp);
        match narrowest_gap(&places) {
            Some(gap) => Some(gap * BAR_SHARE),
            None => Some(1.0),
        }
    }
}

impl Range {
    pub(crate) fn new(scale: Scale, low: f64, high: f64, ticks: Vec<f64>) -> Self {
        Self {
            scale,
            low,
            high,
            ticks,
        }
    }

    /// A range from the axis's own minimum to its own maximum, whose labels need not be at the
    /// ends.
    fn tight(axis: &Axis) -> Self {
        let given = Ends {
            low: axis.min.unwrap_or(0.0),
            high: axis.max.unwrap_or(1.0),
        };
        let Ends { low, high } = given.moved_apart(axis.scale);
        let mut range = Self::new(axis.scale, low, high, Vec::new());
        let ticks = if axis.ticks.is_empty() {
            match axis.scale {
                Scale::Linear => {
                    multiples_between(low, high, round_step(high - low, TICKS_ACROSS, &STEPS))
                }
                Scale::Log => log_ticks(low, high),
                Scale::Percentile => percentile_ticks(high),
            }
        } else {
            axis.ticks.clone()
        };
        for tick in ticks {
            if (0.0..=1.0).contains(&range.position(tick)) {
                range.ticks.push(tick);
            }
        }
        range
    }

    /// A range around the values with a label at both ends.
    fn rounded(axis: &Axis, values: &[f64]) -> Self {
        let mut ends = Ends::around(values);
        if let Some(min) = axis.min {
            ends.low = min.min(ends.low);
        }
        if let Some(max) = axis.max {
            ends.high = max.max(ends.high);
        }
        let Ends { low, high } = ends.moved_apart(axis.scale);
        match axis.scale {
            Scale::Linear => {
                let step = round_step(high - low, TICKS_UPWARD, &STEPS);
                let first = (low / step).floor() * step;
                let last = (high / step - ROUNDING).ceil() * step;
                Self::new(
                    axis.scale,
                    first,
                    last,
                    multiples_between(first, last, step),
                )
            }
            Scale::Log => {
                let first = log_end_below(low);
                let last = log_end_above(high);
                Self::new(axis.scale, first, last, log_ticks(first, last))
            }
            Scale::Percentile => Self::new(axis.scale, low, high, percentile_ticks(high)),
        }
    }

    /// The range of the right axis. It has as many equal parts as the left one if both are linear
    /// and start at zero.
    fn with_lines_of(left: &Self, axis: &Axis, values: &[f64]) -> Self {
        let parts = left.ticks.len().saturating_sub(1);
        if left.scale != Scale::Linear
            || axis.scale != Scale::Linear
            || axis.min != Some(0.0)
            || left.low != 0.0
            || parts == 0
        {
            return Self::rounded(axis, values);
        }
        let from_zero = Ends {
            low: 0.0,
            high: values.iter().copied().fold(0.0, f64::max),
        };
        let high = from_zero.moved_apart(axis.scale).high;
        let step = round_step(high, parts, &STEPS_SHARED);
        let ticks = (0..=parts).map(|k| k as f64 * step).collect();
        Self::new(axis.scale, 0.0, step * parts as f64, ticks)
    }

    /// The position of a value: 0 at `low`, 1 at `high`.
    pub fn position(&self, value: f64) -> f64 {
        let low = scale_coordinate(self.scale, self.low);
        let high = scale_coordinate(self.scale, self.high);
        (scale_coordinate(self.scale, value) - low) / (high - low)
    }

    /// The value with as few digits as the labels next to it allow: `250`, `12.5`, `40k`, `1.5M`.
    pub fn label(&self, value: f64) -> String {
        if self.scale == Scale::Linear
            && let Some(step) = narrowest_gap(&self.ticks)
        {
            return short_number(value, step);
        }
        short_number(value, value)
    }
}

/// The smallest gap between ascending values; `None` where all are equal.
fn narrowest_gap(values: &[f64]) -> Option<f64> {
    let mut narrowest = None;
    for pair in values.windows(2) {
        let gap = pair[1] - pair[0];
        if gap > 0.0 && gap < narrowest.unwrap_or(f64::INFINITY) {
            narrowest = Some(gap);
        }
    }
    narrowest
}

/// Where a value lies on the scale, in arbitrary units: equal distances look equal. For percentiles
/// that is the number of nines. A logarithmic scale has no place for 0 and below: they are
/// infinitely far below, so that an interval that reaches there ends at the low end of the axis.
fn scale_coordinate(scale: Scale, value: f64) -> f64 {
    match scale {
        Scale::Linear => value,
        Scale::Log => value.max(0.0).log10(),
        Scale::Percentile => -(1.0 - value / 100.0).log10(),
    }
}

/// The lowest and the highest value of an axis.
#[derive(Debug, Clone, Copy)]
struct Ends {
    low: f64,
    high: f64,
}

impl Ends {
    /// From the smallest to the largest value; from 0 to 1 without any.
    fn around(values: &[f64]) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if low.is_finite() {
            Self { low, high }
        } else {
            Self {
                low: 0.0,
                high: 1.0,
            }
        }
    }

    /// The ends, moved apart if they coincide.
    fn moved_apart(self, scale: Scale) -> Self {
        let Self { low, high } = self;
        match scale {
            Scale::Linear if high - low > high.abs().max(low.abs()) * ROUNDING => self,
            Scale::Linear if low == 0.0 => Self { low, high: 1.0 },
            Scale::Linear => Self {
                low: low - low.abs() / 2.0,
                high: low + low.abs() / 2.0,
            },
            Scale::Log if low <= 0.0 => {
                let positive = Self {
                    low: f64::MIN_POSITIVE.max(high / 10.0),
                    high: high.max(1.0),
                };
                positive.moved_apart(scale)
            }
            Scale::Log if high > low * (1.0 + TICK_TOLERANCE) => self,
            Scale::Log => Self {
                low: low / 2.0,
                high: low * 2.0,
            },
            Scale::Percentile => Self {
                low: low.clamp(0.0, 50.0),
                high: high.clamp(90.0, 99.999_999_9),
            },
        }
    }
}

/// The largest power of ten that is not larger than the value.
fn power_below(value: f64) -> f64 {
    10.0_f64.powf(value.log10().floor())
}

/// The smallest round step that needs at most so many labels.
fn round_step(length: f64, labels_max: usize, steps: &[f64]) -> f64 {
    let least = length / labels_max as f64;
    let power = power_below(least);
    for step in steps {
        if step * power >= least * (1.0 - ROUNDING) {
            return step * power;
        }
    }
    power * 10.0
}

/// The multiples of a step from `low` to `high`, at most 101, so that no extreme axis takes all the
/// memory.
fn multiples_between(low: f64, high: f64, step: f64) -> Vec<f64> {
    let first = (low / step - ROUNDING).ceil();
    let last = (high / step + ROUNDING).floor();
    let count = (last - first).clamp(0.0, 100.0) as u32;
    (0..=count).map(|k| (first + f64::from(k)) * step).collect()
}

/// Powers of ten, and 2 and 5 times each of them if there are few.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    let every = ((last - first) / TICKS_ACROSS as i32 + 1).max(1) as usize;
    let parts: &[f64] = if (high / low).log10() < DECADES_FOR_POWERS_ALONE {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let mut ticks = Vec::new();
    for exponent in (first..=last).step_by(every) {
        for part in parts {
            let tick = part * 10.0_f64.powi(exponent);
            let is_visible =
                tick >= low * (1.0 - TICK_TOLERANCE) && tick <= high * (1.0 + TICK_TOLERANCE);
            if is_visible {
                ticks.push(tick);
            }
        }
    }
    ticks
}

/// The largest of 1, 2 and 5 times a power of ten that is not above the value.
fn log_end_below(value: f64) -> f64 {
    let power = power_below(value);
    for part in [5.0, 2.0] {
        if part * power <= value * (1.0 + TICK_TOLERANCE) {
            return part * power;
        }
    }
    power
}

/// The smallest of 1, 2 and 5 times a power of ten that is not below the value.
fn log_end_above(value: f64) -> f64 {
    let power = power_below(value);
    for part in [1.0, 2.0, 5.0] {
        if part * power >= value * (1.0 - TICK_TOLERANCE) {
            return part * power;
        }
    }
    power * 10.0
}

/// The median and each nine, and other percentiles as far as they have room, because short runs end
/// before 99 %.
fn percentile_ticks(high: f64) -> Vec<f64> {
    let mut ticks = vec![0.0, 50.0];
    for nines in 1..=9 {
        ticks.push(100.0 - 10.0_f64.powi(2 - nines));
    }
    ticks.retain(|tick| *tick <= high);
    for tick in PERCENTILES_BETWEEN {
        if tick <= high && has_room(tick, &ticks, high) {
            ticks.push(tick);
        }
    }
    ticks.sort_by(f64::total_cmp);
    ticks
}

/// True if a percentile's label keeps its distance from the labels that are there.
fn has_room(percentile: f64, labelled: &[f64], high: f64) -> bool {
    let place = scale_coordinate(Scale::Percentile, percentile);
    let length = scale_coordinate(Scale::Percentile, high);
    labelled.iter().all(|other| {
        let gap = (scale_coordinate(Scale::Percentile, *other) - place).abs();
        gap * PERCENTILE_LABELS_MAX >= length
    })
}

/// `12.5`, `40k`: a value with as many decimals as the step between labels needs.
fn short_number(value: f64, step: f64) -> String {
    let magnitude = value.abs().max(step.abs());
    let (divisor, suffix) = match magnitude {
        1e15.. => return format!("{value:.0e}"),
        1e12.. => (1e12, "T"),
        1e9.. => (1e9, "G"),
        1e6.. => (1e6, "M"),
        1e4.. => (1e3, "k"),
        _ => (1.0, ""),
    };
    let digits = exact_decimals(step / divisor);
    let text = format!("{:.digits$}", value / divisor);
    match trimmed(&text) {
        "0" | "-0" => "0".to_owned(),
        text => format!("{text}{suffix}"),
    }
}

/// The decimals that print a number exactly; 3 where nine are not enough.
fn exact_decimals(number: f64) -> usize {
    let mut power = 1.0;
    for digits in 0..=9 {
        let whole = number * power;
        if (whole - whole.round()).abs() < 1e-6 * whole.abs().max(1e-3) {
            return digits;
        }
        power *= 10.0;
    }
    3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Guide, Series, SeriesMark};

    fn labels(range: &Range) -> Vec<String> {
        range.ticks.iter().map(|tick| range.label(*tick)).collect()
    }

    fn chart(y: Axis, y_right: Option<Axis>, series: Vec<Series>) -> Chart {
        Chart {
            x: Axis::new("position", "GB"),
            y,
            y_right,
            series,
            ..Chart::default()
        }
    }

    #[test]
    fn axes_end_at_round_numbers_and_share_their_lines() {
        let rate = Series::new("rate", SeriesMark::Line, vec![(0.0, 92.2), (320.1, 48.9)]);
        let access =
            Series::new("access", SeriesMark::Dots, vec![(3.0, 23.1), (5.0, 4.0)]).on_the_right();
        let zero = Axis::new("", "").starting_at_zero();
        let ranges = chart(zero.clone(), Some(zero), vec![rate, access]).ranges();
        let right = ranges.y_right.as_ref().unwrap();
        assert_eq!(labels(&ranges.y), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(right), ["0", "5", "10", "15", "20", "25"]);
        assert_eq!(
            labels(&ranges.x),
            ["0", "50", "100", "150", "200", "250", "300"]
        );
        assert_eq!((ranges.x.low, ranges.x.high), (0.0, 320.1));
        assert_eq!(ranges.y.position(50.0), 0.5);
    }

    #[test]
    fn log_axis_has_powers_of_ten_and_percentile_axis_has_nines() {
        let axis = Axis::new("", "").scaled(Scale::Log);
        let wide = Range::rounded(&axis, &[13.0, 90_000.0]);
        assert_eq!(labels(&wide), ["10", "100", "1000", "10k", "100k"]);
        assert_eq!((wide.low, wide.high), (10.0, 1e5));
        let narrow = Range::rounded(&axis, &[0.3, 4.0]);
        assert_eq!(labels(&narrow), ["0.2", "0.5", "1", "2", "5"]);
        for (high, expected) in [
            (95.2, "0 25 50 75 90 95"),
            (99.984, "0 50 75 90 95 99 99.5 99.9 99.95"),
            (99.9999, "0 50 90 99 99.9 99.99 99.999 99.9999"),
        ] {
            assert_eq!(labels(&percentiles_up_to(high)).join(" "), expected);
        }
        let place = percentiles_up_to(99.984).position(99.0);
        assert!((place - 2.0 / 3.795_88).abs() < 1e-5);
    }

    fn percentiles_up_to(high: f64) -> Range {
        let axis = Axis::new("", "").scaled(Scale::Percentile);
        Range::tight(&axis.between(Some(0.0), Some(high)))
    }

    #[test]
    fn numbers_are_shortened() {
        let cases = [
            (0.0, 50.0, "0"),
            (12.5, 12.5, "12.5"),
            (0.05, 0.05, "0.05"),
            (120_000.0, 20_000.0, "120k"),
            (1.5e6, 5e5, "1.5M"),
            (1e30, 1e30, "1e30"),
        ];
        for (value, step, text) in cases {
            assert_eq!(short_number(value, step), text);
        }
    }

    #[test]
    fn axis_accepts_extreme_numbers() {
        let cases: [&[f64]; 8] = [
            &[],
            &[0.0],
            &[7.0],
            &[-3.0],
            &[1e30],
            &[0.0, 1e99],
            &[1e-9, 2e-9],
            &[5.0, 5.000_000_000_1],
        ];
        for values in cases {
            for scale in [Scale::Linear, Scale::Log, Scale::Percentile] {
                let axis = Axis::new("", "").scaled(scale);
                let mut drawable = values.to_vec();
                drawable.retain(|v| scale == Scale::Linear || *v > 0.0);
                let range = Range::rounded(&axis, &drawable);
                let case = format!("{values:?} {scale:?} {range:?}");
                assert!(range.low < range.high && range.high.is_finite(), "{case}");
                assert!(range.ticks.len() >= 2 || scale == Scale::Log, "{case}");
                for place in drawable.iter().map(|v| range.position(*v)) {
                    let is_inside = (-1e-6..=1.000_001).contains(&place);
                    assert!(is_inside || scale == Scale::Percentile, "{case}");
                }
            }
        }
    }

    fn bars(places: &[f64]) -> Series {
        let points = places.iter().map(|x| (*x, 1.0)).collect();
        Series::new("bars", SeriesMark::Bars, points)
    }

    #[test]
    fn bars_touch_neither_each_other_nor_the_ends_of_their_axis() {
        let axis = Axis::new("", "");
        let several = chart(axis.clone(), None, vec![bars(&[4.0, 1.0, 2.0])]);
        assert_eq!(several.bar_width(), Some(0.7));
        let x = several.ranges().x;
        assert_eq!((x.low, x.high), (1.0 - 0.7, 4.0 + 0.7));
        let single = chart(axis.clone(), None, vec![bars(&[3.0])]);
        assert_eq!(single.bar_width(), Some(1.0));
        let line = Series::new("line", SeriesMark::Line, vec![(0.0, 1.0)]);
        assert_eq!(chart(axis, None, vec![line]).bar_width(), None);
    }

    #[test]
    fn axis_reaches_the_upper_ends_of_intervals_and_the_guides() {
        let mut series = Series::new("rate", SeriesMark::Line, vec![(0.0, 10.0)]);
        series.points[0].half_width_95 = Some(5.0);
        let zero = Axis::new("", "").starting_at_zero();
        let mut chart = chart(zero, None, vec![series]);
        assert_eq!(chart.ranges().y.high, 15.0);
        let guide = Guide::new(AxisSide::Left, "limit".to_owned(), 40.0);
        chart.guides.push(guide);
        assert_eq!(chart.ranges().y.high, 40.0);
        // It marks a value of the other axis.
        chart.guides[0].axis = AxisSide::X;
        assert_eq!(chart.ranges().y.high, 15.0);
    }

    #[test]
    fn series_that_is_not_drawn_at_first_stretches_no_axis() {
        let mut series = Vec::new();
        for number in 0..6 {
            let height = if number == 5 { 1000.0 } else { 10.0 };
            series.push(Series::new("", SeriesMark::Line, vec![(50.0, height)]));
        }
        let mut chart = chart(Axis::new("", "").starting_at_zero(), None, series);
        assert_eq!(chart.ranges().y.high, 1000.0);
        chart.x.scale = Scale::Percentile;
        assert_eq!(chart.ranges().y.high, 10.0);
    }

    #[test]
    fn right_axis_has_lines_of_its_own_where_the_left_one_begins_above_zero() {
        let left = Range::new(Scale::Linear, 10.0, 20.0, vec![10.0, 15.0, 20.0]);
        let axis = Axis::new("", "").starting_at_zero();
        let own = Range::with_lines_of(&left, &axis, &[90.0]);
        assert_eq!(own, Range::rounded(&axis, &[90.0]));
        let from_zero = Range::new(Scale::Linear, 0.0, 20.0, vec![0.0, 10.0, 20.0]);
        let shared = Range::with_lines_of(&from_zero, &axis, &[90.0]);
        assert_eq!(shared.ticks, [0.0, 50.0, 100.0]);
    }

    /// An interval that reaches 0 is drawn down to the low end.
    #[test]
    fn nothing_is_infinitely_far_below_on_a_logarithmic_axis() {
        let range = Range::new(Scale::Log, 1.0, 100.0, Vec::new());
        for value in [0.0, -3.0] {
            assert_eq!(range.position(value), f64::NEG_INFINITY);
        }
        assert_eq!(range.position(10.0), 0.5);
    }

    #[test]
    fn logarithmic_axis_ends_at_one_two_or_five() {
        for (value, below, above) in [(3.0, 2.0, 5.0), (5.0, 5.0, 5.0), (0.7, 0.5, 1.0)] {
            assert_eq!((log_end_below(value), log_end_above(value)), (below, above));
        }
    }

    #[test]
    fn extreme_axis_has_at_most_a_hundred_steps() {
        assert_eq!(multiples_between(0.0, 1e9, 1.0).len(), 101);
        assert_eq!(multiples_between(0.5, 3.0, 1.0), [1.0, 2.0, 3.0]);
    }
}
