//! Workloads of a plan file that run at the same time: what they have in common, and what keeps
//! them from it. Pure.

use super::flags::WorkloadFlags;
use super::reach::out_of_reach;
use super::resolve::{Content, Contradiction, Ground, Wording, misfit, resolve, too_much_memory};
use diskproof_model::group::Group;
use diskproof_model::plan::{Skipped, Stop, Workload};

/// What becomes of workloads that were to run at the same time.
#[derive(Debug, Clone, PartialEq)]
pub enum Team {
    /// They run.
    Runs(Vec<Workload>),
    /// The device cannot do one of them, and without it the others would be something else.
    LeftOut(Vec<Skipped>),
}

/// Makes workloads that run at the same time out of what was said about each; a single one is no
/// special case. `unit_bytes` is the device's sector. The number tells which of them a
/// contradiction is about.
pub fn resolve_team(
    members: &[&WorkloadFlags],
    ground: &Ground,
    unit_bytes: u32,
) -> Result<Team, (usize, Contradiction)> {
    // A file that grows under one of them would be another file for the others.
    let ground = if members.len() > 1 {
        &Ground {
            content: Content::Data,
            ..ground.clone()
        }
    } else {
        ground
    };
    let resolved = members.iter().enumerate().map(|(index, flags)| {
        resolve(flags, ground, Wording::Keys).map_err(|error| (index, error))
    });
    let mut workloads = resolved.collect::<Result<Vec<_>, _>>()?;
    if let Some((odd, why)) = workloads
        .iter()
        .find_map(|workload| Some((workload.name.clone(), misfit(workload, unit_bytes)?)))
    {
        let why_not = |name: &str| {
            if name == odd {
                why.clone()
            } else {
                format!("it runs together with {odd}, which is left out")
            }
        };
        let skipped = workloads.into_iter().map(|workload| Skipped {
            why: why_not(&workload.name),
            workload: workload.name,
        });
        return Ok(Team::LeftOut(skipped.collect()));
    }
    if members.len() > 1 {
        end_together(&mut workloads, members);
        let last = workloads.len() - 1;
        let group = Group {
            first: 0,
            workloads: &workloads,
        };
        if let Some(clash) = group.clash() {
            return Err((last, Contradiction(clash.to_string())));
        }
        if let Some(too_much) = too_much_memory(&workloads, ground) {
            let told = format!(
                "together with those before it, it {too_much}: make a jobs, depth or bs smaller"
            );
            return Err((last, Contradiction(told)));
        }
    }
    out_of_reach(&workloads, Wording::Keys).map_or(Ok(Team::Runs(workloads)), Err)
}

