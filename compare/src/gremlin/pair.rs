//! The same graph on both servers, and the same question to both.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, Result, anyhow, bail};
use hoplake::gremlin::value::Value;
use hoplake_testkit::GremlinServer;

use super::{
    canonical::{EDGE_ID_MIN, Names, Orders, are_near, forms, without_types},
    client::{Answer, Client, Codec},
    subject::Subject,
    tree::{Side, StepCall, text},
    world::World,
};

/// Both servers, with the same graph.
pub struct Pair<'a> {
    subject: &'a Subject,
    server: &'a GremlinServer,
    reference: Client,
    hoplake: Client,
    reference_names: Names,
    hoplake_names: Names,
    graphs: usize,
    codec: Codec,
    /// Ids of the vertices and edges of the graph as it was made.
    pub ids: (Vec<String>, Vec<String>),
}

/// What both said to the same traversal, in comparable forms.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    /// TinkerPop.
    pub reference: Outcome,
    /// Hoplake.
    pub hoplake: Outcome,
}

/// Forms of results, or why there are none.
type Outcome = std::result::Result<Vec<String>, String>;

impl Answers {
    /// Whether they differ. Two errors are the same, whatever they say.
    pub fn differ(&self) -> bool {
        match (&self.reference, &self.hoplake) {
            (Ok(reference), Ok(hoplake)) => reference != hoplake,
            (Err(_), Err(_)) => false,
            _ => true,
        }
    }

    /// Which of them are errors.
    pub fn fails(&self) -> [bool; 2] {
        [self.reference.is_err(), self.hoplake.is_err()]
    }

    /// Whether the same of them are errors as of others, and these begin alike.
    pub fn fail_alike(&self, others: &Self) -> bool {
        let begin = |outcome: &Outcome| outcome.as_ref().err().map(|error| error.chars().take(20).collect::<String>());
        begin(&self.reference) == begin(&others.reference) && begin(&self.hoplake) == begin(&others.hoplake)
    }

    /// Whether both have the same results, but of numbers of other types.
    pub fn differ_in_types(&self) -> bool {
        let untyped = |outcome: &Outcome| -> Option<Vec<String>> {
            Some(outcome.as_ref().ok()?.iter().map(|form| without_types(form)).collect())
        };
        self.differ() && self.reference.is_ok() && untyped(&self.reference) == untyped(&self.hoplake)
    }

    /// Whether both have the same results but for the last digits of fractions, which differ by some part of them at most, also of those in
    /// texts.
    pub fn differ_in_digits(&self, near: f64) -> bool {
        let (Ok(reference), Ok(hoplake)) = (&self.reference, &self.hoplake) else { return false };
        let all_are_near = || reference.iter().zip(hoplake).all(|(left, right)| are_near(left, right, near));
        self.differ() && reference.len() == hoplake.len() && all_are_near()
    }

    /// Whether both have the same results in another order.
    pub fn differ_in_order(&self) -> bool {
        let sorted = |outcome: &Outcome| {
            let mut forms = outcome.as_ref().ok()?.clone();
            forms.sort_unstable();
            Some(forms)
        };
        self.reference.is_ok() && sorted(&self.reference) == sorted(&self.hoplake)
    }
}

/// Names and ids of all vertices, and of all edges.
const NAMES: [&str; 2] =
    ["g.V().project('uid', 'id').by('uid').by(T.id)", "g.E().project('uid', 'id').by('uid').by(T.id)"];

/// The whole graph, from both ends of its edges.
const GRAPH: [&str; 3] = [
    "g.V().project('l', 'p', 'out', 'in').by(T.label).by(__.valueMap()).by(__.outE().order().by('uid').fold()).by(__.inE().order().by('uid').fold())",
    "g.E().project('l', 'p', 'out', 'in').by(T.label).by(__.valueMap()).by(__.outV()).by(__.inV())",
    "g.V().groupCount().by(T.label)",
];

impl<'a> Pair<'a> {
    /// Connects to both.
    pub async fn new(subject: &'a Subject, server: &'a GremlinServer) -> Result<Self> {
        let codec = Codec::GraphBinary;
        let mut reference = Client::connect(server.address(), "g", codec).await?;
        // TinkerGraph counts what it made: numbers of answers are not taken for ids then.
        said(reference.ask(&format!("g.inject(1).repeat(__.addV()).times({EDGE_ID_MIN}).count()")).await?)?;
        Ok(Self {
            subject,
            server,
            reference,
            hoplake: Client::connect(subject.address(), "none", codec).await?,
            reference_names: Names::default(),
            hoplake_names: Names::default(),
            graphs: 0,
            codec,
            ids: Default::default(),
        })
    }

