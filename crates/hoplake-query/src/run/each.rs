//! Steps that make one batch of another, whatever came before.

use std::{borrow::Cow, collections::HashSet};

use super::{
    Done, Run,
    batch::{Batch, Element, Items, Row, element_of, value_bytes},
    branch::restored,
    by::{column_of, kind_of},
    elements::Wanted,
    growth::Growth,
    maps::has_properties,
    paths::{Labels, PathTree},
    pipe::Frames,
    reduce::{OwnedKey, copies, items_of, operate},
    side_effects::{acts, reads_what_it_collects},
};
use crate::{
    error::QueryError,
    plan::Test,
    plan::{By, Name, PathPart, Predicate, Quantifier, StepKind, Steps, units},
    tokens::{Direction, Scope, T},
    value::{Unread, UnreadProperty, Value, equals},
};

/// Equal traversers that `coin` draws for between two looks at the deadline.
const DRAWN_AT_ONCE: usize = 1 << 13;

impl Run {
    /// What a step makes of a batch.
    pub(super) async fn each(&mut self, kind: &StepKind, labels: &Labels, batch: Batch) -> Done<Batch> {
        match kind {
            StepKind::Ends(direction) => self.ends(batch, *direction, labels),
            StepKind::OtherEnd => {
                let end = |value: &Value| match element_of(value) {
                    Some(Element::Edge(edge)) => Ok(Some(edge.to.into())),
                    _ => Err(not_an_edge(value)),
                };
                self.each_value(batch, labels, end).await
            }
            StepKind::Element => {
                let element = |value: &Value| match value {
                    Value::Unread(unread) => match &**unread {
                        Unread::VertexProperty(property) => Ok(Some(property.element.into())),
                        Unread::Property(property) => Ok(Some(property.element.into())),
                        _ => Err(QueryError::wrong_type("`element` is of a property")),
                    },
                    _ => Err(QueryError::wrong_type("`element` is of a property")),
                };
                self.each_value(batch, labels, element).await
            }

            StepKind::Has(By::Property(name), predicate) => self.has(batch, name, predicate, labels).await,
            StepKind::Has(By::Token(T::Id), predicate) => self.has_id(batch, predicate, labels).await,
            StepKind::Has(by, predicate) => {
                let values = self.by(by, &batch).await?;
                let test = |at: usize, growth: &Growth| match &values[at] {
                    Some(value) => predicate.test(value, growth),
                    None => Ok(false),
                };
                let kept = self.tested(batch.len(), test).await?;
                self.keep(batch, labels, |at| kept[at])
            }
            StepKind::HasProperty(name) => {
                let has = self.has_property(&batch, name).await?;
                self.keep(batch, labels, |at| has[at])
            }
            StepKind::HasNot(name) => {
                let has = self.has_property(&batch, name).await?;
                self.keep(batch, labels, |at| !has[at])
            }
            StepKind::HasSteps(name, steps) => {
                let values = self.by_property_values(&batch, name).await?;
                let firsts = self.child_of_values(steps, &batch, values).await?;
                self.keep(batch, labels, |at| firsts[at])
            }
            StepKind::HasKey(predicate) => self.keep_parts(batch, labels, T::Key, predicate).await,
            StepKind::HasValue(predicate) => self.keep_parts(batch, labels, T::Value, predicate).await,
            StepKind::Is(predicate) => {
                let predicate = self.predicate_with_elements(predicate).await?;
                self.keep_values(batch, labels, |value, growth| predicate.test(value, growth)).await
            }
            StepKind::WherePredicate(start, predicate, by) => {
                let fulfilled = self.where_predicate(&batch, start.as_ref(), predicate, by).await?;
                self.keep(batch, labels, |at| fulfilled[at])
            }
            StepKind::Where(steps) => {
                let exists = self.exists(steps, &batch).await?;
                self.keep(batch, labels, |at| exists[at])
            }
            StepKind::Not(steps) => {
                let exists = self.exists(steps, &batch).await?;
                self.keep(batch, labels, |at| !exists[at])
            }
            StepKind::And(all) => {
                if let Some(exist) = self.exists_all(all, &batch).await? {
                    return self.keep(batch, labels, |at| exist.iter().all(|exists| exists[at]));
                }
                let mut left = batch;
                for steps in all {
                    let exists = self.exists(steps, &left).await?;
                    left = left.keep(|at| exists[at]);
                }
                self.relabelled(left, labels)
            }
            StepKind::Or(any) => {
                if let Some(exist) = self.exists_all(any, &batch).await? {
                    return self.keep(batch, labels, |at| exist.iter().any(|exists| exists[at]));
                }
                let mut fulfilled = vec![false; batch.len()];
                for steps in any {
                    let open: Vec<u32> = (0..batch.len() as u32).filter(|at| !fulfilled[*at as usize]).collect();
                    let rows = batch.take(&open, &self.growth)?;
                    let exists = self.exists(steps, &rows).await?;
                    open.iter().zip(exists).for_each(|(at, exists)| fulfilled[*at as usize] = exists);
                }
                self.keep(batch, labels, |at| fulfilled[at])
            }
            StepKind::StartAt(label) => {
                let met = self.needed(label, "where", &batch).await?;
                self.mapped(batch, Items::of_values(met), labels)
            }
            StepKind::Quantified(quantifier, predicate) => {
                let mut kept = Vec::with_capacity(batch.len());
                for at in 0..batch.len() {
                    kept.push(self.quantified(*quantifier, predicate, &batch.items.get(at)).await?);
                }
                self.keep(batch, labels, |at| kept[at])
            }
            StepKind::SimplePath(simple, part) => self.simple_path(batch, *simple, part, labels).await,
            StepKind::Coin(probability) => {
                let mut batch = batch;
                for row in &mut batch.rows {
                    let (mut left, mut kept) = (copies(row.bulk)?, 0);
                    while left > 0 {
                        let drawn = left.min(DRAWN_AT_ONCE);
                        kept += (0..drawn).filter(|_| self.random.f64() < *probability).count() as u64;
                        left -= drawn;
                        self.pace.rest(drawn as u64).await?;
                    }
                    row.bulk = kept;
                }
                let bulks: Vec<u64> = batch.rows.iter().map(|row| row.bulk).collect();
                self.keep(batch, labels, |at| bulks[at] > 0)
            }
            StepKind::Discard => Ok(Batch::default()),

            StepKind::Token(token) => {
                let values = self.by_token(*token, &batch).await?;
                self.mapped_if(&batch, values, labels)
            }
            StepKind::Constant(value) => {
                let value = self.with_elements(vec![value.clone()]).await?;
                let values = self.growth.copies(&value[0], value_bytes(&value[0]), batch.len())?;
                self.mapped(batch, Items::of_values(values), labels)
            }
            StepKind::Identity => self.relabelled(batch, labels),
            StepKind::Loops(name) => {
                let found = self.loops.iter().rev().find(|(other, _)| name.is_none() || other == name);
                let Some((_, rounds)) = found else {
                    return Err(QueryError::wrong_type("`loops` is within a `repeat`"));
                };
                let rounds = Value::from(i32::try_from(*rounds).unwrap_or(i32::MAX));
                let items = Items::Values(self.growth.copies(&rounds, value_bytes(&rounds), batch.len())?);
                self.mapped(batch, items, labels)
            }
            StepKind::Path(part) => {
                let paths = self.paths_of(&batch, part).await?;
                self.mapped_if(&batch, paths, labels)
            }
            StepKind::Map(steps) => {
                let firsts = self.firsts(steps, &batch).await?;
                self.mapped_if(&batch, firsts, labels)
            }
            StepKind::FlatMap(steps) => {
                let found = self.child(steps, &batch).await?;
                self.flat_mapped(&batch, found, labels)
            }
            StepKind::Local(steps) => {
                let batch = self.one_by_one_if_it_acts(batch, steps)?;
                let found = match reads_what_it_collects(steps) {
                    true => self.one_by_one(steps, &batch).await?,
                    false => self.child(steps, &batch).await?,
                };
                let (found, _) = restored(found, &batch);
                self.relabelled(found, labels)
            }
            StepKind::Optional(steps) => {
                let batch = self.one_by_one_if_it_acts(batch, steps)?;
                let found = self.child(steps, &batch).await?;
                let (mut all, mut parents) = restored(found, &batch);
                let productive: HashSet<u32> = parents.iter().copied().collect();
                let others: Vec<u32> = (0..batch.len() as u32).filter(|at| !productive.contains(at)).collect();
                if !others.is_empty() {
                    let growth = self.growth.clone();
                    growth.absorb(all.hold.take());
                    all.append(batch.take(&others, &growth)?, &growth)?;
                    parents.extend(&others);
                    let mut order: Vec<u32> = (0..all.len() as u32).collect();
                    order.sort_by_key(|at| parents[*at as usize]);
                    all = all.take(&order, &growth)?;
                }
                self.relabelled(all, labels)
            }
            StepKind::Coalesce(branches) => self.coalesce(batch, branches, labels).await,
            StepKind::Unfold => self.unfold(batch, labels).await,
            StepKind::SelectColumn(column) => {
                let growth = self.growth.clone();
                self.each_value(batch, labels, |value| column_of(*column, value, &growth).map(Some)).await
            }
            StepKind::Sack => {
                let sacks = match &batch.sacks {
                    Some(sacks) => self.growth.copy_all(sacks)?,
                    None => self.growth.copies(&Value::Null, 0, batch.len())?,
                };
                self.mapped(batch, Items::of_values(sacks), labels)
            }
            StepKind::SackWith(operator, by) => {
                let values = self.by(by, &batch).await?;
                let growth = self.growth.clone();
                let mut batch = batch;
                let rows = batch.len();
                let mut sacks = match batch.sacks.take() {
                    Some(sacks) => sacks,
                    None => growth.copies(&Value::Null, 0, rows)?,
                };
                let productive: Vec<bool> = values.iter().map(Option::is_some).collect();
                for (sack, value) in sacks.iter_mut().zip(values) {
                    if let Some(value) = value {
                        let made = operate(*operator, std::mem::take(sack), value, &growth)?;
                        *sack = growth.built(made)?;
                        self.pace.rest(1).await?;
                    }
                }
                batch.sacks = Some(sacks);
                self.keep(batch, labels, |at| productive[at])
            }

            StepKind::Aggregate(_, name, by) => {
                let values = self.by(by, &batch).await?;
                let bulks: Vec<u64> = batch.rows.iter().map(|row| row.bulk).collect();
                let values = values.into_iter().zip(bulks).filter_map(|(value, bulk)| Some((value?, bulk)));
                let mut values: Vec<_> = values.collect();
                if self.assigns(name) {
                    values.drain(..values.len().saturating_sub(1));
                }
                self.aggregate(name, values.into_iter())?;
                self.relabelled(batch, labels)
            }
            StepKind::Group(Some(name), key, value) => {
                let keys = self.by(key, &batch).await?;
                self.group_under(name, keys, &batch, value)?;
                self.relabelled(batch, labels)
            }
            StepKind::GroupCount(Some(name), by) => {
                let keys = self.by(by, &batch).await?;
                let bulks: Vec<u64> = batch.rows.iter().map(|row| row.bulk).collect();
                let keys: Vec<_> = keys.into_iter().zip(bulks).filter_map(|(key, bulk)| Some((key?, bulk))).collect();
                self.count_under(name, keys.into_iter())?;
                self.relabelled(batch, labels)
            }
            StepKind::Subgraph(name) => {
                self.grow_graph(name, &batch)?;
                self.relabelled(batch, labels)
            }
            StepKind::Tree(Some(name), by) => {
                let paths = self.productive_paths(&batch, by).await?;
                self.grow_tree(name, paths)?;
                self.relabelled(batch, labels)
            }
            StepKind::SideEffect(steps) => {
                self.child(steps, &batch).await?;
                self.relabelled(batch, labels)
            }
            StepKind::Fail(message) => {
                Err(QueryError::Failed(message.as_deref().unwrap_or("fail() Step Triggered").to_owned()))
            }

            StepKind::Range(Scope::Local, ..)
            | StepKind::Tail(Scope::Local, _)
            | StepKind::Dedup(Scope::Local, ..)
            | StepKind::Order(Scope::Local, _)
            | StepKind::Sample(Scope::Local, ..)
            | StepKind::Reduce(_, Scope::Local)
            | StepKind::Index(_) => self.local(kind, labels, batch).await,

            StepKind::Values(_)
            | StepKind::Properties(_)
            | StepKind::ValueMap(..)
            | StepKind::PropertyMap(_)
            | StepKind::ElementMap(_)
            | StepKind::Select(..)
            | StepKind::SelectSteps(..)
            | StepKind::Project(..) => self.maps(kind, labels, batch).await,

            StepKind::Text(..)
            | StepKind::List(..)
            | StepKind::Conjoin(_)
            | StepKind::As(..)
            | StepKind::Math(..)
            | StepKind::DateAdd(..)
            | StepKind::DateDiff(_) => self.scalar(kind, labels, batch).await,

            // They have pipes of their own, take all at once, or end a traversal within another.
            StepKind::EndAt(_)
            | StepKind::AddVertex(..)
            | StepKind::AddEdge(..)
            | StepKind::Property(_)
            | StepKind::Drop
            | StepKind::MergeVertex(_)
            | StepKind::MergeEdge(_)
            | StepKind::Inject(_)
            | StepKind::Vertices(_)
            | StepKind::Find(_)
            | StepKind::Edges(_)
            | StepKind::FindEdges(_)
            | StepKind::Hop(..)
            | StepKind::HopWhere(_)
            | StepKind::Walk(_)
            | StepKind::CountEdges(..)
            | StepKind::Counted(_)
            | StepKind::Range(..)
            | StepKind::Tail(..)
            | StepKind::Dedup(..)
            | StepKind::Order(..)
            | StepKind::Sample(..)
            | StepKind::Barrier
            | StepKind::NormSack
            | StepKind::Fold(_)
            | StepKind::Reduce(..)
            | StepKind::Group(..)
            | StepKind::GroupCount(..)
            | StepKind::Tree(..)
            | StepKind::Repeat(_)
            | StepKind::Union(_)
            | StepKind::Choose(..)
            | StepKind::Cap(_)
            | StepKind::Compute(_)
            | StepKind::ShortestPaths(_) => {
                Err(hoplake_engine::EngineError::Internal(format!("{kind:?} is no step of a batch")).into())
            }
        }
    }

