//! Features: properties of sampled vertices and edges, as columns and matrices of numbers.

use std::{ops::Range, sync::Arc};

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, Int64Array, ListArray, PrimitiveArray,
    cast::AsArray,
    types::{Date32Type, Float64Type, Int64Type, TimestampMicrosecondType},
};
use arrow_schema::{DataType, TimeUnit};
use futures::future::try_join;
use hoplake_analytics::Workers;
use hoplake_engine::{EdgesOf, EngineError, Held, Snapshot, vertex_text};
use hoplake_format::{LabelId, PropertyType, ScalarType, VertexId};
use hoplake_storage::{Branch, QueryContext};

use crate::{Sample, SampledEdges, lists::Read};

/// Vertices among which the length of a list property is looked for.
const LOOKED_AT: u64 = 1_000;

/// What a feature is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeatureOf {
    /// The vertices of a label.
    Vertices(LabelId),
    /// The edges of a type, followed in a direction.
    Edges(EdgesOf),
}

impl From<LabelId> for FeatureOf {
    fn from(label: LabelId) -> Self {
        Self::Vertices(label)
    }
}

impl From<EdgesOf> for FeatureOf {
    fn from(edges: EdgesOf) -> Self {
        Self::Edges(edges)
    }
}

/// A feature: properties of the vertices of a label, or of the edges of a type.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureSettings {
    /// What it is called; each label, or type of edges, has it once.
    pub name: String,
    /// What it is of.
    pub of: FeatureOf,
    /// The properties: numbers, bools, times, or, of vertices, lists of one length.
    pub properties: Vec<String>,
    /// Whether it is a matrix even if it is one property with one number for each vertex.
    pub is_matrix: bool,
    /// Whether floats have 64 bits; they have 32 otherwise.
    pub is_double: bool,
    /// What stands for a value that a vertex or edge does not have. Without it, such a one is an error.
    pub missing: Option<f64>,
}

impl FeatureSettings {
    /// A feature of 32 bits that every vertex or edge has.
    pub fn new(name: impl Into<String>, of: impl Into<FeatureOf>, properties: Vec<String>) -> Self {
        Self { name: name.into(), of: of.into(), properties, is_matrix: false, is_double: false, missing: None }
    }
}

/// A feature of some vertices or edges.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    /// What it is called.
    pub name: String,
    /// What it is of.
    pub of: FeatureOf,
    /// How many vertices or edges there are.
    pub rows: usize,
    /// How many numbers each has, if it is a matrix.
    pub width: Option<usize>,
    /// The numbers, row by row: integers if all properties are, bools as 0 and 1, dates as days and timestamps as microseconds.
    pub numbers: Numbers,
}

/// Numbers of a feature.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    /// Integers.
    Int64(Vec<i64>),
    /// Floats of 32 bits.
    Float32(Vec<f32>),
    /// Floats of 64 bits.
    Float64(Vec<f64>),
}

/// Reads features of vertices and edges of a version.
#[derive(Debug, Clone)]
pub struct Features {
    snapshot: Arc<Snapshot>,
    workers: Workers,
    known: Arc<[Known]>,
}

/// A feature, and what the schema and the first vertices say of it.
#[derive(Debug)]
struct Known {
    settings: FeatureSettings,
    is_integer: bool,
    /// How many numbers each property has.
    widths: Vec<usize>,
    is_matrix: bool,
}

impl Known {
    fn width(&self) -> usize {
        self.widths.iter().sum()
    }

    fn number_bytes(&self) -> u64 {
        if self.is_integer || self.settings.is_double { 8 } else { 4 }
    }
}

