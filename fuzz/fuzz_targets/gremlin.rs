//! Gremlin as text, run on a small graph within little time and memory: any text has results, or an error that is not `Internal`.

#![no_main]

use std::sync::LazyLock;

use hoplake::{
    Error, ErrorKind, Graph, MemoryBudget, QueryContext, QueryEdition, Store,
    gremlin::{self, Names, Wanted, script::Statement},
};
use hoplake_fuzz::{begin, bounded};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};

const BYTES_MAX: usize = 512 << 20;

/// What a query may hold, and for how long it may run.
const BUDGET_BYTES: u64 = 16 << 20;
const TIME_MS: u64 = 200;

const GRAPH: &str = "g.addV('person').property('name', 'ann').property('age', 30).as('a')\
    .addV('person').property('name', 'bo').as('b').addV('town').property('name', 'x').as('t')\
    .addE('knows').from('a').to('b').property('since', 0.5).addE('knows').from('b').to('a').addE('lives').from('a').to('t')";

struct Fixture {
    runtime: Runtime,
    graph: Graph,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be had");
    let graph = runtime.block_on(async {
        let store = Store::open("memory://fuzz").expect("a store in memory");
        Graph::create(&store).await.expect("an empty store");
        let mut graph = Graph::open("memory://fuzz").await.expect("a graph that is there");
        let mut transaction = graph.gremlin();
        transaction.query(GRAPH).await.expect("a query without mistakes");
        transaction.commit().await.expect("nobody else writes");
        // Calls are a part of the language that needs a graph.
        let text = "g.V().has('name', name).out(along).limit(most)".into();
        let parameters =
            ["name:string=ann", "along:string", "most:int64=2"].map(|it| gremlin::parameter(it).expect("a parameter"));
        let edition = QueryEdition { text, parameters: parameters.to_vec(), ..QueryEdition::default() };
        Graph::save_query(&store, "q", &edition).await.expect("a query that can be planned");
        graph.refresh().await.expect("a graph that is there");
        graph
    });
    Fixture { runtime, graph }
});

fuzz_target!(
    init: {
        begin();
        LazyLock::force(&FIXTURE);
    },
    |text: &str| bounded(BYTES_MAX, || {
        let Fixture { runtime, graph } = &*FIXTURE;
        if let Err(error) = runtime.block_on(run(graph, text)) {
            assert_ne!(error.kind(), ErrorKind::Internal, "{text}: {error}");
        }
    })
);

async fn run(graph: &Graph, text: &str) -> Result<(), Error> {
    let script = gremlin::parse(text)?;
    // Never committed.
    let mut transaction = graph.gremlin();
    let budget = MemoryBudget::unlimited("a target").within("the query", BUDGET_BYTES);
    let context = QueryContext::within(&budget);
    context.give_time(Some(TIME_MS));
    for statement in &script.statements {
        let Statement::Traversal(traversal, _) = statement else { continue };
        let plan = transaction.plan(traversal, Names::default())?;
        let mut results = transaction.run(&plan, Wanted { properties: true }, &context)?;
        while !results.next(1_000).await?.is_empty() {}
        transaction = results.into_transaction();
    }
    Ok(())
}
