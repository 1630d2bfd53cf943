//! The top of the page: what was measured, what the disk is good for, how far to trust it, what was demanded.

use super::elements::{finding_anchor, section, shown};
use crate::terminal::record::{asked_text, observed_text, start_text};
use crate::terminal::subject::{disk_text, model};
use crate::verdict::{Grade, Trust, Use, Verdict};
use diskproof_model::record::Record;
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::format_duration;
use maud::{Markup, html};

/// The section `verdict`.
pub(super) fn overview(record: &Record, verdict: &Verdict) -> Markup {
    html! {
        section.overview #verdict aria-labelledby="title" {
            p.kicker { (shown(&asked_text(&record.plan))) " · " (shown(&start_text(&record.started))) " · " (format_duration(record.elapsed_ns())) }
            h1 #title { (subject(record)) }
            @for target in record.targets.iter() { (disk_lines(target)) }
            @if let Some(note) = &record.note { p.note { strong { "Note: " } (shown(note)) } }
            @if record.partial || record.ended_early.is_some() { (partial(record)) }
            p.headline { (shown(&verdict.headline)) }
            (trust(verdict))
            @if !verdict.uses.is_empty() { ul.uses { @for use_ in &verdict.uses { (use_card(record, use_)) } } }
        }
        @if !record.expectations.is_empty() { (expectations(record)) }
    }
}

/// The disk's own name where there is one, else the path.
fn subject(record: &Record) -> String {
    let names: Vec<String> = record.targets.iter().map(target_name).collect();
    match names.as_slice() {
        [] => "Nothing".to_owned(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

fn target_name(target: &TargetIdentity) -> String {
    let model = target.disks().find_map(model);
    model.map_or_else(|| shown(&target.path), |model| shown(model.trim()))
}

fn disk_lines(target: &TargetIdentity) -> Markup {
    html! {
        p.disk {
            span.path { (shown(&target.path)) }
            @for disk in target.disks() { " on " (shown(&disk_text(disk))) }
            @if let Some(why) = &target.unresolved { " (disk unknown: " (shown(why)) ")" }
        }
    }
}

fn partial(record: &Record) -> Markup {
    let why = record.ended_early.as_deref().unwrap_or("the run ended before its plan did; what was measured until then follows");
    html! { p.alert.failure { strong { "Partial run: " } (shown(why)) } }
}

fn trust(verdict: &Verdict) -> Markup {
    let (class, sign) = match verdict.trust {
        Trust::Sound => ("alert good", "✓"),
        Trust::Doubtful => ("alert warning", "!"),
        Trust::Broken => ("alert failure", "✕"),
    };
    html! { p class=(class) { span.sign aria-hidden="true" { (sign) } " " (verdict.trust_why) @if verdict.trust != Trust::Sound { " " a href="#findings" { "See what, and what to do" } } } }
}

fn use_card(record: &Record, item: &Use) -> Markup {
    let (class, sign) = match item.grade {
        Grade::Good => ("use good", "●●●"),
        Grade::Limited => ("use limited", "●●○"),
        Grade::Poor => ("use poor", "●○○"),
    };
    let name = record.measurements.get(item.measurement).map_or("", |m| m.workload.name.as_str());
    html! {
        li class=(class) {
            h3 { (capitalized(item.name)) }
            p.grade { span.dots aria-hidden="true" { (sign) } " " (item.grade.as_str()) }
            p { (item.why) }
            p.source {
                "from " a href={"#figure-" (item.measurement)} { (shown(name)) }
                @if !item.doubts.is_empty() { "; in doubt: " @for (index, code) in item.doubts.iter().enumerate() {
                    @if index > 0 { ", " }
                    a href={"#" (finding_anchor(code))} { (shown(code)) }
                } }
            }
        }
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}

fn expectations(record: &Record) -> Markup {
    let table = html! {
        table.plain {
            thead { tr { th scope="col" { "Outcome" } th scope="col" { "Demanded" } th scope="col" { "Measured" } } }
            tbody { @for expectation in &record.expectations { tr {
                td { @if expectation.met { span.tag.good { "✓ met" } } @else { span.tag.failure { "✕ missed" } } }
                td { code { (shown(&expectation.expression)) } }
                td { @match expectation.observed { Some(value) => (observed_text(&expectation.expression, value)), None => "not measured" } }
            } } }
        }
    };
    section("expectations", "Expectations", &super::elements::wide_table("Expectations", &table))
}
