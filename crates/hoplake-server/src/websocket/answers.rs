//! From results to messages.
//!
//! Messages 206 have a batch of results each, and 200 is the last; without results there is 204 alone. The last is only known to be
//! it when the query has ended and what it changed is committed, so a batch is kept back until there is more.

use std::{collections::VecDeque, sync::Arc};

use axum::body::Bytes;
use futures::{FutureExt, future::BoxFuture};
use hoplake::{
    MemoryBudget, MemoryHold,
    gremlin::{
        message::Response,
        value::{Traverser, Value},
        value_bytes,
    },
};
use hoplake_doors::Exchange;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::requests::{Encoding, Malformed, write};
use crate::{
    calls::{GremlinOptions, GremlinSink, ResultValues},
    failure::{Failure, Reason},
};

/// Messages beyond this size are divided, down to single results: drivers take 10 MiB by default.
const MESSAGE_BYTES: usize = 1 << 20;

/// A message that is ready to leave, with what it holds until it has left.
pub(super) struct Outgoing {
    pub(super) bytes: Bytes,
    pub(super) is_text: bool,
    _hold: Option<MemoryHold>,
    _visit: Option<Arc<Exchange>>,
}

/// Sends the responses to a request.
pub(super) struct ResponseSink {
    pub(super) id: Uuid,
    pub(super) encoding: Encoding,
    pub(super) options: GremlinOptions,
    pub(super) memory: MemoryBudget,
    pub(super) exchange: Arc<Exchange>,
    pub(super) outlet: mpsc::Sender<Outgoing>,
    pub(super) queue: Queue,
    /// The last messages, when they are ready.
    pub(super) rest: Option<Vec<Message>>,
}

/// An encoded response, and whether it is the last.
type Message = (Vec<u8>, bool);

/// Results that wait.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The first result, of which some were taken.
    first: Option<(Value, u64)>,
    rest: VecDeque<ResultValues>,
    /// How many they are, as they will be counted in a message.
    len: u64,
    /// Their memory, from one delivery to the next.
    hold: Option<MemoryHold>,
}

impl Queue {
    fn extend(&mut self, results: ResultValues, is_bulked: bool) {
        let count = |bulk: u64| if is_bulked { 1 } else { bulk };
        let more = results.as_slice().iter().fold(0, |sum: u64, (_, bulk)| sum.saturating_add(count(*bulk)));
        self.len = self.len.saturating_add(more);
        self.rest.push_back(results);
    }

    /// Bytes of values that are not the cache's.
    fn bytes(&self) -> u64 {
        let first = self.first.as_ref().map_or(0, |(value, _)| value_bytes(value) as u64);
        first + self.rest.iter().map(ResultValues::own_bytes).sum::<u64>()
    }

    fn next(&mut self) -> Option<(Value, u64)> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            match self.rest.front_mut()?.next() {
                Some(result) => return Some(result),
                None => drop(self.rest.pop_front()),
            }
        }
    }

    /// The next results, `most` of them at most, as they are in a message.
    fn take(&mut self, most: usize, is_bulked: bool) -> Vec<Value> {
        let mut taken = Vec::with_capacity(most.min(usize::try_from(self.len).unwrap_or(most)));
        while taken.len() < most
            && let Some((value, bulk)) = self.next()
        {
            if is_bulked {
                taken.push(Value::Traverser(Box::new(Traverser { value, bulk })));
                self.len -= 1;
                continue;
            }
            let times = bulk.min((most - taken.len()) as u64);
            self.len = self.len.saturating_sub(times);
            if times < bulk {
                taken.extend(std::iter::repeat_n(&value, times as usize).cloned());
                self.first = Some((value, bulk - times));
            } else {
                taken.extend(std::iter::repeat_n(value, times as usize));
            }
        }
        taken
    }
}

impl ResponseSink {
    /// Sends the rest, which is prepared. Everything has been done by now.
    pub(super) async fn finish(&mut self) {
        for (bytes, is_last) in self.rest.take().unwrap_or_default() {
            if let Err(failure) = self.hand(bytes, is_last).await {
                return self.fail(&failure).await;
            }
        }
    }

    /// Sends a failure.
    pub(super) async fn fail(&mut self, failure: &Failure) {
        if let Ok(bytes) = write(&rejection(Some(self.id), failure), self.encoding.codec) {
            // No result: the call has its line in the log, and a client that has left needs nothing.
            let _ = self.hand(bytes, true).await;
        }
    }

    /// Encodes results, in several messages if they are large. The last has this status.
    fn encode(&self, results: Vec<Value>, status: i32, messages: &mut Vec<Message>) -> Result<(), Failure> {
        let mut response = bare_response(self.id, status);
        response.data = Value::List(results);
        let bytes = write(&response, self.encoding.codec).map_err(|why| {
            let failure = Failure::invalid(format!("the results cannot be sent: {why}"));
            Failure { cause: Some(hoplake::Reason::Query), ..failure }
        })?;
        match response.data {
            Value::List(mut results) if bytes.len() > MESSAGE_BYTES && results.len() > 1 => {
                drop(bytes);
                let rest = results.split_off(results.len() / 2);
                self.encode(results, 206, messages)?;
                self.encode(rest, status, messages)
            }
            _ => {
                messages.push((bytes, status != 206));
                Ok(())
            }
        }
    }

