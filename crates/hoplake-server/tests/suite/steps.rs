//! What the steps of a scenario say, without doing it.

use crate::graphs::GraphName;

/// A step.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// `Given the modern graph`
    Graph(GraphName),
    /// `And the graph initializer of`: a text that runs first
    Initializer(String),
    /// `And using the parameter xx1 defined as "d[1].i"`: a name and the form of its value
    Parameter(String, String),
    /// `And using the side effect a defined as "s[]"`: `withSideEffect` before the traversal
    SideEffect(String, String),
    /// `And the traversal of`: the text that is tested
    Traversal(String),
    /// `When iterated to list`
    All,
    /// `When iterated next`
    Next,
    /// `Then the result should be unordered`, and so on
    Results(Matching, Vec<String>),
    /// `Then the result should be empty`
    NoResults,
    /// `Then the result should have a count of 3`
    Count(usize),
    /// `And the graph should return 1 for count of "g.V()"`
    CountOf(u64, String),
    /// `Then the traversal will raise an error`, with what its message is, if that counts
    Error(Option<Message>),
    /// `Then the result should be a tree with a structure of`: an indented line for each node
    Tree(String),
    /// `Then the result should be a subgraph with the following`: `vertices` or `edges`, and these
    Subgraph(String, Vec<String>),
    /// `Given an unsupported test`: nothing will be run
    Unsupported,
}

/// How results are compared with the rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matching {
    Ordered,
    Unordered,
    /// Each result is a row; a row may be no result.
    Of,
}

/// What an error says. Case does not count.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    Starting(String),
    Ending(String),
    Containing(String),
}

impl Message {
    pub fn is(&self, message: &str) -> bool {
        let message = message.to_lowercase();
        match self {
            Self::Starting(text) => message.starts_with(&text.to_lowercase()),
            Self::Ending(text) => message.ends_with(&text.to_lowercase()),
            Self::Containing(text) => message.contains(&text.to_lowercase()),
        }
    }
}

/// The meaning of a step that the parser of Gherkin read.
pub fn step(read: &gherkin::Step) -> Result<Step, String> {
    let unknown = || format!("unknown step: {}", read.value);
    let text = || read.docstring.as_deref().map(doc_string).ok_or_else(|| format!("no text follows: {}", read.value));
    Ok(match read.value.as_str() {
        "the graph initializer of" => Step::Initializer(text()?),
        "the traversal of" => Step::Traversal(text()?),
        "iterated to list" => Step::All,
        "iterated next" => Step::Next,
        "the result should be ordered" => Step::Results(Matching::Ordered, rows(read)?.1),
        "the result should be unordered" => Step::Results(Matching::Unordered, rows(read)?.1),
        "the result should be of" => Step::Results(Matching::Of, rows(read)?.1),
        "the result should be empty" => Step::NoResults,
        "the result should be a tree with a structure of" => Step::Tree(text()?),
        "the result should be a subgraph with the following" => {
            let (head, rows) = rows(read)?;
            Step::Subgraph(head, rows)
        }
        "the traversal will raise an error" => Step::Error(None),
        "an unsupported test" | "nothing should happen because" => Step::Unsupported,
        value => with_arguments(value).ok_or_else(unknown)?,
    })
}

fn with_arguments(value: &str) -> Option<Step> {
    if let Some(rest) = value.strip_prefix("using the parameter ") {
        let (name, text) = rest.split_once(" defined as ")?;
        return Some(Step::Parameter(name.to_owned(), quoted(text)?));
    }
    if let Some(rest) = value.strip_prefix("using the side effect ") {
        let (name, text) = rest.split_once(" defined as ")?;
        return Some(Step::SideEffect(name.to_owned(), quoted(text)?));
    }
    if let Some(rest) = value.strip_prefix("the graph should return ") {
        let (count, text) = rest.split_once(" for count of ")?;
        return Some(Step::CountOf(count.parse().ok()?, quoted(text)?));
    }
    if let Some(count) = value.strip_prefix("the result should have a count of ") {
        return Some(Step::Count(count.parse().ok()?));
    }
    if let Some(rest) = value.strip_prefix("the traversal will raise an error with message ") {
        let (how, text) = rest.split_once(" text of ")?;
        let text = quoted(text)?;
        return Some(Step::Error(Some(match how {
            "starting" => Message::Starting(text),
            "ending" => Message::Ending(text),
            "containing" => Message::Containing(text),
            _ => return None,
        })));
    }
    let name = value.strip_prefix("the ")?.strip_suffix(" graph")?;
    GraphName::named(name).map(Step::Graph)
}

