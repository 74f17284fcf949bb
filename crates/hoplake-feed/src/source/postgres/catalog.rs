//! Tables, keys and identities, from `pg_catalog`.

use std::collections::{BTreeMap, BTreeSet};

use hoplake::Name;

use super::{
    Connection, Row, UnequalKey, identifier, quoted, text,
    values::{Decoder, Scalar},
};
use crate::{
    BeforeImages, Catalog, Column, Columns, FeedError, ForeignKey, Rule, Table, TableName,
    source::{
        ComparedKey,
        shape::{ColumnShape, TableShape},
    },
};

/// What of a column's type decides how it is read: of a domain its base, of an array its items. Arrays of anything but plain types are
/// text.
const TYPE: &str = "CASE WHEN coalesce(b.typcategory, t.typcategory) = 'A' THEN coalesce(be.typname, e.typname) ELSE coalesce(b.typname, t.typname) END, \
     coalesce(b.typcategory, t.typcategory) = 'A' AND coalesce(be.typtype, e.typtype) IN ('b', 'e')";
const TYPE_JOINS: &str = "LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A' \
     LEFT JOIN pg_type b ON b.oid = t.typbasetype AND t.typtype = 'd' \
     LEFT JOIN pg_type be ON be.oid = b.typelem AND b.typcategory = 'A'";

/// The tables of some schemas.
pub(super) async fn read(connection: &mut Connection, schemas: &BTreeSet<String>) -> Result<Catalog, FeedError> {
    let names: Vec<_> = schemas.iter().map(|name| quoted(name)).collect();
    let schemas = names.join(", ");
    let mut tables = columns(connection, &schemas).await?;
    keys(connection, &schemas, &mut tables).await?;
    foreign_keys(connection, &schemas, &mut tables).await?;
    let mut tables: Vec<_> = tables.into_values().collect();
    for table in &mut tables {
        // By default a log has the primary key, and without one nothing.
        if table.before_images == BeforeImages::Keys && table.primary_key.is_empty() {
            table.before_images = BeforeImages::Nothing;
        }
    }
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Catalog { tables, logs_cascades: true })
}

fn decoder(row: &Row, at: usize) -> Decoder {
    let scalar = Scalar::named(&text(row, at).unwrap_or_default());
    let is_array = text(row, at + 1).as_deref() == Some("t");
    if is_array { Decoder::Array(scalar) } else { Decoder::One(scalar) }
}

async fn columns(connection: &mut Connection, schemas: &str) -> Result<BTreeMap<String, Table>, FeedError> {
    let rows = connection
        .query(&format!(
            "SELECT c.oid, n.nspname, c.relname, c.relreplident, a.attname, \
             CASE t.typtype WHEN 'd' THEN format_type(t.typbasetype, t.typtypmod) ELSE format_type(a.atttypid, a.atttypmod) END, \
             a.attnotnull, a.attgenerated <> '' , {TYPE}, CASE WHEN NOT l.collisdeterministic THEN l.collname \
             WHEN coalesce(b.typname, t.typname) IN ('numeric', 'citext') THEN coalesce(b.typname, t.typname) END FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
             JOIN pg_type t ON t.oid = a.atttypid {TYPE_JOINS} LEFT JOIN pg_collation l ON l.oid = a.attcollation \
             WHERE n.nspname IN ({schemas}) AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY c.oid, a.attnum"
        ))
        .await?;
    let mut tables: BTreeMap<String, Table> = BTreeMap::new();
    for row in rows {
        let value = |at: usize| text(&row, at).unwrap_or_default();
        let table = tables.entry(value(0)).or_insert_with(|| Table {
            name: TableName::new(value(1), value(2)),
            columns: Vec::new(),
            primary_key: Vec::new(),
            foreign_keys: Vec::new(),
            before_images: match value(3).as_str() {
                "f" => BeforeImages::Complete,
                "d" => BeforeImages::Keys,
                _ => BeforeImages::Nothing,
            },
        });
        // pgoutput leaves generated columns out.
        let is_generated = value(7) == "t";
        let kind = (!is_generated).then(|| decoder(&row, 8).kind());
        let is_nullable = value(6) != "t";
        let name = value(4).into();
        let declared = value(5);
        // 1.5 is 1.50, and by some collations texts are equal that differ.
        let compared_by = text(&row, 10).map(Name::from);
        table.columns.push(Column { name, declared, kind, suggested: None, is_nullable, compared_by });
    }
    Ok(tables)
}