    /// Rows that fulfil something.
    fn keep(&mut self, batch: Batch, labels: &Labels, keep: impl Fn(usize) -> bool) -> Done<Batch> {
        let kept = batch.keep(keep);
        self.relabelled(kept, labels)
    }

    /// For which rows a test is true that may be much work. Other queries have their turns between rows.
    pub(super) async fn tested(&mut self, rows: usize, test: impl Fn(usize, &Growth) -> Done<bool>) -> Done<Vec<bool>> {
        let growth = self.growth.clone();
        let mut fulfilled = Vec::with_capacity(rows);
        for at in 0..rows {
            let before = growth.done();
            fulfilled.push(test(at, &growth)?);
            self.rest_since(before).await?;
        }
        Ok(fulfilled)
    }

    /// Lets other queries run, if much work was done since.
    pub(super) async fn rest_since(&mut self, before: u64) -> Done<()> {
        Ok(self.pace.rest(1 + self.growth.done().wrapping_sub(before)).await?)
    }

    async fn keep_values(
        &mut self,
        batch: Batch,
        labels: &Labels,
        test: impl Fn(&Value, &Growth) -> Done<bool>,
    ) -> Done<Batch> {
        let kept = match &batch.items {
            Items::Values(values) => self.tested(values.len(), |at, growth| test(&values[at], growth)).await?,
            items => self.tested(batch.len(), |at, growth| test(&items.get(at), growth)).await?,
        };
        self.keep(batch, labels, |at| kept[at])
    }

