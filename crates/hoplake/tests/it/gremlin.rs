//! Round trips of Gremlin queries on a graph just opened, counted by a store that cannot be fooled.

use hoplake::{
    ErrorKind, Graph, QueryContext, Reason, Store,
    gremlin::{self, Names, Wanted, script::Statement, value::Value},
};

use crate::waves::{assert_same, in_parts, open, people};

/// Typical queries, with the waves that they take after the two of the open and their number of results.
const QUERIES: [(&str, u64, usize); 34] = [
    // The key with the ends of the tables that will be read, and their pages.
    ("g.V('P:5')", 2, 1),
    ("g.V('P:5').values('name')", 2, 1),
    ("g.V('P:5', 'P:6', 'C:7').values('name')", 2, 3),
    ("g.V('P:5').label()", 1, 1),
    ("g.V('P:5').out('knows').count()", 2, 1),
    ("g.V('P:5').out('knows').values('name')", 3, 8),
    ("g.V('P:5').out('knows').out('knows').values('name')", 4, 64),
    ("g.V('P:5').out('knows').out('knows').dedup().count()", 3, 1),
    // The condition's property is read with the one that is asked for.
    ("g.V('P:5').out('knows').has('age', gt(30)).values('name')", 3, 5),
    ("g.V('P:5').out('knows').has('age', gt(30)).order().by('name').limit(2).valueMap()", 3, 2),
    ("g.V('P:5').outE('knows').values('since')", 3, 8),
    ("g.V('P:5').outE('knows').has('since', gt(50)).inV().values('name')", 4, 2),
    ("g.V('P:5').out('knows').out('livesIn').values('name')", 4, 8),
    ("g.V('P:5').repeat(out('knows')).times(3).count()", 4, 1),
    ("g.V('P:5').repeat(out('knows').simplePath()).times(2).path().by('name').limit(3)", 4, 3),
    ("g.V('P:5').repeat(out('knows')).emit().times(2).dedup().count()", 3, 1),
    ("g.V('P:5').out('knows').where(out('livesIn').has('name', 'p3'))", 4, 0),
    ("g.V('P:5').out('knows').order().by(out('knows').count()).limit(1).label()", 3, 1),
    // Traversals that need nothing of each other run side by side.
    ("g.V('P:5').project('name', 'friends').by('name').by(out('knows').count())", 2, 1),
    ("g.V('P:5').union(out('knows'), out('livesIn')).count()", 2, 1),
    ("g.V('P:5').out('knows').and(out('livesIn'), __.in('knows')).count()", 3, 1),
    ("g.V('P:5').coalesce(out('livesIn'), out('knows')).values('name')", 3, 1),
    ("g.V('P:5').choose(__.has('age', gt(1000)), out('livesIn'), out('knows')).count()", 3, 1),
    ("g.V('P:5').optional(out('livesIn')).label()", 2, 1),
    ("g.V('P:5').out('knows').group().by('age').by(count())", 3, 1),
    ("g.V('P:5').both('knows').in('livesIn')", 2, 0),
    ("g.V('P:5').out('knows').as('a').out('livesIn').select('a').dedup().label()", 3, 8),
    ("g.V('P:5').as('a').out('knows').as('b').select('a', 'b').by('name')", 3, 8),
    ("g.V('P:5').out('knows').aggregate('x').out('knows').where(without('x')).dedup().count()", 3, 1),
    ("g.V('nobody:5').out()", 0, 0),
    // The statistics of the graph have these.
    ("g.V().count()", 0, 1),
    ("g.V().hasLabel('P').count()", 0, 1),
    ("g.E().hasLabel('knows').count()", 0, 1),
    ("g.V().groupCount().by(label)", 0, 1),
];

