//! Conditions after a hop: the engine tests them where it can, and that has the answers of steps that look at each element.

use hoplake::{
    Graph, QueryContext,
    gremlin::{Transaction, value::Value},
};

use crate::{
    gremlin::empty,
    waves::{in_parts, open, people},
};

/// Literals of one type, with text that is a number and numbers that are no integers.
const VALUES: [&str; 14] = [
    "1",
    "2l",
    "1.0",
    "1.5",
    "-0.0",
    "NaN",
    "Infinity",
    "'1'",
    "'b'",
    "''",
    "true",
    "null",
    "1.5f",
    "9007199254740993l",
];

/// Properties of elements, a line for each. `n` has a number, `m` numbers of a type for each label, `t` a text, and `l` several values.
const PROPERTIES: [&[(&str, &str)]; 8] = [
    &[("n", "1l"), ("m", "1l"), ("t", "'b'"), ("f", "1.5f")],
    &[("n", "2l"), ("m", "2l"), ("t", "''"), ("b", "true")],
    &[("n", "9007199254740993l"), ("m", "3l"), ("t", "'bc'"), ("b", "false")],
    &[("m", "4l")],
    &[("m", "'1'"), ("d", "NaN"), ("t", "'1'")],
    &[("m", "'b'"), ("d", "-0.0"), ("n", "1l")],
    &[("m", "''"), ("d", "1.5"), ("n", "3l"), ("f", "0.1f")],
    &[("d", "Infinity"), ("n", "0l")],
];

fn predicates() -> Vec<String> {
    let mut all = Vec::new();
    for value in VALUES {
        for test in ["eq", "neq", "lt", "lte", "gt", "gte"] {
            all.push(format!("{test}({value})"));
        }
        all.push(format!("within({value}, 2l, 'b')"));
        all.push(format!("without({value}, 2l)"));
        all.push(format!("between({value}, 3)"));
        all.push(format!("inside(0, {value})"));
        all.push(format!("outside({value}, 2)"));
        all.push(format!("gt({value}).or(lt(1))"));
        all.push(format!("gte({value}).and(lt(3))"));
        all.push(format!("not(eq({value}))"));
    }
    for text in ["'b'", "''", "'1'"] {
        for test in ["startingWith", "notStartingWith", "endingWith", "notEndingWith", "containing", "notContaining"] {
            all.push(format!("TextP.{test}({text})"));
        }
    }
    all.push("regex('b.*')".to_owned());
    all.push("typeOf(GType.LONG)".to_owned());
    all
}

/// A vertex from which edges lead to all others, of two labels, and the edges have the properties of their targets.
async fn star(name: &str) -> (Graph, Transaction) {
    let graph = empty(&format!("memory://gremlin-conditions-{name}")).await;
    let mut query = "g.addV('s').property(T.id, 's').as('s')".to_owned();
    for (number, properties) in PROPERTIES.iter().enumerate() {
        let label = if number < 4 { "a" } else { "b" };
        let all: String = properties.iter().map(|(name, value)| format!(".property('{name}', {value})")).collect();
        let edge = all.clone();
        query.push_str(&format!(".addV('{label}').property(T.id, 'v{number}'){all}.as('v')"));
        if number % 3 == 0 {
            query.push_str(".property(list, 'l', 1l).property(list, 'l', 2l)");
        }
        query.push_str(&format!(".addE('to-{label}').from('s').to('v'){edge}"));
    }
    let mut transaction = graph.gremlin();
    transaction.query(&query).await.unwrap();
    transaction.commit().await.unwrap();
    let mut graph = graph;
    graph.refresh().await.unwrap();
    // Changes that are not committed count, too.
    let mut transaction = graph.gremlin();
    transaction.query("g.V('v0').property('n', 7l)").await.unwrap();
    transaction.query("g.V('v3').property('n', 1l)").await.unwrap();
    (graph, transaction)
}