impl Features {
    /// Checks features against the schema. Reads nothing, or one wave to find out how long lists are.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if a label or type of edges does not have a property; [`EngineError::Invalid`] if one is text, if a list
    /// has no values to count or is of edges, or if two features of one label or type have one name; the store's.
    pub async fn open(
        snapshot: &Arc<Snapshot>,
        settings: Vec<FeatureSettings>,
        workers: Workers,
        branch: &mut Branch,
    ) -> Result<Self, EngineError> {
        let mut known: Vec<Known> = Vec::new();
        for settings in settings {
            let FeatureSettings { name, of, properties, .. } = &settings;
            if known.iter().any(|other| other.settings.name == *name && other.settings.of == *of) {
                let what = if matches!(of, FeatureOf::Vertices(_)) { "a label has" } else { "edges have" };
                return Err(EngineError::Invalid(format!("{what} two features {name:?}; name them differently")));
            }
            if properties.is_empty() {
                return Err(EngineError::Invalid(format!("the feature {name:?} needs at least one property")));
            }
            let kinds =
                properties.iter().map(|name| kind(snapshot, *of, name)).collect::<Result<Vec<PropertyType>, _>>()?;
            let is_list = |kind: &PropertyType| matches!(kind, PropertyType::List(_));
            let is_matrix = settings.is_matrix || kinds.len() > 1 || kinds.iter().any(is_list);
            let is_float = |kind: &PropertyType| matches!(kind, PropertyType::Scalar(of) | PropertyType::List(of) if *of == ScalarType::Float64);
            let is_integer = !kinds.iter().any(is_float);
            // Of lists not known yet.
            let widths = kinds.iter().map(|kind| if is_list(kind) { 0 } else { 1 }).collect();
            known.push(Known { settings, is_integer, widths, is_matrix });
        }
        let lengths = branch.each(&known, |known, mut line| async move {
            let lists = known.settings.properties.iter().zip(&known.widths).filter(|(_, width)| **width == 0);
            let lists: Vec<String> = lists.map(|(name, _)| name.clone()).collect();
            let lengths = match known.settings.of {
                FeatureOf::Vertices(label) if !lists.is_empty() => lengths(snapshot, label, &lists, &mut line).await?,
                _ => Vec::new(),
            };
            Ok::<_, EngineError>((lengths, line))
        });
        let lengths = lengths.await?;
        for (known, lengths) in known.iter_mut().zip(lengths) {
            let mut lengths = lengths.into_iter();
            known.widths.iter_mut().filter(|width| **width == 0).zip(&mut lengths).for_each(|(width, is)| *width = is);
        }
        Ok(Self { snapshot: snapshot.clone(), workers, known: known.into() })
    }

    /// The features of the vertices and edges of a sample, in their order. One wave, and one before it if the tables of a label were not
    /// read before; features of edges take one more, which finds their lists in the caches if they were just sampled from the bucket.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if a vertex or edge does not have a value, if a vertex has a list of another length, or if the sample does
    /// not have the edges of a feature, or not their places; [`EngineError::Limit`] at a limit of the query; the store's.
    pub async fn of_sample(&self, sample: &Sample, branch: &mut Branch) -> Result<Held<Vec<Feature>>, EngineError> {
        let ordinals = |label| sample.of_label(label).map_or(&[][..], |vertices| &vertices.ordinals);
        let mut of_vertices = Vec::new();
        let mut of_edges: Vec<(EdgesOf, Vec<usize>)> = Vec::new();
        for (at, known) in self.known.iter().enumerate() {
            match known.settings.of {
                FeatureOf::Vertices(label) => of_vertices.push((at, ordinals(label))),
                FeatureOf::Edges(edges) => match of_edges.iter_mut().find(|(other, _)| *other == edges) {
                    Some((_, features)) => features.push(at),
                    None => of_edges.push((edges, vec![at])),
                },
            }
        }
        let mut for_edges = branch.clone();
        let vertices = self.read(&of_vertices, branch);
        let edges = for_edges.each(&of_edges, |(edges, features), mut line| async move {
            Ok::<_, EngineError>((self.read_of_edges(*edges, features, sample, &mut line).await?, line))
        });
        let (vertices, edges) = try_join(vertices, edges).await?;
        branch.join(&[for_edges]);
        let mut all: Held<Vec<(usize, Feature)>> =
            vertices.map(|vertices| of_vertices.iter().map(|(at, _)| *at).zip(vertices).collect());
        for ((_, features), found) in of_edges.iter().zip(edges) {
            let found = all.absorb(found);
            all.extend(features.iter().copied().zip(found));
        }
        all.sort_unstable_by_key(|(at, _)| *at);
        Ok(all.map(|all| all.into_iter().map(|(_, feature)| feature).collect()))
    }

