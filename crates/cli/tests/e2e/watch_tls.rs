//! `diskproof watch --postgres` over TLS: which certificates it accepts, and what it sends itself.

use crate::postgres::server;
use crate::program::{Ran, run};
use crate::watch_server::{PASSWORD, TestServer, watch};
use diskproof_simdisk::testbed::{TempDir, place};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// The server runs as this user.
const NOBODY: u32 = 65534;
/// The database `template1` takes certificates instead of passwords, and TLS only.
const HBA: &str = "hostssl template1 all 127.0.0.1/32 cert\n\
                   hostnossl template1 all 127.0.0.1/32 reject\n\
                   host all all 127.0.0.1/32 scram-sha-256\n";

/// An authority and what it signs, in a directory.
struct Authority {
    here: PathBuf,
}

impl Authority {
    fn new(here: &Path, name: &str) -> Self {
        let here = here.join(name);
        std::fs::create_dir(&here).unwrap();
        let authority = Self { here };
        authority.openssl(&format!(
            "req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 \
             -subj /CN={name} -days 2 -keyout ca.key -out ca.crt"
        ));
        authority
    }

    /// Runs openssl with these words.
    fn openssl(&self, words: &str) {
        let ran = std::process::Command::new("openssl")
            .args(words.split_whitespace())
            .current_dir(&self.here)
            .output()
            .unwrap();
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
    }

    /// A certificate `NAME.crt` and its key for so many days.
    fn sign(&self, name: &str, subject: &str, days: i32) {
        self.openssl(&format!(
            "req -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -subj /CN={subject} \
             -addext subjectAltName=DNS:localhost -keyout {name}.key -out {name}.csr"
        ));
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days {days} \
             -copy_extensions copy -out {name}.crt"
        ));
    }

    fn path(&self, file: &str) -> String {
        self.here.join(file).display().to_string()
    }

    /// Gives the server a certificate of this name.
    fn install(&self, name: &str, data: &Path) {
        for end in ["crt", "key"] {
            let to = data.join(format!("server.{end}"));
            std::fs::copy(self.here.join(format!("{name}.{end}")), &to).unwrap();
            chown(&to, Some(NOBODY), Some(NOBODY)).unwrap();
            std::fs::set_permissions(&to, PermissionsExt::from_mode(0o600)).unwrap();
        }
    }
}

/// A server with a certificate for localhost.
struct TlsServer {
    server: TestServer,
    authority: Authority,
    here: TempDir,
}

impl TlsServer {
    fn start(bin: &Path) -> Self {
        let here = place();
        let authority = Authority::new(here.path(), "authority");
        authority.sign("server", "localhost", 2);
        let server = TestServer::start_with(bin, here.path(), &|data| {
            authority.install("server", data);
            std::fs::copy(authority.here.join("ca.crt"), data.join("ca.crt")).unwrap();
            std::fs::write(data.join("pg_hba.conf"), HBA).unwrap();
            vec!["ssl=on", "ssl_ca_file=ca.crt"]
        });
        Self {
            server,
            authority,
            here,
        }
    }

    /// Watches it with these settings.
    fn watch(&self, host: &str, more: &str) -> Ran {
        let port = self.server.port;
        run(watch(&format!(
            "{host} hostaddr=127.0.0.1 port={port} user=postgres dbname=postgres \
             password={PASSWORD} {more}"
        )))
    }
}

