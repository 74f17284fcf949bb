//! Programs of others that tests run: where they are kept, and how they end.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A process that ends with its value.
#[derive(Debug)]
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The folder that clones share.
pub(crate) fn build_folder() -> io::Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let in_cache = || set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    let folder = set("HOPLAKE_BUILD_DIR").or_else(|| in_cache().map(|cache| cache.join("hoplake")));
    folder.ok_or_else(|| explain("set HOPLAKE_BUILD_DIR: there is no HOME to build in".to_owned()))
}

/// A folder in the shared one, which the first who needs it fills while others wait.
pub(crate) fn folder_made_once(name: &str, fill: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    let cache = build_folder()?;
    let folder = cache.join(name);
    if folder.is_dir() {
        return Ok(folder);
    }
    fs::create_dir_all(&cache)?;
    let lock = File::create(cache.join(format!("{name}.lock")))?;
    lock.lock()?;
    if !folder.is_dir() {
        // Filled under another name and renamed, so that no test runs half a program.
        let aside = tempfile::tempdir_in(&cache)?;
        let new = aside.path().join("new");
        fs::create_dir(&new)?;
        fill(&new)?;
        fs::rename(&new, &folder)?;
    }
    Ok(folder)
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command, hint: &str) -> io::Result<()> {
    let described = format!("{command:?}");
    let ran = command.stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| explain(format!("could not run {described}: {error}; {hint}")))?;
    match ran.status.success() {
        true => Ok(()),
        false => {
            let said = [ran.stdout, ran.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            Err(explain(format!("{described} ended with {}: {}", ran.status, said.trim())))
        }
    }
}

/// Puts a package and what it needs into `node_modules` of a folder.
pub(crate) fn install_npm(folder: &Path, package: &str, hint: &str) -> io::Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--omit=dev", "--prefix"]).arg(folder).arg(package);
    run(&mut npm, hint)
}

/// Puts the jars of artifacts, each `group:artifact:version`, and those that they need into a folder.
pub(crate) fn fetch_jars(folder: &Path, artifacts: &[&str], hint: &str) -> io::Result<()> {
    let dependency = |artifact: &&str| {
        let [group, name, version] = artifact.splitn(3, ':').collect::<Vec<_>>()[..] else {
            return Err(explain(format!("`{artifact}` is not group:artifact:version")));
        };
        let within = format!("<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>");
        Ok(format!("<dependency>{within}</dependency>"))
    };
    let dependencies: String = artifacts.iter().map(dependency).collect::<io::Result<_>>()?;
    let project = format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>hoplake</groupId><artifactId>jars</artifactId><version>1</version>\
         <dependencies>{dependencies}</dependencies></project>"
    );
    fs::write(folder.join("pom.xml"), project)?;
    // What it has fetched before is not safe from another that fetches the same.
    let lock = File::create(build_folder()?.join("maven.lock"))?;
    lock.lock()?;
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--quiet", "dependency:copy-dependencies", "-DoutputDirectory=."]);
    run(maven.current_dir(folder), hint)
}

pub(crate) fn explain(message: String) -> io::Error {
    io::Error::other(message)
}
