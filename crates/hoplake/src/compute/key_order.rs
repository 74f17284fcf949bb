//! The order of vertices by label and key, which decides wherever an algorithm has to choose.
//!
//! Ids within a version follow from the order in which the graph was loaded and changed. What depends on a choice among vertices (the
//! first label of a community, the number of a component, the vertices that a sample draws, the last of the top rows) is chosen by keys,
//! so that the same graph has the same results however it was loaded. Labels are in the order of their names.

use std::{
    cmp::Ordering,
    ops::{ControlFlow, Range},
    sync::Arc,
};

use hoplake_analytics::{kernels::sample_vertices, registry::Values};
use hoplake_engine::{DenseIds, EngineError, Held};
use hoplake_format::VertexId;

use super::Computed;
use crate::{Error, ErrorKind, Query};

impl Query {
    /// Visits the ids of all vertices that exist, by label and key, until a visit ends it. Reads keys alone, and nothing is kept.
    async fn in_key_order(
        &mut self,
        ids: &DenseIds,
        mut visit: impl FnMut(u32) -> ControlFlow<()>,
    ) -> Result<(), EngineError> {
        let snapshot = self.snapshot.clone();
        let name = |label| snapshot.schema().label(label).map(|label| &label.name);
        let mut labels: Vec<_> = ids.by_label().collect();
        labels.sort_unstable_by_key(|(label, _)| name(*label));
        let ahead_bytes = snapshot.ahead_bytes(self.branch.context());
        let mut pace = self.branch.context().pace();
        let mut keys = Vec::new();
        for (label, own) in labels {
            let mut scan = snapshot.scan_keys(label, ahead_bytes);
            while scan.next(&mut keys, &mut self.branch).await? {
                for (_, ordinal) in &keys {
                    let id = own.start + ordinal;
                    if own.contains(&id) && visit(id as u32).is_break() {
                        return Ok(());
                    }
                }
                pace.rest(keys.len() as u64 * 4).await?;
            }
        }
        Ok(())
    }

    /// The place of each vertex among all, by id. 4 bytes a vertex.
    pub(super) async fn key_places(&mut self, ids: &DenseIds) -> Result<Held<Vec<u32>>, EngineError> {
        self.key_places_in(ids, &(0..ids.len() as u32)).await
    }

    /// The place of each vertex of a range of ids among all. 4 bytes a vertex of the range; reads all keys.
    pub(super) async fn key_places_in(
        &mut self,
        ids: &DenseIds,
        range: &Range<u32>,
    ) -> Result<Held<Vec<u32>>, EngineError> {
        let memory = self.branch.context().hold(range.len() as u64 * 4)?;
        let mut places = vec![u32::MAX; range.len()];
        let mut next = 0;
        self.in_key_order(ids, |id| {
            if range.contains(&id) {
                places[(id - range.start) as usize] = next;
            }
            next += 1;
            ControlFlow::Continue(())
        })
        .await?;
        Ok(Held::new(places, memory))
    }

    /// Numbers components by the place of their first vertex. 4 bytes a vertex while it does.
    pub(super) async fn number_by_key(&mut self, computed: &mut Computed) -> Result<(), EngineError> {
        let _memory = self.branch.context().hold(computed.ids.len() * 4)?;
        let ids = computed.ids.clone();
        let mut numbers = vec![u32::MAX; ids.len() as usize];
        let Some(Values::Integers(values)) = computed.values.as_deref_mut() else { return Ok(()) };
        let mut next = 0;
        self.in_key_order(&ids, |id| {
            let value = &mut values[id as usize];
            let number = &mut numbers[*value as usize];
            *number = (*number).min(next);
            *value = *number;
            next += 1;
            ControlFlow::Continue(())
        })
        .await
    }

    /// The ids of a sample, ascending. `deleted` is the number of ids that are not vertices.
    pub(super) async fn sampled(
        &mut self,
        count: usize,
        seed: u64,
        ids: &DenseIds,
        deleted: usize,
    ) -> Result<Held<Vec<u32>>, EngineError> {
        let vertices = (ids.len() as usize - deleted) as u32;
        let mut sample = sample_vertices(vertices, &[], count, seed, self.branch.context())?;
        if sample.len() == vertices as usize {
            // All of them: which ids are not vertices is not known here.
            sample.clear();
            return Ok(sample);
        }
        let mut place = 0;
        let mut drawn = 0;
        self.in_key_order(ids, |id| {
            // What is before `drawn` are ids, and what is behind it are places.
            match sample.get_mut(drawn) {
                None => return ControlFlow::Break(()),
                Some(next) if *next == place => {
                    *next = id;
                    drawn += 1;
                }
                Some(_) => {}
            }
            place += 1;
            ControlFlow::Continue(())
        })
        .await?;
        sample.sort_unstable();
        Ok(sample)
    }

    /// The vertices with the least numbers of components and communities, levels and lengths, or with the greatest other values, of a
    /// computation on this version; vertices without a value come last, and equal ones are in the order of labels and keys. It takes up to
    /// 8 bytes a vertex of `most`, and as many for what it returns. Where values are equal their keys are read: of what is returned, and of
    /// all vertices up to the last that is, if others have the same value as the last.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) at a limit of the query; the store's.
    pub async fn top(&mut self, computed: &Arc<Computed>, most: usize) -> Result<Vec<VertexId>, Error> {
        let found = computed.clone();
        // It goes through all values at once, which is too long for a thread of queries.
        let top = tokio::task::spawn_blocking(move || found.leading(most)).await;
        let stopped = |error| Error::new(ErrorKind::Internal, format!("the order of values stopped: {error}"));
        let (mut ids, more) = top.map_err(stopped)?;
        let alike = |ids: &[u32], id: u32| ids.last().is_some_and(|last| computed.order(*last, id) == Ordering::Equal);
        if more {
            let last = ids.last().copied().into_iter().collect::<Vec<_>>();
            let firm = ids.partition_point(|id| !alike(&last, *id));
            let mut at = firm;
            self.in_key_order(&computed.ids, |id| {
                if alike(&last, id) {
                    ids[at] = id;
                    at += 1;
                }
                if at < ids.len() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .await?;
        }
        let vertices: Vec<_> = ids.iter().filter_map(|id| computed.ids.vertex((*id).into())).collect();
        if ids.windows(2).all(|pair| !alike(&pair[..1], pair[1])) {
            return Ok(vertices);
        }
        let keys = self.keys_of(&vertices).await?;
        let labels: Vec<_> = vertices.iter().map(|vertex| self.label_of(*vertex)).collect();
        let mut order: Vec<usize> = (0..vertices.len()).collect();
        order.sort_by(|a, b| {
            let by_key = || labels[*a].cmp(&labels[*b]).then_with(|| keys[*a].cmp(&keys[*b]));
            computed.order(ids[*a], ids[*b]).then_with(by_key)
        });
        Ok(order.into_iter().map(|at| vertices[at]).collect())
    }
}
