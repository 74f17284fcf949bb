//! Statements, calls and arguments.

use hoplake_query::{
    error::QueryError,
    literal::{Literal, Number},
    moment::Moment,
    plan::Test,
    tokens::{Cardinality, Token},
};
use hoplake_storage::{Pace, QueryContext};
use uuid::Uuid;

use super::{
    DEPTH_MAX,
    lexer::{Lexer, Word},
    numbers, strings,
};
use crate::script::{Argument, Call, Predicate, Script, Statement, Strategy, Terminal, Transaction, Traversal};

/// Units of work that a word is.
const WORD_UNITS: u64 = 4;

/// The items of all lists that ranges such as `1..5` stand for, at most: a few letters make thousands of them.
const RANGE_MAX: u64 = 10_000;

pub struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next word, and where it begins.
    word: Word<'a>,
    begin: usize,
    depth: usize,
    /// Items that ranges may still have.
    range_left: u64,
    pace: Pace,
}

type Parsed<T> = Result<T, QueryError>;

impl<'a> Parser<'a> {
    pub fn new(text: &'a str, context: &QueryContext) -> Parsed<Self> {
        let mut lexer = Lexer::new(text);
        let (word, begin) = lexer.next()?;
        Ok(Self { lexer, word, begin, depth: 0, range_left: RANGE_MAX, pace: context.pace() })
    }

    pub fn script(mut self) -> Parsed<Script> {
        let mut statements = Vec::new();
        loop {
            while self.takes(';')? {}
            if self.word == Word::End {
                return match statements.is_empty() {
                    true => Err(self.wrong("a query begins with `g`")),
                    false => Ok(Script { statements }),
                };
            }
            statements.push(self.statement()?);
        }
    }

    fn statement(&mut self) -> Parsed<Statement> {
        if self.word == Word::String("") {
            self.advance()?;
            return Ok(Statement::Nothing);
        }
        if self.word != Word::Name("g") {
            return Err(self.wrong("a query begins with `g`"));
        }
        self.advance()?;
        let mut traversal = Traversal::default();
        let mut terminal = None;
        while self.takes('.')? {
            if terminal.is_some() {
                return Err(self.wrong("nothing follows what ends a traversal"));
            }
            let begin = self.begin;
            let name = self.name()?;
            let beginning = traversal.steps.is_empty();
            match name {
                "tx" if beginning => return self.transaction().map(Statement::Transaction),
                "with" | "withBulk" | "withPath" | "withSack" | "withSideEffect" | "withStrategies"
                | "withoutStrategies"
                    if beginning =>
                {
                    traversal.source.push(self.call(name)?);
                }
                _ => match terminal_named(name).filter(|_| !beginning) {
                    Some(named) => terminal = Some(self.terminal(named, begin)?),
                    None => traversal.steps.push(self.call(name)?),
                },
            }
        }
        match traversal.steps.is_empty() {
            true => Ok(Statement::Nothing),
            false => Ok(Statement::Traversal(traversal, terminal.unwrap_or_default())),
        }
    }

    /// `tx().commit()`, after its first name.
    fn transaction(&mut self) -> Parsed<Transaction> {
        self.expect('(')?;
        self.expect(')')?;
        self.expect('.')?;
        let begin = self.begin;
        let what = match self.name()? {
            "begin" => Transaction::Begin,
            "commit" => Transaction::Commit,
            "rollback" => Transaction::Rollback,
            other => {
                return Err(self.lexer.error(begin, format!("`tx().{other}()` is none of begin, commit and rollback")));
            }
        };
        self.expect('(')?;
        self.expect(')')?;
        Ok(what)
    }

