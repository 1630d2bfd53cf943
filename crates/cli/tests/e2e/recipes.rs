//! The steps of the CI recipes run in a folder of their own, and what they write is what its
//! consumers read.

use crate::deploy::deploy;
use crate::program::copy_program;
use boon::{Compiler, Schemas};
use diskproof_simdisk::testbed::place;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

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

/// The commands of `script:`; a line without a dash continues the one before.
fn gitlab_script(text: &str) -> String {
    let after = text.split_once("  script:\n").unwrap().1;
    let mut script = String::new();
    for line in after.lines().take_while(|line| indent(line) >= 4) {
        match line.trim().strip_prefix("- ") {
            Some(command) => script += &format!("\n{command}"),
            None => script += &format!(" {}", line.trim()),
        }
    }
    script
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a script as the runner does; `diskproof` there measures in the shortest time.
fn run_script(folder: &Path, script: &str) -> Output {
    let programs = folder.join("programs");
    if !programs.exists() {
        fs::create_dir(&programs).unwrap();
        let real = programs.join("real");
        fs::create_dir(&real).unwrap();
        copy_program(&real.join("diskproof"));
        let text = "short=\n[ $1 != compare ] || short='--time 9s'\n\
                    exec \"${0%/*}/real/diskproof\" \"$@\" --size 32M $short";
        write_program(&programs.join("diskproof"), text);
    }
    let path = std::env::var("PATH").unwrap();
    Command::new("bash")
        .args(["-e", "-c", script])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("GITHUB_BASE_REF", "main")
        .env("GITHUB_STEP_SUMMARY", folder.join("summary.md"))
        .output()
        .unwrap()
}

fn assert_ended(output: &Output, codes: &[i32], script: &str) {
    let code = output.status.code().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(codes.contains(&code), "{script}\n{code} {told}");
}

/// A project whose `make build` makes a program, with a branch to compare with.
const PROJECT: &str = "
git init -q -b main . && printf 'build:\\n\\tmkdir -p build && cp load build/loader\\n' >Makefile
printf '#!/bin/sh\\nhead -c 4096 /dev/zero >\"$1/loaded\"\\n' >load && chmod +x load
printf 'programs\\nbuild\\nloader-*\\n' >.gitignore
git add . && git -c user.name=a -c user.email=a@b commit -qm one
git clone -q --bare . ../origin.git && git remote add origin ../origin.git
";

#[test]
fn github_steps_run() {
    let place = place();
    let folder = place.path().join("project");
    fs::create_dir(&folder).unwrap();
    for program in ["git", "make"] {
        if Command::new(program).arg("--version").output().is_err() {
            println!("SKIPPED: github_steps_run: {program}");
            return;
        }
    }
    assert_ended(&run_script(&folder, PROJECT), &[0], PROJECT);
    let scripts = github_scripts(&recipe("github-actions.yml"));
    assert_eq!(scripts.len(), 3);
    for script in &scripts {
        // A busy machine may find one of two equal programs slower.
        assert_ended(&run_script(&folder, script), &[0, 1], script);
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

#[test]
fn gitlab_script_runs() {
    let place = place();
    write_program(
        &place.path().join("apply"),
        "[ \"$1\" = old ] || [ \"$1\" = new ]",
    );
    let text = recipe("gitlab-ci.yml");
    let script = gitlab_script(&text);
    assert_eq!(script.trim().lines().count(), 2, "{script}");
    let output = run_script(place.path(), &script);
    // As its allow_failure has it.
    assert!(text.contains("exit_codes: [5]"));
    assert_ended(&output, &[0, 1, 5], &script);
    for name in ["compare.html", "compare.json"] {
        assert!(place.path().join(name).exists(), "{name}");
    }
}
