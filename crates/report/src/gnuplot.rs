//! All charts of a record as one gnuplot script with its data: `gnuplot -p x.gnuplot` writes a PNG
//! file (SVG without cairo) for each chart into the working directory, and opens a window for each
//! if there is a screen.

use crate::chart::{self, Axis, AxisSide, Chart, Guide, Range, Scale, Series, SeriesMark};
use crate::format::OutputFile;
use crate::svg::{GUIDE_ON_WHITE, SERIES_COLORS};
use crate::text::{clean, shortened};
use diskproof_model::record::Record;
use std::io::{self, Write};
use std::path::Path;

/// A series with more points is drawn as small dots, so that their density shows. Chosen by the
/// look of pictures 1200 pixels wide.
const POINTS_MANY: usize = 150;

/// Longer names are cut; two of this length fit side by side in the legend.
const NAME_COLUMNS_MAX: usize = 60;

/// The beginning of the script. Enhanced mode would interpret `_` and `^` in names.
const PRELUDE: &str = concat!(
    "set encoding utf8\n",
    "screen = (strstrt('qt wxt x11 aqua windows', GPVAL_TERM) > 0) ? GPVAL_TERM : ''\n",
    "cairo = strstrt(GPVAL_TERMINALS, 'pngcairo') > 0\n",
    "ending = cairo ? '.png' : '.svg'\n",
    "if (cairo) { set terminal pngcairo noenhanced size 1200,675 font ',11' } ",
    "else { set terminal svg noenhanced size 1200,675 font ',11' }\n",
    "set grid xtics ytics linetype 1 linewidth 0.5 linecolor rgb '#d5dae3'\n",
    "set border linecolor rgb '#5a6472'\n",
    "set key outside bottom center horizontal noenhanced\n",
    "set style fill solid 0.3\n",
);

/// The script of a record as a file. Its pictures are named after the file.
pub(crate) fn files<'a>(record: &'a Record, path: &Path) -> Vec<OutputFile<'a>> {
    let stem = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    vec![OutputFile::new(path, move |out| {
        write_record(record, &stem, out)
    })]
}

/// True of a character that needs no quotes in a script.
fn is_plain_char(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_')
}

/// Writes the script. Pictures are called `STEM-CHART.png`; of the stem only letters, digits, `.`,
/// `-` and `_` are used.
pub fn write_record(record: &Record, stem: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut plain = stem.to_owned();
    plain.retain(is_plain_char);
    let prefix = match plain.trim_start_matches(['.', '-']) {
        "" => "diskproof",
        plain => plain,
    };
    let origin = chart::origin(record);
    writeln!(out, "# {origin}")?;
    writeln!(
        out,
        "# gnuplot -p {prefix}.gnuplot   writes {prefix}-CHART.png, and shows each chart if there \
         is a display"
    )?;
    out.write_all(PRELUDE.as_bytes())?;
    for (index, chart) in chart::charts(record).iter().enumerate() {
        let name = format!("{prefix}-{}", chart.id);
        write_chart(chart, index, &name, &origin, out)?;
    }
    Ok(())
}

/// Writes the data of a chart and how they are drawn into a picture of this name.
fn write_chart(
    chart: &Chart,
    index: usize,
    name: &str,
    origin: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "\n# {}", chart.caption)?;
    for (number, series) in chart.series.iter().enumerate() {
        write_data(series, &format!("$c{index}s{number}"), chart.x.scale, out)?;
    }
    let (headline, figures) = chart.headline();
    writeln!(out, "set output {} . ending", quoted(name))?;
    let title = [headline, figures, origin].map(quoted).join(", ");
    let form = "\"%s\\n%s\\n%s\"";
    writeln!(out, "set title sprintf({form}, {title}) noenhanced")?;
    let ranges = chart.ranges();
    write_axis("x", &chart.x, &ranges.x, out)?;
    write_axis("y", &chart.y, &ranges.y, out)?;
    match (&chart.y_right, &ranges.y_right) {
        (Some(axis), Some(range)) => {
            writeln!(out, "set ytics nomirror")?;
            write_axis("y2", axis, range, out)?;
        }
        _ => writeln!(out, "unset y2tics\nunset y2label\nunset logscale y2")?,
    }
    writeln!(out, "unset arrow\nunset label")?;
    for guide in &chart.guides {
        write_guide(guide, ranges.x.scale, out)?;
    }
    if let Some(width) = chart.bar_width() {
        writeln!(out, "set boxwidth {width}")?;
    }
    let mut plots = Vec::new();
    for (number, series) in chart.series.iter().enumerate() {
        plots.push(plot_clause(series, index, number));
    }
    writeln!(out, "plot \\\n  {}", plots.join(", \\\n  "))?;
    writeln!(
        out,
        "if (screen ne '') {{ set output; set terminal push; eval sprintf('set terminal %s \
         {index} noenhanced', screen); replot; set terminal pop }}"
    )
}

