//! The tables of the source, by what a database does with them, and what a graph has to have of them.
//!
//! | table | becomes |
//! | --- | --- |
//! | `team` (text key, which changes) | vertices |
//! | `person` (soft deletes, a manager among themselves, a score that may be no number) | vertices and edges |
//! | `member` (person, team and since when; a part that may be no number) | edges with dates |
//! | `note` (about a person whom nothing guarantees; a body that may be no number) | vertices and edges that wait |

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hoplake::{EdgeKey, Key, Name, PropertyType, ScalarType, Value, VertexRef};
use hoplake_feed::{
    BeforeImages, Catalog, Cell, Change, Column, Columns, Element, ForeignKey, Images, RowChange, Rule, Table,
    TableName,
    fold::EdgeId,
    followed::{ColumnShape, TableShape},
};

/// A value of a column, with an order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Datum {
    /// None.
    Null,
    /// An integer.
    Int(i64),
    /// Days since 1970.
    Day(i32),
    /// A text.
    Text(String),
}

impl Datum {
    fn value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Int(number) => Value::Int64(*number),
            Self::Day(days) => Value::Date(*days),
            Self::Text(text) => Value::String(text.clone()),
        }
    }

    fn key(&self) -> Key {
        match self {
            Self::Int(number) => Key::Int64(*number),
            Self::Text(text) => Key::String(text.clone()),
            Self::Null | Self::Day(_) => unreachable!("keys of vertices are integers and texts"),
        }
    }
}

/// The values of a row.
pub type Row = Vec<Datum>;

/// A table.
pub struct Definition {
    /// Its name.
    pub name: &'static str,
    columns: &'static [ColumnOf],
    key: &'static [usize],
    foreign: &'static [Foreign],
}

/// A column: its name, its type as declared, and the type of its values.
type ColumnOf = (&'static str, &'static str, ScalarType);

struct Foreign {
    column: usize,
    target: usize,
    on_delete: Rule,
    on_update: Rule,
}

/// The column that is computed anew: a name, a title.
const ALTERED: usize = 1;

/// The number of a table.
pub const TEAM: usize = 0;
/// See above.
pub const PERSON: usize = 1;
/// See above.
pub const MEMBER: usize = 2;
/// See above.
pub const NOTE: usize = 3;

const INT: (&str, ScalarType) = ("int", ScalarType::Int64);
const TEXT: (&str, ScalarType) = ("varchar(20)", ScalarType::String);
const DATE: (&str, ScalarType) = ("date", ScalarType::Date);

const fn column(name: &'static str, (declared, kind): (&'static str, ScalarType)) -> ColumnOf {
    (name, declared, kind)
}

/// All tables, by number.
pub static TABLES: [Definition; 4] = [
    Definition { name: "team", columns: &[column("code", TEXT), column("title", TEXT)], key: &[0], foreign: &[] },
    Definition {
        name: "person",
        columns: &[
            column("id", INT),
            column("name", TEXT),
            column("gone", INT),
            column("manager_id", INT),
            column("score", TEXT),
        ],
        key: &[0],
        foreign: &[Foreign { column: 3, target: PERSON, on_delete: Rule::SetNull, on_update: Rule::Restrict }],
    },
    Definition {
        name: "member",
        columns: &[column("person_id", INT), column("team_code", TEXT), column("since", DATE), column("part", TEXT)],
        key: &[0, 1, 2],
        foreign: &[
            Foreign { column: 0, target: PERSON, on_delete: Rule::Cascade, on_update: Rule::Cascade },
            Foreign { column: 1, target: TEAM, on_delete: Rule::Cascade, on_update: Rule::Cascade },
        ],
    },
    Definition {
        name: "note",
        columns: &[column("id", INT), column("about", INT), column("body", TEXT)],
        key: &[0],
        foreign: &[],
    },
];

/// The mapping of these tables, as in a `feed.toml`; `{team}` is what becomes of a team that cannot be applied.
pub const MAPPING: &str = r#"
[[table]]
name = "team"
on_error = "{team}"
vertex = { label = "Team" }

[[table]]
name = "person"
where = "gone = 0"
ignore = ["gone"]
types = { score = "int64" }
on_error = "dead-letter"
vertex = { label = "Person" }
[[table.edges]]
label = "reportsTo"
columns = "manager_id"
to = "Person"

[[table]]
name = "member"
types = { part = "int64" }
on_error = "dead-letter"
[table.edge]
label = "memberOf"
source = { label = "Person", columns = "person_id" }
target = { label = "Team", columns = "team_code" }

[[table]]
name = "note"
types = { body = "int64" }
on_error = "dead-letter"
vertex = { label = "Note" }
[[table.edges]]
label = "about"
columns = "about"
to = "Person"
"#;

