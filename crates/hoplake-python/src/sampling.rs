//! Samples of neighbourhoods, for `Graph.sampler`.
//!
//! A sample's numbers stay where the threads of Rust put them: NumPy reads them through `__array_interface__`, and so does torch. Python's
//! buffer protocol is not part of the stable interface of CPython 3.10.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use hoplake::{
    Direction, Error, Graph as Opening, Held, Hop, LabelId, MemoryBudget, Query, Schema, StartKey,
    compute::{COMPUTE_MEMORY_BYTES, Workers},
    sampling::{
        Ahead, EdgesOf, FanOut, Feature, FeatureOf, FeatureSettings, Features, NegativesFrom, Numbers, Sample,
        Sampler as Sampling, SamplerSettings, TimeSettings, ahead,
    },
};
use pyo3::{
    exceptions::PyRuntimeError,
    prelude::*,
    pybacked::PyBackedBytes,
    types::{PyDict, PyTuple},
};
use tokio::{runtime::Handle, sync::OnceCell};

use crate::{
    graph::{Graph, object, parsed, starts},
    opened::Opened,
    process::{OfProcess, lock},
    table::{Meter, Priced, Spent},
    task::Task,
    values,
};

/// A fan-out as Python has it: the label where edges begin, the hop, the label at their other ends, and how many of each vertex.
type GivenFanOut = (Option<String>, String, Option<String>, Vec<Option<u32>>);

/// What a feature is of, as Python has it: a label, or the label where edges begin, the hop, and the label where they end.
#[derive(FromPyObject)]
enum GivenOf {
    Label(String),
    Edges((String, String, String)),
}

/// A feature as Python has it: what it is of, the name, the properties, and whether it is a matrix.
type GivenFeature = (GivenOf, String, Vec<String>, bool);

/// What a feature is of, by name.
#[derive(Clone)]
enum NamedOf {
    Label(String),
    Edges(String, Hop, String),
}

/// How a sampler is made, in whichever process.
#[derive(Clone)]
struct Recipe {
    fan_outs: Vec<(Option<String>, Hop, Option<String>, Vec<Option<u32>>)>,
    settings: SamplerSettings,
    features: Vec<(NamedOf, String, Vec<String>, bool)>,
    is_double: bool,
    missing: Option<f64>,
    in_memory: bool,
}

/// A sampler that was made in this process.
struct Made {
    graph: Opening,
    /// None without fan-outs: it reads features alone.
    sampler: Option<Sampling>,
    features: Features,
    /// What its lists take, if they are in memory, and what batches take.
    budget: MemoryBudget,
    _lists: Query,
}

impl Made {
    /// The sampler; without fan-outs, the error that says so.
    fn sampler(&self, query: &Query) -> Result<Sampling, Error> {
        match &self.sampler {
            Some(sampler) => Ok(sampler.clone()),
            None => query.sampler(SamplerSettings::default()),
        }
    }
}

type Cell = Arc<OnceCell<Arc<Made>>>;

/// Samples neighbourhoods of a version.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Sampler {
    opened: Arc<Opened>,
    recipe: Arc<Recipe>,
    limits: hoplake::Limits,
    spent: Spent,
    /// As in [`Opened`]: a child of the process makes a sampler of its own. The lock is held only with the interpreter lock.
    cell: Mutex<OfProcess<Cell>>,
}

