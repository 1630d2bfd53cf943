//! Charts of a survey: transfer rate and access time by position, access time by distance, short
//! strokes, the map of a scan.

use super::types::{Axis, AxisSide, Chart, Guide, Scale, Series, SeriesMark};
use super::units::{latency_unit, position_unit};
use diskproof_model::digits::rounded;
use diskproof_model::record::Record;
use diskproof_model::surface::{
    AccessPoint, CurvePoint, Scan, SeekPattern, ShortStroke, SurfaceFigures, SurfaceRecord,
};
use diskproof_model::units::{counted, format_bytes, format_latency, format_throughput};

/// The charts of a survey that the record has data for.
pub(super) fn charts(record: &Record) -> Vec<Chart> {
    let mut charts = Vec::new();
    if let Some(surface) = record.surface() {
        charts.extend(curve_chart(surface));
        charts.extend(distance_chart(surface));
        charts.extend(short_strokes_chart(&surface.figures.short_strokes));
        if let Some(scan) = &surface.data.scan {
            charts.extend(scan_chart(scan));
        }
    }
    charts
}

/// The latency of the longest access; 0 without any.
fn longest_ns(access: &[AccessPoint]) -> u64 {
    access
        .iter()
        .map(|point| point.latency_ns)
        .max()
        .unwrap_or(0)
}

/// The median latency; 0 without any.
fn median_ns(access: &[AccessPoint]) -> u64 {
    let mut latencies: Vec<u64> = access.iter().map(|point| point.latency_ns).collect();
    latencies.sort_unstable();
    match latencies.get(latencies.len() / 2) {
        Some(median) => *median,
        None => 0,
    }
}

/// The axis of access times. It starts at zero, and is logarithmic if a few long accesses would
/// press all others onto the bottom.
fn access_axis(access: &[AccessPoint], unit: &str) -> Axis {
    let axis = Axis::new("access time", unit);
    if longest_ns(access) as f64 > LONGEST_OVER_MEDIAN * median_ns(access) as f64 {
        axis.scaled(Scale::Log)
    } else {
        axis.starting_at_zero()
    }
}

/// From this ratio on, the median access takes less than a twentieth of the height.
const LONGEST_OVER_MEDIAN: f64 = 20.0;

/// The transfer-rate graph known from HD Tune: the rate as a line, single accesses as dots. `None`
/// without either.
fn curve_chart(surface: &SurfaceRecord) -> Option<Chart> {
    let data = &surface.data;
    let (latency, unit_ns) = latency_unit(longest_ns(&data.access) as f64);
    let (position, unit_bytes) = position_unit(farthest_bytes(surface)? as f64);
    let start_bytes = data.span_start_bytes;
    let end_bytes = start_bytes.saturating_add(data.span_bytes);
    let mut rates = Vec::new();
    let mut unreadable = Vec::new();
    for point in &data.curve {
        let x = point.offset_bytes as f64 / unit_bytes;
        if point.bytes > 0 {
            rates.push((x, point.bytes_per_second / 1e6));
        } else if point.errors > 0 {
            unreadable.push((x, 0.0));
        }
    }
    let mut accesses = Vec::new();
    for point in &data.access {
        if point.seek == SeekPattern::Random {
            let x = point.offset_bytes as f64 / unit_bytes;
            accesses.push((x, point.latency_ns as f64 / unit_ns));
        }
    }
    let mut guides = Vec::new();
    if let Some(rate) = &surface.figures.rate {
        let average = &rate.average;
        let label = format!("average {}", average.value_text());
        guides.push(Guide::new(AxisSide::Left, label, average.value / 1e6));
    }
    Some(Chart {
        id: "curve".to_owned(),
        title: curve_title(&surface.figures),
        caption: curve_caption(&data.curve, &accesses),
        x: Axis::new("position", position).between(
            Some(start_bytes as f64 / unit_bytes),
            Some(end_bytes as f64 / unit_bytes),
        ),
        y: Axis::new("transfer rate", "MB/s").starting_at_zero(),
        y_right: Some(access_axis(&data.access, latency)),
        series: vec![
            Series::new("transfer rate", SeriesMark::Line, rates),
            Series::new("access time", SeriesMark::Dots, accesses).on_the_right(),
            Series::new("unreadable", SeriesMark::Dots, unreadable),
        ],
        guides,
    })
}