    /// Features of the edges of a type.
    async fn read_of_edges(
        &self,
        edges: EdgesOf,
        features: &[usize],
        sample: &Sample,
        branch: &mut Branch,
    ) -> Result<Held<Vec<Feature>>, EngineError> {
        let sampled = sample.edges.iter().find(|it| it.edges == edges);
        let unknown = || {
            EngineError::Invalid(
                "edges have features, but the sampler has no fan-out along them in that direction".into(),
            )
        };
        let SampledEdges { near, places, .. } = sampled.ok_or_else(unknown)?;
        if places.len() != near.len() {
            return Err(EngineError::Invalid("edges have features, but the sampler does not keep their places".into()));
        }
        let bytes_of = |feature: &usize| self.known[*feature].width() as u64 * self.known[*feature].number_bytes();
        let bytes = features.iter().map(bytes_of).sum::<u64>().saturating_mul(near.len() as u64);
        let memory = branch.context().hold(bytes)?;
        // The numbers of distinct edges, which are spread; and of each edge its vertex, its position, that among distinct ones, and its
        // row.
        let _read = branch.context().hold(2 * bytes + near.len() as u64 * 64)?;
        let ordinals = sample.of_label(edges.near).map_or(&[][..], |vertices| &vertices.ordinals);
        let outside = || EngineError::Internal("an edge of a sample begins at none of its vertices".into());
        let vertex = |near: &i64| {
            let ordinal = ordinals.get(*near as usize)?;
            VertexId::new(edges.near, *ordinal as u64)
        };
        let of_edges: Vec<VertexId> = near.iter().map(|at| vertex(at).ok_or_else(outside)).collect::<Result<_, _>>()?;
        let mut vertices = of_edges.clone();
        vertices.sort_unstable();
        vertices.dedup();
        let read = Read::read(&self.snapshot, &[(0, edges, vertices)], None, None, branch).await?;
        let mut positions = Vec::with_capacity(near.len());
        for (vertex, place) in of_edges.iter().zip(places) {
            let position = read.range(0, *vertex).map(|range| (range.start + *place as usize, range.end));
            let position = position.filter(|(position, end)| position < end).ok_or_else(outside)?;
            positions.push(position.0);
        }
        let mut distinct = positions.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let mut names: Vec<String> =
            features.iter().flat_map(|at| &self.known[*at].settings.properties).cloned().collect();
        names.sort_unstable();
        names.dedup();
        let Some(all) = read.edges(0) else {
            // Without edges there was nothing to read.
            let none = features.iter().map(|at| self.known[*at].feature(0, &vec![None; self.known[*at].widths.len()]));
            let none = none.collect::<Result<Vec<_>, Flaw>>();
            return none.map(|none| Held::new(none, memory)).map_err(|_| outside());
        };
        let rows = self.snapshot.properties().of_edges_at(all, &distinct, &names, branch).await?;
        // Of each distinct edge, the batch that has it and its row there.
        let mut found = vec![(0_u32, 0_u32); distinct.len()];
        for (batch, (of_batch, _)) in rows.iter().enumerate() {
            for (row, position) in of_batch.iter().enumerate() {
                let at = distinct.binary_search(position).map_err(|_| outside())?;
                found[at] = (batch as u32, row as u32);
            }
        }
        let mut made = Vec::with_capacity(features.len());
        for at in features {
            let known = &self.known[*at];
            let mut parts = Vec::with_capacity(rows.len());
            for (of_batch, rows) in &rows {
                branch.context().check_time()?;
                let names = known.settings.properties.iter();
                let columns: Vec<_> = names.map(|name| rows.column_by_name(name).cloned()).collect();
                match known.feature(of_batch.len(), &columns) {
                    Ok(feature) => parts.push(feature.numbers),
                    Err(flaw) => {
                        let edge = of_batch.get(flaw.row).and_then(|at| all.get(*at));
                        let edge = self.snapshot.edge_text(edge, branch).await?;
                        return Err(known.invalid(&edge, &flaw));
                    }
                }
            }
            let rows: Vec<(u32, u32)> =
                positions.iter().filter_map(|at| distinct.binary_search(at).ok()).map(|at| found[at]).collect();
            made.push(known.spread(&parts, &rows));
        }
        Ok(Held::new(made, memory))
    }

