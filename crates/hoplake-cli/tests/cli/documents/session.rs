//! The commands of a page, and the shell that runs them.

use std::{
    any::Any,
    fs,
    os::unix::fs::symlink,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use hoplake_testkit::ReservedPort;
use serde_json::{Value, json};

use crate::hoplake::Shell;

/// A session that takes as long hangs.
const HUNG: Duration = Duration::from_secs(600);

/// A command of a page.
#[derive(Debug, Default)]
pub struct Example {
    /// Its line in the page.
    pub line: usize,
    pub command: String,
    /// What the page shows below it.
    pub printed: String,
    /// Why it is not run, if it is not.
    pub not_run: Option<String>,
    /// What is run before it.
    before: Vec<String>,
    /// Whether it runs until it is stopped.
    in_background: bool,
    /// Whether the JSON that it prints has other numbers, and other texts where the page's have digits.
    values_differ: bool,
}

/// The text of a comment of this kind.
fn comment<'a>(line: &'a str, kind: &str) -> Option<&'a str> {
    Some(line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.strip_prefix(kind)?.trim())
}

/// The examples of a page.
pub fn examples(page: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut block = None;
    let mut not_run = None;
    let mut before = Vec::new();
    let mut background = false;
    let mut values_differ = false;
    for (line, text) in (1..).zip(page.lines()) {
        if let Some(language) = text.strip_prefix("```") {
            match block.take() {
                None => block = Some(language),
                Some("console") => {
                    if let Some(last) = examples.last_mut() {
                        last.in_background |= background;
                        last.values_differ = values_differ;
                    }
                    not_run = None;
                    background = false;
                    values_differ = false;
                }
                Some(_) => {}
            }
            continue;
        }
        if block.is_none() {
            not_run = comment(text, "not run:").map(str::to_owned).or(not_run);
            before.extend(comment(text, "before:").map(str::to_owned));
            background |= comment(text, "background").is_some();
            values_differ |= comment(text, "values differ").is_some();
        }
        if block != Some("console") {
            continue;
        }
        match (text.strip_prefix("$ "), examples.last_mut()) {
            (Some(command), _) => {
                let command = command.to_owned();
                let not_run = not_run.clone();
                let before = std::mem::take(&mut before);
                examples.push(Example { line, command, not_run, before, ..Example::default() });
            }
            (None, Some(last)) if !is_complete(&last.command) => last.command.push_str(&format!("\n{text}")),
            (None, Some(last)) => last.printed.push_str(&format!("{text}\n")),
            (None, None) => {}
        }
    }
    for example in &mut examples {
        example.in_background |= example.command.trim_end().ends_with('&');
    }
    examples
}

/// Whether a shell would run it, and not wait for more.
fn is_complete(command: &str) -> bool {
    let mut quote = None;
    let mut characters = command.chars().peekable();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None | Some('"'), '\\') => drop(characters.next()),
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    quote.is_none() && !command.trim_end().ends_with(['\\', '|'])
}

/// Languages of shells: a block of one is of commands, and has no prompts by which they would be found.
const SHELLS: [&str; 6] = ["sh", "bash", "zsh", "fish", "shell", "shell-session"];

/// Commands in blocks of another language: lines with a prompt, and all lines of blocks of a shell; and all lines of blocks of `console`
/// that do not begin where a line does, which [`examples`] does not see.
pub fn commands_elsewhere(page: &str) -> Vec<&str> {
    let mut language = None;
    let mut found = Vec::new();
    for line in page.lines() {
        match (line.trim_start().strip_prefix("```"), language) {
            (Some(begun), None) => {
                language = Some((begun.split(' ').next().unwrap_or_default(), line.starts_with('`')))
            }
            (Some(_), Some(_)) => language = None,
            (None, Some(("console", is_seen))) => found.extend((!is_seen).then_some(line)),
            (None, Some((language, _))) if SHELLS.contains(&language) || line.trim_start().starts_with("$ ") => {
                found.push(line);
            }
            _ => {}
        }
    }
    found
}

/// Whether JSON is as a page shows it: all but numbers, and texts that have digits there.
fn is_alike(shown: &Value, here: &Value) -> bool {
    match (shown, here) {
        (Value::Number(_), Value::Number(_)) => true,
        (Value::String(shown), Value::String(here)) => {
            shown == here || shown.contains(|character: char| character.is_ascii_digit())
        }
        (Value::Array(shown), Value::Array(here)) => {
            shown.len() == here.len() && shown.iter().zip(here).all(|(shown, here)| is_alike(shown, here))
        }
        (Value::Object(shown), Value::Object(here)) => {
            let same = |(name, shown): (&String, &Value)| here.get(name).is_some_and(|here| is_alike(shown, here));
            shown.len() == here.len() && shown.iter().all(same)
        }
        (shown, here) => shown == here,
    }
}

