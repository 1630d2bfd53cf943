//! The commands of a record: for every figure and every finding that has one, the command of a
//! well-known tool that reproduces it.

use crate::text::list;
use diskproof_model::block::Block;
use diskproof_model::record::Record;

/// The commands, each with what it reproduces.
pub(crate) fn blocks(record: &Record) -> Vec<Block> {
    let mut blocks = of_figures(record);
    let findings = record.findings.iter();
    blocks.extend(findings.filter_map(|finding| {
        let what = format!("finding {}", finding.code);
        Some(command(what, finding.reproduce.as_ref()?))
    }));
    blocks
}

fn command(what: String, text: &str) -> Block {
    let text = text.to_owned();
    Block::Command { what, text }
}

/// Those of the figures.
pub(super) fn of_figures(record: &Record) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (index, m) in record.measurements.iter().enumerate() {
        let others = &m.workload.together_with;
        // Workloads that ran together have one command, printed with the first of them.
        let mut before = record.measurements[..index].iter();
        let is_printed =
            before.any(|one| one.target == m.target && others.contains(&one.workload.name));
        if is_printed || m.reproduce.is_empty() {
            continue;
        }
        let names = std::iter::once(&m.workload.name).chain(others);
        let name = list(names.cloned());
        let what = match record.targets.get(m.target) {
            Some(target) if record.targets.len() > 1 => format!("{name} on {}", target.path),
            _ => name,
        };
        blocks.push(command(what, &m.reproduce));
    }
    let surface = record.surface.iter();
    let surface = surface.filter(|surface| !surface.reproduce.is_empty());
    blocks.extend(surface.map(|of| command("curve".to_owned(), &of.reproduce)));
    blocks
}