    /// The properties whose name, or value, fulfils a predicate.
    async fn keep_parts(&mut self, batch: Batch, labels: &Labels, part: T, predicate: &Predicate) -> Done<Batch> {
        let test = |value: &Value, growth: &Growth| match property_part(value, part) {
            Some(part) => predicate.test(&part, growth),
            None => Ok(false),
        };
        self.keep_values(batch, labels, test).await
    }

    /// Whether all, some or none of the items of a collection fulfil a predicate.
    async fn quantified(&mut self, quantifier: Quantifier, predicate: &Predicate, value: &Value) -> Done<bool> {
        let items: Box<dyn Iterator<Item = &Value> + Send> = match value {
            Value::List(items) | Value::Set(items) => Box::new(items.iter()),
            Value::BulkSet(items) => Box::new(items.iter().map(|(item, _)| item)),
            Value::Path(path) => Box::new(path.steps.iter().map(|(item, _)| item)),
            _ => return Ok(false),
        };
        let sought = quantifier != Quantifier::All;
        for item in items {
            let before = self.growth.done();
            let is_sought = predicate.test(item, &self.growth)? == sought;
            self.rest_since(before).await?;
            if is_sought {
                return Ok(quantifier == Quantifier::Any);
            }
        }
        Ok(quantifier != Quantifier::Any)
    }

