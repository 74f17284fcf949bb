//! Plans as people read them.

use std::fmt::{self, Display, Formatter, Write};

use super::{
    By, Computation, Counted, Found, Given, Plan, Predicate, Reaches, Settings, Step, StepKind, Steps, rules,
    work::{STEP_BYTES, Work},
};
use crate::{
    error::QueryError,
    tokens::{Direction, Order},
    value::Value,
};

/// Values that are shown of a list.
const SHOWN: usize = 5;

impl Display for Plan {
    /// A step a line, traversals within it below.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_steps(f, &self.steps, 0)
    }
}

fn write_steps(f: &mut impl Write, steps: &Steps, depth: usize) -> fmt::Result {
    for step in steps.iter() {
        writeln!(f, "{:indent$}{step}", "", indent = depth * 2)?;
        let mut kind = step.kind.clone();
        let mut written = Ok(());
        kind.for_each_nested(&mut |steps| {
            written = written.and_then(|()| crate::deep::with_stack(|| write_steps(f, steps, depth + 1)));
        });
        written?;
    }
    Ok(())
}

impl Display for Step {
    /// What it does, without the traversals within.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if !self.labels.is_empty() {
            write!(f, " as {}", self.labels.join(", "))?;
        }
        let together = &self.together;
        let mut parts: Vec<&str> = together.names.iter().map(|name| &**name).collect();
        if together.all {
            parts = vec!["all properties"];
        }
        if together.results {
            parts.push("what results have");
        }
        if parts.is_empty() { Ok(()) } else { write!(f, "  [reads {} together]", parts.join(", ")) }
    }
}

impl Display for StepKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // A variant's name is the first word of how it is debugged: the rest, with all that is within it, is not written.
        let mut name = FirstWord(String::new());
        let _ = write!(name, "{self:?}");
        f.write_str(&name.0)?;
        match self {
            Self::Vertices(Some(values)) | Self::Edges(Some(values)) | Self::Inject(values) => write_values(f, values),
            Self::Find(Found { labels, properties }) => {
                labels.iter().try_for_each(|predicate| write!(f, " label {predicate}"))?;
                properties.iter().try_for_each(|(name, predicate)| write!(f, " {name} {predicate}"))
            }
            Self::FindEdges(labels) => labels.iter().try_for_each(|predicate| write!(f, " label {predicate}")),
            Self::Hop(direction, labels, reaches) => {
                write_hop(f, *direction, labels)?;
                f.write_str(if *reaches == Reaches::Edges { " to edges" } else { " to vertices" })
            }
            Self::HopWhere(hop) => {
                write_hop(f, hop.direction, &hop.labels)?;
                f.write_str(if hop.reaches == Reaches::Edges { " to edges" } else { " to vertices" })?;
                hop.conditions.iter().try_for_each(|(name, predicate)| write!(f, " {name} {predicate}"))
            }
            Self::CountEdges(direction, labels) => write_hop(f, *direction, labels),
            Self::Walk(hops) => hops.iter().try_for_each(|(direction, labels)| write_hop(f, *direction, labels)),
            Self::Counted(Counted { edges, labels, by_label, .. }) => {
                f.write_str(if *edges { " edges" } else { " vertices" })?;
                labels.iter().try_for_each(|predicate| write!(f, " label {predicate}"))?;
                f.write_str(if *by_label { " by label" } else { "" })
            }
            Self::Has(by, predicate) => write!(f, " {by} {predicate}"),
            Self::HasProperty(name) | Self::HasNot(name) | Self::HasSteps(name, _) => write!(f, " {name}"),
            Self::Is(predicate) | Self::HasKey(predicate) | Self::HasValue(predicate) => write!(f, " {predicate}"),
            Self::Range(_, low, high) => match high {
                Some(high) => write!(f, " {low}..{high}"),
                None => write!(f, " {low}.."),
            },
            Self::Order(_, sortings) => sortings.iter().try_for_each(|(by, order)| {
                write!(f, " {by}")?;
                f.write_str(match order {
                    Order::Asc => "",
                    Order::Desc => " desc",
                    Order::Shuffle => " shuffled",
                })
            }),
            Self::Values(names) | Self::Properties(names) | Self::PropertyMap(names) | Self::ElementMap(names) => {
                write!(f, " {}", names.join(", "))
            }
            Self::ValueMap(names, ..) => write!(f, " {}", names.join(", ")),
            Self::Token(token) => write!(f, " {}", token.name()),
            Self::Constant(value) => write!(f, " {value}"),
            Self::Reduce(reduction, _) => write!(f, " {reduction:?}"),
            Self::Project(names, by) => {
                let of = |at: usize| if by.is_empty() { &By::Identity } else { &by[at % by.len()] };
                names.iter().enumerate().try_for_each(|(at, name)| write!(f, " {name}: {}", of(at)))
            }
            Self::Select(_, names, ..) => write!(f, " {}", names.join(", ")),
            Self::Group(name, key, value) => {
                name.iter().try_for_each(|name| write!(f, " as {name}"))?;
                write!(f, " {key}: {value}")
            }
            Self::GroupCount(name, by) => {
                name.iter().try_for_each(|name| write!(f, " as {name}"))?;
                write!(f, " {by}")
            }
            Self::Aggregate(_, name, by) => write!(f, " {by} as {name}"),
            Self::Cap(names) => write!(f, " {}", names.join(", ")),
            Self::Compute(Computation { program, property, edges: (direction, labels), .. }) => {
                write!(f, " {} as {property} along", program.step())?;
                write_hop(f, *direction, labels)
            }
            Self::ShortestPaths(search) => match search.distance_max {
                Some(most) => write!(f, " of at most {most}"),
                None => Ok(()),
            },
            Self::AddVertex(Given::Value(label), _) | Self::AddEdge(Given::Value(label), ..) => write!(f, " {label}"),
            _ => Ok(()),
        }
    }
}

