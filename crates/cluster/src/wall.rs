//! Finds the most by which a wall clock may be wrong, and the source of that bound. The clock is
//! never set.

use diskproof_model::wall_clock::{KernelClock, WallSource};
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The reference of a chrony that follows no source but its own clock (127.127.1.1).
const OWN_REFERENCE: &str = "7F7F0101";
/// The reference of a chrony that is not synchronised yet.
const NO_REFERENCE: &str = "00000000";
/// The longest that chronyc may take. It answers in milliseconds where its service runs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause before the answer is looked for again. Chosen, not measured.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A bound of the error of the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallBound {
    /// The most that the wall clock may be wrong, in nanoseconds; `None` where no source knows it.
    pub bound_ns: Option<u64>,
    /// The source of the bound.
    pub source: WallSource,
    /// The difference between the time that this process sees and that of the kernel, in
    /// nanoseconds; a part of the bound.
    pub apart_ns: u64,
}

impl WallBound {
    /// The bound of a clock with an error of at most `error_ns` by this source.
    fn new(error_ns: u64, source: WallSource, apart_ns: u64) -> Self {
        Self {
            bound_ns: Some(error_ns.saturating_add(apart_ns)),
            source,
            apart_ns,
        }
    }
}

/// Returns the most by which the wall clock may be wrong: the bound of the user, else that of the
/// kernel where a time service keeps it synchronised, else that of chrony. The difference between
/// the clock of this process and that of the kernel is added in any case.
pub fn wall_bound(
    given_ns: Option<u64>,
    kernel: Option<KernelClock>,
    chrony_ns: impl FnOnce() -> Option<u64>,
) -> WallBound {
    let apart_ns = match kernel {
        Some(kernel) => kernel.apart_ns,
        None => 0,
    };
    if let Some(given_ns) = given_ns {
        return WallBound::new(given_ns, WallSource::Given, apart_ns);
    }
    if let Some(kernel) = kernel
        && kernel.is_synchronised
    {
        return WallBound::new(kernel.error_max_ns, WallSource::Adjtimex, apart_ns);
    }
    match chrony_ns() {
        Some(chrony_ns) => WallBound::new(chrony_ns, WallSource::Chronyc, apart_ns),
        None => WallBound {
            bound_ns: None,
            source: WallSource::Nobody,
            apart_ns,
        },
    }
}

/// Returns the bound that chrony gives for the wall clock; `None` where it does not run, or follows
/// no other clock. `start` starts its program.
pub fn chrony_bound_ns(start: impl FnOnce(&mut Command) -> io::Result<Child>) -> Option<u64> {
    let mut chronyc = Command::new("chronyc");
    chronyc.args(["-c", "tracking"]);
    let line = first_line(&mut chronyc, start, ANSWER_TIMEOUT)?;
    tracking_bound_ns(&line)
}

