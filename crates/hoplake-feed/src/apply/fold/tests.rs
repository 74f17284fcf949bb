//! Row changes without a server: what is asked of the graph, and what comes of the answers.

use hoplake::{Name, Operation, PropertyType, ScalarType, Schema, Value};

use super::*;
use crate::{BeforeImages, Catalog, Cell, Column, ForeignKey, Rule, Settings, Table};

/// A team, people of it who go with it, and notes that may be about no team.
fn mapping(logs_cascades: bool) -> Mapping {
    mapping_of(
        logs_cascades,
        "[[table]]\nname = 'person'\nvertex = { label = 'Person' }\nedges = [{ label = 'in', columns = 'team', to = 'Team' }]\n\
         [[table]]\nname = 'note'\nvertex = { label = 'Note' }\nedges = [{ label = 'about', columns = 'about', to = 'Team' }]\n",
    )
}

/// A team, and what some entries make of the other tables.
fn mapping_of(logs_cascades: bool, entries: &str) -> Mapping {
    let table = |name: &str, columns: &[&str], key: usize, foreign: &[(&str, &str, &str, Rule)]| Table {
        name: TableName::new("s", name),
        columns: columns
            .iter()
            .map(|name| Column {
                name: Name::from(*name),
                declared: "text".into(),
                kind: Some(PropertyType::Scalar(ScalarType::String)),
                suggested: None,
                is_nullable: true,
                compared_by: None,
            })
            .collect(),
        primary_key: columns[..key].iter().map(|name| Name::from(*name)).collect(),
        foreign_keys: foreign
            .iter()
            .map(|(column, target, key, rule)| ForeignKey {
                columns: vec![Name::from(*column)],
                target: TableName::new("s", *target),
                target_columns: vec![Name::from(*key)],
                on_delete: *rule,
                on_update: *rule,
            })
            .collect(),
        before_images: BeforeImages::Complete,
    };
    let catalog = Catalog {
        tables: vec![
            table("team", &["code", "title"], 1, &[]),
            table("person", &["team", "name"], 2, &[("team", "team", "code", Rule::Cascade)]),
            table("note", &["id", "about"], 1, &[]),
        ],
        logs_cascades,
    };
    let team =
        "graph = 'g'\n[source]\nname = 's'\nurl = 'x://y/s'\n[[table]]\nname = 'team'\nvertex = { label = 'Team' }\n";
    let settings = Settings::parse(&format!("{team}{entries}"));
    Mapping::new(&settings.unwrap(), &catalog, "s").unwrap()
}

fn row(cells: &[&str]) -> Row {
    cells
        .iter()
        .map(|cell| match *cell {
            "?" => Cell::Absent,
            "-" => Cell::Value(Value::Null),
            text => Cell::Value(Value::from(text)),
        })
        .collect()
}

fn change(table: &str, columns: [&str; 2], images: Images) -> Transaction {
    let kinds = vec![Some(PropertyType::Scalar(ScalarType::String)); 2];
    let columns =
        Arc::new(Columns { table: TableName::new("s", table), names: columns.map(Name::from).to_vec(), kinds });
    Transaction {
        tables: Vec::new(),
        position: "1".into(),
        committed_unix_ms: 0,
        changes: vec![Change::Row(RowChange::new(columns, images))].into(),
        bytes: 0,
    }
}

fn team(images: Images) -> Transaction {
    change("team", ["code", "title"], images)
}

fn note(images: Images) -> Transaction {
    change("note", ["id", "about"], images)
}

fn update(before: &[&str], after: &[&str]) -> Images {
    Images::Update { before: Some(row(before)), after: row(after) }
}

fn vertex(label: &str, key: &str) -> VertexRef {
    VertexRef::new(label, key)
}

fn edge(label: &str, source: (&str, &str), target: (&str, &str)) -> EdgeId {
    EdgeId { label: label.into(), source: vertex(source.0, source.1), target: vertex(target.0, target.1), key: None }
}

/// Folds with a graph that has some edges and the vertices at them, and returns what was asked each time.
fn folded(
    mapping: &Mapping,
    transactions: &[Transaction],
    graph: &[EdgeId],
    waiting: &WaitingEdges,
) -> (Folded, Vec<BTreeSet<Need>>) {
    let mut known = LookupResults::default();
    let mut asked = Vec::new();
    loop {
        let folded = fold(mapping, &mut Plans::default(), transactions, &known, waiting, &Aside::default()).unwrap();
        if folded.needs.is_empty() {
            return (folded, asked);
        }
        for need in &folded.needs {
            let at = |vertex: &VertexRef| {
                let is_at = |id: &&EdgeId| id.source == *vertex || id.target == *vertex;
                graph.iter().filter(is_at).cloned().collect::<Vec<_>>()
            };
            let known_edge = |id| KnownEdge { id, properties: Properties::new() };
            match need {
                Need::Exists(vertex) => drop(known.exists.insert(vertex.clone(), !at(vertex).is_empty())),
                Need::Edges(of) => {
                    let is_meant = |id: &EdgeId| id.label == of.label && (id.source == of.vertex) == of.is_outgoing;
                    known
                        .edges
                        .insert(of.clone(), at(&of.vertex).into_iter().filter(is_meant).map(known_edge).collect());
                }
                Need::Whole(vertex) => {
                    let edges: Vec<_> = at(vertex).into_iter().map(known_edge).collect();
                    let whole = KnownVertex { properties: [("rank", 7)].into(), edges };
                    known.whole.insert(vertex.clone(), Some(whole));
                }
                Need::Vertices(_) | Need::EdgeType(_) => panic!("{need:?}"),
            }
        }
        asked.push(folded.needs);
    }
}

