//! From the names of vertices to vertices.

use hoplake::{Condition, Graph, Held, Key, LabelId, Query, StartKey, VertexId};

use super::{Service, VertexName};
use crate::failure::{Failure, Reason};

/// A vertex that is known, or has still to be looked up; or all that match a condition.
#[derive(Debug, Clone)]
pub(super) enum ResolvedName {
    Vertex(VertexId),
    Key(String, Key),
    /// At least one.
    Matching(String, Condition),
}

impl ResolvedName {
    /// The vertex, if it is known.
    pub(super) fn id(&self) -> Option<VertexId> {
        if let Self::Vertex(vertex) = self { Some(*vertex) } else { None }
    }

    /// As the facade takes the starts of a complete traversal.
    pub(super) fn start(&self) -> Option<StartKey> {
        match self {
            Self::Vertex(_) => None,
            Self::Key(label, key) => Some(StartKey::key(label, key.to_string())),
            Self::Matching(label, condition) => Some(StartKey::such_that(label, condition.clone())),
        }
    }
}

/// The id of a vertex on the wire: its label in the upper 16 bits, its ordinal below.
pub(crate) fn raw_id(vertex: VertexId) -> u64 {
    u64::from(vertex.label().0) << 48 | vertex.ordinal()
}

/// The vertex of an id on the wire. Every 64 bits are one; whether the graph has it, `resolve` checks.
fn vertex_of(raw: u64) -> VertexId {
    let label = LabelId((raw >> 48) as u16);
    VertexId::new(label, raw & VertexId::ORDINAL_MAX).expect("48 bits are an ordinal")
}

/// Reads the id that JSON has: `3:17`.
pub(crate) fn parse_id(text: &str) -> Option<u64> {
    let (label, ordinal) = text.split_once(':')?;
    VertexId::new(LabelId(label.parse().ok()?), ordinal.parse().ok()?).map(raw_id)
}

impl Service {
    /// Rejects a request that names too many.
    pub(super) fn check_batch(&self, names: &[VertexName]) -> Result<(), Failure> {
        let most = self.settings.limits.batch_max;
        if names.len() > most {
            let message = format!("{} vertices are named, and a request may name {most}; send several", names.len());
            return Err(Failure::invalid(message));
        }
        Ok(())
    }
}

/// Holds names against the schema.
///
/// # Errors
/// [`Reason::NotFound`] if the label or position does not exist, [`Reason::Invalid`] if a key is of the wrong type.
pub(super) fn resolve(graph: &Graph, names: &[VertexName]) -> Result<Vec<ResolvedName>, Failure> {
    names.iter().map(|name| resolve_one(graph, name)).collect()
}

/// Of one name. Sends no request: mistakes in a request are found before it costs anything.
fn resolve_one(graph: &Graph, name: &VertexName) -> Result<ResolvedName, Failure> {
    match name {
        VertexName::Id(raw) => {
            let vertex = vertex_of(*raw);
            let count = graph.manifest().vertex_counts.get(usize::from(vertex.label().0));
            // Ids are valid within one version, so one that is out of range is likely to be of another; the message names the
            // version.
            if count.is_none_or(|count| vertex.ordinal() >= count.ordinals) {
                let message = format!("version {} of the graph has no vertex with id {vertex}", graph.version());
                return Err(Failure::new(Reason::NotFound, message));
            }
            Ok(ResolvedName::Vertex(vertex))
        }
        VertexName::Key(label, key) => {
            // The schema may lack the label: the look-up reports that.
            let known = graph.schema().vertex_labels.iter().find(|known| known.name == *label);
            if let Some(known) = known.filter(|known| known.key_type != key.key_type()) {
                let message = format!("keys of {label} are {}, but {key} is {}", known.key_type, key.key_type());
                return Err(Failure::invalid(message));
            }
            Ok(ResolvedName::Key(label.clone(), key.clone()))
        }
        // The scan checks both.
        VertexName::Matching(label, condition) => Ok(ResolvedName::Matching(label.clone(), condition.clone())),
        VertexName::Text(text) => {
            let (label, key) = match text.parse()? {
                StartKey::Key { label, key } => (label, key),
                StartKey::SuchThat { label, condition } => return Ok(ResolvedName::Matching(label, condition)),
            };
            let known = graph.schema().vertex_labels.iter().find(|known| known.name == label);
            // A label that does not exist has no type to read the key as; the look-up fails with its name and the known ones.
            let Some(known) = known else { return Ok(ResolvedName::Key(label, Key::String(key))) };
            let wrong = || {
                Failure::invalid(format!("{key:?} is not a valid key of {label}, whose keys are {}", known.key_type))
            };
            Ok(ResolvedName::Key(label.clone(), Key::parse(&key, known.key_type).ok_or_else(wrong)?))
        }
    }
}

