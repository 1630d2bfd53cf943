//! The steps of the CI recipes run in a folder of their own, in an environment that has only what
//! a runner has, and what they write is what its consumers read.

use crate::deploy::deploy;
use crate::program::{content_hash, program_path};
use boon::{Compiler, Schemas};
use diskproof_simdisk::testbed::place;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Where a runner finds its programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

fn recipe(name: &str) -> String {
    fs::read_to_string(deploy().join("ci").join(name)).unwrap()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The scripts of the steps: `run: |` with its lines, or `run: words`.
fn github_scripts(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut scripts = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let step = line.trim().trim_start_matches("- ");
        let Some(script) = step.strip_prefix("run: ") else {
            continue;
        };
        let of_block = lines[index + 1..]
            .iter()
            .take_while(|next| indent(next) > indent(line));
        scripts.push(match script {
            "|" => of_block.map(|next| format!("{}\n", next.trim())).collect(),
            script => script.to_owned(),
        });
    }
    scripts
}

/// The commands of `before_script:` and `script:`, which run in one shell; a line without a dash
/// continues the one before.
fn gitlab_script(text: &str) -> String {
    let mut script = String::new();
    for section in ["\n  before_script:\n", "\n  script:\n"] {
        let (_, after) = text.split_once(section).unwrap();
        for line in after.lines().take_while(|line| indent(line) >= 4) {
            match line.trim().strip_prefix("- ") {
                Some(command) => script += &format!("\n{command}"),
                None => script += &format!(" {}", line.trim()),
            }
        }
    }
    script
}

/// Whether the machine lacks a program that every runner has.
fn is_missing(test: &str, programs: &[&str]) -> bool {
    for program in programs {
        if Command::new(program).arg("--version").output().is_err() {
            println!("SKIPPED: {test}: {program}");
            return true;
        }
    }
    false
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a script as the runner does: with its own home, and with the folders that earlier steps
/// have added to the path. What it downloads as diskproof measures in the shortest time.
fn run_script(folder: &Path, script: &str) -> Output {
    let shipped = folder.join("shipped");
    if !shipped.exists() {
        let text = format!(
            "short=\n[ $1 != compare ] || short='--time 9s'\nexec '{}' \"$@\" --size 32M $short",
            program_path()
        );
        write_program(&shipped, &text);
    }
    let hash = content_hash(&shipped);
    let added = folder.join("path");
    let mut path = PATH.to_owned();
    for line in fs::read_to_string(&added).unwrap_or_default().lines() {
        path = format!("{line}:{path}");
    }
    Command::new("bash")
        .args(["-e", "-c", script])
        .current_dir(folder)
        .env_clear()
        .env("PATH", path)
        .env("HOME", folder.join("home"))
        .env("DISKPROOF_URL", format!("file://{}", shipped.display()))
        .env("DISKPROOF_SHA256", hash.split_whitespace().next().unwrap())
        .env("GITHUB_PATH", added)
        .env("GITHUB_BASE_REF", "main")
        .env("GITHUB_STEP_SUMMARY", folder.join("summary.md"))
        .output()
        .unwrap()
}

fn assert_ended(output: &Output, codes: &[i32], script: &str) {
    let code = output.status.code().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(codes.contains(&code), "{script}\n{code} {stderr}");
}

/// A project whose script `apply` names its setting, with a branch to compare with.
const PROJECT: &str = "
git init -q -b main .
printf '#!/bin/sh\\necho old >>\"$1/../applied\"\\n' >apply && chmod +x apply
git add . && git -c user.name=a -c user.email=a@b commit -qm one
git clone -q --bare . ../origin.git && git remote add origin ../origin.git
printf '#!/bin/sh\\necho new >>\"$1/../applied\"\\n' >apply
";

#[test]
fn github_steps_run() {
    if is_missing("github_steps_run", &["git", "curl"]) {
        return;
    }
    let place = place();
    let folder = place.path().join("project");
    fs::create_dir(&folder).unwrap();
    assert_ended(&run_script(&folder, PROJECT), &[0], PROJECT);
    let scripts = github_scripts(&recipe("github-actions.yml"));
    assert_eq!(scripts.len(), 5);
    for script in &scripts {
        // A busy machine may find one of two equal programs slower.
        assert_ended(&run_script(&folder, script), &[0, 1], script);
    }
    // Each setting was made effective by its own script.
    let applied = fs::read_to_string(folder.join("applied")).unwrap();
    for setting in ["old", "new"] {
        assert!(applied.lines().any(|line| line == setting), "{applied}");
    }
    let summary = fs::read_to_string(folder.join("summary.md")).unwrap();
    assert!(summary.contains("commit-fdatasync"), "{summary}");
    assert!(folder.join("compare.html").exists());
    for (name, schema) in [
        ("run.bmf.json", bencher()),
        ("rates.bigger.json", benchmark_action()),
        ("times.smaller.json", benchmark_action()),
    ] {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler.add_resource("s.json", schema).unwrap();
        let schema = compiler.compile("s.json", &mut schemas).unwrap();
        if let Err(error) = schemas.validate(&json, schema) {
            panic!("{name}: {error}");
        }
    }
}

/// What Bencher's adapter `json` reads (AdapterResults in its lib/bencher_adapter, JsonNewMetric in
/// lib/bencher_json; lengths of names in lib/bencher_valid): benchmark, measure, and a value with
/// the ends of its interval.
fn bencher() -> Value {
    json!({
        "type": "object", "minProperties": 1,
        "propertyNames": {"pattern": "^\\S.*$", "maxLength": 1024},
        "additionalProperties": {
            "type": "object", "minProperties": 1,
            "propertyNames": {"pattern": "^[0-9a-z]+(-[0-9a-z]+)*$", "maxLength": 64},
            "additionalProperties": {
                "type": "object", "required": ["value"], "additionalProperties": false,
                "properties": {
                    "value": {"type": "number"},
                    "lower_value": {"type": "number"},
                    "upper_value": {"type": "number"},
                },
            },
        },
    })
}

/// What github-action-benchmark reads for its tools `customBiggerIsBetter` and
/// `customSmallerIsBetter` (BenchmarkResult in its src/extract.ts); it takes the number from a
/// range of this form (src/extractRangeInfo.ts).
fn benchmark_action() -> Value {
    json!({
        "type": "array", "minItems": 1,
        "items": {
            "type": "object", "required": ["name", "unit", "value"],
            "additionalProperties": false,
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "unit": {"type": "string", "minLength": 1},
                "value": {"type": "number"},
                "range": {"type": "string", "pattern": "^(\\+-|±)\\s*\\d[0-9.]*$"},
                "extra": {"type": "string"},
            },
        },
    })
}