fn operations(folded: Folded) -> Vec<String> {
    let text = |operation: &Operation| match operation {
        Operation::UpsertVertex { properties, .. } => format!("{operation} {properties:?}"),
        other => other.to_string(),
    };
    render(folded.overlay, &Schema::default()).operations.iter().map(text).collect()
}

#[test]
fn what_the_log_says_is_not_asked() {
    let transactions = [
        team(Images::Insert(row(&["a", "x"]))),
        team(update(&["a", "x"], &["a", "y"])),
        team(update(&["b", "x"], &["b", "x"])),
    ];
    let (folded, asked) = folded(&mapping(true), &transactions, &[], &WaitingEdges::default());
    assert!(asked.is_empty(), "{asked:?}");
    let operations = operations(folded);
    assert_eq!(operations.len(), 1, "{operations:?}");
    assert!(operations[0].starts_with("upsert of vertex Team:a") && operations[0].contains("\"y\""), "{operations:?}");
}

#[test]
fn an_old_target_is_asked_if_the_log_does_not_have_it() {
    let unsaid = Images::Update { before: None, after: row(&["n", "b"]) };
    let graph = [edge("about", ("Note", "n"), ("Team", "a")), edge("in", ("Person", "b:p"), ("Team", "b"))];
    let (folded, asked) = folded(&mapping(true), &[note(unsaid)], &graph, &WaitingEdges::default());
    assert_eq!(asked.len(), 1);
    let edges: BTreeSet<_> =
        folded.overlay.edges.iter().map(|(id, state)| (id.target.to_string(), state.exists)).collect();
    assert_eq!(edges, [("Team:a".to_owned(), false), ("Team:b".to_owned(), true)].into());
}

