//! What TinkerPop's reference implementation answers, and Hoplake: `answers.txt`, which `Answers.java` makes.
//!
//! Each line lists a sibling of something that once was wrong: every modulator before, after and between loops; every reduction of every
//! type of number; every operator and function of `math`; every option of `mergeV` and `mergeE` against the map that is sought; every
//! step that names a label, a side effect or a variable; the path after every step; every step on texts, with none, with white space and with characters of two
//! UTF-16 units; and points in time in all of their range. What differs on purpose is in [`DIFFERS`], with the reason.
//!
//! To add lines: write them into `answers.txt`, and run `Answers.java` on its first fields.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use hoplake_engine::{OpenSettings, Snapshot, change::Committer, create};
use hoplake_gremlin::{
    lower::{Names, lower},
    script::Statement,
    text,
};
use hoplake_query::{
    error::QueryError,
    literal::Number,
    run::{Graph, Results, Transaction, Wanted},
    value::{Tree, Value},
};
use hoplake_storage::{QueryContext, ReadPool, ReadSettings, Reader, Store};

const ANSWERS: &str = include_str!("answers.txt");

/// TinkerPop's modern graph.
const MODERN: &str = "g.addV('person').property(T.id, 1).property('name', 'marko').property('age', 29).as('marko')
    .addV('person').property(T.id, 2).property('name', 'vadas').property('age', 27).as('vadas')
    .addV('software').property(T.id, 3).property('name', 'lop').property('lang', 'java').as('lop')
    .addV('person').property(T.id, 4).property('name', 'josh').property('age', 32).as('josh')
    .addV('software').property(T.id, 5).property('name', 'ripple').property('lang', 'java').as('ripple')
    .addV('person').property(T.id, 6).property('name', 'peter').property('age', 35).as('peter')
    .addE('knows').from('marko').to('vadas').property('weight', 0.5)
    .addE('knows').from('marko').to('josh').property('weight', 1.0)
    .addE('created').from('marko').to('lop').property('weight', 0.4)
    .addE('created').from('josh').to('ripple').property('weight', 1.0)
    .addE('created').from('josh').to('lop').property('weight', 0.4)
    .addE('created').from('peter').to('lop').property('weight', 0.2)";

/// Traversals that Hoplake answers otherwise; `docs/gremlin.md` says why.
const DIFFERS: &[(&str, &str)] = &[
    ("g.V(1).with('x').values('name')", "error"),
    ("g.V().values('age').as('a').math('a + b').by(constant(1))", "error"),
    ("g.mergeV([(T.label):'person',name:'marko']).option(Merge.onCreate,[(Direction.OUT):1])", "error"),
    ("g.mergeE([(T.label):'knows',(Direction.OUT):1,(Direction.IN):2]).path()", "path[e[1-knows->2]]"),
    (
        "g.V(1).as('a').match(__.as('a').out('created').as('c')).as('b').select('b').path()",
        "path[v[1], v[3], map{text:a=v[1], text:c=v[3]}, map{text:a=v[1], text:c=v[3]}]",
    ),
    ("g.inject('').substring(-1)", "text:"),
    ("g.inject('a😀b').split('')", "list[text:a, text:😀, text:b]"),
    ("g.inject(1,NaN).sum()", "double:NaN"),
    ("g.inject([1,NaN]).sum(local)", "double:NaN"),
    ("g.inject(NaN,1.5f).sum()", "double:NaN"),
    ("g.inject([NaN,1.5f]).sum(local)", "double:NaN"),
    ("g.inject(1b).repeat(union(identity(),identity())).times(8).barrier().sum()", "short:256"),
    ("g.inject(NaN).mean()", "double:NaN"),
    ("g.inject(1,NaN).mean()", "double:NaN"),
    ("g.inject([1,NaN]).mean(local)", "double:NaN"),
    ("g.inject(NaN,1.5f).mean()", "double:NaN"),
    ("g.V().has('name','nobody').math('foo(')", "error"),
    ("g.inject(datetime('2024-02-30T00:00:00Z'))", "error"),
    ("g.V().where(__.out()).hasId(1,1)", "v[1]"),
    ("g.V().where(__.hasId(1)).hasId(1,1)", "v[1]"),
    ("g.V().and(__.hasLabel('person'),__.hasId(1,2)).where(__.hasId(2,2)).count()", "long:1"),
    ("g.V().where(__.id().is(1)).hasId(1,1)", "v[1]"),
    ("g.V().dedup().has(T.id,[1,2])", ""),
    ("g.V(1,2).V().hasNot('p').hasId(3).sideEffect(__.property('p',1)).count()", "long:2"),
    ("g.V(1,2).V(3).hasNot('p').sideEffect(__.property('p',1)).count()", "long:2"),
];