/// The largest position of the curve and of the accesses; `None` without either.
fn farthest_bytes(surface: &SurfaceRecord) -> Option<u64> {
    let curve = surface.data.curve.iter().map(|point| point.offset_bytes);
    let access = surface.data.access.iter().map(|point| point.offset_bytes);
    curve.chain(access).max()
}

fn curve_title(figures: &SurfaceFigures) -> String {
    let rate = figures.rate.as_ref().map(|rate| {
        format!(
            "Transfer rate by position: max {}, average {}, min {}",
            format_throughput(rate.max),
            rate.average.value_text(),
            format_throughput(rate.min)
        )
    });
    let access = figures.seeks.get(&SeekPattern::Random).map(|seek| {
        format!(
            "access time: average {}, max {}, min {}",
            seek.mean.value_text(),
            format_latency(seek.max_ns),
            format_latency(seek.min_ns)
        )
    });
    match (rate, access) {
        (Some(rate), Some(access)) => format!("{rate}; {access}"),
        (Some(rate), None) => rate,
        (None, Some(access)) => format!("Random {access}"),
        (None, None) => "Transfer rate by position".to_owned(),
    }
}

/// Says how to read the line and the dots, as far as the chart has them.
fn curve_caption(curve: &[CurvePoint], accesses: &[(f64, f64)]) -> String {
    let mut caption = String::new();
    if !curve.is_empty() {
        caption += "The line is the transfer rate at each position. It falls from the outer to \
                    the inner tracks of a rotating disk, and is level on an SSD or an array. A \
                    flat top means that something other than the disk is the limit.";
        if accesses.is_empty() {
            return caption;
        }
        caption.push(' ');
    }
    caption + "Each dot is one random access at its position (right axis)."
}

