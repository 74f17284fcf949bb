//! The codes of types. They must never change: drivers send them.

/// A type whose values can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Type {
    Int = 0x01,
    Long = 0x02,
    Text = 0x03,
    /// Milliseconds since 1970.
    Date = 0x04,
    Timestamp = 0x05,
    Class = 0x06,
    Double = 0x07,
    Float = 0x08,
    List = 0x09,
    Map = 0x0a,
    Set = 0x0b,
    Uuid = 0x0c,
    Edge = 0x0d,
    Path = 0x0e,
    Property = 0x0f,
    Vertex = 0x11,
    VertexProperty = 0x12,
    Barrier = 0x13,
    Binding = 0x14,
    Bytecode = 0x15,
    Cardinality = 0x16,
    Column = 0x17,
    Direction = 0x18,
    Operator = 0x19,
    Order = 0x1a,
    Pick = 0x1b,
    Pop = 0x1c,
    Predicate = 0x1e,
    Scope = 0x1f,
    T = 0x20,
    Traverser = 0x21,
    BigDecimal = 0x22,
    BigInteger = 0x23,
    Byte = 0x24,
    Bytes = 0x25,
    Short = 0x26,
    Boolean = 0x27,
    TextPredicate = 0x28,
    Strategy = 0x29,
    BulkSet = 0x2a,
    Tree = 0x2b,
    Metrics = 0x2c,
    TraversalMetrics = 0x2d,
    Merge = 0x2e,
    Dt = 0x2f,
    /// `GType`
    Kind = 0x30,
    Char = 0x80,
    Duration = 0x81,
    Instant = 0x83,
    OffsetDateTime = 0x88,
    ZonedDateTime = 0x8d,
}

/// The flag of a list in version 4 whose items have numbers.
pub const BULKED: u8 = 2;

/// The code of the marker behind the last result in version 4.
pub const MARKER: u8 = 0xfd;

/// The first byte of every message of version 4.
pub const VERSION_4: u8 = 0x84;

/// The code of a graph, which is written and not read.
pub const GRAPH: u8 = 0x10;

/// The code of a null whose type is not known.
pub const NULL: u8 = 0xfe;

/// The first byte of every message: version 1, and a bit that is always set.
pub const VERSION: u8 = 0x81;

const ALL: [Type; 51] = [
    Type::Int,
    Type::Long,
    Type::Text,
    Type::Date,
    Type::Timestamp,
    Type::Class,
    Type::Double,
    Type::Float,
    Type::List,
    Type::Map,
    Type::Set,
    Type::Uuid,
    Type::Edge,
    Type::Path,
    Type::Property,
    Type::Vertex,
    Type::VertexProperty,
    Type::Barrier,
    Type::Binding,
    Type::Bytecode,
    Type::Cardinality,
    Type::Column,
    Type::Direction,
    Type::Operator,
    Type::Order,
    Type::Pick,
    Type::Pop,
    Type::Predicate,
    Type::Scope,
    Type::T,
    Type::Traverser,
    Type::BigDecimal,
    Type::BigInteger,
    Type::Byte,
    Type::Bytes,
    Type::Short,
    Type::Boolean,
    Type::TextPredicate,
    Type::Strategy,
    Type::BulkSet,
    Type::Tree,
    Type::Metrics,
    Type::TraversalMetrics,
    Type::Merge,
    Type::Dt,
    Type::Kind,
    Type::Char,
    Type::Duration,
    Type::Instant,
    Type::OffsetDateTime,
    Type::ZonedDateTime,
];

/// The type of each code.
const BY_CODE: [Option<Type>; 256] = {
    let mut types = [None; 256];
    let mut index = 0;
    while index < ALL.len() {
        types[ALL[index] as usize] = Some(ALL[index]);
        index += 1;
    }
    types
};

impl Type {
    /// The type of a code.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn of(code: u8) -> Result<Self, String> {
        BY_CODE[usize::from(code)].ok_or_else(|| rejection(code))
    }

    /// The enumeration whose names it has.
    pub fn enumeration(self) -> Option<&'static str> {
        Some(match self {
            Self::Barrier => "Barrier",
            Self::Cardinality => "Cardinality",
            Self::Column => "Column",
            Self::Direction => "Direction",
            Self::Operator => "Operator",
            Self::Order => "Order",
            Self::Pick => "Pick",
            Self::Pop => "Pop",
            Self::Scope => "Scope",
            Self::T => "T",
            Self::Merge => "Merge",
            Self::Dt => "DT",
            Self::Kind => "GType",
            _ => return None,
        })
    }
}

fn rejection(code: u8) -> String {
    let name = match code {
        0x00 => return "custom types are not supported".into(),
        0x1d => return "lambdas are refused: they are code".into(),
        GRAPH => "a graph",
        0x82 => "an internet address",
        0x84 => "a local date",
        0x85 => "a local date and time",
        0x86 => "a local time",
        0x87 => "a month and day",
        0x89 => "a time with an offset",
        0x8a => "a period",
        0x8b => "a year",
        0x8c => "a year and month",
        0x8e => "an offset of a zone",
        _ => return format!("0x{code:02x} is not a type of GraphBinary 1"),
    };
    format!("{name} (type 0x{code:02x}) is not supported")
}