/// A shell in a folder of its own.
pub struct Session {
    pub shell: Shell,
    env: Vec<(String, String)>,
    /// What stands in the page, and what it is here.
    replaced: Vec<(String, String)>,
    /// Whether a command whose output is not in the page prints nothing.
    silent: bool,
    /// Servers and ports, which are to live as long.
    kept: Vec<Box<dyn Any>>,
}

impl Session {
    pub fn new() -> Self {
        let shell = Shell::empty();
        fs::create_dir(shell.path().join(".bin")).unwrap();
        symlink(env!("CARGO_BIN_EXE_hoplake"), shell.path().join(".bin/hoplake")).unwrap();
        let path = format!("{}:{}", shell.path().join(".bin").display(), std::env::var("PATH").unwrap());
        // Pages ask curl to be silent; why a request failed is to be seen all the same.
        fs::write(shell.path().join(".bin/.curlrc"), "show-error\n").unwrap();
        let curl = shell.path().join(".bin").display().to_string();
        let env = vec![("PATH".to_owned(), path), ("CURL_HOME".to_owned(), curl)];
        Self { shell, env, replaced: Vec::new(), silent: false, kept: Vec::new() }
    }

    /// What a command prints is all in the page, also if that is nothing.
    pub fn all_is_shown(mut self) -> Self {
        self.silent = true;
        self
    }

    pub fn with_env(mut self, env: impl IntoIterator<Item = (String, String)>) -> Self {
        self.env.extend(env);
        self
    }

    pub fn replacing(mut self, page: &str, here: impl Into<String>) -> Self {
        self.replaced.push((page.to_owned(), here.into()));
        self
    }

    pub fn keeping(mut self, server: impl Any) -> Self {
        self.kept.push(Box::new(server));
        self
    }

    /// Each of these ports is another one here, which is free.
    pub fn with_ports<const N: usize>(mut self, ports: [u16; N]) -> Self {
        for port in ports {
            let here = ReservedPort::new().unwrap();
            self.replaced.push((format!(":{port}"), format!(":{here}")));
            self.kept.push(Box::new(here));
        }
        self
    }

    /// A text of the page, with what its addresses are here.
    pub fn here(&self, text: &str) -> String {
        self.replaced.iter().fold(text.to_owned(), |text, (page, here)| text.replace(page, here))
    }

