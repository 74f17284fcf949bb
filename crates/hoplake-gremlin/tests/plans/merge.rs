//! What merges find and add, and what that takes.

use hoplake_gremlin::{
    lower::{Names, lower},
    script::Statement,
    text,
};
use hoplake_query::{
    error::QueryError,
    run::{Results, Transaction, Wanted},
    testing::{comparisons, work_done},
    value::Value,
};
use hoplake_storage::{MemoryBudget, QueryContext};

use super::graph;

/// What a traversal gives; the units of its work, and the comparisons of values, whether they are counted as work or not.
async fn run(
    transaction: &mut Transaction,
    query: &str,
    context: &QueryContext,
) -> Result<(Vec<Value>, [u64; 2]), QueryError> {
    let before = comparisons();
    let script = text::parse(query)?;
    let [Statement::Traversal(traversal, _)] = &script.statements[..] else { panic!("{query} is not a traversal") };
    let plan = lower(traversal, Names::default())?;
    let wanted = Wanted { properties: false };
    let mut results = Results::begin(&plan, transaction.clone(), wanted, context.branch())?;
    let mut all = Vec::new();
    loop {
        let next = results.next(1_000).await?;
        if next.is_empty() {
            let units = work_done(&results);
            *transaction = results.into_transaction();
            return Ok((all, [units, comparisons() - before]));
        }
        all.extend(next.into_iter().flat_map(|(value, bulk)| std::iter::repeat_n(value, bulk as usize)));
    }
}

