//! Decodes JSON and TOML into typed values; an error has its path and says what to write there.
//!
//! Serde's derived errors read `invalid type: string "abc", expected u64`: a type of Rust and no path. [`read`] puts
//! itself between the format and the type, at each level: it knows the way there, and has words for each shape that a
//! type asks for. No field and no type has to do anything for that, so none can forget it. Types that take several
//! shapes say in `expecting` what to write.
//!
//! It is also stricter: an object is written with the names of its fields, and never as a list.

use std::{
    cell::RefCell,
    fmt::{self, Display},
};

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeSeed, Error, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
        value::StringDeserializer,
    },
};

/// Text of others that is repeated in a message is cut here, in characters.
const SHOWN_MAX: usize = 60;

const COUNT: &str = "a whole number, 0 or more";

/// Reads a value; an error has its path, as in `hops[1].direction`, or an empty one for the root.
///
/// # Errors
/// The format's; that a shape is wrong, with what to write.
pub(crate) fn read<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<T, (String, D::Error)> {
    let wrong = Wrong::default();
    let read = T::deserialize(Shaped { inner: from, path: &Path::Root, wrong: &wrong });
    read.map_err(|error| (wrong.into_inner().unwrap_or_default(), error))
}

/// The innermost path of an error.
type Wrong = RefCell<Option<String>>;

/// A path from the root to one value.
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(of, name) => write!(f, "{of}.{name}"),
            Self::Item(of, position) => write!(f, "{of}[{position}]"),
        }
    }
}

/// The value at a path.
struct Shaped<'a, D> {
    inner: D,
    path: &'a Path<'a>,
    wrong: &'a Wrong,
}

/// What is allowed in addition to single values, which the visitor judges.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Single,
    List,
    Object,
}

