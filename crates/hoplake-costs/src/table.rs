//! The dated price table of instances.

use std::path::Path;

use serde::Deserialize;
use thiserror::Error;

/// An instance that can be rented.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Its name, such as `m6id.24xlarge`.
    pub name: String,
    /// Its processors.
    pub vcpus: u32,
    /// What it costs, in US dollars.
    pub usd_per_hour: f64,
    /// Graph accesses a second that it serves from an object store; `None` if it is not used for that.
    #[serde(default)]
    pub object_accesses_per_second: Option<f64>,
    /// What its disks hold, in GB (10⁹ bytes); `None` if it has none.
    #[serde(default)]
    pub disk_gb: Option<f64>,
    /// Graph accesses a second that it serves from its disks, where that was measured.
    #[serde(default)]
    disk_accesses_per_second: Option<f64>,
}

/// Instances and their prices, with the day on which they were read.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceTable {
    /// The day on which the prices were read.
    pub as_of: String,
    /// Where prices and rates are from.
    pub source: String,
    /// Accesses a second from disks, for each processor of an instance that was not measured itself.
    disk_accesses_per_second_per_vcpu: f64,
    /// The instances.
    #[serde(rename = "instance")]
    pub instances: Vec<Instance>,
}

/// Why a price table was not taken.
#[derive(Debug, Error)]
pub enum TableError {
    /// It could not be read.
    #[error("could not read {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// It is not of the shape of the shipped one.
    #[error("line {line}: {message}")]
    Shape {
        /// Where, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// A number cannot be.
    #[error("{0}: prices, sizes and rates must be above 0")]
    Value(String),
}

impl InstanceTable {
    /// The table that is shipped.
    pub fn shipped() -> Self {
        Self::parse(include_str!("../instances.toml")).expect("the shipped table is valid")
    }

    /// The two instances of the study whose model this is, at its rounded prices.
    pub fn study() -> Self {
        Self::parse(include_str!("../study.toml")).expect("the shipped table is valid")
    }

    /// The table in a file of the shape of the shipped `instances.toml`.
    ///
    /// # Errors
    /// [`TableError`] if it cannot be read, has another shape, or a number in it cannot be.
    pub fn read(file: &Path) -> Result<Self, TableError> {
        let text = std::fs::read_to_string(file)
            .map_err(|source| TableError::Read { file: file.display().to_string(), source })?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, TableError> {
        let table: Self = toml::from_str(text).map_err(|error| misshapen(text, &error))?;
        let positive = |number: f64| number.is_finite() && number > 0.0;
        if !positive(table.disk_accesses_per_second_per_vcpu) {
            return Err(TableError::Value("disk_accesses_per_second_per_vcpu".into()));
        }
        let valid = |instance: &Instance| {
            let known = [instance.object_accesses_per_second, instance.disk_gb, instance.disk_accesses_per_second];
            positive(instance.usd_per_hour) && instance.vcpus > 0 && known.into_iter().flatten().all(positive)
        };
        match table.instances.iter().find(|instance| !valid(instance)) {
            Some(wrong) => Err(TableError::Value(wrong.name.clone())),
            None => Ok(table),
        }
    }

    /// Graph accesses a second that an instance of this table serves from its disks.
    pub fn disk_accesses_per_second(&self, instance: &Instance) -> f64 {
        let assumed = f64::from(instance.vcpus) * self.disk_accesses_per_second_per_vcpu;
        instance.disk_accesses_per_second.unwrap_or(assumed)
    }

    /// The same table, in which every instance that serves from an object store serves `rate` accesses a
    /// second: a rate that was measured.
    pub fn with_object_accesses_per_second(mut self, rate: f64) -> Self {
        for served in self.instances.iter_mut().filter_map(|instance| instance.object_accesses_per_second.as_mut()) {
            *served = rate;
        }
        self
    }
}

/// The parser's error as one sentence: its own text draws the position on several lines.
fn misshapen(text: &str, error: &toml::de::Error) -> TableError {
    let until = error.span().map_or(0, |span| span.start);
    let line = 1 + text.bytes().take(until).filter(|byte| *byte == b'\n').count();
    TableError::Shape { line, message: error.message().replace('\n', " ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_without_a_rate_has_that_of_its_processors() {
        let table = InstanceTable::shipped();
        let rate = |name| {
            let instance = table.instances.iter().find(|instance| instance.name == name).unwrap();
            table.disk_accesses_per_second(instance)
        };
        assert_eq!((rate("m6id.24xlarge"), rate("i3en.2xlarge")), (50_000.0, 8.0 * 520.8));
    }

    #[test]
    fn a_table_that_cannot_be_is_rejected_by_name() {
        let shipped = include_str!("../instances.toml");
        for (from, to, words) in [
            ("usd_per_hour = 0.2496", "usd_per_hour = 0", "c7gn.xlarge"),
            ("disk_gb = 118", "disk_gb = -1", "m6id.large"),
            ("disk_gb = 118", "disk = 118", "unknown field `disk`"),
            ("vcpus = 4", "", "line 13: missing field `vcpus`"),
        ] {
            let error = InstanceTable::parse(&shipped.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(words), "{to}: {error}");
        }
        assert!(InstanceTable::read(Path::new("/no/table")).unwrap_err().to_string().contains("/no/table"));
    }
}