/// The labels that these are of, as far as the graph has them.
pub(super) fn labels_of(query: &Query, named: &[ResolvedName]) -> Vec<LabelId> {
    let label = |named: &ResolvedName| match named {
        ResolvedName::Vertex(vertex) => Some(vertex.label()),
        ResolvedName::Key(label, _) | ResolvedName::Matching(label, _) => query.label_ids([label.as_str()]).pop(),
    };
    named.iter().filter_map(label).collect()
}

/// The vertices, in the order of their names; `None` where there is none. At most one wave.
///
/// # Errors
/// [`Reason::Invalid`] if a name is a condition, which may find any number.
pub(super) async fn find(query: &mut Query, named: &[ResolvedName]) -> Result<Vec<Option<VertexId>>, Failure> {
    let mut keys = Vec::new();
    for named in named {
        match named {
            ResolvedName::Vertex(_) => {}
            ResolvedName::Key(label, key) => keys.push((label.as_str(), key.clone())),
            ResolvedName::Matching(..) => {
                let message = "a condition names any number of vertices; a look-up names each by its key";
                return Err(Failure::invalid(message));
            }
        }
    }
    // Ids alone need no look-up, and so no wave.
    let found = if keys.is_empty() { Vec::new() } else { query.vertices(&keys).await? };
    let mut found = found.into_iter();
    let each = named.iter().map(|named| match named {
        ResolvedName::Vertex(vertex) => Some(*vertex),
        _ => found.next().flatten(),
    });
    Ok(each.collect())
}

/// The vertices, all of which must exist, and all that conditions find; those that are known first.
///
/// # Errors
/// [`Reason::NotFound`] that names the first that is not.
pub(super) async fn find_all(query: &mut Query, named: &[ResolvedName]) -> Result<Held<Vec<VertexId>>, Failure> {
    let known = named.iter().filter_map(ResolvedName::id);
    let starts: Vec<StartKey> = named.iter().filter_map(ResolvedName::start).collect();
    // Ids alone need no look-up, and so no wave.
    let found = if starts.is_empty() { Held::default() } else { query.start_vertices(&starts).await? };
    Ok(found.map(|found| known.chain(found).collect()))
}

/// The two ends of a path; a condition has to find one vertex.
///
/// # Errors
/// [`Reason::NotFound`] that names the first that is not there; [`Reason::Invalid`] if a condition finds more than one.
pub(super) async fn find_ends(query: &mut Query, named: &[ResolvedName]) -> Result<[VertexId; 2], Failure> {
    let starts: Vec<StartKey> = named.iter().filter_map(ResolvedName::start).collect();
    let found = if starts.is_empty() { Vec::new() } else { query.named(&starts).await? };
    let mut found = found.into_iter();
    let each = named.iter().filter_map(|named| match named {
        ResolvedName::Vertex(vertex) => Some(*vertex),
        _ => found.next(),
    });
    let ends: Vec<_> = each.collect();
    <[VertexId; 2]>::try_from(ends).map_err(|_| Failure::invalid("a path has two ends"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_and_read_alike() {
        let vertex = VertexId::new(LabelId(3), 17).unwrap();
        assert_eq!(vertex_of(raw_id(vertex)), vertex);
        assert_eq!(parse_id(&vertex.to_string()), Some(raw_id(vertex)));
        for wrong in ["", "3", "3:", ":3", "70000:1", "1:281474976710656", "1:-1", "a:b"] {
            assert_eq!(parse_id(wrong), None, "{wrong}");
        }
    }
}