const SCHEMA: &str = "hr";

impl Definition {
    /// What it is after so many alterations.
    pub fn shape(&self, alterations: u32) -> TableShape {
        let column = |(number, (name, declared, _)): (usize, &ColumnOf)| ColumnShape {
            number: i16::try_from(number).ok(),
            kind: Some((*declared).to_owned()),
            version: Some(if number == ALTERED { alterations } else { 0 }.to_string()),
            ..ColumnShape::named(*name)
        };
        TableShape {
            id: Definition::number(&self.table_name()).and_then(|number| u32::try_from(number).ok()),
            storage: Some(alterations.to_string()),
            columns: self.columns.iter().enumerate().map(column).collect(),
            ..TableShape::default()
        }
    }

    /// Its name in the catalog.
    pub fn table_name(&self) -> TableName {
        TableName::new(SCHEMA, self.name)
    }

    /// The number of the table of a name.
    pub fn number(name: &TableName) -> Option<usize> {
        TABLES.iter().position(|table| table.table_name() == *name)
    }

    fn key_of(&self, row: &Row) -> Row {
        self.key.iter().map(|column| row[*column].clone()).collect()
    }

    /// Its columns, as rows name them.
    pub fn columns(&self) -> Arc<Columns> {
        let kinds = self.columns.iter().map(|(_, _, kind)| Some(PropertyType::Scalar(*kind))).collect();
        let names = self.columns.iter().map(|(name, ..)| Name::from(*name)).collect();
        Arc::new(Columns { table: self.table_name(), names, kinds })
    }

    fn describe(&self, before_images: BeforeImages) -> Table {
        let column = |(name, declared, kind): &(&str, &str, ScalarType)| Column {
            name: Name::from(*name),
            declared: (*declared).to_owned(),
            kind: Some(PropertyType::Scalar(*kind)),
            suggested: None,
            is_nullable: true,
            compared_by: None,
        };
        let named = |column: usize| vec![Name::from(self.columns[column].0)];
        let foreign = self.foreign.iter().map(|foreign| {
            let target = &TABLES[foreign.target];
            ForeignKey {
                columns: named(foreign.column),
                target: target.table_name(),
                target_columns: vec![Name::from(target.columns[target.key[0]].0)],
                on_delete: foreign.on_delete,
                on_update: foreign.on_update,
            }
        });
        Table {
            name: self.table_name(),
            columns: self.columns.iter().map(column).collect(),
            primary_key: self.key.iter().map(|column| Name::from(self.columns[*column].0)).collect(),
            foreign_keys: foreign.collect(),
            before_images,
        }
    }
}

/// Which row images a database logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowImages {
    /// As MariaDB: rows before and after, and nothing of what cascades change.
    Complete,
    /// As PostgreSQL: of rows before only the key, where it changes, but for a table with a condition; and what cascades change.
    Keys,
}

impl RowImages {
    /// What it says of its tables.
    pub fn catalog(self) -> Catalog {
        let before = |table| if self.is_complete(table) { BeforeImages::Complete } else { BeforeImages::Keys };
        let mut tables: Vec<_> = TABLES.iter().enumerate().map(|(number, it)| it.describe(before(number))).collect();
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        Catalog { tables, logs_cascades: self == Self::Keys }
    }

    fn is_complete(self, table: usize) -> bool {
        self == Self::Complete || table == PERSON
    }
}

/// The rows of all tables, by their keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tables([BTreeMap<Row, Row>; 4]);

/// The cells of a row.
pub fn cells(row: &Row) -> hoplake_feed::Row {
    row.iter().map(|datum| Cell::Value(datum.value())).collect()
}

impl Tables {
    /// Computes a column of a table anew, of which no row is in the log.
    pub fn alter(&mut self, table: usize) {
        for row in self.0[table].values_mut() {
            if let Datum::Text(text) = &mut row[ALTERED] {
                text.push('!');
            }
        }
    }

    /// The rows of a table.
    pub fn rows(&self, table: usize) -> impl Iterator<Item = &Row> {
        self.0[table].values()
    }
}

/// A transaction at work: the tables as it sees them, and what it logs.
pub struct Work {
    /// The tables.
    pub tables: Tables,
    /// The changes that the log gets.
    pub changes: Vec<Change>,
    /// How it logs.
    pub kind: RowImages,
}

/// A statement that the database does not allow; it changes nothing.
pub struct Rejected;

impl Work {
    /// Begins with the tables as they are.
    pub fn new(tables: Tables, kind: RowImages) -> Self {
        Self { tables, changes: Vec::new(), kind }
    }

