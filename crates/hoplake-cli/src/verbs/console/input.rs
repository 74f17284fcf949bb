//! Where queries come from: a terminal with an editor, or lines of a pipe.

use std::{
    env, fs,
    io::{BufRead, StdinLock, stdin},
    path::PathBuf,
};

use hoplake::ErrorKind;
use rustyline::{
    Config, Editor, Helper,
    completion::Completer,
    error::ReadlineError,
    highlight::Highlighter,
    hint::Hinter,
    history::FileHistory,
    validate::{ValidationContext, ValidationResult, Validator},
};

use super::completion::{Words, candidates};
use crate::failure::Failure;

const PROMPT: &str = "gremlin> ";

/// Lines of history that are kept.
const HISTORY_MAX: usize = 10_000;

/// The longest query from a pipe. More cannot be one.
const QUERY_BYTES_MAX: usize = 1 << 20;

/// Where queries come from.
pub enum Input {
    /// A person.
    Terminal { editor: Box<Editor<Prompt, FileHistory>>, history: Option<PathBuf> },
    /// A script.
    Lines(StdinLock<'static>),
}

/// What was read.
pub enum Read {
    /// A query or a command.
    Text(String),
    /// Nothing: the line was cleared.
    Cleared,
    /// The end.
    Ended,
}

impl Input {
    /// A terminal, with or without history.
    pub fn terminal(words: Words, with_history: bool) -> anyhow::Result<Self> {
        let config = Config::builder().max_history_size(HISTORY_MAX).map_err(failed)?.auto_add_history(true).build();
        let mut editor = Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(Prompt(words)));
        let history = history_file().filter(|_| with_history);
        if let Some(file) = &history {
            // There is none yet, or it cannot be read: the console works without.
            let _ = file.parent().map(fs::create_dir_all);
            let _ = editor.load_history(file);
        }
        Ok(Self::Terminal { editor: Box::new(editor), history })
    }

    /// Standard input.
    pub fn lines() -> Self {
        Self::Lines(stdin().lock())
    }

    /// The next query or command.
    pub fn next(&mut self) -> anyhow::Result<Read> {
        match self {
            Self::Terminal { editor, history } => match editor.readline(PROMPT) {
                Ok(text) => {
                    if let Some(file) = history {
                        // At once: another console or a cut connection must not lose it.
                        let _ = editor.append_history(file);
                    }
                    Ok(Read::Text(text))
                }
                Err(ReadlineError::Interrupted) => Ok(Read::Cleared),
                Err(ReadlineError::Eof) => Ok(Read::Ended),
                Err(error) => Err(failed(error).into()),
            },
            Self::Lines(lines) => read_query(lines),
        }
    }
}

/// Lines up to the end of a query.
fn read_query(lines: &mut impl BufRead) -> anyhow::Result<Read> {
    let mut text = String::new();
    loop {
        let before = text.len();
        let most = (QUERY_BYTES_MAX + 1 - before) as u64;
        let read = std::io::Read::take(&mut *lines, most).read_line(&mut text);
        let read = read.map_err(|error| Failure::file("read standard input", &error))?;
        if text.len() > QUERY_BYTES_MAX {
            let message = format!("a query has at most {QUERY_BYTES_MAX} bytes");
            return Err(Failure::usage(message, "close its brackets").into());
        }
        match read {
            0 if text.is_empty() => return Ok(Read::Ended),
            0 => return Ok(Read::Text(text)),
            _ if !is_open(&text) => return Ok(Read::Text(text)),
            _ => {}
        }
    }
}

fn failed(error: ReadlineError) -> Failure {
    let hint = "pipe queries into the console instead";
    Failure::new(ErrorKind::Unavailable, format!("the terminal cannot be used: {error}"), hint)
}

/// Whether a query goes on: a bracket is open, or the last thing is a dot. A string does not go over lines.
fn is_open(text: &str) -> bool {
    if text.starts_with(':') && !text.starts_with(":explain") && !text.starts_with(":profile") {
        return false;
    }
    let mut depth = 0_i64;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(next) = characters.next() {
        match (quote, next) {
            (Some(_), '\\') => drop(characters.next()),
            (Some(open), next) if open == next => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(next),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, _) => {}
        }
    }
    quote.is_none() && (depth > 0 || text.trim_end().ends_with('.'))
}

/// In the folder for what programs keep of a user: XDG_STATE_HOME, or what stands for it.
fn history_file() -> Option<PathBuf> {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = state.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".local/state")))?;
    Some(state.join("hoplake").join("console-history"))
}

/// What the editor asks while somebody types.
pub struct Prompt(Words);

impl Helper for Prompt {}

impl Hinter for Prompt {
    type Hint = String;
}

impl Highlighter for Prompt {}

impl Validator for Prompt {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_open(context.input()) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Completer for Prompt {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(candidates(&self.0, line.get(..position).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_ends_with_its_brackets() {
        for open in ["g.V(", "g.V().\n", "g.V().has('a', within([1,", "g.V(')'", ":explain g.V("] {
            assert!(is_open(open), "{open}");
        }
        for closed in ["g.V()", "g.V('(')", "g.V('it\\'s (').out()\n", "g.V())", "'", ":limit (", "g.V(\"'\")"] {
            assert!(!is_open(closed), "{closed}");
        }
    }

    #[test]
    fn queries_are_read_from_lines() {
        let read = |text: &str| {
            let mut lines = text.as_bytes();
            let mut all = Vec::new();
            while let Read::Text(text) = read_query(&mut lines).unwrap() {
                all.push(text);
            }
            all
        };
        assert_eq!(
            read("g.V()\n\ng.V()\n  .out(\n 'a')\n:quit"),
            ["g.V()\n", "\n", "g.V()\n", "  .out(\n 'a')\n", ":quit"]
        );
        assert_eq!(read("g.V(\n'a'"), ["g.V(\n'a'"]);
        assert!(read_query(&mut "(".repeat(QUERY_BYTES_MAX + 1).as_bytes()).is_err());
    }
}
