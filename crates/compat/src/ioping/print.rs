//! The output of ioping: a line per request, raw lines, JSON, and the statistics over requests.

use super::suffix::{count_text, size_text, time_text};
use crate::c_format::local_time;
use crate::printer::{ToolPrinter, ToolResult, ToolText};
use diskproof_model::measurement::OpKind;
use diskproof_model::ping::{IgnoredBecause, SingleRequest};
use diskproof_model::target::{TargetIdentity, TargetKind};

/// The form of the output, and the limits of requests that count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OutputForm {
    /// True if single requests have no lines (-q, -B, -R).
    pub(super) is_quiet: bool,
    /// True if the statistics are a line of numbers (-B).
    pub(super) is_batch: bool,
    /// True if everything is JSON (-J).
    pub(super) is_json: bool,
    /// strftime(3) format of the time of each request.
    pub(super) time_format: Option<String>,
    /// Statistics are printed after so many requests (-p).
    pub(super) period_requests: Option<u64>,
    /// Statistics are printed after this time (-P).
    pub(super) period_ns: Option<u64>,
    /// The time from the start of a request to that of the next.
    pub(super) interval_ns: u64,
    /// A faster request does not count (-t).
    pub(super) valid_min_ns: u64,
    /// A slower request does not count (-T).
    pub(super) valid_max_ns: u64,
}

/// The target as ioping shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ShownTarget {
    /// `. (ext4 /dev/vda 252.0 GiB)`.
    text: String,
    /// The fields of an object.
    json: String,
}

impl ShownTarget {
    /// The words about this target, named so on the command line.
    pub(super) fn new(path: &str, target: &TargetIdentity) -> Self {
        let (filesystem, device, bytes) = match (&target.filesystem, target.kind) {
            (_, TargetKind::BlockDevice) => ("block", "device", target.size_bytes),
            (Some(found), _) => (found.kind.as_str(), found.source.as_str(), found.size_bytes),
            (None, _) => ("", "", 0),
        };
        let size = size_text(bytes as f64);
        let text = format!("{path} ({filesystem} {device} {size})");
        let [path, filesystem, device] = [path, filesystem, device].map(escaped);
        let json = format!(
            "\"path\": \"{path}\",\n    \"fstype\": \"{filesystem}\",\n    \"device\": \
             \"{device}\",\n    \"device_size\": {bytes}"
        );
        Self { text, json }
    }
}

/// Prints as ioping does.
#[derive(Debug, Default)]
pub(super) struct IopingPrinter {
    pub(super) form: OutputForm,
    pub(super) target: ShownTarget,
    /// The word behind the bytes of the statistics: ` read`, ` written`, or empty where both occur.
    pub(super) direction: &'static str,
    pub(super) block_bytes: u64,
    /// The requests of the current period.
    pub(super) period: RequestSum,
    /// The requests of the periods that have ended.
    pub(super) total: RequestSum,
    /// The time at which the last request ended, in nanoseconds after the start of the run.
    pub(super) end_ns: u64,
    /// The time at which the next request is due.
    pub(super) next_ns: u64,
    /// The time at which the current period ends.
    pub(super) next_period_ns: u64,
    /// True once a request has started.
    pub(super) has_begun: bool,
    /// The number of JSON objects that were printed.
    pub(super) json_objects: u64,
    /// The error of the first request that failed, by its name.
    pub(super) failed: Option<String>,
    /// Wall-clock time of the last request's end.
    pub(super) unix_ns: u64,
}

impl IopingPrinter {
    /// Starts the sums and the first period with the first request.
    fn start_at(&mut self, at_ns: u64) {
        if !self.has_begun {
            self.has_begun = true;
            self.period = RequestSum::starting_at(at_ns);
            self.total = RequestSum::starting_at(at_ns);
            self.end_ns = at_ns;
            self.start_period(at_ns);
        }
    }

    fn start_period(&mut self, at_ns: u64) {
        self.next_period_ns = match self.form.period_ns {
            Some(period_ns) => at_ns + period_ns,
            None => u64::MAX,
        };
    }

