//! The algorithms that come with Hoplake: names, options, what they compute, and how they run. The command line, both protocols of the
//! service, the facade and the documentation read them here.
//!
//! Each algorithm is described by a constant in the file of its kernel. To add one, write its file and its line in [`ALGORITHMS`]; the wire
//! format needs a number for its name (`jobs.proto`), which a test of the server demands.

mod options;
mod programs;
mod results;

use std::fmt::Write as _;

use hoplake_engine::{EngineError, traversal::HopDirection};

use crate::kernels;

pub(crate) use options::{FROM, SAMPLE, SEED};
pub use options::{
    FROM_OPTION, OptionError, OptionKind, OptionSpec, OptionValue, Options, SAMPLE_OPTION, SEED_OPTION, WEIGHT_OPTION,
};
pub(crate) use programs::Runnable;
pub use programs::{ComputeProgress, Program, ProgramInput, ProgramResult, ProgramSpec};
pub use results::{Figure, Kernel, KernelInput, KernelResult, Values};

/// An algorithm. Two with the same name are the same.
#[derive(Debug)]
pub struct AlgorithmSpec {
    /// As users write it.
    pub name: &'static str,
    /// The name of its values; `None` if its result is a figure for the whole graph.
    pub value: Option<&'static str>,
    /// The type of its values.
    pub value_type: ValueType,
    /// What it computes, as Markdown in a line.
    pub help: &'static str,
    /// The direction in which edges are followed unless the user selects edges.
    pub direction: HopDirection,
    /// The lists of neighbours that it reads.
    pub neighbours: Neighbours,
    /// Options of its own.
    pub options: &'static [OptionSpec],
    /// What it does with the order of vertices by label and key.
    pub key_order: KeyOrder,
    /// Computes it from lists in memory; `None` if its program does that, too.
    pub kernel: Option<Kernel>,
    /// Its vertex program, if it has one, which can stream its lists, has checkpoints and may run asynchronously.
    pub program: Option<ProgramSpec>,
}

/// Which lists of neighbours an algorithm reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbours {
    /// Those in the direction of the selection.
    Out,
    /// Those against the direction of the selection.
    In,
    /// Those in the direction of the selection, and those against it.
    OutAndIn,
    /// Those of edges without direction: each edge is in the lists of both its ends, whatever the direction of the selection.
    Undirected,
}

/// What an algorithm does with the order of vertices by label and key, which makes its result independent of how a graph was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrder {
    /// It needs no order.
    Unused,
    /// It gets the place of each vertex, and its values are places: all vertices of a group have the same.
    Read,
    /// Its values are ids of vertices, one for all vertices of a group. They become the place of the group's first vertex.
    Named,
}

/// The type of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// int64.
    Integer,
    /// float64.
    Float,
}

/// All algorithms, in the order in which they are listed.
pub static ALGORITHMS: &[&AlgorithmSpec] = &[
    &kernels::PAGE_RANK,
    &kernels::COMPONENTS,
    &kernels::STRONG_COMPONENTS,
    &kernels::LEVELS,
    &kernels::PATHS,
    &kernels::COMMUNITIES,
    &kernels::LEIDEN,
    &kernels::DEGREES,
    &kernels::CLUSTERING,
    &kernels::CORES,
    &kernels::CLOSENESS,
    &kernels::BETWEENNESS,
    &kernels::EIGENVECTOR,
    &kernels::HUBS,
    &kernels::AUTHORITIES,
    &kernels::SIMILARITY,
    &kernels::TRIANGLES,
    &kernels::TRIANGLES_PER_VERTEX,
];

impl PartialEq for AlgorithmSpec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl AlgorithmSpec {
    /// What most algorithms have: float64 values from lists of both ends, without options, and neither a kernel nor a program.
    pub(crate) const USUAL: Self = Self {
        name: "",
        value: None,
        value_type: ValueType::Float,
        help: "",
        direction: HopDirection::Out,
        neighbours: Neighbours::OutAndIn,
        options: &[],
        key_order: KeyOrder::Unused,
        kernel: None,
        program: None,
    };

    /// Checks options that a user gave.
    ///
    /// # Errors
    /// The first that has no effect; or else the first whose value is wrong.
    pub fn options<'a>(
        &'static self,
        given: impl IntoIterator<Item = (&'a str, OptionValue)>,
    ) -> Result<Options, OptionError> {
        Options::checked(self, given)
    }

    /// An option by its name.
    pub fn option(&self, name: &str) -> Option<&'static OptionSpec> {
        self.options.iter().find(|option| option.name == name)
    }

    /// What its values are called, or the algorithm itself if it has none.
    pub fn value_name(&self) -> &'static str {
        self.value.unwrap_or(self.name)
    }

    /// Whether vertices with the same value are a group.
    pub fn has_groups(&self) -> bool {
        self.key_order != KeyOrder::Unused
    }

    /// Whether it has a vertex program, which runs in supersteps and has checkpoints.
    pub fn has_program(&self) -> bool {
        self.program.is_some()
    }

    /// Why it does not run asynchronously; `None` if it does.
    pub fn synchronous(&self) -> Option<&'static str> {
        match &self.program {
            Some(program) => program.synchronous,
            None => Some("it has no vertex program"),
        }
    }
}

/// The one vertex of an algorithm that has one, as [`OptionKind::Vertex`] demands.
fn first(starts: &[u32]) -> Result<u32, EngineError> {
    let none = || EngineError::Internal("a search has no start".into());
    starts.first().copied().ok_or_else(none)
}