    async fn hand(&mut self, bytes: Vec<u8>, is_last: bool) -> Result<(), Failure> {
        let hold = match self.memory.hold(bytes.len() as u64) {
            Ok(hold) => Some(hold),
            // What the query changed is committed, so its client has to learn of it.
            Err(_) if is_last => None,
            Err(full) => return Err(full.into()),
        };
        let outgoing = Outgoing {
            bytes: bytes.into(),
            is_text: self.encoding.is_text,
            _hold: hold,
            _visit: Some(self.exchange.clone()),
        };
        let gone = |_| Failure::new(Reason::ShuttingDown, "the client has disconnected");
        self.outlet.send(outgoing).await.map_err(gone)?;
        // Encoding is work: others have their turn between two messages.
        tokio::task::yield_now().await;
        Ok(())
    }
}

impl GremlinSink for ResponseSink {
    fn put(&mut self, results: ResultValues) -> BoxFuture<'_, Result<(), Failure>> {
        async move {
            let GremlinOptions { batch, is_bulked, .. } = self.options;
            self.queue.extend(results, is_bulked);
            while self.queue.len > batch as u64 {
                let batch = self.queue.take(batch, is_bulked);
                let mut messages = Vec::new();
                self.encode(batch, 206, &mut messages)?;
                for (bytes, is_last) in messages {
                    self.hand(bytes, is_last).await?;
                }
            }
            // While these are delivered, they count for who delivers them.
            self.queue.hold = None;
            self.queue.hold = Some(self.memory.hold(self.queue.bytes())?);
            Ok(())
        }
        .boxed()
    }

    fn prepare(&mut self) -> Result<(), Failure> {
        if self.rest.is_some() {
            return Ok(());
        }
        let rest = self.queue.take(self.options.batch, self.options.is_bulked);
        let mut messages = Vec::new();
        if rest.is_empty() {
            let bytes = write(&bare_response(self.id, 204), self.encoding.codec).unwrap_or_default();
            messages.push((bytes, true));
        } else {
            self.encode(rest, 200, &mut messages)?;
        }
        self.rest = Some(messages);
        Ok(())
    }
}

/// A response of a status alone.
fn bare_response(id: Uuid, status: i32) -> Response {
    let attributes = Vec::new();
    let meta = Vec::new();
    Response { request_id: Some(id), status, message: None, attributes, data: Value::Null, meta }
}

/// The response to a request that failed.
pub(super) fn rejection(id: Option<Uuid>, failure: &Failure) -> Response {
    let (status, exception) = failure.gremlin();
    of_status(id, status, &failure.message, exception)
}

/// The response of a status that is an error.
fn of_status(id: Option<Uuid>, status: i32, message: &str, exception: &str) -> Response {
    let attributes = vec![
        ("exceptions".into(), Value::List(vec![exception.into()])),
        ("stackTrace".into(), Value::Text(format!("{exception}: {message}").into())),
    ];
    Response { request_id: id, status, message: Some(message.into()), attributes, data: Value::Null, meta: Vec::new() }
}

/// A message that is ready to leave; of a response without results, which can always be written.
pub(super) fn outgoing(response: &Response, encoding: Encoding) -> Option<Outgoing> {
    let bytes = write(response, encoding.codec).ok()?;
    Some(Outgoing { bytes: bytes.into(), is_text: encoding.is_text, _hold: None, _visit: None })
}

/// The response to a malformed request.
pub(super) fn malformed(malformed: &Malformed) -> Option<Outgoing> {
    rejected(malformed.id, malformed.encoding, 498, &format!("this is no request: {}", malformed.why))
}

/// A response with the status of an error.
pub(super) fn rejected(id: Option<Uuid>, encoding: Encoding, status: i32, message: &str) -> Option<Outgoing> {
    let exception = if status == 401 { "hoplake.UnauthenticatedException" } else { "hoplake.RequestException" };
    outgoing(&of_status(id, status, message, exception), encoding)
}

/// A response without results: 204, or the challenge 407.
pub(super) fn bare(id: Uuid, encoding: Encoding, status: i32) -> Option<Outgoing> {
    outgoing(&bare_response(id, status), encoding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_repeated_or_bulked() {
        let results = |results: &[(&str, u64)]| {
            let values: Vec<_> = results.iter().map(|(text, bulk)| (Value::from(*text), *bulk)).collect();
            ResultValues::Own(values.into_iter())
        };
        let mut queue = Queue::default();
        queue.extend(results(&[("a", 3), ("b", 1)]), false);
        assert_eq!(queue.len, 4);
        assert_eq!(queue.take(2, false), [Value::from("a"), "a".into()]);
        assert_eq!((queue.take(9, false), queue.len), (vec!["a".into(), "b".into()], 0));
        queue.extend(results(&[("a", 3), ("b", 1)]), true);
        let bulked = queue.take(9, true);
        assert!(matches!(&bulked[0], Value::Traverser(first) if first.bulk == 3));
        assert_eq!((bulked.len(), queue.len), (2, 0));
        queue.extend(results(&[("a", u64::MAX), ("b", u64::MAX)]), false);
        assert_eq!((queue.len, queue.take(3, false).len()), (u64::MAX, 3));
    }
}
