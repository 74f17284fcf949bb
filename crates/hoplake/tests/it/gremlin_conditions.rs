//! Conditions after a hop or a scan: the engine tests them where it can, and that has the answers of steps that look at each element.
//!
//! | | siblings |
//! | --- | --- |
//! | sources | `V()` `E()` with and without labels, `out` `in` `both`, `outE` `inE` `bothE`, and `inV` `outV` `otherV` after these |
//! | steps | `has` `hasLabel` `hasNot`, `values(…).is(…)` and `label().is(…)` within another, and `and` `or` `not` `where` `filter` of them |
//! | predicates | all of them, and `and` `or` `not` of them |
//! | values | each type of number, text, truth values, null, NaN, the infinities; numbers that only floats have in common |
//! | properties | of one type, of another type for each label, of several values, of a type that is stored as another, absent |

use hoplake::{
    Graph, IndexSettings, QueryContext,
    gremlin::{Transaction, value::Value},
};

use crate::{
    graphs::graph_at,
    gremlin::empty,
    waves::{assert_same, in_parts, open, people},
};

/// Literals of one type, with text that is a number and numbers that are no integers.
const VALUES: [&str; 16] = [
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
    "9007199254740992.0",
    "16777216f",
];

/// Properties of elements, a line for each. `n` has a number, `m` numbers of a type for each label, `t` a text, and `l` several values.
const PROPERTIES: [&[(&str, &str)]; 8] = [
    &[("n", "1l"), ("m", "1l"), ("t", "'b'"), ("f", "1.5f")],
    &[("n", "2l"), ("m", "2l"), ("t", "''"), ("b", "true")],
    &[("n", "9007199254740993l"), ("m", "3l"), ("t", "'bc'"), ("b", "false"), ("i", "16777217")],
    &[("m", "4l"), ("i", "1")],
    &[("m", "'1'"), ("d", "NaN"), ("t", "'1'")],
    &[("m", "'b'"), ("d", "-0.0"), ("n", "1l")],
    &[("m", "''"), ("d", "1.5"), ("n", "3l"), ("f", "0.1f")],
    &[("d", "Infinity"), ("n", "0l")],
];

