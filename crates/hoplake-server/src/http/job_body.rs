//! The body that starts a job. Its algorithms and their options are those of the registry, and so is its schema.

use std::sync::LazyLock;

use hoplake::{
    Hop,
    compute::registry::{self, ALGORITHMS, AlgorithmSpec, OptionKind, OptionSpec, OptionValue},
};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{ObjectBuilder, Schema, Type},
    },
};

use super::requests::{HopBody, LimitsBody, ListsBody, VertexBody, vertices};
use crate::{failure::Failure, jobs::JobRequest};

/// A computation over a whole graph; options are those of `hoplake run`.
#[derive(Debug)]
pub(crate) struct JobBody {
    /// The version of the graph; without, the newest that is open.
    pub(crate) version: u64,
    algorithm: &'static AlgorithmSpec,
    fields: JobFields,
    given: Vec<(&'static str, OptionValue)>,
}

/// What a job has apart from its algorithm and the options of that. For the schema alone, as with all types here that do not derive
/// `Deserialize`.
#[derive(Debug, Default, ToSchema)]
struct JobFields {
    /// Which edges take part, and in which direction; without a condition.
    edges: Option<HopBody>,
    /// Vertices with these labels take part, with or without such edges.
    #[schema(required = false)]
    labels: Vec<String>,
    /// The vertices at which it begins, or that others are compared with.
    #[schema(required = false)]
    from: Vec<VertexBody>,
    #[schema(required = false)]
    lists: ListsBody,
    /// Of the job: without `vertices_max`. Time and memory are within the server's limits for jobs.
    #[schema(required = false)]
    limits: LimitsBody,
}

/// The options of all algorithms, each once, but for vertices.
static OPTIONS: LazyLock<Vec<&'static OptionSpec>> = LazyLock::new(|| {
    let mut options: Vec<&OptionSpec> = Vec::new();
    for option in ALGORITHMS.iter().flat_map(|algorithm| algorithm.options) {
        if !option.kind.is_vertices() && options.iter().all(|known| known.name != option.name) {
            options.push(option);
        }
    }
    options
});

/// The names of all fields.
static FIELDS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let fixed = ["version", "algorithm", "edges", "labels", "from", "lists", "limits"];
    fixed.into_iter().chain(OPTIONS.iter().map(|option| option.name)).collect()
});

impl<'de> Deserialize<'de> for JobBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("JobBody", &FIELDS, Body)
    }
}

struct Body;

impl<'de> Visitor<'de> for Body {
    type Value = JobBody;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an object with {}", FIELDS.join(", "))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JobBody, A::Error> {
        let mut version = 0;
        let mut algorithm = None;
        let mut fields = JobFields::default();
        let mut given = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let known = FIELDS.iter().copied().find(|field| *field == name);
            let Some(name) = known else { return Err(A::Error::unknown_field(&name, &FIELDS)) };
            if seen.contains(&name) {
                return Err(A::Error::duplicate_field(name));
            }
            seen.push(name);
            match name {
                "version" => version = map.next_value()?,
                "algorithm" => algorithm = Some(map.next_value::<AlgorithmBody>()?.0),
                "edges" => fields.edges = map.next_value()?,
                "labels" => fields.labels = map.next_value()?,
                "from" => fields.from = map.next_value()?,
                "lists" => fields.lists = map.next_value()?,
                "limits" => fields.limits = map.next_value()?,
                name => {
                    let option = OPTIONS.iter().find(|option| option.name == name);
                    let option = option.ok_or_else(|| A::Error::unknown_field(name, &FIELDS))?;
                    given.extend(value(option.kind, &mut map)?.map(|value| (option.name, value)));
                }
            }
        }
        let algorithm = algorithm.ok_or_else(|| A::Error::missing_field("algorithm"))?;
        Ok(JobBody { version, algorithm, fields, given })
    }
}

/// The value of an option; `None` if it is null.
fn value<'de, A: MapAccess<'de>>(kind: OptionKind, map: &mut A) -> Result<Option<OptionValue>, A::Error> {
    Ok(match kind {
        OptionKind::Property => map.next_value::<Option<String>>()?.map(OptionValue::Text),
        OptionKind::Count | OptionKind::Seed => map.next_value::<Option<u64>>()?.map(OptionValue::Integer),
        OptionKind::Part | OptionKind::NotNegative => map.next_value::<Option<f64>>()?.map(OptionValue::Float),
        OptionKind::Vertex | OptionKind::Vertices => return Err(A::Error::custom("vertices are in from")),
    })
}

/// An algorithm by its name.
struct AlgorithmBody(&'static AlgorithmSpec);

impl<'de> Deserialize<'de> for AlgorithmBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let names: Vec<String> = ALGORITHMS.iter().map(|algorithm| format!("`{}`", algorithm.name)).collect();
        let unknown = || D::Error::custom(format!("unknown variant `{name}`, expected one of {}", names.join(", ")));
        registry::find(&name).map(Self).ok_or_else(unknown)
    }
}

impl PartialSchema for JobBody {
    fn schema() -> RefOr<Schema> {
        let algorithms = ALGORITHMS.iter().map(|algorithm| algorithm.name);
        let algorithm = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(algorithms));
        let version = ObjectBuilder::new().schema_type(Type::Integer);
        let mut body = ObjectBuilder::new()
            .description(Some("A computation over a whole graph; options are those of `hoplake run`."))
            .property("algorithm", algorithm.description(Some("What to compute.")))
            .property(
                "version",
                version.description(Some("The version of the graph; without, the newest that is open.")),
            )
            .required("algorithm");
        if let RefOr::T(Schema::Object(fields)) = JobFields::schema() {
            for (name, field) in fields.properties {
                body = body.property(name, field);
            }
        }
        for option in OPTIONS.iter() {
            body = body.property(option.name, schema_of(option));
        }
        body.additional_properties(Some(utoipa::openapi::schema::AdditionalProperties::<Schema>::FreeForm(false)))
            .into()
    }
}

/// The schema of an option: its type, its range, and what it does in each algorithm that has it.
fn schema_of(option: &OptionSpec) -> ObjectBuilder {
    let (kind, least) = match option.kind {
        OptionKind::Count => (Type::Integer, Some(1.0)),
        OptionKind::Seed => (Type::Integer, Some(0.0)),
        OptionKind::Part | OptionKind::NotNegative => (Type::Number, Some(0.0)),
        OptionKind::Property | OptionKind::Vertex | OptionKind::Vertices => (Type::String, None),
    };
    let greatest = (option.kind == OptionKind::Part).then_some(1.0);
    ObjectBuilder::new()
        .schema_type(kind)
        .minimum(least)
        .maximum(greatest)
        .description(Some(registry::option_help(option.name)))
}

impl ToSchema for JobBody {
    fn name() -> std::borrow::Cow<'static, str> {
        "JobBody".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        JobFields::schemas(schemas);
    }
}

impl TryFrom<JobBody> for JobRequest {
    type Error = Failure;

    fn try_from(body: JobBody) -> Result<Self, Failure> {
        let JobFields { edges, labels, from, lists, limits } = body.fields;
        Ok(Self {
            algorithm: body.algorithm,
            edges: edges.map(Hop::try_from).transpose()?,
            labels,
            from: vertices(from)?,
            given: body.given,
            lists: lists.into(),
            limits: limits.into(),
        })
    }
}