    /// The line of a request.
    fn request_line(&self, request: &SingleRequest, remark: Option<&str>, unix_ns: u64) -> String {
        let mut line = String::new();
        if let Some(format) = &self.form.time_format {
            line += &time_as(format, unix_ns);
            line.push(' ');
        }
        let is_read = request.op == OpKind::Read;
        let arrow = if is_read { "<<<" } else { ">>>" };
        line += &format!(
            "{} {arrow} {}: request={} time={}",
            size_text(self.block_bytes as f64),
            self.target.text,
            request.number,
            time_text(request.latency_ns as f64)
        );
        if let Some(remark) = remark {
            line += &format!(" ({remark})");
        }
        line + "\n"
    }

    fn json_head(&mut self, unix_ns: u64) -> String {
        let comma = if self.json_objects > 0 { "," } else { "" };
        self.json_objects += 1;
        let format = self.form.time_format.as_deref().unwrap_or_default();
        let (seconds, local) = (unix_ns as f64 / 1e9, time_as(format, unix_ns));
        format!(
            "{comma}{{\n  \"timestamp\": {seconds:.6},\n  \"localtime\": \"{local}\",\n  \
             \"target\": {{\n    {}\n  }},\n",
            self.target.json
        )
    }

    /// The JSON object of a request.
    fn json_request(
        &mut self,
        request: &SingleRequest,
        judgement: &Judgement,
        unix_ns: u64,
    ) -> String {
        let is_read = request.op == OpKind::Read;
        let operation = if is_read { "read" } else { "write" };
        format!(
            "{}  \"io\": {{\n    \"request\": {},\n    \"operation\": \"{operation}\",\n    \
             \"size\": {},\n    \"time\": {},\n    \"ignored\": {}\n  }}\n}}",
            self.json_head(unix_ns),
            request.number,
            self.block_bytes,
            request.latency_ns,
            !judgement.is_valid
        )
    }

    fn json_statistics(&mut self, figures: &RequestFigures, unix_ns: u64) -> String {
        format!(
            "{}  \"stat\": {{\n    {},\n    \"min\": {},\n    \"avg\": {:.0},\n    \
             \"max\": {},\n    \"mdev\": {:.0}\n  }},\n  \"load\": {{\n    {}\n  }}\n}}",
            self.json_head(unix_ns),
            figures.valid.json(),
            figures.min_ns,
            figures.avg_ns,
            figures.max_ns,
            figures.mdev_ns,
            figures.load.json()
        )
    }

    /// Ends the current period if it is over, and returns its statistics; empty if it is not.
    fn end_period_if_over(&mut self, unix_ns: u64) -> String {
        if !self.is_period_over() {
            return String::new();
        }
        let figures = self.period.figures(self.end_ns, self.block_bytes);
        self.total.merge(&self.period);
        self.period = RequestSum::starting_at(self.end_ns);
        self.start_period(self.end_ns);
        if self.form.is_json {
            self.json_statistics(&figures, unix_ns)
        } else {
            raw_line(&figures)
        }
    }

    fn is_period_over(&self) -> bool {
        if let Some(requests) = self.form.period_requests
            && self.period.valid >= requests
        {
            return true;
        }
        // As in ioping: behind the last request of a period, not behind the first of the next.
        self.next_ns >= self.next_period_ns
    }

    fn summary(&self, figures: &RequestFigures) -> String {
        let (target, valid) = (&self.target.text, &figures.valid);
        let mut text = format!("\n--- {target} ioping statistics ---\n");
        text.push_str(&valid.text("", "requests completed", self.direction));
        let ignored = [(self.total.too_fast, "fast"), (self.total.too_slow, "slow")];
        for (count, which) in ignored {
            if count > 0 {
                text.push_str(&format!("{} too {which}, ", count_text(count as f64)));
            }
        }
        text.push_str(&figures.load.text("generated ", "requests", ""));
        let (min_ns, max_ns) = (figures.min_ns as f64, figures.max_ns as f64);
        let times = [min_ns, figures.avg_ns, max_ns, figures.mdev_ns].map(time_text);
        text + &format!("min/avg/max/mdev = {}\n", times.join(" / "))
    }
}