const NAMES: [&str; 9] = ["n", "m", "t", "b", "d", "f", "i", "l", "nothing"];

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
        for name in NAMES {
            for hop in ["out()", "outE('to-b')", "both().both()"] {
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

/// Steps that are conditions, with every kind of step in them.
fn conditions() -> Vec<String> {
    let mut all: Vec<String> = [
        "hasLabel('a')",
        "hasLabel('a', 's', 'to-b')",
        "hasLabel(neq('a'))",
        "hasLabel(regex('a|to-b'))",
        "hasLabel(TextP.startingWith('to'))",
        "hasLabel('nothing')",
        "has(T.label, without('b', 'to-b'))",
        "has('a', 'n', gt(0))",
        "has('to-b', 'm', neq('b'))",
        "where(__.label().is(within('a', 'to-a')))",
        "has(T.label, __.is('b'))",
        "not(hasLabel('a', 'to-a'))",
        "not(has('a', 'n', gt(1)))",
        "or(hasLabel('a', 'to-a'), has('m', 'b'))",
        "or(hasLabel('a').has('n', 1l), hasLabel('to-b').has('d', gt(1)))",
        "and(has('n', gt(0)), hasNot('b'))",
        "and(has('n', gt(0)).hasNot('f'), has('t'))",
        "or(has('n', 1l), hasNot('t'))",
        "or(has('n', 1l), has('t', 'b'), has('nothing'))",
        "or(has('n', 1l), has('t', regex('b.*')))",
        "not(or(has('n', 1l), has('t', 'b')))",
        "not(and(has('n', lt(3)), has('t', 'b')))",
        "not(and(has('n', lt(3)), not(has('t', 'b'))))",
        "not(not(has('n', lt(3))))",
        "not(where(has('n', lt(3))))",
        "filter(has('n', lt(3)).has('t'))",
        "where(__.hasNot('nothing'))",
        "or(has('nothing', 1), hasNot('nothing'))",
        "and(not(has('t', 1)), has('t'))",
        "where(__.has('t').values('n').is(gt(0)))",
        "where(__.values('n', 't').is(1l))",
        "where(__.values('n').is(gt(0)).is(lt(3)))",
        "where(__.properties('t'))",
        "where(__.properties('t').is('b'))",
        "where(__.out())",
        "and()",
        "or()",
        "where(__.has('n', 1l).or().has('t', 'b'))",
        "hasId('v1')",
        "not(hasId('v1'))",
        "hasId('v1').has('n', 2l)",
        "and(hasLabel('a'), hasId('v1', 'v2'))",
    ]
    .map(str::to_owned)
    .to_vec();
    for name in NAMES {
        all.push(format!("has('{name}')"));
        all.push(format!("hasNot('{name}')"));
        all.push(format!("where(__.values('{name}'))"));
        all.push(format!("not(__.values('{name}'))"));
        for predicate in
            ["gt(1)", "neq(1l)", "lte(1.5)", "within(1l, 'b', true)", "without(2l, 'b')", "not(outside(0, 2))"]
        {
            all.push(format!("not(has('{name}', {predicate}))"));
            all.push(format!("where(__.values('{name}').is({predicate}))"));
            all.push(format!("not(__.values('{name}').is({predicate}))"));
        }
    }
    all
}

/// Queries up to their condition: as rules see it, and with a step before it that keeps it apart.
const SOURCES: [(&str, &str); 14] = [
    ("V().", "V().identity()."),
    ("V().hasLabel('a').", "V().hasLabel('a').identity()."),
    ("E().", "E().identity()."),
    ("E().hasLabel('to-b', 'to-a').", "E().hasLabel('to-b', 'to-a').identity()."),
    ("V('s').out().", "V('s').out().identity()."),
    ("V('s', 'v1').both('to-a').both().", "V('s', 'v1').both('to-a').both().identity()."),
    ("V('v1', 'v5').in().", "V('v1', 'v5').in().identity()."),
    ("V('s').outE().", "V('s').outE().identity()."),
    ("V('v1', 'v5', 's').bothE().", "V('v1', 'v5', 's').bothE().identity()."),
    ("V('s').outE().inV().", "V('s').outE().identity().inV().identity()."),
    ("V('s').outE().has('n').inV().", "V('s').outE().identity().has('n').identity().inV().identity()."),
    (
        "V('v1', 'v5').inE().hasNot('d').outV().",
        "V('v1', 'v5').inE().identity().hasNot('d').identity().outV().identity().",
    ),
    ("V('v1', 's').bothE().otherV().", "V('v1', 's').bothE().identity().otherV().identity()."),
    ("V('s').outE().outV().", "V('s').outE().identity().outV().identity()."),
];

/// Every condition at every place, before a step that reads nothing, one that reads other properties, and at the end.
#[tokio::test]
async fn conditions_of_all_kinds_are_those_of_steps() {
    let (_graph, mut transaction) = star("kinds").await;
    let mut fulfilled = 0;
    for (taken, left) in SOURCES {
        for condition in conditions() {
            for end in [".count()", ".values('m')", "", ".as('x').in().select('x').label()"] {
                let taken = format!("g.{taken}{condition}{end}");
                let left = format!("g.{left}{condition}{end}");
                let found = count(&mut transaction, &taken).await;
                assert_eq!(found, count(&mut transaction, &left).await, "{taken}");
                fulfilled += usize::from(found.is_ok_and(|found| !["", "0"].contains(&&*found)));
            }
        }
    }
    assert!(fulfilled > 2_000, "{fulfilled}");
}

/// Conditions on an edge and on the vertex that it leads to.
#[tokio::test]
async fn conditions_on_edges_and_vertices_are_those_of_steps() {
    let (_graph, mut transaction) = star("both").await;
    let conditions = conditions();
    let mut fulfilled = 0;
    for (number, on_edge) in conditions.iter().enumerate() {
        // Each with some others.
        for step in [1, 7, 20, 41] {
            let on_vertex = &conditions[(number + step) % conditions.len()];
            for (edges, vertices) in [("outE()", "inV()"), ("bothE()", "otherV()")] {
                let taken = format!("g.V('s', 'v1').{edges}.{on_edge}.{vertices}.{on_vertex}.count()");
                let left = format!(
                    "g.V('s', 'v1').{edges}.identity().{on_edge}.identity().{vertices}.identity().{on_vertex}.count()"
                );
                let found = count(&mut transaction, &taken).await;
                assert_eq!(found, count(&mut transaction, &left).await, "{taken}");
                fulfilled += usize::from(found.is_ok_and(|found| found != "0"));
            }
        }
    }
    assert!(fulfilled > 200, "{fulfilled}");
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

/// A condition has at most the waves and the requests that its step would have: of each query these, and those of the steps.
#[tokio::test(start_paused = true)]
async fn a_condition_takes_no_more_waves() {
    let inner = people();
    let taken = async |query: &str| {
        let (_, graph) = open(&inner, &in_parts()).await;
        let context = QueryContext::new();
        let found = crate::gremlin::values(&graph, query, &context).await;
        let cost = context.cost();
        ((cost.waves, cost.requests), found)
    };
    let mut wrong = Vec::new();
    for (query, as_steps, of_query, of_steps) in [
        (
            "V('P:5').out('knows').has('age', gt(30)).count()",
            "V('P:5').out('knows').identity().has('age', gt(30)).count()",
            (3, 4),
            (3, 4),
        ),
        (
            "V('P:5').out('knows').hasNot('age').count()",
            "V('P:5').out('knows').identity().hasNot('age').count()",
            (3, 4),
            (3, 4),
        ),
        (
            "V('P:5').out('knows').or(has('age', lt(20)), has('age', gt(30))).count()",
            "V('P:5').out('knows').identity().or(has('age', lt(20)), has('age', gt(30))).count()",
            (3, 4),
            (3, 4),
        ),
        (
            "V('P:5').outE('knows').has('since', gt(50)).inV().values('name')",
            "V('P:5').outE('knows').identity().has('since', gt(50)).inV().values('name')",
            (4, 6),
            (4, 6),
        ),
        (
            "V('P:5').outE('knows').has('since', gt(50)).inV().has('age', gt(30)).count()",
            "V('P:5').outE('knows').identity().has('since', gt(50)).inV().identity().has('age', gt(30)).count()",
            (3, 6),
            (4, 6),
        ),
        ("V('P:5').out().hasLabel('C').count()", "V('P:5').out().identity().hasLabel('C').count()", (2, 2), (2, 3)),
        (
            "V('P:5').out().hasLabel('P').values('name')",
            "V('P:5').out().identity().hasLabel('P').values('name')",
            (3, 5),
            (3, 6),
        ),
        (
            "V('P:5').out('knows').hasLabel('P').has('age', regex('x')).values('name')",
            "V('P:5').out('knows').identity().hasLabel('P').has('age', regex('x')).values('name')",
            (3, 4),
            (3, 4),
        ),
        (
            "V('P:5').outE('knows').has('since', typeOf(GType.INT)).inV().has('name', regex('9')).count()",
            "V('P:5').outE('knows').identity().has('since', typeOf(GType.INT)).inV().identity().has('name', regex('9')).count()",
            (3, 5),
            (3, 5),
        ),
        (
            "V('P:5').out('knows').has('age', gt(30)).out('livesIn').count()",
            "V('P:5').out('knows').identity().has('age', gt(30)).out('livesIn').count()",
            (4, 5),
            (4, 5),
        ),
        ("V().hasNot('age').count()", "V().identity().hasNot('age').count()", (2, 2), (4, 4)),
        (
            "V().hasLabel('P').hasNot('age').values('name')",
            "V().hasLabel('P').identity().hasNot('age').values('name')",
            (2, 2),
            (2, 2),
        ),
        (
            "V().hasLabel('P').not(has('age', gt(30))).count()",
            "V().hasLabel('P').identity().not(has('age', gt(30))).count()",
            (2, 2),
            (2, 2),
        ),
        (
            "V().has('age', gt(80)).hasNot('x').count()",
            "V().has('age', gt(80)).identity().hasNot('x').count()",
            (2, 2),
            (3, 3),
        ),
        (
            "V().has('age', gt(80)).has('name', regex('9')).count()",
            "V().has('age', gt(80)).identity().has('name', regex('9')).count()",
            (3, 3),
            (3, 3),
        ),
        (
            "E().hasLabel('knows').has('since', gt(50)).count()",
            "E().hasLabel('knows').identity().has('since', gt(50)).count()",
            (3, 4),
            (4, 4),
        ),
        (
            "E().has('since', gt(95)).values('since').sum()",
            "E().identity().has('since', gt(95)).values('since').sum()",
            (4, 4),
            (4, 4),
        ),
    ] {
        let (cost, found) = taken(&format!("g.{query}")).await;
        let (cost_of_steps, found_by_steps) = taken(&format!("g.{as_steps}")).await;
        assert_eq!(found, found_by_steps, "{query}");
        assert!(
            cost.0 <= cost_of_steps.0 && cost.1 <= cost_of_steps.1,
            "{query}: {cost:?}, as steps {cost_of_steps:?}"
        );
        if (cost, cost_of_steps) != (of_query, of_steps) {
            wrong.push((query, cost, cost_of_steps));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// As many waves and requests as where the id is the source's own, whatever other conditions stand before or after it, and wherever
/// the source stands; with an index on one of the conditions, too, which is not asked then. No key of another label is looked up.
#[tokio::test(start_paused = true)]
async fn an_id_among_conditions_costs_a_look_up() {
    let inner = people();
    let first_edge = {
        let (_, graph) = open(&inner, &in_parts()).await;
        let found =
            crate::gremlin::values(&graph, "g.V('P:5').outE('knows').limit(1).id()", &QueryContext::new()).await;
        found[0].0.to_string()
    };
    let taken = async |query: &str| {
        let (store, graph) = open(&inner, &in_parts()).await;
        store.reset();
        let context = QueryContext::new();
        let found = crate::gremlin::values(&graph, &query.replace("EDGE", &first_edge), &context).await;
        assert_same(&store, context.cost());
        ((context.cost().waves, context.cost().requests), found)
    };
    let mut wrong = Vec::new();
    for indexed in [false, true] {
        if indexed {
            let settings = IndexSettings::default();
            Graph::create_index(&graph_at(inner.clone()), "P.age", &settings).await.unwrap();
        }
        for (query, looked_up, cost) in [
            ("V().hasId('P:5').values('name')", "V('P:5').values('name')", (2, 3)),
            ("V().hasLabel('P').hasId('P:5').values('name')", "V('P:5').hasLabel('P').values('name')", (2, 3)),
            (
                "V().has('age', gte(0)).hasId('P:5').values('name')",
                "V('P:5').has('age', gte(0)).values('name')",
                (2, 3),
            ),
            ("V().hasLabel('C').hasId('P:5').values('name')", "inject(1).discard().values('name')", (0, 0)),
            ("V().hasLabel('nope').hasId('P:5').values('name')", "inject(1).discard().values('name')", (0, 0)),
            ("V().has('P', T.id, 'P:5').values('name')", "V('P:5').hasLabel('P').values('name')", (2, 3)),
            ("V().and(hasLabel('P'), hasId('P:5')).values('name')", "V('P:5').hasLabel('P').values('name')", (2, 3)),
            ("V().where(hasId('P:5')).values('name')", "V('P:5').values('name')", (2, 3)),
            ("V().hasId(neq('P:6')).hasId('P:5').out().count()", "V('P:5').hasId(neq('P:6')).out().count()", (2, 4)),
            (
                "V().as('a').hasId('P:5').out().select('a').by('name')",
                "V('P:5').as('a').out().select('a').by('name')",
                (3, 5),
            ),
            (
                "V().hasLabel('P').as('a').hasId('P:5').out().select('a').by('name')",
                "V('P:5').as('a').hasLabel('P').out().select('a').by('name')",
                (3, 5),
            ),
            (
                "V().hasLabel('P').hasId('P:5', 'C:7').out().count()",
                "V('P:5', 'C:7').hasLabel('P').out().count()",
                (2, 3),
            ),
            ("E().hasId('EDGE').values('since')", "E('EDGE').values('since')", (3, 3)),
            (
                "E().hasLabel('knows').hasId('EDGE').inV().values('name')",
                "E('EDGE').hasLabel('knows').inV().values('name')",
                (3, 3),
            ),
            ("E().has('since', gte(0)).hasId('EDGE').count()", "E('EDGE').has('since', gte(0)).count()", (3, 3)),
            (
                "inject(1).V().hasLabel('P').hasId('P:5').values('name')",
                "inject(1).V('P:5').hasLabel('P').values('name')",
                (2, 3),
            ),
            (
                "V('P:7').V().hasLabel('P').hasId('P:5').values('name')",
                "V('P:7').V('P:5').hasLabel('P').values('name')",
                (2, 3),
            ),
            ("V('P:7').E().hasId('EDGE').values('since')", "V('P:7').E('EDGE').values('since')", (4, 4)),
            (
                "inject(1).union(V().hasLabel('P').hasId('P:5')).values('name')",
                "inject(1).union(V('P:5').hasLabel('P')).values('name')",
                (2, 3),
            ),
        ] {
            let (of_conditions, found) = taken(&format!("g.{query}")).await;
            let (of_look_up, expected) = taken(&format!("g.{looked_up}")).await;
            assert_eq!(found, expected, "{query}");
            assert_eq!(found.is_empty(), cost == (0, 0), "{query}");
            if of_conditions != of_look_up || of_conditions != cost {
                wrong.push((indexed, query, of_conditions, of_look_up));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
