//! Log-normal out-degrees.

use super::{Edge, SplitMix64};

/// The edges of a log-normal graph; see [`log_normal`].
#[derive(Debug, Clone)]
pub struct LogNormal {
    vertices: u64,
    mu: f64,
    sigma: f64,
    source: u64,
    degree_left: u64,
    random: SplitMix64,
}

/// A graph whose out-degrees are ⌊exp(`mu` + `sigma` · N(0, 1))⌋, at most the number of vertices,
/// and whose targets are uniform, as in the synthetic graphs of Pregel (Malewicz et al., SIGMOD
/// 2010: μ 4, σ 1.3, mean 127). Edges come by ascending source; targets are in no order, and may
/// repeat or be the source.
pub fn log_normal(vertices: u64, mu: f64, sigma: f64, seed: u64) -> LogNormal {
    let mut graph = LogNormal { vertices, mu, sigma, source: 0, degree_left: 0, random: SplitMix64::new(seed) };
    graph.degree_left = graph.draw_degree();
    graph
}

impl LogNormal {
    /// How many vertices there are, those without an edge included.
    pub fn vertices(&self) -> u64 {
        self.vertices
    }

    fn draw_degree(&mut self) -> u64 {
        let degree = (self.mu + self.sigma * self.random.normal()).exp();
        (degree as u64).min(self.vertices)
    }
}

impl Iterator for LogNormal {
    type Item = Edge;

    fn next(&mut self) -> Option<Edge> {
        while self.degree_left == 0 {
            if self.source + 1 >= self.vertices {
                return None;
            }
            self.source += 1;
            self.degree_left = self.draw_degree();
        }
        self.degree_left -= 1;
        Some((self.source, self.random.below(self.vertices)))
    }
}

#[cfg(test)]
mod tests {
    use super::log_normal;

    #[test]
    fn the_mean_degree_is_that_of_the_distribution() {
        let edges = log_normal(20_000, 4.0, 1.3, 5).count() as f64;
        // exp(μ + σ²/2) = 127.1, less half for rounding down.
        assert!((edges / 20_000.0 - 126.6).abs() < 6.0, "{}", edges / 20_000.0);
    }

    #[test]
    fn sources_ascend_and_no_vertices_means_no_edges() {
        assert!(log_normal(1_000, 2.0, 1.0, 1).map(|(source, _)| source).is_sorted());
        assert_eq!(log_normal(0, 2.0, 1.0, 1).next(), None);
    }
}
