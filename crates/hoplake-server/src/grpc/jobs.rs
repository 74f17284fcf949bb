//! The service Jobs.

use futures::FutureExt;
use hoplake::{
    Hop,
    compute::{
        Placement,
        registry::{self, AlgorithmSpec, OptionValue},
    },
};

use super::{
    receive,
    service::{methods, within},
    writer::{Writer, stream},
};
use crate::{
    calls::{self, Call, JobResultRequest},
    failure::Failure,
    jobs::{JobInfo, JobRequest, JobState},
    v1::{self, jobs_server::Jobs},
};

methods! { Jobs {
    "StartJob": start_job(StartJobRequest) -> Job;
    "ListJobs": list_jobs(ListJobsRequest) -> ListJobsResponse;
    "GetJob": get_job(GetJobRequest) -> Job;
    "CancelJob": cancel_job(CancelJobRequest) -> Job;
    stream "JobResult": job_result(JobResultRequest) -> JobResultResponse as JobResultStream;
} }

async fn start_job(call: &mut Call, request: v1::StartJobRequest) -> Result<v1::Job, Failure> {
    let graph = receive::graph(request.graph.clone())?;
    Ok(calls::start_job(call, &graph, &request.try_into()?).await?.into())
}

async fn list_jobs(call: &mut Call, _: v1::ListJobsRequest) -> Result<v1::ListJobsResponse, Failure> {
    Ok(v1::ListJobsResponse { jobs: calls::list_jobs(call)?.into_iter().map(v1::Job::from).collect() })
}

async fn get_job(call: &mut Call, request: v1::GetJobRequest) -> Result<v1::Job, Failure> {
    Ok(calls::get_job(call, &request.id)?.into())
}

async fn cancel_job(call: &mut Call, request: v1::CancelJobRequest) -> Result<v1::Job, Failure> {
    Ok(calls::cancel_job(call, &request.id)?.into())
}

async fn job_result(
    call: &mut Call,
    request: v1::JobResultRequest,
    writer: &mut Writer<v1::JobResultResponse>,
) -> Result<(), Failure> {
    writer.format = receive::format(request.format)?;
    let v1::JobResultRequest { id, top, skip, limit, select, .. } = request;
    let summary = calls::job_result(call, &JobResultRequest { id, top, skip, limit, select }, writer).await?;
    let last = writer.last();
    last.vertices = summary.vertices;
    last.version = summary.graph.version;
    last.cost = Some(call.cost.into());
    Ok(())
}

/// The algorithm that the wire format numbers so. Its constants have the names of the registry, in capitals and with underscores.
fn algorithm(number: i32) -> Option<&'static AlgorithmSpec> {
    let wire = v1::Algorithm::try_from(number).ok()?;
    registry::find(&wire.as_str_name().to_lowercase().replace('_', "-"))
}

/// The number of an algorithm in the wire format; 0 if it has none.
fn number(algorithm: &AlgorithmSpec) -> i32 {
    let wire = v1::Algorithm::from_str_name(&algorithm.name.to_uppercase().replace('-', "_"));
    wire.map_or(0, i32::from)
}

impl TryFrom<v1::StartJobRequest> for JobRequest {
    type Error = Failure;

    fn try_from(request: v1::StartJobRequest) -> Result<Self, Failure> {
        // Enums of proto3 are open: any number can arrive, and 0 if the field is absent.
        let unknown =
            || Failure::invalid(format!("{} is not an algorithm; write for instance PAGERANK", request.algorithm));
        let algorithm = algorithm(request.algorithm).ok_or_else(unknown)?;
        let lists = match v1::ListsPlacement::try_from(request.lists) {
            Ok(v1::ListsPlacement::Automatic) => Placement::Automatic,
            Ok(v1::ListsPlacement::Memory) => Placement::Memory,
            Ok(v1::ListsPlacement::Streamed) => Placement::Streamed,
            Ok(v1::ListsPlacement::Packed) => Placement::Packed,
            Err(_) => return Err(Failure::invalid(format!("{} is not a place of lists", request.lists))),
        };
        // By the names of the registry; a test compares.
        let given = [
            ("weight", request.weight.map(OptionValue::Text)),
            ("iterations", request.iterations.map(OptionValue::Integer)),
            ("damping", request.damping.map(OptionValue::Float)),
            ("tolerance", request.tolerance.map(OptionValue::Float)),
            ("sample", request.sample.map(OptionValue::Integer)),
            ("seed", request.seed.map(OptionValue::Integer)),
            ("resolution", request.resolution.map(OptionValue::Float)),
        ];
        Ok(Self {
            algorithm,
            edges: request.edges.map(Hop::try_from).transpose()?,
            labels: request.labels,
            from: receive::vertices(request.from)?,
            given: given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
            lists,
            limits: request.limits.into(),
        })
    }
}

impl From<JobInfo> for v1::Job {
    fn from(info: JobInfo) -> Self {
        let state = match info.state {
            JobState::Waiting => v1::JobState::Waiting,
            JobState::Running => v1::JobState::Running,
            JobState::Done => v1::JobState::Done,
            JobState::Failed => v1::JobState::Failed,
            JobState::Cancelled => v1::JobState::Cancelled,
        };
        let hint = info.failure.as_ref().map(|failure| failure.reason.hint().to_owned());
        Self {
            id: info.id,
            graph: info.graph.name,
            version: info.graph.version,
            algorithm: number(info.algorithm),
            value: info.algorithm.value.unwrap_or_default().to_owned(),
            state: state.into(),
            submitted_unix_ms: info.submitted_unix_ms,
            started_unix_ms: info.started_unix_ms,
            ended_unix_ms: info.ended_unix_ms,
            forgotten_unix_ms: info.forgotten_unix_ms,
            vertices: info.vertices,
            superstep: info.superstep,
            changed: info.changed,
            residual: info.residual,
            streamed: info.streamed,
            triangles: info.triangles,
            figures: info.figures.into_iter().map(|(name, number)| (name.to_owned(), number)).collect(),
            cost: Some(info.cost.into()),
            memory_bytes: info.memory_bytes,
            has_result: info.has_result,
            failure: info.failure.as_ref().map(Into::into),
            hint: hint.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_has_a_number_on_the_wire() {
        for spec in registry::ALGORITHMS {
            assert_ne!(number(spec), 0, "{} is missing in jobs.proto", spec.name);
            assert_eq!(algorithm(number(spec)), Some(*spec));
        }
    }

    #[test]
    fn every_option_has_a_field_on_the_wire() {
        let request = v1::StartJobRequest {
            algorithm: v1::Algorithm::Pagerank.into(),
            weight: Some("km".into()),
            iterations: Some(2),
            damping: Some(0.5),
            tolerance: Some(0.25),
            sample: Some(3),
            seed: Some(4),
            resolution: Some(1.5),
            ..Default::default()
        };
        let query = JobRequest::try_from(request).unwrap();
        for option in registry::ALGORITHMS.iter().flat_map(|spec| spec.options) {
            // The field `from` has them.
            if option.kind.is_vertices() {
                continue;
            }
            let given = query.given.iter().find(|(name, _)| *name == option.name);
            let (_, value) = given.unwrap_or_else(|| panic!("{} is missing in jobs.proto", option.name));
            assert!(option.kind.contains(value), "{} has another type in jobs.proto: {value}", option.name);
        }
    }
}
