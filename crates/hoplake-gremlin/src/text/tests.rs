//! The parser against texts, each with what it says, and against texts that are wrong.

use hoplake_query::{
    error::QueryError,
    literal::{Literal, Number},
    plan::Test,
    tokens::{Cardinality, Order, T, Token},
};
use hoplake_storage::QueryContext;
use proptest::prelude::*;

use super::{DEPTH_MAX, parse, parse_within};
use crate::script::{Argument, Call, Predicate, Statement, Terminal, Transaction};

fn steps(text: &str) -> Vec<Call> {
    match parse(text).unwrap().statements.pop().unwrap() {
        Statement::Traversal(traversal, _) => traversal.steps,
        other => panic!("{text}: {other:?}"),
    }
}

/// The arguments of the only step after `g`.
fn arguments(text: &str) -> Vec<Argument> {
    steps(&format!("g.inject({text})")).remove(0).arguments
}

fn argument(text: &str) -> Argument {
    arguments(text).remove(0)
}

fn text(text: &str) -> Argument {
    Argument::Literal(Literal::Text(text.into()))
}

fn int(number: i32) -> Argument {
    Argument::Literal(Literal::Number(Number::Int(number)))
}

fn call(name: &str, arguments: Vec<Argument>) -> Call {
    Call { name: name.into(), arguments }
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn a_traversal_is_its_calls() {
    let expected = vec![
        call("V", vec![int(1)]),
        call("has", vec![text("age"), Argument::Predicate(Predicate::Test(Test::Gt, vec![int(30)]))]),
        call("repeat", vec![Argument::Traversal(vec![call("out", vec![text("knows")]), call("dedup", vec![])])]),
        call("times", vec![int(2)]),
        call("order", vec![]),
        call("by", vec![text("name"), Argument::Token(Token::Order(Order::Desc))]),
    ];
    let written = "g.V(1).has('age', gt(30)).repeat(__.out(\"knows\").dedup()).times(2).order().by('name', desc)";
    assert_eq!(steps(written), expected);
    let spaced = "g . V ( 1 ) // the first\n .has( 'age',P.gt(30) ).repeat(out('knows').dedup()).times(2)\t.order().by('name',Order.decr)";
    assert_eq!(steps(spaced), expected);
}

#[test]
fn statements_follow_each_other() {
    let script = parse("g.addV('a').iterate(); g.tx().commit() g.V().next(3)\n;; g").unwrap();
    let kinds: Vec<_> = script
        .statements
        .iter()
        .map(|statement| match statement {
            Statement::Traversal(_, terminal) => Ok(*terminal),
            Statement::Transaction(transaction) => Err(Some(*transaction)),
            Statement::Nothing => Err(None),
        })
        .collect();
    let expected = [Ok(Terminal::Iterate), Err(Some(Transaction::Commit)), Ok(Terminal::Next(Some(3))), Err(None)];
    assert_eq!(kinds, expected);
    assert_eq!(parse("''").unwrap().statements, [Statement::Nothing]);
    let Statement::Traversal(traversal, _) = &parse("g.withSack(1).with('x').V()").unwrap().statements[0] else {
        panic!()
    };
    assert_eq!((traversal.source.len(), traversal.steps.len()), (2, 1));
}

#[test]
fn numbers_have_the_types_that_they_are_written_in() {
    let numbers = |text: &str| match argument(text) {
        Argument::Literal(Literal::Number(number)) => number,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(numbers("2147483647"), Number::Int(i32::MAX));
    assert_eq!(numbers("2147483648"), Number::Long(1 << 31));
    assert_eq!(numbers("-2_147_483_648"), Number::Int(i32::MIN));
    assert_eq!(numbers("9223372036854775808"), Number::BigInteger((1_u64 << 63).into()));
    assert_eq!(numbers("1b"), Number::Byte(1));
    assert_eq!(numbers("-128B"), Number::Byte(-128));
    assert_eq!(numbers("1s"), Number::Short(1));
    assert_eq!(numbers("+1L"), Number::Long(1));
    assert_eq!(numbers("1n"), Number::BigInteger(1.into()));
    assert_eq!(numbers("0x1F"), Number::Int(31));
    assert_eq!(numbers("0xfbL"), Number::Long(251));
    assert_eq!(numbers("017"), Number::Int(15));
    assert_eq!(numbers("0"), Number::Int(0));
    assert_eq!(numbers("1.5"), Number::Double(1.5));
    assert_eq!(numbers("1.5e-3f"), Number::Float(1.5e-3));
    assert_eq!(numbers("1d"), Number::Double(1.0));
    assert_eq!(numbers("1.50m").to_string(), "1.50");
    assert_eq!(numbers("-Infinity"), Number::Double(f64::NEG_INFINITY));
    assert!(matches!(numbers("NaN"), Number::Double(number) if number.is_nan()));
    assert_eq!(error("g.inject(128b)"), "line 1, column 10: 128 is not in the range of a byte");
    for wrong in ["1x", "08", "0x", "1_", "1.5l", "1e", "1e99999m"] {
        assert!(parse(&format!("g.inject({wrong})")).is_err(), "{wrong}");
    }
    assert!(error(&format!("g.inject({})", "9".repeat(20_000))).contains("10016 at most"));
}

#[test]
fn strings_have_escapes() {
    assert_eq!(argument(r#"'a\'b"c\n\u00e9\101'"#), text("a'b\"c\n\u{e9}A"));
    assert_eq!(argument(r#""\uD83D\uDE00""#), text("\u{1f600}"));
    assert_eq!(argument("'a\\\nb'"), text("ab"));
    assert_eq!(error(r"g.inject('ab\qc')"), "line 1, column 13: `\\q` has no meaning; a backslash is `\\\\`");
    assert!(error(r"g.inject('\uD83D')").contains("half of a pair"));
    assert_eq!(error("g.V().has('a"), "line 1, column 11: the string has no closing '");
}

#[test]
fn collections_hold_arguments() {
    assert_eq!(argument("[1, 'a', [2]]"), Argument::List(vec![int(1), text("a"), Argument::List(vec![int(2)])]));
    assert_eq!(argument("{1, 1}"), Argument::Set(vec![int(1), int(1)]));
    assert_eq!(argument("[]"), Argument::List(vec![]));
    assert_eq!(argument("[:]"), Argument::Map(vec![]));
    let token = |token| Argument::Token(Token::T(token));
    let expected = Argument::Map(vec![
        (text("name"), text("a")),
        (token(T::Id), int(1)),
        (token(T::Label), text("b")),
        (text("values"), int(2)),
        (Argument::List(vec![int(1)]), Argument::Traversal(vec![call("out", vec![])])),
    ]);
    assert_eq!(argument("[name: 'a', (T.id): 1, label: 'b', values: 2, [1]: out()]"), expected);
    assert_eq!(argument("3..1"), Argument::List(vec![int(3), int(2), int(1)]));
    assert_eq!(argument("'a'..'c'"), Argument::List(vec![text("a"), text("b"), text("c")]));
    assert!(error("g.inject(1..1000000000)").contains("10000 at most"));
    assert!(error("g.inject(1..9000, 'a'..'z', 1..9000)").contains("has 9000 items, and all ranges of a query 10000"));
    assert!(error("g.inject([1, a: 2])").contains("a list has no keys"));
}

#[test]
fn names_mean_what_their_place_says() {
    let pick = argument("Pick.none");
    assert_eq!(pick, argument("none"));
    assert_eq!(argument("x"), Argument::Name("x".into()));
    assert_eq!(argument("ReadOnlyStrategy"), Argument::Name("ReadOnlyStrategy".into()));
    assert_eq!(argument("Cardinality.set('a')"), Argument::Cardinality(Cardinality::Set, Box::new(text("a"))));
    assert_eq!(argument("new Vertex(1, 'person')"), Argument::Vertex(Box::new(int(1)), Box::new(text("person"))));
    let Argument::Strategy(strategy) =
        argument("new SubgraphStrategy(vertices: has('age'), checkAdjacentVertices: false)")
    else {
        panic!()
    };
    assert_eq!((&*strategy.name, strategy.options.len()), ("SubgraphStrategy", 2));
    assert_eq!(argument("datetime()"), Argument::Now);
    let seconds = |text: &str| match argument(text) {
        Argument::Literal(Literal::DateTime(moment)) => {
            (moment.duration_since_epoch().as_secs(), moment.offset().seconds())
        }
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(seconds("datetime('1970-01-02')"), (86_400, 0));
    assert_eq!(seconds("datetime('1970-01-01T01:00:00+01:00')"), (0, 3_600));
    assert_eq!(seconds("datetime('1970-01-01T00:00:01.5Z')"), (1, 0));
    assert!(error("g.inject(datetime('soon'))").contains("is not a date and time such as"));
    assert!(matches!(argument("UUID('f47af10b-58cc-4372-a567-0f02b2f3d479')"), Argument::Literal(Literal::Uuid(_))));
    assert_eq!(argument("UUID()"), Argument::RandomUuid);
    assert_eq!(argument("WithOptions.tokens"), text("~tinkerpop.valueMap.tokens"));
    assert!(error("g.inject(Order.up)").contains("`Order.up` has no meaning"));
}

#[test]
fn predicates_are_joined_from_the_left() {
    let test = |test, number| Predicate::Test(test, vec![int(number)]);
    let one = test(Test::Gt, 1);
    let two = test(Test::Lt, 2);
    let three = test(Test::Eq, 3);
    let and = Predicate::And(vec![one.clone(), two.clone()]);
    assert_eq!(argument("gt(1).and(lt(2))"), Argument::Predicate(and.clone()));
    assert_eq!(argument("gt(1).and(lt(2)).or(eq(3))"), Argument::Predicate(Predicate::Or(vec![and, three.clone()])));
    assert_eq!(
        argument("gt(1).and(lt(2)).and(eq(3))"),
        Argument::Predicate(Predicate::And(vec![one.clone(), two, three]))
    );
    assert_eq!(argument("not(gt(1))"), Argument::Predicate(Predicate::Not(Box::new(one.clone()))));
    assert_eq!(argument("P.gt(1).negate()"), argument("P.not(gt(1))"));
    assert_eq!(
        argument("not(out()).id()"),
        Argument::Traversal(vec![
            call("not", vec![Argument::Traversal(vec![call("out", vec![])])]),
            call("id", vec![]),
        ])
    );
    assert!(error("g.V().is(gt(1).xor(lt(2)))").contains("`xor` does not join predicates"));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    assert_eq!(error(""), "line 1, column 1: a query begins with `g`; the text ends here");
    assert_eq!(error("x.V()"), "line 1, column 1: a query begins with `g`; `x` is here");
    assert_eq!(error("g.V(\n  1 2)"), "line 2, column 5: `,` or `)` is missing; `2` is here");
    assert_eq!(error("g.V().out"), "line 1, column 10: `(` is missing; the text ends here");
    assert_eq!(error("g.V().next().out()"), "line 1, column 14: nothing follows what ends a traversal; `out` is here");
    assert_eq!(error("g.V().next(-1)"), "line 1, column 7: this takes no such argument");
    assert_eq!(error("g.V()?"), "line 1, column 6: '?' has no meaning here");
    assert_eq!(error("g.tx().close()"), "line 1, column 8: `tx().close()` is none of begin, commit and rollback");
    assert!(error("g.V().to(g.V(1))").contains("begins with `__`"));
}

#[test]
fn nesting_has_a_bound() {
    let nested = |levels: usize| format!("g.V(){}{}", ".filter(out()".repeat(levels), ")".repeat(levels));
    assert!(parse(&nested(DEPTH_MAX - 10)).is_ok());
    assert!(error(&nested(100_000)).contains("nests deeper than 128 levels"));
    for deep in ["[", "{", "not(", "gt(", "set(", "[(", "new SubgraphStrategy(vertices: "] {
        assert!(error(&format!("g.inject({}", deep.repeat(100_000))).contains("nests deeper"), "{deep}");
    }
    // A long row is not deep, whatever joins it; one of changing signs is.
    assert!(parse(&format!("g.V().is(gt(1){})", ".and(gt(1))".repeat(10_000))).is_ok());
    assert!(error(&format!("g.V().is(gt(1){})", ".and(gt(1)).or(gt(1))".repeat(10_000))).contains("nests deeper"));
    assert!(parse(&format!("g.V(){}", ".out()".repeat(10_000))).is_ok());
}

proptest! {
    #[test]
    fn no_text_stops_the_parser(text in "\\PC{0,60}") {
        drop(parse(&text));
    }

    #[test]
    fn no_row_of_words_stops_the_parser(words in proptest::collection::vec(word(), 0..30)) {
        drop(parse(&format!("g.V({}", words.concat())));
    }
}

fn word() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "g",
        "__",
        ".",
        "..",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        ";",
        "'a'",
        "\"",
        "'",
        "\\",
        "1",
        "-1",
        "1.5f",
        "0x",
        "out",
        "not",
        "gt",
        "and",
        "T.id",
        "id",
        "set",
        "new ",
        "Vertex",
        "SubgraphStrategy",
        "datetime",
        "null",
        "NaN",
        "//",
        "\n",
        " ",
        "é",
        "\u{1f600}",
    ])
}

/// Whatever a text is made of, reading it ends with the query.
#[test]
fn reading_ends_at_the_deadline() {
    let many = |begin: &str, part: &str, end: &str| format!("{begin}{}{end}", part.repeat(20_000));
    let texts = [
        many("g.V()", ".id()", ""),
        many("g.V().union(", "out(),", "in())"),
        many("g.inject(", "1,", "1)"),
        many("g.inject(", "'a',", "'a')"),
        many("g.inject(", "a,", "a)"),
        many("g.inject(", "null,", "null)"),
        many("g.inject(", "T.id,", "T.id)"),
        many("g.inject([", "[],", "[]])"),
        many("g.inject({", "1,", "1})"),
        many("g.inject([", "a:1,", "a:1])"),
        many("g.V().has('a', within(", "1,", "1))"),
        many("g.V().has('a', gt(1)", ".and(gt(1))", ")"),
        many("g.V().with('a', ", "", "1)") + &".with('a', 1)".repeat(20_000),
        many("", "g.V();", "g.V()"),
        many("g", ";", ";g.V()"),
    ];
    for text in &texts {
        let context = QueryContext::new();
        parse_within(text, &context).unwrap_or_else(|error| panic!("{}: {error}", &text[..40]));
        context.give_time(Some(0));
        let error = parse_within(text, &context).map(drop).expect_err(&text[..40]).to_string();
        assert!(error.contains("0 ms"), "{}: {error}", &text[..40]);
    }
    // What is wrong is still said.
    let error = parse_within("g.V(", &QueryContext::new()).unwrap_err();
    assert!(matches!(error, QueryError::Syntax(_)), "{error}");
}