    /// Runs a statement; one that is rejected changes nothing.
    pub fn run(&mut self, statement: impl FnOnce(&mut Self) -> Result<(), Rejected>) {
        let tables = self.tables.clone();
        let logged = self.changes.len();
        if statement(self).is_err() {
            self.tables = tables;
            self.changes.truncate(logged);
        }
    }

    /// The row of a key.
    pub fn row(&self, table: usize, key: &[Datum]) -> Result<Row, Rejected> {
        self.tables.0[table].get(key).cloned().ok_or(Rejected)
    }

    /// Adds a row.
    pub fn insert(&mut self, table: usize, row: Row) -> Result<(), Rejected> {
        let key = TABLES[table].key_of(&row);
        if self.tables.0[table].contains_key(&key) || !self.names_rows(table, &row) {
            return Err(Rejected);
        }
        self.log(table, Images::Insert(cells(&row)));
        self.tables.0[table].insert(key, row);
        Ok(())
    }

    /// Puts a row in the place of that of a key.
    pub fn update(&mut self, table: usize, key: &[Datum], row: Row) -> Result<(), Rejected> {
        self.change(table, key, row, true)
    }

    /// Removes the row of a key.
    pub fn delete(&mut self, table: usize, key: &[Datum]) -> Result<(), Rejected> {
        self.remove(table, key, true)
    }

    /// Removes all rows of a table that none names.
    pub fn truncate(&mut self, table: usize) {
        self.tables.0[table].clear();
        self.changes.push(Change::Truncate(TABLES[table].table_name()));
    }

    fn names_rows(&self, table: usize, row: &Row) -> bool {
        TABLES[table].foreign.iter().all(|foreign| {
            let value = &row[foreign.column];
            let is_itself = foreign.target == table && row[TABLES[table].key[0]] == *value;
            *value == Datum::Null || is_itself || self.tables.0[foreign.target].contains_key([value.clone()].as_slice())
        })
    }

    /// The rows that name the row of a key, by table and foreign key.
    fn children(&self, table: usize, key: &[Datum]) -> Vec<(usize, &'static Foreign, Row)> {
        let mut children = Vec::new();
        for (child, definition) in TABLES.iter().enumerate() {
            for foreign in definition.foreign.iter().filter(|foreign| foreign.target == table) {
                let named = self.tables.0[child].iter().filter(|(_, row)| row[foreign.column] == key[0]);
                children.extend(named.map(|(key, _)| (child, foreign, key.clone())));
            }
        }
        children
    }

    fn change(&mut self, table: usize, key: &[Datum], row: Row, is_logged: bool) -> Result<(), Rejected> {
        let before = self.row(table, key)?;
        let new_key = TABLES[table].key_of(&row);
        let moves = new_key != key;
        if (moves && self.tables.0[table].contains_key(&new_key)) || before == row {
            return Err(Rejected);
        }
        if is_logged {
            let image = match self.kind.is_complete(table) {
                true => Some(cells(&before)),
                false => moves.then(|| key_image(table, &before)),
            };
            self.log(table, Images::Update { before: image, after: cells(&row) });
        }
        let children = if moves { self.children(table, key) } else { Vec::new() };
        self.tables.0[table].remove(key);
        self.tables.0[table].insert(new_key.clone(), row.clone());
        for (child, foreign, child_key) in children {
            if foreign.on_update != Rule::Cascade {
                return Err(Rejected);
            }
            let mut row = self.row(child, &child_key)?;
            row[foreign.column] = new_key[0].clone();
            self.change(child, &child_key, row, self.kind == RowImages::Keys)?;
        }
        if self.names_rows(table, &row) { Ok(()) } else { Err(Rejected) }
    }

    fn remove(&mut self, table: usize, key: &[Datum], is_logged: bool) -> Result<(), Rejected> {
        let before = self.tables.0[table].remove(key).ok_or(Rejected)?;
        if is_logged {
            let image = if self.kind.is_complete(table) { cells(&before) } else { key_image(table, &before) };
            self.log(table, Images::Delete(image));
        }
        let is_logged = self.kind == RowImages::Keys;
        for (child, foreign, child_key) in self.children(table, key) {
            match foreign.on_delete {
                Rule::Cascade => self.remove(child, &child_key, is_logged)?,
                _ => {
                    let mut row = self.row(child, &child_key)?;
                    row[foreign.column] = Datum::Null;
                    self.change(child, &child_key, row, is_logged)?;
                }
            }
        }
        Ok(())
    }

    fn log(&mut self, table: usize, images: Images) {
        self.changes.push(Change::Row(RowChange::new(TABLES[table].columns(), images)));
    }
}

/// A row of which the log has only the key.
fn key_image(table: usize, row: &Row) -> hoplake_feed::Row {
    let cell = |(number, datum): (usize, &Datum)| match TABLES[table].key.contains(&number) {
        true => Cell::Value(datum.value()),
        false => Cell::Absent,
    };
    row.iter().enumerate().map(cell).collect()
}