    /// One feature of some vertices of a label, by ordinal, in their order. Waves and errors are those of [`Self::of_sample`].
    ///
    /// # Errors
    /// Also [`EngineError::NotFound`] if the label has no feature of this name, or if a vertex does not exist.
    pub async fn of_vertices(
        &self,
        label: LabelId,
        name: &str,
        ordinals: &[i64],
        branch: &mut Branch,
    ) -> Result<Held<Feature>, EngineError> {
        let of = FeatureOf::Vertices(label);
        let feature = self.known.iter().position(|it| it.settings.of == of && it.settings.name == name);
        let unknown = || EngineError::NotFound(format!("{} has no feature {name:?}", self.label(label)));
        let feature = feature.ok_or_else(unknown)?;
        let count = self.snapshot.ordinal_count(label);
        let exists = |ordinal: &&i64| u64::try_from(**ordinal).is_ok_and(|at| at < count);
        if let Some(wrong) = ordinals.iter().find(|ordinal| !exists(ordinal)) {
            return Err(EngineError::NotFound(format!("vertex {wrong} is not one of the {count} of its label")));
        }
        let found = self.read(&[(feature, ordinals)], branch).await?;
        let none = || EngineError::Internal("a feature was not read".into());
        found.split().next().ok_or_else(none)
    }

    async fn read(&self, wanted: &[(usize, &[i64])], branch: &mut Branch) -> Result<Held<Vec<Feature>>, EngineError> {
        let bytes_of = |(feature, ordinals): &(usize, &[i64])| {
            let known = &self.known[*feature];
            (ordinals.len() as u64).saturating_mul(known.width() as u64).saturating_mul(known.number_bytes())
        };
        let bytes = wanted.iter().map(bytes_of).fold(0, u64::saturating_add);
        let memory = branch.context().hold(bytes)?;
        // The columns that are read, and ordinals as they are looked up.
        let read = |(feature, ordinals): &(usize, &[i64])| {
            ordinals.len() as u64 * 8 * (1 + self.known[*feature].width() as u64)
        };
        let _read = branch.context().hold(wanted.iter().map(read).fold(0, u64::saturating_add))?;
        let reads = branch.each(wanted, |(feature, ordinals), mut line| async move {
            let FeatureSettings { of, properties, .. } = &self.known[*feature].settings;
            let FeatureOf::Vertices(label) = of else {
                return Err(EngineError::Internal("a feature of edges is read as one of vertices".into()));
            };
            let ordinals: Vec<u64> = ordinals.iter().map(|ordinal| *ordinal as u64).collect();
            let rows = self.snapshot.properties().without_keys(*label, &ordinals, properties, &mut line).await?;
            let columns: Vec<_> = properties.iter().map(|name| rows.column_by_name(name).cloned()).collect();
            Ok::<_, EngineError>(((*feature, ordinals.len(), columns), line))
        });
        let read = reads.await?;
        let known = self.known.clone();
        let make = move |context: &QueryContext| {
            let made = read.iter().map(|(feature, rows, columns)| {
                context.check_time()?;
                Ok(known[*feature].feature(*rows, columns))
            });
            made.collect::<Result<Vec<_>, EngineError>>()
        };
        let made = self.workers.run(branch.context(), make).await??;
        let mut features = Vec::with_capacity(made.len());
        for (made, (feature, ordinals)) in made.into_iter().zip(wanted) {
            match made {
                Ok(feature) => features.push(feature),
                Err(flaw) => return Err(self.described(&self.known[*feature], ordinals, flaw, branch).await),
            }
        }
        Ok(Held::new(features, memory))
    }

    /// The error of a vertex that does not have a feature.
    async fn described(&self, known: &Known, ordinals: &[i64], flaw: Flaw, branch: &mut Branch) -> EngineError {
        let FeatureOf::Vertices(label) = known.settings.of else {
            return EngineError::Internal("a feature of edges is read as one of vertices".into());
        };
        let vertex = ordinals.get(flaw.row).and_then(|ordinal| VertexId::new(label, *ordinal as u64));
        let Some(vertex) = vertex else { return EngineError::Internal("a feature has a row too many".into()) };
        let name = match self.snapshot.keys().of(&[vertex], branch).await {
            Ok(keys) => keys.first().map(|key| vertex_text(&self.label(label), key)),
            Err(error) => return error,
        };
        known.invalid(&name.unwrap_or_else(|| vertex.to_string()), &flaw)
    }

    fn label(&self, label: LabelId) -> String {
        self.snapshot.schema().label(label).map(|label| label.name.clone()).unwrap_or_default()
    }
}

