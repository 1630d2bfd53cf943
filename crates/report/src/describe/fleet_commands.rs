//! Commands that follow from the page of a fleet. They are printed for the administrator, and not
//! run.

use super::fleet_metrics::metric_of_value;
use diskproof_model::block::Block;
use diskproof_model::fleet::{FleetBasis, FleetRecord, FleetRow, RowState};
use diskproof_model::shell::quoted;

/// As many rows that are alike are measured again together with the suspects. With fewer, a suspect
/// has nothing to be compared with; each one costs another host the time of the measurement.
const CONTROLS_MAX: usize = 10;

/// Flags with a value that hold for one run only: where its output goes, the start and the rank of
/// a measurement together with others, and the path that makes it measure nothing.
const VALUES_OF_ONE_RUN: [&str; 6] = [
    "--output",
    "--html",
    "--start-at",
    "--rank",
    "--clock-bound",
    "--unless-exists",
];
/// Flags without a value that hold for one run only. The pieces are asked for anew, and which disk
/// is slow needs no common slots.
const SWITCHES_OF_ONE_RUN: [&str; 3] = ["--json", "--pieces", "--together"];

/// The commands that measure all suspects again, each together with hosts that are alike. Groups
/// that were measured by the same command share one. A group without an example of how it was
/// measured has none.
pub(super) fn second_look_commands(fleet: &FleetRecord) -> Vec<Block> {
    let mut looks: Vec<SecondLook<'_>> = Vec::new();
    for group in groups_with_suspects(fleet) {
        let Some(command) = measuring_command(fleet, group) else {
            continue;
        };
        let hosts = hosts_to_measure_again(fleet, group);
        match looks.iter_mut().find(|look| look.command == command) {
            Some(look) => look.add_hosts(&hosts),
            None => looks.push(SecondLook { command, hosts }),
        }
    }
    looks.iter().map(SecondLook::block).collect()
}

/// A command of `diskproof`, and the hosts that are to run it.
struct SecondLook<'f> {
    command: String,
    /// Each once.
    hosts: Vec<&'f str>,
}

