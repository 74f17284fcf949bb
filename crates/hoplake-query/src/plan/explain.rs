//! The plan of a query, and what each rule made of it.

use std::fmt::{self, Write};

use super::{
    Settings, Steps,
    display::write_steps,
    rules,
    work::{STEP_BYTES, Work},
};
use crate::error::QueryError;

/// The plan of some steps, and after each rule that changed it.
pub fn explain(steps: Steps, settings: &Settings, work: &mut Work) -> Result<String, QueryError> {
    let mut text = Explanation { text: String::new(), work };
    text.stage("plan", &steps)?;
    let mut steps = steps;
    for rule in &rules::ALL {
        if let Some(changed) = rule.of_query(&steps, settings, text.work) {
            text.stage(&format!("after the rule `{}`", rule.name), &changed)?;
            steps = changed;
        }
        text.work.check()?;
    }
    let mut text = text.text;
    text.truncate(text.trim_end().len());
    Ok(text)
}

/// A plan as text, after each of the rules.
struct Explanation<'a> {
    text: String,
    work: &'a mut Work,
}

impl Explanation<'_> {
    fn stage(&mut self, title: &str, steps: &Steps) -> Result<(), QueryError> {
        // What cannot be written is an error of the work.
        let _ = writeln!(self, "{title}").and_then(|()| write_steps(self, steps, 1));
        self.work.check()
    }
}

impl Write for Explanation<'_> {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        // A line has about as many bytes as a step is counted with, so pieces of them count as a step.
        let pieces = (self.text.len() + more.len()) / STEP_BYTES as usize - self.text.len() / STEP_BYTES as usize;
        if !self.work.makes(pieces) {
            return Err(fmt::Error);
        }
        self.text.push_str(more);
        Ok(())
    }
}