async fn keys(
    connection: &mut Connection,
    schemas: &str,
    tables: &mut BTreeMap<String, Table>,
) -> Result<(), FeedError> {
    let rows = connection
        .query(&format!(
            "SELECT i.indrelid, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
             CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place) \
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum \
             WHERE i.indisprimary AND n.nspname IN ({schemas}) ORDER BY i.indrelid, k.place"
        ))
        .await?;
    for row in rows {
        if let Some(table) = tables.get_mut(&text(&row, 0).unwrap_or_default()) {
            table.primary_key.push(text(&row, 1).unwrap_or_default().into());
        }
    }
    Ok(())
}

async fn foreign_keys(
    connection: &mut Connection,
    schemas: &str,
    tables: &mut BTreeMap<String, Table>,
) -> Result<(), FeedError> {
    let rows = connection
        .query(&format!(
            "SELECT k.conrelid, k.oid, fn.nspname, f.relname, a.attname, fa.attname, k.confdeltype, k.confupdtype FROM pg_constraint k \
             JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
             JOIN pg_class f ON f.oid = k.confrelid JOIN pg_namespace fn ON fn.oid = f.relnamespace \
             CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS p(here, there, place) \
             JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = p.here \
             JOIN pg_attribute fa ON fa.attrelid = k.confrelid AND fa.attnum = p.there \
             WHERE k.contype = 'f' AND n.nspname IN ({schemas}) ORDER BY k.conrelid, k.oid, p.place"
        ))
        .await?;
    let mut last = String::new();
    for row in rows {
        let value = |at: usize| text(&row, at).unwrap_or_default();
        let Some(table) = tables.get_mut(&value(0)) else { continue };
        if last != value(1) {
            last = value(1);
            table.foreign_keys.push(ForeignKey {
                columns: Vec::new(),
                target: TableName::new(value(2), value(3)),
                target_columns: Vec::new(),
                on_delete: rule(&value(6)),
                on_update: rule(&value(7)),
            });
        }
        if let Some(key) = table.foreign_keys.last_mut() {
            key.columns.push(value(4).into());
            key.target_columns.push(value(5).into());
        }
    }
    Ok(())
}

fn rule(code: &str) -> Rule {
    match code {
        "c" => Rule::Cascade,
        "n" => Rule::SetNull,
        "d" => Rule::SetDefault,
        _ => Rule::Restrict,
    }
}

/// How many commands after its columns a partition becomes one, at most, if it is made as one. `ATTACH` in the same transaction is later.
const INHERITS_WITHIN: u32 = 3;

