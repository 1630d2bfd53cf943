//! Manual pages and completion scripts: complete, and well-formed.

use crate::program::{names, program, run};
use diskproof_simdisk::testbed::place;
use std::path::Path;
use std::process::Command;

/// The verbs as `--help` lists them.
fn verbs() -> Vec<String> {
    let help = run(["--help"]).out;
    let list = help.split("Commands:\n").nth(1).unwrap();
    list.lines()
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The long flags as the help of a verb lists them.
fn flags(verb: &str) -> Vec<String> {
    let help = run([verb, "--help"]).out;
    help.lines()
        .filter(|line| line.trim_start().starts_with('-'))
        .filter_map(|line| line.split("--").nth(1))
        .map(|rest| {
            rest.chars()
                .take_while(|&letter| letter.is_ascii_lowercase() || letter == '-')
                .collect()
        })
        .collect()
}

#[test]
fn manual_has_a_page_for_each_verb_and_each_page_every_flag() {
    let here = place();
    let directory = here.path().join("man/man1");
    // A typing error makes no directory.
    let ran = run(["man", directory.to_str().unwrap()]);
    ran.exits(2).tells("mkdir -p");
    assert_eq!(names(here.path()), [""; 0]);
    std::fs::create_dir_all(&directory).unwrap();
    let ran = run(["man", directory.to_str().unwrap()]);
    ran.exits(0);
    let verbs = verbs();
    assert!(verbs.len() > 8, "{verbs:?}");
    let drop_ins = diskproof_compat::drop_ins();
    assert_eq!(names(&directory).len(), verbs.len() + 1 + drop_ins.len());
    for tool in drop_ins {
        let path = directory.join(format!("diskproof-as-{}.1", tool.name));
        let page = std::fs::read_to_string(path).unwrap();
        for section in ["OPTIONS", "\"EXIT STATUS\"", "EXAMPLES"] {
            let head = format!(".SH {section}\n");
            assert!(page.contains(&head), "{}: {section}", tool.name);
        }
        let native = directory.join(format!("diskproof-{}.1", tool.native));
        assert!(native.exists(), "{}: {}", tool.name, tool.native);
    }
    for verb in &verbs {
        let page = std::fs::read_to_string(directory.join(format!("diskproof-{verb}.1"))).unwrap();
        let page = page.replace("\\-", "-");
        let flags = flags(verb);
        assert!(flags.contains(&"help".to_owned()), "{verb}: {flags:?}");
        for flag in flags {
            assert!(page.contains(&format!("--{flag}")), "{verb} --{flag}");
        }
        for section in ["NAME", "SYNOPSIS", "OPTIONS", "EXIT STATUS", "SEE ALSO"] {
            assert!(page.contains(section), "{verb}: {section}");
        }
    }
    let overview = std::fs::read_to_string(directory.join("diskproof.1")).unwrap();
    for verb in &verbs {
        assert!(overview.contains(&format!("diskproof\\-{verb}")), "{verb}");
    }
}

#[test]
fn manual_is_not_written_in_place_of_a_file() {
    let here = place();
    let file = here.path().join("data");
    std::fs::write(&file, "kept").unwrap();
    let ran = run(["man", file.to_str().unwrap()]);
    ran.exits(2).tells("directory");
    assert_eq!(std::fs::read(&file).unwrap(), b"kept");
    // A page whose name leads to a device.
    std::os::unix::fs::symlink("/dev/full", here.path().join("diskproof.1")).unwrap();
    let ran = run(["man", here.path().to_str().unwrap()]);
    ran.exits(4).tells("device");
}

/// The completions of the last word of a command line, as bash finds them with this script.
fn completed_by_bash(script: &Path, line: &str) -> String {
    let asks = "source \"$0\"; COMP_WORDS=(diskproof $1); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); \
                cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}; \
                _diskproof diskproof \"$cur\" \"$prev\"; echo \"${COMPREPLY[*]}\"";
    let mut bash = Command::new("bash");
    let ran = bash.args(["-c", asks]).arg(script).arg(line).output();
    let out = ran.unwrap().stdout;
    String::from_utf8(out).unwrap().trim().to_owned()
}

#[test]
fn completions_name_every_verb() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(["completions", shell]).out;
        for verb in verbs() {
            assert!(script.contains(&verb), "{shell}: {verb}");
        }
    }
    let here = place();
    let script = here.path().join("diskproof.bash");
    std::fs::write(&script, run(["completions", "bash"]).out).unwrap();
    let checked = Command::new("bash")
        .arg("-n")
        .arg(&script)
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");
    assert_eq!(completed_by_bash(&script, "info --jso"), "--json");
    let ran = program(["completions", "csh"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
}
