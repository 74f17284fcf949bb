//! Random scans, each as a request and as SQL.
//!
//! Both mean the same by themselves: DuckDB orders floating-point numbers as Hoplake does (NaN is the greatest and equal to
//! itself, −0.0 equals 0.0), compares text by its bytes, has the same three truth values, and finds no null in a list. Only this
//! is translated:
//!
//! - SQL has no `in ()`: it is false, and unknown of null.
//! - SQL has nulls last in both directions only if it says so.
//! - Moments are compared as numbers, without time zones; text with a null character is joined from parts.

use hoplake::{Comparison, Condition, PropertyType, Requirement, ScanRequest, SortBy, Value};
use hoplake_format::ScalarType as Scalar;
use hoplake_testkit::generate::SplitMix64;

use super::{
    model::{Column, Label, Model},
    values,
};

/// A scan, and the same for DuckDB.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) request: ScanRequest,
    table: String,
    condition: String,
    order_by: String,
}

impl Question {
    pub(super) fn sql(&self, columns: &str) -> String {
        let Self { table, condition, order_by, .. } = self;
        format!("SELECT {columns} FROM {table} WHERE {condition}{order_by}")
    }
}

pub(super) fn ask(random: &mut SplitMix64, model: &Model) -> Question {
    let (labels, table) = match random.below(8) {
        0 => (vec![&model.labels[1]], "other"),
        // The first label has all properties that the other has.
        1 => (model.labels.iter().collect(), "everything"),
        _ => (vec![&model.labels[0]], "thing"),
    };
    let names = if labels.len() > 1 { Vec::new() } else { vec![labels[0].name.clone()] };
    let label = labels[0];
    let (condition, sql) = match random.below(30) {
        0 => (None, "true".to_owned()),
        _ => {
            let (condition, sql) = any(random, label, 3);
            // As a user writes it, or with typed values.
            let read: Condition = condition.to_string().parse().unwrap();
            assert_eq!(read.to_string(), condition.to_string());
            (Some(if random.below(2) == 0 { read } else { condition }), sql)
        }
    };
    let mut order_by = Vec::new();
    if labels.len() == 1 && random.below(3) == 0 {
        order_by.extend((0..random.below(3)).map(|_| scalar_column(random, label).0.name));
        // By the key in the end: SQL says nothing of the order of equal ones.
        order_by.push("~key".to_owned());
    }
    let order_by: Vec<SortBy> =
        order_by.into_iter().map(|property| SortBy { property, descending: random.below(2) == 0 }).collect();
    let in_sql =
        |by: &SortBy| format!("{} {} NULLS LAST", quoted(&by.property), if by.descending { "DESC" } else { "ASC" });
    let sorted: Vec<_> = order_by.iter().map(in_sql).collect();
    let limit = (random.below(2) == 0).then(|| random.below(60) as usize);
    let columns = if random.below(4) == 0 { random.below(4) } else { 0 };
    let select = (0..columns).map(|_| pick(random, &label.columns).name.clone()).collect();
    Question {
        request: ScanRequest { labels: names, condition, select, order_by, limit },
        table: table.to_owned(),
        condition: sql,
        order_by: if sorted.is_empty() { String::new() } else { format!(" ORDER BY {}", sorted.join(", ")) },
    }
}

fn any(random: &mut SplitMix64, label: &Label, depth: u64) -> (Condition, String) {
    let two = |random: &mut SplitMix64| [any(random, label, depth - 1), any(random, label, depth - 1)];
    match random.below(8).max(3 * u64::from(depth == 0)) {
        0 => {
            let [(a, sql_a), (b, sql_b)] = two(random);
            (a.and(b), format!("({sql_a} AND {sql_b})"))
        }
        1 => {
            let [(a, sql_a), (b, sql_b)] = two(random);
            (a.or(b), format!("({sql_a} OR {sql_b})"))
        }
        2 => {
            let (a, sql) = any(random, label, depth - 1);
            (a.negated(), format!("(NOT {sql})"))
        }
        _ => test(random, label),
    }
}

