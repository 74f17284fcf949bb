//! Other formats of graphs, which would pass for lists of edges: their lines have two or three numbers, too, but some of these are sizes.
//!
//! Read as edges, a line of sizes would be an edge between two vertices that do not exist. So these formats are recognised by how they
//! begin, and rejected by name.

use std::io::{BufRead, BufReader, Read};

use super::files::{SourceFile, Tabs};
use crate::IngestError;

/// So much of a file is looked at: comments may precede what tells.
const HEAD_BYTES: u64 = 16 << 10;

/// Rejects a file that is in one of these formats.
pub(super) fn reject(file: &SourceFile) -> Result<(), IngestError> {
    let head = file.open_text(Default::default(), Tabs::ToSpaces)?.take(HEAD_BYTES);
    let mut lines = Vec::new();
    for line in BufReader::new(head).split(b'\n') {
        lines.push(String::from_utf8_lossy(&line.map_err(|error| file.failed(error))?).into_owned());
    }
    match format_of(lines.iter().map(|line| line.trim_start_matches('\u{feff}').trim())) {
        Some((name, instead)) => Err(file.layout(format!("is {name}, which cannot be loaded as it is; {instead}"))),
        None => Ok(()),
    }
}

/// Rejects a file whose numbers of vertices and of neighbours are those that its first line announces, as METIS has them.
///
/// The lines of such a file have the neighbours of one vertex each. If all vertices have the same number, they look like edges.
pub(super) fn reject_adjacency(file: &SourceFile, first: &[String], rows: u64, fields: u64) -> Result<(), IngestError> {
    let number = |at: usize| first.get(at).and_then(|field| field.parse::<u64>().ok());
    match (number(0), number(1)) {
        (Some(vertices), Some(edges)) if rows > 0 && rows == vertices && edges.checked_mul(2) == Some(fields) => {
            Err(file.layout(format!(
                "is a METIS graph, which cannot be loaded as it is: its first line has the numbers of vertices and edges, \
                 and each line after it the neighbours of a vertex; {AS_EDGES}"
            )))
        }
        _ => Ok(()),
    }
}

const AS_EDGES: &str = "write one edge a line, without a line of sizes";

/// The format that lines without white space around them are in, and what to do about it.
fn format_of<'a>(lines: impl Iterator<Item = &'a str> + Clone) -> Option<(&'static str, &'static str)> {
    let begins = |line: &str, word: &str| line.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word));
    let mut filled = lines.filter(|line| !line.is_empty());
    let first = filled.clone().next()?;
    for (beginning, name, instead) in [
        (
            "%%MatrixMarket",
            "a Matrix Market file",
            "remove its header and the line of sizes after it; of a symmetric matrix, write each entry in both directions",
        ),
        ("*Vertices", "a Pajek network", AS_EDGES),
        ("*Network", "a Pajek network", AS_EDGES),
        ("*Arcs", "a Pajek network", AS_EDGES),
        ("*Edges", "a Pajek network", AS_EDGES),
        ("*Matrix", "a Pajek network", AS_EDGES),
        ("dl n", "a UCINET DL file", AS_EDGES),
        ("dl nr", "a UCINET DL file", AS_EDGES),
        ("LEDA.GRAPH", "a LEDA graph", AS_EDGES),
        ("AdjacencyGraph", "a Ligra graph", AS_EDGES),
        ("WeightedAdjacencyGraph", "a Ligra graph", AS_EDGES),
        (">>graph6<<", "a graph6 file", AS_EDGES),
        (">>sparse6<<", "a sparse6 file", AS_EDGES),
        ("<?xml", "XML", "convert GraphML or GEXF to CSV or Parquet, and write a mapping"),
        ("<graphml", "GraphML", "convert it to CSV or Parquet, and write a mapping"),
    ] {
        if begins(first, beginning) {
            return Some((name, instead));
        }
    }
    let words = |line: &'a str| line.split_ascii_whitespace();
    if let ["graph" | "digraph" | "strict", rest @ ..] = &words(first).collect::<Vec<_>>()[..]
        && rest.last().is_some_and(|last| last.ends_with(['{', '[']))
    {
        return Some(("a GML or DOT file", AS_EDGES));
    }
    // DIMACS: comments, then the problem with its sizes, then lines that begin with what they are.
    let problem = filled.find(|line| words(line).next() != Some("c"))?;
    match &words(problem).collect::<Vec<_>>()[..] {
        ["p", _, sizes @ ..] if !sizes.is_empty() && sizes.iter().all(|size| size.parse::<u64>().is_ok()) => {
            let instead = "write its lines e and a without their first letter, and no line p";
            Some(("a DIMACS graph", instead))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_with_sizes_are_named_and_lists_of_edges_are_not() {
        let name = |text: &str| format_of(text.lines().map(str::trim)).map(|(name, _)| name);
        for (text, expected) in [
            ("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n", "a Matrix Market file"),
            ("%%matrixmarket matrix array real general\n2 2\n1\n2\n", "a Matrix Market file"),
            ("*Vertices 3\n1 \"a\"\n*Arcs\n1 2 1\n", "a Pajek network"),
            ("*vertices 3\r\n", "a Pajek network"),
            ("c a graph\nc\np edge 3 2\ne 1 2\ne 2 3\n", "a DIMACS graph"),
            ("p sp 3 2\na 1 2 5\n", "a DIMACS graph"),
            ("dl n=3 format=edgelist1\n", "a UCINET DL file"),
            ("LEDA.GRAPH\nstring\n", "a LEDA graph"),
            ("AdjacencyGraph\n3\n2\n", "a Ligra graph"),
            ("graph [\n  node [\n", "a GML or DOT file"),
            ("strict digraph g {\n a -> b\n", "a GML or DOT file"),
            ("<?xml version=\"1.0\"?>\n<graphml/>", "XML"),
        ] {
            assert_eq!(name(text), Some(expected), "{text:?}");
        }
        for text in [
            "# Directed graph (each unordered pair of nodes is saved once)\n# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\n1\t2\n",
            "% sym unweighted\n% 2 3 3\n1 2\n2 3\n",
            "p q\nq p\n",
            "c d\nd c\n",
            "graph theory\ntheory graph\n",
            "source,target\na,b\n",
            "",
        ] {
            assert_eq!(name(text), None, "{text:?}");
        }
    }
}