    /// Another value for each; those without one go.
    pub(super) async fn each_value(
        &mut self,
        batch: Batch,
        labels: &Labels,
        change: impl Fn(&Value) -> Done<Option<Value>>,
    ) -> Done<Batch> {
        let mut values = self.growth.column(batch.len())?;
        for at in 0..batch.len() {
            let (taken, done) = (self.growth.taken(), self.growth.done());
            let value = change(&batch.items.get(at))?;
            let bytes = value.as_ref().map_or(0, value_bytes);
            self.growth.at_least(taken, bytes)?;
            values.push(value);
            self.rest_since(done).await?;
        }
        self.mapped_if(&batch, values, labels)
    }

    /// Those results of a traversal within another that are what was met under a label by the row that they come from.
    pub(super) async fn ended_at(&mut self, met: &[Value], found: Batch) -> Done<Batch> {
        let same = |at: usize, growth: &Growth| {
            let met = &met[found.rows[at].frame as usize];
            let item = found.items.get(at);
            growth.work(units(met, &item))?;
            Ok(equals(met, &item))
        };
        let kept = self.tested(found.len(), same).await?;
        Ok(found.keep(|at| kept[at]))
    }

    /// A row for each of equal traversers, if it matters how many times a traversal within another runs.
    fn one_by_one_if_it_acts(&self, mut batch: Batch, steps: &Steps) -> Done<Batch> {
        if batch.rows.iter().all(|row| row.bulk == 1) || !acts(steps) {
            return Ok(batch);
        }
        self.growth.absorb(batch.hold.take());
        let count = batch.rows.iter().map(|row| row.bulk).fold(0, u64::saturating_add);
        let mut places = self.growth.column(copies(count)?)?;
        for (place, row) in (0u32..).zip(&batch.rows) {
            places.extend(std::iter::repeat_n(place, copies(row.bulk)?));
        }
        let mut all = batch.take(&places, &self.growth)?;
        all.rows.iter_mut().for_each(|row| row.bulk = 1);
        Ok(all)
    }

