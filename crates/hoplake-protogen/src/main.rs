//! Generates the Rust code of the wire format from the `.proto` files of `hoplake-server`.
//!
//! The code is checked in, so that a build of the server compiles no generator. After a change of a `.proto` file, run
//! `cargo run -p hoplake-protogen`; a test fails if somebody forgets. It is a crate of its own, because the server does not
//! compile while its generated code is out of date.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use prost::Message;

/// Where the `.proto` files are.
const PROTOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../hoplake-server/proto");
/// Where the code is.
const GENERATED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../hoplake-server/proto/generated");

fn main() -> Result<()> {
    generate(Path::new(GENERATED))
}

/// Writes the code, and the descriptors for reflection, into a folder.
fn generate(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let files =
        protox::compile(["hoplake/v1/graphs.proto", "hoplake/v1/blocks.proto", "hoplake/v1/jobs.proto"], [PROTOS])?;
    // With the comments, so that tools can show them.
    fs::write(folder.join("descriptors.bin"), files.encode_to_vec())?;
    // Clients work on any transport; those that connect bring their own.
    tonic_prost_build::configure()
        .bytes(".hoplake.v1.GetResponse")
        .bytes(".hoplake.v1.FetchResponse")
        .bytes(".hoplake.v1.ApplyRequest")
        // HTTP answers and error details have the same message, as JSON and as text.
        .type_attribute(".hoplake.v1.Cost", "#[derive(::serde::Serialize, ::utoipa::ToSchema)]")
        .build_transport(false)
        .emit_rerun_if_changed(false)
        .out_dir(folder)
        .compile_fds(files)
        .with_context(|| format!("could not generate code into {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_code_is_up_to_date() {
        let folder = tempfile::tempdir().unwrap();
        generate(folder.path()).unwrap();
        for file in ["descriptors.bin", "hoplake.v1.rs"] {
            let [fresh, kept] =
                [folder.path(), Path::new(GENERATED)].map(|folder| fs::read(folder.join(file)).unwrap());
            assert!(fresh == kept, "{file} does not match the .proto files; run `cargo run -p hoplake-protogen`");
        }
    }
}
