//! Divides the measured time of a worker into windows, and adds up those of several workers. All
//! end them at the same times, which follow from the start of the measured time alone.

use crate::io::clock::ProcessorWait;
use diskproof_model::measurement::PerOp;
use diskproof_model::window::{WINDOW_NS, WINDOWS_MAX, Window, WindowLatency, merge_pairs};

/// The sums of a worker up to the end of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WindowTotals {
    /// Requests in flight, integrated from the end of the warm-up on.
    pub busy_ns: u128,
    /// Waiting for processors from the end of the warm-up on.
    pub wait: ProcessorWait,
}

/// The windows that a worker has ended.
#[derive(Debug)]
pub(crate) struct WindowLog {
    interval_ns: u64,
    windows: Vec<Window>,
    /// The sums at the end of the last window.
    before: WindowTotals,
}

impl WindowLog {
    /// No window yet.
    pub(crate) fn new() -> Self {
        Self {
            interval_ns: WINDOW_NS,
            windows: Vec::new(),
            before: WindowTotals::default(),
        }
    }

    /// End of the current window, in nanoseconds after the start of the measured time.
    pub(crate) fn end_ns(&self) -> u64 {
        self.start_ns() + self.interval_ns
    }

    fn start_ns(&self) -> u64 {
        match self.windows.last() {
            Some(window) => window.end_ns,
            None => 0,
        }
    }

    /// Ends the current window at its end.
    pub(crate) fn end_window(&mut self, ops: PerOp<WindowLatency>, totals: WindowTotals) {
        self.push(self.end_ns(), ops, totals);
        if self.windows.len() == WINDOWS_MAX {
            self.windows = merge_pairs(&self.windows);
            self.interval_ns *= 2;
        }
    }

    /// Ends the last window at `end_ns`. What is left over at its start belongs to the one before.
    pub(crate) fn finish(
        mut self,
        end_ns: u64,
        ops: PerOp<WindowLatency>,
        totals: WindowTotals,
    ) -> Vec<Window> {
        self.push(end_ns.max(self.start_ns()), ops, totals);
        self.windows
    }

    fn push(&mut self, end_ns: u64, ops: PerOp<WindowLatency>, totals: WindowTotals) {
        let start_ns = self.start_ns();
        let busy_ns = totals.busy_ns.saturating_sub(self.before.busy_ns);
        let wait = totals.wait.since(self.before.wait);
        self.windows.push(Window {
            start_ns,
            end_ns,
            ops,
            busy_ns: u64::try_from(busy_ns).unwrap_or(u64::MAX),
            waited_ns: wait.ns,
            turns: wait.turns,
            threads: 1,
            ..Window::default()
        });
        self.before = totals;
    }
}

/// The sum of the windows of workers that measured together until `flow_ns` after the start of the
/// measured time; empty where one of them has none. What was counted later belongs to the last one.
pub(crate) fn add_up(mut workers: Vec<Vec<Window>>, flow_ns: u64) -> Vec<Window> {
    let mut interval_ns = 0;
    for windows in &workers {
        let Some(first) = windows.first() else {
            return Vec::new();
        };
        interval_ns = interval_ns.max(first.length_ns());
    }
    if interval_ns == 0 {
        return Vec::new();
    }
    let mut sum: Vec<Window> = Vec::new();
    for windows in &mut workers {
        while windows.len() > 1 && windows[0].length_ns() < interval_ns {
            *windows = merge_pairs(windows);
        }
        close_at(windows, flow_ns);
        if windows.len() > sum.len() {
            std::mem::swap(&mut sum, windows);
        }
        for (total, window) in sum.iter_mut().zip(windows.iter()) {
            // A worker that ended earlier had nothing in flight for the rest of the window.
            total.end_ns = total.end_ns.max(window.end_ns);
            total.add_worker(window);
        }
    }
    if let Some(last) = sum.last_mut() {
        last.end_at(flow_ns);
    }
    sum
}

/// Ends the windows at `flow_ns`. The latencies of what starts there or later go to the last window
/// before, and so does a rest that is too short to be one.
fn close_at(windows: &mut Vec<Window>, flow_ns: u64) {
    while let [.., last, late] = windows.as_mut_slice()
        && (late.start_ns >= flow_ns || late.length_ns() == 0)
    {
        for (kind, latency) in &late.ops {
            last.ops.entry(*kind).or_default().merge(latency);
        }
        windows.pop();
    }
    if let Some(last) = windows.last_mut()
        && last.end_ns > flow_ns
    {
        last.end_at(flow_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::measurement::OpKind;

    /// A worker with one request in flight and one latency in each window.
    fn worker(until_ns: u64) -> Vec<Window> {
        let mut log = WindowLog::new();
        let totals = |at_ns: u64| WindowTotals {
            busy_ns: u128::from(at_ns),
            wait: ProcessorWait::default(),
        };
        let read = || {
            let mut read = WindowLatency::default();
            read.latency.record_many(500, 1);
            PerOp::from([(OpKind::Read, read)])
        };
        while log.end_ns() <= until_ns {
            let end_ns = log.end_ns();
            log.end_window(read(), totals(end_ns));
        }
        log.finish(until_ns, read(), totals(until_ns))
    }

    fn latencies(windows: &[Window]) -> u64 {
        let of_reads = |window: &Window| window.ops.get(&OpKind::Read).map(|op| op.latency.count());
        windows.iter().filter_map(of_reads).sum()
    }

    #[test]
    fn windows_of_a_long_run_are_few_and_cover_it() {
        for until_ns in [
            WINDOW_NS / 2,
            5_000_000_000,
            600_000_000_000,
            601_234_000_000,
        ] {
            let windows = worker(until_ns);
            assert!(windows.len() <= WINDOWS_MAX, "{}", windows.len());
            assert_eq!(windows.last().map(|last| last.end_ns), Some(until_ns));
            let mut pairs = windows.windows(2);
            assert!(pairs.all(|pair| pair[0].end_ns == pair[1].start_ns));
            let is_full = |one: &Window| (one.depth() - 1.0).abs() < 1e-9 || one.length_ns() == 0;
            assert!(windows.iter().all(is_full));
        }
    }

    #[test]
    fn windows_of_workers_add_up_to_the_common_time() {
        let (early, late) = (worker(6_350_000_000), worker(6_450_000_000));
        let counted = latencies(&early) + latencies(&late);
        let sum = add_up(vec![early, late], 6_350_000_000);
        assert_eq!(sum.last().map(|last| last.end_ns), Some(6_350_000_000));
        assert_eq!(latencies(&sum), counted);
        let is_full = |window: &Window| (window.depth() - 2.0).abs() < 1e-9;
        assert!(sum.iter().all(is_full), "{sum:?}");
        assert!(sum.iter().all(|window| window.threads == 2));
    }

    #[test]
    fn depth_counts_workers_that_ended_as_idle() {
        let workers = vec![worker(250_000_000), worker(1_000_000_000)];
        let sum = add_up(workers, 1_000_000_000);
        let depths: Vec<f64> = sum.iter().map(Window::depth).collect();
        assert_eq!(depths[..4], [2.0, 2.0, 1.5, 1.0]);
    }

    #[test]
    fn worker_that_timed_out_leaves_no_windows() {
        assert_eq!(add_up(vec![worker(WINDOW_NS), Vec::new()], WINDOW_NS), []);
        assert_eq!(add_up(Vec::new(), WINDOW_NS), []);
    }
}
