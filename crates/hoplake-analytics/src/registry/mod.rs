//! The algorithms that come with Hoplake: names, options, what they compute, and how they run. The command line, both protocols of the
//! service, the facade and the documentation read them here.
//!
//! Each algorithm is described by a constant in the file of its kernel. To add one, write its file, export it in `kernels/mod.rs`, and add
//! a line to [`ALGORITHMS`]. The wire format needs a number for its name (`jobs.proto`), which a test of the server demands.
//! `ARCHITECTURE.md`, *Where would I add something?*, lists all files.

mod algorithm;
mod options;
mod programs;
mod results;

use std::fmt::Write as _;

use crate::kernels;

pub use algorithm::{AlgorithmSpec, KeyOrder, Neighbours, Options, ValueType};
pub(crate) use options::{FROM, SAMPLE, SEED};
pub use options::{
    FROM_OPTION, OptionError, OptionKind, OptionSpec, OptionValue, SAMPLE_OPTION, SEED_OPTION, WEIGHT_OPTION,
};
pub(crate) use programs::Runnable;
pub use programs::{ComputeProgress, Program, ProgramInput, ProgramResult, ProgramSpec};
pub use results::{Figure, Kernel, KernelInput, KernelResult, Values};

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
    &kernels::MULTIPLICITY,
];

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
    let of_help = uses.chunk_by(|(a, _), (b, _)| a.help == b.help).map(|same| {
        let with_default = |(option, names): &(&OptionSpec, Vec<&str>)| {
            let default = option.default.map(|default| format!(": default {default}")).unwrap_or_default();
            names.join(", ") + &default
        };
        let names: Vec<String> = same.iter().map(with_default).collect();
        format!("{} ({})", same[0].0.help, names.join("; "))
    });
    of_help.collect::<Vec<_>>().join(". ")
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
        let both = [("sample", OptionValue::Integer(3)), ("from", OptionValue::Vertices(2))];
        assert!(options("betweenness", &both[1..]).is_ok());
        let excludes = OptionError::Excludes { option: "from", excluded: "sample" };
        assert_eq!(options("betweenness", &both), Err(excludes));
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
