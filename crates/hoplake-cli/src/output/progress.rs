//! Progress on a terminal; nothing anywhere else.

use std::{
    io::{IsTerminal, stderr},
    sync::Mutex,
    time::Duration,
};

use hoplake::{LoadPhase, LoadProgress};
use indicatif::{ProgressBar, ProgressStyle};

const BYTES: &str = "{msg:<18} [{bar:30}] {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}";
const ITEMS: &str = "{msg:<18} [{bar:30}] {human_pos}/{human_len} {per_sec} {eta}";
const UNKNOWN: &str = "{msg:<18} {spinner} {human_pos} {per_sec}";

/// A bar of bytes, hidden unless standard error is a terminal.
pub fn bytes_bar(message: &'static str, total: u64) -> ProgressBar {
    bar(message, total, BYTES)
}

/// A bar of vertices and edges.
pub fn items_bar(message: &'static str, total: u64) -> ProgressBar {
    bar(message, total, ITEMS)
}

/// What a computation says of its last superstep.
pub fn supersteps() -> ProgressBar {
    bar("", 0, "{spinner} {msg} {elapsed}")
}

fn bar(message: &'static str, total: u64, template: &str) -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    // Without a total a bar would be full from the start.
    let template = if total == 0 && template == BYTES { UNKNOWN } else { template };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(total).with_style(style.progress_chars("=> ")).with_message(message);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// The bars of a load, one a step.
#[derive(Debug)]
pub struct LoadBars(Mutex<ProgressBar>);

impl LoadBars {
    /// No bar yet.
    pub fn new() -> Self {
        Self(Mutex::new(ProgressBar::hidden()))
    }

    fn current(&self) -> ProgressBar {
        self.0.lock().expect("no thread panics while it changes the bar").clone()
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.current().finish_and_clear();
    }
}

impl LoadProgress for LoadBars {
    fn begin(&self, step: LoadPhase, total: u64) {
        let next = match step {
            LoadPhase::Vertices => bar("reading vertices", total, BYTES),
            LoadPhase::Order => bar("ordering vertices", total, BYTES),
            LoadPhase::Edges => bar("reading edges", total, BYTES),
        };
        let last = std::mem::replace(&mut *self.0.lock().expect("no thread panics while it changes the bar"), next);
        last.finish_and_clear();
    }

    fn advance(&self, units: u64) {
        self.current().inc(units);
    }
}