/// What tables are: numbers that they keep under any name, where their rows are, and by what they are published.
pub(super) async fn shapes(
    connection: &mut Connection,
    publication: &str,
    tables: &[TableName],
) -> Result<BTreeMap<TableName, TableShape>, FeedError> {
    let names: Vec<_> = tables.iter().map(|it| format!("({}, {})", quoted(&it.schema), quoted(&it.name))).collect();
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    // Which schemas are published is not known to servers before 15. A table that is published under its own name is logged wherever it is;
    // one that was in another schema meanwhile has another row for its type and for its primary key. A new owner changes only the first, and
    // a longer column only the second.
    let version = connection.value("SHOW server_version_num").await?.and_then(|it| it.parse().ok()).unwrap_or(0);
    let (schema_published, moved, join_schema) = if version < super::publication::WITH_SCHEMAS {
        ("NULL", "NULL", "")
    } else {
        (
            "concat_ws(' ', s.oid, s.xmin)",
            "CASE WHEN s.oid IS NOT NULL AND r.oid IS NULL AND NOT p.puballtables THEN concat_ws(' ', \
             (SELECT y.xmin FROM pg_type y WHERE y.oid = c.reltype), \
             (SELECT k.xmin FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'p')) END",
            "LEFT JOIN pg_publication_namespace s ON s.pnpubid = p.oid AND s.pnnspid = c.relnamespace",
        )
    };
    // A row of a catalog has another xmin after each change; those of a table's system columns never change. So a partition that was made
    // as one has the transaction of these, and almost their command: one that was attached (`+`) a later one. One that is unlogged is marked
    // alike. Its own row and those of its indexes are others if its rows are in another file than the first (`r`). A composite type's attributes change all its values.
    let rows = connection
        .query(&format!(
            "SELECT n.nspname, c.relname, c.oid, \
             (SELECT string_agg(concat(f.oid, ':', pg_relation_filenode(f.oid), ':', CASE WHEN pg_relation_size(f.oid) = 0 THEN '0' END, \
             CASE WHEN f.xmin <> y.xmin AND NOT EXISTS (SELECT FROM pg_index x JOIN pg_class k ON k.oid = x.indexrelid \
             WHERE x.indrelid = f.oid AND k.xmin = y.xmin) AND f.relhasindex THEN 'r' END), ' ' ORDER BY f.oid) \
             FROM pg_class f JOIN pg_attribute y ON y.attrelid = f.oid AND y.attnum = -1 \
             WHERE f.oid IN (SELECT c.oid UNION ALL SELECT t.relid FROM pg_partition_tree(c.oid) t) AND f.relkind = 'r'), \
             concat_ws(' ', c.relpersistence, p.oid, p.xmin, r.oid, r.xmin), a.attname, a.attnum, concat_ws(' ', a.atttypid || ':' || a.atttypmod, \
             (SELECT string_agg(e.oid || '=' || encode(convert_to(e.enumlabel, 'UTF8'), 'hex'), ' ' ORDER BY e.oid) FROM pg_enum e \
             WHERE e.enumtypid IN (t.oid, t.typelem, t.typbasetype)), \
             (SELECT 'row=' || string_agg(concat_ws(':', m.attnum, m.atttypid, m.atttypmod), ',' ORDER BY m.attnum) FROM pg_attribute m \
             JOIN pg_type k ON k.typrelid = m.attrelid AND k.typtype = 'c' WHERE m.attnum > 0 AND k.oid IN (t.oid, t.typelem, t.typbasetype))), \
             a.xmin, CASE c.relkind WHEN 'p' THEN coalesce((SELECT string_agg(concat(i.inhrelid, CASE WHEN k.relpersistence <> 'p' OR y.xmin <> i.xmin \
             OR i.cmin::text::bigint - y.cmin::text::bigint > {INHERITS_WITHIN} THEN '+' END), ' ') \
             FROM pg_partition_tree(c.oid) p JOIN pg_inherits i ON i.inhrelid = p.relid JOIN pg_class k ON k.oid = i.inhrelid \
             JOIN pg_attribute y ON y.attrelid = k.oid AND y.attnum = -1 WHERE p.level > 0), '') END, \
             coalesce((SELECT i.indkey::text FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary), ''), {schema_published}, {moved} \
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             LEFT JOIN pg_publication p ON p.pubname = {} \
             LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid AND r.prrelid = c.oid {join_schema} \
             JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' \
             JOIN pg_type t ON t.oid = a.atttypid \
             WHERE (n.nspname, c.relname) IN ({}) AND c.relkind IN ('r', 'p') ORDER BY c.oid, a.attnum",
            quoted(publication),
            names.join(", ")
        ))
        .await?;
    let mut shapes: BTreeMap<TableName, TableShape> = BTreeMap::new();
    for row in rows {
        let value = |at: usize| text(&row, at).unwrap_or_default();
        let shape = shapes.entry(TableName::new(value(0), value(1))).or_insert_with(|| TableShape {
            id: value(2).parse().ok(),
            storage: text(&row, 3),
            published: Some(value(4)),
            schema_published: text(&row, 11),
            moved: text(&row, 12),
            partitions: text(&row, 9).map(|all| all.split_whitespace().filter_map(partition).collect()),
            key: text(&row, 10),
            columns: Vec::new(),
        });
        shape.columns.push(ColumnShape {
            name: value(5).into(),
            number: value(6).parse().ok(),
            kind: text(&row, 7),
            version: text(&row, 8),
        });
    }
    Ok(shapes)
}

/// A partition's number, and whether it was a table of its own.
fn partition(text: &str) -> Option<(u32, bool)> {
    let number = text.strip_suffix('+');
    Some((number.unwrap_or(text).parse().ok()?, number.is_some()))
}

/// A row whose foreign key is not the same text as the key that it names.
pub(super) async fn unequal(connection: &mut Connection, key: &ComparedKey) -> Result<Option<UnequalKey>, FeedError> {
    let of = |alias: char, name: &Name| format!("{alias}.{}", identifier(name));
    let text_of = |alias: char, names: &[Name]| {
        let columns: Vec<_> = names.iter().map(|name| format!("{}::text", of(alias, name))).collect();
        format!("concat_ws(':', {})", columns.join(", "))
    };
    let row: Vec<_> =
        key.row.iter().map(|name| format!("concat({}, {})", quoted(&format!("{name}=")), of('c', name))).collect();
    let equal = key.columns.iter().zip(&key.target_columns);
    let equal: Vec<_> = equal.map(|(from, to)| format!("{} = {}", of('c', from), of('p', to))).collect();
    let names = text_of('c', &key.columns);
    let target = text_of('p', &key.target_columns);
    let rows = connection
        .query(&format!(
            "SELECT concat_ws(' ', {}), {names}, {target} FROM {} c JOIN {} p ON {} WHERE {names} COLLATE \"C\" <> {target} COLLATE \"C\" LIMIT 1",
            row.join(", "),
            key.table.quoted('"'),
            key.target.quoted('"'),
            equal.join(" AND ")
        ))
        .await?;
    let of_row = |row: &Row| Some(UnequalKey { row: text(row, 0)?, names: text(row, 1)?, target: text(row, 2)? });
    Ok(rows.first().and_then(of_row))
}

