//! Charts of a survey: transfer rate and access time by position, access time by distance, short
//! strokes, the map of a scan.

use super::types::{
    Axis, AxisSide, Chart, Guide, Scale, Series, SeriesMark, latency_unit, position_unit,
};
use diskproof_model::digits::rounded;
use diskproof_model::record::Record;
use diskproof_model::surface::{AccessPoint, Scan, SeekPattern, ShortStroke, SurfaceRecord};
use diskproof_model::units::{counted, format_bytes, format_latency, format_throughput};

/// All of them that the record has data for.
pub(super) fn charts(record: &Record) -> Vec<Chart> {
    let surface = record.surface();
    let mut charts = Vec::new();
    charts.extend(curve(record));
    charts.extend(access_by_distance(record));
    charts.extend(surface.and_then(|surface| short_strokes(&surface.figures.short_strokes)));
    charts.extend(surface.and_then(|surface| scan_map(surface.data.scan.as_ref()?)));
    charts
}

fn longest(access: &[AccessPoint]) -> f64 {
    let latencies = access.iter().map(|point| point.latency_ns);
    latencies.max().unwrap_or(0) as f64
}

/// From zero; logarithmic if a few long accesses would press all others onto the axis.
fn access_axis(access: &[AccessPoint], unit: &str) -> Axis {
    let mut latencies: Vec<u64> = access.iter().map(|point| point.latency_ns).collect();
    latencies.sort_unstable();
    let usual = latencies.get(latencies.len() / 2).copied().unwrap_or(0) as f64;
    let axis = Axis::new("access time", unit);
    if longest(access) > LONGEST_OVER_USUAL * usual {
        axis.scaled(Scale::Log)
    } else {
        axis.starting_at_zero()
    }
}

/// From this ratio on, the median access takes less than a twentieth of the height.
const LONGEST_OVER_USUAL: f64 = 20.0;

/// The transfer-rate graph known from HD Tune: the rate as a line, single accesses as dots.
fn curve(record: &Record) -> Option<Chart> {
    let (points, access) = (|| record.curve().iter(), || record.access().iter());
    let places = points().map(|p| p.offset_bytes);
    let places = places.chain(access().map(|p| p.offset_bytes));
    let (unit, bytes) = position_unit(places.max()? as f64);
    let (latency, ns) = latency_unit(longest(record.access()));
    let position = |offset_bytes: u64| offset_bytes as f64 / bytes;
    let surface = record.surface();
    let start = surface.map(|s| s.data.span_start_bytes);
    let end = surface.map(|s| s.data.span_start_bytes.saturating_add(s.data.span_bytes));
    let rate = points().filter(|p| p.bytes > 0);
    let rate = rate.map(|p| (position(p.offset_bytes), p.bytes_per_second / 1e6));
    let unreadable = points().filter(|p| p.bytes == 0 && p.errors > 0);
    let unreadable = unreadable.map(|p| (position(p.offset_bytes), 0.0));
    let random = access().filter(|p| p.seek == SeekPattern::Random);
    let dots = random.map(|p| (position(p.offset_bytes), p.latency_ns as f64 / ns));
    let dots: Vec<(f64, f64)> = dots.collect();
    let rates = surface.and_then(|s| s.figures.rate.as_ref());
    let guides = rates.map(|rates| &rates.average).map(|average| {
        let label = format!("average {}", average.value_text());
        Guide::new(AxisSide::Left, label, average.value / 1e6)
    });
    Some(Chart {
        id: "curve".to_owned(),
        title: curve_title(surface),
        caption: curve_caption(!record.curve().is_empty(), !dots.is_empty()),
        x: Axis::new("position", unit).between(start.map(position), end.map(position)),
        y: Axis::new("transfer rate", "MB/s").starting_at_zero(),
        y_right: Some(access_axis(record.access(), latency)),
        series: vec![
            Series::new("transfer rate", SeriesMark::Line, rate.collect()),
            Series::new("access time", SeriesMark::Dots, dots).on_the_right(),
            Series::new("unreadable", SeriesMark::Dots, unreadable.collect()),
        ],
        guides: guides.into_iter().collect(),
    })
}

fn curve_title(surface: Option<&SurfaceRecord>) -> String {
    let rate = surface.and_then(|s| s.figures.rate.as_ref()).map(|rate| {
        let [max, min] = [rate.max, rate.min].map(format_throughput);
        let average = rate.average.value_text();
        format!("Transfer rate by position: max {max}, average {average}, min {min}")
    });
    let seek = surface.and_then(|s| s.figures.seeks.get(&SeekPattern::Random));
    let access = seek.map(|seek| {
        let [max, min] = [seek.max_ns, seek.min_ns].map(format_latency);
        let mean = seek.mean.value_text();
        format!("access time: average {mean}, max {max}, min {min}")
    });
    match (rate, access) {
        (Some(rate), Some(access)) => format!("{rate}; {access}"),
        (Some(title), None) => title,
        (None, Some(access)) => format!("Random {access}"),
        (None, None) => "Transfer rate by position".to_owned(),
    }
}

fn curve_caption(has_rate: bool, has_access: bool) -> String {
    let rate = "The line is the transfer rate at each position. It falls from the outer to the \
                inner tracks of a rotating disk, and is level on an SSD or an array. A flat top \
                means that something other than the disk is the limit.";
    let access = "Each dot is one random access at its position (right axis).";
    match (has_rate, has_access) {
        (true, true) => format!("{rate} {access}"),
        (true, false) => rate.to_owned(),
        (false, _) => access.to_owned(),
    }
}

