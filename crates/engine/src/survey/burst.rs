//! Measures the rate of reading the same bytes repeatedly: what the disk's cache and its link
//! deliver without the medium.

use super::queue::{BlockCompletion, RequestQueue, block_at};
use crate::io::Backend;
use crate::io::clock::Clock;
use diskproof_model::record::Estimate;
use diskproof_model::surface::{Burst, BurstPlan};
use std::cell::Cell;
use std::io;

/// The time is divided into this many parts, from which the interval is computed. Chosen: with
/// more, Student's t hardly shrinks.
const PARTS: u64 = 20;

impl<B: Backend, C: Clock> RequestQueue<'_, B, C> {
    /// Measures the burst rate and puts it into the log; nothing where the range cannot be read, or
    /// where one request takes longer than the whole burst may.
    pub(crate) fn measure_burst(&mut self, plan: &BurstPlan) -> io::Result<()> {
        let (target, log) = (self.target, self.log);
        log.begin_step("burst");
        let bytes = target.rounded_request_bytes(plan.bytes);
        let middle = target.extent.start + target.extent.length / 2;
        let request = block_at(target.aligned(middle), bytes);
        let first = self.move_one(request)?;
        // All further requests are in flight at once.
        if first.errno != 0 || first.latency_ns > plan.time_ns {
            return Ok(());
        }
        let mut rounds = Rounds::new(bytes, self.sampler.now(), plan.time_ns);
        let is_over = Cell::new(false);
        self.run(
            || {
                if is_over.get() || log.is_stopped() {
                    None
                } else {
                    Some(request)
                }
            },
            |completion| {
                rounds.add(completion);
                is_over.set(rounds.is_over());
                log.report_share(rounds.share());
            },
        )?;
        if let Some(throughput) = rounds.throughput()
            && !log.is_stopped()
        {
            log.results().burst = Some(Burst {
                bytes,
                rounds: rounds.count,
                first_bytes_per_second: bytes_per_second(bytes, first.latency_ns),
                throughput,
            });
        }
        Ok(())
    }
}

/// The rounds of a burst so far. Each reads the same bytes once.
struct Rounds {
    /// Bytes of a round.
    bytes: u64,
    start_ns: u64,
    /// The planned time, in nanoseconds.
    time_ns: u64,
    /// Rounds that ended without an error.
    count: u64,
    /// The newest completion.
    last_ns: u64,
    has_failed: bool,
    part: Part,
    /// The rates of the parts that have ended, in bytes per second.
    rates: Vec<f64>,
}

/// The part of the time that is measured now.
struct Part {
    /// The end of the part before it.
    start_ns: u64,
    /// Rounds in it.
    count: u64,
}

impl Rounds {
    fn new(bytes: u64, start_ns: u64, time_ns: u64) -> Self {
        Self {
            bytes,
            start_ns,
            time_ns,
            count: 0,
            last_ns: start_ns,
            has_failed: false,
            part: Part { start_ns, count: 0 },
            rates: Vec::new(),
        }
    }

    /// Adds a completed request. One that was interrupted is no round, though its time passed.
    fn add(&mut self, completion: &BlockCompletion) {
        self.last_ns = completion.at_ns;
        if completion.errno != 0 {
            self.has_failed = true;
        } else if !completion.interrupted {
            self.add_round(completion.at_ns);
        }
    }

    /// Adds a round that ended now. A part ends with the round that completes its time.
    fn add_round(&mut self, now_ns: u64) {
        self.count += 1;
        self.part.count += 1;
        let part_ns = (self.time_ns / PARTS).max(1);
        if now_ns >= self.part.start_ns + part_ns {
            let bytes = self.part.count * self.bytes;
            let elapsed_ns = now_ns - self.part.start_ns;
            self.rates.push(bytes_per_second(bytes, elapsed_ns));
            self.part = Part {
                start_ns: now_ns,
                count: 0,
            };
        }
    }

    /// Returns `true` if the time is over, or a request failed: no further one starts.
    fn is_over(&self) -> bool {
        self.has_failed || self.last_ns >= self.start_ns + self.time_ns
    }

    /// The share of the planned time that has passed.
    fn share(&self) -> f64 {
        self.last_ns.saturating_sub(self.start_ns) as f64 / self.time_ns.max(1) as f64
    }

    /// The rate over all rounds, with the interval that the parts show; `None` without a round, and
    /// where one failed.
    fn throughput(&self) -> Option<Estimate> {
        if self.has_failed || self.count == 0 {
            return None;
        }
        Some(Estimate {
            n: self.rates.len() as u64,
            value: bytes_per_second(self.count * self.bytes, self.last_ns - self.start_ns),
            half_width_95: half_width(&self.rates),
            unit: "B/s".to_owned(),
        })
    }
}

