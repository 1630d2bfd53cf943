//! Takes part in fences by the process manager interface, first version: plain lines over a socket
//! that the launcher left open. Hydra (MPICH, Intel MPI) speaks it, and `srun --mpi=pmi2`. Nothing
//! is exchanged but the fences themselves.

use diskproof_model::together::{Fence, FenceFailure};
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The number of fences that a run enters. The quickest of them shows best how far the clocks are
/// apart; more fences make a quick one likelier and take longer. All ranks must enter equally many,
/// so that programs of one run must agree on it. Chosen, not measured.
pub const FENCES: usize = 10;
/// The longest wait for an answer: for the last rank to come to a fence. Chosen: the ranks of a job
/// start within seconds.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest that a wait goes on before it looks for Ctrl-C: a user does not notice the delay.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The most bytes of an answer. A longer one comes from no launcher.
const LINE_BYTES_MAX: usize = 4096;

/// The fences that a run took part in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fences {
    /// The fences that were left, in order.
    pub fences: Vec<Fence>,
    /// The reason why there are no more; `None` after the last of them.
    pub failure: Option<FenceFailure>,
}

/// The time since the start of a run, and whether it should go on waiting.
pub trait FenceClock {
    /// Nanoseconds since the start of the run.
    fn elapsed_ns(&self) -> u64;
    /// True if the user has ended the run.
    fn is_over(&self) -> bool;
}

/// Enters all fences, and finalizes the connection in any case: a launcher takes a process that
/// ends without that for a dead one, and kills all others with it.
pub fn take_part(
    mut socket: UnixStream,
    answer_within: Duration,
    clock: &dyn FenceClock,
) -> Fences {
    let mut taken = Fences::default();
    let mut connection = Connection {
        socket: &mut socket,
        answer_within,
        clock,
        read: Vec::new(),
    };
    if let Err(failure) = connection.enter_all(&mut taken.fences) {
        taken.failure = Some(failure);
    }
    let leave = connection.request("cmd=finalize");
    if taken.failure.is_none() {
        taken.failure = leave.err();
    }
    taken
}

/// A connection to the launcher.
struct Connection<'a> {
    socket: &'a mut UnixStream,
    answer_within: Duration,
    clock: &'a dyn FenceClock,
    /// Bytes that were read beyond the last line.
    read: Vec<u8>,
}

impl Connection<'_> {
    /// Begins the conversation and enters one fence after the other. Those that were left are added
    /// to `fences`, also when a later one fails.
    fn enter_all(&mut self, fences: &mut Vec<Fence>) -> Result<(), FenceFailure> {
        self.socket
            .set_read_timeout(Some(POLL_INTERVAL))
            .map_err(|_| FenceFailure::Closed)?;
        let answer = self.request("cmd=init pmi_version=1 pmi_subversion=1")?;
        if value(&answer, "rc") != Some("0") {
            return Err(FenceFailure::Refused);
        }
        for _ in 0..FENCES {
            let entered_ns = self.clock.elapsed_ns();
            let answer = self.request("cmd=barrier_in")?;
            let left_ns = self.clock.elapsed_ns();
            if value(&answer, "cmd") != Some("barrier_out") {
                return Err(FenceFailure::Refused);
            }
            fences.push(Fence {
                entered_ns,
                left_ns,
            });
        }
        Ok(())
    }

    /// Sends a line, and returns the line of the answer.
    fn request(&mut self, line: &str) -> Result<String, FenceFailure> {
        let sent = self.socket.write_all(format!("{line}\n").as_bytes());
        sent.map_err(|_| FenceFailure::Closed)?;
        let end = Instant::now() + self.answer_within;
        loop {
            if let Some(at) = self.read.iter().position(|byte| *byte == b'\n') {
                let answer: Vec<u8> = self.read.drain(..=at).collect();
                return Ok(String::from_utf8_lossy(&answer).trim().to_owned());
            }
            if Instant::now() >= end || self.clock.is_over() {
                return Err(FenceFailure::NoAnswer);
            }
            if self.read.len() > LINE_BYTES_MAX {
                return Err(FenceFailure::Refused);
            }
            self.read_some()?;
        }
    }

    /// Reads what there is; nothing where nothing comes for a moment.
    fn read_some(&mut self) -> Result<(), FenceFailure> {
        let mut bytes = [0; 512];
        match self.socket.read(&mut bytes) {
            Ok(0) => Err(FenceFailure::Closed),
            Ok(count) => {
                self.read.extend_from_slice(&bytes[..count]);
                Ok(())
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted => Ok(()),
                _ => Err(FenceFailure::Closed),
            },
        }
    }
}

