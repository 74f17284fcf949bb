//! What has some values, found by a table: a batch of `mergeV` seeks as many vertices as it has rows.
//!
//! ```text
//! ask: the values that are sought ── file: places 0, 1, 2 … and what each has ──▶ find: the places that have all of some
//! ```
//! Only what is asked for is kept, so the table is as large as what rows seek and what is found, and not as what is looked through.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use foldhash::fast::RandomState;

use crate::{
    error::Done,
    growth::{Growth, units_of},
    plan::Name,
    value::{
        Value,
        alike::{self, EqualityKey},
        equals, value_bytes,
    },
};

/// What an entry of a table takes, with its share of the room of the table.
const ENTRY_BYTES: usize = 96;

/// What a value is of something.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Of<'a> {
    Id,
    Label,
    Property(&'a str),
}

/// What something is to have.
pub(crate) type Condition<'a> = (Of<'a>, Cow<'a, Value>);

/// Places by values that are asked for.
#[derive(Debug)]
pub(crate) struct ByValue {
    growth: Growth,
    hasher: RandomState,
    /// The numbers of names that are asked for.
    names: HashMap<Name, u32>,
    /// Numbers of entries by what they are filed under, in their order: empty where something is asked for and nothing is filed.
    table: HashMap<(u32, EqualityKey), Vec<u32>, RandomState>,
    /// In the order of their places.
    entries: Vec<(usize, Value)>,
}

/// The entries that may match a condition.
struct Likely<'a> {
    value: &'a Value,
    /// What one comparison is.
    units: u64,
    lists: Vec<&'a [u32]>,
}

impl ByValue {
    pub(crate) fn new(growth: &Growth) -> Self {
        let hasher = RandomState::default();
        Self { growth: growth.clone(), hasher, names: HashMap::new(), table: HashMap::default(), entries: Vec::new() }
    }

    /// Notes what will be sought. All of it has to be, before anything is filed.
    ///
    /// # Errors
    /// A limit, as for all that grows.
    pub(crate) fn ask(&mut self, of: Of<'_>, value: &Value) -> Done<()> {
        let number = match (self.number(of), of) {
            (Some(number), _) => number,
            (None, Of::Property(name)) => {
                self.growth.take(ENTRY_BYTES + name.len())?;
                let number = self.names.len() as u32 + 2;
                self.names.insert(name.into(), number);
                number
            }
            (None, _) => return Ok(()),
        };
        self.growth.work(units(value))?;
        for form in alike::sought(value, &self.hasher) {
            self.growth.take(ENTRY_BYTES)?;
            self.table.entry((number, form)).or_default();
        }
        Ok(())
    }

