//! Leaves the tables for unwinding out of the installed program (`--profile dist`), where a panic
//! aborts: 1.3 of 11.2 MB. A profile cannot pass arguments to the linker, so this script does.
//! Gives optimised programs the commit that they are built from, for `--version`.

use std::path::Path;
use std::process::Command;

/// What git prints; nothing if it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The commit that `cargo package` noted in the package of the registry.
fn packaged_commit() -> Option<String> {
    let text = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = text.split_once("\"sha1\": \"")?;
    rest.get(..8).map(str::to_owned)
}

/// ` (5a06137b 2026-11-25)`; empty while developing, where it would compile the program anew after
/// every commit.
fn commit() -> String {
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        return String::new();
    }
    if let Some(commit) = packaged_commit() {
        return format!(" ({commit})");
    }
    // A package that is unpacked inside another repository is no part of it.
    if git(&["ls-files", "--error-unmatch", "build.rs"]).is_none() {
        return String::new();
    }
    // The log of commits, which every new one changes.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit = git(&["log", "-1", "--abbrev=8", "--format=%h %cs"]);
    commit.map_or_else(String::new, |text| format!(" ({text})"))
}

fn main() {
    println!("cargo::rerun-if-changed=no_unwind_tables.ld");
    println!("cargo::rustc-env=DISKPROOF_COMMIT={}", commit());
    let env = |name| std::env::var(name).expect("cargo sets it for build scripts");
    // OUT_DIR is target/PROFILE/build/PACKAGE/out; nothing else names a custom profile.
    let out = env("OUT_DIR");
    let profile = Path::new(&out).ancestors().nth(3).and_then(Path::file_name);
    // GNU ld and lld (also as zig's) take the script.
    if profile.is_some_and(|name| name == "dist") {
        let script = Path::new(&env("CARGO_MANIFEST_DIR")).join("no_unwind_tables.ld");
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
    }
}