    /// Makes both graphs from the beginning. In Hoplake it is a new one, whose ids the reference then gets.
    pub async fn make(&mut self, world: &World, codec: Codec) -> Result<()> {
        if codec != self.codec {
            self.codec = codec;
            self.reference = Client::connect(self.server.address(), "g", codec).await?;
        }
        let name = format!("g{}", self.graphs);
        self.graphs += 1;
        self.subject.create(&name).await?;
        self.hoplake = Client::connect(self.subject.address(), &name, codec).await?;
        said(self.hoplake.ask(&world.script(|place| world.vertices[place].uid.clone(), |_| None)).await?)?;
        self.hoplake_names = names(&mut self.hoplake).await?;
        let id = |names: &HashMap<String, String>, uid: &str| {
            names.iter().find(|(_, name)| *name == uid).map(|(id, _)| id.clone()).unwrap_or_default()
        };
        let vertices = world.vertices.iter().map(|vertex| id(&self.hoplake_names.vertices, &vertex.uid)).collect();
        let edges = world.edges.iter().map(|(edge, ..)| id(&self.hoplake_names.edges, &edge.uid)).collect();
        self.ids = (vertices, edges);
        said(self.reference.ask("g.V().drop()").await?)?;
        let script = world.script(|place| self.ids.0[place].clone(), |place| Some(self.ids.1[place].clone()));
        said(self.reference.ask(&script).await?)?;
        self.reference_names = names(&mut self.reference).await?;
        match self.compare_graphs().await? {
            None => Ok(()),
            Some(answers) => bail!("the graphs differ from the beginning: {answers:?}"),
        }
    }

    /// The answers to a traversal. After a change the names are read again.
    pub async fn ask(&mut self, steps: &[StepCall], orders: Orders, is_change: bool) -> Result<Answers> {
        let reference = self.reference.ask(&text(steps, Side::Reference)).await?;
        let hoplake = self.hoplake.ask(&text(steps, Side::Hoplake)).await?;
        if is_change {
            self.reference_names = names(&mut self.reference).await?;
            self.hoplake_names = names(&mut self.hoplake).await?;
        }
        Ok(self.answers(reference, hoplake, orders))
    }

    /// The answers to a text, with their order and why they failed in full.
    pub async fn ask_text(&mut self, text: &str) -> Result<Answers> {
        let reference = self.reference.ask(text).await?;
        let hoplake = self.hoplake.ask(text).await?;
        Ok(self.answers(reference, hoplake, Orders { results: true, lists: true, maps: true }))
    }

    /// Whether each element has a name of its own, on both sides.
    pub fn names_are_unique(&self) -> bool {
        [&self.reference_names, &self.hoplake_names].iter().all(|names| {
            [&names.vertices, &names.edges].iter().all(|names| {
                let distinct: HashSet<_> = names.values().collect();
                distinct.len() == names.len()
            })
        })
    }

    /// Ids that both still have for the elements that had them when the graph was made.
    pub fn common_ids(&self) -> (Vec<String>, Vec<String>) {
        let still = |ids: &[String], reference: &HashMap<String, String>, hoplake: &HashMap<String, String>| {
            let is_same = |id: &&String| reference.get(*id) == hoplake.get(*id);
            ids.iter().filter(is_same).cloned().collect()
        };
        (self.ids.0.clone(), still(&self.ids.1, &self.reference_names.edges, &self.hoplake_names.edges))
    }

    /// What differs between the graphs.
    pub async fn compare_graphs(&mut self) -> Result<Option<Answers>> {
        for text in GRAPH {
            let reference = self.reference.ask(text).await?;
            let hoplake = self.hoplake.ask(text).await?;
            let answers = self.answers(reference, hoplake, Orders { lists: false, ..Orders::default() });
            if answers.differ() {
                return Ok(Some(answers));
            }
        }
        Ok(None)
    }

    fn answers(&self, reference: Answer, hoplake: Answer, orders: Orders) -> Answers {
        Answers {
            reference: reference.map(|results| forms(&results, &self.reference_names, orders)),
            hoplake: hoplake.map(|results| forms(&results, &self.hoplake_names, orders)),
        }
    }

    /// The form that the id of a vertex with a label and a key has.
    pub fn vertex_id(&self, world: &World, label: &str, key: &str) -> String {
        match world.vertices.first().zip(self.ids.0.first()) {
            Some((vertex, id)) if *id == vertex.uid => key.to_owned(),
            _ => format!("{label}:{key}"),
        }
    }
}

fn said(answer: Answer) -> Result<Vec<Value>> {
    answer.map_err(|error| anyhow!(error))
}

async fn names(client: &mut Client) -> Result<Names> {
    let mut all = Names::default();
    for (text, names) in NAMES.iter().zip([&mut all.vertices, &mut all.edges]) {
        for found in said(client.ask(text).await?)? {
            let Value::Map(entries) = found else { bail!("{text} gives {found}") };
            let named =
                |name: &str| entries.iter().find(|(key, _)| *key == name.into()).map(|(_, value)| value.to_string());
            let [id, uid] = ["id", "uid"].map(named);
            names.insert(id.context("an element without an id")?, uid.context("an element without `uid`")?);
        }
    }
    Ok(all)
}
