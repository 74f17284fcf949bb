//! Enumerations: names that stand for themselves, such as `desc` and `T.label`.

use std::fmt;

/// Makes an enumeration whose values have names.
macro_rules! enumeration {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $text:literal $(| $other:literal)*,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$value_doc])* $value,)+
        }

        impl $name {
            /// Its name, as it is written and as drivers send it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)+
                }
            }

            /// The value of a name.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($text $(| $other)* => Some(Self::$value),)+
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

enumeration! {
    /// Parts of an element that are no properties of it.
    T {
        /// The id.
        Id = "id",
        /// The label.
        Label = "label",
        /// The name of a property.
        Key = "key",
        /// The value of a property.
        Value = "value",
    }
}

enumeration! {
    /// An order of results.
    Order {
        /// From the least to the greatest.
        Asc = "asc" | "incr",
        /// From the greatest to the least.
        Desc = "desc" | "decr",
        /// At random.
        Shuffle = "shuffle",
    }
}

enumeration! {
    /// What a step works on.
    Scope {
        /// All results up to here.
        Global = "global",
        /// What one result has within.
        Local = "local",
    }
}

enumeration! {
    /// Which of the values under one label of a path.
    Pop {
        /// The first.
        First = "first",
        /// The last.
        Last = "last",
        /// All, as a list.
        All = "all",
        /// The only one as it is, several as a list.
        Mixed = "mixed",
    }
}

enumeration! {
    /// A side of a map.
    Column {
        /// The keys.
        Keys = "keys",
        /// The values.
        Values = "values",
    }
}

enumeration! {
    /// Which way an edge is followed, and which end of it is meant.
    Direction {
        /// From its source; the source.
        Out = "OUT" | "from",
        /// From its target; the target.
        In = "IN" | "to",
        /// Both.
        Both = "BOTH",
    }
}

enumeration! {
    /// How many values of one name a vertex may have.
    Cardinality {
        /// One.
        Single = "single",
        /// Several, each once.
        Set = "set",
        /// Several.
        List = "list",
    }
}

enumeration! {
    /// What is done with two values.
    BinaryOperator {
        /// Their sum.
        Sum = "sum",
        /// Their difference.
        Minus = "minus",
        /// Their product.
        Mult = "mult",
        /// Their quotient.
        Div = "div",
        /// The lesser one.
        Min = "min",
        /// The greater one.
        Max = "max",
        /// The second one.
        Assign = "assign",
        /// Whether both are true.
        And = "and",
        /// Whether one is true.
        Or = "or",
        /// All of both collections.
        AddAll = "addAll",
        /// Their sum as a long integer.
        SumLong = "sumLong",
    }
}

enumeration! {
    /// The branches of a choice that stand for no value.
    Pick {
        /// Taken in any case.
        Any = "any",
        /// Taken if no other is.
        None = "none",
        /// Taken if there is nothing to choose by.
        Unproductive = "unproductive",
    }
}

enumeration! {
    /// What a merge does, and the ends of its edge.
    Merge {
        /// Where nothing was found.
        OnCreate = "onCreate",
        /// Where something was found.
        OnMatch = "onMatch",
        /// The source.
        OutV = "outV",
        /// The target.
        InV = "inV",
    }
}

enumeration! {
    /// A unit of time.
    Dt {
        /// A second.
        Second = "second",
        /// A minute.
        Minute = "minute",
        /// An hour.
        Hour = "hour",
        /// A day.
        Day = "day",
    }
}

enumeration! {
    /// What a barrier does with sacks.
    Barrier {
        /// They are divided by their sum.
        NormSack = "normSack",
    }
}

enumeration! {
    /// The type of a value.
    GType {
        /// An integer of any size.
        BigInt = "BIGINT",
        /// A decimal number of any size.
        BigDecimal = "BIGDECIMAL",
        /// Bytes.
        Binary = "BINARY",
        /// `true` or `false`.
        Boolean = "BOOLEAN",
        /// An integer of 8 bits.
        Byte = "BYTE",
        /// A character.
        Char = "CHAR",
        /// A point in time.
        DateTime = "DATETIME",
        /// A floating-point number of 64 bits.
        Double = "DOUBLE",
        /// A length of time.
        Duration = "DURATION",
        /// An edge.
        Edge = "EDGE",
        /// A floating-point number of 32 bits.
        Float = "FLOAT",
        /// A graph.
        Graph = "GRAPH",
        /// An integer of 32 bits.
        Int = "INT",
        /// A list.
        List = "LIST",
        /// An integer of 64 bits.
        Long = "LONG",
        /// A map.
        Map = "MAP",
        /// `null`.
        Null = "NULL",
        /// A number of any type.
        Number = "NUMBER",
        /// A path.
        Path = "PATH",
        /// A property of an edge.
        Property = "PROPERTY",
        /// A set.
        Set = "SET",
        /// An integer of 16 bits.
        Short = "SHORT",
        /// A text.
        String = "STRING",
        /// A tree.
        Tree = "TREE",
        /// A UUID.
        Uuid = "UUID",
        /// A vertex.
        Vertex = "VERTEX",
        /// A property of a vertex.
        VertexProperty = "VPROPERTY",
    }
}

