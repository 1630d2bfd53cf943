//! `diskproof help`: the help of a verb, or a page of the documentation, which is part of the
//! program. Touches no disk.

use super::Args;
use crate::failure::{Exit, Failure};
use crate::stdio::print_text;
use clap::CommandFactory as _;

/// Below the help of `help`.
const HELP: &str = "\
A verb's name prints its help. Pages that are called like a verb end with .md.

Examples:
  diskproof help check
  diskproof help fitness
  diskproof help commit.md
  diskproof help postgresql-cookbook.toml > cookbook.toml";

/// Print the help of a verb, a page of the documentation or an example of a plan file
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct HelpFlags {
    /// A verb, a page such as fitness or commit.md, or a plan such as verify.toml [default: the
    /// list of verbs and pages]
    #[arg(value_name = "TOPIC")]
    pub topic: Vec<String>,
}

/// A file of the documentation.
#[derive(Debug)]
struct Page {
    name: &'static str,
    text: &'static str,
}

impl Page {
    /// The name without its ending.
    fn stem(&self) -> &'static str {
        match self.name.rsplit_once('.') {
            Some((stem, _)) => stem,
            None => self.name,
        }
    }
}

/// Files of `docs`. The measurements of this program itself stay out.
macro_rules! pages {
    ($($folder:literal: $($name:literal),+;)*) => {
        &[$($(Page {
            name: $name,
            text: include_str!(concat!("../../docs/", $folder, $name)),
        },)+)*]
    };
}

const PAGES: &[Page] = pages! {
    "": "accept.md", "cluster.md", "commit.md", "compare.md", "curve.md", "drop-in.md", "files.md",
        "findings.md",
        "fio-json.md", "fitness.md", "for-bonnie-users.md", "for-fio-users.md",
        "for-hd-tune-users.md", "for-ioping-users.md", "formats.md", "health.md", "history.md",
        "job-files.md", "kubernetes.md", "latency-target.md", "layers.md", "load.md",
        "monitoring.md", "ping.md", "postgresql.md", "powercut.md", "safety.md", "sustain.md",
        "sweep.md", "verdict.md", "verify.md", "watch.md";
    "plans/": "backup-beside-oltp.toml", "backward-and-stride.toml", "block-size-ladder.toml",
        "commit-latency.toml", "commits-beside-reads.toml", "crystaldiskmark.toml",
        "index-scan.toml", "latency-at-a-rate.toml", "mixed-block-sizes.toml",
        "oltp-hot-cold.toml", "postgresql-cookbook.toml", "sequential-scan-and-load.toml",
        "short-stroke.toml", "verify.toml";
};

/// The page about plan files, which is called README.md in their folder.
const PLANS: Page = Page {
    name: "plans.md",
    text: include_str!("../../docs/plans/README.md"),
};

/// Prints what the topic names.
pub fn run(flags: &HelpFlags) -> anyhow::Result<Exit> {
    let words: Vec<&str> = flags.topic.iter().map(String::as_str).collect();
    if words.is_empty() {
        print_text(&overview())?;
    } else if let Some(help) = verb_help(&words) {
        print_text(&help)?;
    } else {
        let page = find_page(&words.join(" "))?;
        print_text(page.text)?;
    }
    Ok(Exit::Done)
}

/// All pages of the documentation.
fn all_pages() -> impl Iterator<Item = &'static Page> {
    PAGES.iter().chain([&PLANS])
}

/// The names of all pages, each as `diskproof help` accepts it.
fn topics() -> String {
    let verbs: Vec<String> = Args::command()
        .get_subcommands()
        .map(|verb| verb.get_name().to_owned())
        .collect();
    let mut names = Vec::new();
    for page in all_pages() {
        let short = page.name.trim_end_matches(".md");
        if verbs.iter().any(|verb| verb == short) {
            names.push(page.name);
        } else {
            names.push(short);
        }
    }
    names.join(", ")
}

fn overview() -> String {
    let help = Args::command().render_long_help();
    format!(
        "{help}\nPages, which 'diskproof help PAGE' prints:\n{}\n",
        wrapped(&topics())
    )
}

/// Columns of the words in a line of topics, which is indented by two: clap's own lines below the
/// flags are at most 80 wide.
const TOPIC_COLUMNS: usize = 76;

/// The words of a list in lines that are indented by two.
fn wrapped(list: &str) -> String {
    let mut text = " ".to_owned();
    let mut columns = 0;
    for word in list.split(' ') {
        if columns + word.len() > TOPIC_COLUMNS {
            text.push_str("\n ");
            columns = 0;
        }
        text.push(' ');
        text.push_str(word);
        columns += 1 + word.len();
    }
    text
}

/// The help of a verb, or of a verb within it such as `history prune`.
fn verb_help(words: &[&str]) -> Option<String> {
    let mut program = Args::command();
    program.build();
    let mut verb = &mut program;
    for word in words {
        verb = verb.find_subcommand_mut(word)?;
    }
    Some(verb.render_long_help().to_string())
}

/// Finds a page by its name, with or without its ending, or by a path such as `docs/fitness.md`.
fn find_page(topic: &str) -> Result<&'static Page, Failure> {
    let name = topic.rsplit('/').next().unwrap_or(topic);
    for page in all_pages() {
        if page.name == name || page.stem() == name {
            return Ok(page);
        }
    }
    Err(Failure::Usage(format!(
        "help: '{topic}' is neither a verb nor a page. 'diskproof --help' lists the verbs. Pages: \
         {}",
        topics()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn doc_files(folder: &str, ending: &str) -> BTreeSet<String> {
        let folder = format!("{}/../../docs/{folder}", env!("CARGO_MANIFEST_DIR"));
        let mut names = BTreeSet::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(ending) {
                names.insert(name);
            }
        }
        names
    }

    #[test]
    fn every_page_is_a_topic() {
        let mut files = doc_files("", ".md");
        files.remove("performance.md");
        files.extend(doc_files("plans", ".toml"));
        let pages = PAGES.iter().map(|page| page.name.to_owned()).collect();
        assert_eq!(files, pages);
    }

    #[test]
    fn topic_names_a_page_in_any_form() {
        for topic in ["fitness", "fitness.md", "docs/fitness.md"] {
            assert_eq!(find_page(topic).unwrap().name, "fitness.md");
        }
        assert_eq!(find_page("docs/plans").unwrap().name, "plans.md");
        let unknown = find_page("nonsense").unwrap_err().to_string();
        assert!(unknown.contains("fitness"), "{unknown}");
    }

    /// Adds the help of a command and of those within it.
    fn add_help(command: &mut clap::Command, found: &mut Vec<String>) {
        found.push(command.render_long_help().to_string());
        for verb in command.get_subcommands_mut() {
            add_help(verb, found);
        }
    }

    #[test]
    fn help_names_pages_that_a_user_of_the_program_alone_has() {
        let mut program = Args::command();
        program.build();
        let mut texts = Vec::new();
        add_help(&mut program, &mut texts);
        assert!(texts.len() > 20);
        for text in texts {
            assert!(!text.contains("docs/"), "{text}");
        }
    }

    #[test]
    fn verb_comes_before_a_page_of_its_name() {
        assert!(verb_help(&["commit"]).unwrap().contains("--rewrite"));
        assert!(
            verb_help(&["history", "prune"])
                .unwrap()
                .contains("--older-than")
        );
        assert_eq!(verb_help(&["fitness"]), None);
    }
}
