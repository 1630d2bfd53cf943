//! For the vendor: the disk, its firmware and health, the machine, and the data.

use super::blocks::blocks;
use super::elements::{section, shown, wide_table};
use crate::describe::target::{host, layers_text, sections, tested_text};
use diskproof_model::block::Block;
use diskproof_model::health::DiskHealth;
use diskproof_model::record::Record;
use diskproof_model::target::TargetIdentity;
use maud::{Markup, html};

/// The section `disk`.
pub(super) fn machine(record: &Record) -> Markup {
    let content = html! {
        @for target in &record.targets { (cards(&about(record, target))) }
        (cards(&[host(&record.host)]))
    };
    section("disk", "Disk and machine", &content)
}

fn cards(sections: &[Vec<Block>]) -> Markup {
    html! {
        div.cards { @for section in sections { div.card { (blocks(section, None)) } } }
    }
}

fn about(record: &Record, target: &TargetIdentity) -> Vec<Vec<Block>> {
    let is_own = |health: &&DiskHealth| target.disks().any(|disk| disk.name == health.disk);
    let health: Vec<&DiskHealth> = record.health.iter().filter(is_own).collect();
    let mut sections = sections(target, &health);
    sections[0].push(Block::fact("tested", tested_text(target, &record.plan)));
    sections[0].extend(layers_text(target).map(|text| Block::fact("layers", text)));
    sections
}

/// The section `data`.
pub(super) fn data(record: &Record, keeps_data: bool) -> Markup {
    let content = html! {
        p {
            "This file contains the whole record: every setting, series and histogram. "
            code { "diskproof show THIS-FILE.html" }
            " prints it; other commands accept it as a saved run."
            @if !keeps_data {
                " It does not keep what was measured, so it cannot be judged again: for that, save \
                 the run as JSON (" code { "-o FILE.json" } ")."
            }
        }
        p.buttons {
            button #save-record.scripted type="button" { "Save the record as JSON" }
            " " button #save-charts.scripted type="button" { "Save all charts as CSV" }
        }
        noscript {
            p {
                "Scripts are disabled: charts are pictures, and the source of this file contains \
                 the record."
            }
        }
        (wide_table("Contents of the record", &contents(record)))
    };
    section("data", "Data", &content)
}

fn contents(record: &Record) -> Markup {
    let rows = [
        ("measurements", record.measurements.len()),
        ("points of the transfer curve", record.curve.len()),
        ("accesses", record.access.len()),
        ("findings", record.findings.len()),
        ("settings", record.advice.len()),
        ("expectations", record.expectations.len()),
    ];
    html! {
        table.plain {
            thead {
                tr {
                    th scope="col" { "In the record (" (shown(&record.schema)) ")" }
                    th.number scope="col" { "Number" }
                }
            }
            tbody { @for (name, n) in rows { tr { th scope="row" { (name) } td.number { (n) } } } }
        }
    }
}
