//! What the fuzz targets share: a bound on memory, what counts as a crash, and where seeds go. `docs/fuzzing.md` says how to
//! run them.
//!
//! Every target asserts more than that nothing panics. That a decoder never allocates by what a header claims is such an
//! assertion: all allocations of a target go through [`MEMORY`], and within [`bounded`] one that passes the bound of its input
//! ends the process, which the fuzzer reports like any other crash.

pub mod folder;
pub mod golden;
pub mod made;
pub mod serving;

use std::{alloc::System, fmt::Write, fs, panic, path::Path};

use cap::Cap;

/// What a target has allocated, and what it may.
#[global_allocator]
pub static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// Runs a target on one input, which may take `bytes` of memory beyond what is allocated now.
pub fn bounded<T>(bytes: usize, run: impl FnOnce() -> T) -> T {
    let limit = MEMORY.allocated().saturating_add(bytes);
    MEMORY.set_limit(limit).expect("the limit is above what is allocated");
    let outcome = run();
    MEMORY.set_limit(usize::MAX).expect("no limit is above all");
    outcome
}

/// What every target begins with: says which panics end the process.
///
/// Those of the libraries that decode Parquet do not: the engine turns them into errors (`hoplake_format::pages::guarded`), and
/// one that it does not catch ends the target all the same. Any other ends the process where it happens.
pub fn begin() {
    const DECODERS: [&str; 4] = ["/parquet-", "/arrow-", "/bytes-", "/snap-"];
    let end = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let place = info.location().map_or("", |place| place.file());
        if !DECODERS.iter().any(|name| place.contains(name)) {
            // What is said of it takes memory, too.
            let _ = MEMORY.set_limit(usize::MAX);
            end(info);
        }
    }));
}

/// Writes seeds into the folder that `HOPLAKE_FUZZ_SEEDS` names, if it names one: those that a program makes more easily than
/// a person keeps them.
pub fn seeds<S: AsRef<[u8]>>(seeds: impl IntoIterator<Item = S>) {
    let Some(folder) = std::env::var_os("HOPLAKE_FUZZ_SEEDS") else { return };
    for (number, seed) in seeds.into_iter().enumerate() {
        let mut name = String::from("made-");
        write!(name, "{number:03}").expect("a string takes all that is written to it");
        fs::write(Path::new(&folder).join(name), seed).expect("the folder of seeds is there");
    }
}