impl<'f> SecondLook<'f> {
    fn add_hosts(&mut self, hosts: &[&'f str]) {
        for host in hosts {
            if !self.hosts.contains(host) {
                self.hosts.push(host);
            }
        }
    }

    fn block(&self) -> Block {
        Block::Command {
            what: "measure the suspects again, with others for comparison (FLEET.json: saved with \
                   -o)"
            .to_owned(),
            text: format!(
                "for i in 1 2 3; do pdsh -f {} -w {} {}; done | diskproof merge --reference \
                 FLEET.json -",
                self.hosts.len(),
                quoted(&self.hosts.join(",")),
                quoted(&self.command)
            ),
        }
    }
}

/// The groups of the suspects, in the order of the rows.
fn groups_with_suspects(fleet: &FleetRecord) -> Vec<usize> {
    let mut groups = Vec::new();
    for row in &fleet.rows {
        if row.state == RowState::Suspect
            && let Some(group) = row.group
            && !groups.contains(&group)
        {
            groups.push(group);
        }
    }
    groups
}

/// The hosts of a group's suspects, and those of at most [`CONTROLS_MAX`] like rows, in random
/// order. Each host once.
fn hosts_to_measure_again(fleet: &FleetRecord, group: usize) -> Vec<&str> {
    let mut controls = rows_in_state(fleet, group, RowState::Alike);
    // The ids of runs are random, so this order is, too.
    controls.sort_by_key(|row| row.runs.first().map(|run| run.run_id.as_str()));
    controls.truncate(CONTROLS_MAX);
    let mut hosts: Vec<&str> = Vec::new();
    let suspects = rows_in_state(fleet, group, RowState::Suspect);
    for row in suspects.into_iter().chain(controls) {
        if !hosts.contains(&row.host.as_str()) {
            hosts.push(&row.host);
        }
    }
    hosts
}

fn rows_in_state(fleet: &FleetRecord, group: usize, state: RowState) -> Vec<&FleetRow> {
    fleet
        .rows
        .iter()
        .filter(|row| row.state == state && row.group == Some(group))
        .collect()
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

/// The words of a command line after the program, without the flags that hold for one run only.
fn words_to_repeat(argv: &[String]) -> Vec<String> {
    let mut words = Vec::new();
    let mut is_value_dropped = false;
    for word in argv.iter().skip(1) {
        if is_value_dropped {
            is_value_dropped = false;
        } else if word == "-o" || VALUES_OF_ONE_RUN.contains(&word.as_str()) {
            is_value_dropped = true;
        } else if !SWITCHES_OF_ONE_RUN.contains(&word.as_str()) && !has_dropped_flag(word) {
            words.push(word.clone());
        }
    }
    words
}

/// True if a word is such a flag together with its value: `--html=x.html`, `-ox.json`.
fn has_dropped_flag(word: &str) -> bool {
    let is_short = word.starts_with("-o") && word.len() > 2;
    is_short
        || match word.split_once('=') {
            Some((flag, _)) => VALUES_OF_ONE_RUN.contains(&flag),
            None => false,
        }
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
            (None, None) => slowest_figure(fleet, row),
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

/// The figure in which a row is slowest, such as `random-read-d1 at 39 % of the median`. A row can
/// be slower over all workloads, and in none of them for certain.
fn slowest_figure(fleet: &FleetRecord, row: &FleetRow) -> String {
    let mut slowest = None;
    if let Some(overall) = &row.overall {
        slowest = Some(("all workloads", overall.speed));
    }
    for value in &row.values {
        if let (Some(distance), Some(metric)) =
            (&value.distance, metric_of_value(fleet, row, value))
            && value.state == row.state
            && slowest.is_none_or(|(_, speed)| distance.speed < speed)
        {
            slowest = Some((metric.subject.as_str(), distance.speed));
        }
    }
    match slowest {
        Some((subject, speed)) => format!("{subject} at {:.0} % of the median", speed * 100.0),
        None => "the figure is unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::fleet::FleetDistance;
    use diskproof_model::plan::Origin;

    /// A fleet of two groups of four hosts, which these command lines measured. The first host of
    /// each group is a suspect.
    fn fleet_of_two_groups(command_lines: [&str; 2]) -> FleetRecord {
        let mut fleet = crate::fixture::fleet(8);
        fleet.groups.push(fleet.groups[0].clone());
        for (group, line) in command_lines.into_iter().enumerate() {
            let argv = line.split(' ').map(str::to_owned).collect();
            let mut example = crate::fixture::record();
            example.plan.origin = Origin::new("check", argv);
            fleet.examples.push(example);
            fleet.groups[group].metrics[0].example = Some(group);
        }
        for (index, row) in fleet.rows.iter_mut().enumerate() {
            row.group = Some(index / 4);
            row.state = if index % 4 == 0 {
                RowState::Suspect
            } else {
                RowState::Alike
            };
        }
        fleet
    }

    fn command_texts(fleet: &FleetRecord) -> Vec<String> {
        let mut texts = Vec::new();
        for block in second_look_commands(fleet) {
            if let Block::Command { text, .. } = block {
                texts.push(text);
            }
        }
        texts
    }

    #[test]
    fn suspects_of_every_group_are_measured_again_with_rows_like_them() {
        let fleet = fleet_of_two_groups(["diskproof check /a", "diskproof check /b"]);
        let texts = command_texts(&fleet);
        assert_eq!(texts.len(), 2);
        let hosts = ["node0,node1,node2,node3", "node4,node5,node6,node7"];
        for ((text, hosts), path) in texts.iter().zip(hosts).zip(["/a", "/b"]) {
            assert!(text.contains(&format!("pdsh -f 4 -w {hosts} ")), "{text}");
            assert!(text.contains(path), "{text}");
        }
    }

    #[test]
    fn groups_that_one_command_measured_share_it() {
        let fleet = fleet_of_two_groups(["diskproof check /a", "diskproof check /a"]);
        let texts = command_texts(&fleet);
        assert_eq!(texts.len(), 1);
        assert!(texts[0].contains("pdsh -f 8 "), "{texts:?}");
    }

    #[test]
    fn drained_node_without_a_reason_has_its_slowest_figure() {
        let mut fleet = crate::fixture::fleet(4);
        fleet.basis = FleetBasis::Reference;
        let subject = fleet.groups[0].metrics[0].subject.clone();
        let row = &mut fleet.rows[0];
        row.state = RowState::Slower;
        row.reasons.clear();
        row.not_judged = None;
        row.overall = None;
        row.values[0].metric = 0;
        row.values[0].state = RowState::Slower;
        row.values[0].distance = Some(FleetDistance {
            speed: 0.39,
            t: -9.0,
            p_value: 1e-6,
            p_adjusted: 1e-4,
        });
        let blocks = drain_commands(&fleet);
        let [Block::Command { text, .. }] = blocks.as_slice() else {
            panic!("{blocks:?}");
        };
        let why = format!("disk slower: {subject} at 39 % of the median");
        assert!(text.contains(&why), "{text}");
    }

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
            "--together",
            "--rank",
            "1/3",
            "--clock-bound=1ms",
            "--unless-exists",
            "/data/PG_VERSION",
        ]
        .map(str::to_owned)
        .into();
        assert_eq!(words_to_repeat(&argv), ["check", "/data", "--quick"]);
    }
}
