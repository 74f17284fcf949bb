//! What each rule makes of a plan.

use hoplake_query::plan::StepKind;

use super::plan;

fn kinds(query: &str) -> Vec<StepKind> {
    plan(query).steps.iter().map(|step| step.kind.clone()).collect()
}

mod conditions {
    use hoplake_query::plan::StepKind;

    use super::kinds;

    #[test]
    fn conditions_after_a_hop_are_taken_in() {
        let taken = |query: &str| match &kinds(query)[1..] {
            [StepKind::HopWhere(hop), rest @ ..] => (hop.conditions.len(), hop.otherwise.len(), rest.len()),
            other => panic!("{query}: {other:?}"),
        };
        assert_eq!(taken("g.V('a').out('l').has('x', gt(1)).count()"), (1, 2, 1));
        assert_eq!(taken("g.V('a').out().has('x', 1).has('y', 2).as('b').in()"), (2, 3, 1));
        assert_eq!(taken("g.V('a').outE('l').has('w', lt(2)).inV().values('x')"), (1, 2, 2));
        assert_eq!(taken("g.V('a').out().has('x', 1).dedup().count()"), (1, 2, 2));
        let within = kinds("g.V('a').where(__.out().has('x', 1))");
        assert!(matches!(&within[1], StepKind::Where(steps) if matches!(steps[0].kind, StepKind::HopWhere(_))));
    }

    /// They would take a wave more.
    #[test]
    fn conditions_before_other_reads_of_the_same_elements_stay() {
        for query in [
            "g.V('a').out().has('x', 1)",
            "g.V('a').out().has('x', 1).values('y')",
            "g.V('a').out().has('x', 1).order().by('y').count()",
            "g.V('a').out().has('x', 1).as('b').has('y', 1).count()",
            "g.V('a').out().as('b').has('x', 1).count()",
            "g.V('a').out().hasLabel('l').has('x', 1).count()",
        ] {
            assert!(!kinds(query).iter().any(|kind| matches!(kind, StepKind::HopWhere(_))), "{query}");
        }
    }
}

mod counts {
    use hoplake_query::plan::{By, StepKind};

    use super::kinds;

    #[test]
    fn all_of_a_label_are_counted_by_the_statistics() {
        let counted = |query: &str| match &kinds(query)[..] {
            [StepKind::Counted(counted), rest @ ..] => {
                (counted.edges, counted.labels.len(), counted.by_label, counted.otherwise.len(), rest.len())
            }
            other => panic!("{query}: {other:?}"),
        };
        assert_eq!(counted("g.V().count()"), (false, 0, false, 2, 0));
        assert_eq!(counted("g.V().hasLabel('a').count().is(gt(1))"), (false, 1, false, 2, 1));
        assert_eq!(counted("g.E().hasLabel('a', 'b').count()"), (true, 1, false, 3, 0));
        assert_eq!(counted("g.V().groupCount().by(label)"), (false, 0, true, 2, 0));
        assert_eq!(counted("g.E().label().groupCount().unfold()"), (true, 0, true, 3, 1));
    }

    #[test]
    fn others_are_counted_one_by_one() {
        for query in [
            "g.V().has('a', 1).count()",
            "g.V().as('a').count()",
            "g.V('a').count()",
            "g.inject(1).map(__.V().count())",
            "g.V().groupCount()",
        ] {
            assert!(!kinds(query).iter().any(|kind| matches!(kind, StepKind::Counted(_))), "{query}");
        }
    }

    #[test]
    fn a_hop_that_is_counted_gives_lengths() {
        assert!(
            matches!(&kinds("g.V('a').outE('b').count()")[1..], [StepKind::CountEdges(_, labels)] if labels.len() == 1)
        );
        let within = kinds("g.V('a').order().by(__.out().count())");
        let [_, StepKind::Order(_, sorting)] = &within[..] else { panic!("{within:?}") };
        assert!(matches!(&sorting[0].0, By::Steps(steps) if matches!(steps[0].kind, StepKind::CountEdges(..))));
        assert!(matches!(&kinds("g.V('a').out().as('b').count()")[1..], [StepKind::Hop(..), StepKind::Reduce(..)]));
        assert!(matches!(&kinds("g.V('a').out().dedup().count()")[1], StepKind::Walk(_)));
    }
}

mod edges {
    use hoplake_query::plan::StepKind;

    use super::kinds;

    #[test]
    fn labels_of_edges_are_taken_in() {
        let found = |query: &str| match &kinds(query)[..] {
            [StepKind::FindEdges(labels), rest @ ..] => (labels.len(), rest.len()),
            other => panic!("{query}: {other:?}"),
        };
        assert_eq!(found("g.E().hasLabel('a').values('x')"), (1, 1));
        assert_eq!(found("g.E().hasLabel('a', 'b').hasLabel(neq('b')).as('e').hasLabel('a')"), (2, 1));
        // What else there is of it is tested behind it.
        assert_eq!(found("g.E().has('a', 'x', 1)"), (1, 1));
        for query in [
            "g.E().has('x', 1).hasLabel('a')",
            "g.E().as('e').hasLabel('a')",
            "g.E('0/1:0/1:0/0').hasLabel('a')",
            "g.E().where(__.hasLabel('a').count())",
            "g.E().where(__.hasLabel('a').fold())",
        ] {
            assert!(matches!(kinds(query)[0], StepKind::Edges(_)), "{query}");
        }
    }
}

