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
    words.extend(words_to_repeat(argv).iter().map(|word| quoted(word)));
    words.push("--pieces".to_owned());
    Some(words.join(" "))
}

/// The words of a command line after the program, without the flags that hold for one run only:
/// where its output goes, and a start that is over.
fn words_to_repeat(argv: &[String]) -> Vec<String> {
    let mut words = Vec::new();
    let mut is_value_dropped = false;
    for word in argv.iter().skip(1) {
        if is_value_dropped {
            is_value_dropped = false;
            continue;
        }
        match word.as_str() {
            "-o" | "--output" | "--html" | "--start-at" => is_value_dropped = true,
            "--json" | "--pieces" => {}
            joined if has_dropped_flag(joined) => {}
            kept => words.push(kept.to_owned()),
        }
    }
    words
}

/// True if a word is such a flag together with its value: `--html=x.html`, `-ox.json`.
fn has_dropped_flag(word: &str) -> bool {
    let is_short = word.starts_with("-o") && word.len() > 2;
    is_short
        || ["--output=", "--html=", "--start-at="]
            .iter()
            .any(|flag| word.starts_with(flag))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_command_writes_no_file_and_starts_at_once() {
        let argv: Vec<String> = [
            "diskproof",
            "check",
            "/data",
            "-o",
            "a.json",
            "--html=a.html",
            "-ob.csv",
            "--json",
            "--start-at",
            "12:00",
            "--quick",
            "--output=c.md",
        ]
        .map(str::to_owned)
        .into();
        assert_eq!(words_to_repeat(&argv), ["check", "/data", "--quick"]);
    }
}