/// The value of a key in an answer: `cmd=barrier_out rc=0`.
fn value<'a>(answer: &'a str, key: &str) -> Option<&'a str> {
    for word in answer.split_whitespace() {
        if let Some((name, value)) = word.split_once('=')
            && name == key
        {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::{BufRead as _, BufReader};
    use std::thread::JoinHandle;

    /// Counts its readings.
    #[derive(Default)]
    struct Counting(Cell<u64>);

    impl FenceClock for Counting {
        fn elapsed_ns(&self) -> u64 {
            self.0.set(self.0.get() + 1);
            self.0.get()
        }

        fn is_over(&self) -> bool {
            false
        }
    }

    /// A launcher that answers so many lines, with this answer to the first, and then falls silent.
    /// Returns all lines that it got.
    fn launcher(answers: usize, first: &'static str) -> (UnixStream, JoinHandle<Vec<String>>) {
        let (own, theirs) = UnixStream::pair().unwrap();
        let thread = std::thread::spawn(move || {
            let mut lines = Vec::new();
            let mut writer = theirs.try_clone().unwrap();
            for line in BufReader::new(theirs).lines() {
                let line = line.unwrap();
                if lines.len() < answers {
                    let answer = match line.as_str() {
                        "cmd=barrier_in" => "cmd=barrier_out rc=0",
                        "cmd=finalize" => "cmd=finalize_ack rc=0",
                        _ => first,
                    };
                    // In two writes: a line may come in parts.
                    let (head, tail) = answer.split_at(5);
                    writer.write_all(head.as_bytes()).unwrap();
                    writer.write_all(format!("{tail}\n").as_bytes()).unwrap();
                }
                lines.push(line);
            }
            lines
        });
        (own, thread)
    }

    const SHORT: Duration = Duration::from_millis(300);
    const INIT: &str = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";

    #[test]
    fn run_enters_and_leaves_each_fence() {
        let (socket, launcher) = launcher(99, INIT);
        let taken = take_part(socket, ANSWER_TIMEOUT, &Counting::default());
        assert_eq!(taken.failure, None);
        assert_eq!(taken.fences.len(), FENCES);
        for fence in &taken.fences {
            assert_eq!(fence.left_ns, fence.entered_ns + 1);
        }
        let lines = launcher.join().unwrap();
        assert_eq!(lines.len(), FENCES + 2);
        assert_eq!(lines.last().unwrap(), "cmd=finalize");
    }

    #[test]
    fn run_takes_leave_although_a_rank_never_came() {
        let (socket, launcher) = launcher(3, INIT);
        let taken = take_part(socket, SHORT, &Counting::default());
        assert_eq!(taken.failure, Some(FenceFailure::NoAnswer));
        assert_eq!(taken.fences.len(), 2);
        assert_eq!(launcher.join().unwrap().last().unwrap(), "cmd=finalize");
    }

    #[test]
    fn run_takes_leave_of_a_launcher_that_refuses() {
        let (socket, launcher) = launcher(99, "cmd=response_to_init rc=-1");
        let taken = take_part(socket, SHORT, &Counting::default());
        assert_eq!(taken.failure, Some(FenceFailure::Refused));
        assert!(taken.fences.is_empty());
        assert_eq!(launcher.join().unwrap().last().unwrap(), "cmd=finalize");
    }

    #[test]
    fn closed_socket_is_noticed_at_once() {
        let (socket, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let taken = take_part(socket, ANSWER_TIMEOUT, &Counting::default());
        assert_eq!(taken.failure, Some(FenceFailure::Closed));
    }
}
