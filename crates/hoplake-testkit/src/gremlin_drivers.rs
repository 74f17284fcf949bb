//! Gremlin's drivers for Python, JavaScript and Java, with which a server is asked as its users ask it.
//!
//! **Where they come from.** What a variable of the environment names (below); else a folder in the shared build folder, which the
//! first test that needs it fills from the language's own registry while others wait, as for [`DuckDb`](crate::DuckDb). `./test` does so
//! beforehand, in the versions below.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::{fetch_jars, folder_made_once, install_npm, run};

/// The version that is known to work; `./test` reads it from this line, as the others.
const GREMLIN_PYTHON_VERSION: &str = "3.8.1";

/// The same of TinkerPop 4, which is in beta.
const GREMLIN_PYTHON_4_VERSION: &str = "4.0.0b3";

/// The version for JavaScript.
const GREMLIN_JAVASCRIPT_VERSION: &str = "3.8.1";

/// The version for Java.
const GREMLIN_JAVA_VERSION: &str = "3.8.1";

/// A Python interpreter that has the driver: the one named by `HOPLAKE_GREMLIN_PYTHON`, or that of a virtual environment. Blocks: some
/// seconds if the package must be installed first.
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

/// A folder in which Node finds the package `gremlin`: the one named by `HOPLAKE_GREMLIN_JAVASCRIPT`, or one that npm fills. Blocks: some
/// seconds if the package must be installed first.
///
/// # Errors
/// If there is no npm, or the package cannot be installed.
pub fn gremlin_javascript() -> io::Result<PathBuf> {
    if let Some(named) = std::env::var_os("HOPLAKE_GREMLIN_JAVASCRIPT") {
        return Ok(named.into());
    }
    let hint = "install Node with npm, or name a folder whose node_modules has gremlin in HOPLAKE_GREMLIN_JAVASCRIPT";
    folder_made_once(&format!("gremlin_javascript-{GREMLIN_JAVASCRIPT_VERSION}"), |folder| {
        install_npm(folder, &format!("gremlin@{GREMLIN_JAVASCRIPT_VERSION}"), hint)
    })
}

/// A folder with the jars of the driver for Java and of all that it needs: the one named by `HOPLAKE_GREMLIN_JAVA`, or one that Maven
/// fills. Blocks: some seconds if they must be fetched first.
///
/// # Errors
/// If there is no Maven, or the jars cannot be fetched.
pub fn gremlin_java() -> io::Result<PathBuf> {
    if let Some(named) = std::env::var_os("HOPLAKE_GREMLIN_JAVA") {
        return Ok(named.into());
    }
    let hint = "install Maven, or name a folder of the jars of gremlin-driver in HOPLAKE_GREMLIN_JAVA";
    folder_made_once(&format!("gremlin_java-{GREMLIN_JAVA_VERSION}"), |folder| {
        fetch_jars(folder, &[&format!("org.apache.tinkerpop:gremlin-driver:{GREMLIN_JAVA_VERSION}")], hint)
    })
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