mod starts {
    use hoplake_query::plan::StepKind;

    use super::kinds as steps;

    #[test]
    fn conditions_at_the_start_are_taken_in() {
        let found = |query: &str| match &steps(query)[..] {
            [StepKind::Find(found), rest @ ..] => (found.labels.len(), found.properties.len(), rest.len()),
            other => panic!("{query}: {other:?}"),
        };
        assert_eq!(found("g.V().has('person', 'name', 'Ann').out()"), (1, 1, 1));
        assert_eq!(found("g.V().hasLabel('a').has('x', gt(1)).has('y', 2).has('z')"), (1, 2, 1));
        assert_eq!(found("g.V().hasLabel('a').as('b').has('x', 1)"), (1, 0, 1));
        assert!(matches!(&steps("g.V().hasId('a', 'b')")[..], [StepKind::Vertices(Some(ids))] if ids.len() == 2));
    }

    #[test]
    fn other_starts_stay_as_they_are() {
        assert!(matches!(&steps("g.V().as('a').has('x', 1)")[..], [StepKind::Vertices(None), StepKind::Has(..)]));
        assert!(matches!(&steps("g.V().out().has('x', 1)")[0], StepKind::Vertices(None)));
        assert!(matches!(&steps("g.V('a').has('x', 1)")[0], StepKind::Vertices(Some(_))));
        assert!(matches!(&steps("g.V().where(out('a'))")[0], StepKind::Vertices(None)));
    }
}

mod together {
    use std::sync::Arc;

    use hoplake_query::plan::{Step, TOGETHER_NAMES_MAX};

    use super::plan;

    fn together(query: &str) -> Vec<String> {
        let each = |step: &Arc<Step>| {
            let together = &step.together;
            let mut text = together.names.join(",");
            if together.all {
                text.push('*');
            }
            if together.results {
                text.push('!');
            }
            text
        };
        plan(query).steps.iter().map(each).collect()
    }

    #[test]
    fn properties_of_the_same_elements_are_read_together() {
        assert_eq!(together("g.V('a').out().has('x', 1).values('y')"), ["", "", "x,y", ""]);
        assert_eq!(
            together("g.V('a').out().where(__.values('z').is(1)).order().by('x').by('y')"),
            ["", "", "z,x,y!", "x,y!"]
        );
        assert_eq!(together("g.V('a').outE().has('x', 1).inV().has('y', 2)"), ["", "", "", "y!"]);
        assert_eq!(together("g.V('a').has('x', 1).has('y', 1).valueMap()"), ["", "x,y*", "y*", ""]);
        assert_eq!(together("g.V('a').has('x', 1).has('y', 1).out()"), ["", "x,y", "", ""]);
        assert_eq!(together("g.V('a').project('x', 'y').by('x').by('y')"), ["", ""]);
    }

    /// Each of many steps would have a list of the names of the steps behind it.
    #[test]
    fn lists_of_names_have_a_bound() {
        let names = |count: usize| (0..count).map(|number| format!("'n{number}'")).collect::<Vec<_>>().join(", ");
        let read = |count: usize| together(&format!("g.V('a').has('x', 1).values({})", names(count)))[1].len();
        assert!(read(TOGETHER_NAMES_MAX - 1) > 0);
        assert_eq!(read(TOGETHER_NAMES_MAX), 0);
    }
}

mod walks {
    use hoplake_query::plan::StepKind;

    use super::kinds;

    #[test]
    fn hops_before_a_dedup_are_a_walk() {
        let query = "g.V('a').out('x').in().dedup().count()";
        assert!(
            matches!(&kinds(query)[1..], [StepKind::Walk(hops), StepKind::Dedup(..), StepKind::Reduce(..)] if hops.len() == 2)
        );
        let query = "g.V('a').out().has('x', 1).out().dedup().out()";
        let kinds = kinds(query);
        assert!(matches!(&kinds[1..3], [StepKind::HopWhere(_), StepKind::Walk(hops)] if hops.len() == 1), "{kinds:?}");
        assert!(matches!(&kinds[3..], [StepKind::Dedup(..), StepKind::Hop(..)]), "{kinds:?}");
    }

    #[test]
    fn hops_whose_number_of_ways_counts_stay() {
        for query in [
            "g.V('a').out().out().count()",
            "g.V('a').out().dedup().by('x')",
            "g.V('a').out().as('b').out().dedup('b')",
            "g.V('a').out().dedup().path()",
            "g.withSack(1).V('a').out().dedup()",
            "g.V('a').map(__.out().dedup().count())",
        ] {
            assert!(!kinds(query).iter().any(|kind| matches!(kind, StepKind::Walk(_))), "{query}");
        }
    }
}