    /// The arguments of a terminal.
    fn terminal(&mut self, terminal: Terminal, begin: usize) -> Parsed<Terminal> {
        let call = self.call("")?;
        let number = match (terminal, &call.arguments[..]) {
            (_, []) => return Ok(terminal),
            (Terminal::Next(_), [Argument::Literal(Literal::Number(Number::Int(number)))]) => {
                u64::try_from(*number).ok()
            }
            (Terminal::Next(_), [Argument::Literal(Literal::Number(Number::Long(number)))]) => {
                u64::try_from(*number).ok()
            }
            _ => None,
        };
        match number {
            Some(number) => Ok(Terminal::Next(Some(number))),
            None => Err(self.lexer.error(begin, "this takes no such argument")),
        }
    }

    /// The arguments of a call whose name has been read.
    fn call(&mut self, name: &str) -> Parsed<Call> {
        self.expect('(')?;
        let arguments = self.list(')', Self::argument)?;
        Ok(Call { name: name.into(), arguments })
    }

    /// What is separated by commas, and the sign that ends it.
    fn list<T>(&mut self, end: char, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        if self.takes(end)? {
            return Ok(items);
        }
        loop {
            items.push(self.nested(&mut item)?);
            if self.takes(end)? {
                return Ok(items);
            }
            if !self.takes(',')? {
                return Err(self.wrong(&format!("`,` or `{end}` is missing")));
            }
        }
    }

    /// Something that is nested.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEPTH_MAX {
            return Err(self.wrong(&format!("the query nests deeper than {DEPTH_MAX} levels")));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn argument(&mut self) -> Parsed<Argument> {
        let begin = self.begin;
        match self.word {
            Word::String(_) | Word::Number(_) => {
                let literal = self.literal()?;
                if self.word != Word::Range {
                    return Ok(Argument::Literal(literal));
                }
                self.advance()?;
                let last = self.literal()?;
                let items = range(&literal, &last, self.range_left).map_err(|why| self.lexer.error(begin, why))?;
                self.range_left -= items.len() as u64;
                Ok(Argument::List(items))
            }
            Word::Sign('[') => self.list_or_map(),
            Word::Sign('{') => {
                self.advance()?;
                Ok(Argument::Set(self.list('}', Self::argument)?))
            }
            Word::Name(name) => {
                self.advance()?;
                self.named(name, begin)
            }
            _ => Err(self.wrong("an argument is missing")),
        }
    }

    fn literal(&mut self) -> Parsed<Literal> {
        let begin = self.begin;
        let literal = match self.word {
            Word::String(text) => Literal::Text(self.unescaped(text, begin)?),
            Word::Number(text) => Literal::Number(numbers::number(text).map_err(|why| self.lexer.error(begin, why))?),
            _ => return Err(self.wrong("a string or a number is missing")),
        };
        self.advance()?;
        Ok(literal)
    }

    fn unescaped(&self, text: &str, begin: usize) -> Parsed<Box<str>> {
        strings::unescaped(text).map_err(|(offset, why)| self.lexer.error(begin + 1 + offset, why))
    }

    /// `[1, 2]`, `[a: 1]` or `[:]`
    fn list_or_map(&mut self) -> Parsed<Argument> {
        self.expect('[')?;
        if self.takes(':')? {
            self.expect(']')?;
            return Ok(Argument::Map(Vec::new()));
        }
        if self.takes(']')? {
            return Ok(Argument::List(Vec::new()));
        }
        let first = self.nested(Self::entry)?;
        let is_map = first.1.is_some();
        let mut entries = vec![first];
        while !self.takes(']')? {
            if !self.takes(',')? {
                return Err(self.wrong("`,` or `]` is missing"));
            }
            let begin = self.begin;
            let entry = self.nested(Self::entry)?;
            if entry.1.is_some() != is_map {
                return Err(self.lexer.error(begin, "a list has no keys, and a map has one for each value"));
            }
            entries.push(entry);
        }
        Ok(match is_map {
            true => Argument::Map(entries.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()),
            false => Argument::List(entries.into_iter().map(|(value, _)| value).collect()),
        })
    }

