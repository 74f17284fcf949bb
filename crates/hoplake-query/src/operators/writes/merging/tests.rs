//! What copying the maps of merges takes.

use hoplake_storage::{MemoryBudget, QueryContext};

use super::Sought;
use crate::{
    error::QueryError,
    growth::Growth,
    tokens::{T, Token},
    value::Value,
};

#[test]
fn copies_of_maps_are_taken_before_they_are_made() {
    let entries =
        vec![("name".into(), Value::from("x".repeat(1 << 19).as_str())), (Value::Token(Token::T(T::Id)), 1.into())];
    type Copying<'a> = &'a dyn Fn(&Growth) -> Result<(), QueryError>;
    let limited = |bytes: u64, outcome: Copying<'_>| {
        let budget = MemoryBudget::new("the query", bytes);
        let growth = Growth::new(&QueryContext::within(&budget)).unwrap();
        let outcome = outcome(&growth).map_err(|error| error.to_string());
        assert!(outcome.is_ok() || budget.used() < 1 << 19);
        outcome
    };
    let enough = Growth::new(&QueryContext::new()).unwrap();
    let sought = Sought::of_vertex(&entries, "mergeV", &enough).unwrap();
    let copies: [Copying<'_>; 4] = [
        &|growth| Sought::of_vertex(&entries, "mergeV", growth).map(drop),
        &|growth| Sought::of_edge(&entries, "mergeE", growth).map(drop),
        &|growth| sought.created(&entries, &[], None, growth).map(drop),
        &|growth| sought.values_besides(&Vec::new(), growth).map(drop),
    ];
    for copy in copies {
        assert!(limited(1 << 18, copy).unwrap_err().contains("bytes of memory"));
        limited(1 << 20, copy).unwrap();
    }
}
