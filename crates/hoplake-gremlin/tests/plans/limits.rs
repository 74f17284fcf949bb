//! What many names, ids and equal traversers take.

use hoplake_query::{
    plan::{Work, apply_rules},
    run::{Results, Transaction, Wanted},
    testing::steps_left_to_follow,
    value::Value,
};
use hoplake_storage::{MemoryBudget, QueryContext};

use super::{graph, plan};

/// How many results a query has in some bytes besides those of its plan.
async fn count(query: &str, bytes: u64) -> Result<u64, String> {
    let plan = plan(query);
    let context = QueryContext::within(&MemoryBudget::new("the query", plan.settings.plan_bytes + bytes));
    let transaction = Transaction::new(&graph("limits").await);
    let mut results = Results::begin(&plan, transaction, Wanted::default(), context.branch()).unwrap();
    let mut count = 0;
    loop {
        let next = results.next(1_000).await.map_err(|error| error.to_string())?;
        if next.is_empty() {
            return Ok(count);
        }
        count += next.iter().map(|(_, bulk)| bulk).sum::<u64>();
    }
}

fn names(count: usize) -> String {
    (0..count).map(|number| format!("'n{number}'")).collect::<Vec<_>>().join(", ")
}

/// A column of all rows for each of their names would be the square of them.
#[tokio::test]
async fn each_row_is_asked_for_its_own_name() {
    let query = format!("g.withSideEffect('n7', 1).inject({}).select(__.identity())", names(3_000));
    assert_eq!(count(&query, 16 << 20).await.unwrap(), 1);
}

#[tokio::test]
async fn lines_that_run_side_by_side_count() {
    let query = format!("g.inject(1).union({}identity())", "identity(), ".repeat(4_999));
    assert!(count(&query, 16 << 20).await.unwrap_err().contains("bytes of memory"));
    assert_eq!(count(&query, 256 << 20).await.unwrap(), 5_000);
}

/// What may be expected of a query is not worth following each of its thousands of names.
#[tokio::test]
async fn names_and_modulators_count_as_steps_that_are_followed() {
    let snapshot = graph("limits").await.snapshot;
    for (query, rest) in [
        (format!("g.V().as('a').out().select({}, 'a').values('x')", names(900)), 1_000 - 4 - 901),
        (format!("g.V().as('a').out().select({}, 'a').values('x')", names(2_000)), 0),
        (format!("g.V().order(){}", ".by('x')".repeat(900)), 1_000 - 2 - 900),
        (format!("g.V().order(){}", ".by('x')".repeat(2_000)), 0),
    ] {
        assert_eq!(steps_left_to_follow(&plan(&query), &snapshot), rest);
    }
}

/// What a step makes of one traverser that stands for many counts before it is made, and ends at the deadline.
#[tokio::test]
async fn many_equal_traversers_have_limits() {
    let many = "g.inject(1).repeat(union(identity(), identity()).barrier()).times(20)";
    for step in [".addV('a').count()", ".addV('a').property('x', 1).count()", ".as('a').addE('e').from('a').to('a')"] {
        let error = count(&format!("{many}{step}"), 64 << 20).await.unwrap_err();
        assert!(error.contains("bytes of memory") || step.contains("addE"), "{step}: {error}");
    }
    let text = "x".repeat(1 << 20);
    let query = format!("g.inject(1).repeat(identity()).emit().times(200).addV('a').property('x', '{text}')");
    assert!(count(&query, 64 << 20).await.unwrap_err().contains("bytes of memory"));
    let context = QueryContext::new();
    let transaction = Transaction::new(&graph("limits").await);
    let plan = plan(&format!("{many}.coin(0.5)"));
    let mut results = Results::begin(&plan, transaction, Wanted::default(), context.branch()).unwrap();
    context.give_time(Some(0));
    assert!(results.next(1).await.unwrap_err().to_string().contains("0 ms"));
}

#[tokio::test]
async fn ids_that_are_looked_up_count() {
    let ids = "1, ".repeat(50_000);
    let labels: String = (0..5).map(|number| format!("addV('a{number}').property(T.id, {number}).")).collect();
    let query = format!("g.{labels}V({ids}1).count()");
    assert!(count(&query, 16 << 20).await.unwrap_err().contains("bytes of memory"));
    assert_eq!(count(&query, 512 << 20).await.unwrap(), 1);
}

/// The condition of a strategy stands behind each source and each hop: no rule looks at all of it each time.
#[test]
fn a_rule_looks_at_a_bounded_part_of_a_condition() {
    let looked = |joined: &str, conditions: usize, sources: &str| {
        let each: Vec<_> = (0..conditions).map(|number| format!("has('a{number}')")).collect();
        let vertices = format!("__.{joined}({})", each.join(", "));
        let query = format!("g.withStrategies(SubgraphStrategy(vertices: {vertices})).V(){}", sources.repeat(30));
        let plan = plan(&query);
        let mut work = Work::new(&QueryContext::new()).unwrap();
        apply_rules(plan.steps, &plan.settings, &mut work).unwrap();
        work.looked()
    };
    for joined in ["and", "or"] {
        for sources in [".V()", ".out()", ".outE().inV()", ".V().where(__.out())"] {
            let more = looked(joined, 4_000, sources) - looked(joined, 2_000, sources);
            // Each of the six rules goes through the condition once.
            assert!(more < 20_000, "{joined} {sources}: {more}");
        }
    }
}

/// Ids of a strategy's condition are copied into each source.
#[test]
fn ids_that_a_plan_repeats_count() {
    let ids = "1, ".repeat(2_000);
    let query = format!("g.withStrategies(SubgraphStrategy(vertices: __.hasId({ids}1))).V(){}", ".V()".repeat(100));
    let bytes = plan(&query).settings.plan_bytes;
    assert!(bytes > 100 * 2_000 * size_of::<Value>() as u64, "{bytes}");
}
