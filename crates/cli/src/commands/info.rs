//! `diskproof info`: who the disk is, and how it says it fares. Opens nothing; smartctl does the asking.

use crate::args::Info;
use crate::failure::{Exit, Failure};
use crate::health::ask_health;
use crate::output::{style, to_stdout, write_in_locale};
use diskproof_analysis::rules::health_findings;
use diskproof_report::{Examined, json, terminal};
use diskproof_target::{host_facts, probe};

/// Shows the identity and the health.
pub fn info(info: &Info) -> anyhow::Result<Exit> {
    let identity = probe(&info.target).map_err(Failure::Probe)?;
    let health = ask_health(std::slice::from_ref(&identity), &info.health);
    let findings = health_findings(&health);
    let examined = Examined { host: &host_facts(), identity: &identity, health: &health, findings: &findings };
    to_stdout(|out| match info.json {
        true => json::write_identity(&examined, out),
        false => write_in_locale(out, |page| terminal::write_identity(&examined, &style(info.color), page)),
    })?;
    Ok(Exit::Done)
}