    /// Notes a value that the thing at a place has; places do not go down.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub(crate) fn file(&mut self, place: usize, of: Of<'_>, value: &Value) -> Done<()> {
        let Some(number) = self.number(of) else { return Ok(()) };
        self.growth.work(units(value))?;
        let entry = self.entries.len() as u32;
        let mut is_asked = false;
        for form in alike::filed(value, &self.hasher) {
            if let Some(list) = self.table.get_mut(&(number, form)) {
                self.growth.take(2 * size_of::<u32>())?;
                list.push(entry);
                is_asked = true;
            }
        }
        if is_asked {
            self.growth.take(size_of::<(usize, Value)>())?;
            self.entries.push((place, self.growth.copy(value)?));
        }
        Ok(())
    }

    /// The places within a range that match all conditions: the first ones, in their order.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub(crate) fn find(&self, within: Range<usize>, conditions: &[Condition<'_>], most: usize) -> Done<Vec<usize>> {
        let mut likely: Vec<Likely<'_>> =
            conditions.iter().map(|(of, value)| self.likely(*of, value, &within)).collect();
        self.growth.work(conditions.len() as u64)?;
        let count = |likely: &Likely<'_>| likely.lists.iter().map(|list| list.len()).sum::<usize>();
        let Some(rarest) = (0..likely.len()).min_by_key(|at| count(&likely[*at])) else {
            let count = within.len().min(most);
            let mut all = self.growth.column(count)?;
            all.extend(within.take(count));
            return Ok(all);
        };
        let mut rarest = likely.swap_remove(rarest);
        let mut found: Vec<usize> = Vec::new();
        let mut done = None;
        while let Some(entry) = first_of(&mut rarest.lists) {
            self.growth.work(1)?;
            let place = self.entries[entry as usize].0;
            // A list may have equal values.
            if done == Some(place) || !self.is_equal(entry, &rarest)? {
                continue;
            }
            done = Some(place);
            if self.has_all(place, &likely)? {
                self.growth.take(2 * size_of::<usize>())?;
                found.push(place);
                if found.len() == most {
                    break;
                }
            }
        }
        Ok(found)
    }

    fn number(&self, of: Of<'_>) -> Option<u32> {
        match of {
            Of::Id => Some(0),
            Of::Label => Some(1),
            Of::Property(name) => self.names.get(name).copied(),
        }
    }

    fn likely<'a>(&'a self, of: Of<'_>, value: &'a Value, within: &Range<usize>) -> Likely<'a> {
        let forms = alike::sought(value, &self.hasher).into_iter();
        let lists = forms.filter_map(|form| self.table.get(&(self.number(of)?, form)));
        let lists = lists.map(|list| &list[self.place_in(list, within.start)..self.place_in(list, within.end)]);
        Likely { value, units: units(value), lists: lists.filter(|list| !list.is_empty()).collect() }
    }

    /// Where the entries of a place begin in a list.
    fn place_in(&self, list: &[u32], place: usize) -> usize {
        list.partition_point(|entry| self.entries[*entry as usize].0 < place)
    }

    fn is_equal(&self, entry: u32, likely: &Likely<'_>) -> Done<bool> {
        self.growth.work(likely.units)?;
        Ok(equals(&self.entries[entry as usize].1, likely.value))
    }

    fn has_all(&self, place: usize, all: &[Likely<'_>]) -> Done<bool> {
        for likely in all {
            if !self.has(place, likely)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn has(&self, place: usize, likely: &Likely<'_>) -> Done<bool> {
        for list in &likely.lists {
            let of_place = list[self.place_in(list, place)..].iter();
            for entry in of_place.take_while(|entry| self.entries[**entry as usize].0 == place) {
                if self.is_equal(*entry, likely)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// The first entry of some lists, each in order, which they have no longer.
fn first_of(lists: &mut [&[u32]]) -> Option<u32> {
    let list = lists.iter_mut().filter(|list| !list.is_empty()).min_by_key(|list| list[0])?;
    let (first, rest) = list.split_first()?;
    *list = rest;
    Some(*first)
}

fn units(value: &Value) -> u64 {
    units_of(value_bytes(value))
}

#[cfg(test)]
mod tests {
    use hoplake_storage::{MemoryBudget, QueryContext};

    use super::*;

    const NAME: Of<'static> = Of::Property("name");

    fn table(asked: &[Value], filed: &[(usize, Value)]) -> ByValue {
        let growth = Growth::new(&QueryContext::new()).unwrap();
        let mut table = ByValue::new(&growth);
        asked.iter().for_each(|value| table.ask(NAME, value).unwrap());
        filed.iter().for_each(|(place, value)| table.file(*place, NAME, value).unwrap());
        table
    }

    fn find(table: &ByValue, within: Range<usize>, values: &[Value], most: usize) -> Vec<usize> {
        let conditions: Vec<_> = values.iter().map(|value| (NAME, Cow::Borrowed(value))).collect();
        table.find(within, &conditions, most).unwrap()
    }

    #[test]
    fn places_have_all_that_is_sought() {
        let (one, two): (Value, Value) = (1.into(), 2.into());
        let filed = [
            (0, 1.0.into()),
            (0, one.clone()),
            (1, two.clone()),
            (2, 2.0.into()),
            (2, Value::Number(crate::literal::Number::Float(1.0))),
            (3, "1".into()),
            (4, 1_i64.into()),
        ];
        let table = table(&[one.clone(), two.clone(), Value::Null], &filed);
        assert_eq!(find(&table, 0..5, std::slice::from_ref(&one), usize::MAX), [0, 2, 4]);
        assert_eq!(find(&table, 0..5, std::slice::from_ref(&one), 2), [0, 2]);
        assert_eq!(find(&table, 1..4, std::slice::from_ref(&one), usize::MAX), [2]);
        assert_eq!(find(&table, 0..5, &[one.clone(), two.clone()], usize::MAX), [2]);
        assert_eq!(find(&table, 0..5, &[one, Value::Null], usize::MAX), [0; 0]);
        assert_eq!(find(&table, 1..4, &[], usize::MAX), [1, 2, 3]);
        // What nothing asks for is not kept.
        assert_eq!(table.entries.len(), 6);
    }

    /// Rows of which each seeks what one place has, and all what all have.
    #[test]
    fn the_work_is_linear_in_the_rows() {
        let work = |rows: i64| {
            let growth = Growth::new(&QueryContext::new()).unwrap();
            let mut table = ByValue::new(&growth);
            let conditions =
                |row: i64| [(Of::Property("kind"), Cow::Owned("a".into())), (NAME, Cow::Owned(row.into()))];
            for row in 0..rows {
                conditions(row).iter().for_each(|(of, value)| table.ask(*of, value).unwrap());
            }
            for row in 0..rows {
                conditions(row).iter().for_each(|(of, value)| table.file(row as usize, *of, value).unwrap());
            }
            for row in 0..rows {
                assert_eq!(table.find(0..rows as usize, &conditions(row), usize::MAX).unwrap(), [row as usize]);
            }
            growth.done()
        };
        let few = work(2_000);
        let many = work(20_000);
        assert!(many <= few * 11, "{few} units for 2,000 rows, {many} for 20,000");
    }

    #[test]
    fn nothing_is_filed_that_does_not_fit() {
        let budget = MemoryBudget::new("the query", 1 << 20);
        let growth = Growth::new(&QueryContext::within(&budget)).unwrap();
        let mut table = ByValue::new(&growth);
        let text: Value = "x".repeat(1 << 10).as_str().into();
        table.ask(NAME, &text).unwrap();
        let failed = (0..10_000).find_map(|place| table.file(place, NAME, &text).err());
        assert!(failed.unwrap().to_string().contains("bytes of memory"));
        assert!(table.entries.len() < 1 << 10 && budget.peak() <= 1 << 20);
        // Nor is what is found.
        assert!(table.find(0..1 << 40, &[], usize::MAX).is_err());
    }
}
