//! The bundled graph of flights as a service, within a program of one's own.
//!
//! Run it with `cargo run -p hoplake-server --example serve`, then ask it:
//! `curl localhost:7481/v1/graphs/air-routes/paths -d '{"starts": ["airport[code = AUS]"], "hops": ["out:route"], "select": ["code", "dist"]}'`

use std::{error::Error, path::Path};

use hoplake::LoadOptions;
use hoplake_server::{ServerBuilder, Settings};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/air-routes");
    let files = ["nodes", "edges"].map(|name| sample.join(format!("air-routes-latest-{name}.csv.zst")));
    let folder = tempfile::tempdir()?;
    let prefix = folder.path().to_str().ok_or("the temporary folder has a name that is not UTF-8")?;
    hoplake::load(&format!("{prefix}/air-routes"), LoadOptions::from_paths(files)).await?;

    let settings = Settings { graphs: vec![prefix.to_owned()], ..Settings::default() };
    let server = ServerBuilder::new(settings).bind().await?;
    println!("gRPC on {}, HTTP on {}; Ctrl-C ends it", server.grpc(), server.http());
    server.run(async { tokio::signal::ctrl_c().await.expect("signals can be listened to") }).await?;
    Ok(())
}
