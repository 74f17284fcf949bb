//! Programs on Java that tests run for long: started, ended at once, started again, waited for.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::programs::{Process, explain};

/// Several of them may start at once on a small machine.
const DONE_WITHIN: Duration = Duration::from_secs(180);

/// Of a log, in an error.
const LAST_LINES: usize = 20;

/// Tests are short, and their data are small.
const JAVA_OPTIONS: [&str; 3] = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];

/// A program with a folder of its own, in which it runs, and where its log is.
#[derive(Debug)]
pub(crate) struct JavaProgram {
    name: &'static str,
    class_path: OsString,
    arguments: Vec<OsString>,
    process: Option<Process>,
    // Dropped after the process, which writes into it.
    folder: TempDir,
}

impl JavaProgram {
    /// A program that is not started yet. `class_path` is a folder of jars and classes.
    pub(crate) fn new(name: &'static str, class_path: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(&format!("hoplake-{}-", name.to_lowercase())).tempdir()?;
        let mut both = class_path.as_os_str().to_owned();
        both.push(":");
        both.push(class_path.join("*"));
        Ok(Self { name, class_path: both, arguments: Vec::new(), process: None, folder })
    }

    /// A file in its folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Adds an argument of Java: a property, the class or the source file, or an argument of the program.
    pub(crate) fn argument(&mut self, argument: impl Into<OsString>) -> &mut Self {
        self.arguments.push(argument.into());
        self
    }

    /// A command that runs Java with the same class path, for what is done before the program is started.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("java");
        command.args(JAVA_OPTIONS).arg("-cp").arg(&self.class_path).current_dir(self.folder.path());
        command
    }

    /// Starts it, anew if it runs, and returns when `ready` is in its log.
    pub(crate) fn start(&mut self, ready: &str) -> io::Result<()> {
        self.kill();
        let log = File::create(self.path("log"))?;
        let mut command = self.command();
        command.args(&self.arguments).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let started = command.spawn().map_err(|error| explain(format!("could not start java: {error}; install it")))?;
        self.process = Some(Process(started));
        let log = self.path("log");
        self.wait_until(|| Ok(text(&log).contains(ready)))
    }

    /// Ends it at once, as a loss of power would.
    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    pub(crate) fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.0.id())
    }

    /// Returns when something is done, and fails if the program ends before that.
    pub(crate) fn wait_until(&mut self, mut is_done: impl FnMut() -> io::Result<bool>) -> io::Result<()> {
        let begun = Instant::now();
        while !is_done()? {
            let status = match &mut self.process {
                Some(process) => process.0.try_wait()?.map(|status| format!("ended with {status}")),
                None => Some("is not running".to_owned()),
            };
            let late =
                || (begun.elapsed() > DONE_WITHIN).then(|| format!("took more than {} s", DONE_WITHIN.as_secs()));
            if let Some(failed) = status.or_else(late) {
                let said = text(&self.path("log"));
                let lines: Vec<_> = said.lines().collect();
                let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
                return Err(explain(format!("{} {failed}:\n{}", self.name, last.join("\n"))));
            }
            sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

fn text(file: &Path) -> String {
    String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: &str = r#"
public class Ends {
    public static void main(String[] arguments) throws Exception {
        System.out.println(arguments[0]);
        Thread.sleep(1000);
        System.err.println("no luck");
        System.exit(3);
    }
}
"#;

    #[test]
    fn an_end_is_an_error_with_what_was_said() {
        let mut program = JavaProgram::new("Ends", Path::new("none")).unwrap();
        let source = program.path("Ends.java");
        fs::write(&source, ENDS).unwrap();
        program.argument(source).argument("begun");
        program.start("begun").unwrap();
        let ended = program.wait_until(|| Ok(false)).unwrap_err().to_string();
        assert!(ended.contains("Ends ended with exit status: 3") && ended.contains("no luck"), "{ended}");
        let never = program.start("else").unwrap_err().to_string();
        assert!(never.contains("no luck"), "{never}");
        program.kill();
        assert!(program.wait_until(|| Ok(false)).unwrap_err().to_string().contains("is not running"));
    }
}
