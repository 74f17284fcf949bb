//! One value of all rows.

use hoplake_storage::MemoryHold;

use crate::{
    operators::{of_frames, prelude::*, slots},
    plan::Reduction,
    run::reduce::Reduced,
    value::value_bytes,
};

/// One value of all rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Reduce {
    /// Which one.
    pub reduction: Reduction,
}

impl Operator for Reduce {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {:?}", self.reduction)
    }

    fn is_barrier(&self) -> bool {
        true
    }

    fn reach(&self, _: &mut Reach<'_>, _: Elements) -> Elements {
        Elements::default()
    }

    fn start(self: Arc<Self>) -> Running {
        Running::new(Reducing::new(self.reduction))
    }
}

/// What there is so far of each frame. Rows are not kept.
#[derive(Debug)]
pub(crate) struct Reducing {
    reduction: Reduction,
    /// The frames of the input; `None` once it has given something for them.
    frames: Option<Frames>,
    by_frame: Vec<Reduced>,
    hold: Option<MemoryHold>,
    bytes: u64,
}

impl Reducing {
    pub(crate) fn new(reduction: Reduction) -> Self {
        Self { reduction, frames: None, by_frame: Vec::new(), hold: None, bytes: 0 }
    }

    /// Adds a value that stands for several.
    pub(crate) fn add(&mut self, frame: u32, value: &Value, bulk: u64, run: &Run) -> Done<()> {
        let Some(frames) = &self.frames else { return Ok(()) };
        if self.by_frame.len() < slots(frames) {
            self.by_frame.resize_with(slots(frames), Reduced::default);
        }
        let of_frame = &mut self.by_frame[frame as usize];
        if self.reduction == Reduction::Count {
            return of_frame.add(self.reduction, &Value::Null, bulk);
        }
        self.bytes = self.bytes.saturating_sub(of_frame.bytes());
        // The least and the greatest are kept.
        if !matches!(value, Value::Number(_)) {
            run.growth.take(value_bytes(value))?;
        }
        of_frame.add(self.reduction, value, bulk)?;
        self.bytes += of_frame.bytes();
        Ok(())
    }
}

impl Stage for Reducing {
    fn begin(&mut self, frames: &Frames) {
        self.frames = Some(frames.clone());
    }

    fn input<'a>(&'a mut self, run: &'a mut Run, batch: Batch, _: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move {
            for (at, row) in batch.rows.iter().enumerate() {
                match self.reduction {
                    Reduction::Count => self.add(row.frame, &Value::Null, row.bulk, run)?,
                    _ => self.add(row.frame, &batch.items.get(at), row.bulk, run)?,
                }
            }
            run.growth.hand_over(&mut self.hold, self.bytes)
        })
    }

    fn finish<'a>(&'a mut self, run: &'a mut Run, _: Batch, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move {
            let Some(frames) = self.frames.take() else { return Ok(()) };
            self.by_frame.resize_with(slots(&frames), Reduced::default);
            let reduced = self.by_frame.drain(..).map(|it| it.finish(self.reduction));
            let values = reduced.collect::<Done<Vec<_>>>()?;
            self.bytes = 0;
            run.growth.absorb(self.hold.take());
            let values = of_frames(values, &frames).filter_map(|(frame, value)| Some((frame, value?)));
            out.push(run.begun(values.collect())?);
            Ok(())
        })
    }

    fn is_done(&self, _: bool) -> bool {
        self.frames.is_none()
    }
}
