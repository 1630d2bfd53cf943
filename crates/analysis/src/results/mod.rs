//! The results of tasks: how a result follows from the measurements, and its words in the headline.
//! Kinds with much to derive do that in a module of their own name beside this one (`accept`,
//! `load`, `rays` and others), the rest has a file here. `crates/model/src/results` has the
//! questions that the rest of the program asks of every result.
//!
//! The three functions here are called in this order, because the later results depend on rows and
//! findings: [`add_measured`], [`add_summaries`], [`add_answers`].

mod depth;
mod files;
mod inserts;
mod layers;
mod observed;
mod survey;
mod sustain;
mod sweep;

use crate::accept::{accept_record, words};
use crate::inserts::postgres_record;
use crate::layers::layers_record;
use crate::load::{load_clause, load_record};
use crate::rays::{rays_clause, rays_record};
use crate::sustain::sustain_record;
use crate::sweep::sweep_record;
use diskproof_model::data::RunData;
use diskproof_model::record::{Record, TaskResult};

/// Adds the results that follow from the measurements alone. Their intervals are those of this run.
/// They are therefore added before the intervals of the rows are widened to the variation from run
/// to run.
pub(crate) fn add_measured(record: &mut Record, data: &RunData) {
    if let Some(measured) = &data.surface {
        let survey = survey::survey_result(record, measured);
        record.results.push(TaskResult::Survey(Box::new(survey)));
    }
    if let Some(files) = files::files_result(record, data) {
        record.results.push(TaskResult::Files(files));
    }
    if let Some(measured) = &data.accept {
        let target = record.targets.get(measured.target);
        let accept = accept_record(measured, target, &record.health);
        record.results.push(TaskResult::Accept(Box::new(accept)));
    }
    if let Some(observed) = &data.observed {
        let observed = Box::new(observed.clone());
        record.results.push(TaskResult::Observed(observed));
    }
    if let Some(inserts) = postgres_record(data.postgres.as_ref(), &record.measurements) {
        record.results.push(TaskResult::Inserts(inserts));
    }
    if let Some(together) = &data.together {
        record.results.push(TaskResult::Together(together.clone()));
    }
    if let Some(depth) = depth::depth_result(record, data) {
        record.results.push(TaskResult::Depth(depth));
    }
}

/// Adds the results that put the rows of a run together, and that findings are about.
pub(crate) fn add_summaries(record: &mut Record, data: &RunData) {
    if let Some(sweep) = sweep_record(&record.plan, &record.measurements, &record.burst_credits) {
        record.results.push(TaskResult::Sweep(sweep));
    }
    if let Some(layers) = layers_record(record, &data.layer_places) {
        record.results.push(TaskResult::Layers(layers));
    }
}

/// Adds the results that also rest on findings: a cause, or the reason why nothing is promised.
pub(crate) fn add_answers(record: &mut Record, data: &RunData) {
    depth::add_objection(record);
    if let Some(sustain) = sustain_record(record, &data.counted) {
        record.results.push(TaskResult::Sustain(Box::new(sustain)));
    }
    if let Some(load) = load_record(record, &data.trials) {
        record.results.push(TaskResult::Load(Box::new(load)));
    }
    if let Some(rays) = rays_record(record, &data.trials) {
        record.results.push(TaskResult::Rays(Box::new(rays)));
    }
}

/// The words of a result in the headline.
pub(crate) enum ResultWords {
    /// The whole headline.
    Sentence(String),
    /// Parts of it; none where the figures of the workloads are the answer.
    Clauses(Vec<String>),
}

/// The words of a result in the headline of its record.
pub(crate) fn result_words(record: &Record, result: &TaskResult) -> ResultWords {
    let clause = match result {
        TaskResult::Accept(accept) => return ResultWords::Sentence(words::accept_headline(accept)),
        TaskResult::Survey(survey) => {
            return ResultWords::Clauses(survey::survey_clauses(survey));
        }
        TaskResult::Observed(observed) => {
            return ResultWords::Clauses(observed::observed_clauses(observed));
        }
        TaskResult::Sweep(sweep) => return ResultWords::Clauses(sweep::sweep_clauses(sweep)),
        TaskResult::Depth(search) => depth::depth_clause(record, search),
        TaskResult::Sustain(sustain) => Some(sustain::sustain_clause(record, sustain)),
        TaskResult::Load(load) => load_clause(record, load),
        TaskResult::Rays(rays) => rays_clause(record, rays),
        TaskResult::Files(files) => files::files_clause(files),
        TaskResult::Layers(layers) => layers::layers_clause(record, layers),
        TaskResult::Inserts(server) => inserts::insert_clause(record, server),
        // The comparison, or the sum, has the answer.
        TaskResult::Compared(_) | TaskResult::Together(_) => None,
    };
    ResultWords::Clauses(clause.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use crate::fixture;
    use crate::fixture::files::{file_step, files_plan, files_record};
    use diskproof_model::figure::figures;
    use diskproof_model::files::FileOperation;
    use diskproof_model::finding::Severity;
    use diskproof_model::proof::FigureSource;
    use diskproof_model::record::TaskResult;
    use diskproof_model::sweep::SweepRecord;

    #[test]
    fn an_objection_reaches_the_results_that_rest_on_it_and_no_other() {
        let mut record = fixture::record();
        let steps = vec![file_step(FileOperation::Create, &[10])];
        let files = files_record("a", files_plan(), steps).results.remove(0);
        let sweep = SweepRecord {
            matrices: Vec::new(),
            spans: Vec::new(),
        };
        record.results = vec![files, TaskResult::Sweep(sweep)];
        for (path, are_objected) in [
            ("/measurements/0/data/device", [false, true]),
            ("/results/0/steps/0", [true, false]),
            ("/targets/0", [true, true]),
            ("/results/1", [false, true]),
        ] {
            let failure = Severity::Failure;
            record.findings = vec![fixture::finding("served-from-cache", failure, path)];
            let found = [0, 1].map(|index| record.objection(FigureSource::Result(index)).is_some());
            assert_eq!(found, are_objected, "{path}");
        }
    }

    #[test]
    fn each_figure_names_the_measurement_or_the_result_that_it_comes_from() {
        let steps = vec![file_step(FileOperation::Create, &[10])];
        let record = files_record("a", files_plan(), steps);
        let sources: Vec<Option<FigureSource>> = figures(&record)
            .iter()
            .map(FigureSource::of_figure)
            .collect();
        assert!(!sources.is_empty());
        assert!(
            sources
                .iter()
                .all(|source| *source == Some(FigureSource::Result(0)))
        );
        let record = fixture::record();
        for figure in figures(&record) {
            let index = figure.key.measurement.map(FigureSource::Measurement);
            assert_eq!(FigureSource::of_figure(&figure), index);
        }
    }
}
