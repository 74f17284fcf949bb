//! The organisation: a tree of managers, the departments that the third level leads, titles by level, places.

use std::{fmt::Write, fs, path::Path};

use anyhow::Result;
use hoplake_testkit::generate::SplitMix64;

/// People that report to one.
const REPORTS: u64 = 7;
/// The first person of the level whose people lead departments: 1 + 7 + 49 are above.
const FIRST_LEAD: u64 = 1 + REPORTS + REPORTS * REPORTS + 1;
const LEADS: u64 = REPORTS * REPORTS * REPORTS;
const TITLES: [&str; 7] = ["Chief", "Director", "Head", "Lead", "Manager", "Senior", "Associate"];
pub(super) const PLACES: u64 = 30;

/// The manager of a person; nobody's of the first.
fn manager(person: u64) -> Option<u64> {
    (person > 1).then(|| (person - 2) / REPORTS + 1)
}

/// How many managers a person has, one above the other.
pub(super) fn managers(person: u64) -> usize {
    std::iter::successors(manager(person), |manager_of| manager(*manager_of)).count()
}

/// The person who leads the department of a person; who is above all departments is in that of the first lead.
fn lead(person: u64) -> u64 {
    let chain = std::iter::successors(Some(person), |person| manager(*person));
    chain.into_iter().find(|person| (FIRST_LEAD..FIRST_LEAD + LEADS).contains(person)).unwrap_or(FIRST_LEAD)
}

/// Writes files as a load reads them.
pub(super) fn write(folder: &Path, people: u64, seed: u64) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut random = SplitMix64::new(seed);
    let mut persons = String::from(":ID(person),name,title,place,grade:int,hired:date\n");
    let mut reports = String::from(":START_ID(person),:END_ID(person),:TYPE\n");
    let mut members = String::from(":START_ID(person),:END_ID(department),:TYPE\n");
    for person in 1..=people {
        let level = managers(person).min(TITLES.len() - 1);
        // Squared: some places have most people.
        let place = (random.below(PLACES) * random.below(PLACES)) / PLACES;
        let grade = random.below(12);
        let year = 1990 + random.below(35);
        let month = 1 + random.below(12);
        writeln!(persons, "{person},Person {person},{},place {place},{grade},{year}-{month:02}-01", TITLES[level])?;
        if let Some(manager) = manager(person) {
            writeln!(reports, "{person},{manager},reports_to")?;
        }
        writeln!(members, "{person},{},member_of", lead(person))?;
    }
    let mut departments = String::from(":ID(department),name\n");
    for department in FIRST_LEAD..FIRST_LEAD + LEADS {
        writeln!(departments, "{department},Department {department}")?;
    }
    let files = [("person", persons), ("department", departments), ("reports_to", reports), ("member_of", members)];
    for (name, text) in files {
        fs::write(folder.join(format!("{name}.csv")), text)?;
    }
    Ok(())
}