impl Recipe {
    async fn make(&self, graph: Opening, limits: &hoplake::Limits) -> Result<Made, Error> {
        let budget = MemoryBudget::new("the sampler", limits.memory_bytes_max.unwrap_or(COMPUTE_MEMORY_BYTES));
        let mut query = graph.query_within(&budget);
        query.limit(limits);
        let mut settings = self.settings.clone();
        for (near, hop, far, counts) in &self.fan_outs {
            settings.fan_outs.extend(query.fan_outs_between(near.as_deref(), hop, far.as_deref(), counts)?);
        }
        let mut features = Vec::new();
        for (of, name, properties, is_matrix) in &self.features {
            let of: Vec<FeatureOf> = match of {
                NamedOf::Label(label) => vec![query.label_id(label)?.into()],
                NamedOf::Edges(near, hop, far) => {
                    let mut found = query.fan_outs_between(Some(near), hop, Some(far), &[])?;
                    // A hop in both directions stands for those that are sampled; without one, `features_of` rejects it.
                    let is_sampled = |it: &FanOut| settings.fan_outs.iter().any(|sampled| sampled.edges == it.edges);
                    if found.iter().any(is_sampled) {
                        found.retain(is_sampled);
                    }
                    found.iter().map(|it| it.edges.into()).collect()
                }
            };
            features.extend(of.into_iter().map(|of| FeatureSettings {
                is_matrix: *is_matrix,
                is_double: self.is_double,
                missing: self.missing,
                ..FeatureSettings::new(name, of, properties.clone())
            }));
        }
        let features = query.features(features, Workers::default()).await?;
        let sampler = match (settings.fan_outs.is_empty(), self.in_memory) {
            (true, _) => None,
            (false, true) => Some(query.sampler_in_memory(settings, Workers::default()).await?),
            (false, false) => Some(query.sampler(settings)?),
        };
        Ok(Made { graph, sampler, features, budget, _lists: query })
    }
}

fn label_name(schema: &Schema, label: LabelId) -> String {
    schema.label(label).map(|label| label.name.clone()).unwrap_or_default()
}

/// A kind of edges as Python has it: the label where they begin, the hop, and the label where they end.
fn kind_name(schema: &Schema, edges: EdgesOf) -> (String, String, String) {
    let label = schema.edge_type(edges.edge_type).map(|kind| kind.label.as_str()).unwrap_or_default();
    let direction = match edges.direction {
        Direction::Out => "out",
        Direction::In => "in",
    };
    (label_name(schema, edges.near), format!("{direction}:{label}"), label_name(schema, edges.far))
}

/// Numbers that Python shares with a sample.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Array {
    /// Where the numbers are: they are neither moved nor looked at by Rust from now on.
    address: usize,
    shape: Vec<usize>,
    kind: &'static str,
    _numbers: Numbers,
    /// Counts until the last array of a sample is dropped.
    _memory: Vec<Held<()>>,
}

impl Array {
    fn new(mut numbers: Numbers, shape: Vec<usize>, memory: &[Held<()>]) -> Self {
        let (address, kind) = match &mut numbers {
            Numbers::Int64(numbers) => (numbers.as_mut_ptr().addr(), "i8"),
            Numbers::Float32(numbers) => (numbers.as_mut_ptr().addr(), "f4"),
            Numbers::Float64(numbers) => (numbers.as_mut_ptr().addr(), "f8"),
        };
        Self { address, shape, kind, _numbers: numbers, _memory: memory.to_vec() }
    }

    fn integers(numbers: Vec<i64>, memory: &[Held<()>]) -> Self {
        let shape = vec![numbers.len()];
        Self::new(Numbers::Int64(numbers), shape, memory)
    }

    fn feature(feature: Feature, memory: &[Held<()>]) -> Self {
        let Feature { rows, width, numbers, .. } = feature;
        Self::new(numbers, std::iter::once(rows).chain(width).collect(), memory)
    }
}

#[pymethods]
impl Array {
    /// NumPy's array interface. The arrays that are made of it keep this one.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        let order = if cfg!(target_endian = "little") { '<' } else { '>' };
        interface.set_item("version", 3)?;
        interface.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        interface.set_item("typestr", format!("{order}{}", self.kind))?;
        interface.set_item("data", (self.address, false))?;
        Ok(interface)
    }
}

/// Seeds as Python has them: a label and ordinals, one after the other.
type GivenSeeds = Vec<(String, PyBackedBytes)>;

fn numbers(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks().0.iter().map(|bytes| i64::from_ne_bytes(*bytes)).collect()
}

