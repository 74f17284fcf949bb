//! Compiles the wire format, in Rust alone: no `protoc` is needed.

use std::{env, fs, path::PathBuf};

use prost_types::FileDescriptorSet;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let files: FileDescriptorSet = protox::compile(["hoplake/v1/graphs.proto", "hoplake/v1/blocks.proto"], ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // What reflection tells: with the comments, so that tools can show them.
    fs::write(out.join("descriptors.bin"), prost_types_bytes(&files))?;
    // Clients work on any transport; those that connect bring their own.
    tonic_prost_build::configure()
        .bytes(".hoplake.v1.GetResponse")
        .bytes(".hoplake.v1.FetchResponse")
        .build_transport(false)
        .emit_rerun_if_changed(false)
        .compile_fds(files)?;
    Ok(())
}

fn prost_types_bytes(files: &FileDescriptorSet) -> Vec<u8> {
    prost::Message::encode_to_vec(files)
}
