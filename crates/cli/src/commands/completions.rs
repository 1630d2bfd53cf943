//! `diskproof completions`: prints a shell's completion script. Touches no disk.

mod tools;

use super::Args;
use crate::failure::Exit;
use crate::stdout::{ignore_closed_pipe, to_stdout};
use clap::CommandFactory as _;
use clap_complete::{Shell, generate};
use tools::{with_tools_for_bash, with_tools_for_fish, with_tools_for_zsh};

/// Below the help of `completions`.
const HELP: &str = concat!(
    "Examples:\n",
    "  diskproof completions bash > /etc/bash_completion.d/diskproof\n",
    "  diskproof completions zsh > /usr/local/share/zsh/site-functions/_diskproof\n",
    "  diskproof completions fish > ~/.config/fish/completions/diskproof.fish",
);

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct CompletionsFlags {
    /// The shell that reads the script
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// Runs the verb.
pub fn run(flags: &CompletionsFlags) -> anyhow::Result<Exit> {
    let mut command = Args::command();
    let mut script = Vec::new();
    generate(flags.shell, &mut command, "diskproof", &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = match flags.shell {
        Shell::Bash => with_tools_for_bash(&script),
        Shell::Zsh => with_tools_for_zsh(&script),
        Shell::Fish => with_tools_for_fish(&script),
        _ => script.into_owned(),
    };
    ignore_closed_pipe(to_stdout(|out| out.write_all(script.as_bytes())))?;
    Ok(Exit::Done)
}
