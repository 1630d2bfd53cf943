//! Draws the screen of a sustained load: collects what the reports of progress say, and redraws the
//! page.

use crate::full_screen::{FullScreen, ScreenStream};
use crate::stdio::page_in_locale;
use diskproof_device::disk_temperature;
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_model::target::TargetIdentity;
use diskproof_report::style::{Color, Style};
use diskproof_report::terminal::{LiveLoad, RateAt, write_live_load};
use std::io;
use std::time::{Duration, Instant};

/// A page that changes more often cannot be read.
const REDRAW_INTERVAL: Duration = Duration::from_millis(500);
/// The curve of the rate gets a point each second.
const POINT_INTERVAL: Duration = Duration::from_secs(1);
/// Reading a sensor is a command to the disk: more often it would become a part of the load.
const TEMPERATURE_INTERVAL: Duration = Duration::from_secs(10);
/// The last line of the screen.
const LAST_LINE: &str = "Ctrl-C ends the load; what is known is kept";

/// The figures of the load at the moment of a redraw.
pub(crate) struct LoadMoment {
    /// The phase in words, such as `warm-up`.
    pub phase: String,
    /// The most time left, in nanoseconds; `None` where nothing limits it.
    pub left_ns: Option<u64>,
    /// Operations per second; `None` where none were measured yet.
    pub iops: Option<f64>,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// The longest latency, in nanoseconds; `None` where nothing ended.
    pub latency_max_ns: Option<u64>,
    /// The bytes that the current slice has moved.
    pub slice_bytes: u64,
    /// Lines that need attention, such as a long silence.
    pub remarks: Vec<String>,
}

/// The screen of a sustained load. Dropping it restores the terminal.
pub(crate) struct LoadScreen {
    screen: FullScreen,
    title: String,
    started: Instant,
    /// When the page was drawn last.
    drawn: Option<Instant>,
    /// When the curve got its last point.
    pointed: Option<Instant>,
    /// The curve of the rate.
    rates: Vec<RateAt>,
    /// The bytes that the slices before the current one have moved.
    earlier_bytes: u64,
    /// The bytes that the current slice has moved.
    slice_bytes: u64,
    thermometer: Thermometer,
}

impl LoadScreen {
    /// True if stderr is a terminal that can show it.
    pub(crate) fn is_possible() -> bool {
        FullScreen::is_possible(ScreenStream::Stderr)
    }

    /// Takes the terminal, for a load of these targets.
    pub(crate) fn start(title: String, targets: &[TargetIdentity]) -> io::Result<Self> {
        Ok(Self {
            screen: FullScreen::start(ScreenStream::Stderr)?,
            title,
            started: Instant::now(),
            drawn: None,
            pointed: None,
            rates: Vec::new(),
            earlier_bytes: 0,
            slice_bytes: 0,
            thermometer: Thermometer::new(targets),
        })
    }

    /// A slice begins, whose bytes count from zero.
    pub(crate) fn begin_slice(&mut self) {
        self.earlier_bytes += std::mem::take(&mut self.slice_bytes);
    }

    /// True if it is time to redraw.
    pub(crate) fn is_due(&self) -> bool {
        is_over(self.drawn, REDRAW_INTERVAL)
    }

    /// Redraws the page.
    pub(crate) fn show(&mut self, moment: LoadMoment) {
        self.drawn = Some(Instant::now());
        let elapsed_ns = self.started.elapsed().as_nanos() as u64;
        if let Some(iops) = moment.iops
            && is_over(self.pointed, POINT_INTERVAL)
        {
            self.pointed = self.drawn;
            self.rates.push(RateAt {
                at_ns: elapsed_ns,
                iops,
            });
        }
        self.slice_bytes = moment.slice_bytes;
        let load = LiveLoad {
            title: self.title.clone(),
            phase: moment.phase,
            elapsed_ns,
            left_ns: moment.left_ns,
            moved_bytes: self.earlier_bytes + self.slice_bytes,
            iops: moment.iops,
            bytes_per_second: moment.bytes_per_second,
            latency_max_ns: moment.latency_max_ns,
            temperature_celsius: self.thermometer.read(),
            remarks: moment.remarks,
            rates: std::mem::take(&mut self.rates),
        };
        let style = Style {
            width: self.screen.size().columns,
            color: Color::Plain,
        };
        let page = page_in_locale(|page| write_live_load(&load, &style, page));
        self.rates = load.rates;
        // A terminal that has gone does not end the load.
        let _ = self.screen.draw(&page, LAST_LINE);
    }
}

/// True if this time has passed; true without a start.
fn is_over(since: Option<Instant>, time: Duration) -> bool {
    match since {
        Some(since) => since.elapsed() >= time,
        None => true,
    }
}

/// Reads the hottest sensor of the disks now and then, on a thread of its own: a disk that hangs
/// does not answer this either.
struct Thermometer {
    targets: Vec<TargetIdentity>,
    /// When the last reading began.
    began: Option<Instant>,
    /// The reading that has not ended yet.
    reading: Option<Deferred<Option<f64>>>,
    /// The last temperature.
    celsius: Option<f64>,
}

impl Thermometer {
    fn new(targets: &[TargetIdentity]) -> Self {
        Self {
            targets: targets.to_vec(),
            began: None,
            reading: None,
            celsius: None,
        }
    }

    /// The newest temperature that is known. Never waits; begins a reading where one is due.
    fn read(&mut self) -> Option<f64> {
        if let Some(reading) = &self.reading {
            match reading.poll(Duration::ZERO) {
                Waited::TimedOut(_) => return self.celsius,
                Waited::Done(celsius) => self.celsius = celsius,
                Waited::Lost => self.celsius = None,
            }
            self.reading = None;
        }
        if is_over(self.began, TEMPERATURE_INTERVAL) {
            self.began = Some(Instant::now());
            let targets = self.targets.clone();
            let started = Deferred::start("diskproof-heat", move || disk_temperature(&targets));
            self.reading = started.ok();
        }
        self.celsius
    }
}
