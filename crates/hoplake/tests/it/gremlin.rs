//! Round trips of Gremlin queries on a graph just opened, counted by a store that cannot be fooled; and transactions.

use hoplake::{
    ErrorKind, Graph, QueryContext, Reason, Store,
    gremlin::{self, Names, Wanted, script::Statement, value::Value},
};

use crate::waves::{assert_same, in_parts, open, people};

/// Typical queries, with the waves that they take after the two of the open and their number of results.
const QUERIES: [(&str, u64, usize); 22] = [
    // The key, the ends of the table, and its pages.
    ("g.V('P:5')", 3, 1),
    ("g.V('P:5').values('name')", 3, 1),
    ("g.V('P:5', 'P:6', 'C:7').values('name')", 3, 3),
    ("g.V('P:5').label()", 1, 1),
    ("g.V('P:5').out('knows').count()", 2, 1),
    ("g.V('P:5').out('knows').values('name')", 4, 8),
    ("g.V('P:5').out('knows').out('knows').values('name')", 5, 64),
    ("g.V('P:5').out('knows').out('knows').dedup().count()", 3, 1),
    ("g.V('P:5').out('knows').has('age', gt(30)).values('name')", 5, 5),
    ("g.V('P:5').outE('knows').values('since')", 4, 8),
    ("g.V('P:5').outE('knows').has('since', gt(50)).inV().values('name')", 6, 2),
    ("g.V('P:5').out('knows').out('livesIn').values('name')", 5, 8),
    ("g.V('P:5').repeat(out('knows')).times(3).count()", 4, 1),
    ("g.V('P:5').repeat(out('knows').simplePath()).times(2).path().by('name').limit(3)", 5, 3),
    ("g.V('P:5').out('knows').where(out('livesIn').has('name', 'p3'))", 5, 0),
    ("g.V('P:5').out('knows').order().by(out('knows').count()).limit(1).label()", 3, 1),
    ("g.V('P:5').project('name', 'friends').by('name').by(out('knows').count())", 4, 1),
    ("g.V('P:5').union(out('knows'), out('livesIn')).count()", 3, 1),
    ("g.V('P:5').out('knows').group().by('age').by(count())", 4, 1),
    ("g.V('P:5').both('knows').in('livesIn')", 2, 0),
    ("g.V('P:5').out('knows').as('a').out('livesIn').select('a').dedup().label()", 3, 8),
    ("g.V('nobody:5').out()", 0, 0),
];

async fn values(graph: &Graph, query: &str, context: &QueryContext) -> Vec<(Value, u64)> {
    let script = gremlin::parse(query).unwrap();
    let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
    let plan = gremlin::plan(traversal, Names::default()).unwrap();
    let mut results = graph.gremlin_read_only().run(&plan, Wanted::default(), context).unwrap();
    let mut all = Vec::new();
    loop {
        let next = results.next(1_000).await.unwrap();
        if next.is_empty() {
            return all;
        }
        all.extend(next);
    }
}

