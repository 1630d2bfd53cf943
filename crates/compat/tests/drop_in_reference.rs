//! docs/drop-in.md holds every tool with every option. `UPDATE_DOCS=1` writes it anew.
#![allow(clippy::unwrap_used)] // a failed step fails the test

use diskproof_compat::{DropIn, DropInOption, Treatment, drop_ins};
use std::fmt::Write as _;
use std::path::Path;

const HEAD: &str = include_str!("drop_in_head.md");

fn form(option: &DropInOption) -> String {
    let long = match (option.short, option.long) {
        (_, "") => String::new(),
        ("", long) => format!("--{long}"),
        (_, long) => format!(", {long}"),
    };
    let separator = match option.value {
        "" => "",
        _ if option.short.ends_with('=') => "",
        _ => " ",
    };
    format!("`{}{long}{separator}{}`", option.short, option.value)
}

/// A list item of Markdown, wrapped at 120 columns.
fn list_item(sentences: &str) -> String {
    let mut text = "*".to_owned();
    let mut column = 1;
    for word in sentences.split(' ') {
        if column + 1 + word.chars().count() > 120 {
            text.push_str("\n ");
            column = 1;
        }
        text.push(' ');
        text.push_str(word);
        column += 1 + word.chars().count();
    }
    text + "\n"
}

fn section(tool: &DropIn) -> String {
    let mut text = format!("\n## {}\n\n", tool.name);
    for difference in tool.differences {
        text.push_str(&list_item(difference));
    }
    let exits = tool.exits;
    let signal = exits
        .signal
        .map_or("128 + its number".to_owned(), |code| code.to_string());
    let _ = writeln!(
        text,
        "* Exit codes: 0 done, {} usage, {} target missing or refused, {} the run failed, {signal} \
         after a signal.\n\n| option | effect |\n|---|---|",
        exits.usage, exits.target, exits.run
    );
    for option in tool.options {
        let effect = match option.treatment {
            Treatment::Carried => option.help.to_owned(),
            Treatment::Ignored(why) => format!("no effect: {why}"),
            Treatment::Refused(instead) => format!("refused: {instead}"),
        };
        let _ = writeln!(text, "| {} | {effect} |", form(option).replace('|', "\\|"));
    }
    text
}

#[test]
fn drop_in_reference_holds_every_tool_and_option() {
    let mut wanted = HEAD.to_owned();
    for tool in drop_ins() {
        let _ = writeln!(
            wanted,
            "| [{}](#{}) | {} | {} | `{}` |",
            tool.name,
            // As GitHub makes it of the heading.
            tool.name.replace('+', ""),
            tool.emulates,
            tool.summary,
            tool.native
        );
    }
    for tool in drop_ins() {
        wanted.push_str(&section(tool));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/drop-in.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/drop-in.md is out of date: UPDATE_DOCS=1 cargo test -p diskproof-compat --test \
         drop_in_reference"
    );
}

#[test]
fn names_and_options_are_unique() {
    for (index, tool) in drop_ins().iter().enumerate() {
        let before = &drop_ins()[..index];
        assert!(
            before.iter().all(|other| other.name != tool.name),
            "{}",
            tool.name
        );
        for (index, option) in tool.options.iter().enumerate() {
            let same = |other: &&DropInOption| {
                (!option.short.is_empty() && other.short == option.short)
                    || (!option.long.is_empty() && other.long == option.long)
            };
            let twice = tool.options[..index].iter().find(same);
            assert_eq!(twice, None, "{}", tool.name);
        }
    }
}
