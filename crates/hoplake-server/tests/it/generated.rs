//! The code of the wire format: that which is checked in is that which the protos give.
//!
//! After a change of the protos, or of the crates that generate: `HOPLAKE_GENERATE=1 cargo test -p hoplake-server generated`.

use std::{env, fs, path::Path};

use prost::Message;

/// What is generated: the descriptors, with the comments, so that tools can show them by reflection; and the Rust.
const FILES: [&str; 2] = ["descriptors.bin", "hoplake.v1.rs"];

fn generate(protos: &Path, into: &Path) {
    let files = protox::compile(["hoplake/v1/graphs.proto", "hoplake/v1/blocks.proto"], [protos]).unwrap();
    fs::write(into.join(FILES[0]), files.encode_to_vec()).unwrap();
    // Clients work on any transport; those that connect bring their own.
    tonic_prost_build::configure()
        .bytes(".hoplake.v1.GetResponse")
        .bytes(".hoplake.v1.FetchResponse")
        .build_transport(false)
        .emit_rerun_if_changed(false)
        .out_dir(into)
        .compile_fds(files)
        .unwrap();
}

#[test]
fn generated_code_is_that_of_the_protos() {
    let protos = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let kept = protos.join("generated");
    if env::var_os("HOPLAKE_GENERATE").is_some() {
        fs::create_dir_all(&kept).unwrap();
        return generate(&protos, &kept);
    }
    let fresh = tempfile::tempdir().unwrap();
    generate(&protos, fresh.path());
    for file in FILES {
        let [fresh, kept] = [fresh.path(), &kept].map(|folder| fs::read(folder.join(file)).unwrap());
        assert!(fresh == kept, "{file} is not what the protos give; run this test with HOPLAKE_GENERATE=1");
    }
}