fn test(random: &mut SplitMix64, label: &Label) -> (Condition, String) {
    let is_list = |column: &Column| matches!(column.kind, PropertyType::List(_));
    let lists: Vec<Column> = label.columns.iter().filter(|column| is_list(column)).cloned().collect();
    if !lists.is_empty() && random.below(4) == 0 {
        let column = pick(random, &lists).clone();
        let name = quoted(&column.name);
        let PropertyType::List(of) = column.kind else { unreachable!("only lists were kept") };
        return match random.below(4) {
            0 => (Condition::is_null(column.name.as_str()), format!("({name} IS NULL)")),
            _ => {
                let item = literal(random, label, &column.name, of);
                let sql = format!("list_contains({name}, {})", in_sql(&item));
                (Condition::test(column.name, Requirement::Contains(item.into())), sql)
            }
        };
    }
    let (column, of) = scalar_column(random, label);
    let name = quoted(&column.name);
    let value = |random: &mut SplitMix64| literal(random, label, &column.name, of);
    let (requirement, sql) = match random.below(if of == Scalar::String { 16 } else { 12 }) {
        0 => (Requirement::IsNull, format!("({name} IS NULL)")),
        1 | 2 => {
            let count = [0, 1, 2, 3, 5, 100][random.below(6) as usize];
            let values: Vec<Value> = (0..count).map(|_| value(random)).collect();
            let sql = match values.is_empty() {
                true => format!("(CASE WHEN {name} IS NULL THEN NULL ELSE false END)"),
                false => format!("({name} IN ({}))", values.iter().map(in_sql).collect::<Vec<_>>().join(", ")),
            };
            (Requirement::OneOf(values.into_iter().map(Into::into).collect()), sql)
        }
        3 | 4 => {
            let least = value(random);
            let greatest = value(random);
            let sql = format!("({name} BETWEEN {} AND {})", in_sql(&least), in_sql(&greatest));
            (Requirement::Between(least.into(), greatest.into()), sql)
        }
        5..=11 => {
            let comparison = Comparison::ALL[random.below(6) as usize];
            let value = value(random);
            let sql = format!("({name} {} {})", comparison.sign(), in_sql(&value));
            (Requirement::Compare(comparison, value.into()), sql)
        }
        kind => {
            let text = text(&value(random));
            let length = text.chars().count();
            let from = if kind < 14 { 0 } else { random.below(length as u64) as usize };
            let part: String = text.chars().skip(from).take(random.below(4) as usize).collect();
            let part = if random.below(6) == 0 { text } else { part };
            let sql = in_sql(&Value::String(part.clone()));
            match kind < 14 {
                true => (Requirement::StartsWith(part), format!("starts_with({name}, {sql})")),
                false => (Requirement::Contains(Value::String(part).into()), format!("contains({name}, {sql})")),
            }
        }
    };
    (Condition::test(column.name, requirement), sql)
}

/// A property with one value, or the key.
fn scalar_column(random: &mut SplitMix64, label: &Label) -> (Column, Scalar) {
    let key = match label.key_type {
        hoplake::KeyType::Int64 => Scalar::Int64,
        hoplake::KeyType::String => Scalar::String,
    };
    let scalar = |column: &Column| match column.kind {
        PropertyType::Scalar(of) => Some((column.clone(), of)),
        PropertyType::List(_) => None,
    };
    let mut scalars: Vec<_> = label.columns.iter().filter_map(scalar).collect();
    scalars.push((Column { name: "~key".to_owned(), kind: PropertyType::Scalar(key) }, key));
    pick(random, &scalars).clone()
}

/// A value to compare with: usually one that a vertex has.
fn literal(random: &mut SplitMix64, label: &Label, column: &str, of: Scalar) -> Value {
    if column == "widened" && random.below(3) == 0 {
        return values::widened(PropertyType::Scalar(of), random.unit(), random);
    }
    for _ in 0..random.below(5) {
        let (key, row) = label.any(random);
        let key = match key {
            hoplake::Key::Int64(key) => Value::Int64(*key),
            hoplake::Key::String(key) => Value::String(key.clone()),
        };
        match if column == "~key" { Some(&key) } else { row.get(column) } {
            Some(Value::List(items)) => {
                if let Some(item) = items.iter().find(|item| **item != Value::Null) {
                    return item.clone();
                }
            }
            Some(value) => return value.clone(),
            None => (),
        }
    }
    values::odd(of, random)
}

fn pick<'a, T>(random: &mut SplitMix64, all: &'a [T]) -> &'a T {
    &all[random.below(all.len() as u64) as usize]
}

/// A value as a condition has it.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A value as SQL has it.
fn in_sql(value: &Value) -> String {
    let text_literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
    match value {
        Value::Int64(number) => format!("CAST('{number}' AS BIGINT)"),
        Value::Float64(_) => format!("CAST('{value}' AS DOUBLE)"),
        Value::String(text) => {
            let parts: Vec<_> = text.split('\0').map(text_literal).collect();
            format!("({})", parts.join(" || chr(0) || "))
        }
        Value::Date(days) => format!("(DATE '1970-01-01' + ({days}))"),
        Value::Timestamp(micros) => format!("make_timestamp(CAST('{micros}' AS BIGINT))"),
        other => other.to_string(),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
