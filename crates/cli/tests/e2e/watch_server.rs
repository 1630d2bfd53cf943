//! `diskproof watch --postgres` with a real server, and with what only looks like one.

use crate::postgres::{as_user, output, server, wait_until};
use crate::program::run;
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::place;
use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};

const PASSWORD: &str = "secret-of-the-test";

/// A server over TCP with passwords as SCRAM; it ends with the test.
struct TestServer {
    process: Child,
    port: u16,
}

impl TestServer {
    fn start(bin: &Path, here: &Path) -> Self {
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
        let process = as_user(&bin.join("postgres"))
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

    fn stop(&mut self) {
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

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn watch(conninfo: &str) -> Vec<String> {
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
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.err.contains("can read the password of --postgres"),
        "{}",
        ran.err
    );
    let text = std::fs::read_to_string(&saved).unwrap();
    for text in [&text, &ran.out, &ran.err] {
        assert!(!text.contains(PASSWORD), "{text}");
    }
    let version = bin.parent().unwrap().file_name().unwrap();
    let at = format!("at 127.0.0.1:{}", server.port);
    assert!(ran.out.contains(&at), "{}", ran.out);
    let record: Record = serde_json::from_str(&text).unwrap();
    // On a stalled machine no two readings may fit into the two steps.
    if let Some(seen) = record.observed.unwrap().server {
        assert!(
            seen.version.starts_with(version.to_str().unwrap()),
            "{}",
            seen.version
        );
    }
    let ran = run(server.watch("wrong-password"));
    assert_eq!(ran.code, Some(4), "{}", ran.out);
    assert!(
        ran.err.contains("password authentication failed"),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("wrong-password"), "{}", ran.err);
}

#[test]
fn watched_server_that_is_none_or_never_answers_is_a_clear_error() {
    let port = free_port();
    let ran = run(watch(&format!("host=127.0.0.1 port={port} user=monitor")));
    assert_eq!(ran.code, Some(4), "{}", ran.out);
    assert!(ran.err.contains("(ECONNREFUSED)"), "{}", ran.err);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let ran = run(watch(&format!("host=127.0.0.1 port={port} user=monitor")));
    assert_eq!(ran.code, Some(4), "{}", ran.out);
    assert!(
        ran.err.contains("the server did not answer in time"),
        "{}",
        ran.err
    );
}