#[pymethods]
impl Graph {
    /// A sampler of the version, which its first call makes.
    #[pyo3(signature = (fan_outs, replace, weight, disjoint, induced, seed, features, is_double, missing, in_memory, time))]
    fn sampler(
        &self,
        py: Python<'_>,
        fan_outs: Vec<GivenFanOut>,
        replace: bool,
        weight: Option<String>,
        disjoint: bool,
        induced: bool,
        seed: u64,
        features: Vec<GivenFeature>,
        is_double: bool,
        missing: Option<f64>,
        in_memory: bool,
        time: Option<(String, bool, bool)>,
    ) -> PyResult<Sampler> {
        let fan_outs = fan_outs
            .into_iter()
            .map(|(near, hop, far, counts)| Ok((near, parsed::<Hop>(py, &hop)?, far, counts)))
            .collect::<PyResult<_>>()?;
        let time = time.map(|(property, of_vertices, last)| TimeSettings { property, of_vertices, last });
        let named = |(of, name, properties, is_matrix)| {
            let of = match of {
                GivenOf::Label(label) => NamedOf::Label(label),
                GivenOf::Edges((near, hop, far)) => NamedOf::Edges(near, parsed(py, &hop)?, far),
            };
            Ok((of, name, properties, is_matrix))
        };
        let features = features.into_iter().map(named).collect::<PyResult<Vec<_>>>()?;
        let places = features.iter().any(|(of, ..)| matches!(of, NamedOf::Edges(..)));
        // Its fan-outs are known once the graph is open.
        let settings = SamplerSettings { fan_outs: Vec::new(), replace, weight, disjoint, induced, seed, places, time };
        let recipe = Arc::new(Recipe { fan_outs, settings, features, is_double, missing, in_memory });
        // Its own: it stays at its version, whatever the graph moves on to.
        let location = self.opened.location();
        let opened = match self.opened.known() {
            Some(graph) => Opened::now(location, graph),
            None => Opened::later(location),
        };
        let cell = Mutex::new(OfProcess::new(Arc::new(OnceCell::new())));
        Ok(Sampler { opened: Arc::new(opened), recipe, limits: self.limits, spent: self.spent.clone(), cell })
    }
}

impl Sampler {
    /// The sampler of this process, which is made if it is not there.
    fn made(&self) -> impl Future<Output = Result<Arc<Made>, Error>> + Send + 'static + use<> {
        let mut own = lock(&self.cell);
        if own.get().is_none() {
            *own = OfProcess::new(Arc::new(OnceCell::new()));
        }
        let cell = own.get().cloned().unwrap_or_default();
        let (graph, recipe, limits) = (self.opened.graph(), self.recipe.clone(), self.limits);
        async move {
            let make = || async { Ok::<_, Error>(Arc::new(recipe.make(graph.await?, &limits).await?)) };
            cell.get_or_try_init(make).await.cloned()
        }
    }

    fn graph(&self) -> Graph {
        Graph { opened: self.opened.clone(), limits: self.limits, spent: self.spent.clone() }
    }

    /// Runs a query with the sampler, and makes a result of its answer and its cost.
    fn ask<T, A>(
        &self,
        ask: impl FnOnce(Arc<Made>, Query) -> A + Send + 'static,
        finish: impl for<'py> FnOnce(Python<'py>, T, Priced) -> PyResult<Bound<'py, PyAny>> + Send + 'static,
    ) -> PyResult<Task>
    where
        T: Send + 'static,
        A: Future<Output = Result<(T, Query), Error>> + Send,
    {
        let (made, limits, meter) = (self.made(), self.limits, self.graph().meter());
        let call = async move {
            let made = made.await?;
            let mut query = made.graph.query_within(&made.budget);
            query.limit(&limits);
            meter.measure(query.context(), made.graph.prices());
            let (answer, _query) = ask(made, query).await?;
            Ok((answer, meter.priced()))
        };
        Task::spawn(call, move |py, (answer, priced)| finish(py, answer, priced))
    }
}

#[pymethods]
impl Sampler {
    #[getter]
    fn url(&self) -> String {
        self.opened.location().url
    }

    /// What a sampler is made of again in another process, with its arguments: the location and version of its graph.
    fn location(&self) -> (String, Option<u64>, Option<u64>, Option<PathBuf>, Option<u64>, bool) {
        self.graph().location()
    }

    /// The limits of its calls, as `Graph.within` takes them.
    fn limits(&self) -> (Option<f64>, Option<u64>, Option<u64>, Option<u64>, Option<f64>, Option<u64>) {
        self.graph().limits()
    }

    /// Makes the sampler if it is not there.
    fn ready(&self) -> PyResult<Task> {
        Task::spawn(self.made(), |py, _| Ok(py.None().into_bound(py)))
    }

