//! What `deploy/` holds is read by the tools it is for.

use crate::program::{argv, copy_program, names, needs};
use diskproof_simdisk::testbed::{can_run, place};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

pub(crate) fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(deploy().join(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|is| is == extension))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{folder}");
    files
}

pub(crate) fn assert_ran(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let told = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        told[0],
        told[1]
    );
    output
}

#[test]
fn version_is_the_same_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    let changelog = fs::read_to_string(deploy().join("../CHANGELOG.md")).unwrap();
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## "));
    assert_eq!(newest, Some(version));
    for manifest in files("kubernetes", "yaml") {
        let text = fs::read_to_string(&manifest).unwrap();
        let tags: Vec<&str> = text
            .split("image: diskproof:")
            .skip(1)
            .filter_map(|rest| rest.lines().next())
            .collect();
        assert_eq!(tags, [version], "{}", manifest.display());
    }
}

/// The folder of a package of PyPI, for PYTHONPATH: installed once in each target directory.
fn of_pypi(package: &str) -> Option<PathBuf> {
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pypi");
    let kept = all.join(package);
    if kept.exists() {
        return Some(kept);
    }
    fs::create_dir_all(&all).unwrap();
    let fresh = tempfile::tempdir_in(&all).unwrap();
    let install = argv("install --quiet --disable-pip-version-check --target");
    let mut pip = Command::new("pip3");
    pip.args(install).arg(fresh.path()).arg(package);
    if !pip.output().is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: {package} of PyPI cannot be installed");
        return None;
    }
    // Whole, or not at all: another run may install it at the same time.
    match fs::rename(fresh.path(), &kept) {
        Ok(()) => Some(kept),
        Err(_) if kept.exists() => Some(kept),
        Err(error) => panic!("{}: {error}", kept.display()),
    }
}

#[test]
fn manifests_are_valid() {
    let Some(tools) = of_pypi("kubernetes-validate") else {
        return;
    };
    for manifest in files("kubernetes", "yaml") {
        let mut command = Command::new(tools.join("bin/kubernetes-validate"));
        command
            .arg("--strict")
            .arg(&manifest)
            .env("PYTHONPATH", &tools);
        assert_ran(&mut command);
    }
}

/// Each change of a manifest is one that the policy forbids.
const FORBIDDEN: [(&str, &str); 7] = [
    ("runAsNonRoot: true", "runAsNonRoot: false"),
    ("type: RuntimeDefault", "type: Unconfined"),
    (
        "allowPrivilegeEscalation: false",
        "allowPrivilegeEscalation: true",
    ),
    ("drop: [ALL]", "drop: [NET_RAW]"),
    ("drop: [ALL]", "drop: [ALL], add: [SYS_ADMIN]"),
    ("    spec:\n", "    spec:\n      hostPID: true\n"),
    (
        "    volumeMounts",
        "    ports: [{containerPort: 1, hostPort: 1}]\n          volumeMounts",
    ),
];

#[test]
fn manifests_are_admitted_under_the_restricted_policy() {
    let Some(tools) = of_pypi("pyyaml") else {
        return;
    };
    let place = place();
    let checker = place.path().join("restricted.py");
    fs::write(&checker, include_str!("restricted.py")).unwrap();
    let check = |manifest: &Path| {
        let mut command = Command::new("python3");
        command.arg(&checker).arg(manifest);
        command.env("PYTHONPATH", &tools).output().unwrap()
    };
    for manifest in files("kubernetes", "yaml") {
        let output = check(&manifest);
        let told = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{told}");
        let text = fs::read_to_string(&manifest).unwrap();
        for (allowed, forbidden) in FORBIDDEN {
            assert!(text.contains(allowed), "{}: {allowed}", manifest.display());
            let changed = place.path().join("changed.yaml");
            fs::write(&changed, text.replace(allowed, forbidden)).unwrap();
            let code = check(&changed).status.code();
            assert_eq!(code, Some(1), "{}: {forbidden}", manifest.display());
        }
    }
}

