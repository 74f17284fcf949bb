//! The extension is a library that any CPython from 3.10 on can load. The tests of what it does are in `python/tests`.

use std::{path::PathBuf, process::Command};

/// The library that was built with this test.
fn library() -> PathBuf {
    let folder = std::env::current_exe().expect("a test has a path").parent().expect("it is in a folder").to_owned();
    folder.join(format!("{}_hoplake{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX))
}

#[test]
fn an_interpreter_loads_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::copy(library(), folder.path().join("_hoplake.abi3.so")).expect("the library is next to the test");
    let program = "import _hoplake; print(_hoplake.__version__, len(_hoplake.algorithms()) > 10)";
    let output = Command::new("python3").current_dir(folder.path()).args(["-c", program]).output().expect("python3");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = format!("{} True\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(text, expected, "{}", String::from_utf8_lossy(&output.stderr));
}