/// A value of any of the enumerations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is its enumeration")]
pub enum Token {
    T(T),
    Order(Order),
    Scope(Scope),
    Pop(Pop),
    Column(Column),
    Direction(Direction),
    Cardinality(Cardinality),
    BinaryOperator(BinaryOperator),
    Pick(Pick),
    Merge(Merge),
    Dt(Dt),
    Barrier(Barrier),
    GType(GType),
}

impl Token {
    /// The value of a name that stands alone, such as `desc`.
    pub fn bare(name: &str) -> Option<Self> {
        // Types alone have no short form, and no name is in two of the others.
        let enumerations: [fn(&str) -> Option<Self>; 12] = [
            |name| T::named(name).map(Self::T),
            |name| Order::named(name).map(Self::Order),
            |name| Scope::named(name).map(Self::Scope),
            |name| Pop::named(name).map(Self::Pop),
            |name| Column::named(name).map(Self::Column),
            |name| Direction::named(name).map(Self::Direction),
            |name| Cardinality::named(name).map(Self::Cardinality),
            |name| BinaryOperator::named(name).map(Self::BinaryOperator),
            |name| Pick::named(name).map(Self::Pick),
            |name| Merge::named(name).map(Self::Merge),
            |name| Dt::named(name).map(Self::Dt),
            |name| Barrier::named(name).map(Self::Barrier),
        ];
        enumerations.iter().find_map(|named| named(name))
    }

    /// The name of its enumeration.
    pub fn enumeration(self) -> &'static str {
        match self {
            Self::T(_) => "T",
            Self::Order(_) => "Order",
            Self::Scope(_) => "Scope",
            Self::Pop(_) => "Pop",
            Self::Column(_) => "Column",
            Self::Direction(_) => "Direction",
            Self::Cardinality(_) => "Cardinality",
            Self::BinaryOperator(_) => "Operator",
            Self::Pick(_) => "Pick",
            Self::Merge(_) => "Merge",
            Self::Dt(_) => "DT",
            Self::Barrier(_) => "Barrier",
            Self::GType(_) => "GType",
        }
    }

    /// Its name within its enumeration.
    pub fn name(self) -> &'static str {
        match self {
            Self::T(token) => token.name(),
            Self::Order(token) => token.name(),
            Self::Scope(token) => token.name(),
            Self::Pop(token) => token.name(),
            Self::Column(token) => token.name(),
            Self::Direction(token) => token.name(),
            Self::Cardinality(token) => token.name(),
            Self::BinaryOperator(token) => token.name(),
            Self::Pick(token) => token.name(),
            Self::Merge(token) => token.name(),
            Self::Dt(token) => token.name(),
            Self::Barrier(token) => token.name(),
            Self::GType(token) => token.name(),
        }
    }

    /// The value of a name with its enumeration, such as `Order.desc`; `None` if the enumeration is unknown or does not have
    /// the value.
    pub fn qualified(enumeration: &str, name: &str) -> Option<Self> {
        match enumeration {
            "T" => T::named(name).map(Self::T),
            "Order" => Order::named(name).map(Self::Order),
            "Scope" => Scope::named(name).map(Self::Scope),
            "Pop" => Pop::named(name).map(Self::Pop),
            "Column" => Column::named(name).map(Self::Column),
            "Direction" => Direction::named(name).map(Self::Direction),
            "Cardinality" => Cardinality::named(name).map(Self::Cardinality),
            "Operator" => BinaryOperator::named(name).map(Self::BinaryOperator),
            "Pick" => Pick::named(name).map(Self::Pick),
            "Merge" => Merge::named(name).map(Self::Merge),
            "DT" => Dt::named(name).map(Self::Dt),
            "Barrier" => Barrier::named(name).map(Self::Barrier),
            "GType" => GType::named(name).map(Self::GType),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_alone_and_with_their_enumeration() {
        assert_eq!(Token::bare("desc"), Some(Token::Order(Order::Desc)));
        assert_eq!(Token::bare("decr"), Token::qualified("Order", "desc"));
        assert_eq!(Token::bare("from"), Some(Token::Direction(Direction::Out)));
        assert_eq!(Token::bare("values"), Some(Token::Column(Column::Values)));
        assert_eq!(Token::bare("INT"), None);
        assert_eq!(Token::qualified("GType", "INT"), Some(Token::GType(GType::Int)));
        assert_eq!(Token::qualified("Order", "all"), None);
        assert_eq!(Direction::Out.to_string(), "OUT");
    }
}
