//! `diskproof completions`: prints a shell's completion script. Touches no disk.

use super::Args;
use crate::failure::Exit;
use crate::stdio::{ignore_closed_pipe, to_stdout};
use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

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

/// Prints the script.
pub fn run(flags: &CompletionsFlags) -> anyhow::Result<Exit> {
    let mut command = Args::command();
    let mut script = Vec::new();
    generate(flags.shell, &mut command, "diskproof", &mut script);
    ignore_closed_pipe(to_stdout(|out| out.write_all(&script)))?;
    Ok(Exit::Done)
}
