//! The reports of processes: steps with their durations, and the outcome of each attempt at a batch.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{roles::Role, script::Attempt};

/// What is known of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It began; the process was killed before it reported more.
    Began,
    /// It is in this version and all later ones.
    Acknowledged(u64),
    /// The writer got `Unknown`.
    Unknown,
    /// It is in no version, and never will be.
    Rejected,
}

/// Steps of one kind.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Steps {
    pub(super) begun: u64,
    /// Those that were not cut off by a kill.
    pub(super) ended: u64,
    pub(super) failed: u64,
    pub(super) longest: Duration,
}

/// All reports.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    pub(super) attempts: BTreeMap<Attempt, Outcome>,
    /// Finished compactions.
    pub(super) compactions: u64,
    pub(super) merges: u64,
    pub(super) parts: u64,
    pub(super) vacuums: u64,
    pub(super) versions_removed: u64,
    pub(super) objects_removed: u64,
    pub(super) aborted: u64,
    /// By the name of the step.
    pub(super) steps: BTreeMap<String, Steps>,
    /// The last message of each kind of failure.
    pub(super) failures: BTreeMap<String, (u64, String)>,
    /// Steps under way.
    under_way: BTreeMap<Role, (String, Instant)>,
    /// The first thing that must not be.
    pub(super) wrong: Option<String>,
}

impl Ledger {
    /// Notes a line.
    pub(super) fn note(&mut self, role: Role, line: &str) {
        if self.noted(role, line).is_none() {
            // Also "wrong": it is not a verb of a healthy process.
            self.wrong.get_or_insert(format!("{role:?} printed {line:?}"));
        }
    }

    /// `None` if it is not a line of a healthy process.
    fn noted(&mut self, role: Role, line: &str) -> Option<()> {
        let (verb, rest) = line.split_once(' ')?;
        let mut numbers = rest.split(' ').map(|word| word.parse::<u64>().ok());
        match verb {
            "tries" => self.begin(role, rest),
            "began" => {
                // Before its answer: a process that is killed in the commit leaves an attempt that may or may not be in the graph.
                self.decide(role, rest, |_| Some(Outcome::Began))?;
                self.begin(role, role.commits_by()?);
            }
            "unknown" => self.decide(role, rest, |_| Some(Outcome::Unknown))?,
            "rejected" => self.decide(role, rest, |_| Some(Outcome::Rejected))?,
            "acknowledged" => {
                self.decide(role, rest, |version| Some(Outcome::Acknowledged(version?.parse().ok()?)))?;
            }
            "compacted" => {
                self.compactions += 1;
                self.merges += numbers.next()??;
                self.parts += numbers.next()??;
            }
            "vacuumed" => {
                self.vacuums += 1;
                self.versions_removed += numbers.next()??;
                self.objects_removed += numbers.next()??;
                self.aborted += numbers.next()??;
            }
            "failed" | "expired" => {
                let (what, why) = rest.split_once(' ')?;
                self.fail(what, verb, why);
            }
            "done" => {}
            _ => return None,
        }
        // Any other report ends what the process was at; a second one about the same step finds nothing under way.
        if !matches!(verb, "tries" | "began") {
            self.end(role);
        }
        Some(())
    }

    fn decide(&mut self, role: Role, rest: &str, outcome: impl Fn(Option<&str>) -> Option<Outcome>) -> Option<()> {
        let mut words = rest.split(' ');
        let batch = words.next()?.parse().ok()?;
        let name = words.next()?.to_owned();
        let attempt = Attempt { writer: role.writer()?, batch, name };
        self.attempts.insert(attempt, outcome(words.next())?);
        Some(())
    }

    /// A step begins.
    fn begin(&mut self, role: Role, step: &str) {
        self.steps.entry(step.to_owned()).or_default().begun += 1;
        self.under_way.insert(role, (step.to_owned(), Instant::now()));
    }

    /// Ends the current step. A report about an ended step adds to it.
    fn end(&mut self, role: Role) {
        if let Some((step, since)) = self.under_way.remove(&role) {
            let steps = self.steps.entry(step).or_default();
            steps.ended += 1;
            steps.longest = steps.longest.max(since.elapsed());
        }
    }

    fn fail(&mut self, step: &str, how: &str, why: &str) {
        self.steps.entry(step.to_owned()).or_default().failed += 1;
        let (count, last) = self.failures.entry(format!("{step} {how}")).or_default();
        *count += 1;
        why.clone_into(last);
    }

    /// A process was killed in the middle of what it did.
    pub(super) fn killed(&mut self, role: Role) {
        self.under_way.remove(&role);
    }

    /// A step that has been under way for longer than it may.
    pub(super) fn hanging(&self, may_take: impl Fn(&str) -> Duration) -> Option<String> {
        let late = |(step, since): &(String, Instant)| since.elapsed() > may_take(step);
        let (role, (step, since)) = self.under_way.iter().find(|(_, under_way)| late(under_way))?;
        let seconds = since.elapsed().as_secs();
        let most = may_take(step).as_secs();
        Some(format!("{role:?} has been at {step} for {seconds} s; it may take {most} s"))
    }

    /// A step that took longer than its maximum.
    pub(super) fn too_long(&self, may_take: impl Fn(&str) -> Duration) -> Option<String> {
        let (step, steps) = self.steps.iter().find(|(step, steps)| steps.longest > may_take(step))?;
        let seconds = steps.longest.as_secs_f64();
        let most = may_take(step).as_secs();
        Some(format!("one {step} took {seconds:.1} s; it may take {most} s"))
    }

    /// Attempts of one writer.
    pub(super) fn of_writer(&self, writer: u32) -> impl Iterator<Item = (&Attempt, &Outcome)> {
        let first = |writer| Attempt { writer, batch: 0, name: String::new() };
        // Attempts order by writer first, and no attempt is before batch 0 with no name.
        self.attempts.range(first(writer)..first(writer + 1))
    }

    /// How many attempts had such an outcome.
    pub(super) fn count(&self, of: impl Fn(&Attempt, Outcome) -> bool) -> usize {
        self.attempts.iter().filter(|(attempt, outcome)| of(attempt, **outcome)).count()
    }

    pub(super) fn steps(&self, step: &str) -> Steps {
        self.steps.get(step).copied().unwrap_or_default()
    }
}