impl<'a, D> Shaped<'a, D> {
    fn checked<V>(&self, words: Option<&'a str>, takes: Takes, visitor: V) -> Checked<'a, V> {
        Checked { visitor, words, takes, path: self.path, wrong: self.wrong }
    }
}

/// Methods for single values: all read the value, and differ in the type that they expect.
macro_rules! single {
    ($($method:ident: $words:expr,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            let checked = self.checked($words, Takes::Single, visitor);
            // The format says what is there, and `Checked` judges it: asked for a type, the format would word the error itself.
            self.inner.deserialize_any(checked)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Shaped<'_, D> {
    type Error = D::Error;

    single! {
        deserialize_bool: Some("true or false"),
        deserialize_i8: Some("a whole number"),
        deserialize_i16: Some("a whole number"),
        deserialize_i32: Some("a whole number"),
        deserialize_i64: Some("a whole number"),
        deserialize_u8: Some("a whole number from 0 to 255"),
        deserialize_u16: Some("a whole number from 0 to 65535"),
        deserialize_u32: Some("a whole number from 0 to 4294967295"),
        deserialize_u64: Some(COUNT),
        deserialize_f32: Some("a number"),
        deserialize_f64: Some("a number"),
        deserialize_char: Some("a character"),
        deserialize_str: Some("text"),
        deserialize_string: Some("text"),
        deserialize_bytes: None,
        deserialize_byte_buf: None,
        deserialize_unit: None,
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        // Types that take several shapes ask for any value; they accept text or an object, and never a list.
        let checked = self.checked(None, Takes::Object, visitor);
        self.inner.deserialize_any(checked)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        // Not `deserialize_any`: only the format knows how it writes an absent value, such as `null` in JSON.
        // `visit_some` wraps the value again, which keeps the path and the words.
        let checked = self.checked(None, Takes::Single, visitor);
        self.inner.deserialize_option(checked)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let checked = self.checked(Some("a list, in [ ]"), Takes::List, visitor);
        self.inner.deserialize_any(checked)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let checked = self.checked(Some("an object"), Takes::Object, visitor);
        self.inner.deserialize_any(checked)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let words = format!("an object with {}", fields.join(", "));
        let Self { inner, path, wrong } = self;
        inner.deserialize_any(Checked { visitor, words: Some(&words), takes: Takes::Object, path, wrong })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let words = choice(variants);
        let Self { inner, path, wrong } = self;
        let checked = Checked { visitor: Choice(variants), words: Some(&words), takes: Takes::Single, path, wrong };
        // All enums of requests and settings are plain words. Serde would also accept an object with one field, `{"out": null}`.
        let chosen: StringDeserializer<D::Error> = inner.deserialize_any(checked)?.into_deserializer();
        visitor.visit_enum(chosen)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        // A newtype has no shape of its own: its content is checked, at the same path.
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_identifier(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_ignored_any(visitor)
    }
}

/// Hands a value on to its visitor if it has the right shape.
struct Checked<'a, V> {
    visitor: V,
    /// What to write, if not the visitor's own text.
    words: Option<&'a str>,
    takes: Takes,
    path: &'a Path<'a>,
    wrong: &'a Wrong,
}

impl<'de, V: Visitor<'de>> Checked<'_, V> {
    /// A single value, which the visitor accepts or rejects.
    fn single<E: Error>(self, visit: impl FnOnce(V) -> Result<V::Value, Mistake>) -> Result<V::Value, E> {
        visit(self.visitor).map_err(|mistake| match mistake {
            Mistake::Said(message) => E::custom(message),
            Mistake::Shape { found, expected } => {
                E::custom(format!("write {}, not {found}", self.words.unwrap_or(&expected)))
            }
        })
    }

    fn reject<E: Error>(&self, found: &str) -> E {
        let by_visitor = || (&self.visitor as &dyn Expected).to_string();
        E::custom(format!("write {}, not {found}", self.words.map_or_else(by_visitor, str::to_owned)))
    }
}

/// Methods for the kinds of single values.
macro_rules! visits {
    ($($method:ident($($value:ident: $kind:ty)?),)*) => {$(
        fn $method<E: Error>(self $(, $value: $kind)?) -> Result<V::Value, E> {
            self.single(|visitor| visitor.$method($($value)?))
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Checked<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words {
            Some(words) => f.write_str(words),
            None => self.visitor.expecting(f),
        }
    }

    visits! {
        visit_bool(value: bool),
        visit_i64(value: i64),
        visit_u64(value: u64),
        visit_f64(value: f64),
        visit_str(value: &str),
        visit_borrowed_str(value: &'de str),
        visit_string(value: String),
        visit_unit(),
        visit_none(),
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        // The words are dropped: the value inside asks for its own type and brings its own.
        let Self { visitor, path, wrong, .. } = self;
        visitor.visit_some(Shaped { inner, path, wrong })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        // The visitor of a derived struct would take a list as its fields in order, which breaks when a field is added.
        if self.takes != Takes::List {
            return Err(self.reject("a list"));
        }
        self.visitor.visit_seq(Items { inner, path: self.path, wrong: self.wrong, position: 0 })
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        if self.takes != Takes::Object {
            return Err(self.reject("an object"));
        }
        self.visitor.visit_map(Fields { inner, path: self.path, wrong: self.wrong, name: String::new() })
    }
}

/// The items of a list.
struct Items<'a, A> {
    inner: A,
    path: &'a Path<'a>,
    wrong: &'a Wrong,
    position: usize,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Items<'_, A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        let path = Path::Item(self.path, self.position);
        self.position += 1;
        self.inner.next_element_seed(At { seed, path, wrong: self.wrong })
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

/// The fields of an object.
struct Fields<'a, A> {
    inner: A,
    path: &'a Path<'a>,
    wrong: &'a Wrong,
    /// The last that was read.
    name: String,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Fields<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.inner.next_key_seed(Noting { seed, name: &mut self.name })
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        let path = Path::Field(self.path, &self.name);
        self.inner.next_value_seed(At { seed, path, wrong: self.wrong })
    }
}

/// Notes the name of a field.
struct Noting<'a, K> {
    seed: K,
    name: &'a mut String,
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for Noting<'_, K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<K::Value, D::Error> {
        // The name is read as text and then again as the field, since serde's field type does not give it back.
        *self.name = String::deserialize(from)?;
        self.seed.deserialize(self.name.as_str().into_deserializer())
    }
}

/// Reads the value at a path, and notes the path if that fails.
struct At<'a, T> {
    seed: T,
    path: Path<'a>,
    wrong: &'a Wrong,
}

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for At<'_, T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<T::Value, D::Error> {
        let Self { seed, path, wrong } = self;
        let read = seed.deserialize(Shaped { inner, path: &path, wrong });
        if read.is_err() {
            // Errors travel outward, so the innermost path arrives first, and outer levels must not replace it.
            wrong.borrow_mut().get_or_insert_with(|| path.to_string());
        }
        read
    }
}

