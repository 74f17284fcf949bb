//! Gremlin's driver for Python, with which a server is asked as its users ask it.
//!
//! **Where it comes from.** The Python interpreter named by `HOPLAKE_GREMLIN_PYTHON`, which has the package `gremlinpython`; else that
//! of a virtual environment in the shared build folder, as [`DuckDb`](crate::DuckDb) has one. `./test` makes it beforehand.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::{folder_made_once, run};

/// The version that is known to work; `./test` reads it from this line.
const GREMLIN_PYTHON_VERSION: &str = "3.8.1";

/// The same of TinkerPop 4, which is in beta.
const GREMLIN_PYTHON_4_VERSION: &str = "4.0.0b3";

/// A Python interpreter that has the driver. Blocks: some seconds if the package must be installed first.
///
/// # Errors
/// If there is no Python, or the package cannot be installed.
pub fn gremlin_python() -> io::Result<PathBuf> {
    if let Some(named) = std::env::var_os("HOPLAKE_GREMLIN_PYTHON") {
        return Ok(named.into());
    }
    interpreter(GREMLIN_PYTHON_VERSION)
}

/// A Python interpreter that has the driver of TinkerPop 4, named by `HOPLAKE_GREMLIN_PYTHON_4` or likewise installed.
///
/// # Errors
/// As [`gremlin_python`].
pub fn gremlin_python_4() -> io::Result<PathBuf> {
    if let Some(named) = std::env::var_os("HOPLAKE_GREMLIN_PYTHON_4") {
        return Ok(named.into());
    }
    interpreter(GREMLIN_PYTHON_4_VERSION)
}

fn interpreter(version: &str) -> io::Result<PathBuf> {
    let folder = folder_made_once(&format!("gremlinpython-{version}"), |folder| install(folder, version))?;
    Ok(folder.join("bin/python"))
}

fn install(folder: &Path, version: &str) -> io::Result<()> {
    let hint = "install Python 3 with venv, or name an interpreter that has gremlinpython in HOPLAKE_GREMLIN_PYTHON";
    run(Command::new("python3").args(["-m", "venv"]).arg(folder), hint)?;
    let package = format!("gremlinpython=={version}");
    run(Command::new(folder.join("bin/python")).args(["-m", "pip", "install", "--quiet", &package]), hint)
}