#[test]
fn cascades_are_followed_only_where_the_log_does_not_show_them() {
    let graph = [edge("in", ("Person", "a:p"), ("Team", "a")), edge("in", ("Person", "a:q"), ("Team", "a"))];
    let deleted = [team(Images::Delete(row(&["a", "x"])))];
    let gone = |logs_cascades| {
        let (folded, _) = folded(&mapping(logs_cascades), &deleted, &graph, &WaitingEdges::default());
        let vertices: BTreeSet<_> = folded.overlay.vertices.keys().map(ToString::to_string).collect();
        assert!(folded.overlay.vertices.values().all(|state| !state.exists));
        vertices.into_iter().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(gone(false), "Person:a:p Person:a:q Team:a");
    assert_eq!(gone(true), "Team:a");
}

#[test]
fn a_key_that_changes_takes_everything_along() {
    let graph = [edge("in", ("Person", "a:p"), ("Team", "a")), edge("likes", ("Other", "o"), ("Team", "a"))];
    let moved = [team(update(&["a", "x"], &["z", "x"]))];
    let (folded, asked) = folded(&mapping(false), &moved, &graph, &WaitingEdges::default());
    // The team, then the person whose key has the team's in it.
    assert_eq!(asked.len(), 2, "{asked:?}");
    let there: BTreeSet<_> = folded
        .overlay
        .edges
        .iter()
        .filter(|(_, state)| state.exists)
        .map(|(id, _)| format!("{} {}", id.source, id.target))
        .collect();
    assert_eq!(there, ["Other:o Team:z".to_owned(), "Person:z:p Team:z".to_owned()].into());
    let team = &folded.overlay.vertices[&vertex("Team", "z")];
    assert_eq!(team.properties.get("rank"), Some(&Value::Int64(7)), "properties of others stay");
}

#[test]
fn an_edge_waits_for_its_vertex() {
    let mapping = mapping(true);
    let (first, _) = folded(&mapping, &[note(Images::Insert(row(&["n", "a"])))], &[], &WaitingEdges::default());
    assert_eq!(
        operations(folded(&mapping, &[note(Images::Insert(row(&["n", "a"])))], &[], &WaitingEdges::default()).0).len(),
        1
    );
    let mut waiting = WaitingEdges::default();
    waiting.apply(&first.waiting);
    assert_eq!(waiting.len(), 1);
    // It comes with the team, unless it names another one by then.
    let note_there = [edge("x", ("Note", "n"), ("Note", "n"))];
    let arrives = team(Images::Insert(row(&["a", "x"])));
    let (second, _) = folded(&mapping, std::slice::from_ref(&arrives), &note_there, &waiting);
    assert!(second.overlay.edges[&edge("about", ("Note", "n"), ("Team", "a"))].exists);
    assert_eq!(second.waiting.values().collect::<Vec<_>>(), [&None]);
    let elsewhere = [note(update(&["n", "a"], &["n", "-"])), arrives];
    let (third, _) = folded(&mapping, &elsewhere, &note_there, &waiting);
    assert!(third.overlay.edges.values().all(|state| !state.exists));
}

#[test]
fn a_row_that_cannot_be_applied_is_said() {
    let bad = Images::Insert(vec![Cell::Value(Value::from("n")), Cell::Bad("it is not text".into())].into());
    let (folded, _) =
        folded(&mapping(true), &[team(Images::Insert(row(&["a", "x"]))), note(bad)], &[], &WaitingEdges::default());
    assert_eq!(folded.failures.len(), 1);
    assert_eq!(
        (folded.failures[0].origin.transaction, folded.failures[0].why.as_str()),
        (1, "column about: it is not text")
    );
}

/// A commit that the graph rejects is blamed on the row whose operation it rejects, and on no row that only shares its name.
#[test]
fn an_operation_keeps_the_row_that_it_comes_from() {
    let transactions = [
        // It waits for the team, and comes with it.
        note(Images::Insert(row(&["n", "a"]))),
        team(Images::Insert(row(&["a", "x"]))),
        team(update(&["a", "x"], &["a", "y"])),
    ];
    let (folded_rows, _) = folded(&mapping(true), &transactions, &[], &WaitingEdges::default());
    let Rendered { operations, origins } = render(folded_rows.overlay, &Schema::default());
    let of = |origin: &Option<Origin>| origin.map(|origin| (origin.transaction, origin.entry));
    let found: Vec<_> = operations.iter().map(ToString::to_string).zip(origins.iter().map(of)).collect();
    let expected = [
        ("upsert of vertex Note:n", Some((0, 2))),
        ("upsert of vertex Team:a", Some((2, 0))),
        ("upsert of edge Note:n -about-> Team:a", Some((0, 2))),
    ];
    assert_eq!(found, expected.map(|(operation, origin)| (operation.to_owned(), origin)));
    // What the database does by its rules comes from the row that began it, unless the batch has the other row, too.
    let goes = team(Images::Delete(row(&["a", "x"])));
    let member = edge("in", ("Person", "a:p"), ("Team", "a"));
    let (cascaded, _) = folded(&mapping(false), &[goes], std::slice::from_ref(&member), &WaitingEdges::default());
    assert_eq!(of(&cascaded.overlay.vertices[&member.source].origin), Some((0, 0)));
}

/// The graph may have what the condition hides, such as what others wrote: under its new name, it does not come to light.
#[test]
fn a_hidden_row_that_moves_leaves_nothing_under_either_name() {
    let mapping = mapping_of(false, "[[table]]\nname = 'note'\nwhere = \"about = 'y'\"\nvertex = { label = 'Note' }\n");
    let graph = [edge("x", ("Note", "n"), ("Note", "n"))];
    let (found, asked) = folded(&mapping, &[note(update(&["n", "x"], &["m", "x"]))], &graph, &WaitingEdges::default());
    assert_eq!(asked.len(), 1, "only what moves is asked: {asked:?}");
    let there: Vec<_> = ["n", "m"].map(|key| found.overlay.vertices[&vertex("Note", key)].exists).into();
    assert_eq!(there, [false, false]);
    // One that stays where it is costs nothing.
    let (found, asked) = folded(&mapping, &[note(update(&["n", "x"], &["n", "z"]))], &graph, &WaitingEdges::default());
    assert!(asked.is_empty() && found.overlay.vertices.is_empty(), "{asked:?}");
}

#[test]
fn a_hidden_row_that_was_an_edge_leaves_none_where_it_was() {
    let with = |key: &str| {
        let ends = "source = { label = 'Team', columns = 'team' }, target = { label = 'Team', columns = 'team' }";
        let entry = format!(
            "[[table]]\nname = 'person'\nwhere = \"name < 'n'\"\nedge = {{ label = 'knows', {ends}, {key} }}\n"
        );
        mapping_of(true, &entry)
    };
    let said = |mapping: &Mapping, before: &[&str], after: &[&str]| {
        let moved = [change("person", ["team", "name"], update(before, after))];
        let teams = ["a", "b"].map(|team| edge("x", ("Team", team), ("Team", team)));
        let (found, _) = folded(mapping, &moved, &teams, &WaitingEdges::default());
        let edges = found.overlay.edges.iter().map(|(id, state)| (id.source.to_string(), state.exists));
        edges.collect::<BTreeMap<_, _>>()
    };
    let keyed = with("key = 'name'");
    let gone = ("Team:a".to_owned(), false);
    assert_eq!(said(&keyed, &["a", "x"], &["b", "x"]), [gone.clone()].into());
    assert_eq!(said(&keyed, &["a", "x"], &["b", "c"]), [gone, ("Team:b".to_owned(), true)].into());
    assert!(said(&keyed, &["a", "x"], &["a", "x"]).is_empty());
    // Of two rows that name the same vertices, one may be hidden: the edge is the other's.
    assert!(said(&with("key = []"), &["a", "x"], &["b", "x"]).is_empty());
}