impl ToolPrinter for IopingPrinter {
    fn begin(&mut self) -> String {
        if self.form.is_json { "[" } else { "" }.to_owned()
    }

    fn request(&mut self, request: &SingleRequest, unix_ns: u64) -> String {
        self.start_at(request.at_ns);
        self.unix_ns = unix_ns;
        self.end_ns = request.at_ns + request.latency_ns;
        self.next_ns = self.end_ns.max(request.at_ns + self.form.interval_ns);
        if let Some(error) = &request.error {
            self.failed.get_or_insert_with(|| error.clone());
            return String::new();
        }
        let judgement = self.period.add(request, &self.form);
        let mut text = if self.form.is_quiet {
            String::new()
        } else if self.form.is_json {
            self.json_request(request, &judgement, unix_ns)
        } else {
            self.request_line(request, judgement.remark, unix_ns)
        };
        text.push_str(&self.end_period_if_over(unix_ns));
        text
    }

    fn end(&mut self, result: &ToolResult<'_>) -> ToolText {
        self.total.merge(&self.period);
        if result.interrupted {
            // The wait in which the signal came counts, as in ioping.
            self.end_ns += result.unix_ns.saturating_sub(self.unix_ns);
        }
        let figures = self.total.figures(self.end_ns, self.block_bytes);
        let has_periods = self.form.period_requests.or(self.form.period_ns).is_some();
        let stdout = if !self.has_begun {
            // Without a request there is nothing to sum up.
            if self.form.is_json { "]\n" } else { "" }.to_owned()
        } else if self.form.is_json {
            self.json_statistics(&figures, result.unix_ns) + "]\n"
        } else if self.form.is_batch {
            raw_line(&figures)
        } else if self.form.is_quiet && has_periods {
            String::new()
        } else {
            self.summary(&figures)
        };
        let stderr = match &self.failed {
            Some(error) => format!("ioping: request failed: {error}\n"),
            None => String::new(),
        };
        ToolText { stdout, stderr }
    }
}

/// The line of -B, -p and -P.
fn raw_line(figures: &RequestFigures) -> String {
    let (valid, load) = (&figures.valid, &figures.load);
    format!(
        "{} {:.0} {:.0} {:.0} {} {:.0} {} {:.0} {} {:.0}\n",
        valid.count,
        valid.ns,
        valid.iops,
        valid.speed,
        figures.min_ns,
        figures.avg_ns,
        figures.max_ns,
        figures.mdev_ns,
        load.count,
        load.ns
    )
}

/// A local time by a format of strftime(3); a format that is not understood shows RFC 3339.
fn time_as(format: &str, unix_ns: u64) -> String {
    let time = local_time(unix_ns);
    match jiff::fmt::strtime::format(format, &time) {
        Ok(text) => text,
        Err(_) => time.timestamp().to_string(),
    }
}

/// A string inside JSON.
fn escaped(text: &str) -> String {
    let mut json = String::new();
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json
}

/// ioping calls no request fast or slow before so many valid ones are known (ioping.c 1.3).
const REMARKS_AFTER: u64 = 5;

/// A sum over requests.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct RequestSum {
    /// The time at which it began, in nanoseconds after the start of the run.
    start_ns: u64,
    /// The number of all requests.
    count: u64,
    valid: u64,
    too_fast: u64,
    too_slow: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: f64,
    /// The sum of the squares of the latencies, for the deviation.
    sum_squares: f64,
}

/// The figures of a sum when it ends.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RequestFigures {
    min_ns: u64,
    avg_ns: f64,
    max_ns: u64,
    mdev_ns: f64,
    /// Rate of the valid requests, in the sum of their times.
    valid: RequestRate,
    /// Rate of all requests, since the start.
    load: RequestRate,
}

/// A number of requests in a time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RequestRate {
    count: u64,
    ns: f64,
    /// Bytes of these requests.
    size: f64,
    iops: f64,
    /// Bytes per second of these requests.
    speed: f64,
}