/// The text within quotes, where `\"` is a quote and every other backslash is itself.
fn quoted(text: &str) -> Option<String> {
    Some(text.strip_prefix('"')?.strip_suffix('"')?.replace("\\\"", "\""))
}

/// The text without the line breaks after and before its `"""`. The indentation of a first line counts in a tree.
fn doc_string(text: &str) -> String {
    text.strip_prefix('\n').unwrap_or(text).trim_end().to_owned()
}

/// The head and the rows of a table with one column.
fn rows(read: &gherkin::Step) -> Result<(String, Vec<String>), String> {
    let table = read.table.as_ref().ok_or_else(|| format!("no table follows: {}", read.value))?;
    let mut cells = table.rows.iter().map(|row| match row.as_slice() {
        [cell] => Ok(cell.clone()),
        _ => Err(format!("a row has {} cells and not one", row.len())),
    });
    let head = cells.next().ok_or("a table has no head")??;
    Ok((head, cells.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps of a scenario with these lines.
    fn steps(lines: &str) -> Vec<Step> {
        let feature = format!("Feature: f\n\n  Scenario: s\n{lines}\n");
        let feature = gherkin::Feature::parse(feature, gherkin::GherkinEnv::default()).unwrap();
        feature.scenarios[0].steps.iter().map(|read| step(read).unwrap()).collect()
    }

    #[test]
    fn steps_have_arguments() {
        let lines = r#"
    Given the crew graph
    And using the parameter xx1 defined as "m[{\"a\": \"d[1].i\"}]"
    And using the side effect a defined as "s[]"
    When iterated next
    Then the result should have a count of 12
    And the graph should return 1 for count of "g.V().has(\"name\",\"marko\")"
    And the traversal will raise an error with message starting text of "No"
    And the traversal will raise an error"#;
        assert_eq!(
            steps(lines),
            [
                Step::Graph(GraphName::Crew),
                Step::Parameter("xx1".into(), r#"m[{"a": "d[1].i"}]"#.into()),
                Step::SideEffect("a".into(), "s[]".into()),
                Step::Next,
                Step::Count(12),
                Step::CountOf(1, r#"g.V().has("name","marko")"#.into()),
                Step::Error(Some(Message::Starting("No".into()))),
                Step::Error(None),
            ]
        );
    }

    #[test]
    fn steps_have_texts_and_tables() {
        let lines = "
    Given the traversal of
      \"\"\"
      g.V().
        out()
      \"\"\"
    Then the result should be unordered
      | result |
      | a \\| b |
      | m[{\"a\":\"m[{\\\\\"b\\\\\":1}]\"}] |
    And the result should be a subgraph with the following
      | edges |
    And the result should be a tree with a structure of
      \"\"\"
      |--a
         |--b
      \"\"\"";
        assert_eq!(
            steps(lines),
            [
                Step::Traversal("g.V().\n  out()".into()),
                Step::Results(Matching::Unordered, vec!["a | b".into(), r#"m[{"a":"m[{\"b\":1}]"}]"#.into()]),
                Step::Subgraph("edges".into(), vec![]),
                Step::Tree("|--a\n   |--b".into()),
            ]
        );
    }

    #[test]
    fn case_of_messages_does_not_count() {
        assert!(Message::Containing("not FOUND".into()).is("Vertex Not found: 1"));
        assert!(!Message::Starting("not".into()).is("Vertex not found"));
        assert!(Message::Ending("1".into()).is("Vertex not found: 1"));
    }
}
