//! Regular expressions, looked for within the time and memory of a query.
//!
//! A pattern of a few letters may have a program of megabytes, and each byte of a text may then take as long as the program is: the product
//! of two things that one request sends. So a text is read in pieces by a lazy DFA, and the deadline is looked at between them, which a
//! search in one call could not do.

use std::{
    fmt::{self, Display, Formatter},
    sync::{Arc, Mutex, PoisonError},
};

use regex_automata::{
    Input,
    hybrid::dfa::{Cache, DFA},
    nfa::thompson::{
        self, NFA, WhichCaptures,
        pikevm::{self, PikeVM},
    },
};

use crate::{deep::block_in_place_if, error::QueryError, growth::Growth};

/// The longest: parsed, two bytes may be a class of 800 ranges.
pub(super) const LENGTH_MAX: usize = 2_000;

/// What a byte of it takes while it is parsed.
pub(super) const PARSED_BYTES: usize = 8 << 10;

/// What states of the DFA may take. Beyond it they are made again, when they are needed.
const CACHE_BYTES: usize = 512 << 10;

/// What the search for boundaries of words takes for each state of the program.
const STATE_BYTES: usize = 64;

/// Bytes that are read between two looks at the deadline. Each may have to look at the whole program, which takes milliseconds at most.
const PIECE_BYTES: usize = 64;

/// States times bytes from which on a search may take 20 ms, and must not hold up other queries. Usually it takes much less: to have others
/// run meanwhile is worth it for long texts alone.
const LONG: usize = 1 << 22;

/// States times bytes that may be looked at without a look at the deadline: some 100 ms.
const STATES_TIMES_BYTES_MAX: usize = 1 << 24;

/// A regular expression. Clones share what was found out about its states.
#[derive(Clone)]
pub struct Pattern(Arc<Inner>);

struct Inner {
    text: Box<str>,
    dfa: DFA,
    cache: Mutex<Cache>,
    /// For what the DFA cannot do.
    slow: Option<(PikeVM, Mutex<pikevm::Cache>)>,
}

/// Why a text is none.
pub(super) enum Failure {
    /// Its program is larger than allowed.
    TooLarge,
    /// As the parser says.
    Wrong(String),
}

impl Pattern {
    /// Compiles one whose program takes no more than some bytes; `hold` is asked for the memory that it will take from now on.
    pub(super) fn compile(
        text: &str,
        program_bytes: usize,
        hold: impl FnOnce(usize) -> Result<(), QueryError>,
    ) -> Result<Result<Self, Failure>, QueryError> {
        let wrong = |why: &dyn Display| Ok(Err(Failure::Wrong(why.to_string())));
        let limits = NFA::config().nfa_size_limit(Some(program_bytes)).which_captures(WhichCaptures::None);
        let program = match thompson::Compiler::new().configure(limits).build(text) {
            Ok(program) => program,
            Err(error) if error.size_limit().is_some() => return Ok(Err(Failure::TooLarge)),
            Err(error) => {
                // The parser's own words are below those of the compiler.
                let cause = std::error::Error::source(&error);
                return cause.map_or_else(|| wrong(&error), |cause| wrong(&cause));
            }
        };
        let config = DFA::config()
            .cache_capacity(CACHE_BYTES)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(None)
            // Until a letter that is not ASCII comes.
            .unicode_word_boundary(true);
        let cache_bytes = match config.get_minimum_cache_capacity(&program) {
            Ok(least) => least.max(CACHE_BYTES),
            Err(error) => return wrong(&error),
        };
        // A boundary of words next to letters that are not ASCII, or where an empty match may be within a letter.
        let looks = program.look_set_any();
        let needs_slow = looks.contains_word_unicode() || program.has_empty() && !looks.is_empty();
        let slow_bytes = if needs_slow { program.states().len() * STATE_BYTES } else { 0 };
        hold(program.memory_usage() + cache_bytes + slow_bytes)?;
        let slow = needs_slow.then(|| PikeVM::new_from_nfa(program.clone()).ok()).flatten();
        let slow = slow.map(|vm| (vm.create_cache(), vm)).map(|(cache, vm)| (vm, Mutex::new(cache)));
        let dfa = match DFA::builder().configure(config).build_from_nfa(program) {
            Ok(dfa) => dfa,
            Err(error) => return wrong(&error),
        };
        let cache = Mutex::new(dfa.create_cache());
        Ok(Ok(Self(Arc::new(Inner { text: text.into(), dfa, cache, slow }))))
    }

    /// Whether a text has it.
    ///
    /// # Errors
    /// A limit; [`QueryError::Unsupported`] for boundaries of words in a text that is too long.
    pub(crate) fn is_in(&self, text: &str, growth: &Growth) -> Result<bool, QueryError> {
        let states = self.0.dfa.get_nfa().states().len();
        block_in_place_if(states.saturating_mul(text.len()) > LONG, || self.is_found(text, states, growth))
    }

    fn is_found(&self, text: &str, states: usize, growth: &Growth) -> Result<bool, QueryError> {
        match self.is_found_by_states(text, states, growth)? {
            Some(found) => Ok(found),
            None => self.is_found_slowly(text, states, growth),
        }
    }

