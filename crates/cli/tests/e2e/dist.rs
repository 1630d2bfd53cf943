//! What `dist/build` makes of two programs: the packages of four distributions and an image, each
//! for both machines, in a target directory of the user's own.

use crate::deploy::assert_ran;
use crate::program::{argv, program_path};
use diskproof_simdisk::testbed::{TempDir, place};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const MACHINES: [&str; 2] = ["x86_64", "aarch64"];

fn dist_build(target: &Path, arguments: &[&str]) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/build");
    let mut command = Command::new(script);
    command
        .args(arguments)
        .env("CARGO_TARGET_DIR", target)
        .env("SOURCE_DATE_EPOCH", "1795708234");
    command
}

/// The tools that the script installs, in fixed versions, are those of earlier runs.
fn share_tools(target: &Path) {
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dist-tools");
    if !tools.join("bin/pip").exists() {
        assert_ran(Command::new("python3").args(["-m", "venv"]).arg(&tools));
    }
    fs::create_dir_all(target).unwrap();
    std::os::unix::fs::symlink(tools, target.join("dist-tools")).unwrap();
}

/// A folder with a stand-in for each program: it writes the documents that packages hold.
fn programs() -> TempDir {
    let place = place();
    for machine in MACHINES {
        let path = place
            .path()
            .join(format!("diskproof-{VERSION}-linux-{machine}"));
        let text = format!("#!/bin/sh\n# {machine}\nexec '{}' \"$@\"\n", program_path());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    place
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn dist_build_compiles_and_deletes_nothing_for_help_or_a_mistake() {
    let place = place();
    let shipped = place.path().join("shipped");
    fs::create_dir(&shipped).unwrap();
    fs::write(shipped.join("SHA256SUMS"), "kept").unwrap();
    for (arguments, code) in [
        (&["--help"][..], 0),
        (&["-h"], 0),
        (&["nonsense"], 2),
        (&["--programs"], 2),
        (&["--programs", "/nonexistent"], 2),
    ] {
        let output = dist_build(place.path(), arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert_eq!(text(&output).contains("--programs DIR"), code == 0);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        assert_eq!(
            fs::read_to_string(shipped.join("SHA256SUMS")).unwrap(),
            "kept"
        );
    }
}

/// Before anything is made, with the line that installs it.
#[test]
fn dist_build_names_what_the_machine_lacks() {
    let place = place();
    let programs = place.path().join("bin");
    fs::create_dir(&programs).unwrap();
    for name in ["bash", "dirname", "sed", "head", "realpath", "python3"] {
        let found = assert_ran(Command::new("sh").args(["-c", &format!("command -v {name}")]));
        let path = PathBuf::from(text(&found).trim());
        std::os::unix::fs::symlink(path, programs.join(name)).unwrap();
    }
    let target = place.path().join("target");
    let mut command = dist_build(&target, &[]);
    let output = command.env("PATH", &programs).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr);
    for line in [
        "git: sudo apt-get install git",
        "rustup: see https://rustup.rs",
        "gzip: ",
    ] {
        assert!(stderr.contains(line), "{stderr}");
    }
    assert!(!target.exists());
}

fn assert_packages(shipped: &Path) {
    let deb = |name: &str, flags: &str| {
        let mut command = Command::new("dpkg-deb");
        text(&assert_ran(
            command.args(argv(flags)).arg(shipped.join(name)),
        ))
    };
    for machine in ["amd64", "arm64"] {
        let name = format!("diskproof_{VERSION}-1_{machine}.deb");
        let field = deb(&name, "--info");
        assert!(
            field.contains(&format!("Architecture: {machine}")),
            "{field}"
        );
        let files = deb(&name, "--contents");
        for path in [
            "./usr/bin/diskproof\n",
            "./usr/lib/nagios/plugins/check_diskproof -> /usr/bin/diskproof\n",
            "./usr/share/man/man1/diskproof-check.1.gz\n",
            "./usr/lib/systemd/system/diskproof-check.timer\n",
            "./usr/share/bash-completion/completions/diskproof\n",
        ] {
            assert!(files.contains(path), "{path} {files}");
        }
    }
    // Links fit every machine.
    let links = format!("diskproof-drop-ins_{VERSION}-1_all.deb");
    assert!(deb(&links, "--info").contains("Architecture: all"));
    let files = deb(&links, "--contents");
    assert!(
        files.contains("/drop-ins/fio -> /usr/bin/diskproof"),
        "{files}"
    );
    for name in [
        format!("diskproof-{VERSION}-1.x86_64.rpm"),
        format!("diskproof-{VERSION}-1.aarch64.rpm"),
        format!("diskproof-drop-ins-{VERSION}-1.noarch.rpm"),
        format!("diskproof_{VERSION}-r1_x86_64.apk"),
        format!("diskproof_{VERSION}-r1_aarch64.apk"),
        format!("diskproof-drop-ins_{VERSION}-r1_noarch.apk"),
        format!("diskproof-{VERSION}-1-x86_64.pkg.tar.zst"),
        format!("diskproof-{VERSION}-1-aarch64.pkg.tar.zst"),
        format!("diskproof-drop-ins-{VERSION}-1-any.pkg.tar.zst"),
    ] {
        assert!(shipped.join(&name).exists(), "{name}");
    }
}

/// Each blob has its digest, and each machine the program that is its own.
fn assert_image(shipped: &Path) {
    let layout = place();
    let archive = shipped.join(format!("diskproof-{VERSION}-oci.tar"));
    let mut unpack = Command::new("tar");
    assert_ran(unpack.arg("-xf").arg(archive).arg("-C").arg(layout.path()));
    let blob = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().unwrap();
        let hex = digest.strip_prefix("sha256:").unwrap();
        let path = layout.path().join("blobs/sha256").join(hex);
        let sum = text(&assert_ran(Command::new("sha256sum").arg(&path)));
        assert!(sum.starts_with(hex), "{sum}");
        let content = fs::read(path).unwrap();
        assert_eq!(descriptor["size"].as_u64(), Some(content.len() as u64));
        content
    };
    let read = |descriptor: &Value| -> Value { serde_json::from_slice(&blob(descriptor)).unwrap() };
    let index = fs::read_to_string(layout.path().join("index.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    let machines = read(&index["manifests"][0]);
    let machines = machines["manifests"].as_array().unwrap();
    assert_eq!(machines.len(), 2);
    for (image, (architecture, machine)) in machines
        .iter()
        .zip([("amd64", "x86_64"), ("arm64", "aarch64")])
    {
        assert_eq!(image["platform"]["architecture"], architecture);
        let manifest = read(image);
        let config = read(&manifest["config"]);
        assert_eq!(config["architecture"], architecture);
        assert_eq!(config["config"]["User"], "10001:10001");
        assert_eq!(
            config["rootfs"]["diff_ids"][0],
            manifest["layers"][0]["digest"]
        );
        let layer = String::from_utf8_lossy(&blob(&manifest["layers"][0])).into_owned();
        assert!(layer.contains(&format!("\n# {machine}\n")));
    }
}

#[test]
fn dist_build_ships_the_same_bytes_from_any_target_directory() {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        println!("SKIPPED: dist_build_ships_the_same_bytes_from_any_target_directory: dpkg-deb");
        return;
    }
    let (programs, place) = (programs(), place());
    let from = programs.path().to_str().unwrap();
    let mut sums = Vec::new();
    for target in ["first", "another/place"] {
        let target = place.path().join(target);
        share_tools(&target);
        let parts = ["--programs", from, "packages", "image"];
        let output = dist_build(&target, &parts).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        if stderr.contains("No matching distribution") || stderr.contains("connection") {
            println!("SKIPPED: dist_build_ships_the_same_bytes_from_any_target_directory: PyPI");
            return;
        }
        assert!(output.status.success(), "{stderr}");
        let shipped = target.join("shipped");
        assert!(!target.join("shipped.new").exists());
        sums.push(fs::read_to_string(shipped.join("SHA256SUMS")).unwrap());
        assert_packages(&shipped);
        assert_image(&shipped);
    }
    assert_eq!(sums[0], sums[1]);
    // A part that is made again leaves the others, also where `cp -n` fails if it skips a file.
    let target = place.path().join("first");
    let tools = folder_with_failing_cp(place.path());
    let output = dist_build(&target, &["--programs", from, "image"])
        .env(
            "PATH",
            format!("{tools}:{}", std::env::var("PATH").unwrap()),
        )
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_packages(&target.join("shipped"));
}

/// A new folder with a `cp` that fails with `-n`, as that of coreutils 9.2 to 9.4 does where it
/// skips a file.
fn folder_with_failing_cp(place: &Path) -> String {
    let folder = place.join("tools");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("cp");
    let text = "#!/bin/sh\ncase \" $* \" in *' -n '*) exit 1;; esac\nexec /bin/cp \"$@\"\n";
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    folder.display().to_string()
}
