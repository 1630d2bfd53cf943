//! `diskproof watch --postgres` with a real server, and with what only looks like one.

use crate::postgres::{as_user, output, server, wait_until};
use crate::program::{program, run};
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::place;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Only what must happen within it.
const WITHIN: Duration = Duration::from_secs(120);
pub(crate) const PASSWORD: &str = "secret-of-the-test";

/// A server over TCP with passwords as SCRAM; it ends with the test.
pub(crate) struct TestServer {
    process: Child,
    pub port: u16,
}

impl TestServer {
    fn start(bin: &Path, here: &Path) -> Self {
        Self::start_with(bin, here, &|_| Vec::new())
    }

    /// `settings` may put files into the data directory, and returns settings of the server.
    pub(crate) fn start_with(
        bin: &Path,
        here: &Path,
        settings: &dyn Fn(&Path) -> Vec<&'static str>,
    ) -> Self {
        let (data, pwfile) = (here.join("data"), here.join("password"));
        std::fs::create_dir(&data).unwrap();
        std::os::unix::fs::chown(&data, Some(65534), Some(65534)).unwrap();
        std::fs::write(&pwfile, PASSWORD).unwrap();
        output(
            as_user(&bin.join("initdb"))
                .args(["-N", "-U", "postgres", "-A", "scram-sha-256", "-D"])
                .arg(&data)
                .arg("--pwfile")
                .arg(&pwfile),
        );
        let port = free_port();
        let settings = settings(&data);
        let process = as_user(&bin.join("postgres"))
            .args(settings.iter().flat_map(|setting| ["-c", setting]))
            .args(["-c", "listen_addresses=127.0.0.1"])
            .args(["-c", "unix_socket_directories="])
            .args(["-p", &port.to_string(), "-D"])
            .arg(&data)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, port };
        wait_until(|| run(server.watch(PASSWORD)).code == Some(0));
        server
    }

    fn conninfo(&self, password: &str) -> String {
        let port = self.port;
        format!("postgresql://postgres:{password}@127.0.0.1:{port}/postgres")
    }

    fn watch(&self, password: &str) -> Vec<String> {
        watch(&self.conninfo(password))
    }

    /// The server and its processes.
    fn pids(&self) -> Vec<Pid> {
        let pid = self.process.id();
        let children = format!("/proc/{pid}/task/{pid}/children");
        let children = std::fs::read_to_string(children).unwrap_or_default();
        let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
        std::iter::once(pid as i32)
            .chain(children)
            .filter_map(Pid::from_raw)
            .collect()
    }

    fn signal_all(&self, signal: Signal) {
        for pid in self.pids() {
            // A process of the server may end meanwhile.
            let _ = kill_process(pid, signal);
        }
    }

    /// Lets it read its settings and certificates again.
    pub(crate) fn reload(&self) {
        kill_process(Pid::from_child(&self.process), Signal::HUP).unwrap();
    }

    fn stop(&mut self) {
        self.signal_all(Signal::CONT);
        // SIGINT is the fast shutdown, which does not wait for sessions.
        let _ = kill_process(Pid::from_child(&self.process), Signal::INT);
        self.process.wait().unwrap();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A `watch` whose lines are read as they come.
struct WatchLines {
    child: Child,
    lines: Receiver<String>,
}

impl WatchLines {
    fn start<const N: usize>(arguments: [&str; N]) -> Self {
        let mut child = program(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let read = stdout.lines().map_while(Result::ok);
            read.map_while(|line| sender.send(line).ok()).for_each(drop);
        });
        Self { child, lines }
    }

    fn wait_for_line(&self, part: &str) {
        let end = Instant::now() + WITHIN;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|error| panic!("no line with '{part}': {error}"));
            if line.contains(part) {
                return;
            }
        }
    }
}

impl Drop for WatchLines {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

pub(crate) fn watch(conninfo: &str) -> Vec<String> {
    ["watch", "-i", "1s", "-c", "2", "--postgres", conninfo]
        .map(str::to_owned)
        .to_vec()
}

#[test]
fn watched_server_is_recorded_without_its_password() {
    let Some(bin) = server("watched_server_is_recorded_without_its_password") else {
        return;
    };
    let here = place();
    let server = TestServer::start(&bin, here.path());
    let saved = here.path().join("run.json");
    let more = ["-o".to_owned(), saved.display().to_string()];
    let ran = run(server.watch(PASSWORD).into_iter().chain(more));
    ran.exits(0).tells("the password of --postgres");
    let text = std::fs::read_to_string(&saved).unwrap();
    for text in [&text, &ran.out, &ran.err] {
        assert!(!text.contains(PASSWORD), "{text}");
    }
    let version = bin.parent().unwrap().file_name().unwrap();
    let at = format!("at 127.0.0.1:{}", server.port);
    ran.shows(&at);
    let record: Record = serde_json::from_str(&text).unwrap();
    // On a stalled machine no two readings may fit into the two steps.
    if let Some(seen) = &record.observed().unwrap().server {
        assert!(
            seen.version.starts_with(version.to_str().unwrap()),
            "{}",
            seen.version
        );
    }
    let ran = run(server.watch("wrong-password"));
    ran.exits(4).tells("authentication failed");
    ran.tells_not("wrong-password");
}

#[test]
fn watch_goes_on_while_its_server_stops_and_after_it_died() {
    let Some(bin) = server("watch_goes_on_while_its_server_stops_and_after_it_died") else {
        return;
    };
    let here = place();
    let server = TestServer::start(&bin, here.path());
    let conninfo = server.conninfo(PASSWORD);
    let mut watch = WatchLines::start(["watch", "-i", "1s", "--postgres", &conninfo]);
    watch.wait_for_line("server reads");
    server.signal_all(Signal::STOP);
    // Each line is that of another step: the steps go on without an answer.
    for _ in 0..2 {
        watch.wait_for_line("PostgreSQL: retrying:");
    }
    watch.wait_for_line("in time");
    server.signal_all(Signal::CONT);
    watch.wait_for_line("PostgreSQL: connected");
    watch.wait_for_line("server reads");
    server.signal_all(Signal::KILL);
    for _ in 0..2 {
        watch.wait_for_line("PostgreSQL: retrying:");
    }
    kill_process(Pid::from_child(&watch.child), Signal::INT).unwrap();
    assert_eq!(watch.child.wait().unwrap().code(), Some(130));
}

#[test]
fn watched_server_that_is_none_or_never_answers_is_a_clear_error() {
    let port = free_port();
    let ran = run(watch(&format!("host=127.0.0.1 port={port} user=monitor")));
    ran.exits(4).tells("(ECONNREFUSED)");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let ran = run(watch(&format!("host=127.0.0.1 port={port} user=monitor")));
    ran.exits(4).tells("in time");
}
