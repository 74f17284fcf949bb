//! Resident memory of processes through a run: whether it stays flat.
//!
//! A process fills its caches first, so the second quarter of the run is held against the last one, each by its median:
//! a peak is not a leak, and a lasting one shows in the median.

use std::{
    collections::BTreeMap,
    fs,
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

use anyhow::ensure;
use hoplake_testkit::clock::median;
use tokio::time::sleep;

/// How much more the last quarter may have than the second, in hundredths of it, and in bytes.
const GROWTH_PERCENT: u64 = 20;
const GROWTH_BYTES: u64 = 32 << 20;

/// Fewer samples of a process prove nothing.
const SAMPLES_MIN: usize = 8;

/// Between two samples.
const INTERVAL: Duration = Duration::from_millis(500);

/// Processes whose memory is noted, each under a name that its successor has, too.
#[derive(Debug, Default)]
pub(super) struct Watch {
    process_ids: Mutex<BTreeMap<String, u32>>,
    memory: Mutex<Memory>,
}

impl Watch {
    /// From now on this process has the name.
    pub(super) fn name(&self, name: String, process_id: u32) {
        self.process_ids.lock().expect("no thread panics with the names").insert(name, process_id);
    }

    /// What was noted.
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().expect("no thread panics with the memory")
    }

    /// Notes the memory of all every half second until the run ends.
    pub(super) async fn go_on(&self, begun: Instant) {
        loop {
            let process_ids = self.process_ids.lock().expect("no thread panics with the names").clone();
            for (name, process_id) in process_ids {
                if let Some(bytes) = resident_bytes(process_id) {
                    self.memory().note(&name, begun.elapsed().as_secs_f64(), bytes);
                }
            }
            sleep(INTERVAL).await;
        }
    }
}

/// Resident memory of a process, in bytes; `None` if it has ended.
fn resident_bytes(process_id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process_id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

/// Samples of each process, or of all that had a role one after the other: the time in seconds, and bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory(BTreeMap<String, Vec<(f64, u64)>>);

impl Memory {
    pub(super) fn note(&mut self, name: &str, time_s: f64, bytes: u64) {
        self.0.entry(name.to_owned()).or_default().push((time_s, bytes));
    }

    /// A line for each process of a run that took so long.
    pub(super) fn lines(&self, time_s: f64) -> Vec<String> {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let line = |(name, samples): (&String, &Vec<(f64, u64)>)| {
            let peak = samples.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
            let quarters = match quarters(samples, time_s) {
                Some((second, last)) => format!("{:.1}, last quarter {:.1}", mib(second), mib(last)),
                None => "too few samples".to_owned(),
            };
            format!("memory of {name}, MiB: second quarter {quarters}, peak {:.1}", mib(peak))
        };
        self.0.iter().map(line).collect()
    }

    /// Whether no process grew.
    pub(super) fn check(&self, time_s: f64) -> anyhow::Result<()> {
        for (name, samples) in &self.0 {
            let Some((second, last)) = quarters(samples, time_s) else { continue };
            let most = second + second * GROWTH_PERCENT / 100 + GROWTH_BYTES;
            ensure!(last <= most, "the memory of {name} grew from {second} to {last} bytes; at most {most} is flat");
        }
        Ok(())
    }
}

/// The medians of the second and the last quarter of a run.
fn quarters(samples: &[(f64, u64)], time_s: f64) -> Option<(u64, u64)> {
    let between = |since: f64, until: f64| {
        let within = samples.iter().filter(|(time, _)| (since..until).contains(&(time / time_s)));
        let bytes: Vec<u64> = within.map(|(_, bytes)| *bytes).collect();
        if bytes.len() >= SAMPLES_MIN { median(bytes) } else { None }
    };
    Some((between(0.25, 0.5)?, between(0.75, f64::INFINITY)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: impl Fn(u64) -> u64) -> Memory {
        let mut memory = Memory::default();
        (0..100).for_each(|time| memory.note("it", time as f64, bytes(time)));
        memory
    }

    #[test]
    fn what_grows_is_told_from_what_fills_up_and_from_peaks() {
        let mib = 1 << 20;
        let full = of(|time| if time < 20 { time * 10 * mib } else { 200 * mib });
        full.check(100.0).unwrap();
        of(|time| if time % 10 == 0 { 900 * mib } else { 200 * mib }).check(100.0).unwrap();
        let error = of(|time| (100 + 5 * time) * mib).check(100.0).unwrap_err().to_string();
        assert!(error.contains("the memory of it grew"), "{error}");
        assert_eq!(full.lines(100.0), ["memory of it, MiB: second quarter 200.0, last quarter 200.0, peak 200.0"]);
        let few = Memory(BTreeMap::from([("it".to_owned(), vec![(1.0, 5)])]));
        few.check(100.0).unwrap();
        assert!(few.lines(100.0)[0].contains("too few samples"));
    }
}