    /// The ordinals of vertices, each with its label.
    fn look_up(&self, vertices: Vec<Bound<'_, PyAny>>) -> PyResult<Task> {
        let starts: Vec<StartKey> = starts(&vertices)?;
        let ask = move |made: Arc<Made>, mut query: Query| async move {
            let found = query.named(&starts).await?;
            let schema = made.graph.schema();
            let found = found.iter().map(|vertex| (label_name(schema, vertex.label()), vertex.ordinal()));
            Ok((found.collect::<Vec<_>>(), query))
        };
        self.ask(ask, |py, found, _| object(py, found))
    }

    /// The keys of vertices of a label.
    fn keys(&self, label: String, ordinals: PyBackedBytes) -> PyResult<Task> {
        let ask = move |_: Arc<Made>, mut query: Query| async move {
            let vertices = query.vertices_at(query.label_id(&label)?, &numbers(&ordinals))?;
            Ok((query.keys_of(&vertices).await?, query))
        };
        self.ask(ask, |py, keys, _| {
            let keys = keys.iter().map(|key| values::key_object(py, key)).collect::<PyResult<Vec<_>>>()?;
            object(py, keys)
        })
    }

    /// The ordinals of the vertices of a label that exist, and how many ordinals there are.
    fn ordinals(&self, label: String) -> PyResult<Task> {
        let ask = move |made: Arc<Made>, mut query: Query| async move {
            let label = query.label_id(&label)?;
            let count = made.graph.manifest().vertex_counts.get(usize::from(label.0)).map_or(0, |it| it.ordinals);
            Ok(((query.ordinals(label).await?, count), query))
        };
        self.ask(ask, |py, (ordinals, count), _| {
            let (ordinals, memory) = ordinals.into_parts();
            object(py, (Bound::new(py, Array::integers(ordinals, &[memory]))?, count))
        })
    }

    /// A feature of vertices of its label.
    fn feature(&self, label: String, name: String, ordinals: PyBackedBytes) -> PyResult<Task> {
        let ask = move |made: Arc<Made>, mut query: Query| async move {
            let id = query.label_id(&label)?;
            let found = query.feature_of_vertices(&made.features, id, &name, &numbers(&ordinals)).await?;
            Ok((found, query))
        };
        self.ask(ask, |py, feature, _| {
            let (feature, memory) = feature.into_parts();
            Ok(Bound::new(py, Array::feature(feature, &[memory]))?.into_any())
        })
    }

    /// The sample of the ends of links and of negatives.
    #[pyo3(signature = (kind, near, far, times, anywhere, per_link, batch))]
    fn sample_links(
        &self,
        py: Python<'_>,
        kind: (String, String, String),
        near: PyBackedBytes,
        far: PyBackedBytes,
        times: Option<PyBackedBytes>,
        anywhere: usize,
        per_link: usize,
        batch: u64,
    ) -> PyResult<Task> {
        self.one(Asked::links(py, kind, (&near, &far), times, anywhere, per_link, batch)?)
    }

    /// The sample of some seeds, with its features.
    #[pyo3(signature = (given, times, batch))]
    fn sample(&self, given: GivenSeeds, times: Option<PyBackedBytes>, batch: u64) -> PyResult<Task> {
        self.one(Asked::seeds(&given, times, batch))
    }

    /// Batches that are made before they are asked for.
    fn batches(&self) -> PyResult<Task> {
        let (made, limits, spent) = (self.made(), self.limits, self.spent.clone());
        let begin = async move {
            let made = made.await?;
            let budget = made.budget.clone();
            let make = move |(asked, meter): (Arc<Asked>, Arc<Meter>), budget: MemoryBudget| {
                let made = made.clone();
                async move {
                    let mut query = made.graph.query_within(&budget);
                    query.limit(&limits);
                    meter.measure(query.context(), made.graph.prices());
                    let sampled = asked.sampled(&made, &mut query).await?;
                    Ok((made, sampled, meter.priced()))
                }
            };
            Ok(ahead(&Handle::current(), budget, make))
        };
        Task::spawn(begin, |py, ahead| Ok(Bound::new(py, Batches { ahead: OfProcess::new(ahead), spent })?.into_any()))
    }
}

