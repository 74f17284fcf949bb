//! The output of commands: rows in four formats, numbers for people, profiles and progress.

pub mod cost;
pub mod formats;
pub mod numbers;
pub mod pipe;
pub mod profile;
pub mod progress;
pub mod tables;

use std::{
    fs::File,
    io::{BufWriter, ErrorKind, IsTerminal, Write, stdout},
    path::{Path, PathBuf},
};

use clap::ValueEnum;

use crate::failure::Failure;
pub use pipe::Pipe;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Columns for people
    Table,
    /// One JSON object a line
    Json,
    /// Comma-separated, with a header
    Csv,
    /// A Parquet file
    Parquet,
}

/// Where rows go, and how.
#[derive(Debug, Clone, clap::Args)]
pub struct OutputArgs {
    /// How to write the result; by default by the extension of --output, else a table
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print tables in full where the terminal is narrower; otherwise what does not fit is cut
    #[arg(long)]
    wide: bool,
}

impl OutputArgs {
    /// Standard output, in this format.
    pub fn stdout(format: Format) -> Self {
        Self { format: Some(format), output: None, wide: false }
    }

    /// The requested format, or the one that the name of the file implies.
    pub fn format(&self) -> Format {
        self.format.or_else(|| self.implied()).unwrap_or(Format::Table)
    }

    /// The format that the name of the file implies; `None` if it implies none.
    fn implied(&self) -> Option<Format> {
        match self.output.as_ref()?.extension()?.to_str()? {
            "json" | "jsonl" | "ndjson" => Some(Format::Json),
            "csv" => Some(Format::Csv),
            "parquet" => Some(Format::Parquet),
            "txt" => Some(Format::Table),
            _ => None,
        }
    }

    /// Whether it is a table on standard output, which verbs shorten if it is long.
    pub fn is_for_reading(&self) -> bool {
        self.output.is_none() && self.format() == Format::Table
    }

    /// The width that a table has to fit; `None` if it may be as wide as it is.
    pub fn table_width(&self) -> Option<u16> {
        if self.wide || self.output.is_some() { None } else { tables::terminal_width() }
    }

    /// Rejects output that could not be written, before any work.
    pub fn check(&self) -> Result<(), Failure> {
        if self.format() == Format::Parquet && self.output.is_none() && stdout().is_terminal() {
            let message = "a terminal cannot show Parquet";
            return Err(Failure::usage(message, "add --output FILE.parquet, or choose another --format"));
        }
        if let (None, Some(path), None) = (self.format, &self.output, self.implied()) {
            let message = format!("the name of {} implies no format", path.display());
            return Err(Failure::usage(message, "name it .json, .csv, .parquet or .txt, or choose a --format"));
        }
        self.output.as_deref().map_or(Ok(()), check_writable)
    }

    /// As [`Self::check`], and rejects Parquet for output without rows and columns.
    pub fn check_text(&self, what: &str) -> Result<(), Failure> {
        self.check()?;
        if self.format() == Format::Parquet {
            let message = format!("{what} cannot be written as Parquet");
            return Err(Failure::usage(message, "choose --format json or csv"));
        }
        Ok(())
    }

    /// Opens the destination of the rows.
    // Empties the file, so verbs call it when they have something to write: a query that fails leaves an earlier result alone.
    pub fn open(&self) -> anyhow::Result<Sink> {
        let inner: Box<dyn Write + Send> = match &self.output {
            Some(path) => Box::new(
                File::create(path).map_err(|error| Failure::file(format!("create {}", path.display()), &error))?,
            ),
            None => Box::new(Pipe::stdout()),
        };
        Ok(BufWriter::new(inner))
    }
}

/// Rejects a file that could not be written, before any work. One that exists stays as it is.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    let opened = match path.metadata() {
        // A pipe would wait for its reader.
        Ok(there) if !there.is_file() && !there.is_dir() => return Ok(()),
        Ok(_) => File::options().append(true).open(path).map(drop),
        // By another name: killed between the two, it must not leave an empty file that is then taken for an output or a checkpoint.
        Err(_) => {
            let mut probe = path.as_os_str().to_owned();
            probe.push(".partial");
            match File::create_new(&probe) {
                Ok(_) => std::fs::remove_file(&probe),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                Err(error) => Err(error),
            }
        }
    };
    opened.map_err(|error| Failure::file(format!("create {}", path.display()), &error))
}

/// Where rows go.
pub type Sink = BufWriter<Box<dyn Write + Send>>;

/// Writes one line of data to standard output.
pub fn print_line(line: impl std::fmt::Display) -> anyhow::Result<()> {
    Ok(writeln!(Pipe::stdout(), "{line}")?)
}
