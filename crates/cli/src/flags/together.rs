//! Defines the flags of a run together with other hosts, and reads their ranks and starts.

use diskproof_model::target::Rank;
use diskproof_model::units::parse_duration;

/// Flags of a run together with other hosts.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct TogetherFlags {
    /// Measure fixed workloads at the same instants as other hosts, for 'diskproof merge'
    /// (diskproof help cluster); implies --pieces
    #[arg(long)]
    pub together: bool,
    /// Start of the first slot: a time for all hosts, such as 2026-11-28T22:00:00Z or @SECONDS
    /// since 1970, or +30s after the launcher's last fence
    #[arg(long, value_name = "TIME", requires = "together", value_parser = parse_start)]
    pub start_at: Option<StartAt>,
    /// Number of this host, from 0, and of all [default: those of the launcher]
    #[arg(long, value_name = "I/N", requires = "together", value_parser = parse_rank)]
    pub rank: Option<Rank>,
    /// The most by which the wall clock may be wrong [default: as the kernel or chrony says]
    #[arg(long, value_name = "DURATION", requires = "together", value_parser = parse_duration)]
    pub clock_bound: Option<u64>,
}

/// When the first slot starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    /// At a time that all hosts are given.
    Time(jiff::Timestamp),
    /// So many nanoseconds after the last fence of the launcher.
    AfterFence(u64),
}

fn parse_start(text: &str) -> Result<StartAt, String> {
    if let Some(duration) = text.strip_prefix('+') {
        return parse_duration(duration)
            .map(StartAt::AfterFence)
            .map_err(|error| error.to_string());
    }
    let parsed = match text.strip_prefix('@') {
        Some(seconds) => match seconds.parse() {
            Ok(seconds) => jiff::Timestamp::from_second(seconds),
            Err(_) => return Err("@ needs seconds since 1970, as 'date +%s' prints".to_owned()),
        },
        None => text.parse(),
    };
    match parsed {
        Ok(time) => Ok(StartAt::Time(time)),
        Err(_) => Err(
            "use a time such as 2026-11-28T22:00:00Z, @SECONDS since 1970, or +30s after the \
             launcher's last fence"
                .to_owned(),
        ),
    }
}

fn parse_rank(text: &str) -> Result<Rank, String> {
    if let Some((rank, size)) = text.split_once('/')
        && let (Ok(rank), Ok(size)) = (rank.parse(), size.parse())
        && rank < size
    {
        return Ok(Rank {
            rank,
            size: Some(size),
        });
    }
    Err("use the number of this host, from 0, and of all: 0/3, 1/3 and 2/3".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_is_below_the_number_of_hosts() {
        for (text, expected) in [
            ("0/3", Some((0, 3))),
            ("2/3", Some((2, 3))),
            ("3/3", None),
            ("-1/3", None),
            ("0/0", None),
            ("1", None),
            ("1/", None),
        ] {
            let ranks = parse_rank(text).ok().map(|rank| (rank.rank, rank.size));
            let expected = expected.map(|(rank, size)| (rank, Some(size)));
            assert_eq!(ranks, expected, "{text}");
        }
    }

    #[test]
    fn start_is_a_time_for_all_hosts_or_follows_the_fence() {
        let time = |seconds| {
            Some(StartAt::Time(
                jiff::Timestamp::from_second(seconds).unwrap(),
            ))
        };
        for (text, expected) in [
            ("@1764367200", time(1_764_367_200)),
            ("2025-11-28T22:00:00Z", time(1_764_367_200)),
            ("2025-11-28T23:00:00+01:00", time(1_764_367_200)),
            ("+30s", Some(StartAt::AfterFence(30_000_000_000))),
            ("30s", None),
            ("@", None),
            ("@1.5", None),
            // No zone: each host would take it for its own.
            ("2025-11-28T22:00:00", None),
        ] {
            assert_eq!(parse_start(text).ok(), expected, "{text}");
        }
    }
}
