//! The completion of `diskproof as TOOL`: the tools, and the options of each. clap knows neither,
//! because a tool parses its own arguments.

use diskproof_compat::{DropIn, DropInOption, Treatment, drop_ins};
use std::fmt::Write as _;

/// Where the script of zsh starts to complete.
const ZSH_START: &str = "\nif [ \"$funcstack[1]\" = \"_diskproof\" ]; then\n";

/// The script of bash, with a function around it.
pub(super) fn with_tools_for_bash(script: &str) -> String {
    let mut cases = String::new();
    for tool in drop_ins() {
        let words = words(tool);
        let _ = writeln!(cases, "            {})", tool.name);
        let _ = writeln!(
            cases,
            "                COMPREPLY=( $(compgen -W '{words}' -- \"${{cur}}\") )"
        );
        cases.push_str("                return 0\n                ;;\n");
    }
    let names = names();
    format!(
        r#"{script}
_diskproof_as() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" at
    if [[ "${{COMP_WORDS[1]}}" != as ]]; then
        _diskproof "$@"
        return
    fi
    for (( at = 2; at < COMP_CWORD; at++ )); do
        case "${{COMP_WORDS[at]}}" in
{cases}        esac
    done
    _diskproof "$@"
    if [[ "${{cur}}" != -* ]]; then
        COMPREPLY+=( $(compgen -W '{names}' -- "${{cur}}") )
    fi
}}

complete -F _diskproof_as -o bashdefault -o default diskproof
"#
    )
}

/// The script of zsh, with a function around it.
pub(super) fn with_tools_for_zsh(script: &str) -> String {
    let mut cases = String::new();
    for tool in drop_ins() {
        let words = words(tool);
        let _ = writeln!(
            cases,
            "                ({}) compadd -- {words}; _files; return ;;",
            tool.name
        );
    }
    let names = names();
    let head = script.split(ZSH_START).next().unwrap_or(script);
    format!(
        r#"{head}
_diskproof_as() {{
    local at
    if [[ "$words[2]" == as ]]; then
        for (( at = 3; at < CURRENT; at++ )); do
            case "$words[at]" in
{cases}            esac
        done
        if [[ "$words[CURRENT]" != -* ]]; then
            compadd -- {names}
        fi
    fi
    _diskproof "$@"
}}

compdef _diskproof_as diskproof
if [ "$funcstack[1]" = "_diskproof" ]; then
    _diskproof_as "$@"
fi
"#
    )
}

/// The script of fish, with the lines of the tools.
pub(super) fn with_tools_for_fish(script: &str) -> String {
    let names = names();
    let mut script = script.to_owned();
    for tool in drop_ins() {
        let _ = writeln!(
            script,
            "complete -c diskproof -n \"__fish_seen_subcommand_from as; and not \
             __fish_seen_subcommand_from {names}\" -f -a '{}' -d '{}'",
            tool.name,
            quoted(tool.summary)
        );
        for option in completed(tool) {
            let _ = writeln!(
                script,
                "complete -c diskproof -n \"__fish_seen_subcommand_from {}\" {} -d '{}'",
                tool.name,
                fish_option(option),
                quoted(option.help)
            );
        }
    }
    script
}

/// An option as arguments of fish's `complete`.
fn fish_option(option: &DropInOption) -> String {
    let mut words = Vec::new();
    match option.short.strip_prefix('-') {
        Some(letter) if letter.len() == 1 => words.push(format!("-s '{letter}'")),
        _ if option.short.is_empty() => {}
        _ => words.push(format!("-a '{}'", option.short)),
    }
    if !option.long.is_empty() {
        words.push(format!("-l {}", option.long));
    }
    let has_value = !option.value.is_empty() && !option.value.starts_with('[');
    if has_value && !words.iter().any(|word| word.starts_with("-a")) {
        words.push("-r".to_owned());
    }
    words.join(" ")
}

/// The tools, separated by spaces.
fn names() -> String {
    let names: Vec<&str> = drop_ins().iter().map(|tool| tool.name).collect();
    names.join(" ")
}

/// The options of a tool that are accepted.
fn completed(tool: &DropIn) -> impl Iterator<Item = &'static DropInOption> {
    let is_accepted = |option: &&DropInOption| !matches!(option.treatment, Treatment::Refused(_));
    tool.options.iter().filter(is_accepted)
}

/// Every spelling of these options, separated by spaces.
fn words(tool: &DropIn) -> String {
    let mut words = Vec::new();
    for option in completed(tool) {
        if !option.short.is_empty() {
            words.push(option.short.to_owned());
        }
        if !option.long.is_empty() {
            words.push(format!("--{}", option.long));
        }
    }
    words.join(" ")
}

/// For single quotes of fish.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}