    /// The results of a traversal within another, on the paths of the rows that it began with.
    fn flat_mapped(&mut self, batch: &Batch, mut found: Batch, labels: &Labels) -> Done<Batch> {
        self.growth.absorb(found.hold.take());
        let parents: Vec<u32> = found.rows.iter().map(|row| row.frame).collect();
        let bulks: Vec<u64> = found.rows.iter().map(|row| row.bulk).collect();
        let mut derived = self.derived(batch, &parents, found.items, labels)?;
        derived.rows.iter_mut().zip(bulks).for_each(|(row, bulk)| row.bulk = row.bulk.saturating_mul(bulk));
        Ok(derived)
    }

    /// Values that a query gives, in each of some frames.
    pub(super) async fn injected(&mut self, values: &[Value], frames: &Frames, labels: &Labels) -> Done<Batch> {
        let growth = self.growth.clone();
        let values = growth.copy_all(values)?;
        let values = self.with_elements(values).await?;
        let mut all = growth.column(frames.len().saturating_mul(values.len()))?;
        for frame in frames.iter() {
            for value in &values {
                all.push((*frame, growth.copy(value)?));
            }
        }
        self.begun(all, labels)
    }

    fn ends(&mut self, batch: Batch, direction: Direction, labels: &Labels) -> Done<Batch> {
        let mut parents = self.growth.column(batch.len() * 2)?;
        let mut vertices = self.growth.column(batch.len() * 2)?;
        for at in 0..batch.len() {
            let Some(Element::Edge(edge)) = batch.items.element(at) else {
                return Err(not_an_edge(&batch.items.get(at)));
            };
            let id = edge.id();
            let ends: &[_] = match direction {
                Direction::Out => &[id.source],
                Direction::In => &[id.target],
                Direction::Both => &[id.source, id.target],
            };
            vertices.extend(ends);
            parents.extend(ends.iter().map(|_| at as u32));
        }
        self.derived(&batch, &parents, Items::Vertices(vertices), labels)
    }

    async fn has(&mut self, batch: Batch, name: &Name, predicate: &Predicate, labels: &Labels) -> Done<Batch> {
        let batch = without_edge_properties(batch);
        let read = self.read(elements(&batch), Wanted::Named(std::slice::from_ref(name))).await?;
        let fulfils = |at: usize, growth: &Growth| match has_properties(&batch, at)? {
            Some(element) => predicate.test_any(&read.values(element, name), growth),
            None => Ok(false),
        };
        let kept = self.tested(batch.len(), fulfils).await?;
        self.keep(batch, labels, |at| kept[at])
    }

    /// By identity where the predicate asks for certain ids: every form of an id is one then.
    async fn has_id(&mut self, batch: Batch, predicate: &Predicate, labels: &Labels) -> Done<Batch> {
        let batch = without_edge_properties(batch);
        if let Predicate::Test(test @ (Test::Eq | Test::Neq | Test::Within | Test::Without), ids) = predicate {
            let vertices: HashSet<_> = self.vertices_of(ids).await?.into_iter().flatten().collect();
            let edges: HashSet<_> = self.edges_of(ids).await?.into_iter().flatten().map(|edge| edge.id()).collect();
            let wanted = matches!(test, Test::Eq | Test::Within);
            let is_one = |at: usize| match batch.items.element(at) {
                Some(Element::Vertex(vertex)) => vertices.contains(&vertex) == wanted,
                Some(Element::Edge(edge)) => edges.contains(&edge.id()) == wanted,
                None => false,
            };
            // A property of a vertex has an id, too.
            if (0..batch.len()).all(|at| batch.items.element(at).is_some()) {
                let kept: Vec<bool> = (0..batch.len()).map(is_one).collect();
                return self.keep(batch, labels, |at| kept[at]);
            }
        }
        let ids = self.by_token(T::Id, &batch).await?;
        let test = |at: usize, growth: &Growth| match &ids[at] {
            Some(id) => predicate.test(id, growth),
            None => Ok(false),
        };
        let kept = self.tested(batch.len(), test).await?;
        self.keep(batch, labels, |at| kept[at])
    }

    async fn has_property(&mut self, batch: &Batch, name: &Name) -> Done<Vec<bool>> {
        let read = self.read(elements(batch), Wanted::Named(std::slice::from_ref(name))).await?;
        let has = |at: usize| {
            let element = has_properties(batch, at)?;
            Ok(element.is_some_and(|element| !read.values(element, name).is_empty()))
        };
        (0..batch.len()).map(has).collect()
    }

    async fn by_property_values(&mut self, batch: &Batch, name: &Name) -> Done<Vec<Vec<Value>>> {
        let read = self.read(elements(batch), Wanted::Named(std::slice::from_ref(name))).await?;
        let mut all = self.growth.column(batch.len())?;
        for at in 0..batch.len() {
            let values = batch.items.element(at).map_or_else(Vec::new, |element| read.values(element, name));
            self.growth.take(values.iter().map(value_bytes).sum())?;
            all.push(values);
        }
        Ok(all)
    }

