//! Batches that are made before they are asked for, within a budget.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use hoplake::{
    Error, ErrorKind, Held, MemoryBudget,
    sampling::{Ahead, Sample, SamplerSettings, ahead},
};
use tokio::{runtime::Handle, sync::Semaphore};

use crate::{assert_empty, changed, fan_outs, sample, vertices};

/// What a batch takes: at its peak, and when it is made.
type Bytes = (u64, u64);

/// Batches that take memory, and are made once each may go on.
struct Work {
    batches: Ahead<(usize, Bytes), (usize, Held<()>), Error>,
    /// Which have begun, and which again.
    begun: Arc<Mutex<Vec<usize>>>,
    go_on: Arc<Semaphore>,
}

/// Batches of a graph that is there only for its queries.
async fn work(name: &str, budget: &MemoryBudget) -> Work {
    let graph = changed(name).await;
    let begun = Arc::new(Mutex::new(Vec::new()));
    let go_on = Arc::new(Semaphore::new(0));
    let (began, may_go) = (begun.clone(), go_on.clone());
    let make = move |(number, (peak, made)): (usize, Bytes), budget: MemoryBudget| {
        let (graph, began, may_go) = (graph.clone(), began.clone(), may_go.clone());
        async move {
            began.lock().unwrap().push(number);
            let query = graph.query_within(&budget);
            may_go.acquire().await.unwrap().forget();
            let all = Held::counted((), peak, query.context())?;
            tokio::task::yield_now().await;
            drop(all);
            Ok((number, Held::counted((), made, query.context())?))
        }
    };
    Work { batches: ahead(&Handle::current(), budget.clone(), make), begun, go_on }
}