/// Whether all values of a type, as [`shapes`] writes it, are the same in another one.
pub(super) fn keeps_values(was: &str, is: &str) -> bool {
    const TEXTS: [u32; 2] = [25, 1043];
    const NUMERIC: u32 = 1700;
    let parsed = |kind: &str| {
        let (oid, modifier) = kind.split(' ').next()?.split_once(':')?;
        Some((oid.parse::<u32>().ok()?, modifier.parse::<i32>().ok()?))
    };
    // An enum may have more labels than before; values of one that is renamed are in no row change.
    if !was.split(' ').skip(1).all(|label| is.split(' ').skip(1).any(|it| it == label)) {
        return false;
    }
    let (Some((was, was_modifier)), Some((is, modifier))) = (parsed(was), parsed(is)) else { return false };
    // No modifier is no limit.
    let is_wider = modifier < 0 || (0..=modifier).contains(&was_modifier);
    match (was, is) {
        (NUMERIC, NUMERIC) => {
            let scale = |modifier: i32| (modifier - 4) & 0xffff;
            is_wider && (modifier < 0 || scale(was_modifier) == scale(modifier))
        }
        (was, is) if TEXTS.contains(&was) && TEXTS.contains(&is) => is_wider,
        (was, is) => was == is && was_modifier == modifier,
    }
}

/// The columns of a table and how they are read.
pub(super) async fn decoders(
    connection: &mut Connection,
    table: &TableName,
) -> Result<(Columns, Vec<Decoder>), FeedError> {
    let rows = connection
        .query(&format!(
            "SELECT a.attname, {TYPE} FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' \
             JOIN pg_type t ON t.oid = a.atttypid {TYPE_JOINS} WHERE n.nspname = {} AND c.relname = {} ORDER BY a.attnum",
            quoted(&table.schema),
            quoted(&table.name)
        ))
        .await?;
    let mut columns = Columns { table: table.clone(), names: Vec::new(), kinds: Vec::new() };
    let mut decoders = Vec::new();
    for row in &rows {
        columns.names.push(text(row, 0).unwrap_or_default().into());
        let decoder = decoder(row, 1);
        columns.kinds.push(Some(decoder.kind()));
        decoders.push(decoder);
    }
    Ok((columns, decoders))
}

/// Where the rows of a table are read that the log has under its name: those of tables that inherit from it are not its own, and those of its
/// partitions are.
pub(super) async fn rows_of(connection: &mut Connection, table: &TableName) -> Result<String, FeedError> {
    let is_partitioned = connection
        .value(&format!(
            "SELECT c.relkind = 'p' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = {} AND c.relname = {}",
            quoted(&table.schema),
            quoted(&table.name)
        ))
        .await?;
    let only = if is_partitioned.as_deref() == Some("t") { "" } else { "ONLY " };
    Ok(format!("{only}{}", table.quoted('"')))
}

/// Whether a table, by its number, is a partition of another. One that is gone by now is taken for one.
pub(super) async fn is_partition(connection: &mut Connection, id: u32, of: &TableName) -> Result<bool, FeedError> {
    let is_one = connection
        .value(&format!(
            "SELECT coalesce((SELECT n.nspname = {} AND c.relname = {} FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.oid = pg_partition_root({id}::oid::regclass)), NOT EXISTS (SELECT FROM pg_class WHERE oid = {id}))",
            quoted(&of.schema),
            quoted(&of.name)
        ))
        .await?;
    Ok(is_one.as_deref() == Some("t"))
}

