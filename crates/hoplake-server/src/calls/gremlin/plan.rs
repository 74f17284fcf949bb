//! Reads and plans scripts.

use hoplake::{
    ErrorKind, MemoryHold, QueryContext,
    gremlin::{
        Names, Plan, Transaction, block_in_place_if, is_large, parse_within, plan_within,
        script::{Script, Statement, Terminal, Transaction as Verb},
    },
};

use super::request::GremlinRequest;
use crate::{calls::call::Call, failure::Failure, limits::RequestedLimits};

/// What a statement does.
pub(super) enum Stage {
    /// What the plan takes is held until it runs, which holds it again.
    Run(Box<Plan>, Terminal, MemoryHold),
    Verb(Verb),
    Nothing,
}

impl Stage {
    fn writes(&self) -> bool {
        matches!(self, Self::Run(plan, ..) if plan.writes())
    }
}

/// Rejects changes on a server that does not write.
pub(super) fn check_writes(call: &Call, stages: &[Stage]) -> Result<(), Failure> {
    match stages.iter().any(Stage::writes) {
        true => call.service.check_writable(),
        false => Ok(()),
    }
}

/// The memory and the time that reading and planning a script may take: those of the call.
pub(crate) fn planning_context(call: &mut Call, limits: &RequestedLimits) -> QueryContext {
    call.limit_time(limits.time_ms);
    call.limit_time(call.service.settings.limits.time_ms);
    let context = QueryContext::within(&call.memory);
    call.limits(limits).apply(&context);
    context
}

/// Why a script was not read or planned. Its deadline may be one that the script itself sets, of which the call does not know yet.
pub(crate) fn planning_failure(call: &Call, context: &QueryContext, error: hoplake::Error) -> Failure {
    // What is wrong about a text is wrong at any time.
    let is_late = error.kind() == ErrorKind::Limit && context.check_time().is_err();
    if is_late { call.bounds.time_is_over() } else { error.into() }
}

/// Reads a text as a part of a call.
pub(crate) fn read_script(call: &mut Call, text: &str, limits: &RequestedLimits) -> Result<Script, Failure> {
    let context = planning_context(call, limits);
    parse_within(text, &context).map_err(|error| planning_failure(call, &context, error))
}

/// Plans all statements, before anything is done; those that call prepared queries on the graph of a transaction.
pub(super) fn stages(
    call: &mut Call,
    request: &GremlinRequest,
    transaction: Option<&Transaction>,
) -> Result<Vec<Stage>, Failure> {
    // A text of a megabyte may have a hundred thousand statements, none of which is large.
    block_in_place_if(is_large(&request.script), || {
        request.script.statements.iter().map(|statement| stage(call, request, statement, transaction)).collect()
    })
}

fn stage(
    call: &mut Call,
    request: &GremlinRequest,
    statement: &Statement,
    transaction: Option<&Transaction>,
) -> Result<Stage, Failure> {
    let (traversal, terminal) = match statement {
        Statement::Traversal(traversal, terminal) => (traversal, *terminal),
        Statement::Transaction(verb) => return Ok(Stage::Verb(*verb)),
        Statement::Nothing => return Ok(Stage::Nothing),
    };
    let names = Names(&request.names);
    let context = planning_context(call, &request.limits);
    let plan = match transaction {
        Some(transaction) => transaction.plan_within(traversal, names, &context),
        None => plan_within(traversal, names, &context),
    };
    let plan = plan.map_err(|error| planning_failure(call, &context, error))?;
    call.limit_time(plan.settings.timeout_ms.unwrap_or(0));
    call.bounds.check()?;
    let hold = call.memory.hold(plan.settings.plan_bytes)?;
    Ok(Stage::Run(Box::new(plan), terminal, hold))
}
