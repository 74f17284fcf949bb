//! Results as a person reads them: maps with the same keys as a table, all others a line each.

use std::io::{BufWriter, Write};

use hoplake::{
    MemoryHold,
    gremlin::{value::Value, value_bytes},
};

use crate::output::{
    Pipe, numbers,
    tables::{printable, table, terminal_width},
};

/// Maps with more keys than this are lines: a table of them would not fit.
const COLUMNS_MAX: usize = 12;

/// How many times a table has the text of a value: as a cell, and as lines of it.
const TEXT_COPIES: u64 = 3;

/// The first results of a query.
pub struct Shown {
    most: usize,
    values: Vec<Value>,
    /// Whether there are more.
    cut: bool,
    /// The memory of the values and of what shows them.
    holds: Vec<MemoryHold>,
}

impl Shown {
    pub fn new(most: usize) -> Self {
        Self { most, values: Vec::new(), cut: false, holds: Vec::new() }
    }

    /// What copies of a result take: the values, and the texts of a table.
    pub fn bytes(value: &Value, copies: u64) -> u64 {
        value_bytes(value) as u64 * copies * (1 + TEXT_COPIES)
    }

    /// Adds results with their memory, and returns whether more are wanted.
    pub fn add(&mut self, results: Vec<(Value, u64)>, hold: MemoryHold) -> bool {
        if self.cut {
            return false;
        }
        self.holds.push(hold);
        for (value, bulk) in results {
            for _ in 0..bulk {
                if self.values.len() == self.most {
                    self.cut = true;
                    return false;
                }
                self.values.push(value.clone());
            }
        }
        true
    }

    /// How many there are, in words.
    pub fn count(&self) -> String {
        let count = numbers::counted(self.values.len() as u64, "result", "results");
        if self.cut { format!("the first {count} (:limit shows more)") } else { count }
    }

    /// Prints them on standard output.
    pub fn print(&self) -> anyhow::Result<()> {
        let mut sink = BufWriter::new(Pipe::stdout());
        match self.columns() {
            Some(columns) => {
                let mut text = table(&columns, &[]);
                for value in &self.values {
                    let Value::Map(entries) = value else { continue };
                    let cell = |column: &&str| {
                        let entry = entries.iter().find(|(key, _)| name_of(key) == Some(*column));
                        entry.map_or_else(String::new, |(_, value)| value.to_string())
                    };
                    text.add_row(columns.iter().map(cell));
                }
                writeln!(sink, "{}", text.fitted(terminal_width()))?;
            }
            None => {
                for value in &self.values {
                    writeln!(sink, "{}", printable(value.to_string()))?;
                }
            }
        }
        Ok(sink.flush()?)
    }

    /// The keys of the results, if all are maps of a few names.
    fn columns(&self) -> Option<Vec<&str>> {
        let mut columns: Vec<&str> = Vec::new();
        for value in &self.values {
            let Value::Map(entries) = value else { return None };
            for (key, _) in entries {
                let name = name_of(key)?;
                if !columns.contains(&name) {
                    columns.push(name);
                }
            }
        }
        (self.values.len() > 1 && (1..=COLUMNS_MAX).contains(&columns.len())).then_some(columns)
    }
}

/// A key that can head a column.
fn name_of(key: &Value) -> Option<&str> {
    match key {
        Value::Text(name) => Some(name),
        Value::Token(token) => Some(token.name()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold() -> MemoryHold {
        hoplake::MemoryBudget::unlimited("the query").hold(0).unwrap()
    }

    #[test]
    fn maps_are_a_table_and_others_are_lines() {
        let map = |keys: &[&str]| Value::Map(keys.iter().map(|key| (Value::from(*key), Value::from(1_i64))).collect());
        let shown = |values: Vec<Value>| {
            let mut shown = Shown::new(10);
            shown.add(values.into_iter().map(|value| (value, 1)).collect(), hold());
            shown
        };
        assert_eq!(shown(vec![map(&["a"]), map(&["a", "b"])]).columns(), Some(vec!["a", "b"]));
        assert_eq!(shown(vec![map(&["a"])]).columns(), None);
        assert_eq!(shown(vec![map(&["a"]), Value::Null]).columns(), None);
        assert_eq!(shown(vec![map(&[]), map(&[])]).columns(), None);
        let names: Vec<String> = (0..=COLUMNS_MAX).map(|number| number.to_string()).collect();
        let wide = map(&names.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(shown(vec![wide.clone(), wide]).columns(), None);
    }

    #[test]
    fn results_are_cut_at_the_limit() {
        let mut shown = Shown::new(3);
        assert!(shown.add(vec![("a".into(), 2)], hold()) && !shown.add(vec![("b".into(), u64::MAX)], hold()));
        assert_eq!((shown.values.len(), shown.count().as_str()), (3, "the first 3 results (:limit shows more)"));
    }
}
