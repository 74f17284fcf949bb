//! The algorithm of `hoplake run` and its options, which are those of the registry.

use clap::{
    Arg, ArgAction, ArgMatches, Command, FromArgMatches,
    builder::{PossibleValue, PossibleValuesParser},
    error::ErrorKind,
};
use hoplake::{
    StartKey,
    compute::{
        Algorithm,
        registry::{self, ALGORITHMS, AlgorithmSpec, FROM_OPTION, OptionError, OptionKind, OptionSpec, OptionValue},
    },
};

use crate::failure::Failure;

/// The name of the argument that says which algorithm.
const ALGORITHM: &str = "algorithm";

/// An algorithm, with the options that were given.
#[derive(Debug)]
pub struct AlgorithmArgs {
    pub spec: &'static AlgorithmSpec,
    starts: Vec<StartKey>,
    /// All but vertices.
    given: Vec<(&'static str, OptionValue)>,
}

impl AlgorithmArgs {
    /// The algorithm, with options that have an effect on it.
    pub fn algorithm(&self) -> Result<Algorithm, Failure> {
        let from = (!self.starts.is_empty()).then_some((FROM_OPTION, OptionValue::Vertices(self.starts.len())));
        let options = self.spec.options(from.into_iter().chain(self.given.iter().cloned()));
        let options = options.map_err(|error| self.rejected(&error))?;
        Algorithm::new(options, self.starts.clone()).map_err(|error| Failure::of(&error, "see hoplake run --help"))
    }

    fn rejected(&self, error: &OptionError) -> Failure {
        let name = self.spec.name;
        match error {
            OptionError::NoEffect(option) => no_effect(&format!("--{option}"), self.spec),
            OptionError::Requires { option, required } => Failure::usage(
                format!("--{option} has no effect without --{required}"),
                format!("add --{required} {}, or leave out --{option}", self.value_name(required)),
            ),
            OptionError::Excludes { option, excluded } => Failure::usage(
                format!("{name} takes --{option} or --{excluded}, and got both"),
                "leave one of them out",
            ),
            OptionError::OneVertex(0) => Failure::usage(format!("{name} needs a vertex"), "add --from LABEL:KEY"),
            OptionError::OneVertex(_) => {
                Failure::usage(format!("{name} has one vertex"), "leave all but one --from out")
            }
            OptionError::Range { option, value, write } => {
                Failure::usage(format!("--{option} is {value}"), format!("write {write}"))
            }
        }
    }

    fn value_name(&self, option: &str) -> &'static str {
        self.spec.option(option).map_or("VALUE", |option| value_name(option.kind))
    }
}

/// An option that the algorithm does not have.
pub fn no_effect(option: &str, spec: &AlgorithmSpec) -> Failure {
    Failure::usage(format!("{option} has no effect on {}", spec.name), format!("leave out {option}"))
}

/// The options of all algorithms, each once.
fn options() -> Vec<&'static OptionSpec> {
    let mut options: Vec<&OptionSpec> = Vec::new();
    for option in ALGORITHMS.iter().flat_map(|algorithm| algorithm.options) {
        if options.iter().all(|known| known.name != option.name) {
            options.push(option);
        }
    }
    options
}

fn value_name(kind: OptionKind) -> &'static str {
    match kind {
        OptionKind::Vertex | OptionKind::Vertices => "VERTEX",
        OptionKind::Property => "PROPERTY",
        OptionKind::Count | OptionKind::Seed => "N",
        OptionKind::Part => "PART",
        OptionKind::NotNegative => "NUMBER",
    }
}

/// The argument of an option. Its help says in which algorithms it has an effect.
fn argument(option: &'static OptionSpec) -> Arg {
    let kind = option.kind;
    let help = registry::option_help(option.name);
    let argument = Arg::new(option.name).long(option.name).value_name(value_name(kind));
    if kind.is_vertices() {
        let vertex = clap::value_parser!(StartKey);
        let help = format!("{help}. `LABEL:KEY`, or `LABEL[CONDITION]`");
        return argument.help(help).action(ArgAction::Append).value_parser(vertex);
    }
    let parse = move |text: &str| kind.parse(text).ok_or_else(|| format!("write {}", kind.range()));
    argument.help(help).allow_negative_numbers(true).value_parser(parse)
}

impl clap::Args for AlgorithmArgs {
    fn augment_args(command: Command) -> Command {
        let values = ALGORITHMS.iter().map(|spec| {
            let value = spec.value.map(|value| format!("{value}: ")).unwrap_or_default();
            PossibleValue::new(spec.name).help(format!("{value}{}", spec.help).replace('`', ""))
        });
        let algorithm = Arg::new(ALGORITHM)
            .value_name("ALGORITHM")
            .required(true)
            .help("What to compute")
            .value_parser(PossibleValuesParser::new(values));
        command.arg(algorithm).args(options().into_iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for AlgorithmArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let name = matches.get_one::<String>(ALGORITHM);
        let spec = name.and_then(|name| registry::find(name));
        let spec = spec.ok_or_else(|| clap::Error::new(ErrorKind::MissingRequiredArgument))?;
        let mut starts = Vec::new();
        let mut given = Vec::new();
        for option in options() {
            if option.kind.is_vertices() {
                starts.extend(matches.get_many::<StartKey>(option.name).into_iter().flatten().cloned());
            } else {
                given.extend(matches.get_one::<OptionValue>(option.name).map(|value| (option.name, value.clone())));
            }
        }
        Ok(Self { spec, starts, given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
