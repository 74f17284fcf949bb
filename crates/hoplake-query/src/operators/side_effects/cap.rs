//! What was collected.

use crate::{operators::prelude::*, value::value_bytes};

/// The side effects of names.
#[derive(Debug, Clone, PartialEq)]
pub struct Cap {
    /// The names.
    pub names: Vec<Name>,
}

impl Operator for Cap {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.names.join(", "))
    }

    fn is_barrier(&self) -> bool {
        true
    }

    fn reads_names(&self) -> &[Name] {
        &self.names
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for Cap {
    async fn all(&self, run: &mut Run, _: Batch, frames: &Frames) -> Done<Output> {
        let value = run.capped(&self.names).await?;
        let values = run.growth.copies(&value, value_bytes(&value), frames.len())?;
        run.begun(frames.iter().copied().zip(values).collect())
    }
}

impl Run {
    async fn capped(&mut self, names: &[Name]) -> Done<Value> {
        if let [name] = names {
            let value = self.side_effect(name).await?;
            return value.ok_or_else(|| {
                QueryError::wrong_type(format!(
                    "The side-effect key does not exist in the side-effects: {name}; a step before collects under it, as \
                     `aggregate({name:?})` does, or `withSideEffect({name:?}, …)` begins with it"
                ))
            });
        }
        // Of several, those that there are.
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            if let Some(value) = self.side_effect(name).await? {
                entries.push((Value::from(&**name), value));
            }
        }
        Ok(Value::Map(entries))
    }
}