/// An algorithm by its name.
pub fn find(name: &str) -> Option<&'static AlgorithmSpec> {
    ALGORITHMS.iter().copied().find(|algorithm| algorithm.name == name)
}

/// What an option does in the algorithms that have it, and what it defaults to there.
pub fn option_help(name: &str) -> String {
    // Algorithms in which it does the same.
    let mut uses: Vec<(&OptionSpec, Vec<&str>)> = Vec::new();
    for algorithm in ALGORITHMS {
        let Some(option) = algorithm.option(name) else { continue };
        let same = uses.iter_mut().find(|(known, _)| (known.help, known.default) == (option.help, option.default));
        match same {
            Some((_, names)) => names.push(algorithm.name),
            None => uses.push((option, vec![algorithm.name])),
        }
    }
    let mut help = String::new();
    let mut before = None;
    for (option, names) in uses {
        let default = option.default.map(|default| format!("; {default} unless it is set")).unwrap_or_default();
        let names = names.join(", ");
        // Writing to a string cannot fail.
        let _ = match before == Some(option.help) {
            true => write!(help, ", {names}{default}"),
            false => write!(help, "{}{} ({names}{default}", if before.is_some() { "). " } else { "" }, option.help),
        };
        before = Some(option.help);
    }
    help.push(')');
    help
}

/// All algorithms as a table in Markdown, as the documentation has it.
pub fn table() -> String {
    let mut table = String::from("| algorithm | value | options |\n| --- | --- | --- |\n");
    for AlgorithmSpec { name, value, help, options, .. } in ALGORITHMS.iter().copied() {
        let value = value.map(|value| format!("`{value}`: ")).unwrap_or_default();
        let options: Vec<String> = options.iter().map(|option| format!("`--{}`", option.name)).collect();
        let options = options.join(", ");
        let space = if options.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = writeln!(table, "| `{name}` | {value}{help} | {options}{space}|");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(name: &str, given: &[(&str, OptionValue)]) -> Result<Options, OptionError> {
        find(name).unwrap().options(given.iter().cloned())
    }

    #[test]
    fn the_documentation_has_the_table_of_the_registry() {
        let documentation = include_str!("../../../../docs/analytics.md");
        let table = table();
        assert!(documentation.contains(&table), "docs/analytics.md needs this table:\n{table}");
    }

    #[test]
    fn names_are_unique() {
        for algorithm in ALGORITHMS.iter().copied() {
            assert!(std::ptr::eq(find(algorithm.name).unwrap(), algorithm), "{} is there twice", algorithm.name);
        }
    }

    #[test]
    fn every_algorithm_can_run() {
        for algorithm in ALGORITHMS {
            assert!(algorithm.kernel.is_some() || algorithm.program.is_some(), "{}", algorithm.name);
        }
    }

    #[test]
    fn options_of_the_same_name_have_the_same_kind() {
        let all = || ALGORITHMS.iter().flat_map(|algorithm| algorithm.options);
        for option in all() {
            let alike =
                |other: &OptionSpec| other.kind == option.kind || option.kind.is_vertices() && other.kind.is_vertices();
            assert!(all().filter(|other| other.name == option.name).all(alike), "{}", option.name);
            assert!(!option.help.is_empty() && !option.help.ends_with('.'), "{}", option.name);
        }
    }

    #[test]
    fn defaults_are_in_the_ranges_of_their_options() {
        for option in ALGORITHMS.iter().flat_map(|algorithm| algorithm.options) {
            let Some(default) = option.default else { continue };
            let value = match option.kind {
                OptionKind::Count | OptionKind::Seed => OptionValue::Integer(default as u64),
                _ => OptionValue::Float(default),
            };
            assert!(option.kind.contains(&value), "{} {value}", option.name);
        }
    }

    #[test]
    fn options_have_defaults_of_their_algorithm() {
        assert_eq!(options("pagerank", &[]).unwrap().count("iterations"), Some(100));
        assert_eq!(options("communities", &[]).unwrap().count("iterations"), Some(10));
        let given = options("pagerank", &[("iterations", OptionValue::Integer(3))]).unwrap();
        assert_eq!(given.count("iterations"), Some(3));
        assert_eq!(given.float("damping"), Some(0.85));
        let given = [("sample", OptionValue::Integer(4)), ("seed", OptionValue::Integer(u64::MAX))];
        assert_eq!(options("closeness", &given).unwrap().seed("seed"), Some(u64::MAX));
    }

    #[test]
    fn wrong_options_are_rejected() {
        let no_effect = options("components", &[("weight", OptionValue::Text("km".into()))]);
        assert_eq!(no_effect, Err(OptionError::NoEffect("weight".into())));
        assert_eq!(options("levels", &[]), Err(OptionError::OneVertex(0)));
        assert_eq!(options("levels", &[("from", OptionValue::Vertices(2))]), Err(OptionError::OneVertex(2)));
        assert!(options("pagerank", &[("from", OptionValue::Vertices(2))]).is_ok());
        let alone = options("closeness", &[("seed", OptionValue::Integer(3))]);
        assert_eq!(alone, Err(OptionError::Requires { option: "seed", required: "sample" }));
        for (option, value) in [
            ("damping", OptionValue::Float(1.5)),
            ("damping", OptionValue::Float(f64::NAN)),
            ("tolerance", OptionValue::Float(f64::INFINITY)),
            ("tolerance", OptionValue::Float(-1.0)),
            ("iterations", OptionValue::Integer(0)),
        ] {
            let found = options("pagerank", &[(option, value.clone())]);
            assert!(matches!(found, Err(OptionError::Range { .. })), "{option} {value}: {found:?}");
        }
    }
}