    /// A value, or a key and its value.
    fn entry(&mut self) -> Parsed<(Argument, Option<Argument>)> {
        let begin = self.begin;
        if self.takes('(')? {
            let key = self.argument()?;
            self.expect(')')?;
            self.expect(':')?;
            return Ok((key, Some(self.argument()?)));
        }
        let first = match self.word {
            Word::Name(name) => {
                self.advance()?;
                // A name that is a key stands for itself, unless it has a meaning.
                match (self.word, Token::bare(name)) {
                    (Word::Sign(':'), Some(token @ (Token::T(_) | Token::Direction(_)))) => Argument::Token(token),
                    (Word::Sign(':'), _) => Argument::Literal(Literal::Text(name.into())),
                    _ => self.named(name, begin)?,
                }
            }
            _ => self.argument()?,
        };
        match self.takes(':')? {
            true => Ok((first, Some(self.argument()?))),
            false => Ok((first, None)),
        }
    }

    /// An argument that begins with a name, which has been read.
    fn named(&mut self, name: &'a str, begin: usize) -> Parsed<Argument> {
        match (name, self.word) {
            ("new", Word::Name(class)) => {
                let begin = self.begin;
                self.advance()?;
                self.class(class, begin)
            }
            ("g", Word::Sign('.')) => {
                Err(self.lexer.error(begin, "a traversal in another begins with `__` and not with `g`"))
            }
            ("__", Word::Sign('.')) => {
                self.advance()?;
                let first = self.name()?;
                Ok(Argument::Traversal(self.calls(first)?))
            }
            (_, Word::Sign('(')) => self.called(name, begin),
            (_, Word::Sign('.')) => {
                self.advance()?;
                let value_begin = self.begin;
                let value = self.name()?;
                self.qualified(name, value, value_begin)
            }
            ("true", _) => Ok(Argument::Literal(Literal::Boolean(true))),
            ("false", _) => Ok(Argument::Literal(Literal::Boolean(false))),
            ("null", _) => Ok(Argument::Literal(Literal::Null)),
            ("NaN", _) => Ok(Argument::Literal(Literal::Number(Number::Double(f64::NAN)))),
            ("Infinity", _) => Ok(Argument::Literal(Literal::Number(Number::Double(f64::INFINITY)))),
            _ => Ok(Token::bare(name).map_or_else(|| Argument::Name(name.into()), Argument::Token)),
        }
    }

    /// A name and its arguments: a predicate, a value or a traversal.
    fn called(&mut self, name: &'a str, begin: usize) -> Parsed<Argument> {
        if let Some(test) = Test::named(name) {
            let predicate = Predicate::Test(test, self.call(name)?.arguments);
            return self.joined(predicate);
        }
        if let Some(cardinality) = Cardinality::named(name) {
            return self.with_cardinality(cardinality);
        }
        match name {
            "datetime" | "DateTime" => self.date_time(name, begin),
            "UUID" => self.uuid(begin),
            "Vertex" | "ReferenceVertex" => self.class(name, begin),
            _ if is_strategy(name) => self.class(name, begin),
            // The name of a step, and of a predicate: it depends on what is denied.
            "not" => {
                let mut call = self.call(name)?;
                match (call.arguments.pop(), call.arguments.is_empty()) {
                    (Some(Argument::Predicate(denied)), true) => self.joined(Predicate::Not(Box::new(denied))),
                    (last, _) => {
                        call.arguments.extend(last);
                        self.calls_after(call).map(Argument::Traversal)
                    }
                }
            }
            _ => Ok(Argument::Traversal(self.calls(name)?)),
        }
    }

