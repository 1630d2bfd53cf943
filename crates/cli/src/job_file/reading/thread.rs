//! Reads the options about scheduling: processors, priorities.

use super::JobReader;
use crate::job_file::error::JobFileError;
use diskproof_model::shape::{IoPriority, ThreadScheduling};

/// The kernel's set of processors holds no more in this program.
const CPU_MAX: u16 = 1023;
/// The class of a priority without one (IOPRIO_CLASS_BE).
const BEST_EFFORT: u8 = 2;

impl JobReader<'_, '_> {
    /// `cpus_allowed`, `cpumask`, `prio`, `prioclass` and `nice`.
    pub(super) fn scheduling(&self) -> Result<Option<ThreadScheduling>, JobFileError> {
        let scheduling = ThreadScheduling {
            cpus: self.cpus()?,
            io_priority: self.io_priority()?,
            nice: self
                .parsed("nice", |text| {
                    let nice = text.parse::<i8>().ok();
                    nice.filter(|nice| (-20..=19).contains(nice))
                        .ok_or_else(|| "write -20 to 19".to_owned())
                })?
                .unwrap_or(0),
        };
        Ok(Some(scheduling).filter(|given| *given != ThreadScheduling::default()))
    }

    fn cpus(&self) -> Result<Vec<u16>, JobFileError> {
        let list = self.parsed("cpus_allowed", |text| {
            cpu_list(text).ok_or_else(|| "write numbers and ranges, such as 0-3,6".to_owned())
        })?;
        let mask = self.parsed("cpumask", |text| {
            let mask = match text.strip_prefix("0x") {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => text.parse(),
            };
            mask.map_err(|_| "write a bit mask of processors".to_owned())
        })?;
        let cpus = match (list, mask) {
            (Some(list), _) => list,
            (None, Some(mask)) => (0..32).filter(|cpu| mask >> cpu & 1 == 1).collect(),
            (None, None) => return Ok(Vec::new()),
        };
        match self.value("cpus_allowed_policy")? {
            None | Some((_, "shared")) => Ok(cpus),
            Some((setting, _)) => Err(setting.error(
                "a processor per copy is not supported; write a section with cpus_allowed for each \
                 copy",
            )),
        }
    }

    fn io_priority(&self) -> Result<Option<IoPriority>, JobFileError> {
        let number = |name: &str, most: u8| {
            self.parsed(name, |text| {
                let number = text.parse::<u8>().ok().filter(|number| *number <= most);
                number.ok_or_else(|| format!("write 0 to {most}"))
            })
        };
        Ok(match (number("prioclass", 3)?, number("prio", 7)?) {
            (None, None) => None,
            (class, level) => Some(IoPriority {
                class: class.filter(|class| *class > 0).unwrap_or(BEST_EFFORT),
                level: level.unwrap_or(0),
            }),
        })
    }
}

/// `0-3,6`
fn cpu_list(text: &str) -> Option<Vec<u16>> {
    let mut cpus = Vec::new();
    for part in text.split([',', ' ']).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once(['-', ':']).unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u16>().ok();
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last > CPU_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    (!cpus.is_empty()).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_numbers_and_ranges() {
        assert_eq!(cpu_list("0-2,6"), Some(vec![0, 1, 2, 6]));
        assert_eq!(cpu_list("3,1,3"), Some(vec![1, 3]));
        for text in ["", "a", "3-1", "1024", "-1"] {
            assert_eq!(cpu_list(text), None, "{text}");
        }
    }
}
