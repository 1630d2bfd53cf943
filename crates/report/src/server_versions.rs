//! What the version of a PostgreSQL server means for the lines of its file.

use diskproof_model::advice::{Advice, versions_with};

/// The settings that a server reads only when it starts (documentation of PostgreSQL 18).
const READ_AT_START: [&str; 2] = ["io_method", "io_max_combine_limit"];

/// The versions that have a setting, in words; `None` where the server of this version has it. One
/// of an unknown version may lack it.
pub(crate) fn other_versions(setting: &str, version: Option<u32>) -> Option<String> {
    let versions = versions_with(setting)?;
    if let Some(version) = version
        && versions.contains(&version)
    {
        return None;
    }
    let since = versions.start();
    Some(match *versions.end() {
        u32::MAX => format!("PostgreSQL {since} or newer"),
        until if until == *since => format!("PostgreSQL {since} only"),
        until => format!("PostgreSQL {since} to {until}"),
    })
}

/// True if the server must start again for a setting that changes. A reload leaves it as it is.
pub(crate) fn needs_restart(advice: &[Advice], version: Option<u32>) -> bool {
    advice.iter().any(|advice| {
        advice.changes()
            && READ_AT_START.contains(&advice.setting.as_str())
            && other_versions(&advice.setting, version).is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(setting: &str, value: &str) -> Advice {
        Advice {
            setting: setting.to_owned(),
            value: Some(value.to_owned()),
            range: None,
            why: String::new(),
            from: Vec::new(),
            default: Some("default".to_owned()),
            condition: None,
        }
    }

    #[test]
    fn restart_is_needed_for_active_settings_that_are_read_at_the_start() {
        let reloaded = [
            advice("io_combine_limit", "256kB"),
            advice("io_method", "default"),
        ];
        assert!(!needs_restart(&reloaded, Some(18)));
        for (setting, value) in [("io_method", "io_uring"), ("io_max_combine_limit", "256kB")] {
            let advice = [advice(setting, value)];
            assert!(needs_restart(&advice, Some(18)), "{setting}");
            assert!(!needs_restart(&advice, Some(17)) && !needs_restart(&advice, None));
        }
    }
}