/// One who says nothing of his end runs as long as the others. All warm up equally long: as long as
/// one of them says, else the longest default, and not at all where bytes or operations are
/// counted, as these would be used up meanwhile.
fn end_together(workloads: &mut [Workload], members: &[&WorkloadFlags]) {
    if members.iter().any(|flags| flags.says_its_end()) {
        for (workload, _) in workloads
            .iter_mut()
            .zip(members)
            .filter(|(_, flags)| !flags.says_its_end())
        {
            (workload.stop, workload.warmup_ns) = (Stop::default(), 0);
        }
    }
    let said = members
        .iter()
        .filter_map(|flags| flags.warmup.map(|warmup| warmup.0))
        .max();
    let counted = workloads
        .iter()
        .any(|workload| workload.stop.bytes.is_some() || workload.stop.ops.is_some());
    let default = if counted {
        0
    } else {
        workloads
            .iter()
            .map(|workload| workload.warmup_ns)
            .max()
            .unwrap_or(0)
    };
    let warmup_ns = said.unwrap_or(default);
    workloads
        .iter_mut()
        .for_each(|workload| workload.warmup_ns = warmup_ns);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_file::PlanFile;
    use crate::workload::resolve::Memory;
    use diskproof_model::plan::{Layout, Start};

    const SECOND: u64 = 1_000_000_000;

    fn ground() -> Ground {
        Ground {
            target_bytes: vec![1 << 30],
            memory: Memory {
                installed_bytes: Some(1 << 30),
                free_bytes: None,
            },
            content: Content::Nothing,
            engine: None,
        }
    }

    fn team(keys: &[&str]) -> Result<Team, String> {
        let text: String = keys
            .iter()
            .enumerate()
            .map(|(i, keys)| format!("[[workload]]\nname = \"w{i}\"\n{keys}\n"))
            .collect();
        let plan = PlanFile::parse(&text.replacen("together = true", "", 1)).unwrap();
        let members: Vec<&WorkloadFlags> = plan
            .workloads
            .iter()
            .map(|planned| &planned.flags)
            .collect();
        resolve_team(&members, &ground(), 4096)
            .map_err(|(index, error)| format!("{index}: {error}"))
    }

    fn running(keys: &[&str]) -> Vec<Workload> {
        match team(keys) {
            Ok(Team::Runs(workloads)) => workloads,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn who_says_nothing_of_his_end_runs_as_long_as_the_others() {
        let both = running(&[
            "rw = \"write\"\nbs = \"4k\"\ntime = \"60s\"",
            "together = false",
        ]);
        assert_eq!(
            (both[0].stop.time_ns, &both[1].stop),
            (Some(60 * SECOND), &Stop::default())
        );
        assert_eq!((both[0].warmup_ns, both[1].warmup_ns), (SECOND, SECOND));
        assert_eq!(
            both[0].layout,
            Layout::Needed,
            "the file is there before both"
        );
        let silent = running(&["", "rate = 500"]);
        assert!(
            silent
                .iter()
                .all(|w| w.stop.time_ns == Some(30 * SECOND) && w.stop.precision.is_some()),
            "{silent:?}"
        );
    }

    #[test]
    fn the_warm_up_is_one_for_all() {
        let warmups = |keys: &[&str]| {
            running(keys)
                .iter()
                .map(|w| w.warmup_ns)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            warmups(&["time = \"10s\"", "ops = 100"]),
            [0, 0],
            "what is counted would be used up"
        );
        assert_eq!(
            warmups(&[
                "time = \"10s\"\nwarmup = \"0s\"",
                "ops = 100\nwarmup = \"2s\""
            ]),
            [2 * SECOND; 2]
        );
        assert_eq!(warmups(&["time = \"10s\"\nwarmup = \"0s\"", ""]), [0, 0]);
    }

    #[test]
    fn what_one_cannot_do_is_left_out_with_the_others() {
        let Ok(Team::LeftOut(skipped)) = team(&["bs = \"512\"", "bs = \"8k\""]) else {
            panic!("it runs")
        };
        assert!(
            skipped[0].why.contains("sectors have 4096 bytes"),
            "{skipped:?}"
        );
        assert_eq!(
            skipped[1].why,
            "it runs together with w0, which is left out"
        );
    }

    #[test]
    fn what_cannot_be_true_is_refused() {
        let told = team(&["rw = \"randwrite\"\nverify = true", "rw = \"randwrite\""]).unwrap_err();
        assert!(
            told.starts_with("1: 'w0' checks what it wrote, and 'w1' writes"),
            "{told}"
        );
        assert!(
            team(&[
                "rw = \"randwrite\"\nverify = true\nspan = \"0-50%\"",
                "rw = \"randwrite\"\nspan = \"50%-100%\""
            ])
            .is_ok()
        );
        let told = team(&["cached = true", "buffered = true"]).unwrap_err();
        assert!(
            told.contains("'w0' leaves the page cache alone, and 'w1' empties it"),
            "{told}"
        );
        let told = team(&["bs = \"16M\"\ndepth = 10", "bs = \"16M\"\ndepth = 10"]).unwrap_err();
        assert!(
            told.contains("needs 320 MiB of buffers, and a quarter of the memory is 256 MiB"),
            "{told}"
        );
        let told = team(&["time = \"5s\"", "rate = 0.1"]).unwrap_err();
        assert!(
            told.starts_with("1: rate 0.1 starts an operation every 10 s"),
            "{told}"
        );
    }

    #[test]
    fn the_key_makes_it_start_with_the_one_before() {
        let flags = |text: &str| PlanFile::parse(text).unwrap().workloads[1].flags.clone();
        let text = "[[workload]]\nname = \"a\"\n[[workload]]\nname = \"b\"\ntogether = true\n";
        let workload = resolve(&flags(text), &ground(), Wording::Keys).unwrap();
        assert_eq!(workload.start, Start::WithPrevious);
        assert_eq!(
            resolve(
                &flags(&text.replace("true", "false")),
                &ground(),
                Wording::Keys
            )
            .unwrap()
            .start,
            Start::AfterPrevious
        );
    }
}
