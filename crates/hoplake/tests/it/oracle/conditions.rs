//! Random conditions, and what they say by definition.

use std::collections::BTreeSet;

use hoplake_testkit::{
    generate::SplitMix64,
    oracle::{self, Oracle, Value, Vertex},
};

use super::draw;

/// What a condition says of an edge and the vertex that it reaches; `None` is unknown.
pub(super) type Judge = Box<dyn Fn(&Oracle, &oracle::Edge, Vertex) -> Option<bool> + Send + Sync>;

/// A condition as text, and as the definition of each of its words.
pub(super) fn random_condition(
    random: &mut SplitMix64,
    depth: u32,
    names: &mut BTreeSet<&'static str>,
) -> (String, Judge) {
    let shape = if depth > 2 { 0 } else { random.below(6) };
    if shape < 3 {
        return random_test(random, names);
    }
    let (one_text, one) = random_condition(random, depth + 1, names);
    if shape == 3 {
        return (format!("not ({one_text})"), Box::new(move |graph, edge, to| one(graph, edge, to).map(|it| !it)));
    }
    let (other_text, other) = random_condition(random, depth + 1, names);
    // What decides is true in `or` and false in `and`; else unknown wins over the other.
    let (word, decides) = if shape == 4 { ("and", false) } else { ("or", true) };
    let judge = move |graph: &Oracle, edge: &oracle::Edge, to| {
        let both = [one(graph, edge, to), other(graph, edge, to)];
        if both.contains(&Some(decides)) { Some(decides) } else { both[0].and(both[1]) }
    };
    (format!("({one_text}) {word} ({other_text})"), Box::new(judge))
}

fn random_test(random: &mut SplitMix64, names: &mut BTreeSet<&'static str>) -> (String, Judge) {
    let name = *draw(random, &["w", "age", "name"]).expect("there are three");
    names.insert(name);
    let value = |number: i64| if name == "name" { Value::Text(format!("n{number}")) } else { Value::Int(number) };
    let text = |number: i64| if name == "name" { format!("'n{number}'") } else { number.to_string() };
    let numbers: Vec<i64> = (0..2).map(|_| random.below(6) as i64).collect();
    let values = [value(numbers[0]), value(numbers[1])];
    let texts = [text(numbers[0]), text(numbers[1])];
    let requirement = random.below(10);
    let sign = ["=", "!=", "<", "<=", ">", ">="].get(requirement as usize).copied();
    let written = match requirement {
        6 => format!("{name} in ({})", texts.join(", ")),
        7 => format!("{name} between {} and {}", texts[0], texts[1]),
        8 => format!("{name} is null"),
        9 if name == "name" => format!("{name} starts with n{}", numbers[0]),
        9 => format!("{name} is not null"),
        _ => format!("{name}{}{}", sign.unwrap(), texts[0]),
    };
    let judge = move |graph: &Oracle, edge: &oracle::Edge, to: Vertex| {
        let properties = if name == "w" { &edge.properties } else { &graph.vertices[to].properties };
        let found = properties.get(name);
        match requirement {
            8 => return Some(found.is_none()),
            9 if name != "name" => return Some(found.is_some()),
            _ => {}
        }
        let order = |at: usize| found?.partial_cmp(&values[at]);
        let first = order(0)?;
        let second = order(1)?;
        Some(match sign {
            Some("=") => first.is_eq(),
            Some("!=") => first.is_ne(),
            Some("<") => first.is_lt(),
            Some("<=") => first.is_le(),
            Some(">") => first.is_gt(),
            Some(_) => first.is_ge(),
            None if requirement == 6 => first.is_eq() || second.is_eq(),
            None if requirement == 7 => first.is_ge() && second.is_le(),
            // One digit each: what a name begins with is all of it.
            None => first.is_eq(),
        })
    };
    (written, Box::new(judge))
}