#[tokio::test(start_paused = true)]
async fn typical_queries_take_their_waves() {
    let inner = people();
    let mut wrong = String::new();
    for (query, waves, count) in QUERIES {
        let (store, graph) = open(&inner, &in_parts()).await;
        store.reset();
        let context = QueryContext::new();
        let found = values(&graph, query, &context).await;
        assert_same(&store, context.cost());
        let found: u64 = found.iter().map(|(_, bulk)| bulk).sum();
        if (context.cost().waves, found) != (waves, count as u64) {
            wrong.push_str(&format!("{query}: {} waves, {found} results\n", context.cost().waves));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[tokio::test(start_paused = true)]
async fn waves_do_not_depend_on_the_number_of_traversers() {
    let inner = people();
    let mut waves = Vec::new();
    for start in ["g.V('P:5')", "g.V('P:5', 'P:6', 'P:7')", "g.V().hasLabel('P').limit(500)"] {
        let (_, graph) = open(&inner, &in_parts()).await;
        // What a scan has to know is read before.
        values(&graph, "g.V('P:1', 'C:1').valueMap()", &QueryContext::new()).await;
        values(&graph, &format!("{start}.label()"), &QueryContext::new()).await;
        let before = QueryContext::new();
        values(&graph, &format!("{start}.label()"), &before).await;
        let context = QueryContext::new();
        values(
            &graph,
            &format!("{start}.where(out('knows').has('age', gt(80))).out('livesIn').values('name')"),
            &context,
        )
        .await;
        waves.push(context.cost().waves - before.cost().waves);
    }
    assert_eq!(waves, [3, 3, 3]);
}

#[tokio::test]
async fn a_condition_in_the_scan_is_the_same_as_one_behind_it() {
    let (_, graph) = open(&people(), &in_parts()).await;
    for predicate in [
        "eq(30)",
        "eq(30.0)",
        "eq(30.5)",
        "eq('a')",
        "neq(30)",
        "neq('a')",
        "lt(30)",
        "lte(30)",
        "gt(30)",
        "gte(30)",
        "gt(30.5)",
        "between(20, 30)",
        "inside(20, 30)",
        "outside(20, 30)",
        "within(1, 2, 'a')",
        "within([])",
        "without(1, 2)",
        "gt(20).and(lte(30))",
        "lt(5).or(gt(80))",
    ] {
        let context = QueryContext::new();
        let within = format!("g.V().hasLabel('P').has('age', {predicate}).count()");
        let behind = format!("g.V().hasLabel('P').where(__.values('age').is({predicate})).count()");
        assert_eq!(values(&graph, &within, &context).await, values(&graph, &behind, &context).await, "{predicate}");
    }
}

async fn empty(url: &str) -> Graph {
    Graph::create(&Store::open(url).unwrap()).await.unwrap();
    Graph::open(url).await.unwrap()
}

#[tokio::test]
async fn a_transaction_reads_what_it_wrote_and_is_one_version() {
    let mut graph = empty("memory://gremlin-transaction").await;
    let mut transaction = graph.gremlin();
    transaction.query("g.addV('a').property(T.id, 1).property('x', 1).addV('a').property(T.id, 2)").await.unwrap();
    transaction
        .query("g.V(1).addE('e').to(__.V(2)).property('w', 1).addE('f').from(__.V(2)).to(__.V(1))")
        .await
        .unwrap();
    // Two edges of one label between the same vertices, and each is changed by itself.
    transaction.query("g.V(1).addE('e').to(__.V(2)).property('w', 2)").await.unwrap();
    assert_eq!(transaction.query("g.V(1).outE('e').values('w').sum()").await.unwrap(), [Value::from(3_i64)]);
    transaction.query("g.V(1).outE('e').has('w', 1).property('w', 10)").await.unwrap();
    assert_eq!(transaction.query("g.V(1).outE('e').values('w').sum()").await.unwrap(), [Value::from(12_i64)]);
    transaction.query("g.V(1).outE('e').has('w', 2).drop()").await.unwrap();
    // Others see nothing of it.
    assert_eq!(graph.gremlin().query("g.V().count()").await.unwrap(), [Value::from(0_i64)]);
    let before = graph.version();
    transaction.commit().await.unwrap();
    graph.refresh().await.unwrap();
    assert_eq!(graph.version(), before + 1);
    let mut after = graph.gremlin();
    assert_eq!(after.query("g.E().hasLabel('e').values('w')").await.unwrap(), [Value::from(10_i64)]);
    assert_eq!(after.query("g.V(2).drop()").await.unwrap(), []);
    assert_eq!(after.query("g.E().count()").await.unwrap(), [Value::from(0_i64)]);
    // Never committed.
    drop(after);
    graph.refresh().await.unwrap();
    assert_eq!(graph.gremlin().query("g.E().count()").await.unwrap(), [Value::from(2_i64)]);
}

#[tokio::test]
async fn changes_of_the_same_element_are_a_conflict() {
    let mut graph = empty("memory://gremlin-conflict").await;
    let mut first = graph.gremlin();
    first.query("g.addV('a').property(T.id, 1)").await.unwrap();
    first.commit().await.unwrap();
    graph.refresh().await.unwrap();
    let (mut one, mut other) = (graph.gremlin(), graph.gremlin());
    one.query("g.V(1).property('x', 1)").await.unwrap();
    other.query("g.V(1).property('x', 2)").await.unwrap();
    one.commit().await.unwrap();
    assert_eq!(other.commit().await.unwrap_err().kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn mistakes_say_what_they_are() {
    let graph = empty("memory://gremlin-mistakes").await;
    let mut transaction = graph.gremlin();
    let mut refused = async |query: &str| {
        let error = transaction.query(query).await.unwrap_err();
        (error.kind(), error.reason(), error.to_string())
    };
    let of = |reason: Reason, message: &str| (ErrorKind::Invalid, Some(reason), message.to_owned());
    assert_eq!(refused("g.V(").await.1, Some(Reason::Syntax));
    assert_eq!(refused("g.V().outX()").await, of(Reason::Step, "`outX` is not a step of Gremlin"));
    assert_eq!(refused("g.V().pageRank()").await, of(Reason::Step, "the step `pageRank` is not supported"));
    assert_eq!(refused("g.inject('a').sum()").await.1, Some(Reason::Query));
    assert_eq!(refused("g.inject(1).fail('no')").await, of(Reason::Fail, "no"));
    let error = graph.gremlin_read_only().query("g.addV('a')").await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ReadOnly));
}

#[tokio::test]
async fn a_loop_without_end_ends_at_its_limits() {
    let graph = empty("memory://gremlin-endless").await;
    for query in [
        "g.inject(1).repeat(identity()).until(is(2))",
        "g.inject([1]).repeat(fold()).until(is(2))",
        "g.inject(1, 2, 3, 4).repeat(union(identity(), identity()).fold().unfold()).until(is(9))",
    ] {
        let script = gremlin::parse(query).unwrap();
        let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
        let plan = gremlin::plan(traversal, Names::default()).unwrap();
        let budget = hoplake::MemoryBudget::unlimited("a test").within("the query", 4 << 20);
        let context = QueryContext::within(&budget);
        context.give_time(Some(300));
        let mut results = graph.gremlin_read_only().run(&plan, Wanted::default(), &context).unwrap();
        let error = results.next(1).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Limit | ErrorKind::Invalid), "{query}: {error}");
    }
}

/// Each was answered differently than by TinkerPop's server once.
#[tokio::test]
async fn answers_are_those_of_the_reference_server() {
    let graph = empty("memory://gremlin-reference").await;
    let mut transaction = graph.gremlin();
    let people = "g.addV('a').property(T.id, 1).property('x', 1).as('one').addV('a').property(T.id, 2).property(list, 'y', 'p')\
                  .property(list, 'y', 'q').addE('e').from('one').property('w', 2)";
    transaction.query(people).await.unwrap();
    for (query, expected) in [
        // Java's forms of numbers and times.
        (
            "g.inject(1.0e-5, 7.92e7, 0.001, 9999999.5, -1e7, 1e8f).asString()",
            "1.0E-5 7.92E7 0.001 9999999.5 -1.0E7 1.0E8",
        ),
        (
            "g.inject(datetime('2020-01-04T02:00:00Z'), datetime('2020-01-01T00:00:30.5Z'), datetime('2020-01-01T00:00:05+02:00'))\
             .asString()",
            "2020-01-04T02:00Z 2020-01-01T00:00:30.500Z 2020-01-01T00:00:05+02:00",
        ),
        ("g.inject('nan', 'ann', 'n', '').split('n')", "[a, ] [a, ] [] []"),
        ("g.inject('n', '').split('n').count(local)", "1 0"),
        ("g.inject('').split('').count(local)", "1"),
        // A part of a path is a list; a path stays in its order.
        ("g.inject('b').concat('a').path().limit(local, 1)", "[b]"),
        ("g.inject('b').concat('a').path().tail(local, 1)", "[ba]"),
        ("g.inject('b').constant('a').path().order(local)", "path[b, a]"),
        ("g.inject('b').constant('b').path().dedup(local)", "[b]"),
        ("g.inject('b').constant('a').path().index()", "[[b, 0], [a, 1]]"),
        ("g.inject('b').path().any(eq('b'))", "path[b]"),
        // A tree is a map.
        ("g.inject('b').tree().unfold()", "{b={}}"),
        ("g.inject('b').tree().select(keys)", "[b]"),
        ("g.inject('b').tree().select(values)", "[{}]"),
        ("g.inject('b', 'c').tree().limit(local, 1)", "{b={}}"),
        // A map has null for a key that it lacks.
        ("g.inject(['k': 1]).project('x', 'y').by('k').by('none')", "{x=1, y=null}"),
        ("g.inject(1l, 1l, 2l).group().by(identity()).by(identity())", "{1=[1, 1], 2=[2]}"),
        ("g.E().elementMap('w').order(local).by(keys).unfold().select(keys)", "IN OUT id label w"),
        ("g.V(2).properties('y').has('z').count()", "0"),
    ] {
        let answer = transaction.query(query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        let answer: Vec<String> = answer.iter().map(Value::to_string).collect();
        assert_eq!(answer.join(" "), expected, "{query}");
    }
    for refused in [
        "g.order()",
        "g.V().label().has('x')",
        "g.V().label().hasNot('x')",
        "g.V().label().has('x', 1)",
        "g.E().properties().has('x')",
        "g.E().properties().project('x').by('w')",
        "g.V(2).project('x').by('y')",
        "g.inject('a').concat(__.is('b'))",
        "g.V().where(out()).by('x')",
        "g.V().valueMap().select(keys).by('x')",
        "g.V().choose(label()).option(out())",
        "g.V().where(eq('none'))",
    ] {
        assert!(transaction.query(refused).await.is_err(), "{refused}");
    }
}