    /// For which rows a traversal gives something from one of some values.
    async fn child_of_values(&mut self, steps: &Steps, batch: &Batch, values: Vec<Vec<Value>>) -> Done<Vec<bool>> {
        let count = values.iter().map(Vec::len).sum();
        let mut parents = self.growth.column(count)?;
        let mut items = self.growth.column(count)?;
        for (at, values) in values.into_iter().enumerate() {
            parents.extend(values.iter().map(|_| at as u32));
            items.extend(values);
        }
        let mut rows = batch.take_rows(&parents, &self.growth)?;
        rows.items = Items::of_values(items);
        let exists = self.exists(steps, &rows).await?;
        let mut any = vec![false; batch.len()];
        parents.into_iter().zip(exists).for_each(|(parent, exists)| any[parent as usize] |= exists);
        Ok(any)
    }

    /// A predicate whose values are elements of the graph where they came with the query.
    pub(super) async fn predicate_with_elements<'a>(&mut self, predicate: &'a Predicate) -> Done<Cow<'a, Predicate>> {
        let mut values = Vec::new();
        predicate.values(&mut |value| values.push(value));
        if !values.iter().any(|value| matches!(value, Value::Vertex(_) | Value::Edge(_))) {
            return Ok(Cow::Borrowed(predicate));
        }
        let values = self.growth.copy_all(values)?;
        let mut values = self.with_elements(values).await?.into_iter();
        let with_elements: Done<Predicate> =
            predicate.map(&mut |value| Ok(values.next().unwrap_or_else(|| value.clone())));
        Ok(Cow::Owned(with_elements?))
    }

    async fn where_predicate(
        &mut self,
        batch: &Batch,
        start: Option<&Name>,
        predicate: &Predicate,
        by: &[By],
    ) -> Done<Vec<bool>> {
        let identity = By::Identity;
        let nth = |number: usize| if by.is_empty() { &identity } else { &by[number % by.len()] };
        let own: Vec<Option<Value>> = match start {
            Some(label) => self.needed(label, "where", batch).await?.into_iter().map(Some).collect(),
            None => self.own_values(batch)?,
        };
        let own = self.by_of(nth(0), batch, own).await?;
        // Each label of the predicate, in its order.
        let mut labels: Vec<Name> = Vec::new();
        let mut wrong = false;
        predicate.values(&mut |value| match value {
            Value::Text(label) => labels.push((&**label).into()),
            _ => wrong = true,
        });
        if wrong {
            return Err(QueryError::wrong_type("the values of a predicate in `where` are labels"));
        }
        let mut columns = Vec::with_capacity(labels.len());
        for (number, label) in labels.iter().enumerate() {
            let met = self.needed(label, "where", batch).await?.into_iter().map(Some).collect();
            columns.push(self.by_of(nth(number + 1), batch, met).await?);
        }
        let growth = self.growth.clone();
        let mut fulfilled = growth.column(batch.len())?;
        for (at, own) in own.iter().enumerate() {
            let Some(own) = own else {
                fulfilled.push(false);
                continue;
            };
            let mut number = 0;
            let mut next = |_: &Value| {
                number += 1;
                columns[number - 1][at].take().ok_or(())
            };
            let before = growth.done();
            fulfilled.push(match predicate.map(&mut next) {
                Ok(predicate) => spread(predicate, &growth)?.test(own, &growth)?,
                Err(()) => false,
            });
            self.rest_since(before).await?;
        }
        Ok(fulfilled)
    }

    /// The values of whole paths, changed by each `by` in turn; those without a value are left out.
    pub(super) async fn productive_paths(&mut self, batch: &Batch, by: &[By]) -> Done<Vec<Vec<Value>>> {
        let paths = self.path_steps(batch, &PathPart { by: by.to_vec(), ..PathPart::default() }).await?;
        Ok(paths.into_iter().map(|path| path.into_iter().filter_map(|(value, _)| value).collect()).collect())
    }

    async fn parts_of_paths(&mut self, batch: &Batch, part: &PathPart) -> Done<Vec<Vec<(Option<Value>, Labels)>>> {
        let (from, to) = (part.from.as_deref(), part.to.as_deref());
        let mut paths = self.growth.column(batch.len())?;
        for row in &batch.rows {
            let steps = self.paths.values(row.path, from, to, &self.growth)?;
            self.pace.rest(1 + steps.len() as u64).await?;
            paths.push(steps);
        }
        Ok(paths)
    }

    /// The steps of paths, changed by each `by` in turn.
    async fn path_steps(&mut self, batch: &Batch, part: &PathPart) -> Done<Vec<Vec<(Option<Value>, Labels)>>> {
        let mut paths = self.parts_of_paths(batch, part).await?;
        let longest = paths.iter().map(Vec::len).max().unwrap_or(0);
        for (number, by) in part.by.iter().enumerate().take(longest) {
            self.growth.work(paths.len() as u64)?;
            // All items that this `by` is of, over all paths.
            let places = paths
                .iter()
                .enumerate()
                .flat_map(|(at, path)| (number..path.len()).step_by(part.by.len()).map(move |step| (at, step)));
            let places: Vec<(usize, usize)> = places.collect();
            self.growth.take(places.len() * (size_of::<(usize, usize)>() + size_of::<Option<Value>>()))?;
            let parents: Vec<u32> = places.iter().map(|(at, _)| *at as u32).collect();
            let rows = batch.take_rows(&parents, &self.growth)?;
            let values = places.iter().map(|(at, step)| paths[*at][*step].0.take()).collect();
            let values = self.by_of(by, &rows, values).await?;
            places.into_iter().zip(values).for_each(|((at, step), value)| paths[at][step].0 = value);
        }
        Ok(paths)
    }

    /// The same, item by item: a path of which one has no value is not asked further, where a `by` may fail.
    async fn path_steps_in_turn(&mut self, batch: &Batch, part: &PathPart) -> Done<Vec<Vec<(Option<Value>, Labels)>>> {
        let mut paths = self.parts_of_paths(batch, part).await?;
        let mut left: Vec<u32> = (0..batch.len() as u32).collect();
        for (step, by) in (0..).zip(part.by.iter().cycle()) {
            left.retain(|at| step < paths[*at as usize].len());
            if left.is_empty() {
                break;
            }
            let rows = batch.take_rows(&left, &self.growth)?;
            let values = left.iter().map(|at| paths[*at as usize][step].0.take()).collect();
            let values = self.by_of(by, &rows, values).await?;
            let productive: Vec<bool> = values.iter().map(Option::is_some).collect();
            for (at, value) in left.iter().zip(values) {
                paths[*at as usize][step].0 = value;
            }
            let mut productive = productive.into_iter();
            left.retain(|_| productive.next().is_some_and(|productive| productive));
        }
        Ok(paths)
    }

    async fn paths_of(&mut self, batch: &Batch, part: &PathPart) -> Done<Vec<Option<Value>>> {
        let whole = |path: Vec<(Option<Value>, Labels)>| {
            path.into_iter().map(|(value, labels)| Some((value?, labels))).collect::<Option<Vec<_>>>()
        };
        let paths = match self.path_steps(batch, part).await {
            Err(error) if self.may_ask_again(&error) => self.path_steps_in_turn(batch, part).await?,
            paths => paths?,
        };
        let mut values = self.growth.column(paths.len())?;
        for path in paths {
            values.push(whole(path).map(|steps| PathTree::path(steps, &self.growth)).transpose()?);
        }
        Ok(values)
    }

    async fn simple_path(&mut self, batch: Batch, simple: bool, part: &PathPart, labels: &Labels) -> Done<Batch> {
        if part.from.is_none() && part.to.is_none() && part.by.is_empty() {
            let is_simple = |row: &Row| Ok(self.paths.is_simple(row.path, &self.growth)? == simple);
            let kept = batch.rows.iter().map(is_simple).collect::<Done<Vec<bool>>>()?;
            return self.keep(batch, labels, |at| kept[at]);
        }
        let paths = self.path_steps(&batch, part).await?;
        let paths = paths.into_iter().map(|path| path.into_iter().map(|(value, _)| value).collect::<Option<Vec<_>>>());
        let is_simple = |path: Vec<Value>| {
            let mut seen = HashSet::with_capacity(path.len());
            path.into_iter().all(|value| seen.insert(OwnedKey(value)))
        };
        let kept: Vec<bool> = paths.map(|path| path.is_some_and(|path| is_simple(path) == simple)).collect();
        self.keep(batch, labels, |at| kept[at])
    }

    async fn coalesce(&mut self, batch: Batch, branches: &[Steps], labels: &Labels) -> Done<Batch> {
        let mut left: Vec<u32> = (0..batch.len() as u32).collect();
        let mut all = Batch::default();
        let mut parents: Vec<u32> = Vec::new();
        for steps in branches {
            if left.is_empty() {
                break;
            }
            let rows = batch.take(&left, &self.growth)?;
            let mut found = self.child(steps, &rows).await?;
            self.growth.absorb(found.hold.take());
            found.rows.iter_mut().for_each(|row| row.frame = left[row.frame as usize]);
            let productive: HashSet<u32> = found.rows.iter().map(|row| row.frame).collect();
            parents.extend(found.rows.iter().map(|row| row.frame));
            left.retain(|at| !productive.contains(at));
            all.append(found, &self.growth)?;
        }
        let mut order: Vec<u32> = (0..all.len() as u32).collect();
        order.sort_by_key(|at| parents[*at as usize]);
        let all = all.take(&order, &self.growth)?;
        self.flat_mapped(&batch, all, labels)
    }

    async fn unfold(&mut self, mut batch: Batch, labels: &Labels) -> Done<Batch> {
        let Items::Values(values) = &batch.items else {
            // An element is the only item of itself.
            let items = std::mem::take(&mut batch.items);
            return self.mapped(batch, items, labels);
        };
        let mut parents = Vec::new();
        let mut items = Vec::new();
        let mut bulks = Vec::new();
        for (at, value) in values.iter().enumerate() {
            let (before, bulk) = (items.len(), batch.rows[at].bulk);
            // For the copies, and for the lists of items, parents and numbers.
            self.growth.take(value_bytes(value) + item_count(value).saturating_mul(ITEM_BYTES))?;
            self.pace.rest(1 + item_count(value) as u64).await?;
            match value {
                Value::List(all) | Value::Set(all) => items.extend(all.iter().cloned()),
                Value::BulkSet(all) => {
                    items.extend(all.iter().map(|(item, _)| item.clone()));
                    bulks.extend(all.iter().map(|(_, count)| bulk.saturating_mul(*count)));
                }
                Value::Map(entries) => {
                    items.extend(entries.iter().map(|entry| Value::Entry(Box::new(entry.clone()))));
                }
                Value::Tree(tree) => {
                    items.extend(tree.entries().into_iter().map(|entry| Value::Entry(Box::new(entry))));
                }
                // Of a path the labels are left behind.
                Value::Path(path) => items.extend(path.steps.iter().map(|(item, _)| item.clone())),
                other => items.push(other.clone()),
            }
            parents.extend(std::iter::repeat_n(at as u32, items.len() - before));
            bulks.resize(items.len(), bulk);
        }
        let mut unfolded = self.derived(&batch, &parents, Items::of_values(items), labels)?;
        unfolded.rows.iter_mut().zip(bulks).for_each(|(row, bulk)| row.bulk = bulk);
        Ok(unfolded)
    }
}