#[test]
fn pipelines_follow_the_schemas_of_github_and_gitlab() {
    let Some(tools) = of_pypi("check-jsonschema") else {
        return;
    };
    for (schema, file) in [
        ("vendor.github-workflows", "github-actions.yml"),
        ("vendor.gitlab-ci", "gitlab-ci.yml"),
    ] {
        let mut command = Command::new(tools.join("bin/check-jsonschema"));
        command
            .args(["--builtin-schema", schema])
            .arg(deploy().join("ci").join(file))
            .env("PYTHONPATH", &tools);
        assert_ran(&mut command);
    }
}

#[test]
fn alert_rules_fire_as_intended() {
    if can_run("alert_rules_fire_as_intended", &["promtool"]) {
        for (verb, file) in [
            ("check", "diskproof.rules.yml"),
            ("test", "diskproof.rules.test.yml"),
        ] {
            let mut command = Command::new("promtool");
            command
                .args([verb, "rules", file])
                .current_dir(deploy().join("prometheus"));
            assert_ran(&mut command);
        }
    }
}

#[test]
fn metrics_of_rules_and_of_the_dashboard_exist() {
    let docs = fs::read_to_string(deploy().join("../docs/formats.md")).unwrap();
    let rules = fs::read_to_string(deploy().join("prometheus/diskproof.rules.yml")).unwrap();
    let dashboard = fs::read_to_string(deploy().join("grafana/diskproof.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    assert!(
        json["panels"]
            .as_array()
            .is_some_and(|panels| panels.len() > 4)
    );
    let mut known = 0;
    for text in [rules, dashboard] {
        for rest in text.split("diskproof_").skip(1) {
            let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
            let name: String = rest.chars().take_while(|c| is_name(*c)).collect();
            let name = format!("`diskproof_{name}`");
            assert!(docs.contains(&name), "docs/formats.md lacks {name}");
            known += 1;
        }
    }
    assert!(known > 10);
}

/// Grafana's own types read the dashboard, and write it again with everything that it has.
#[test]
fn dashboard_is_one_of_grafana() {
    const READ: &str = r#"
import json, sys
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
plugins.register_default_plugins()
given = json.load(open(sys.argv[1]))
known = json.loads(JSONEncoder().encode(Dashboard.from_json(given)))
# What asks at the import, and the query as the editor shows it.
ignored = {"__inputs", "definition"}
def lost(a, b, path):
    if isinstance(a, dict):
        for key in a.keys() - ignored:
            yield from lost(a[key], b[key], f"{path}/{key}") if key in b else [f"{path}/{key}"]
    elif isinstance(a, list) and len(a) == len(b):
        for one, other in zip(a, b):
            yield from lost(one, other, path)
    elif a != b:
        yield path
sys.exit("\n".join(lost(given, known, "")) or None)
"#;
    if let Some(tools) = of_pypi("grafana-foundation-sdk") {
        let mut command = Command::new("python3");
        command
            .args(["-c", READ])
            .arg(deploy().join("grafana/diskproof.json"))
            .env("PYTHONPATH", &tools);
        assert_ran(&mut command);
    }
}

/// The lines of docs/monitoring.md with which the service may ask disks for their health.
fn drop_in_for_health() -> String {
    let docs = fs::read_to_string(deploy().join("../docs/monitoring.md")).unwrap();
    let (_, rest) = docs.split_once("the health grants").unwrap();
    let lines: Vec<&str> = rest
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .take_while(|line| !line.starts_with("check_diskproof"))
        .collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    lines.join("\n")
}

#[test]
fn units_are_valid_and_confined() {
    needs!("systemd-analyze");
    let place = place();
    // `verify` also looks for the program.
    for unit in fs::read_dir(deploy().join("systemd")).unwrap() {
        let unit = unit.unwrap().path();
        let text = fs::read_to_string(&unit).unwrap();
        let text = text.replace("/usr/bin/diskproof", "/bin/true");
        let text = text.replace("Documentation=man:diskproof-check(1)\n", "");
        fs::write(place.path().join(unit.file_name().unwrap()), text).unwrap();
    }
    let drop_ins = place.path().join("diskproof-check.service.d");
    fs::create_dir(&drop_ins).unwrap();
    fs::write(drop_ins.join("health.conf"), drop_in_for_health()).unwrap();
    for unit in ["diskproof-check.service", "diskproof-check.timer"] {
        let mut command = Command::new("systemd-analyze");
        let output = assert_ran(command.args(["verify", unit]).current_dir(place.path()));
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!told.contains("diskproof-check"), "{told}");
    }
    fs::remove_dir_all(&drop_ins).unwrap();
    // From 0 (confined) to 100 (not at all): fails above the threshold.
    let security = argv("security --offline=true --threshold=20 diskproof-check.service");
    assert_ran(
        Command::new("systemd-analyze")
            .args(security)
            .current_dir(place.path()),
    );
}

