//! The TOML of a mapping as data, which is read here and written by an export.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use hoplake_format::{KeyType, PropertyType, ScalarType};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, IntoDeserializer, MapAccess, Visitor, value::MapAccessDeserializer},
};

use crate::source::column::Parse;

/// A mapping file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// The default format of CSV files; an entry can override it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub csv: CsvSpec,
    /// Whether labels that edges name and no entry declares are made of what the edges name. Default false: a label
    /// that is misspelt would become one of its own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub imply_labels: bool,
    /// The vertex labels.
    #[serde(default)]
    pub vertices: Vec<VertexSpec>,
    /// The edge labels.
    #[serde(default)]
    pub edges: Vec<EdgeSpec>,
}

/// How a CSV file is written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct CsvSpec {
    /// The separator between fields: one character; a space stands for any white space. Default `,`.
    pub delimiter: char,
    /// Whether fields may stand in double quotes. Default true.
    pub quote: bool,
    /// Whether the first line names the columns. Default true.
    pub header: bool,
    /// The names of the columns, if the file does not name them.
    pub columns: Option<Vec<String>>,
    /// The separator between the values of a list: one character. Default `;`.
    pub lists: char,
    /// What is before such a separator where it is part of a value: one character. With it, no list is an array of JSON. Default: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_escape: Option<char>,
    /// Whether lines that begin with `#` or `%` are comments. Default false.
    pub comments: bool,
    /// Whether an empty field in quotes is empty text, and only one without quotes an absent value. Default false: both are absent.
    /// Where lists are not arrays of JSON, it also says that values of a list may be empty, and that an empty field in quotes is a list
    /// without values.
    pub empty_text: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for CsvSpec {
    fn default() -> Self {
        Self {
            delimiter: ',',
            quote: true,
            header: true,
            columns: None,
            lists: ';',
            list_escape: None,
            comments: false,
            empty_text: false,
        }
    }
}

/// The vertices of one label in one file. Several entries may have one label, and several one file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct VertexSpec {
    /// The file, relative to the mapping, or else to one of the folders given with it. Without a file,
    /// the vertices are implied by the edges that name the label.
    pub file: Option<PathBuf>,
    /// The label.
    pub label: String,
    /// The column of the key; needed with a file.
    pub key: Option<String>,
    /// What each field of that column in a text file begins with, and is not a part of the key: `Person:` of `Person:933`.
    pub key_prefix: Option<String>,
    /// `int64` or `string`. Default: the column's type in Parquet, `string` in CSV.
    pub key_type: Option<KeySpec>,
    /// The id space, if labels share one. Default: the label.
    pub id_space: Option<String>,
    /// Properties whose type or name differs from their column's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, PropertySpec>,
    /// Columns that do not become properties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Whether only the columns under `properties` become properties. Default false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ignore_others: bool,
    /// How the file is written, if it is CSV and differs from the others.
    pub csv: Option<CsvSpec>,
}

/// The edges of one label in one file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeSpec {
    /// The file, relative to the mapping, or else to one of the folders given with it.
    pub file: PathBuf,
    /// The edge label.
    pub label: String,
    /// The column of the key of the vertex where the edge starts.
    pub source: String,
    /// What each field of that column in a text file begins with, and is not a part of the key.
    pub source_prefix: Option<String>,
    /// The label of that vertex.
    pub source_label: String,
    /// The column of the key of the vertex where the edge ends.
    pub target: String,
    /// What each field of that column in a text file begins with, and is not a part of the key.
    pub target_prefix: Option<String>,
    /// The label of that vertex.
    pub target_label: String,
    /// Whether a row with an empty end is skipped, rather than a bad row. Default false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub optional: bool,
    /// Properties whose type or name differs from their column's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, PropertySpec>,
    /// Columns that do not become properties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Whether only the columns under `properties` become properties. Default false; true where the file
    /// also holds vertices, whose columns the others are.
    pub ignore_others: Option<bool>,
    /// How the file is written, if it is CSV and differs from the others.
    pub csv: Option<CsvSpec>,
}

/// A property: its type, or its type and its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PropertySpec {
    /// The type alone; the column has the name of the property.
    Type(TypeSpec),
    /// A column of another name.
    Column(ColumnSpec),
}

impl Serialize for PropertySpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Type(kind) => kind.serialize(serializer),
            Self::Column(column) => column.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for PropertySpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PropertyVisitor)
    }
}

/// Decides which of the two is meant, for a precise error.
struct PropertyVisitor;

impl<'de> Visitor<'de> for PropertyVisitor {
    type Value = PropertySpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a type such as \"int64\", or { column = \"…\", type = \"…\" }")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<PropertySpec, E> {
        TypeSpec::deserialize(name.into_deserializer()).map(PropertySpec::Type)
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<PropertySpec, M::Error> {
        ColumnSpec::deserialize(MapAccessDeserializer::new(map)).map(PropertySpec::Column)
    }
}

/// A property with a column of another name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnSpec {
    /// The column.
    pub column: String,
    /// The type. Default: the column's in Parquet, `string` in CSV.
    #[serde(rename = "type")]
    pub kind: Option<TypeSpec>,
}

/// A type by name: `bool`, `int64`, `float64`, `string`, `date`, `timestamp`, `timestamp_s`, `timestamp_ms`,
/// `timestamp_us` (whole numbers since 1970), or `list<…>` of one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeSpec(pub(crate) Parse);

impl From<PropertyType> for TypeSpec {
    fn from(kind: PropertyType) -> Self {
        Self(Parse::new(kind))
    }
}

impl Serialize for TypeSpec {
    /// As it is read.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (scalar, is_list) = match self.0.kind {
            PropertyType::Scalar(scalar) => (scalar, false),
            PropertyType::List(scalar) => (scalar, true),
        };
        let name = match self.0.epoch_unit_micros {
            None => scalar.to_string(),
            Some(1) => "timestamp_us".into(),
            Some(1_000) => "timestamp_ms".into(),
            Some(_) => "timestamp_s".into(),
        };
        serializer.collect_str(&if is_list { format!("list<{name}>") } else { name })
    }
}

impl<'de> Deserialize<'de> for TypeSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let mut epoch_unit_micros = None;
        let kind = PropertyType::from_name_by(&name, |scalar| {
            epoch_unit_micros = match scalar {
                "timestamp_s" => Some(1_000_000),
                "timestamp_ms" => Some(1_000),
                "timestamp_us" => Some(1),
                _ => return ScalarType::from_name(scalar),
            };
            Some(ScalarType::Timestamp)
        });
        let unknown = || {
            de::Error::custom(format!(
                "unknown type {name:?}; bool, int64, float64, string, date, timestamp, timestamp_s, timestamp_ms, \
                 timestamp_us and list<…> of these are known"
            ))
        };
        Ok(Self(Parse { epoch_unit_micros, ..Parse::new(kind.ok_or_else(unknown)?) }))
    }
}

/// The type of a key by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeySpec {
    /// A signed integer of 64 bits.
    Int64,
    /// UTF-8 text.
    String,
}

impl From<KeyType> for KeySpec {
    fn from(kind: KeyType) -> Self {
        match kind {
            KeyType::Int64 => Self::Int64,
            KeyType::String => Self::String,
        }
    }
}

impl From<KeySpec> for KeyType {
    fn from(spec: KeySpec) -> Self {
        match spec {
            KeySpec::Int64 => Self::Int64,
            KeySpec::String => Self::String,
        }
    }
}