fn write_values(f: &mut Formatter<'_>, values: &[Value]) -> fmt::Result {
    values.iter().take(SHOWN).try_for_each(|value| write!(f, " {value}"))?;
    match values.len().saturating_sub(SHOWN) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}

fn write_hop(f: &mut Formatter<'_>, direction: Direction, labels: &[super::Name]) -> fmt::Result {
    write!(f, " {}", direction.name().to_lowercase())?;
    if labels.is_empty() { Ok(()) } else { write!(f, " {}", labels.join(", ")) }
}

impl Display for By {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity => f.write_str("itself"),
            Self::Property(name) => f.write_str(name),
            Self::Token(token) => f.write_str(token.name()),
            Self::Column(column) => f.write_str(column.name()),
            Self::Steps(_) => f.write_str("(below)"),
        }
    }
}

impl Display for Predicate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut Formatter<'_>, all: &[Self], word: &str| {
            all.iter().enumerate().try_for_each(|(at, one)| {
                f.write_str(if at == 0 { "" } else { word })?;
                write!(f, "({one})")
            })
        };
        match self {
            Self::Test(test, values) => {
                write!(f, "{}", format!("{test:?}").to_lowercase())?;
                write_values(f, values)
            }
            Self::Regex(found, pattern) => {
                write!(f, "{} {pattern}", if *found { "regex" } else { "notRegex" })
            }
            Self::And(all) => joined(f, all, " and "),
            Self::Or(all) => joined(f, all, " or "),
            Self::Not(one) => write!(f, "not ({one})"),
        }
    }
}

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

/// The first word of what is written to it.
struct FirstWord(String);

impl Write for FirstWord {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let word = more.split(['(', ' ', '{']).next().unwrap_or_default();
        self.0.push_str(word);
        if word.len() == more.len() { Ok(()) } else { Err(fmt::Error) }
    }
}