impl Sampler {
    fn one(&self, asked: Asked) -> PyResult<Task> {
        let ask = move |made: Arc<Made>, mut query: Query| async move {
            let sampled = asked.sampled(&made, &mut query).await?;
            Ok(((made, sampled), query))
        };
        self.ask(ask, |py, (made, sampled), priced| sampled.object(py, &made, &Held::default(), priced))
    }
}

type MadeAhead = Ahead<(Arc<Asked>, Arc<Meter>), (Arc<Made>, Sampled, Priced), Error>;

/// Batches under way.
#[pyclass(frozen, module = "hoplake._hoplake")]
pub struct Batches {
    ahead: OfProcess<MadeAhead>,
    spent: Spent,
}

impl Batches {
    fn ahead(&self) -> PyResult<&MadeAhead> {
        let forked = "these batches are of another process, from which this one was forked; begin new ones";
        self.ahead.get().ok_or_else(|| PyRuntimeError::new_err(forked))
    }

    fn push(&self, py: Python<'_>, asked: Asked) -> PyResult<()> {
        self.ahead()?.push((Arc::new(asked), Arc::new(self.spent.meter(py))));
        Ok(())
    }
}

#[pymethods]
impl Batches {
    /// Asks for the sample of some seeds, as [`Sampler::sample`].
    #[pyo3(signature = (given, times, batch))]
    fn sample(&self, py: Python<'_>, given: GivenSeeds, times: Option<PyBackedBytes>, batch: u64) -> PyResult<()> {
        self.push(py, Asked::seeds(&given, times, batch))
    }

    /// Asks for the sample of links, as [`Sampler::sample_links`].
    #[pyo3(signature = (kind, near, far, times, anywhere, per_link, batch))]
    fn sample_links(
        &self,
        py: Python<'_>,
        kind: (String, String, String),
        near: PyBackedBytes,
        far: PyBackedBytes,
        times: Option<PyBackedBytes>,
        anywhere: usize,
        per_link: usize,
        batch: u64,
    ) -> PyResult<()> {
        self.push(py, Asked::links(py, kind, (&near, &far), times, anywhere, per_link, batch)?)
    }

    /// The next of those that were asked for; `None` if there is no other.
    fn next(&self) -> PyResult<Task> {
        let next = self.ahead()?.next();
        Task::spawn(async move { next.await.transpose() }, |py, batch| match batch {
            None => Ok(py.None().into_bound(py)),
            Some(batch) => {
                let ((made, sampled, priced), taken) = batch.into_parts();
                sampled.object(py, &made, &taken, priced)
            }
        })
    }
}

/// What a batch is made of: seeds, or links.
struct Asked {
    of: AskedFor,
    times: Vec<i64>,
    batch: u64,
}

enum AskedFor {
    /// Labels and ordinals, one after the other.
    Seeds(Vec<(String, Vec<i64>)>),
    Links(Box<AskedLinks>),
}

struct AskedLinks {
    near_label: String,
    hop: Hop,
    far_label: String,
    near: Vec<i64>,
    far: Vec<i64>,
    /// How many negatives begin anywhere.
    anywhere: usize,
    /// How many begin where each link does.
    per_link: usize,
}

/// A sample and its features.
struct Sampled {
    sample: Held<Sample>,
    features: Held<Vec<Feature>>,
}

impl Asked {
    fn seeds(given: &GivenSeeds, times: Option<PyBackedBytes>, batch: u64) -> Self {
        let given = given.iter().map(|(label, ordinals)| (label.clone(), numbers(ordinals)));
        Self {
            of: AskedFor::Seeds(given.collect()),
            times: times.map(|times| numbers(&times)).unwrap_or_default(),
            batch,
        }
    }

    fn links(
        py: Python<'_>,
        kind: (String, String, String),
        (near, far): (&[u8], &[u8]),
        times: Option<PyBackedBytes>,
        anywhere: usize,
        per_link: usize,
        batch: u64,
    ) -> PyResult<Self> {
        let (near_label, hop, far_label) = kind;
        let hop = parsed(py, &hop)?;
        let (near, far) = (numbers(near), numbers(far));
        let links = AskedLinks { near_label, hop, far_label, near, far, anywhere, per_link };
        let of = AskedFor::Links(Box::new(links));
        Ok(Self { of, times: times.map(|times| numbers(&times)).unwrap_or_default(), batch })
    }

