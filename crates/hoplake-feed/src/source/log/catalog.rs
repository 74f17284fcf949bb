//! The tables of which a log has the changes: the log does not say what they are.

use std::{io::Read, path::Path};

use serde::{Deserialize, Serialize};

use super::Database;
use crate::{Catalog, FeedError};

/// The version of the file.
const VERSION: u32 = 1;

/// Larger than the catalog of any database.
const BYTES_MAX: u64 = 64 << 20;

/// What the file of a catalog has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogFile {
    /// See [`VERSION`].
    #[serde(alias = "hoplake_catalogue")]
    hoplake_catalog: u32,
    /// What wrote the changes.
    database: Database,
    /// The schema of tables that are named without one.
    schema: String,
    #[serde(alias = "catalogue")]
    catalog: Catalog,
}

impl CatalogFile {
    /// The file of a catalog that was read from the database at a URL.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if the URL is not one of a database.
    pub fn new(url: &str, schema: &str, catalog: Catalog) -> Result<Self, FeedError> {
        let database = Database::of_url(url)
            .ok_or_else(|| FeedError::invalid("a catalog is read from mysql://… or postgres://…"))?;
        Ok(Self { hoplake_catalog: VERSION, database, schema: schema.to_owned(), catalog })
    }

    /// Its text.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("names and numbers are JSON")
    }

    pub(super) fn read(path: &Path) -> Result<Self, FeedError> {
        let hint = "write it with hoplake feed catalog URL > catalog.json, and set source.catalog to its path";
        let invalid = |why: String| FeedError::invalid(format!("the catalog {}: {why}", path.display())).hint(hint);
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(|error| invalid(hoplake::system_text(&error)))?;
        file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| invalid(hoplake::system_text(&error)))?;
        if text.len() as u64 > BYTES_MAX {
            return Err(invalid(format!("it has more than {BYTES_MAX} bytes")));
        }
        Self::parse(&text).map_err(invalid)
    }

    fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            // Earlier builds wrote this spelling.
            #[serde(alias = "hoplake_catalogue")]
            hoplake_catalog: u32,
        }
        let Version { hoplake_catalog } =
            serde_json::from_str(text).map_err(|error| format!("it is not a catalog, or damaged: {error}"))?;
        if hoplake_catalog != VERSION {
            return Err(format!("it has version {hoplake_catalog}, and this program reads version {VERSION}"));
        }
        let file: Self = serde_json::from_str(text).map_err(|error| format!("it is damaged: {error}"))?;
        let is_unknown =
            |table: &crate::Table| table.primary_key.iter().find(|name| table.column(name).is_none()).cloned();
        match file.catalog.tables.iter().find_map(|table| Some((&table.name, is_unknown(table)?))) {
            Some((table, column)) => Err(format!("it is damaged: table {table} has no column {column}, its key")),
            None => Ok(file),
        }
    }

    pub(super) fn into_parts(self) -> (Database, String, Catalog) {
        (self.database, self.schema, self.catalog)
    }
}

#[cfg(test)]
mod tests {
    use hoplake::{PropertyType, ScalarType};

    use super::*;
    use crate::{BeforeImages, Column, ForeignKey, Rule, Table, TableName};

    fn file() -> CatalogFile {
        let column = |name: &str, kind| Column {
            name: name.into(),
            declared: "text".into(),
            kind,
            suggested: None,
            is_nullable: true,
            compared_by: None,
        };
        let key = ForeignKey {
            columns: vec!["tags".into()],
            target: TableName::new("hr", "u"),
            target_columns: vec!["id".into()],
            on_delete: Rule::SetNull,
            on_update: Rule::Cascade,
        };
        let table = Table {
            name: TableName::new("hr", "t"),
            columns: vec![column("id", None), column("tags", Some(PropertyType::List(ScalarType::String)))],
            primary_key: vec!["id".into()],
            foreign_keys: vec![key],
            before_images: BeforeImages::Keys,
        };
        let catalog = Catalog { tables: vec![table], logs_cascades: true };
        CatalogFile::new("postgres://u@h/d", "public", catalog).unwrap()
    }

    #[test]
    fn a_catalog_is_read_as_it_was_written() {
        assert_eq!(CatalogFile::parse(&file().to_json()), Ok(file()));
    }

    #[test]
    fn a_damaged_catalog_is_rejected() {
        let text = file().to_json();
        for (from, to, expected) in [
            ("\"hoplake_catalog\": 1", "\"hoplake_catalog\": 2", "has version 2"),
            ("list<string>", "list<list>", "is not a type"),
            ("\"primary_key\": [\n", "\"primary_key\": [\"other\",\n", "no column other"),
            ("set-null", "set", "unknown variant"),
            ("\"declared\"", "\"declare\"", "unknown field"),
            ("{", "[", "not a catalog"),
        ] {
            let damaged = text.replacen(from, to, 1);
            assert_ne!(damaged, text, "{from}");
            let why = CatalogFile::parse(&damaged).unwrap_err();
            assert!(why.contains(expected), "{from}: {why}");
        }
        for end in (0..text.len()).step_by(7) {
            assert!(CatalogFile::parse(&text[..end]).is_err(), "{end}");
        }
    }
}