/// A pull request may come from anybody: its job may not write to the repository.
#[test]
fn only_pushes_to_the_default_branch_may_write() {
    let text = recipe("github-actions.yml");
    let (_, jobs) = text.split_once("\njobs:\n").unwrap();
    assert!(text.contains("\npermissions: {contents: read}\n"));
    let mut all: Vec<String> = Vec::new();
    for line in jobs.lines() {
        match all.last_mut() {
            Some(job) if indent(line) > 2 => *job += &format!("{line}\n"),
            _ => all.push(String::new()),
        }
    }
    assert_eq!(all.len(), 2);
    let mut writing = all.iter().filter(|job| job.contains("contents: write"));
    let follow = writing.next().unwrap();
    assert_eq!(writing.next(), None);
    assert!(follow.contains("if: github.event_name == 'push'"));
    let pushing = all.iter().filter(|job| job.contains("auto-push: true"));
    assert!(pushing.eq([follow]));
}

#[test]
fn gitlab_script_runs() {
    if is_missing("gitlab_script_runs", &["curl"]) {
        return;
    }
    let place = place();
    write_program(
        &place.path().join("apply"),
        "[ \"$1\" = old ] || [ \"$1\" = new ]",
    );
    let text = recipe("gitlab-ci.yml");
    let script = gitlab_script(&text);
    assert_eq!(script.trim().lines().count(), 7, "{script}");
    let output = run_script(place.path(), &script);
    // As its allow_failure has it.
    assert!(text.contains("exit_codes: [5]"));
    assert_ended(&output, &[0, 1, 5], &script);
    for name in ["compare.html", "compare.json"] {
        assert!(place.path().join(name).exists(), "{name}");
    }
}