/// What some traversals of one transaction give, as text.
async fn answers(name: &str, queries: &[&str]) -> Vec<String> {
    let mut transaction = Transaction::new(&graph(name).await);
    let mut answers = Vec::new();
    for query in queries {
        let (values, _) = run(&mut transaction, query, &QueryContext::new()).await.unwrap();
        answers.push(values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    }
    answers
}

/// A traversal that merges as many vertices, each with a label that all have and a name of its own.
fn merging(rows: usize) -> String {
    let maps: Vec<String> = (0..rows).map(|row| format!("[(T.label):'thing',name:'a{row}',kind:1]")).collect();
    format!("g.inject({}).mergeV().count()", maps.join(","))
}

/// Rows that find nothing, and the same rows, which find one vertex each.
#[tokio::test]
async fn the_work_is_linear_in_the_rows() {
    let work = async |rows: usize| {
        let mut transaction = Transaction::new(&graph(&format!("rows-{rows}")).await);
        let mut units = [[0; 2]; 2];
        for units in &mut units {
            let answer = run(&mut transaction, &merging(rows), &QueryContext::new()).await.unwrap();
            assert_eq!(answer.0, [Value::from(rows as i64)]);
            *units = answer.1;
        }
        let (count, _) = run(&mut transaction, "g.V().count()", &QueryContext::new()).await.unwrap();
        assert_eq!(count, [Value::from(rows as i64)]);
        units
    };
    let few = work(2_000).await;
    let many = work(20_000).await;
    for (few, many) in few.into_iter().flatten().zip(many.into_iter().flatten()) {
        assert!(many <= few * 11 + 20_000, "{few} for 2,000 rows, {many} for 20,000");
        assert!(many <= 20_000 * 200, "{many} for 20,000 rows");
    }
}

/// The work of a map with many entries, and with an option for each.
#[tokio::test]
async fn the_work_is_linear_in_the_entries() {
    let work = async |entries: usize| {
        let map = |value: &str| (0..entries).map(|at| format!("n{at}:{value}")).collect::<Vec<_>>().join(",");
        let query = format!("g.mergeV([{}]).option(Merge.onCreate,[{}])", map("1"), map("1"));
        let mut transaction = Transaction::new(&graph(&format!("entries-{entries}")).await);
        let mut units = [[0; 2]; 2];
        for units in &mut units {
            *units = run(&mut transaction, &query, &QueryContext::new()).await.unwrap().1;
        }
        units
    };
    let few = work(100).await;
    let many = work(1_000).await;
    for (few, many) in few.into_iter().flatten().zip(many.into_iter().flatten()) {
        assert!(many <= few * 11 + 1_000, "{few} for 100 entries, {many} for 1,000");
    }
}

#[tokio::test]
async fn what_rows_find_has_to_fit_the_memory_of_the_query() {
    // Each row finds all vertices.
    let rows = 1_000;
    let mut transaction = Transaction::new(&graph("memory").await);
    run(&mut transaction, &merging(rows), &QueryContext::new()).await.unwrap();
    for map in ["[(T.label):'thing']", "[kind:1]"] {
        let query = format!("g.inject({}).mergeV().count()", vec![map; rows].join(","));
        let budget = MemoryBudget::new("the query", 16 << 20);
        let error = run(&mut transaction, &query, &QueryContext::within(&budget)).await.unwrap_err();
        assert!(error.to_string().contains("bytes of memory"), "{map}: {error}");
        assert!(budget.peak() <= 16 << 20);
        let (count, _) = run(&mut transaction, &query, &QueryContext::new()).await.unwrap();
        assert_eq!(count, [Value::from((rows * rows) as i64)]);
    }
}

#[tokio::test]
async fn rows_of_a_batch_find_what_those_before_them_add() {
    let queries = [
        // The same row twice, numbers of two types, null, and a row that seeks less than what is there.
        "g.inject([x:1],[x:1],[x:1.0d],[y:null],[y:null],[x:2,z:'a'],[z:'a'],[x:2]).mergeV().dedup().count()",
        "g.V().count()",
        "g.V().values('x').order()",
        // What is there already is found before what is new, and null is never there.
        "g.inject([x:1L],[x:2.0f],[z:'b'],[z:'b',x:1],[z:'b'],[y:null]).mergeV().dedup().count()",
        "g.V().count()",
        // The first of two that are new.
        "g.inject([v:1,w:1],[v:1,w:2],[v:1]).mergeV().values('w')",
        // By id, whatever else is sought, and by label.
        "g.inject([(T.id):'i',u:1],[(T.id):'i'],[(T.id):'i',u:1.0d],[(T.label):'vertex',u:1]).mergeV().dedup().count()",
        "g.inject([(T.label):'other',u:1],[(T.label):'vertex',u:1]).mergeV().label()",
    ];
    let expected = ["3", "3", "1 2", "5", "6", "1 2 1", "1", "other vertex"];
    assert_eq!(answers("batches", &queries).await, expected);
}

#[tokio::test]
async fn one_of_several_values_is_enough() {
    let queries = [
        "g.addV('p').property(list,'n','a').property(list,'n','b').property('l',1)",
        "g.addV('p').property('n','a')",
        "g.inject([n:'a'],[n:'b'],[n:'c'],[n:'b',l:1.0d]).mergeV().count()",
        "g.V().count()",
        "g.mergeV([n:'b']).option(Merge.onMatch,[n:list('d'),l:2]).values('n').order().fold()",
        "g.V().has('l',2).values('l')",
    ];
    let answers = answers("several", &queries).await;
    assert_eq!(answers[2..4], ["5", "3"]);
    assert_eq!(answers[4..], ["[a, b, d]", "2"]);
}

#[tokio::test]
async fn what_is_created_has_what_the_option_says_too() {
    let queries = [
        "g.inject([n:1],[n:1],[m:2],[n:2]).mergeV().option(Merge.onCreate,[m:2]).dedup().count()",
        "g.inject([n:1,m:2]).mergeV().count()",
    ];
    // The third seeks what the first has by its option.
    assert_eq!(answers("created", &queries).await, ["2", "1"]);
}

#[tokio::test]
async fn edges_are_found_by_their_values() {
    let vertices = "g.addV('a').property(T.id,'1').addV('a').property(T.id,'2')";
    let maps = ["w:1", "w:1.0d", "w:2", "w:1,x:'a'", "w:1,x:'a'"]
        .map(|values| format!("[(T.label):'e',(Direction.OUT):'1',(Direction.IN):'2',{values}]"));
    let merge = format!("g.inject({}).mergeE().dedup().count()", maps.join(","));
    let queries = [vertices, &merge, "g.E().count()", &merge, "g.E().count()"];
    let answers = answers("edges", &queries).await;
    assert_eq!(answers[1..], ["3", "3", "3", "3"]);
}