/// The elements of a batch.
pub(super) fn elements(batch: &Batch) -> impl Iterator<Item = Element> + '_ {
    (0..batch.len()).filter_map(|at| batch.items.element(at))
}

/// The name or the value of a property.
fn property_part(value: &Value, part: T) -> Option<Value> {
    fn of<E>(property: &UnreadProperty<E>, part: T) -> Value {
        if part == T::Key { (&*property.key).into() } else { property.value.clone() }
    }
    let Value::Unread(element) = value else { return None };
    match &**element {
        Unread::VertexProperty(property) => Some(of(property, part)),
        Unread::Property(property) => Some(of(property, part)),
        _ => None,
    }
}

/// A predicate in which a collection that was met under a label stands for its items.
fn spread(predicate: Predicate, growth: &Growth) -> Done<Predicate> {
    let all =
        |predicates: Vec<Predicate>| predicates.into_iter().map(|it| spread(it, growth)).collect::<Done<Vec<_>>>();
    Ok(match predicate {
        Predicate::Test(test @ (Test::Within | Test::Without), values) => {
            let mut items = Vec::new();
            for value in values {
                items.extend(items_in(value, growth)?);
            }
            Predicate::Test(test, items)
        }
        Predicate::And(predicates) => Predicate::And(all(predicates)?),
        Predicate::Or(predicates) => Predicate::Or(all(predicates)?),
        Predicate::Not(predicate) => Predicate::Not(Box::new(spread(*predicate, growth)?)),
        other => other,
    })
}

