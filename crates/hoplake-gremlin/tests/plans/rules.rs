//! What each rule makes of a plan.

use std::sync::Arc;

use hoplake_query::plan::Step;

use super::plan;

fn steps(query: &str) -> Vec<Arc<Step>> {
    plan(query).steps.to_vec()
}

/// The names of the operators.
fn names(query: &str) -> Vec<&'static str> {
    plan(query).steps.iter().map(|step| step.operator.name()).collect()
}

mod conditions {
    use hoplake_query::operators::{conditions::Where, moves::HopWhere};

    use super::{names, steps};

    #[test]
    fn conditions_after_a_hop_are_taken_in() {
        let taken = |query: &str| {
            let steps = steps(query);
            let hop: &HopWhere = steps[1].get().expect(query);
            (hop.conditions.len(), hop.otherwise.len(), steps.len() - 2)
        };
        assert_eq!(taken("g.V('a').out('l').has('x', gt(1)).count()"), (1, 2, 1));
        assert_eq!(taken("g.V('a').out().has('x', 1).has('y', 2).as('b').in()"), (2, 3, 1));
        assert_eq!(taken("g.V('a').outE('l').has('w', lt(2)).inV().values('x')"), (1, 2, 2));
        assert_eq!(taken("g.V('a').out().has('x', 1).dedup().count()"), (1, 2, 2));
        let within = steps("g.V('a').where(__.out().has('x', 1))");
        assert!(within[1].get::<Where>().is_some_and(|within| within.steps[0].is::<HopWhere>()));
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
            assert!(!names(query).contains(&"HopWhere"), "{query}");
        }
    }
}

mod counts {
    use hoplake_query::{
        operators::{moves::CountEdges, reductions::Order, sources::Counted},
        plan::By,
    };

    use super::{names, steps};

    #[test]
    fn all_of_a_label_are_counted_by_the_statistics() {
        let counted = |query: &str| {
            let steps = steps(query);
            let counted: &Counted = steps[0].get().expect(query);
            (counted.edges, counted.labels.len(), counted.by_label, counted.otherwise.len(), steps.len() - 1)
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
            assert!(!names(query).contains(&"Counted"), "{query}");
        }
    }

    #[test]
    fn a_hop_that_is_counted_gives_lengths() {
        let counted = &steps("g.V('a').outE('b').count()")[1..];
        assert!(counted.len() == 1 && counted[0].get::<CountEdges>().is_some_and(|it| it.labels.len() == 1));
        let within = steps("g.V('a').order().by(__.out().count())");
        let order: &Order = within[1].get().unwrap();
        assert!(matches!(&order.sortings[0].0, By::Steps(steps) if steps[0].is::<CountEdges>()));
        assert_eq!(names("g.V('a').out().as('b').count()")[1..], ["Hop", "Reduce"]);
        assert_eq!(names("g.V('a').out().dedup().count()")[1], "Walk");
    }
}

mod edges {
    use hoplake_query::operators::sources::FindEdges;

    use super::{names, steps};

    #[test]
    fn labels_of_edges_are_taken_in() {
        let found = |query: &str| {
            let steps = steps(query);
            let found: &FindEdges = steps[0].get().expect(query);
            (found.labels.len(), steps.len() - 1)
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
            assert_eq!(names(query)[0], "Edges", "{query}");
        }
    }
}

mod starts {
    use hoplake_query::operators::sources::{FindVertices, Vertices};

    use super::{names, steps};

    #[test]
    fn conditions_at_the_start_are_taken_in() {
        let found = |query: &str| {
            let steps = steps(query);
            let FindVertices { conditions } = steps[0].get().expect(query);
            (conditions.labels.len(), conditions.properties.len(), steps.len() - 1)
        };
        assert_eq!(found("g.V().has('person', 'name', 'Ann').out()"), (1, 1, 1));
        assert_eq!(found("g.V().hasLabel('a').has('x', gt(1)).has('y', 2).has('z')"), (1, 2, 1));
        assert_eq!(found("g.V().hasLabel('a').as('b').has('x', 1)"), (1, 0, 1));
        let by_id = steps("g.V().hasId('a', 'b')");
        assert!(by_id.len() == 1 && matches!(by_id[0].get(), Some(Vertices { ids: Some(ids) }) if ids.len() == 2));
    }

    #[test]
    fn other_starts_stay_as_they_are() {
        assert_eq!(names("g.V().as('a').has('x', 1)"), ["Vertices", "Has"]);
        let ids = |query: &str| steps(query)[0].get::<Vertices>().expect(query).ids.is_some();
        assert!(!ids("g.V().out().has('x', 1)"));
        assert!(ids("g.V('a').has('x', 1)"));
        assert!(!ids("g.V().where(out('a'))"));
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
    use hoplake_query::operators::moves::Walk;

    use super::{names, steps};

    #[test]
    fn hops_before_a_dedup_are_a_walk() {
        let hops = |query: &str, at: usize| steps(query)[at].get::<Walk>().map_or(0, |walk| walk.hops.len());
        let query = "g.V('a').out('x').in().dedup().count()";
        assert_eq!(names(query)[1..], ["Walk", "Dedup", "Reduce"]);
        assert_eq!(hops(query, 1), 2);
        let query = "g.V('a').out().has('x', 1).out().dedup().out()";
        assert_eq!(names(query)[1..], ["HopWhere", "Walk", "Dedup", "Hop"]);
        assert_eq!(hops(query, 2), 1);
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
            assert!(!names(query).contains(&"Walk"), "{query}");
        }
    }
}
