//! Random traversals of random graphs, asked of both servers.
//!
//! Traversals come in blocks, each on a graph of its own that its changes change: a block can be repeated by its number alone.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use clap::Args;
use hoplake_testkit::GremlinServer;

use super::{
    canonical::Orders,
    client::Codec,
    explained::reason,
    generate::{Generated, Generator},
    pair::{Answers, Pair},
    subject::Subject,
    tree::{Side, StepCall, smaller, text},
    world::World,
};

/// Traversals on one graph.
const BLOCK: u64 = 50;
/// Of this many traversals one is a change.
const CHANGES: u64 = 8;
/// Attempts to make a traversal smaller.
const ATTEMPTS: usize = 400;

/// Which traversals.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// How many.
    #[arg(long, default_value_t = 1_000)]
    traversals: u64,
    /// What they are drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The first block, to repeat one that a difference names.
    #[arg(long, default_value_t = 0)]
    block: u64,
    /// Differences after which to stop.
    #[arg(long, default_value_t = 20)]
    differences_max: usize,
}

/// A traversal, and on which graph.
#[derive(Debug, Clone, Args)]
pub struct Question {
    /// What the graph is drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Its number.
    #[arg(long, default_value_t = 0)]
    block: u64,
    /// Traversals as text.
    texts: Vec<String>,
}

/// Prints what both servers answer.
pub async fn ask(question: &Question) -> Result<()> {
    let server = GremlinServer::start(&[])?;
    let subject = Subject::start().await?;
    let mut pair = Pair::new(&subject, &server).await?;
    pair.make(&world(question.seed, question.block), Codec::GraphBinary).await?;
    for text in &question.texts {
        println!("{text}");
        print_answers(&pair.ask_text(text).await?);
    }
    Ok(())
}

/// The graph of a block.
fn world(seed: u64, block: u64) -> World {
    World::new(seed.wrapping_mul(1_000_003) ^ block)
}

/// What was found.
#[derive(Debug, Default)]
struct Counts {
    asked: u64,
    failed: u64,
    empty: u64,
    changes: u64,
    differences: usize,
    explained: BTreeMap<&'static str, u64>,
}

/// Prints each difference that has no known reason, and counts.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let server = GremlinServer::start(&[])?;
    let subject = Subject::start().await?;
    let mut pair = Pair::new(&subject, &server).await?;
    let mut counts = Counts::default();
    let blocks = arguments.traversals.div_ceil(BLOCK);
    for block in arguments.block..arguments.block + blocks {
        let left = arguments.traversals - counts.asked;
        run_block(&mut pair, arguments, block, left.min(BLOCK), &mut counts).await?;
        if counts.differences >= arguments.differences_max {
            break;
        }
    }
    println!(
        "{} traversals, {} of them changes; {} failed on both sides, {} had no results; {} differences",
        counts.asked, counts.changes, counts.failed, counts.empty, counts.differences
    );
    for (reason, count) in &counts.explained {
        println!("{count} explained: {reason}");
    }
    if counts.differences > 0 {
        bail!("{} differences have no known reason", counts.differences);
    }
    Ok(())
}

async fn run_block(
    pair: &mut Pair<'_>,
    arguments: &Arguments,
    block: u64,
    traversals: u64,
    counts: &mut Counts,
) -> Result<()> {
    let world = world(arguments.seed, block);
    let codec = if block % 4 == 3 { Codec::GraphSon } else { Codec::GraphBinary };
    pair.make(&world, codec).await?;
    // A change after which the graphs differ is taken back with all before it.
    let mut is_changed = false;
    for number in 0..traversals {
        let seed = (arguments.seed << 40) ^ (block << 8) ^ number;
        let ids = pair.common_ids();
        let generator = Generator::new(seed, &world, (&ids.0, &ids.1), is_changed);
        let generated = match number % CHANGES {
            7 => generator.change(number, |label, key| pair.vertex_id(&world, label, key)),
            _ => generator.read(),
        };
        counts.asked += 1;
        counts.changes += u64::from(generated.is_change);
        let mut answers = pair.ask(&generated.steps, generated.orders, generated.is_change).await?;
        let mut differ = answers.differ();
        counts.failed += u64::from(answers.reference.is_err() && answers.hoplake.is_err());
        counts.empty += u64::from(answers.reference.as_ref().is_ok_and(Vec::is_empty));
        if generated.is_change {
            is_changed |= answers.reference.is_ok();
            // TinkerGraph has no transactions: a traversal that fails leaves what it did before.
            let is_undone = answers.reference.is_err() && answers.hoplake.is_err();
            if is_undone {
                pair.make(&world, codec).await?;
                is_changed = false;
            } else if !differ && let Some(graphs) = pair.compare_graphs().await? {
                differ = true;
                answers = graphs;
            } else if !differ && !pair.names_are_unique() {
                pair.make(&world, codec).await?;
                is_changed = false;
            }
        }
        if !differ {
            continue;
        }
        let smallest = if generated.is_change { generated.steps.clone() } else { minimise(pair, &generated).await? };
        if !generated.is_change && smallest != generated.steps {
            answers = pair.ask(&smallest, Orders::default(), false).await?;
        }
        match reason(&smallest, &answers) {
            Some(reason) => *counts.explained.entry(reason).or_default() += 1,
            None => {
                counts.differences += 1;
                print(arguments.seed, block, number, is_changed, &generated.steps, &smallest, &answers);
            }
        }
        if generated.is_change {
            pair.make(&world, codec).await?;
            is_changed = false;
        }
    }
    Ok(())
}

/// The traversal with as few steps as still make a difference of its kind.
async fn minimise(pair: &mut Pair<'_>, generated: &Generated) -> Result<Vec<StepCall>> {
    let mut steps = generated.steps.clone();
    // What is left of an order may leave a choice.
    let orders = Orders::default();
    let whole = pair.ask(&steps, orders, false).await?;
    if !whole.differ() {
        return Ok(steps);
    }
    let mut attempts = 0;
    'smaller: loop {
        for candidate in smaller(&steps) {
            attempts += 1;
            if attempts > ATTEMPTS {
                return Ok(steps);
            }
            let answers = pair.ask(&candidate, orders, false).await?;
            if answers.differ() && answers.fail_alike(&whole) {
                steps = candidate;
                continue 'smaller;
            }
        }
        return Ok(steps);
    }
}

fn print(
    seed: u64,
    block: u64,
    number: u64,
    is_changed: bool,
    whole: &[StepCall],
    smallest: &[StepCall],
    answers: &Answers,
) {
    let changed = if is_changed { ", on a changed graph" } else { "" };
    println!("--seed {seed} --block {block}, traversal {number}{changed}: {}", text(whole, Side::Hoplake));
    println!("  {}", text(smallest, Side::Hoplake));
    print_answers(answers);
}

fn print_answers(answers: &Answers) {
    for (name, answer) in [("TinkerPop", &answers.reference), ("Hoplake  ", &answers.hoplake)] {
        match answer {
            Ok(forms) => println!("  {name}: {} results: {}", forms.len(), shortened(&forms.join(" | "))),
            Err(error) => println!("  {name}: failed: {}", shortened(error)),
        }
    }
}

/// The first characters.
fn shortened(text: &str) -> String {
    text.chars().take(600).collect()
}