/// Access time over the distance of the seek; `None` without accesses.
fn distance_chart(surface: &SurfaceRecord) -> Option<Chart> {
    let access = &surface.data.access;
    let farthest_bytes = access.iter().map(|point| point.distance_bytes).max()?;
    let (distance, unit_bytes) = position_unit(farthest_bytes as f64);
    let (latency, unit_ns) = latency_unit(longest_ns(access) as f64);
    let mut series = Vec::new();
    for pattern in SeekPattern::ALL {
        let mut points = Vec::new();
        for point in access {
            if point.seek == pattern {
                let x = point.distance_bytes as f64 / unit_bytes;
                points.push((x, point.latency_ns as f64 / unit_ns));
            }
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let name = pattern_name(&surface.figures, pattern);
        series.push(Series::new(name, SeriesMark::Dots, points));
    }
    Some(Chart {
        id: "access-by-distance".to_owned(),
        title: "Access time by seek distance".to_owned(),
        caption: "Each dot is one access and its distance from the previous one. On a rotating \
                  disk the lower edge is the seek, and the height of the band is one revolution. \
                  Without moving parts the distance makes no difference."
            .to_owned(),
        x: Axis::new("distance", distance).starting_at_zero(),
        y: access_axis(access, latency),
        series,
        ..Chart::default()
    })
}

/// A pattern with its mean access time.
fn pattern_name(figures: &SurfaceFigures, pattern: SeekPattern) -> String {
    match figures.seeks.get(&pattern) {
        Some(seek) => format!("{}: average {}", pattern.as_str(), seek.mean.value_text()),
        None => pattern.as_str().to_owned(),
    }
}

/// The gain from using only the first part of a disk; `None` where it was not measured.
fn short_strokes_chart(strokes: &[ShortStroke]) -> Option<Chart> {
    let mut ascending: Vec<&ShortStroke> = strokes.iter().collect();
    ascending.sort_by(|a, b| a.percent.total_cmp(&b.percent));
    let shortest = ascending.first()?;
    let longest = ascending.last()?;
    let slowest_ns = strokes.iter().map(|stroke| stroke.latency_max_ns).max()?;
    let (latency, unit_ns) = latency_unit(slowest_ns as f64);
    let mut rates = Vec::new();
    let mut means = Vec::new();
    let mut maxima = Vec::new();
    for stroke in &ascending {
        rates.push((stroke.percent, &stroke.iops));
        means.push((stroke.percent, stroke.latency_mean_ns / unit_ns));
        maxima.push((stroke.percent, stroke.latency_max_ns as f64 / unit_ns));
    }
    let title = format!(
        "Short strokes: {} IOPS over {} %, {} over the first {} %",
        rounded(longest.iops.value, longest.iops.half_width_95),
        longest.percent,
        rounded(shortest.iops.value, shortest.iops.half_width_95),
        shortest.percent
    );
    Some(Chart {
        id: "short-strokes".to_owned(),
        title,
        caption: "Random reads within the first part of the disk: the shorter the part, the \
                  shorter the seeks. Equal bars mean that a short stroke gains nothing."
            .to_owned(),
        x: Axis::new("part of the disk in use", "%")
            .labelled_at(ascending.iter().map(|stroke| stroke.percent)),
        y: Axis::new("random reads", "IOPS").starting_at_zero(),
        y_right: Some(Axis::new("access time", latency).starting_at_zero()),
        series: vec![
            Series::estimates("random reads per second", SeriesMark::Bars, rates, 1.0),
            Series::new("average access time", SeriesMark::Dots, means).on_the_right(),
            Series::new("longest access time", SeriesMark::Dots, maxima).on_the_right(),
        ],
        guides: Vec::new(),
    })
}

/// The latencies of a scan by position; `None` where it read nothing.
fn scan_chart(scan: &Scan) -> Option<Chart> {
    let units = ScanUnits::new(scan)?;
    let median_ns = scan.latency_p50_ns?;
    let start = units.position(scan.from_bytes);
    let end = units.position(scan.to_bytes);
    Some(Chart {
        id: "scan".to_owned(),
        title: format!(
            "Scan: {} of {}, {} unreadable; median {}",
            counted(scan.slow_blocks, "slow block"),
            scan.blocks,
            format_bytes(scan.unreadable_bytes),
            format_latency(median_ns)
        ),
        caption: "Latency of the blocks by position: the longest in each part, and the mean of \
                  several. If single blocks exceed the limit, the disk had to retry."
            .to_owned(),
        x: Axis::new("position", units.position).between(Some(start), Some(end)),
        y: Axis::new("latency of a block", units.latency).scaled(Scale::Log),
        series: scan_series(scan, &units),
        guides: vec![Guide::new(
            AxisSide::Left,
            format!("slow from {}", format_latency(scan.slow_from_ns)),
            units.latency(scan.slow_from_ns),
        )],
        ..Chart::default()
    })
}

/// The units of the two axes of a scan.
struct ScanUnits {
    position: &'static str,
    /// One unit of the position, in bytes.
    position_bytes: f64,
    latency: &'static str,
    /// One unit of the latency, in nanoseconds.
    latency_ns: f64,
}

impl ScanUnits {
    /// Units that fit the map; `None` if it is empty.
    fn new(scan: &Scan) -> Option<Self> {
        let last = scan.map.last()?;
        let longest_ns = scan.map.iter().map(|cell| cell.latency_max_ns).max()?;
        let (position, position_bytes) = position_unit(last.offset_bytes as f64);
        let (latency, latency_ns) = latency_unit(longest_ns as f64);
        Some(Self {
            position,
            position_bytes,
            latency,
            latency_ns,
        })
    }

    fn position(&self, offset_bytes: u64) -> f64 {
        offset_bytes as f64 / self.position_bytes
    }

    fn latency(&self, latency_ns: u64) -> f64 {
        latency_ns as f64 / self.latency_ns
    }

    fn point(&self, offset_bytes: u64, latency_ns: u64) -> (f64, f64) {
        (self.position(offset_bytes), self.latency(latency_ns))
    }
}

fn scan_series(scan: &Scan, units: &ScanUnits) -> Vec<Series> {
    let mut longest = Vec::new();
    let mut means = Vec::new();
    for cell in scan.map.iter().filter(|cell| cell.blocks > cell.errors) {
        longest.push(units.point(cell.offset_bytes, cell.latency_max_ns));
        means.push(units.point(cell.offset_bytes, cell.latency_mean_ns));
    }
    let mut slow = Vec::new();
    for block in &scan.slow {
        slow.push(units.point(block.offset_bytes, block.latency_ns));
    }
    let mut unreadable = Vec::new();
    for range in &scan.unreadable {
        // An unreadable block has no latency: its dot stands at the limit.
        unreadable.push(units.point(range.offset_bytes, scan.slow_from_ns));
    }
    let mut series = vec![Series::new("longest", SeriesMark::Line, longest)];
    // With one block per cell both lines would be equal.
    if scan.map.iter().any(|cell| cell.blocks > 1) {
        series.push(Series::new("mean", SeriesMark::Line, means));
    }
    series.push(Series::new("slow blocks", SeriesMark::Dots, slow));
    series.push(Series::new("unreadable", SeriesMark::Dots, unreadable));
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A real survey of `curve --scan`.
    fn survey() -> SurfaceRecord {
        let text = include_str!("../../../../tests/fixtures/curve-scan.json");
        let record = Record::from_json(text).unwrap();
        record.surface().unwrap().clone()
    }

    fn access(latency_ns: u64) -> AccessPoint {
        AccessPoint {
            seek: SeekPattern::Random,
            offset_bytes: 0,
            distance_bytes: 0,
            latency_ns,
        }
    }

    #[test]
    fn few_long_accesses_make_the_axis_logarithmic() {
        for (longest_ns, scale) in [(2_000_000, Scale::Linear), (2_000_001, Scale::Log)] {
            let accesses = [access(100_000), access(100_000), access(longest_ns)];
            let axis = access_axis(&accesses, "ms");
            assert_eq!(axis.scale, scale, "{longest_ns}");
        }
    }

    #[test]
    fn position_that_nothing_was_read_of_is_a_dot_at_zero() {
        let mut surface = survey();
        let points = surface.data.curve.len();
        let unreadable = &mut surface.data.curve[1];
        unreadable.bytes = 0;
        unreadable.errors = 2;
        let offset_bytes = unreadable.offset_bytes;
        // Without an error nothing was tried there.
        surface.data.curve[2].bytes = 0;
        let chart = curve_chart(&surface).unwrap();
        assert_eq!(chart.series[0].points.len(), points - 2);
        let dots = &chart.series[2].points;
        assert_eq!(dots.len(), 1);
        assert_eq!(dots[0].y, 0.0);
        let (_, unit_bytes) = position_unit(farthest_bytes(&surface).unwrap() as f64);
        assert_eq!(dots[0].x, offset_bytes as f64 / unit_bytes);
    }

    #[test]
    fn unreadable_range_of_a_scan_stands_at_the_limit() {
        let surface = survey();
        let mut scan = surface.data.scan.unwrap();
        scan.map.truncate(2);
        scan.map[0].errors = scan.map[0].blocks;
        let units = ScanUnits::new(&scan).unwrap();
        let series = scan_series(&scan, &units);
        // A part of which no block was read has no latency.
        assert_eq!(series[0].points.len(), 1);
        let last = series.last().unwrap();
        assert_eq!(last.points.len(), scan.unreadable.len());
        for point in &last.points {
            assert_eq!(point.y, units.latency(scan.slow_from_ns));
        }
    }
}
