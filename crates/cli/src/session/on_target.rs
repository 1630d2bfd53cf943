//! Watches a measurement on one of the targets of a run. The engine then knows only that target,
//! and reports its silence as that of the first one.

use diskproof_model::measurement::Measurement;
use diskproof_model::progress::{Control, Found, Progress, Silence, Watch};

/// A watcher of the whole run, on one of its targets.
pub(super) struct OnTarget<'a> {
    /// Index into the plan's targets.
    target: usize,
    watch: &'a mut dyn Watch,
}

impl<'a> OnTarget<'a> {
    /// Passes everything on to `watch`, and names this target.
    pub(super) fn new(target: usize, watch: &'a mut dyn Watch) -> Self {
        Self { target, watch }
    }
}

impl Watch for OnTarget<'_> {
    fn tick(&mut self, progress: &Progress<'_>) -> Control {
        let silence = progress.silence.map(|silence| Silence {
            target: self.target,
            ..silence
        });
        self.watch.tick(&Progress {
            silence,
            ..progress.clone()
        })
    }

    fn found(&mut self, place: &Found) {
        self.watch.found(place);
    }

    fn wants_results(&self, elapsed_ns: u64) -> bool {
        self.watch.wants_results(elapsed_ns)
    }

    fn results_so_far(&mut self, elapsed_ns: u64, measurements: &[Measurement]) {
        self.watch.results_so_far(elapsed_ns, measurements);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::progress::Phase;
    use diskproof_model::series::TimeSeries;

    struct Seen(Option<Silence>);

    impl Watch for Seen {
        fn tick(&mut self, progress: &Progress<'_>) -> Control {
            self.0 = progress.silence;
            Control::Interrupt
        }
    }

    #[test]
    fn silence_is_that_of_the_target_which_is_measured() {
        let series = TimeSeries::new(1);
        let mut progress = Progress::new("d1", Phase::Measure, 0, &series);
        let mut seen = Seen(None);
        for (length_ns, target) in [(None, None), (Some(7), Some(2))] {
            progress.silence = length_ns.map(|length_ns| Silence {
                target: 0,
                length_ns,
            });
            let control = OnTarget::new(2, &mut seen).tick(&progress);
            assert_eq!(control, Control::Interrupt);
            assert_eq!(seen.0.map(|silence| silence.target), target);
        }
    }
}