fn bytes_per_second(bytes: u64, elapsed_ns: u64) -> f64 {
    bytes as f64 * 1e9 / elapsed_ns.max(1) as f64
}

/// Half of the 95 % interval of a mean; `None` for fewer than four values, for which the series of
/// t is inaccurate.
fn half_width(values: &[f64]) -> Option<f64> {
    if values.len() < 4 {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let freedom = n - 1.0;
    let variance = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / freedom;
    // Student's t by Abramowitz & Stegun 26.7.5, within 0.2 percent from three degrees of freedom
    // on.
    let t = 1.96
        + 2.372 / freedom
        + 2.823 / freedom.powi(2)
        + 2.556 / freedom.powi(3)
        + 1.588 / freedom.powi(4);
    Some(t * (variance / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_interval_uses_students_t() {
        // t for 3 degrees of freedom is 3.182, for 4 it is 2.776, for 19 it is 2.093.
        let twenty: Vec<f64> = (0..20).map(f64::from).collect();
        for (values, expected, share) in [
            (
                &[1.0, 2.0, 3.0, 4.0][..],
                3.182 * (5.0f64 / 12.0).sqrt(),
                0.002,
            ),
            (
                &[1.0, 2.0, 3.0, 4.0, 5.0][..],
                2.776 * (2.5f64 / 5.0).sqrt(),
                0.002,
            ),
            (&twenty, 2.093 * (35.0f64 / 20.0).sqrt(), 0.002),
        ] {
            let half = half_width(values).unwrap();
            assert!((half / expected - 1.0).abs() < share, "{half}");
        }
        assert_eq!(half_width(&[1.0, 2.0, 3.0]), None);
    }

    const MILLISECOND_NS: u64 = 1_000_000;

    /// A read of 4 KiB that ended so many milliseconds after the start of a burst at 5 ms.
    fn completion(after_ms: u64) -> BlockCompletion {
        BlockCompletion {
            request: block_at(0, 4096),
            errno: 0,
            at_ns: (5 + after_ms) * MILLISECOND_NS,
            latency_ns: MILLISECOND_NS,
            share_ns: MILLISECOND_NS,
            gap_ns: 0,
            interrupted: false,
        }
    }

    /// A burst of 200 ms has parts of 10 ms. A part goes on until the round that completes it.
    #[test]
    fn parts_of_a_burst_are_twentieths_of_its_time() {
        let mut rounds = Rounds::new(4096, 5 * MILLISECOND_NS, 200 * MILLISECOND_NS);
        for after_ms in [4, 8, 12, 21] {
            rounds.add(&completion(after_ms));
        }
        // Three rounds in 12 ms; the next part begins there.
        let first = 3.0 * 4096.0 * 1e9 / 12e6;
        assert_eq!(rounds.rates, [first]);
        rounds.add(&completion(22));
        assert_eq!(rounds.rates, [first, 2.0 * 4096.0 * 1e9 / 10e6]);
        let throughput = rounds.throughput().unwrap();
        assert_eq!(throughput.n, 2);
        assert_eq!(throughput.value, 5.0 * 4096.0 * 1e9 / 22e6);
        assert_eq!(throughput.half_width_95, None);
    }

    #[test]
    fn burst_ends_with_its_time() {
        let mut rounds = Rounds::new(4096, 5 * MILLISECOND_NS, 200 * MILLISECOND_NS);
        rounds.add(&completion(199));
        assert!(!rounds.is_over());
        rounds.add(&completion(200));
        assert!(rounds.is_over());
        assert_eq!(rounds.share(), 1.0);
    }

    #[test]
    fn failed_request_ends_a_burst_without_a_rate() {
        let mut rounds = Rounds::new(4096, 5 * MILLISECOND_NS, 200 * MILLISECOND_NS);
        rounds.add(&completion(1));
        assert!(rounds.throughput().is_some());
        let failed = BlockCompletion {
            errno: 5,
            ..completion(2)
        };
        rounds.add(&failed);
        assert!(rounds.is_over());
        // Those that were in flight with it start no other.
        rounds.add(&completion(3));
        assert!(rounds.is_over());
        assert_eq!(rounds.throughput(), None);
    }

    /// Its bytes may have moved at any time.
    #[test]
    fn interrupted_request_is_no_round() {
        let mut rounds = Rounds::new(4096, 5 * MILLISECOND_NS, 200 * MILLISECOND_NS);
        let interrupted = BlockCompletion {
            interrupted: true,
            ..completion(1)
        };
        rounds.add(&interrupted);
        assert_eq!((rounds.count, rounds.last_ns), (0, 6 * MILLISECOND_NS));
        assert_eq!(rounds.throughput(), None);
    }
}