    /// Runs all commands of a page.
    pub fn run(&self, name: &str, page: &str) {
        let out = self.shell.path().join(".out");
        fs::create_dir(&out).unwrap();
        let mut script = "set -o pipefail\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n".to_owned();
        let examples: Vec<_> = examples(page).into_iter().filter(|example| example.not_run.is_none()).collect();
        for (number, Example { command, before, in_background, .. }) in examples.iter().enumerate() {
            let mut lines: Vec<String> = before.iter().map(|before| self.here(before)).collect();
            lines.push("true".into());
            fs::write(out.join(format!("{number}.before")), lines.join("\n")).unwrap();
            let command = self.here(command);
            let and = if *in_background && !command.trim_end().ends_with('&') { " &" } else { "" };
            // The status of the command, and those of all in its last pipe.
            let status = format!("echo $? \"${{PIPESTATUS[@]}}\" >.out/{number}.status");
            fs::write(out.join(number.to_string()), format!("{command}{and}\n{status}")).unwrap();
            // `eval`, so that variables and background jobs stay.
            script += &format!("eval \"$(<.out/{number}.before)\" >.out/{number}.prepared 2>&1 </dev/null\n");
            script += &format!("eval \"$(<.out/{number})\" >.out/{number}.printed 2>&1 </dev/null\n");
            if *in_background {
                script += &format!("for _ in {{1..600}}; do [ -s .out/{number}.printed ] && break; sleep 0.1; done\n");
            }
        }
        fs::write(out.join("script"), script).unwrap();
        let mut bash = Command::new("bash");
        bash.arg(".out/script").current_dir(self.shell.path()).stdin(Stdio::null());
        bash.envs(self.env.iter().cloned()).env_remove("HOPLAKE_DISK_CACHE");
        let begun = Instant::now();
        let mut bash = bash.spawn().unwrap();
        while bash.try_wait().unwrap().is_none() {
            if begun.elapsed() > HUNG {
                // By a signal on which it stops its servers.
                Command::new("kill").arg(bash.id().to_string()).status().unwrap();
                bash.wait().unwrap();
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut wrong = String::new();
        for (number, example) in examples.iter().enumerate() {
            let read = |what: &str| fs::read_to_string(out.join(format!("{number}.{what}"))).unwrap_or_default();
            let status = read("status");
            let printed = read("printed");
            // Where a page shows an error, the command fails.
            let fails = example.printed.lines().any(|line| line.starts_with("error: "));
            let is_right = status.split_whitespace().next().is_some_and(|status| fails != (status == "0"));
            let expected = self.here(&example.printed);
            let is_shown = self.silent || !expected.is_empty();
            let is_same = match example.values_differ {
                true => {
                    let read = |text: &str| serde_json::from_str(text).unwrap_or(Value::Null);
                    let shown = read(&expected);
                    !shown.is_null() && is_alike(&shown, &read(&printed))
                }
                false => !is_shown || example.in_background || masked(&printed) == masked(&expected),
            };
            if !is_right || !is_same {
                let Example { line, command, .. } = example;
                let prepared = read("prepared");
                let status = status.trim();
                let expected = if is_same { "" } else { &expected };
                wrong += &format!("{name}:{line}: status {status}\n{prepared}$ {command}\n{printed}\n{expected}\n");
            }
        }
        assert!(wrong.is_empty(), "these fail, or print something else now:\n{wrong}");
    }
}

/// What differs from run to run: times, positions of a database, sizes and costs that follow from these.
fn masked(text: &str) -> String {
    let units = ["ms", "s", "µs", "min", "old", "B", "KiB", "MiB", "GiB", "request", "requests"];
    let line = |line: &str| {
        let mut words: Vec<String> = line.split_whitespace().map(masked_word).collect();
        for at in 1..words.len() {
            let unit = words[at].trim_end_matches([',', ';', ':']);
            let is_number = words[at - 1].starts_with(|first: char| first.is_ascii_digit());
            if units.contains(&unit) && is_number {
                words[at - 1] = "N".into();
            }
        }
        words.join(" ")
    };
    text.trim_end().lines().map(line).collect::<Vec<_>>().join("\n")
}

fn masked_word(word: &str) -> String {
    let end: String = word.chars().rev().take_while(|last| ",;:".contains(*last)).collect();
    let is_time = word.len() >= 20 && word.as_bytes()[4] == b'-' && word.contains('T') && word.starts_with('2');
    let is_age = word.strip_suffix('s').is_some_and(|number| number.parse::<u64>().is_ok());
    match word {
        position if position.starts_with("0-1-") => format!("0-1-N{end}"),
        cost if cost.starts_with("$0.0") => "$N".into(),
        _ if is_time => "TIME".into(),
        _ if is_age => "N".into(),
        other => other.to_owned(),
    }
}

#[test]
fn a_command_goes_on_until_its_quotes_and_pipes_end() {
    let page = "
<!-- before: touch a -->
```console
$ one 'two
three' |
    four \\
    five
six
$ seven
```
<!-- not run: it would take a year -->
```console
$ eight
```
<!-- background -->
```console
$ nine
```
```console
$ ten &
```
";
    let found = examples(page);
    let commands: Vec<_> = found.iter().map(|example| example.command.as_str()).collect();
    assert_eq!(commands, ["one 'two\nthree' |\n    four \\\n    five", "seven", "eight", "nine", "ten &"]);
    let printed: Vec<_> = found.iter().map(|example| example.printed.as_str()).collect();
    assert_eq!(printed, ["six\n", "", "", "", ""]);
    assert_eq!(found[0].before, ["touch a"]);
    assert!(found.iter().all(|example| example.not_run.is_some() == (example.command == "eight")));
    assert_eq!(
        found.iter().map(|example| example.in_background).collect::<Vec<_>>(),
        [false, false, false, true, true]
    );
}

#[test]
fn commands_are_seen_in_blocks_of_any_shell() {
    let page = "
```sh
one
two
```
```toml
four = 4
$ five
```
```console
$ six
```
```text
seven
```
";
    assert_eq!(commands_elsewhere(page), ["one", "two", "$ five"]);
    let nested = |language: &str| format!("- a list\n\n  ```{language}\n  $ eight\n  ```\n");
    for language in ["bash", "sh title=x", "console", "text"] {
        assert_eq!(commands_elsewhere(&nested(language)), ["  $ eight"], "{language}");
    }
}

#[test]
fn values_may_differ_and_names_and_words_may_not() {
    let shown = json!({"state": "away", "at": "0-1-9", "lag": 3, "rows": {"a": 1.5}, "last": null, "all": [1]});
    let alike = json!({"state": "away", "at": "0-1-10", "lag": 4, "rows": {"a": 0}, "last": null, "all": [2]});
    assert!(is_alike(&shown, &alike));
    for (name, other) in [
        ("state", json!("here")),
        ("at", json!(7)),
        ("lag", json!("4")),
        ("rows", json!({"b": 1.5})),
        ("last", json!(0)),
        ("all", json!([])),
        ("more", json!(0)),
    ] {
        let mut unlike = alike.clone();
        unlike[name] = other;
        assert!(!is_alike(&shown, &unlike), "{unlike}");
    }
}