    /// A name with its enumeration or class, such as `Order.desc` and `P.gt(1)`.
    fn qualified(&mut self, class: &'a str, name: &'a str, begin: usize) -> Parsed<Argument> {
        if self.word == Word::Sign('(') {
            return match class {
                "P" | "TextP" if name == "not" || Test::named(name).is_some() => self.called(name, begin),
                "Cardinality" | "VertexProperty.Cardinality" => match Cardinality::named(name) {
                    Some(cardinality) => self.with_cardinality(cardinality),
                    None => Err(self.lexer.error(begin, format!("`{name}` is not a cardinality"))),
                },
                _ => Err(self.lexer.error(begin, format!("`{class}.{name}()` has no meaning"))),
            };
        }
        if let Some(token) = Token::qualified(class, name) {
            return Ok(Argument::Token(token));
        }
        match option(class, name) {
            Some(Ok(text)) => Ok(Argument::Literal(Literal::Text(text.into()))),
            Some(Err(number)) => Ok(Argument::Literal(Literal::Number(Number::Int(number)))),
            None => Err(self.lexer.error(begin, format!("`{class}.{name}` has no meaning"))),
        }
    }

    /// `set("a")`, after its name.
    fn with_cardinality(&mut self, cardinality: Cardinality) -> Parsed<Argument> {
        self.expect('(')?;
        let value = self.nested(Self::argument)?;
        self.expect(')')?;
        Ok(Argument::Cardinality(cardinality, Box::new(value)))
    }

    /// What joins a predicate with others.
    fn joined(&mut self, mut predicate: Predicate) -> Parsed<Argument> {
        let depth = self.depth;
        while self.takes('.')? {
            let begin = self.begin;
            let name = self.name()?;
            let mut call = self.call(name)?;
            let with = match call.arguments.pop() {
                Some(Argument::Predicate(with)) if call.arguments.is_empty() => Some(with),
                None => None,
                Some(_) => return Err(self.lexer.error(begin, format!("`{name}` takes one predicate here"))),
            };
            predicate = match (name, with, predicate) {
                // One level for all of a row, or a long row would be a deep tree.
                ("and", Some(with), Predicate::And(mut all)) => {
                    all.push(with);
                    Predicate::And(all)
                }
                ("or", Some(with), Predicate::Or(mut all)) => {
                    all.push(with);
                    Predicate::Or(all)
                }
                ("and", Some(with), first) => self.deeper(Predicate::And(vec![first, with]))?,
                ("or", Some(with), first) => self.deeper(Predicate::Or(vec![first, with]))?,
                ("negate", None, first) => self.deeper(Predicate::Not(Box::new(first)))?,
                _ => return Err(self.lexer.error(begin, format!("`{name}` does not join predicates"))),
            };
        }
        self.depth = depth;
        Ok(Argument::Predicate(predicate))
    }

    /// Counts a level that no call of this parser stands for.
    fn deeper(&mut self, predicate: Predicate) -> Parsed<Predicate> {
        self.nested(|_| Ok(()))?;
        self.depth += 1;
        Ok(predicate)
    }

    /// The calls of a traversal in another, from the arguments of the first on.
    fn calls(&mut self, first: &str) -> Parsed<Vec<Call>> {
        let first = self.call(first)?;
        self.calls_after(first)
    }

    fn calls_after(&mut self, first: Call) -> Parsed<Vec<Call>> {
        let mut calls = vec![first];
        while self.takes('.')? {
            let name = self.name()?;
            calls.push(self.call(name)?);
        }
        Ok(calls)
    }

    /// A vertex or a strategy, after its name.
    fn class(&mut self, name: &str, begin: usize) -> Parsed<Argument> {
        match name {
            "Vertex" | "ReferenceVertex" => {
                let mut call = self.call(name)?;
                match (call.arguments.pop(), call.arguments.pop(), call.arguments.is_empty()) {
                    (Some(label), Some(id), true) => Ok(Argument::Vertex(Box::new(id), Box::new(label))),
                    _ => Err(self.lexer.error(begin, "a vertex has an id and a label")),
                }
            }
            _ if is_strategy(name) => {
                let options = match self.takes('(')? {
                    true => self.list(')', Self::strategy_option)?,
                    false => Vec::new(),
                };
                Ok(Argument::Strategy(Strategy { name: name.into(), options }))
            }
            _ => Err(self.lexer.error(begin, format!("`new {name}` is neither a vertex nor a strategy"))),
        }
    }