/// The type of a property, if it can be a feature.
fn kind(snapshot: &Snapshot, of: FeatureOf, name: &str) -> Result<PropertyType, EngineError> {
    let unknown = || EngineError::NotFound("the graph has no such label or edges".into());
    let schema = snapshot.schema();
    let found = match of {
        FeatureOf::Vertices(label) => schema.label(label).map(|label| (&label.name, &label.properties)),
        FeatureOf::Edges(edges) => schema.edge_type(edges.edge_type).map(|edges| (&edges.label, &edges.properties)),
    };
    let (label, properties) = found.ok_or_else(unknown)?;
    let property = properties.iter().find(|property| property.name == name).ok_or_else(|| {
        let known: Vec<_> = properties.iter().map(|property| property.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        EngineError::NotFound(format!("{label} has no property {name:?}; it has {known}"))
    })?;
    match property.kind {
        PropertyType::Scalar(ScalarType::String) | PropertyType::List(ScalarType::String) => {
            Err(EngineError::Invalid(format!("{name} of {label} is text; features are numbers")))
        }
        PropertyType::List(_) if matches!(of, FeatureOf::Edges(_)) => {
            Err(EngineError::Invalid(format!("{name} of {label} is a list; features of edges are single numbers")))
        }
        kind => Ok(kind),
    }
}

/// How long the lists of properties are, by the first vertices that have some.
async fn lengths(
    snapshot: &Snapshot,
    label: LabelId,
    names: &[String],
    branch: &mut Branch,
) -> Result<Vec<usize>, EngineError> {
    let ordinals: Vec<u64> = (0..snapshot.ordinal_count(label).min(LOOKED_AT)).collect();
    let rows = snapshot.properties().without_keys(label, &ordinals, names, branch).await?;
    let length = |name: &String| {
        let lists = rows.column_by_name(name).and_then(|column| column.as_list_opt::<i32>());
        let length = lists
            .and_then(|lists| (0..lists.len()).find(|row| lists.is_valid(*row)).map(|row| lists.value_length(row)));
        let unknown = || {
            EngineError::Invalid(format!("none of the first vertices has a value of {name}, so its length is unknown"))
        };
        length.map(|length| length as usize).filter(|length| *length > 0).ok_or_else(unknown)
    };
    names.iter().map(length).collect()
}

/// A vertex that does not have a feature.
struct Flaw {
    row: usize,
    property: usize,
    /// The length of its list, if it has one.
    length: Option<usize>,
}

/// Where the numbers of a property are put.
struct Place<'a, T> {
    out: &'a mut [T],
    /// How many numbers each vertex has in all.
    stride: usize,
    /// Which of them these are.
    at: Range<usize>,
    missing: Option<T>,
}

impl Known {
    fn feature(&self, rows: usize, columns: &[Option<ArrayRef>]) -> Result<Feature, Flaw> {
        let numbers = match (self.is_integer, self.settings.is_double) {
            (true, _) => Numbers::Int64(self.numbers(rows, columns, |int| int, |float| float as i64)?),
            (false, false) => Numbers::Float32(self.numbers(rows, columns, |int| int as f32, |float| float as f32)?),
            (false, true) => Numbers::Float64(self.numbers(rows, columns, |int| int as f64, |float| float)?),
        };
        Ok(self.of_numbers(rows, numbers))
    }

    fn of_numbers(&self, rows: usize, numbers: Numbers) -> Feature {
        let FeatureSettings { name, of, .. } = &self.settings;
        let width = self.is_matrix.then(|| self.width());
        Feature { name: name.clone(), of: *of, rows, width, numbers }
    }

    /// The feature whose rows are these, each by its part and its row there.
    fn spread(&self, parts: &[Numbers], rows: &[(u32, u32)]) -> Feature {
        let width = self.width();
        let numbers = match (self.is_integer, self.settings.is_double) {
            (true, _) => Numbers::Int64(spread(parts, rows, width, |part| match part {
                Numbers::Int64(numbers) => numbers,
                _ => &[],
            })),
            (false, false) => Numbers::Float32(spread(parts, rows, width, |part| match part {
                Numbers::Float32(numbers) => numbers,
                _ => &[],
            })),
            (false, true) => Numbers::Float64(spread(parts, rows, width, |part| match part {
                Numbers::Float64(numbers) => numbers,
                _ => &[],
            })),
        };
        self.of_numbers(rows.len(), numbers)
    }