/// Access time over the distance of the seek.
fn access_by_distance(record: &Record) -> Option<Chart> {
    let farthest = record.access().iter().map(|p| p.distance_bytes).max()?;
    let (unit, bytes) = position_unit(farthest as f64);
    let (latency, ns) = latency_unit(longest(record.access()));
    let patterns = [
        SeekPattern::Random,
        SeekPattern::TrackToTrack,
        SeekPattern::ThirdStroke,
        SeekPattern::FullStroke,
        SeekPattern::Butterfly,
    ];
    let series = patterns.map(|seek| {
        let own = record.access().iter().filter(|p| p.seek == seek);
        let points = own.map(|p| (p.distance_bytes as f64 / bytes, p.latency_ns as f64 / ns));
        let mut points: Vec<(f64, f64)> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let surface = record.surface();
        let name = match surface.and_then(|surface| surface.figures.seeks.get(&seek)) {
            Some(of) => format!("{}: average {}", seek.as_str(), of.mean.value_text()),
            None => seek.as_str().to_owned(),
        };
        Series::new(name, SeriesMark::Dots, points)
    });
    Some(Chart {
        id: "access-by-distance".to_owned(),
        title: "Access time by seek distance".to_owned(),
        caption: "Each dot is one access and its distance from the previous one. On a rotating \
                  disk the lower edge is the seek, and the height of the band is one revolution. \
                  Without moving parts the distance makes no difference."
            .to_owned(),
        x: Axis::new("distance", unit).starting_at_zero(),
        y: access_axis(record.access(), latency),
        series: series.into(),
        ..Chart::default()
    })
}

/// The gain from using only the first part of a disk.
fn short_strokes(strokes: &[ShortStroke]) -> Option<Chart> {
    let mut strokes: Vec<&ShortStroke> = strokes.iter().collect();
    strokes.sort_by(|a, b| a.percent.total_cmp(&b.percent));
    let (shortest, longest) = (strokes.first()?, strokes.last()?);
    let slowest_ns = strokes.iter().map(|s| s.latency_max_ns).max()?;
    let (latency, ns) = latency_unit(slowest_ns as f64);
    let iops = strokes.iter().map(|s| (s.percent, &s.iops));
    let mean = strokes.iter().map(|s| (s.percent, s.latency_mean_ns / ns));
    let worst = strokes.iter();
    let worst = worst.map(|s| (s.percent, s.latency_max_ns as f64 / ns));
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
        x: Axis::new("part of the disk in use", "%").labelled_at(strokes.iter().map(|s| s.percent)),
        y: Axis::new("random reads", "IOPS").starting_at_zero(),
        y_right: Some(Axis::new("access time", latency).starting_at_zero()),
        series: vec![
            Series::estimates("random reads per second", SeriesMark::Bars, iops, 1.0),
            Series::new("average access time", SeriesMark::Dots, mean.collect()).on_the_right(),
            Series::new("longest access time", SeriesMark::Dots, worst.collect()).on_the_right(),
        ],
        guides: Vec::new(),
    })
}

/// Latency of every block by position.
fn scan_map(scan: &Scan) -> Option<Chart> {
    let (unit, bytes) = position_unit(scan.map.last()?.offset_bytes as f64);
    let (latency, ns) = latency_unit(scan.map.iter().map(|cell| cell.latency_max_ns).max()? as f64);
    let [start, end] = [scan.from_bytes, scan.to_bytes].map(|at| at as f64 / bytes);
    Some(Chart {
        id: "scan".to_owned(),
        title: format!(
            "Scan: {} of {}, {} unreadable; median {}",
            counted(scan.slow_blocks, "slow block"),
            scan.blocks,
            format_bytes(scan.unreadable_bytes),
            format_latency(scan.latency_p50_ns)
        ),
        caption: "Latency of the blocks by position: the longest in each part, and the mean of \
                  several. If single blocks exceed the limit, the disk had to retry."
            .to_owned(),
        x: Axis::new("position", unit).between(Some(start), Some(end)),
        y: Axis::new("latency of a block", latency).scaled(Scale::Log),
        series: scan_series(scan, bytes, ns),
        guides: vec![Guide::new(
            AxisSide::Left,
            format!("slow from {}", format_latency(scan.slow_from_ns)),
            scan.slow_from_ns as f64 / ns,
        )],
        ..Chart::default()
    })
}

fn scan_series(scan: &Scan, bytes: f64, ns: f64) -> Vec<Series> {
    let point = |offset: u64, latency_ns: u64| (offset as f64 / bytes, latency_ns as f64 / ns);
    let map = || scan.map.iter();
    let longest = map().map(|cell| point(cell.offset_bytes, cell.latency_max_ns));
    let mut series = vec![Series::new("longest", SeriesMark::Line, longest.collect())];
    // With one block per cell both lines would be equal.
    if map().any(|cell| cell.blocks > 1) {
        let mean = map().map(|cell| point(cell.offset_bytes, cell.latency_mean_ns));
        series.push(Series::new("mean", SeriesMark::Line, mean.collect()));
    }
    let slow = scan.slow.iter();
    let slow = slow.map(|block| point(block.offset_bytes, block.latency_ns));
    series.push(Series::new("slow blocks", SeriesMark::Dots, slow.collect()));
    // An unreadable block has no latency: its dot stands at the limit.
    let bad = scan.unreadable.iter();
    let bad = bad.map(|range| point(range.offset_bytes, scan.slow_from_ns));
    series.push(Series::new("unreadable", SeriesMark::Dots, bad.collect()));
    series
}