/// How types are read, by their numbers.
pub(super) async fn decoders_of_types(
    connection: &mut Connection,
    oids: &BTreeSet<u32>,
) -> Result<BTreeMap<u32, Decoder>, FeedError> {
    let list: Vec<_> = oids.iter().map(ToString::to_string).collect();
    if list.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = connection
        .query(&format!("SELECT t.oid, {TYPE} FROM pg_type t {TYPE_JOINS} WHERE t.oid IN ({})", list.join(", ")))
        .await?;
    let of = |row: &Row| Some((text(row, 0)?.parse().ok()?, decoder(row, 1)));
    Ok(rows.iter().filter_map(of).collect())
}

/// Of columns that a table was given: those whose rows have had a value since, which no row change shows.
pub(super) async fn filled(
    connection: &mut Connection,
    table: &TableName,
    columns: &[Name],
) -> Result<Option<String>, FeedError> {
    let names: Vec<_> = columns.iter().map(|name| quoted(name)).collect();
    connection
        .value(&format!(
            "SELECT a.attname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid \
             WHERE n.nspname = {} AND c.relname = {} AND a.attname IN ({}) AND (a.atthasmissing OR a.atthasdef OR a.attnotnull) LIMIT 1",
            quoted(&table.schema),
            quoted(&table.name),
            names.join(", ")
        ))
        .await
}

/// One of the columns that a table was given in which a row has a value.
pub(super) async fn has_values(
    connection: &mut Connection,
    table: &TableName,
    columns: &[Name],
) -> Result<Option<String>, FeedError> {
    let rows = rows_of(connection, table).await?;
    for name in columns {
        let asked = format!("SELECT 1 FROM {rows} WHERE {} IS NOT NULL LIMIT 1", identifier(name));
        if connection.value(&asked).await?.is_some() {
            return Ok(Some(name.to_string()));
        }
    }
    Ok(None)
}

/// A table or a partition of it whose rows are in another file than before, and nothing shows that what it lost is in the log.
#[derive(Debug)]
pub(super) struct Rewritten {
    pub(super) number: u32,
    /// What it is called, if it is a partition.
    pub(super) partition: Option<TableName>,
    /// The transactions that may have done it.
    pub(super) transactions: Vec<u32>,
}

/// Of some numbers, those that were emptied, or written again by `ALTER TABLE`, perhaps while they were unlogged. PostgreSQL logs a
/// `TRUNCATE` of a table and not that of a partition, and refuses to make a table unlogged only if a publication names it.
///
/// `VACUUM FULL` and `CLUSTER` leave rows to the transactions that wrote them, which are older. Which transaction made the file is not known
/// any more if there was another change since; that of an index is left in its place. Of one that had no rows, a count of 0 is from
/// `VACUUM FULL`: after the others there is none.
pub(super) async fn rewritten_without_log(
    connection: &mut Connection,
    publication: &str,
    numbers: &[u32],
    had_rows: impl Fn(u32) -> bool,
) -> Result<Vec<Rewritten>, FeedError> {
    let list: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    let asked = format!(
        "SELECT c.oid, n.nspname, c.relname, c.relispartition, c.relpersistence <> 'p', c.reltuples = 0 AND pg_relation_size(c.oid) = 0, \
         concat_ws(' ', c.xmin, (SELECT string_agg(k.xmin::text, ' ') FROM pg_index i JOIN pg_class k ON k.oid = i.indexrelid \
         WHERE i.indrelid = c.oid)), \
         greatest(age(c.xmin), (SELECT max(age(k.xmin)) FROM pg_index i JOIN pg_class k ON k.oid = i.indexrelid WHERE i.indrelid = c.oid)) \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid IN ({}) AND (c.relispartition OR NOT EXISTS \
         (SELECT FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid WHERE p.pubname = {} AND r.prrelid = c.oid))",
        list.join(", "),
        quoted(publication)
    );
    let mut rewritten = Vec::new();
    for row in connection.query(&asked).await? {
        let value = |at: usize| text(&row, at).unwrap_or_default();
        let is = |at: usize| value(at) == "t";
        let number = value(0).parse().unwrap_or_default();
        let name = TableName::new(value(1), value(2));
        let is_partition = is(3);
        let is_unlogged = is(4);
        let is_without_rows = is(5);
        if is_without_rows && !is_unlogged && !had_rows(number) {
            continue;
        }
        let age = value(7);
        let older = format!("SELECT 1 FROM ONLY {} r WHERE age(r.xmin) > {age} LIMIT 1", name.quoted('"'));
        if is_unlogged || connection.value(&older).await?.is_none() {
            let transactions = value(6).split(' ').filter_map(|it| it.parse().ok()).collect();
            rewritten.push(Rewritten { number, partition: is_partition.then_some(name), transactions });
        }
    }
    Ok(rewritten)
}
