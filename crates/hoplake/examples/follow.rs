//! A reader that follows a graph: it opens each newer version and prints what has changed.
//!
//! Run it with `cargo run -p hoplake --example follow`.

use std::{error::Error, time::Duration};

use hoplake::{Difference, Graph, LoadOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("knows.csv");
    std::fs::write(&file, "1,2\n2,3\n")?;
    let url = "memory://examples/follow";
    hoplake::load(url, LoadOptions::from_paths([file])).await?;

    // In another process, usually.
    let writer = tokio::spawn(async move {
        let mut graph = Graph::open(url).await?;
        for number in 4..7 {
            let mut commit = graph.begin();
            commit.upsert_vertex("vertex", number, [("name", format!("number {number}"))]);
            commit.commit().await?;
            graph.refresh().await?;
        }
        Ok::<_, hoplake::Error>(graph.version())
    });

    let mut graph = Graph::open(url).await?;
    let mut seen = 0;
    while seen < 3 {
        let before = graph.clone();
        // One request if there is nothing new.
        if !graph.refresh().await? {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        }
        println!("version {}", graph.version());
        let mut diff = before.diff(&graph, &[])?;
        while let Some(page) = diff.next_page().await? {
            for difference in page.iter() {
                if let Difference::Vertex { vertex, after: Some(after), .. } = difference {
                    let properties: Vec<_> = after.iter().map(|(name, value)| format!("{name}={value}")).collect();
                    println!("  {vertex} {}", properties.join(" "));
                    seen += 1;
                }
            }
        }
    }
    println!("the writer ended at version {}", writer.await??);
    Ok(())
}