impl Work {
    /// Waits until as many have begun, and a little longer to see that no others do.
    async fn begun(&self, count: usize) -> Vec<usize> {
        for _ in 0..5_000 {
            if self.begun.lock().unwrap().len() >= count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
        let mut begun = self.begun.lock().unwrap().clone();
        begun.sort_unstable();
        begun
    }

    async fn next(&self) -> (usize, Held<(usize, Held<()>)>) {
        let batch = self.batches.next().await.unwrap().unwrap();
        (batch.0, batch)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_begin_when_there_is_memory_for_them() {
    let budget = MemoryBudget::new("training", 1_000);
    let work = work("ahead", &budget).await;
    (0..8).for_each(|number| work.batches.push((number, (320, 100))));
    assert_eq!(work.begun(0).await, [0; 0], "nothing is known of the first, and no one waits for it");
    let first = work.batches.next();
    assert_eq!(work.begun(1).await, [0], "the first is alone");
    work.go_on.add_permits(1);
    let first = first.await.unwrap().unwrap();
    // Each of the next takes 400; 100 are the first's.
    assert_eq!(work.begun(3).await, [0, 1, 2]);
    assert_eq!(budget.used(), 900, "before they have built anything");
    work.go_on.add_permits(2);
    assert_eq!(work.begun(4).await, [0, 1, 2, 3], "these keep 100 each, so there is room for one");
    assert_eq!(budget.used(), 700);
    let (second, kept) = work.next().await;
    assert_eq!(second, 1);
    drop((kept, first));
    assert_eq!(work.next().await.0, 2);
    assert_eq!(work.begun(5).await, [0, 1, 2, 3, 4], "what the caller gave back is there for the next");
    work.go_on.add_permits(100);
    for number in 3..8 {
        assert_eq!(work.next().await.0, number);
    }
    assert!(work.batches.next().await.is_none());
    assert!(budget.peak() <= 1_000);
    assert_empty(&budget);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_needs_more_begins_again() {
    let budget = MemoryBudget::new("training", 1_000);
    let work = work("again", &budget).await;
    work.go_on.add_permits(100);
    let sizes = [100, 100, 180, 100, 990, 100, 100, 20];
    sizes.iter().enumerate().for_each(|(number, size)| work.batches.push((number, (*size, 10))));
    for number in 0..sizes.len() {
        assert_eq!(work.next().await.0, number);
    }
    let begun = work.begun(sizes.len()).await;
    let times = |number| begun.iter().filter(|one| **one == number).count();
    assert_eq!((times(0), times(1), times(2)), (1, 1, 2), "{begun:?}");
    assert!(times(4) > 1, "{begun:?}");
    assert!(budget.peak() <= 1_000);
    assert_empty(&budget);
    // One that has no room even alone fails, and those after it do not.
    for (number, size) in [(0, 1_001), (1, 100)] {
        work.batches.push((number, (size, 10)));
    }
    let error = work.batches.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().contains("1000 bytes of memory for training"), "{error}");
    assert_eq!(work.next().await.0, 1);
    // What the caller keeps is not there for the next.
    work.batches.push((2, (10, 990)));
    work.batches.push((3, (20, 20)));
    let kept = work.next().await;
    assert_eq!(work.batches.next().await.unwrap().unwrap_err().kind(), ErrorKind::Limit);
    drop(kept);
    assert_empty(&budget);
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_end_with_those_who_wait_for_them() {
    let budget = MemoryBudget::new("training", 1_000);
    let work = work("end", &budget).await;
    (0..4).for_each(|number| work.batches.push((number, (100, 50))));
    {
        let first = work.batches.next();
        work.begun(1).await;
        drop(first);
    }
    work.go_on.add_permits(1);
    let first = work.next().await;
    assert_eq!(first.0, 0, "who waits no longer does not take it away");
    work.begun(4).await;
    assert!(budget.used() > 400);
    drop((first, work));
    for _ in 0..5_000 {
        if budget.used() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_empty(&budget);
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_ahead_are_those_of_calls_one_by_one_within_any_budget() {
    let graph = changed("samples-ahead").await;
    let settings = SamplerSettings {
        fan_outs: fan_outs(&graph, "both:knows", &[Some(6), Some(4)]),
        seed: 2,
        ..SamplerSettings::default()
    };
    let sampler = graph.query().sampler(settings).unwrap();
    let people = vertices(&graph, (0..70).map(|at| ("person", format!("p{at}")))).await;
    let seeds = |number: u64| -> Vec<_> { people[number as usize % 20..][..10 + number as usize].to_vec() };
    let mut expected: Vec<Sample> = Vec::new();
    let alone = MemoryBudget::unlimited("alone");
    for number in 0..40 {
        let mut query = graph.query_within(&alone);
        expected.push(query.sample(&sampler, &seeds(number), number).await.unwrap().into_inner());
    }
    assert_eq!(sample(&graph, &sampler, &seeds(3), 3).await, expected[3]);
    let mut most_under_way = Vec::new();
    // Memory for one batch, for the previous one, which the caller still holds, and some more.
    for bytes in [alone.peak() * 5 / 4, alone.peak() * 3, alone.peak() * 20] {
        let budget = MemoryBudget::new("training", bytes);
        let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (graph, sampler) = (graph.clone(), sampler.clone());
        let counts = (under_way.clone(), most.clone());
        let make = move |(number, seeds): (u64, Vec<_>), budget: MemoryBudget| {
            let (graph, sampler, (under_way, most)) = (graph.clone(), sampler.clone(), counts.clone());
            async move {
                most.fetch_max(under_way.fetch_add(1, SeqCst) + 1, SeqCst);
                tokio::time::sleep(Duration::from_millis(1)).await;
                let sampled = graph.query_within(&budget).sample(&sampler, &seeds, number).await;
                under_way.fetch_sub(1, SeqCst);
                sampled
            }
        };
        let batches = ahead(&Handle::current(), budget.clone(), make);
        (0..3).for_each(|number| batches.push((number, seeds(number))));
        for (number, expected) in expected.iter().enumerate() {
            let found = batches.next().await.unwrap().unwrap();
            assert_eq!(&**found, expected, "{number} within {bytes}");
            let following = number as u64 + 3;
            if following < 40 {
                batches.push((following, seeds(following)));
            }
        }
        assert!(batches.next().await.is_none());
        assert!(budget.peak() <= bytes);
        assert_empty(&budget);
        most_under_way.push(most.load(SeqCst));
    }
    assert!(most_under_way[0] < most_under_way[2], "{most_under_way:?}");
}