    fn strategy_option(&mut self) -> Parsed<(Box<str>, Argument)> {
        let name = self.name()?;
        self.expect(':')?;
        Ok((name.into(), self.argument()?))
    }

    fn date_time(&mut self, name: &str, begin: usize) -> Parsed<Argument> {
        match &self.call(name)?.arguments[..] {
            [] => Ok(Argument::Now),
            [Argument::Literal(Literal::Text(text))] => match Moment::parse(text) {
                Some(moment) => Ok(Argument::Literal(Literal::DateTime(moment))),
                None => {
                    let like = "2026-11-01, 2026-11-01T09:30:00Z or 2026-11-01T09:30:00+01:00";
                    Err(self.lexer.error(begin, format!("{text:?} is not a date and time such as {like}")))
                }
            },
            _ => {
                Err(self.lexer.error(begin, "datetime takes a string, or nothing for the time at which the query runs"))
            }
        }
    }

    fn uuid(&mut self, begin: usize) -> Parsed<Argument> {
        match &self.call("UUID")?.arguments[..] {
            [] => Ok(Argument::RandomUuid),
            [Argument::Literal(Literal::Text(text))] => match text.parse::<Uuid>() {
                Ok(uuid) => Ok(Argument::Literal(Literal::Uuid(uuid))),
                Err(error) => Err(self.lexer.error(begin, format!("{text:?} is not a UUID: {error}"))),
            },
            _ => Err(self.lexer.error(begin, "UUID takes a string, or nothing for a new one")),
        }
    }

