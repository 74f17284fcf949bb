//! The graphs of the bucket: the first one, and those that began as a version of it.

/// The maximum number of graphs.
pub const GRAPHS_MAX: usize = 3;

/// A graph of the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GraphLocation(usize);

impl GraphLocation {
    /// The first graph, at the root of the bucket.
    pub const FIRST: Self = Self(0);

    /// The graph of a number, below [`GRAPHS_MAX`].
    pub fn numbered(number: usize) -> Self {
        Self(number)
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..GRAPHS_MAX).map(Self)
    }

    /// The graph that is cloned next, if there may be one more.
    pub fn next(self) -> Option<Self> {
        (self.0 + 1 < GRAPHS_MAX).then_some(Self(self.0 + 1))
    }

    /// Its number: 0 for the first.
    pub fn number(self) -> usize {
        self.0
    }

    /// Where it is in the bucket.
    pub fn prefix(self) -> String {
        if self == Self::FIRST { String::new() } else { format!("clone-{}", self.0) }
    }

    /// Where it is, in messages.
    pub fn url(self) -> String {
        format!("s3://simulation/{}", self.prefix()).trim_end_matches('/').to_owned()
    }

    /// The graph that an object of the bucket was written for, and its name there.
    pub fn of(name: &str) -> (Self, &str) {
        let clones = Self::all().skip(1);
        let below = |location: Self| Some((location, name.strip_prefix(&location.prefix())?.strip_prefix('/')?));
        clones.filter_map(below).next().unwrap_or((Self::FIRST, name))
    }

    /// The name in the bucket of an object that a version of this graph names.
    pub fn in_bucket(self, name: &str) -> String {
        match name.strip_prefix('/') {
            Some(from_root) => from_root.to_owned(),
            None if self == Self::FIRST => name.to_owned(),
            None => format!("{}/{name}", self.prefix()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_their_graph_and_back() {
        let clone = GraphLocation::FIRST.next().unwrap();
        for (name, location, below) in [
            ("manifest/1", GraphLocation::FIRST, "manifest/1"),
            ("clone-1/data/x", clone, "data/x"),
            ("clone-1x", GraphLocation::FIRST, "clone-1x"),
        ] {
            assert_eq!(GraphLocation::of(name), (location, below));
            assert_eq!(location.in_bucket(below), name);
        }
        assert_eq!(clone.in_bucket("/data/x"), "data/x");
    }
}
