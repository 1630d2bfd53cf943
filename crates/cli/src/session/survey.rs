//! Measures the survey of a plan on its first target.

use super::bench::Bench;
use super::running::{Running, Stepped};
use super::sink::{EarlyEnd, INTERRUPTED, Sink};
use crate::resume::ended_early;
use diskproof_analysis::surface::points_to_confirm;
use diskproof_model::surface::Survey;

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
        let surface = bench.session.survey(
            self.survey,
            points_to_confirm,
            0,
            target,
            &mut sink.progress,
        );
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