#[test]
fn certificate_of_the_server_is_checked_as_sslmode_says() {
    let Some(bin) = server("certificate_of_the_server_is_checked_as_sslmode_says") else {
        return;
    };
    let tls = TlsServer::start(&bin);
    let right = format!("sslrootcert={}", tls.authority.path("ca.crt"));
    let itself = format!("sslrootcert={}", tls.authority.path("server.crt"));
    for (host, more) in [
        ("host=localhost", format!("sslmode=verify-full {right}")),
        ("host=localhost", format!("sslmode=verify-full {itself}")),
        ("host=127.0.0.1", format!("sslmode=verify-ca {right}")),
        (
            "host=127.0.0.1",
            "sslmode=require channel_binding=require".to_owned(),
        ),
        ("host=127.0.0.1", "sslmode=disable".to_owned()),
    ] {
        let ran = tls.watch(host, &more);
        ran.exits(0);
    }
    let stranger = Authority::new(tls.here.path(), "stranger");
    let stranger = format!("sslrootcert={}", stranger.path("ca.crt"));
    let ran = tls.watch("host=127.0.0.1", &format!("sslmode=verify-full {right}"));
    assert_refused(&ran, "another host");
    let ran = tls.watch("host=localhost", &format!("sslmode=verify-ca {stranger}"));
    assert_refused(&ran, "unknown issuer");
    let ran = tls.watch("host=localhost", &format!("sslmode=require {stranger}"));
    assert_refused(&ran, "unknown issuer");
    let ran = tls.watch("host=localhost", "sslmode=disable channel_binding=require");
    assert_refused(&ran, "channel binding");

    tls.authority.sign("late", "localhost", -1);
    tls.authority.install("late", &tls.here.path().join("data"));
    tls.server.reload();
    let mode = format!("sslmode=verify-full {right}");
    crate::postgres::wait_until(|| tls.watch("host=localhost", &mode).code != Some(0));
    assert_refused(&tls.watch("host=localhost", &mode), "expired");
    let itself = format!("sslrootcert={}", tls.authority.path("late.crt"));
    let ran = tls.watch("host=localhost", &format!("sslmode=verify-ca {itself}"));
    assert_refused(&ran, "expired");
    tls.watch("host=localhost", "sslmode=require").exits(0);
}

fn assert_refused(ran: &Ran, why: &str) {
    ran.exits(4).tells(why).tells_not(PASSWORD);
}

#[test]
fn certificate_of_the_user_logs_in_where_the_server_demands_one() {
    let Some(bin) = server("certificate_of_the_user_logs_in_where_the_server_demands_one") else {
        return;
    };
    let tls = TlsServer::start(&bin);
    tls.authority.sign("user", "postgres", 2);
    let [certificate, key] = ["user.crt", "user.key"].map(|file| tls.authority.path(file));
    let own = format!("dbname=template1 sslcert={certificate} sslkey={key}");
    let key = Path::new(&key);
    std::fs::set_permissions(key, PermissionsExt::from_mode(0o644)).unwrap();
    let ran = tls.watch("host=localhost", &own);
    ran.exits(2);
    std::fs::set_permissions(key, PermissionsExt::from_mode(0o600)).unwrap();
    // The second try of `allow` is that with TLS.
    for mode in ["prefer", "allow", "require"] {
        let ran = tls.watch("host=localhost", &format!("{own} sslmode={mode}"));
        ran.exits(0);
    }
    let ran = tls.watch("host=localhost", &format!("{own} sslmode=disable"));
    assert_refused(&ran, "no encryption");
    let ran = tls.watch("host=localhost", "dbname=template1 sslmode=require");
    assert_refused(&ran, "ertificate");
}

#[test]
fn service_and_password_files_complete_the_connection() {
    let Some(bin) = server("service_and_password_files_complete_the_connection") else {
        return;
    };
    let tls = TlsServer::start(&bin);
    let (services, passwords) = (
        tls.here.path().join("services"),
        tls.here.path().join("pass"),
    );
    let port = tls.server.port;
    let root = tls.authority.path("ca.crt");
    std::fs::write(
        &passwords,
        format!("localhost:{port}:*:postgres:{PASSWORD}\n"),
    )
    .unwrap();
    std::fs::set_permissions(&passwords, PermissionsExt::from_mode(0o600)).unwrap();
    // Nobody listens on the first host.
    let text = format!(
        "[prod]\nhost=localhost,localhost\nhostaddr=127.0.0.1,127.0.0.1\nport=1,{port}\n\
         user=postgres\ndbname=postgres\npassfile={}\nsslmode=verify-full\nsslrootcert={root}\n",
        passwords.display()
    );
    std::fs::write(&services, text).unwrap();
    let mut command = crate::program::program(["watch", "-i", "1s", "-c", "2", "--postgres", ""]);
    let ran = command
        .env("PGSERVICE", "prod")
        .env("PGSERVICEFILE", &services);
    let ran = Ran::of(ran);
    ran.exits(0).tells_not("the password");
}
