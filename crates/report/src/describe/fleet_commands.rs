//! Commands that follow from the page of a fleet. They are printed for the administrator, and not
//! run.

use diskproof_model::block::Block;
use diskproof_model::fleet::{FleetBasis, FleetRecord, FleetRow, RowState};
use diskproof_model::shell::quoted;

/// As many rows that are alike are measured again together with the suspects. With fewer, a suspect
/// has nothing to be compared with; each one costs another host the time of the measurement.
const CONTROLS_MAX: usize = 10;

/// The command that measures the suspects of the first group again, together with hosts that are
/// alike. `None` without suspects, and where no row of the group says how it was measured.
pub(super) fn second_look_command(fleet: &FleetRecord) -> Option<Block> {
    let suspects: Vec<&FleetRow> = fleet
        .rows
        .iter()
        .filter(|row| row.state == RowState::Suspect)
        .collect();
    let group = suspects.first()?.group?;
    let mut others: Vec<&FleetRow> = fleet
        .rows
        .iter()
        .filter(|row| row.state == RowState::Alike && row.group == Some(group))
        .collect();
    // The ids of runs are random, so this order is, too.
    others.sort_by_key(|row| row.runs.first().map(|run| run.run_id.as_str()));
    let mut hosts: Vec<&str> = Vec::new();
    for row in suspects.iter().chain(others.iter().take(CONTROLS_MAX)) {
        if !hosts.contains(&row.host.as_str()) {
            hosts.push(&row.host);
        }
    }
    let command = measuring_command(fleet, group)?;
    Some(Block::Command {
        what: "measure the suspects again, with others for comparison (FLEET.json: saved with \
               -o)"
        .to_owned(),
        text: format!(
            "for i in 1 2 3; do pdsh -f {} -w {} {}; done | diskproof merge --reference \
             FLEET.json -",
            hosts.len(),
            quoted(&hosts.join(",")),
            quoted(&command)
        ),
    })
}

/// The command that measured a row of this group, changed so that it prints its record in pieces
/// instead of writing files.
fn measuring_command(fleet: &FleetRecord, group: usize) -> Option<String> {
    let metrics = fleet.groups.get(group)?.metrics.iter();
    let example = metrics.flat_map(|metric| metric.example).next()?;
    let argv = fleet.examples.get(example)?.plan.origin.argv();
    let mut words = vec!["diskproof".to_owned()];
    let mut skips_next = false;
    for word in argv.iter().skip(1) {
        if std::mem::take(&mut skips_next) {
            continue;
        }
        match word.as_str() {
            "-o" | "--output" | "--html" => skips_next = true,
            "--json" | "--pieces" => {}
            word => words.push(quoted(word)),
        }
    }
    words.push("--pieces".to_owned());
    Some(words.join(" "))
}

/// A command for each slow or failing row that takes its node out of Slurm. Empty where the rows
/// were only compared with each other: then nothing says that they are too slow.
pub(super) fn drain_commands(fleet: &FleetRecord) -> Vec<Block> {
    if fleet.basis == FleetBasis::EachOther {
        return Vec::new();
    }
    let mut blocks = Vec::new();
    for row in &fleet.rows {
        if !matches!(row.state, RowState::Slower | RowState::Errors) {
            continue;
        }
        let why = match (row.reasons.first(), &row.not_judged) {
            (_, Some(reason)) => reason.why.clone(),
            (Some(reason), None) => reason.text.clone(),
            (None, None) => row.state.as_str().to_owned(),
        };
        let reason = format!("Reason=diskproof: disk {}: {why}", row.state.as_str());
        blocks.push(Block::Command {
            what: format!("take {} out of Slurm", row.host),
            text: format!(
                "scontrol update {} State=DRAIN {}",
                quoted(&format!("NodeName={}", row.host)),
                quoted(&reason)
            ),
        });
    }
    blocks
}