pub(crate) async fn values(graph: &Graph, query: &str, context: &QueryContext) -> Vec<(Value, u64)> {
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

pub(crate) async fn empty(url: &str) -> Graph {
    Graph::create(&Store::open(url).unwrap()).await.unwrap();
    Graph::open(url).await.unwrap()
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

/// What a rule changes, next to the same that no rule knows.
const SAME: [(&str, &str); 13] = [
    ("g.V().count()", "g.V().map(identity()).count()"),
    ("g.V().hasLabel('P').count()", "g.V().where(label().is('P')).count()"),
    ("g.E().count()", "g.V().outE().as('e').count()"),
    ("g.E().hasLabel('knows').count()", "g.V().outE('knows').as('e').count()"),
    ("g.E().hasLabel('knows').id().order().fold()", "g.V().outE('knows').id().order().fold()"),
    (
        "g.E().has('knows', 'since', gt(50)).hasLabel('none', 'knows').count()",
        "g.V().outE('knows').has('since', gt(50)).as('e').count()",
    ),
    ("g.V().label().groupCount()", "g.V().map(label()).groupCount()"),
    ("g.E().groupCount().by(label)", "g.V().outE().map(label()).groupCount()"),
    ("g.V().both('knows').count()", "g.V().both('knows').as('v').count()"),
    // The second fails on what the first has kept from it.
    ("g.V().limit(5).or(identity(), __.inV()).count()", "g.V().limit(5).count()"),
    ("g.V().limit(5).and(__.hasLabel('none'), __.inV()).count()", "g.V().limit(0).count()"),
    (
        "g.V().hasLabel('P').limit(20).out('knows').out('knows').dedup().id().fold().order(local)",
        "g.V().hasLabel('P').limit(20).out('knows').out('knows').as('v').dedup('v').id().fold().order(local)",
    ),
    (
        "g.V().hasLabel('P').limit(9).project('a', 'b', 'c').by('name').by(out('knows').count()).by('age')",
        "g.V().hasLabel('P').limit(9).as('v').project('a', 'b', 'c').by('name').by(out('knows').as('w').count()).by('age')",
    ),
];

#[tokio::test]
async fn rules_change_no_answer() {
    let (_, graph) = open(&people(), &in_parts()).await;
    let mut transaction = graph.gremlin();
    for change in [
        "g.V().limit(0)",
        "g.V('P:5').outE('knows').limit(1).drop()",
        "g.V('P:6').drop()",
        "g.addV('P').property(T.id, 5000).property('name', 'New').addE('knows').to(__.V('P:5'))",
    ] {
        transaction.query(change).await.unwrap();
        for (query, plain) in SAME {
            assert_eq!(transaction.query(query).await.unwrap(), transaction.query(plain).await.unwrap(), "{query}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn edges_of_other_labels_are_not_read() {
    let mut bytes = Vec::new();
    for query in ["g.E().hasLabel('livesIn').inV().label()", "g.E().identity().hasLabel('livesIn').inV().label()"] {
        let (_, graph) = open(&people(), &in_parts()).await;
        let context = QueryContext::new();
        let found: u64 = values(&graph, query, &context).await.iter().map(|(_, bulk)| bulk).sum();
        bytes.push((context.cost().store_bytes, found));
    }
    let [(some, found), (all, again)] = bytes[..] else { panic!() };
    assert!(found == again && some * 3 < all, "{some} bytes of {all}");
}

#[tokio::test]
async fn the_first_way_out_of_a_loop_is_a_shortest() {
    let graph = empty("memory://gremlin-shortest").await;
    let mut transaction = graph.gremlin();
    // More neighbours than go around at a time: a longer way leads over one of the first, and the shortest over the last.
    let neighbours: String = (0..200).map(|at| format!(".addV('n').property(T.id, 'n{at:03}')")).collect();
    transaction.query(&format!("g.addV('n').property(T.id, 'from'){neighbours}")).await.unwrap();
    transaction.query("g.V('from').as('f').V().has(id, startingWith('n')).addE('e').from('f')").await.unwrap();
    transaction.query("g.addV('n').property(T.id, 'to').addV('n').property(T.id, 'via')").await.unwrap();
    for [from, to] in [["n000", "via"], ["via", "to"], ["n199", "to"]] {
        transaction.query(&format!("g.V('{from}').addE('e').to(__.V('{to}'))")).await.unwrap();
    }
    let way = "g.V('from').repeat(out().simplePath()).until(hasId('to')).path().by(id).limit(1)";
    assert_eq!(transaction.query(way).await.unwrap()[0].to_string(), "path[from, n199, to]");
    let ways = "g.V('from').repeat(out().simplePath()).until(hasId('to')).count()";
    assert_eq!(transaction.query(ways).await.unwrap(), [Value::from(2_i64)]);
}

#[tokio::test(start_paused = true)]
async fn a_profile_counts_what_the_query_cost() {
    let (store, graph) = open(&people(), &in_parts()).await;
    store.reset();
    let context = QueryContext::new();
    let found = values(&graph, "g.V('P:5').out('knows').has('age', gt(30)).values('name').profile()", &context).await;
    assert_same(&store, context.cost());
    let [(Value::Metrics(metrics), 1)] = &found[..] else { panic!("{found:?}") };
    let of = |name: &str| -> Vec<i64> {
        let value = |step: &gremlin::value::Metrics| {
            let found = step.annotations.iter().find(|(other, _)| **other == *name);
            match found {
                Some((_, Value::Number(number))) => number.to_string().parse::<i64>().unwrap(),
                other => panic!("{other:?}"),
            }
        };
        metrics.steps.iter().map(value).collect()
    };
    assert_eq!(of("waves"), [1, 1, 1, 0, 3]);
    let requests = of("requests");
    assert_eq!(requests[..4].iter().sum::<i64>(), requests[4]);
    assert_eq!(requests[4], context.cost().requests as i64);
    let given: Vec<i64> = metrics.steps.iter().filter_map(|step| Some(step.counts.last()?.1)).collect();
    assert_eq!(given, [1, 8, 5, 5]);
}

#[tokio::test]
async fn an_explanation_shows_each_rule() {
    let (_, graph) = open(&people(), &in_parts()).await;
    let query = "g.V().hasLabel('P').has('age', 30).out('knows').out().dedup().values('name').explain()";
    let text = graph.gremlin().query(query).await.unwrap().remove(0).to_string();
    for line in [
        "plan\n  Vertices\n  Has label within P",
        "after the rule `starts`\n  Find label within P and age eq 30",
        "after the rule `walks`",
        "  Walk out knows out\n  Dedup\n  Values name",
    ] {
        assert!(text.contains(line), "{text}");
    }
    // Nothing is run.
    let text = graph.gremlin_read_only().query("g.addV('a').explain()").await.unwrap();
    assert!(text[0].to_string().contains("AddVertex a"));
}

#[tokio::test]
async fn mistakes_say_what_they_are() {
    let graph = empty("memory://gremlin-mistakes").await;
    let mut transaction = graph.gremlin();
    let mut rejected = async |query: &str| {
        let error = transaction.query(query).await.unwrap_err();
        (error.kind(), error.reason(), error.to_string())
    };
    let of = |reason: Reason, message: &str| (ErrorKind::Invalid, Some(reason), message.to_owned());
    assert_eq!(rejected("g.V(").await.1, Some(Reason::Syntax));
    assert_eq!(rejected("g.V().outX()").await, of(Reason::Step, "`outX` is not a step of Gremlin"));
    assert_eq!(rejected("g.V().program()").await, of(Reason::Step, "the step `program` is not supported"));
    assert_eq!(rejected("g.inject('a').sum()").await.1, Some(Reason::Query));
    for labels in ["as('a').as('b')", "as('a').out().as('b').as('c')"] {
        assert_eq!(rejected(&format!("g.V().as('a').out().as('b').where(__.{labels})")).await.0, ErrorKind::Invalid);
    }
    assert_eq!(rejected("g.inject(1).fail('no')").await, of(Reason::Fail, "no"));
    let error = graph.gremlin_read_only().query("g.addV('a')").await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ReadOnly));
}

#[tokio::test]
async fn a_loop_without_end_ends_at_its_limits() {
    let graph = empty("memory://gremlin-endless").await;
    let limited = "g.with('evaluationTimeout', 50).inject(1).repeat(identity()).until(is(2))";
    assert_eq!(graph.gremlin_read_only().query(limited).await.unwrap_err().kind(), ErrorKind::Limit);
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

/// Queries whose parts are work that other threads need not wait for.
async fn run_long_queries(url: &str) {
    let graph = empty(url).await;
    let text = "a".repeat(50_000);
    for query in [
        format!("g.inject('{text}').filter(is(regex('b|{}c'))).count()", "a".repeat(500)),
        format!("g.inject('{text}'){}.count()", ".identity()".repeat(20_000)),
        format!(
            "g.inject({}).unfold().order().count()",
            (0..40_000).map(|it| it.to_string()).collect::<Vec<_>>().join(", ")
        ),
        format!("g.inject({}1).unfold().sample(10000).count()", "1, ".repeat(40_000)),
        format!("g.inject('a'){}.count()", ".filter(is(regex('^(a|b)$')))".repeat(10)),
    ] {
        graph.gremlin_read_only().query(&query).await.unwrap();
    }
}

/// Long work may be anywhere that a future may be, also where tokio does not let it give up its thread.
#[tokio::test(flavor = "multi_thread")]
async fn long_queries_run_in_a_local_set() {
    tokio::task::LocalSet::new().run_until(run_long_queries("memory://gremlin-local")).await;
}

/// The threads of the blocking pool are started, and marked, as the workers are.
#[test]
fn long_queries_run_on_marked_threads() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let builder = builder.worker_threads(2).on_thread_start(gremlin::mark_worker_thread).enable_all();
    let marked = builder.build().unwrap();
    marked.block_on(async {
        tokio::spawn(run_long_queries("memory://gremlin-marked")).await.unwrap();
        let on_blocking_pool = tokio::task::spawn_blocking(|| {
            let single = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            single.block_on(run_long_queries("memory://gremlin-single"));
            tokio::task::LocalSet::new().block_on(&single, run_long_queries("memory://gremlin-single-local"));
        });
        on_blocking_pool.await.unwrap();
    });
}

/// A number of thousands of digits takes a part of a millisecond.
#[tokio::test]
async fn reading_long_numbers_gives_way_to_other_tasks() {
    let graph = empty("memory://gremlin-numbers").await;
    let turns = std::rc::Rc::new(std::cell::Cell::new(0_u32));
    let counted = turns.clone();
    let others = async move {
        while counted.get() < u32::MAX {
            counted.set(counted.get() + 1);
            tokio::task::yield_now().await;
        }
    };
    let query = |step: &str| format!("g.inject(1..512).unfold().constant('{}'){step}.count()", "7".repeat(9_000));
    let run = async {
        graph.gremlin_read_only().query(&query("")).await.unwrap();
        let before = turns.replace(0);
        graph.gremlin_read_only().query(&query(".asNumber()")).await.unwrap();
        (before, turns.get())
    };
    tokio::select! {
        biased;
        (before, after) = run => assert!(after >= before + 400, "{before} and {after} turns"),
        () = others => {}
    }
}

/// Several labels at the beginning name the traverser itself, and several at the end are an error.
#[tokio::test]
async fn conditions_begin_at_one_label() {
    let url = "memory://gremlin-where-labels";
    let mut transaction = empty(url).await.gremlin();
    let text = "g.addV('a').property('name', '1').as('x').addV('a').property('name', '2').as('y').addE('to').from('x').to('y')\
                .addV('a').property('name', '3').as('z').addE('to').from('y').to('z')";
    transaction.query(text).await.unwrap();
    transaction.commit().await.unwrap();
    let graph = Graph::open(url).await.unwrap();
    for (condition, expected) in [
        ("__.as('a').as('b').out()", "2"),
        ("__.as('a', 'b').out()", "2"),
        ("__.as('a').as('a').out()", "2 3"),
        ("__.as('a', 'a').out()", "2 3"),
        ("__.as('a').out().as('b')", "2 3"),
        ("__.as('a', 'b').out().as('b')", ""),
        ("__.as('a').as('b').out().as('b')", ""),
    ] {
        let query = format!("g.V().as('a').out().as('b').where({condition}).values('name').order()");
        let values = graph.gremlin_read_only().query(&query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        let found: Vec<String> = values.iter().map(ToString::to_string).collect();
        assert_eq!(found.join(" "), expected, "{condition}");
    }
    for condition in ["__.as('a').as('b')", "__.as('a', 'b')", "__.as('a').out().as('b', 'c')", "out().as('a').as('b')"]
    {
        let query = format!("g.V().as('a').out().as('b').where({condition})");
        let error = graph.gremlin_read_only().query(&query).await.unwrap_err();
        assert!(error.to_string().contains("may end with one label"), "{condition}: {error}");
    }
}

/// The engine takes a thousand tests, and the rest is tested by the query.
#[tokio::test]
async fn conditions_may_be_many() {
    let url = "memory://gremlin-conditions";
    let graph = empty(url).await;
    let mut transaction = graph.gremlin();
    for number in 0..5 {
        transaction.query(&format!("g.addV('a').property('x', {number}).property('name', 'n{number}')")).await.unwrap();
    }
    transaction.commit().await.unwrap();
    let graph = Graph::open(url).await.unwrap();
    let has = ".has('x', gt(1))".repeat(1_200);
    let and = format!("gt(1){}", ".and(lt(4))".repeat(100));
    let or = format!("eq(3){}", ".or(eq(2))".repeat(100));
    let within: String = (2..5_000).map(|number| format!("{number}, ")).collect();
    for (query, expected) in [
        (format!("g.V(){has}.values('x').order()"), "2 3 4"),
        (format!("g.V(){has}.has('name', 'n3').values('x')"), "3"),
        (format!("g.V().has('x', {and}).values('x').order()"), "2 3"),
        (format!("g.V().has('x', {or}).values('x').order()"), "2 3"),
        (format!("g.V().has('a', 'x', within({within}1)).values('x').order()"), "1 2 3 4"),
        (format!("g.V().has('x', without({within}1)).values('x').order()"), "0"),
        (format!("g.V(){}.values('x').order()", ".has('name', regex('^n[23]$'))".repeat(300)), "2 3"),
    ] {
        let short: String = query.chars().take(60).collect();
        let values = graph.gremlin_read_only().query(&query).await.unwrap_or_else(|error| panic!("{short}: {error}"));
        let found: Vec<String> = values.iter().map(ToString::to_string).collect();
        assert_eq!(found.join(" "), expected, "{short}");
    }
}

/// Also if it reads nothing, and has its result at once.
#[tokio::test]
async fn a_query_that_begins_after_its_deadline_has_no_answer() {
    let graph = empty("memory://gremlin-late").await;
    let script = gremlin::parse("g.inject(1)").unwrap();
    let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{script:?}") };
    let plan = gremlin::plan(traversal, Names::default()).unwrap();
    let context = QueryContext::new();
    context.give_time(Some(0));
    let mut results = graph.gremlin_read_only().run(&plan, Wanted::default(), &context).unwrap();
    assert_eq!(results.next(1).await.unwrap_err().kind(), ErrorKind::Limit);
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
        ("g.V(1).valueMap('x').dedup(local)", "[{x=[1]}]"),
        // A path, or a row to be sorted, that has no value for one `by` is not asked for the next, which fails on it.
        ("g.V().properties('y').key().path().by('none')", ""),
        ("g.V(1).values('x').path().by('x').by(__.identity())", "path[1, 1]"),
        ("g.V().valueMap('x').order().by(__.select('none')).by('x').count()", "0"),
        ("g.V().local(groupCount('n').select('n').count(local))", "1 2"),
        ("g.withSack(1, sum).V().both().barrier().sack()", "1 1"),
        ("g.withSack(2).V().local(both('e').barrier(normSack)).sack()", "1.0 1.0"),
        ("g.V().outE().subgraph('g').cap('g')", "graph[vertices:2 edges:1]"),
        // Of several values one matches one part of a condition, and one another.
        ("g.V().has('y', between('q', 'q')).count()", "1"),
        ("g.V(2).has('y', gt('p').and(lt('q'))).count()", "1"),
        ("g.V(2).values('y').is(between('q', 'q')).count()", "0"),
        ("g.V(1, 2, 1).id()", "1 2 1"),
        ("g.V().hasId(1, 1).count()", "2"),
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
    for rejected in [
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
        assert!(transaction.query(rejected).await.is_err(), "{rejected}");
    }
}
