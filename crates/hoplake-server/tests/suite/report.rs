//! What became of the scenarios: counts, failures, and whether they are those of the list of misses.

use std::{
    collections::{BTreeMap, HashMap},
    env,
    fmt::Write,
    fs,
    path::Path,
};

use crate::{Scenario, scenario::query};

/// Where the lists of the scenarios that are known to fail are, a file for each way.
const MISSES: &str = "tests/suite/misses";

/// What a list begins with.
const HEAD: &str = "\
# The scenarios that fail: their file and name, one a line, and after another # a reason. To update this list, after a look at the report:
#   HOPLAKE_GREMLIN_MISSES=1 HOPLAKE_GREMLIN_SUITE=folder cargo test -p hoplake-server --test suite -- --ignored
";

/// What became of a scenario.
pub enum Verdict {
    Passed,
    /// Why it failed.
    Failed(String),
    /// Why it did not run.
    Skipped(String),
}

/// What became of all of them.
#[derive(Default)]
pub struct Report {
    /// In which way they ran.
    way: &'static str,
    passed: Vec<String>,
    failed: Vec<String>,
    /// How many for each reason.
    skipped: BTreeMap<String, usize>,
    /// Each failure at length.
    failures: String,
}

impl Report {
    pub fn of(way: &'static str) -> Self {
        Self { way, ..Self::default() }
    }

    pub fn add(&mut self, scenario: &Scenario, verdict: Verdict) {
        match verdict {
            Verdict::Passed => self.passed.push(scenario.name.clone()),
            Verdict::Skipped(reason) => *self.skipped.entry(reason).or_default() += 1,
            Verdict::Failed(reason) => {
                self.failed.push(scenario.name.clone());
                let query = scenario.steps.as_deref().map(query).unwrap_or_default();
                let tags: Vec<String> = scenario.tags.iter().map(|tag| format!("@{tag}")).collect();
                let name = &scenario.name;
                let tags = tags.join(" ");
                writeln!(self.failures, "{name}\n{tags}\n{query}\n-- {reason}\n").unwrap();
            }
        }
    }

    /// Prints the counts, writes the files, and compares with the list of misses.
    ///
    /// # Panics
    /// If other scenarios failed than those of the list. If only some scenarios ran, the rest of the list does not count.
    pub fn finish(&self, partial: bool) {
        let skipped: Vec<String> = self.skipped.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        println!(
            "{}: passed {}, failed {}, skipped {} ({})",
            self.way,
            self.passed.len(),
            self.failed.len(),
            self.skipped.values().sum::<usize>(),
            skipped.join(", ")
        );
        if let Ok(path) = env::var("HOPLAKE_GREMLIN_REPORT") {
            fs::write(Path::new(&path).join(format!("{}.txt", self.way)), &self.failures).unwrap();
        }
        let list = Path::new(env!("CARGO_MANIFEST_DIR")).join(MISSES).join(format!("{}.txt", self.way));
        if env::var_os("HOPLAKE_GREMLIN_MISSES").is_some() {
            assert!(!partial, "HOPLAKE_GREMLIN_MISSES needs all scenarios, and HOPLAKE_GREMLIN_ONLY leaves some out");
            let before = fs::read_to_string(&list).unwrap_or_default();
            return fs::write(list, format!("{HEAD}{}", lines(&with_reasons(&self.failed, &before)))).unwrap();
        }
        let misses = fs::read_to_string(&list).unwrap();
        let misses: Vec<&str> = entries(&misses).map(|(name, _)| name).collect();
        let is_miss = |name: &&String| misses.contains(&name.as_str());
        let broken: Vec<&String> = self.failed.iter().filter(|name| !is_miss(name)).collect();
        let mended: Vec<&String> = self.passed.iter().filter(is_miss).collect();
        assert!(
            broken.is_empty() && mended.is_empty(),
            "{} scenarios fail and are not in {}:\n{}{} pass and are in it:\n{}",
            broken.len(),
            list.display(),
            lines(&broken),
            mended.len(),
            lines(&mended)
        );
    }
}

/// The lines of a list, each with the name of its scenario.
fn entries(list: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| (line.split_once(" # ").map_or(line, |(name, _)| name), line))
}

/// The lines for scenarios, with the reasons that a list had for them.
fn with_reasons<'a>(names: &'a [String], before: &'a str) -> Vec<&'a str> {
    let before: HashMap<&str, &str> = entries(before).collect();
    names.iter().map(|name| before.get(name.as_str()).copied().unwrap_or(name)).collect()
}

fn lines(names: &[impl AsRef<str>]) -> String {
    names.iter().map(|name| format!("{}\n", name.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_list_has_the_reasons_of_the_old_one() {
        let before = "# head\nmap/A a\nmap/B b # it is so\nmap/C c # it was so\n";
        let names: Vec<&str> = entries(before).map(|(name, _)| name).collect();
        assert_eq!(names, ["map/A a", "map/B b", "map/C c"]);
        let failed = ["map/A a", "map/B b", "map/D d"].map(str::to_owned);
        assert_eq!(with_reasons(&failed, before), ["map/A a", "map/B b # it is so", "map/D d"]);
    }
}
