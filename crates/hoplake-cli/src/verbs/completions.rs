//! `hoplake completions`: a script by which a shell completes verbs and options.

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::{Cli, output::Pipe};

/// Print a script by which a shell completes verbs and options
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  hoplake completions bash > ~/.local/share/bash-completion/completions/hoplake
  hoplake completions fish > ~/.config/fish/completions/hoplake.fish")]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the verb.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "hoplake", &mut script);
    Ok(std::io::Write::write_all(&mut Pipe::stdout(), &script)?)
}