/// Returns the first line that a program prints, which must end well within this time.
fn first_line(
    command: &mut Command,
    start: impl FnOnce(&mut Command) -> io::Result<Child>,
    within: Duration,
) -> Option<String> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut program = start(command).ok()?;
    let end = Instant::now() + within;
    let output = program.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    // A process that the program started may hold the pipe for ever. Only this thread waits for it.
    std::thread::spawn(move || {
        let (mut line, mut output) = (String::new(), BufReader::new(output));
        if output.read_line(&mut line).is_ok() {
            // It is not received after the time is over.
            let _ = sender.send(line);
        }
        // The program fails where the rest is not read.
        let _ = io::copy(&mut output, &mut io::sink());
    });
    while let Ok(None) = program.try_wait() {
        if Instant::now() >= end {
            // It may have ended meanwhile.
            let _ = program.kill();
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    if !program.wait().ok()?.success() {
        return None;
    }
    receiver.recv_timeout(within).ok()
}

/// Returns the bound of a line of `chronyc -c tracking`: the distance from the reference, the root
/// dispersion, and half of the root delay (chronyc(1), whose fields have an order and no names).
/// `None` for any other line, and where chrony follows no other clock.
fn tracking_bound_ns(line: &str) -> Option<u64> {
    let fields: Vec<&str> = line.trim().split(',').collect();
    let [
        reference,
        _,
        _,
        _,
        distance,
        _,
        _,
        _,
        _,
        _,
        delay,
        dispersion,
        ..,
    ] = fields.as_slice()
    else {
        return None;
    };
    if *reference == OWN_REFERENCE || *reference == NO_REFERENCE {
        return None;
    }
    let distance: f64 = distance.parse().ok()?;
    let delay: f64 = delay.parse().ok()?;
    let dispersion: f64 = dispersion.parse().ok()?;
    let bound_ns = ((distance.abs() + dispersion + delay / 2.0) * 1e9).ceil();
    // "nan" is a number to the parser, and 0 as an integer: an exact clock.
    if delay < 0.0 || dispersion < 0.0 || !bound_ns.is_finite() {
        return None;
    }
    Some(bound_ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: KernelClock = KernelClock {
        is_synchronised: true,
        error_max_ns: 5_000,
        apart_ns: 0,
    };

    #[test]
    fn first_one_that_knows_the_clock_counts() {
        let bound = |given, kernel, chrony| {
            let bound = wall_bound(given, kernel, || chrony);
            (bound.bound_ns, bound.source)
        };
        let given = bound(Some(7), Some(KERNEL), Some(9));
        assert_eq!(given, (Some(7), WallSource::Given));
        let kernel = bound(None, Some(KERNEL), Some(9));
        assert_eq!(kernel, (Some(5_000), WallSource::Adjtimex));
        let free = KernelClock {
            is_synchronised: false,
            ..KERNEL
        };
        let chrony = bound(None, Some(free), Some(9));
        assert_eq!(chrony, (Some(9), WallSource::Chronyc));
        assert_eq!(bound(None, None, None), (None, WallSource::Nobody));
    }

    #[test]
    fn clock_that_is_not_the_kernels_is_wrong_by_the_distance() {
        let faked = KernelClock {
            apart_ns: 3_000_000_000,
            ..KERNEL
        };
        let bound = wall_bound(None, Some(faked), || None);
        assert_eq!(bound.bound_ns, Some(3_000_005_000));
    }

    #[test]
    fn tracking_line_gives_its_bound() {
        let line = "C0A80101,192.168.1.1,3,1700000000.1,-0.000020,0.000012,0.000040,-3.1,0.002,\
                    0.05,0.001000,0.000300,64.2,Normal\n";
        assert_eq!(tracking_bound_ns(line), Some(820_000));
        let own = line.replace("C0A80101", OWN_REFERENCE);
        assert_eq!(tracking_bound_ns(&own), None);
        assert_eq!(tracking_bound_ns("506 Cannot talk to daemon"), None);
        for wrong in ["nan", "inf", "-0.000300"] {
            let line = line.replace("0.000300", wrong);
            assert_eq!(tracking_bound_ns(&line), None, "{line}");
        }
    }

    /// The sleeper keeps the pipe for much longer than the answer takes.
    #[test]
    fn descendant_that_holds_the_pipe_is_not_waited_for() {
        let started = Instant::now();
        let within = Duration::from_secs(20);
        let first_line_of = |script, within| {
            let mut shell = Command::new("sh");
            first_line(shell.args(["-c", script]), Command::spawn, within)
        };
        let line = first_line_of("sleep 100 & echo a; echo b", within);
        assert_eq!(line.as_deref(), Some("a\n"));
        assert_eq!(first_line_of("echo a; exit 1", within), None);
        let short = Duration::from_millis(100);
        assert_eq!(first_line_of("sleep 100; true", short), None);
        assert!(started.elapsed() < Duration::from_secs(60));
    }
}
