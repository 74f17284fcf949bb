//! `hoplake man`: manual pages, one for the program and one for each verb.

use std::{io::Write, path::PathBuf};

use clap::CommandFactory;
use clap_mangen::{Man, generate_to};

use crate::{Cli, failure::Failure, output::Pipe};

/// Print the manual page, or write one for each verb
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  hoplake man | man -l -
  hoplake man --to ~/.local/share/man/man1")]
pub struct Args {
    /// Write the page of the program and of each verb into this folder
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let Some(folder) = &args.to else {
        let mut page = Vec::new();
        Man::new(Cli::command().disable_help_subcommand(true)).render(&mut page)?;
        return Ok(Pipe::stdout().write_all(&page)?);
    };
    let failed = |error| Failure::file(format!("write manual pages into {}", folder.display()), &error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    generate_to(Cli::command(), folder).map_err(failed)?;
    Ok(())
}
