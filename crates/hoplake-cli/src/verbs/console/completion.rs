//! Words that Tab completes: steps behind a dot, what a graph has in quotes, commands behind a colon, and all else.

use std::collections::BTreeSet;

use hoplake::{Graph, gremlin::STEPS};

/// What stands elsewhere.
const OTHERS: &[&str] = &[
    "g",
    "__",
    "P",
    "TextP",
    "T",
    "Order",
    "Scope",
    "Column",
    "Pop",
    "eq",
    "neq",
    "gt",
    "gte",
    "lt",
    "lte",
    "within",
    "without",
    "between",
    "inside",
    "outside",
    "startingWith",
    "endingWith",
    "containing",
    "asc",
    "desc",
    "local",
    "global",
    "keys",
    "first",
    "last",
];

const COMMANDS: &[&str] = &["explain", "profile", "bind", "limit", "commit", "rollback", "refresh", "help", "quit"];

/// Names of a graph: labels, properties, prepared queries.
pub struct Words(BTreeSet<String>);

/// The names of a graph.
pub fn words(graph: &Graph) -> Words {
    let schema = graph.schema();
    let of_vertices = schema.vertex_labels.iter().map(|label| (&label.name, &label.properties));
    let of_edges = schema.edge_types.iter().map(|edge| (&edge.label, &edge.properties));
    let mut words = BTreeSet::new();
    for (label, properties) in of_vertices.chain(of_edges) {
        words.insert(label.clone());
        words.extend(properties.iter().map(|property| property.name.clone()));
    }
    words.extend(graph.queries().0.keys().cloned());
    Words(words)
}

/// Where the word before the cursor begins, and what it can become.
pub fn candidates(words: &Words, before: &str) -> (usize, Vec<String>) {
    let is_part = |next: char| next.is_alphanumeric() || next == '_' || next == '-';
    let begin = before
        .rfind(|next: char| !is_part(next))
        .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
    let (rest, word) = before.split_at(begin);
    let matching = |all: &mut dyn Iterator<Item = &str>| {
        all.filter(|candidate| candidate.starts_with(word)).map(str::to_owned).collect::<Vec<_>>()
    };
    let found = if in_quotes(rest) {
        // A label may have any character, so that the word is all since the quote.
        let begin = rest.rfind(['\'', '"']).map_or(begin, |at| at + 1);
        let word = &before[begin..];
        let found = words.0.iter().filter(|candidate| candidate.starts_with(word)).cloned().collect();
        return (begin, found);
    } else if rest == ":" {
        matching(&mut COMMANDS.iter().copied())
    } else if rest.ends_with('.') {
        matching(&mut STEPS.iter().copied())
    } else {
        matching(&mut OTHERS.iter().chain(STEPS).copied())
    };
    (begin, found)
}

/// Whether a string is open at the end of a text.
fn in_quotes(text: &str) -> bool {
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(next) = characters.next() {
        match quote {
            Some(_) if next == '\\' => drop(characters.next()),
            Some(open) if open == next => quote = None,
            None if matches!(next, '\'' | '"') => quote = Some(next),
            _ => {}
        }
    }
    quote.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_by_their_place() {
        let words = Words(["airport", "code", "city", "lives in"].map(str::to_owned).into());
        let complete = |before: &str| candidates(&words, before);
        assert_eq!(complete("g.V().outE").1, ["outE"]);
        assert_eq!(complete("g.V().has('c"), (11, vec!["city".to_owned(), "code".to_owned()]));
        assert_eq!(complete("g.V().out('lives i"), (11, vec!["lives in".to_owned()]));
        assert_eq!(complete(":pr"), (1, vec!["profile".to_owned()]));
        assert_eq!(complete("g.V().where(__.simp"), (15, vec!["simplePath".to_owned()]));
        assert_eq!(complete("g.V().order().by(asc"), (17, vec!["asc".to_owned()]));
        assert_eq!(complete("ä.ou").0, "ä.".len());
        assert!(complete("g.V('x').has('n").1.is_empty());
    }
}
