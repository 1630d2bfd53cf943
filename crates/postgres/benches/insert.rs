//! The client's own part of an INSERT: CPU time of a prepared statement at a server that does
//! nothing, beside that of the bare system calls on the same socket. Alternating rounds.

// Only what the program uses is public; the module itself is measured.
#[allow(
    dead_code,
    reason = "the session that prepares is not part of the bench"
)]
#[path = "../src/prepared.rs"]
mod prepared;

mod error {
    pub(crate) use diskproof_postgres::PostgresError;
}
mod stream {
    pub(crate) use diskproof_postgres::StopCheck;
}

use prepared::PreparedRun;
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

const ROUNDS: usize = 8;
const INSERTS: u64 = 80_000;
/// As long as the messages of a request.
const REQUEST_BYTES: usize = 31;
const DONE: &[u8] = b"2\0\0\0\x04C\0\0\0\x0fINSERT 0 1\0Z\0\0\0\x05I";

/// A socket whose other end answers every request.
fn server() -> UnixStream {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
    std::thread::spawn(move || {
        let mut request = [0; REQUEST_BYTES];
        while theirs.read_exact(&mut request).is_ok() && theirs.write_all(DONE).is_ok() {}
    });
    ours
}

/// CPU time of this thread for one of many runs, in nanoseconds.
fn cpu_ns(mut run: impl FnMut()) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    (0..INSERTS / 40).for_each(|_| run());
    let begin = now();
    (0..INSERTS).for_each(|_| run());
    (now() - begin) / INSERTS as f64
}

fn main() {
    for round in 1..=ROUNDS {
        let insert = PreparedRun::new(server(), Arc::new(|| false), "INSERT");
        let mut insert = insert.expect("a request");
        let own = cpu_ns(|| insert.run().expect("an answer"));
        let (mut socket, mut answer) = (server(), [0; DONE.len()]);
        let bare = cpu_ns(|| {
            socket.write_all(&[0; REQUEST_BYTES]).expect("a request");
            socket.read_exact(&mut answer).expect("an answer");
        });
        println!("round {round}: INSERT {own:.0} ns, bare system calls {bare:.0} ns");
    }
}