/// `x y half-width`, a line per point.
fn write_data(series: &Series, name: &str, x: Scale, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{name} << EOD")?;
    writeln!(out, "# {}", series.name)?;
    for point in &series.points {
        let position = axis_position(x, point.x);
        let value = point.y;
        if series.has_intervals() {
            let half_width = point.half_width_95.unwrap_or(0.0);
            writeln!(out, "{position} {value} {half_width}")?;
        } else {
            writeln!(out, "{position} {value}")?;
        }
    }
    writeln!(out, "EOD")
}

/// The position of a value on an axis of gnuplot, which has no percentile axis: there it is the
/// number of nines.
fn axis_position(scale: Scale, value: f64) -> f64 {
    match scale {
        Scale::Percentile => -(1.0 - value / 100.0).log10(),
        Scale::Linear | Scale::Log => value,
    }
}

fn write_axis(name: &str, axis: &Axis, range: &Range, out: &mut dyn Write) -> io::Result<()> {
    let label = quoted(&axis.name());
    let logscale = match range.scale {
        Scale::Log => "set logscale",
        Scale::Linear | Scale::Percentile => "unset logscale",
    };
    let mut ticks = Vec::new();
    for tick in &range.ticks {
        let position = axis_position(axis.scale, *tick);
        ticks.push(format!("{} {position}", quoted(&range.label(*tick))));
    }
    // Away from the legend below.
    let offset = if name == "x" { " offset 0,0.5" } else { "" };
    let low = axis_position(axis.scale, range.low);
    let high = axis_position(axis.scale, range.high);
    writeln!(out, "set {name}label {label}{offset} noenhanced")?;
    writeln!(out, "{logscale} {name}\nset {name}range [{low}:{high}]")?;
    writeln!(out, "set {name}tics ({})", ticks.join(", "))
}

/// A dashed line across the picture with its label.
fn write_guide(guide: &Guide, x: Scale, out: &mut dyn Write) -> io::Result<()> {
    let look = format!("nohead dashtype 2 linecolor rgb '{GUIDE_ON_WHITE}'");
    let text = quoted(&guide.label);
    if guide.is_vertical() {
        let x = format!("first {}", axis_position(x, guide.value));
        writeln!(out, "set arrow from {x}, graph 0 to {x}, graph 1 {look}")?;
        writeln!(
            out,
            "set label {text} at {x}, graph 0.96 left offset 1,0 noenhanced"
        )
    } else {
        let axis = match guide.axis {
            AxisSide::Right => "second",
            AxisSide::X | AxisSide::Left => "first",
        };
        let y = format!("{axis} {}", guide.value);
        writeln!(out, "set arrow from graph 0, {y} to graph 1, {y} {look}")?;
        writeln!(
            out,
            "set label {text} at graph 0.99, {y} right offset 0,0.6 noenhanced"
        )
    }
}

/// gnuplot's filled shapes: circle, square, triangle, diamond, inverted triangle.
const POINT_TYPES: [u8; 5] = [7, 5, 9, 13, 11];
/// The dash types that gnuplot's terminals distinguish, from 1 on.
const DASH_TYPES: usize = 5;

/// The part of the `plot` command that draws a series.
fn plot_clause(series: &Series, chart: usize, number: usize) -> String {
    let axes = match series.side {
        AxisSide::Right => " axes x1y2",
        AxisSide::X | AxisSide::Left => "",
    };
    let color = SERIES_COLORS[number % SERIES_COLORS.len()];
    let shape = format!("pointtype {}", POINT_TYPES[number % POINT_TYPES.len()]);
    let has_bars = series.has_intervals();
    let style = match (series.mark, has_bars) {
        (SeriesMark::Line, false) => {
            format!("lines linewidth 2 dashtype {}", number % DASH_TYPES + 1)
        }
        (SeriesMark::Line, true) => format!("yerrorlines linewidth 2 {shape}"),
        (SeriesMark::Dots, _) if series.points.len() > POINTS_MANY => {
            format!("points {shape} pointsize 0.35")
        }
        (SeriesMark::Dots, _) => format!("points {shape}"),
        (SeriesMark::Bars, false) => "boxes".to_owned(),
        (SeriesMark::Bars, true) => "boxerrorbars".to_owned(),
    };
    let name = quoted(&shortened(&series.legend(), NAME_COLUMNS_MAX));
    format!("$c{chart}s{number}{axes} with {style} linecolor rgb '{color}' title {name} noenhanced")
}

/// In single quotes gnuplot interprets only the quote; in double quotes it would run commands in
/// backquotes.
fn quoted(text: &str) -> String {
    format!("'{}'", clean(text).replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gnuplot_text_stays_in_its_quotes() {
        assert_eq!(quoted("it's `id`\n\\"), "'it''s `id`\\n\\'");
    }
}