#[tokio::test]
async fn answers_are_those_of_tinkerpop() {
    let graph = modern().await;
    let mut wrong = String::new();
    let mut differ = 0;
    for line in ANSWERS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut fields = line.split('\t');
        let query = fields.next().unwrap();
        let mut expected: Vec<String> = fields.map(canonical).collect();
        if let Some((_, answer)) = DIFFERS.iter().find(|(other, _)| *other == query) {
            expected = answer.split('\t').filter(|answer| !answer.is_empty()).map(str::to_owned).collect();
            differ += 1;
        }
        expected.sort_unstable();
        let mut found: Vec<String> = match results(&graph, query).await {
            Ok((values, _)) => values.iter().map(show).collect(),
            Err(_) => vec!["error".to_owned()],
        };
        found.sort_unstable();
        if found != expected {
            wrong.push_str(&format!("{query}\n  expected {}\n  found    {}\n", expected.join("\t"), found.join("\t")));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(differ, DIFFERS.len(), "a traversal that differs is not in answers.txt");
}

/// A graph that is [`MODERN`].
async fn modern() -> Graph {
    let store = Store::open("memory://gremlin-answers").unwrap();
    let reader = Reader::new(store, ReadPool::new(ReadSettings::default()).unwrap());
    create::create(&reader, &mut QueryContext::new().branch()).await.unwrap();
    let snapshot = Arc::new(Snapshot::open(reader, &OpenSettings::default()).await.unwrap());
    let committer = Arc::new(Committer::new(snapshot.clone()));
    let empty = Graph { snapshot, committer: Some(committer.clone()) };
    let (_, transaction) = results(&empty, MODERN).await.unwrap();
    transaction.commit().await.unwrap();
    Graph { snapshot: committer.newest(), committer: Some(committer) }
}

/// The results of a traversal, and the transaction that it ran in.
async fn results(graph: &Graph, query: &str) -> Result<(Vec<Value>, Transaction), QueryError> {
    let script = text::parse(query)?;
    let [Statement::Traversal(traversal, _)] = &script.statements[..] else { panic!("{query} is not a traversal") };
    let plan = lower(traversal, Names::default())?;
    let context = QueryContext::new();
    let mut results = Results::begin(&plan, Transaction::new(graph), Wanted { properties: true }, context.branch())?;
    let mut all = Vec::new();
    loop {
        let next = results.next(1_000).await?;
        if next.is_empty() {
            return Ok((all, results.into_transaction()));
        }
        all.extend(next.into_iter().flat_map(|(value, bulk)| std::iter::repeat_n(value, bulk as usize)));
    }
}

/// A value as `Answers.java` shows it.
fn show(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Boolean(boolean) => format!("boolean:{boolean}"),
        Value::Number(number) => show_number(number),
        Value::Text(text) => {
            format!("text:{}", text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n"))
        }
        Value::DateTime(moment) => format!("time:{moment}"),
        Value::List(all) => format!("list{}", items(all.iter())),
        Value::Set(all) => format!("set{}", items(all.iter())),
        Value::BulkSet(all) => {
            let each = all.iter().flat_map(|(item, bulk)| std::iter::repeat_n(item, *bulk as usize));
            format!("bulk{}", items(each))
        }
        Value::Path(path) => format!("path{}", items(path.steps.iter().map(|(item, _)| item))),
        Value::Map(entries) => {
            let mut all: Vec<String> =
                entries.iter().map(|(key, value)| format!("{}={}", show(key), show(value))).collect();
            all.sort_unstable();
            format!("map{{{}}}", all.join(", "))
        }
        Value::Tree(tree) => {
            let branch =
                |(item, below): &(Value, Tree)| format!("{}={}", show(item), show(&Value::Tree(below.clone())));
            let all: Vec<String> = tree.branches.iter().map(branch).collect();
            format!("map{{{}}}", all.join(", "))
        }
        Value::Vertex(vertex) => format!("v[{}]", vertex.id),
        Value::Edge(edge) => format!("e[{}-{}->{}]", edge.out_vertex.0, edge.label, edge.in_vertex.0),
        Value::Entry(entry) => format!("Entry:{}={}", entry.0, entry.1),
        Value::VertexProperty(property) => format!("property:{}={}", property.key, show(&property.value)),
        Value::Property(property) => format!("property:{}={}", property.key, show(&property.value)),
        other => format!("{other:?}"),
    }
}

fn show_number(number: &Number) -> String {
    match number {
        Number::Byte(number) => format!("byte:{number}"),
        Number::Short(number) => format!("short:{number}"),
        Number::Int(number) => format!("int:{number}"),
        Number::Long(number) => format!("long:{number}"),
        Number::BigInteger(number) => format!("bigint:{number}"),
        Number::Float(number) => format!("float:{number:?}"),
        Number::Double(number) => format!("double:{number:?}"),
        Number::BigDecimal(number) => format!("bigdecimal:{}", number.to_plain_string()),
    }
}

fn items<'a>(all: impl Iterator<Item = &'a Value>) -> String {
    let all: Vec<String> = all.map(show).collect();
    format!("[{}]", all.join(", "))
}

/// A field with floating-point numbers in Rust's form, and the entries of maps in an order: TinkerPop's is that of Java's hashes.
fn canonical(field: &str) -> String {
    if let Some(inner) = field.strip_prefix("map{").and_then(|rest| rest.strip_suffix('}')) {
        let mut entries: Vec<String> = split(inner).into_iter().map(canonical).collect();
        entries.sort_unstable();
        return format!("map{{{}}}", entries.join(", "));
    }
    let number = |kind: &str| {
        let digits = field.strip_prefix(kind)?;
        let digits = if digits == "Infinity" || digits == "-Infinity" {
            digits.replace("Infinity", "inf")
        } else {
            digits.to_owned()
        };
        Some(digits)
    };
    if let Some(Ok(number)) = number("double:").map(|digits| digits.parse::<f64>()) {
        return format!("double:{number:?}");
    }
    if let Some(Ok(number)) = number("float:").map(|digits| digits.parse::<f32>()) {
        return format!("float:{number:?}");
    }
    field.to_owned()
}

/// The entries of a map, which are separated by commas that are within no brackets.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let mut begin = 0;
    let mut all = Vec::new();
    for (at, character) in text.char_indices() {
        match character {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                all.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    if begin < text.len() {
        all.push(text[begin..].trim());
    }
    all
}