/// One of some words.
struct Choice(&'static [&'static str]);

impl Visitor<'_> for Choice {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&choice(self.0))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        let known = self.0.contains(&text).then(|| text.to_owned());
        known.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// `out, in or both`.
fn choice(words: &[&str]) -> String {
    match words {
        [before @ .., last] if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => words.concat(),
    }
}

/// Why a visitor does not take a single value. An error type of its own, because the format's would join the value and
/// the name of the Rust type into one text, from which the value could not be taken again.
#[derive(Debug, thiserror::Error)]
enum Mistake {
    #[error("write {expected}, not {found}")]
    Shape { found: String, expected: String },
    #[error("{0}")]
    Said(String),
}

impl Error for Mistake {
    fn custom<T: Display>(message: T) -> Self {
        Self::Said(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Shape { found: shown(found), expected: expected.to_string() }
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }
}

/// The value, as written.
fn shown(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(value) => value.to_string(),
        Unexpected::Signed(value) => value.to_string(),
        // With its decimal point: `1.0` for a count would read "not 1".
        Unexpected::Float(value) => format!("{value:?}"),
        Unexpected::Str(text) if text.chars().nth(SHOWN_MAX).is_some() => {
            format!("{:?}…", text.chars().take(SHOWN_MAX).collect::<String>())
        }
        Unexpected::Str(text) => format!("{text:?}"),
        // JSON's `null` arrives as either, depending on whether the type is an option.
        Unexpected::Unit | Unexpected::Option => "null".into(),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "an object".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Sample {
        count: u64,
        small: Option<u32>,
        flag: bool,
        names: Vec<String>,
        choice: Option<Word>,
        below: Vec<Sample>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Out,
        Both,
    }

    #[test]
    fn an_error_has_its_path_and_what_to_write() {
        let long = "x".repeat(100);
        let cases = [
            (r#"{"count": -1}"#, "count", "write a whole number, 0 or more, not -1"),
            (r#"{"count": 1.5}"#, "count", "write a whole number, 0 or more, not 1.5"),
            (r#"{"below": [{}, {"small": 4294967296}]}"#, "below[1].small", "from 0 to 4294967295, not 4294967296"),
            (r#"{"below": [{"flag": 1}]}"#, "below[0].flag", "write true or false, not 1"),
            (r#"{"names": ["a", null]}"#, "names[1]", "write text, not null"),
            (r#"{"names": "a"}"#, "names", "write a list, in [ ], not \"a\""),
            (r#"{"names": {}}"#, "names", "write a list, in [ ], not an object"),
            (r#"{"choice": "up"}"#, "choice", "write out or both, not \"up\""),
            (r#"{"choice": {"out": null}}"#, "choice", "write out or both, not an object"),
            (r#"{"below": [{"other": 1}]}"#, "below[0]", "unknown field `other`, expected one of `count`"),
            (r#"{"below": [[1, 2]]}"#, "below[0]", "write an object with count, small, flag"),
            ("[1]", "", "write an object with count, small, flag"),
            (&format!(r#"{{"flag": "{long}"}}"#), "flag", "write true or false, not \"xxx"),
        ];
        for (json, path, words) in cases {
            let wrong = read::<Sample, _>(&mut serde_json::Deserializer::from_str(json)).unwrap_err();
            assert_eq!(wrong.0, path, "{json}");
            let message = wrong.1.to_string();
            assert!(message.contains(words) && message.len() < 200, "{json}: {message}");
        }
        let right = r#"{"count": 1, "small": null, "choice": "both", "below": [{"small": 3, "names": ["a"]}]}"#;
        let sample: Sample = read(&mut serde_json::Deserializer::from_str(right)).unwrap();
        assert!(matches!(sample.choice, Some(Word::Both)) && sample.below[0].small == Some(3));
    }
}
