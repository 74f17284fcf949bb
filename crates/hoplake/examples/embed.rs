//! The bundled graph of flights, loaded into a folder and asked some questions.
//!
//! Run it with `cargo run -p hoplake --example embed`.

use std::{error::Error, path::Path};

use hoplake::{Graph, LoadOptions, arrow::array::cast::AsArray, changes::plain_text};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/air-routes");
    let files = ["nodes", "edges"].map(|name| sample.join(format!("air-routes-latest-{name}.csv.zst")));
    let folder = tempfile::tempdir()?;
    // Also s3://bucket/air-routes, with the feature `s3`.
    let url = folder.path().join("graph");
    let url = url.to_str().ok_or("the temporary folder has a name that is not UTF-8")?;
    hoplake::load(url, LoadOptions::from_paths(files)).await?;

    let graph = Graph::open(url).await?;
    let mut query = graph.query();
    // Where can one fly from Austin, and on from there over less than 100 miles?
    let near = query.from("airport[code = AUS]")?.out("route").out("route").such_that("dist < 100")?;
    for rows in near.rows(["code", "city"]).await?.iter() {
        let column = |name| rows.batch.column_by_name(name).map(|column| column.as_string::<i32>().clone());
        let (Some(codes), Some(cities)) = (column("code"), column("city")) else { continue };
        for (code, city) in codes.iter().zip(&cities).take(5) {
            println!("{} {}", code.unwrap_or("?"), city.unwrap_or("?"));
        }
    }
    let cost = query.cost();
    println!("{} round trips, {} requests, {} bytes", cost.waves, cost.requests, cost.store_bytes);

    // Two of the ways, with what they lead over.
    let walks = query.from("airport[code = AUS]")?.out("route").out("route").walks(2).await?;
    let described = query.describe_walks(&walks, &["code".to_owned(), "dist".to_owned()]).await?;
    for walk in walks.iter() {
        let vertices = walk.vertices.iter().filter_map(|vertex| described.vertex(*vertex));
        let codes = vertices.flat_map(|vertex| vertex.properties.values()).filter_map(|(_, code)| plain_text(&code));
        let edges = walk.edges.iter().filter_map(|edge| described.edge(edge));
        let miles = edges.flat_map(|edge| edge.properties.values()).filter_map(|(_, dist)| plain_text(&dist));
        println!("{}: {} miles", codes.collect::<Vec<_>>().join(" - "), miles.collect::<Vec<_>>().join(" + "));
    }
    Ok(())
}