async fn count(transaction: &mut Transaction, query: &str) -> Result<String, String> {
    let answer = transaction.query(query).await.map_err(|error| error.to_string())?;
    Ok(answer.iter().map(Value::to_string).collect::<Vec<_>>().join(" "))
}

#[tokio::test]
async fn conditions_of_the_engine_are_those_of_steps() {
    let (_graph, mut transaction) = star("each").await;
    let mut fulfilled = 0;
    for predicate in predicates() {
        for name in ["n", "m", "t", "b", "d", "f", "l", "nothing"] {
            for hop in ["out()", "out('to-a')", "outE()", "outE('to-b')", "both().both()"] {
                let taken = format!("g.V('s').{hop}.has('{name}', {predicate}).count()");
                // Another step between the two.
                let left = format!("g.V('s').{hop}.identity().has('{name}', {predicate}).count()");
                let found = count(&mut transaction, &taken).await;
                assert_eq!(found, count(&mut transaction, &left).await, "{taken}");
                fulfilled += usize::from(found.is_ok_and(|count| count != "0"));
            }
        }
    }
    assert!(fulfilled > 1_000, "{fulfilled}");
}

/// Two conditions, of which the engine tests one or both, with labels, in loops and in traversals within others.
#[tokio::test]
async fn conditions_of_the_engine_are_those_of_steps_wherever_they_stand() {
    let (_graph, mut transaction) = star("places").await;
    for (taken, left) in [
        ("out().has('n', gt(0)).has('t', 'b').count()", "out().identity().has('n', gt(0)).has('t', 'b').count()"),
        (
            "out().has('n', gt(0)).has('t', regex('b')).count()",
            "out().identity().has('n', gt(0)).has('t', regex('b')).count()",
        ),
        (
            "out().has('n', gt(0)).as('x').in().select('x').id()",
            "out().identity().has('n', gt(0)).as('x').in().select('x').id()",
        ),
        ("out().has('m', 1l).in().path().by(id)", "out().identity().has('m', 1l).in().path().by(id)"),
        (
            "repeat(both().has('n', gt(0)).in()).times(2).count()",
            "repeat(both().identity().has('n', gt(0)).in()).times(2).count()",
        ),
        ("where(out().has('n', 7l)).count()", "where(out().identity().has('n', 7l)).count()"),
        ("outE().has('n', lt(3)).inV().id()", "outE().identity().has('n', lt(3)).inV().id()"),
        ("out().has('n', gt(0)).in().limit(2).count()", "out().identity().has('n', gt(0)).in().limit(2).count()"),
        (
            "union(out().has('n', 1l).in(), outE().has('n', 1l).outV()).count()",
            "union(out().identity().has('n', 1l).in(), outE().identity().has('n', 1l).outV()).count()",
        ),
    ] {
        let found = count(&mut transaction, &format!("g.V('s').{taken}")).await.unwrap();
        assert_eq!(found, count(&mut transaction, &format!("g.V('s').{left}")).await.unwrap(), "{taken}");
        assert!(!["", "0"].contains(&&*found), "{taken}");
    }
}

/// The condition has the wave that the step would have.
#[tokio::test(start_paused = true)]
async fn a_condition_takes_no_more_waves() {
    let inner = people();
    let waves = async |query: &str| {
        let (_, graph) = open(&inner, &in_parts()).await;
        let context = QueryContext::new();
        let found = crate::gremlin::values(&graph, query, &context).await;
        (context.cost().waves, found)
    };
    for (taken, left) in [
        ("out('knows').has('age', gt(30)).count()", "out('knows').identity().has('age', gt(30)).count()"),
        (
            "outE('knows').has('since', gt(50)).inV().values('name')",
            "outE('knows').identity().has('since', gt(50)).inV().values('name')",
        ),
        (
            "out('knows').has('age', gt(30)).out('livesIn').count()",
            "out('knows').identity().has('age', gt(30)).out('livesIn').count()",
        ),
    ] {
        assert_eq!(waves(&format!("g.V('P:5').{taken}")).await, waves(&format!("g.V('P:5').{left}")).await, "{taken}");
    }
}