/// Properties that are not null, as text.
pub type Texts = BTreeMap<String, String>;

/// Vertices and edges, with the properties of each that has the name.
pub type Content = BTreeMap<Element, Vec<Texts>>;

/// What a graph has to have of tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expected {
    /// The vertices and edges.
    pub content: Content,
    /// The names of what rows would be that are not as the mapping has it.
    pub bad: BTreeSet<String>,
}

/// The edge of a name that memberships have, or others.
pub fn edge(label: &str, source: VertexRef, target: VertexRef, since: Option<Value>) -> Element {
    let key = since.map(|value| EdgeKey { property: SINCE.into(), value }.into());
    Element::Edge(EdgeId { label: label.into(), source, target, key })
}

/// A text in a column that is to have numbers.
pub const NO_NUMBER: &str = "much";

/// The property that distinguishes memberships.
pub const SINCE: &str = "since";

/// A value as text.
pub fn text(value: &Value) -> String {
    format!("{value:?}")
}

fn texts(named: &[(&str, Value)]) -> Texts {
    let set = named.iter().filter(|(_, value)| *value != Value::Null);
    set.map(|(name, value)| ((*name).to_owned(), text(value))).collect()
}

/// A number in a text; nothing of null, and `None` of a text that is no number.
fn number(datum: &Datum) -> Option<Value> {
    match datum {
        Datum::Text(text) => text.parse().ok().map(Value::Int64),
        other => Some(other.value()),
    }
}

impl Expected {
    /// What the tables say, without the feed's own mapping.
    pub fn of(tables: &Tables) -> Self {
        let mut expected = Self::default();
        let person = |id: &Datum| VertexRef { label: "Person".into(), key: id.key() };
        let lives = |id: &Datum| {
            let row = tables.0[PERSON].get([id.clone()].as_slice());
            row.is_some_and(|row| row[2] == Datum::Int(0))
        };
        for row in tables.rows(TEAM) {
            let team = VertexRef { label: "Team".into(), key: row[0].key() };
            expected.add(Element::Vertex(team), Some(texts(&[("title", row[1].value())])));
        }
        for row in tables.rows(PERSON).filter(|row| row[2] == Datum::Int(0)) {
            let score = number(&row[4]);
            let properties = score.map(|score| texts(&[("name", row[1].value()), ("score", score)]));
            expected.add(Element::Vertex(person(&row[0])), properties);
            if lives(&row[3]) {
                expected.add(edge("reportsTo", person(&row[0]), person(&row[3]), None), Some(Texts::new()));
            }
        }
        for row in tables.rows(MEMBER) {
            let team = VertexRef { label: "Team".into(), key: row[1].key() };
            let id = edge("memberOf", person(&row[0]), team, Some(row[2].value()));
            let part = number(&row[3]);
            // A row that cannot be read is set aside, whether its person is there or not.
            if part.is_some() && !lives(&row[0]) {
                continue;
            }
            expected.add(id, part.map(|part| texts(&[(SINCE, row[2].value()), ("part", part)])));
        }
        for row in tables.rows(NOTE) {
            let note = VertexRef { label: "Note".into(), key: row[0].key() };
            if lives(&row[1]) {
                expected.add(edge("about", note.clone(), person(&row[1]), None), Some(Texts::new()));
            }
            expected.add(Element::Vertex(note), number(&row[2]).map(|body| texts(&[("body", body)])));
        }
        expected
    }

    /// An element with its properties, or one of a row that cannot be read.
    fn add(&mut self, element: Element, properties: Option<Texts>) {
        match properties {
            Some(properties) => self.content.entry(element).or_default().push(properties),
            None => drop(self.bad.insert(element.to_string())),
        }
    }

    /// The elements in which a graph is not what the tables say, but for those that names hold back.
    pub fn differences(&self, found: &Content, held: &BTreeSet<String>) -> BTreeSet<Element> {
        let all = self.content.keys().chain(found.keys());
        let differs = |element: &&Element| self.content.get(*element) != found.get(*element);
        all.filter(differs).filter(|element| !self.is_held(element, held)).cloned().collect()
    }

    /// Whether an element depends on a row that was set aside, or cannot be read.
    pub fn is_held(&self, element: &Element, held: &BTreeSet<String>) -> bool {
        let is_held = |name: String| held.contains(&name) || self.bad.contains(&name);
        let of_ends = match element {
            Element::Edge(id) => is_held(id.source.to_string()) || is_held(id.target.to_string()),
            Element::Vertex(_) => false,
        };
        of_ends || is_held(element.to_string())
    }
}
