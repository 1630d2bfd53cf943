//! Measures the rate of reading the same bytes repeatedly: what the disk's cache and its link
//! deliver without the medium.

use super::queue::{RequestQueue, block_at};
use crate::io::Backend;
use crate::io::clock::Clock;
use diskproof_model::record::Estimate;
use diskproof_model::surface::{Burst, BurstPlan};
use std::io;

/// The time is divided into this many parts, from which the interval is computed. Chosen: with
/// more, Student's t hardly shrinks.
const PARTS: u64 = 20;

impl<B: Backend, C: Clock> RequestQueue<'_, B, C> {
    /// Measures the burst rate and puts it into the log; nothing where the range cannot be read.
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
        let start_ns = self.sampler.now();
        let part_ns = (plan.time_ns / PARTS).max(1);
        let mut rounds = 0_u64;
        let mut rates = Vec::new();
        let mut rounds_of_part = 0_u64;
        let mut part_start_ns = start_ns;
        let end_ns = start_ns + plan.time_ns;
        let mut last_ns = start_ns;
        let mut errors = 0;
        let newest_ns = std::cell::Cell::new(start_ns);
        self.run(
            || (newest_ns.get() < end_ns && !log.is_stopped()).then_some(request),
            |completion| {
                newest_ns.set(completion.at_ns);
                last_ns = completion.at_ns;
                if completion.errno != 0 {
                    errors += 1;
                    newest_ns.set(end_ns);
                    return;
                }
                if completion.interrupted {
                    return;
                }
                rounds += 1;
                rounds_of_part += 1;
                if completion.at_ns >= part_start_ns + part_ns {
                    let elapsed_ns = completion.at_ns - part_start_ns;
                    rates.push(rounds_of_part as f64 * bytes as f64 * 1e9 / elapsed_ns as f64);
                    rounds_of_part = 0;
                    part_start_ns = completion.at_ns;
                }
                log.report_share(
                    completion.at_ns.saturating_sub(start_ns) as f64 / plan.time_ns.max(1) as f64,
                );
            },
        )?;
        if errors == 0 && rounds > 0 && !log.is_stopped() {
            let value = rounds as f64 * bytes as f64 * 1e9 / (last_ns - start_ns).max(1) as f64;
            let throughput = Estimate {
                n: rates.len() as u64,
                value,
                half_width_95: half_width(&rates),
                unit: "B/s".to_owned(),
            };
            let first_bytes_per_second = bytes as f64 * 1e9 / first.latency_ns.max(1) as f64;
            log.results().burst = Some(Burst {
                bytes,
                rounds,
                first_bytes_per_second,
                throughput,
            });
        }
        Ok(())
    }
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
}