    fn name(&mut self) -> Parsed<&'a str> {
        match self.word {
            Word::Name(name) => {
                self.advance()?;
                Ok(name)
            }
            _ => Err(self.wrong("a name is missing")),
        }
    }

    fn takes(&mut self, sign: char) -> Parsed<bool> {
        let takes = self.word == Word::Sign(sign);
        if takes {
            self.advance()?;
        }
        Ok(takes)
    }

    fn expect(&mut self, sign: char) -> Parsed<()> {
        match self.takes(sign)? {
            true => Ok(()),
            false => Err(self.wrong(&format!("`{sign}` is missing"))),
        }
    }

    fn advance(&mut self) -> Parsed<()> {
        self.pace.check(WORD_UNITS)?;
        (self.word, self.begin) = self.lexer.next()?;
        Ok(())
    }

    /// What is wrong at the next word.
    fn wrong(&self, message: &str) -> QueryError {
        let found = match self.word {
            Word::Name(text) | Word::Number(text) => format!("`{}` is here", shortened(text)),
            Word::String(_) => "a string is here".to_owned(),
            Word::Sign(sign) => format!("`{sign}` is here"),
            Word::Range => "`..` is here".to_owned(),
            Word::End => "the text ends here".to_owned(),
        };
        self.lexer.error(self.begin, format!("{message}; {found}"))
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn is_strategy(name: &str) -> bool {
    name.ends_with("Strategy") && name.starts_with(|first: char| first.is_ascii_uppercase())
}

fn terminal_named(name: &str) -> Option<Terminal> {
    Some(match name {
        "next" => Terminal::Next(None),
        "tryNext" => Terminal::TryNext,
        "hasNext" => Terminal::HasNext,
        "toList" => Terminal::List,
        "toSet" => Terminal::Set,
        "toBulkSet" => Terminal::BulkSet,
        "iterate" => Terminal::Iterate,
        _ => return None,
    })
}

/// The value that an option of `with` has a name for: the tokens of value maps are bits of a number.
fn option(class: &str, name: &str) -> Option<Result<&'static str, i32>> {
    Some(match (class, name) {
        ("WithOptions", "tokens") => Ok("~tinkerpop.valueMap.tokens"),
        ("WithOptions", "none") => Err(0),
        ("WithOptions", "ids") => Err(1),
        ("WithOptions", "labels") => Err(2),
        ("WithOptions", "keys") => Err(4),
        ("WithOptions", "values") => Err(8),
        ("WithOptions", "all") => Err(15),
        ("WithOptions", "indexer") => Ok("~tinkerpop.index.indexer"),
        ("WithOptions", "list") => Err(0),
        ("WithOptions", "map") => Err(1),
        ("ShortestPath", "target") => Ok("~tinkerpop.shortestPath.target"),
        ("ShortestPath", "edges") => Ok("~tinkerpop.shortestPath.edges"),
        ("ShortestPath", "distance") => Ok("~tinkerpop.shortestPath.distance"),
        ("ShortestPath", "maxDistance") => Ok("~tinkerpop.shortestPath.maxDistance"),
        ("ShortestPath", "includeEdges") => Ok("~tinkerpop.shortestPath.includeEdges"),
        ("ConnectedComponent", "component") => Ok("gremlin.connectedComponentVertexProgram.component"),
        ("ConnectedComponent", "edges") => Ok("~tinkerpop.connectedComponent.edges"),
        ("ConnectedComponent", "propertyName") => Ok("~tinkerpop.connectedComponent.propertyName"),
        ("PageRank", "edges") => Ok("~tinkerpop.pageRank.edges"),
        ("PageRank", "times") => Ok("~tinkerpop.pageRank.times"),
        ("PageRank", "propertyName") => Ok("~tinkerpop.pageRank.propertyName"),
        ("PeerPressure", "edges") => Ok("~tinkerpop.peerPressure.edges"),
        ("PeerPressure", "times") => Ok("~tinkerpop.peerPressure.times"),
        ("PeerPressure", "propertyName") => Ok("~tinkerpop.peerPressure.propertyName"),
        ("IO", "reader") => Ok("~tinkerpop.io.reader"),
        ("IO", "writer") => Ok("~tinkerpop.io.writer"),
        ("IO", "gryo") => Ok("gryo"),
        ("IO", "graphson") => Ok("graphson"),
        ("IO", "graphml") => Ok("graphml"),
        _ => return None,
    })
}

/// The list that a range stands for: from the first to the last number, or to the last of texts that differ in one character.
fn range(first: &Literal, last: &Literal, most: u64) -> Result<Vec<Argument>, String> {
    let wrong = || "a range has two integers, or two strings of one character".to_owned();
    let long = |length: u64| format!("the range has {length} items, and all ranges of a query {RANGE_MAX} at most");
    match (first, last) {
        (Literal::Number(Number::Int(first)), Literal::Number(Number::Int(last))) => {
            let length = u64::from(first.abs_diff(*last)) + 1;
            if length > most {
                return Err(long(length));
            }
            let first = *first;
            let last = *last;
            let numbers: Vec<i32> =
                if first <= last { (first..=last).collect() } else { (last..=first).rev().collect() };
            Ok(numbers.into_iter().map(|number| Argument::Literal(Literal::Number(Number::Int(number)))).collect())
        }
        (Literal::Text(first), Literal::Text(last)) => {
            let one = |text: &str| {
                let mut characters = text.chars();
                characters.next().filter(|_| characters.next().is_none())
            };
            let first = one(first).ok_or_else(wrong)?;
            let last = one(last).ok_or_else(wrong)?;
            let length = u64::from(u32::from(first).abs_diff(u32::from(last))) + 1;
            if length > most {
                return Err(long(length));
            }
            let characters: Vec<char> =
                if first <= last { (first..=last).collect() } else { (last..=first).rev().collect() };
            let text = |character: char| Argument::Literal(Literal::Text(character.to_string().into()));
            Ok(characters.into_iter().map(text).collect())
        }
        _ => Err(wrong()),
    }
}