    async fn sampled(&self, made: &Made, query: &mut Query) -> Result<Sampled, Error> {
        let sampler = made.sampler(query)?;
        let sample = match &self.of {
            AskedFor::Seeds(given) => {
                let of_label =
                    |(label, ordinals): &(String, Vec<i64>)| query.vertices_at(query.label_id(label)?, ordinals);
                let seeds = given.iter().map(of_label).collect::<Result<Vec<_>, _>>()?.concat();
                query.sample_at(&sampler, &seeds, &self.times, self.batch).await?
            }
            AskedFor::Links(links) => links.sample(&sampler, &self.times, self.batch, query).await?,
        };
        let features = query.features_of(&made.features, &sample).await?;
        Ok(Sampled { sample, features })
    }
}

impl AskedLinks {
    /// The sample of the ends of links and of negatives, as seeds: first the vertices where links begin, then those where negatives do,
    /// then the other ends of links and of negatives. A negative begins anywhere, or `per_link` begin where each link does.
    async fn sample(
        &self,
        sampler: &Sampling,
        times: &[i64],
        batch: u64,
        query: &mut Query,
    ) -> Result<Held<Sample>, Error> {
        let Self { near_label, hop, far_label, near, far, anywhere, per_link } = self;
        let edges = query.fan_outs_between(Some(near_label), hop, Some(far_label), &[])?;
        let edges = edges.first().map(|it| it.edges);
        let near = query.vertices_at(query.label_id(near_label)?, near)?;
        let far = query.vertices_at(query.label_id(far_label)?, far)?;
        let starts = if *per_link > 0 { NegativesFrom::Each(&near, *per_link) } else { NegativesFrom::Any(*anywhere) };
        let negatives = match edges {
            Some(edges) if anywhere + per_link > 0 => query.negatives(sampler, edges, starts, batch).await?,
            _ => Held::default(),
        };
        // Those of a link begin where it does.
        let begins = if *per_link > 0 { &[][..] } else { &negatives.near };
        let seeds = [&near, begins, &far, &negatives.far].concat();
        // Negatives have the times of links: those that begin anywhere of one after the other.
        let of = |count: usize| {
            (0..count).filter_map(|at| times.get(at.checked_div(*per_link).unwrap_or(at) % times.len().max(1)))
        };
        let of_negatives = [begins.len(), negatives.far.len()].map(|count| of(count).copied().collect::<Vec<i64>>());
        let times = [times, &*of_negatives[0], times, &*of_negatives[1]].concat();
        query.sample_at(sampler, &seeds, &times, batch).await
    }
}

impl Sampled {
    /// A sample and its features as Python has them. Their arrays share memory that was `taken` for them besides their own.
    fn object<'py>(
        self,
        py: Python<'py>,
        made: &Made,
        taken: &Held<()>,
        priced: Priced,
    ) -> PyResult<Bound<'py, PyAny>> {
        let schema = made.graph.schema();
        let (sample, memory) = self.sample.into_parts();
        let memory = [memory, taken.clone()];
        let Sample { seeds, vertices, edges } = sample;
        let array = |numbers| Bound::new(py, Array::integers(numbers, &memory));
        let mut of_labels = Vec::new();
        for vertices in vertices {
            let trees = (!vertices.trees.is_empty()).then(|| array(vertices.trees)).transpose()?;
            of_labels.push((label_name(schema, vertices.label), array(vertices.ordinals)?, trees, vertices.per_hop));
        }
        let mut of_types = Vec::new();
        for edges in edges {
            let name = kind_name(schema, edges.edges);
            of_types.push((name, array(edges.near)?, array(edges.far)?, edges.per_hop));
        }
        let (features, memory) = self.features.into_parts();
        let memory = [memory, taken.clone()];
        let mut of_names = Vec::new();
        for feature in features {
            let of = match feature.of {
                FeatureOf::Vertices(label) => object(py, label_name(schema, label))?,
                FeatureOf::Edges(edges) => object(py, kind_name(schema, edges))?,
            };
            of_names.push((of, feature.name.clone(), Bound::new(py, Array::feature(feature, &memory))?));
        }
        object(py, (array(seeds)?, of_labels, of_types, of_names, priced.object(py)?))
    }
}
