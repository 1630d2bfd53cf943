//! Leaves the tables for unwinding out of the installed program (`--profile dist`), where a panic
//! aborts: 1.0 of 8.4 MB. A profile cannot pass arguments to the linker, so this script does.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=no_unwind_tables.ld");
    let env = |name| std::env::var(name).expect("cargo sets it for build scripts");
    // OUT_DIR is target/PROFILE/build/PACKAGE/out; nothing else names a custom profile.
    let out = env("OUT_DIR");
    let profile = Path::new(&out).ancestors().nth(3).and_then(Path::file_name);
    // Only where both linkers of the target, GNU ld and lld, were tried.
    if profile.is_some_and(|name| name == "dist") && env("CARGO_CFG_TARGET_ENV") == "gnu" {
        let script = Path::new(&env("CARGO_MANIFEST_DIR")).join("no_unwind_tables.ld");
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
    }
}