/// The words of the service's command, with these paths in place of its own.
fn command_of_service(program: &Path, target: &Path, state: &Path) -> Vec<String> {
    let unit = fs::read_to_string(deploy().join("systemd/diskproof-check.service")).unwrap();
    let (_, rest) = unit.split_once("\nExecStart=").unwrap();
    let joined = rest.replace("\\\n", " ");
    let line = joined.lines().next().unwrap();
    let mut words = Vec::new();
    for word in line.split_whitespace() {
        words.push(
            word.replace("/usr/bin/diskproof", program.to_str().unwrap())
                .replace("${DISKPROOF_TARGET}", target.to_str().unwrap())
                .replace("/var/lib/diskproof", state.to_str().unwrap()),
        );
    }
    words
}

/// Runs the service's command as systemd does: root with the capabilities of the unit, and only
/// these two folders writable.
fn run_service(target: &Path, state: &Path) -> Output {
    let unit = fs::read_to_string(deploy().join("systemd/diskproof-check.service")).unwrap();
    for user in ["\nUser=", "\nDynamicUser="] {
        assert!(!unit.contains(user), "{user}");
    }
    let (_, rest) = unit.split_once("\nCapabilityBoundingSet=").unwrap();
    let mut bounding = "-all".to_owned();
    for capability in rest.lines().next().unwrap().split_whitespace() {
        let name = capability.strip_prefix("CAP_").unwrap().to_lowercase();
        bounding += &format!(",+{name}");
    }
    let place = place();
    let program = place.path().join("diskproof");
    copy_program(&program);
    let script = "mount --make-rprivate / && mount --bind \"$1\" \"$1\" && \
                  mount --bind \"$2\" \"$2\" && mount -o remount,bind,ro / && cd / && shift 2 && \
                  exec setpriv --bounding-set=\"$BOUNDING\" --inh-caps=-all --no-new-privs env -i \
                  \"$@\" --size 32M --time 3s";
    let words = command_of_service(&program, target, state);
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", script, "sh"])
        .args([target, state])
        .args(words.iter().filter(|word| *word != "--quick"))
        .env("BOUNDING", bounding);
    command.output().unwrap()
}

#[test]
fn service_measures_directories_of_any_user_and_its_metrics_are_readable() {
    needs!("unshare", "setpriv");
    let place = place();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for (name, owner, mode) in [
        ("of_root", 0, 0o755),
        ("closed", 0, 0o700),
        ("of_postgres", 999, 0o700),
    ] {
        let target = place.path().join(name);
        let state = place.path().join(format!("state_{name}"));
        for folder in [&target, &state] {
            fs::create_dir(folder).unwrap();
        }
        fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(&target, Some(owner), Some(owner)).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(mode)).unwrap();
        let output = run_service(&target, &state);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 1 | 5)),
            "{name}: {told}"
        );
        let mut reader = Command::new("setpriv");
        reader
            .args(argv("--reuid 65534 --regid 65534 --clear-groups cat"))
            .arg(state.join("check.prom"));
        let metrics = assert_ran(&mut reader).stdout;
        assert!(String::from_utf8_lossy(&metrics).contains("diskproof_run_info"));
        assert_eq!(names(&target).len(), 0, "{name}");
    }
}