    /// `None` if the DFA gives up.
    fn is_found_by_states(&self, text: &str, states: usize, growth: &Growth) -> Result<Option<bool>, QueryError> {
        let Inner { dfa, cache, .. } = &*self.0;
        let cache = &mut *cache.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(mut state) = dfa.start_state_forward(cache, &Input::new(text)) else { return Ok(None) };
        for (number, piece) in text.as_bytes().chunks(PIECE_BYTES).enumerate() {
            growth.work((piece.len() / 8 + 4 * states) as u64)?;
            for (at, byte) in piece.iter().enumerate() {
                let Ok(next) = dfa.next_state(cache, state, *byte) else { return Ok(None) };
                state = next;
                if state.is_match() {
                    // It ends before this byte, and if it is empty, it must not be within a letter.
                    return Ok(text.is_char_boundary(number * PIECE_BYTES + at).then_some(true));
                }
                if state.is_dead() {
                    return Ok(Some(false));
                }
                if state.is_quit() {
                    return Ok(None);
                }
            }
        }
        Ok(dfa.next_eoi_state(cache, state).ok().map(|state| state.is_match()))
    }

    /// For what the DFA cannot do.
    fn is_found_slowly(&self, text: &str, states: usize, growth: &Growth) -> Result<bool, QueryError> {
        let Some((vm, cache)) = &self.0.slow else {
            return Err(QueryError::unsupported(format!("the regular expression {self} cannot be looked for")));
        };
        let work = states.saturating_mul(text.len());
        if work > STATES_TIMES_BYTES_MAX {
            return Err(QueryError::unsupported(format!(
                "the regular expression {self} cannot be looked for in a text of {} bytes: it has boundaries of words, and the text has \
                 letters that are not ASCII. Write `(?-u:\\b)` for boundaries of ASCII words, or a shorter expression",
                text.len()
            )));
        }
        growth.work(work as u64)?;
        Ok(vm.is_match(&mut cache.lock().unwrap_or_else(PoisonError::into_inner), text))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Display for Pattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.0.text).finish()
    }
}

#[cfg(test)]
mod tests {
    use hoplake_storage::QueryContext;
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> Pattern {
        match Pattern::compile(text, 10 << 20, |_| Ok(())) {
            Ok(Ok(pattern)) => pattern,
            Ok(Err(Failure::Wrong(why))) => panic!("{text}: {why}"),
            Ok(Err(Failure::TooLarge)) => panic!("{text} is too large"),
            Err(error) => panic!("{text}: {error}"),
        }
    }

    fn is_in(pattern: &Pattern, text: &str, timeout_ms: Option<u64>) -> Result<bool, QueryError> {
        let context = QueryContext::new();
        context.give_time(timeout_ms);
        pattern.is_in(text, &Growth::new(&context)?)
    }

    #[test]
    fn expressions_are_found() {
        for (regex, text, found) in [
            ("a.c", "xxabcxx", true),
            ("a.c", "ab", false),
            ("^b", "ab", false),
            ("b$", "ab", true),
            ("^$", "", true),
            ("x*", "", true),
            ("a", "", false),
            (r"\bmoon\b", "the moon, again", true),
            (r"\bmoon\b", "moonlight", false),
            (r"\bmånen\b", "på månen, igen", true),
            (r"\bmåne\b", "på månen, igen", false),
            (r"(?-u:\b)moon", "på moon", true),
            (r"\Bb", "ab", true),
            // Not within a letter.
            (r"(?-u:\B)", "aåa", false),
            (r"(?:b)?(?-u:\B)", "aåa", false),
            ("(?i)ÅSE", "våse", true),
            (r"^\w{2}$", "åé", true),
            ("(?s)a.c", "a\nc", true),
            ("a.c", "a\nc", false),
            ("[^a]", "aaaa", false),
            ("b|", "aaa", true),
        ] {
            assert_eq!(is_in(&pattern(regex), text, None).unwrap(), found, "{regex} in {text}");
        }
        // Beyond a piece, and at its end.
        for length in [PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 10 * PIECE_BYTES] {
            assert!(is_in(&pattern("ab$"), &format!("{}ab", "x".repeat(length - 1)), None).unwrap(), "{length}");
            assert!(!is_in(&pattern("ab$"), &format!("{}aba", "x".repeat(length)), None).unwrap(), "{length}");
        }
    }

    /// Each byte may take as long as the program is: a second in one call, without this.
    #[test]
    fn it_ends_at_the_deadline() {
        let text = "a".repeat(100_000);
        for regex in ["(?:a?){1000}b", r"(\w{1,20}){1,10}-", "[a-y]*z"] {
            let error = is_in(&pattern(regex), &text, Some(0)).expect_err(regex);
            assert!(error.to_string().contains("0 ms"), "{regex}: {error}");
        }
        // What the DFA cannot do has no pieces, and so a bound.
        let error = is_in(&pattern(r"\b\w{10,100}\b"), &format!("å {}", "a ".repeat(100_000)), None).unwrap_err();
        assert!(error.to_string().contains(r"(?-u:\b)"), "{error}");
        // A text of ASCII letters alone may be long, and one with others may have a usual length.
        assert!(!is_in(&pattern(r"\b\w{10,100}\b"), &"a ".repeat(100_000), None).unwrap());
        assert!(
            is_in(&pattern(r"\b\w{10,20}\b"), &format!("å {}", "a ".repeat(1_000) + &"b".repeat(12)), None).unwrap()
        );
    }

    proptest! {
        /// Another engine is of the same opinion.
        #[test]
        fn it_is_found_as_by_a_plain_search(regex in r"(\^|\\b|\(\?i\))?([abå.]|\[ab\]|\\w|\\B|\(\?-u:\\B\)|\(\?-u:\\b\)|a\||\(a\|b\)[*+?]){0,6}\$?", text in "[abåA \n]{0,150}") {
            let pattern = pattern(&regex);
            let vm = PikeVM::new_from_nfa(pattern.0.dfa.get_nfa().clone()).unwrap();
            let slow = vm.is_match(&mut vm.create_cache(), &text);
            prop_assert_eq!(is_in(&pattern, &text, None).unwrap(), slow);
        }
    }
}