impl RequestRate {
    fn new(count: u64, ns: f64, block_bytes: u64) -> Self {
        let iops = if ns > 0.0 {
            1e9 * count as f64 / ns
        } else {
            0.0
        };
        let (size, speed) = (count as f64 * block_bytes as f64, iops * block_bytes as f64);
        Self {
            count,
            ns,
            size,
            iops,
            speed,
        }
    }

    fn json(&self) -> String {
        let (count, ns, size, iops) = (self.count, self.ns, self.size, self.iops);
        format!(
            "\"count\": {count},\n    \"size\": {size:.0},\n    \"time\": {ns:.0},\n    \
             \"iops\": {iops:.6},\n    \"bps\": {:.0}",
            self.speed
        )
    }

    fn text(&self, before: &str, what: &str, direction: &str) -> String {
        let [count, iops] = [self.count as f64, self.iops].map(count_text);
        let [size, speed] = [self.size, self.speed].map(size_text);
        let time = time_text(self.ns);
        format!("{before}{count} {what} in {time}, {size}{direction}, {iops} iops, {speed}/s\n")
    }
}

/// The judgement of a request by its latency.
struct Judgement {
    /// The word that is printed in parentheses.
    remark: Option<&'static str>,
    /// True if it counts in the figures.
    is_valid: bool,
}

impl Judgement {
    fn invalid(remark: &'static str) -> Self {
        Self {
            remark: Some(remark),
            is_valid: false,
        }
    }
}

impl RequestSum {
    /// A sum from this time on, in which nothing has been counted.
    fn starting_at(start_ns: u64) -> Self {
        Self {
            start_ns,
            ..Self::default()
        }
    }

    /// Counts a request, and returns its judgement.
    fn add(&mut self, request: &SingleRequest, form: &OutputForm) -> Judgement {
        self.count += 1;
        let ns = request.latency_ns;
        if let Some(why) = request.ignored {
            let remark = match why {
                IgnoredBecause::Warmup => "warmup",
                IgnoredBecause::Interrupted => "interrupted",
                IgnoredBecause::Late => "late",
            };
            return Judgement::invalid(remark);
        }
        if ns < form.valid_min_ns {
            self.too_fast += 1;
            return Judgement::invalid("too fast");
        }
        if ns > form.valid_max_ns {
            self.too_slow += 1;
            return Judgement::invalid("too slow");
        }
        self.merge(&Self {
            valid: 1,
            min_ns: ns,
            max_ns: ns,
            sum_ns: ns as f64,
            sum_squares: (ns as f64).powi(2),
            ..Self::default()
        });
        let mean_ns = (self.sum_ns / self.valid as f64) as u64;
        // Less than half of the mean is fast, more than twice the mean is slow, as in ioping.
        let remark = if self.valid <= REMARKS_AFTER {
            None
        } else if ns * 2 < mean_ns {
            Some("fast")
        } else if ns > mean_ns * 2 {
            Some("slow")
        } else {
            None
        };
        Judgement {
            remark,
            is_valid: true,
        }
    }

    /// Adds what another sum counted.
    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.too_fast += other.too_fast;
        self.too_slow += other.too_slow;
        if other.valid > 0 {
            self.min_ns = match self.valid {
                0 => other.min_ns,
                _ => self.min_ns.min(other.min_ns),
            };
            self.max_ns = self.max_ns.max(other.max_ns);
            self.valid += other.valid;
            self.sum_ns += other.sum_ns;
            self.sum_squares += other.sum_squares;
        }
    }

    /// The figures at this time, for requests of this size.
    fn figures(&self, end_ns: u64, block_bytes: u64) -> RequestFigures {
        let load_ns = end_ns.saturating_sub(self.start_ns);
        let valid = self.valid.max(1) as f64;
        let avg_ns = self.sum_ns / valid;
        RequestFigures {
            min_ns: self.min_ns,
            avg_ns,
            max_ns: self.max_ns,
            // Rounding may make the difference negative.
            mdev_ns: (self.sum_squares / valid - avg_ns * avg_ns).max(0.0).sqrt(),
            valid: RequestRate::new(self.valid, self.sum_ns, block_bytes),
            load: RequestRate::new(self.count, load_ns as f64, block_bytes),
        }
    }
}