fn items_in(collection: Value, growth: &Growth) -> Done<Vec<Value>> {
    let kind = kind_of(&collection);
    items_of(collection, growth).map_err(|error| match error {
        QueryError::Engine(_) => error,
        _ => QueryError::wrong_type(format!(
            "`within` and `without` in `where` are of a collection that was met under a label, and this is {kind}: compare one value \
             with `eq` or `neq`"
        )),
    })
}

/// What an item takes that `unfold` gives, besides its value: a parent, a number, and a row.
const ITEM_BYTES: usize = size_of::<Value>() + 2 * size_of::<u64>() + size_of::<super::batch::Row>();

/// How many items a value has.
fn item_count(value: &Value) -> usize {
    match value {
        Value::List(items) | Value::Set(items) => items.len(),
        Value::BulkSet(items) => items.len(),
        Value::Map(entries) => entries.len(),
        Value::Tree(tree) => tree.branches.len(),
        Value::Path(path) => path.steps.len(),
        _ => 1,
    }
}

fn not_an_edge(value: &Value) -> QueryError {
    QueryError::wrong_type(format!("only edges have ends, and this is {}", kind_of(value)))
}

/// The rows that are not on a property of an edge, which fulfils no condition on a property or an id.
fn without_edge_properties(batch: Batch) -> Batch {
    let Items::Values(values) = &batch.items else { return batch };
    let is_one = |value: &Value| matches!(value, Value::Unread(unread) if matches!(**unread, Unread::Property(_)));
    let others: Vec<bool> = values.iter().map(|value| !is_one(value)).collect();
    batch.keep(|at| others[at])
}