    /// The error of a vertex or edge that does not have the feature.
    fn invalid(&self, name: &str, flaw: &Flaw) -> EngineError {
        let (property, width) = (&self.settings.properties[flaw.property], self.widths[flaw.property]);
        EngineError::Invalid(match flaw.length {
            None => format!("{name} has no value of {property}; give a number that stands for missing ones"),
            Some(length) => format!("{property} of {name} has {length} values; those of other vertices have {width}"),
        })
    }

    fn numbers<T: Copy + Default>(
        &self,
        rows: usize,
        columns: &[Option<ArrayRef>],
        of_int: fn(i64) -> T,
        of_float: fn(f64) -> T,
    ) -> Result<Vec<T>, Flaw> {
        let stride = self.width();
        let mut out = vec![T::default(); rows * stride];
        let mut begin = 0;
        for (property, (column, width)) in columns.iter().zip(&self.widths).enumerate() {
            let at = begin..begin + width;
            begin = at.end;
            let mut place = Place { out: &mut out, stride, at, missing: self.settings.missing.map(of_float) };
            let put = place.put_column(rows, column.as_ref(), of_int, of_float);
            put.map_err(|(row, length)| Flaw { row, property, length })?;
        }
        Ok(out)
    }
}

/// Rows of numbers, each by its part and its row there.
fn spread<T: Copy>(parts: &[Numbers], rows: &[(u32, u32)], width: usize, of: fn(&Numbers) -> &[T]) -> Vec<T> {
    let mut all = Vec::with_capacity(rows.len() * width);
    rows.iter()
        .for_each(|(part, row)| all.extend_from_slice(&of(&parts[*part as usize])[*row as usize * width..][..width]));
    all
}

/// The row of a vertex without a value, or with a list of another length.
type Misfit = (usize, Option<usize>);

impl<T: Copy> Place<'_, T> {
    fn put_column(
        &mut self,
        rows: usize,
        column: Option<&ArrayRef>,
        of_int: fn(i64) -> T,
        of_float: fn(f64) -> T,
    ) -> Result<(), Misfit> {
        let Some(column) = column else { return (0..rows).try_for_each(|row| self.put_missing(row)) };
        let lists = column.as_list_opt::<i32>();
        let items = lists.map_or(column, |lists| lists.values());
        match items.data_type() {
            DataType::Float64 => self.put(lists, items.as_primitive::<Float64Type>(), of_float),
            DataType::Int64 => self.put(lists, items.as_primitive::<Int64Type>(), of_int),
            DataType::Date32 => {
                // Of one signature with the others.
                let days: Int64Array =
                    items.as_primitive::<Date32Type>().iter().map(|day| day.map(i64::from)).collect();
                self.put(lists, &days, of_int)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                self.put(lists, items.as_primitive::<TimestampMicrosecondType>(), of_int)
            }
            DataType::Boolean => {
                let bits: Int64Array = items.as_boolean().iter().map(|bit| bit.map(i64::from)).collect();
                self.put(lists, &bits, of_int)
            }
            // A column without a type has no values.
            _ => (0..rows).try_for_each(|row| self.put_missing(row)),
        }
    }

    fn put<N: ArrowPrimitiveType>(
        &mut self,
        lists: Option<&ListArray>,
        items: &PrimitiveArray<N>,
        number: fn(N::Native) -> T,
    ) -> Result<(), Misfit> {
        for row in 0..lists.map_or(items.len(), Array::len) {
            let range = match lists {
                None => row..row + 1,
                Some(lists) if lists.is_null(row) => {
                    self.put_missing(row)?;
                    continue;
                }
                Some(lists) => {
                    let offsets = lists.value_offsets();
                    offsets[row] as usize..offsets[row + 1] as usize
                }
            };
            if range.len() != self.at.len() {
                return Err((row, Some(range.len())));
            }
            let begin = row * self.stride + self.at.start;
            let places = &mut self.out[begin..begin + range.len()];
            for (place, item) in places.iter_mut().zip(range) {
                *place = match (items.is_null(item), self.missing) {
                    (false, _) => number(items.value(item)),
                    (true, Some(missing)) => missing,
                    (true, None) => return Err((row, None)),
                };
            }
        }
        Ok(())
    }

    fn put_missing(&mut self, row: usize) -> Result<(), Misfit> {
        let missing = self.missing.ok_or((row, None))?;
        self.out[row * self.stride..][self.at.clone()].fill(missing);
        Ok(())
    }
}
