//! Measures the survey of a plan on its first target.

use super::bench::Bench;
use super::running::{Running, Stepped};
use super::sink::{EarlyEnd, INTERRUPTED, ResultsKeeper, Sink};
use crate::progress_display::ProgressDisplay;
use crate::resume::ended_early;
use diskproof_analysis::surface::points_to_confirm;
use diskproof_model::progress::{Control, Found, Progress, Watch};
use diskproof_model::surface::{SurfaceMeasurement, Survey};

/// A survey while it is measured, in one step.
pub(super) struct SurveyRun<'p> {
    pub survey: &'p Survey,
}

impl Running for SurveyRun<'_> {
    fn step(&mut self, bench: &mut Bench, sink: &mut Sink) -> Result<Stepped, EarlyEnd> {
        sink.begin_step("the survey");
        let Some(target) = bench.targets.first_mut() else {
            return Ok(Stepped::Over);
        };
        let (display, keeper) = sink.display_and_keeper();
        let mut watch = SurveyProgress { display, keeper };
        let surface = bench
            .session
            .survey(self.survey, points_to_confirm, 0, target, &mut watch);
        if self.survey.operation.changes_blocks() {
            bench.mark_written(0);
        }
        let surface = surface?;
        sink.progress.show_survey_figures(&surface);
        let early = ended_early(&surface, bench.targets[0].identity(), INTERRUPTED);
        sink.results().data.surface = Some(surface);
        match early {
            Some(why) => Err(why.into()),
            None => Ok(Stepped::Over),
        }
    }
}

/// Shows a survey, and keeps its results so far in the journal: a scan takes hours, and may be
/// killed.
struct SurveyProgress<'a> {
    display: &'a mut ProgressDisplay,
    keeper: ResultsKeeper<'a>,
}

impl Watch for SurveyProgress<'_> {
    fn tick(&mut self, progress: &Progress<'_>) -> Control {
        self.display.tick(progress)
    }

    fn found(&mut self, place: &Found) {
        self.display.found(place);
    }

    fn wants_results(&self, elapsed_ns: u64) -> bool {
        self.keeper.is_due(elapsed_ns)
    }

    fn survey_so_far(&mut self, surface: &SurfaceMeasurement) {
        self.keeper.keep_survey(surface);
    }
}
