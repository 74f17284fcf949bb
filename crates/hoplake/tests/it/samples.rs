//! Round trips of samples on a graph just opened, counted by a store that cannot be fooled.

use hoplake::sampling::SamplerSettings;

use crate::waves::{assert_same, in_parts, open, people};

#[tokio::test]
async fn a_hop_of_a_sample_is_a_wave() {
    let inner = people();
    for (weight, induced, waves) in [(None, false, 3), (None, true, 4), (Some("weight".to_owned()), false, 6)] {
        let (store, graph) = open(&inner, &in_parts()).await;
        let mut query = graph.query();
        let seed = query.vertex("P", 17_i64).await.unwrap().unwrap();
        let before = query.cost().waves;
        let fan_outs = query.fan_outs(&"out:knows".parse().unwrap(), &[Some(4), Some(3), Some(2)]).unwrap();
        let settings = SamplerSettings { fan_outs, weight, induced, ..SamplerSettings::default() };
        let sampler = query.sampler(settings.clone()).unwrap();
        query.sample(&sampler, &[seed], 0).await.unwrap();
        // The ends of the tables of weights are read with the first lists.
        let tables = u64::from(settings.weight.is_some());
        assert_eq!(query.cost().waves - before, waves + tables, "{settings:?}");
        // From memory a sample reads nothing.
        let sampler = query.sampler_in_memory(settings, Default::default()).await.unwrap();
        let before = store.requests().total();
        query.sample(&sampler, &[seed], 0).await.unwrap();
        assert_eq!(store.requests().total(), before);
        let (store, graph) = open(&inner, &in_parts()).await;
        store.reset();
        let mut query = graph.query();
        query.vertex("P", 17_i64).await.unwrap();
        let sampler = query.sampler(sampler.settings().clone()).unwrap();
        query.sample(&sampler, &[seed], 0).await.unwrap();
        assert_same(&store, query.cost());
    }
}
