//! What each rule makes of a plan.

use std::sync::Arc;

use hoplake_query::plan::PlanStep;

use super::plan;

fn steps(query: &str) -> Vec<Arc<PlanStep>> {
    plan(query).steps.to_vec()
}

/// The names of the operators.
fn names(query: &str) -> Vec<&'static str> {
    plan(query).steps.iter().map(|step| step.operator.name()).collect()
}

mod conditions {
    use hoplake_query::operators::{
        conditions::Where,
        moves::{CountEdges, HopWhere},
    };

    use super::{names, plan, steps};

    /// A step of a plan, as `explain` shows it.
    fn shown(query: &str, at: usize) -> String {
        plan(query).steps[at].to_string()
    }

    #[test]
    fn conditions_after_a_hop_are_taken_in() {
        let taken = |query: &str| {
            let steps = steps(query);
            let hop: &HopWhere = steps[1].get().expect(query);
            (hop.conditions.on_edges.len(), hop.conditions.on_vertices.len(), steps.len() - 2)
        };
        assert_eq!(taken("g.V('a').out().has('x', 1).has('y', 2).as('b').in()"), (0, 2, 1));
        assert_eq!(taken("g.V('a').outE('l').has('w', lt(2)).inV().values('x')"), (1, 0, 1));
        assert_eq!(taken("g.V('a').out().has('x', 1).dedup().count()"), (0, 1, 2));
        let within = steps("g.V('a').where(__.out().has('x', 1))");
        assert!(within[1].get::<Where>().is_some_and(|within| within.steps[0].is::<HopWhere>()));
    }

    #[test]
    fn explain_shows_what_a_hop_tests() {
        for (query, expected) in [
            ("out('l').has('x', gt(1)).out()", "HopWhere out l to vertices [vertices: x gt 1]"),
            ("out().hasNot('x').in()", "HopWhere out to vertices [vertices: x is null]"),
            ("in().has('x').in()", "HopWhere in to vertices [vertices: x is not null]"),
            ("out().hasLabel('a').values('x')", "HopWhere out to vertices [vertices: label within a]"),
            (
                "both().or(has('x', 1).hasNot('y'), not(hasLabel('a'))).in()",
                "HopWhere both to vertices [vertices: (x eq 1 and y is null) or not (label within a)]",
            ),
            (
                "out().and(has('x', gt(1).or(lt(0))), hasNot('y')).in()",
                "HopWhere out to vertices [vertices: x ((gt 1) or (lt 0)) and y is null]",
            ),
            (
                "out().where(__.values('x').is(gt(3))).filter(__.label().is('a')).in()",
                "HopWhere out to vertices [vertices: x gt 3 and label eq a]",
            ),
            (
                "outE('l').has('w', 1).inV().has('x', 2).out()",
                "HopWhere out l to vertices [edges: w eq 1] [vertices: x eq 2]",
            ),
            ("inE().hasLabel('l').outV().out()", "HopWhere in to vertices [edges: label within l]"),
            ("bothE().has('w', 1).otherV().out()", "HopWhere both to vertices [edges: w eq 1]"),
            ("outE().inV().has('x', 2).out()", "HopWhere out to vertices [vertices: x eq 2]"),
            // Not to the vertices that they lead to.
            ("outE().has('w', 1).outV().out()", "HopWhere out to edges [edges: w eq 1]"),
            ("bothE().has('w', 1).inV().out()", "HopWhere both to edges [edges: w eq 1]"),
            ("outE().has('w', 1).as('e').inV().select('e')", "HopWhere out to edges [edges: w eq 1] as e"),
            // Where they are only counted.
            ("outE().has('w', 1).inV().has('x', 2).count()", "CountEdges out [edges: w eq 1] [vertices: x eq 2]"),
            ("out('l').hasNot('x').count().is(0)", "CountEdges out l [vertices: x is null]"),
            ("out().has('x', 1).as('a').count()", "HopWhere out to vertices [vertices: x eq 1] as a"),
            // Labels stand at the hop: a row that fails a condition goes with them.
            ("out().as('a').has('x', 1).in()", "HopWhere out to vertices [vertices: x eq 1] as a"),
            (
                "out().as('a').has('x', 1).as('b').has('y').as('a').in()",
                "HopWhere out to vertices [vertices: x eq 1 and y is not null] as a, b",
            ),
            (
                "outE().has('w', 1).inV().as('a').has('x', 2).in()",
                "HopWhere out to vertices [edges: w eq 1] [vertices: x eq 2] as a",
            ),
            ("outE().as('e').has('w', 1).inV().in()", "HopWhere out to edges [edges: w eq 1] as e"),
        ] {
            assert_eq!(shown(&format!("g.V('a').{query}"), 1), expected, "{query}");
        }
        assert!(steps("g.V('a').map(__.out().has('x', 1).count())").len() == 2);
        assert!(steps("g.V('a').out().has('x', 1).count()")[1].is::<CountEdges>());
    }

    /// What a step gives that does more than to let some elements pass stays one.
    #[test]
    fn other_steps_stay() {
        for query in [
            "out().hasId('x').in()",
            "out().has('x', __.is(1)).in()",
            "out().where(__.out()).in()",
            "out().where(__.values('x', 'y').is(1)).in()",
            "out().where(__.values('x').as('a')).in()",
            "out().or(has('x', 1), out()).in()",
        ] {
            assert_eq!(names(&format!("g.V('a').{query}"))[1], "Hop", "{query}");
        }
        // A path has the edge.
        assert_eq!(names("g.V('a').outE().has('w', 1).inV().in().path()")[1..3], ["HopWhere", "Ends"]);
    }

    /// They would take a wave more. Labels are known without one.
    #[test]
    fn conditions_before_other_reads_of_the_same_elements_stay() {
        for query in [
            "g.V('a').out().has('x', 1)",
            "g.V('a').out().has('x', 1).values('y')",
            "g.V('a').out().hasNot('x').values('y')",
            "g.V('a').out().has('x', 1).order().by('y').count()",
        ] {
            assert!(!names(query).contains(&"HopWhere"), "{query}");
        }
        assert_eq!(names("g.V('a').out().hasLabel('l').has('x', 1).values('y')")[1..], ["HopWhere", "Has", "Values"]);
        assert_eq!(names("g.V('a').out().has('l', 'x', 1).values('y')")[1..], ["HopWhere", "Has", "Values"]);
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
        assert!(counted.len() == 1 && counted[0].get::<CountEdges>().is_some_and(|it| it.hop.labels.len() == 1));
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
            (found.conditions.len(), steps.len() - 1)
        };
        assert_eq!(found("g.E().hasLabel('a').values('x')"), (1, 1));
        assert_eq!(found("g.E().hasLabel('a', 'b').hasLabel(neq('b')).as('e').hasLabel('a')"), (3, 0));
        // What reads properties is tested with what else reads them.
        assert_eq!(found("g.E().has('a', 'x', 1)"), (1, 1));
        assert_eq!(found("g.E().has('a', 'x', 1).hasNot('y').count()"), (3, 1));
        assert_eq!(found("g.E().has('x', 1).hasLabel('a').inV()"), (2, 1));
        assert_eq!(found("g.E().as('e').hasLabel('a')"), (1, 0));
        for query in [
            "g.E().has('x', 1)",
            "g.E('0/1:0/1:0/0').hasLabel('a')",
            "g.E().where(__.hasLabel('a').count())",
            "g.E().where(__.hasLabel('a').fold())",
        ] {
            assert_eq!(names(query)[0], "Edges", "{query}");
        }
    }
}

mod starts {
    use hoplake_query::operators::sources::{Edges, FindVertices, Vertices};

    use super::{names, steps};

    #[test]
    fn conditions_at_the_start_are_taken_in() {
        let found = |query: &str| {
            let steps = steps(query);
            let FindVertices { conditions } = steps[0].get().expect(query);
            (conditions.len(), steps.len() - 1)
        };
        assert_eq!(found("g.V().has('person', 'name', 'Ann').out()"), (2, 1));
        assert_eq!(found("g.V().hasLabel('a').has('x', gt(1)).has('y', 2).has('z')"), (3, 1));
        assert_eq!(found("g.V().hasLabel('a').has('x', gt(1)).has('y', 2).has('z').out()"), (4, 1));
        assert_eq!(found("g.V().or(has('x', 1), hasNot('y')).count()"), (1, 1));
        assert_eq!(found("g.V().hasLabel('a').as('b').has('x', 1)"), (2, 0));
        assert_eq!(found("g.V().as('a').has('x', 1)"), (1, 0));
        // They share the wave of what follows.
        assert_eq!(names("g.V().hasNot('x').values('y')"), ["Vertices", "HasNot", "Values"]);
    }

    /// Wherever the id stands among the conditions.
    #[test]
    fn ids_are_looked_up() {
        for (query, others) in [
            ("g.V().hasId('a', 'b')", &[][..]),
            ("g.V().hasLabel('p').hasId('a', 'b')", &[]),
            ("g.V().hasLabel('p').hasNot('x').hasId(within('a', 'b')).out()", &["HasNot", "Hop"]),
            ("g.V().has('p', T.id, within('a', 'b'))", &[]),
            ("g.V().has(T.id, ['a', 'b'])", &[]),
            ("g.V().where(__.hasId('a', 'b'))", &[]),
            ("g.V().filter(__.hasId('a', 'b').has('x', 1)).out()", &["Has", "Hop"]),
            ("g.V().and(hasLabel('p'), has('x', 1), hasId('a', 'b'), has('y')).out()", &["Has", "HasProperty", "Hop"]),
            ("g.V().hasId(neq('c')).hasId('a', 'b')", &["Has"]),
            ("g.V().not(hasId('c')).hasId('a', 'b').hasId('a')", &["Not", "Has"]),
            ("g.V().as('x').hasId('a', 'b')", &[]),
            ("g.V().hasLabel('p').as('x').has('z').as('y').hasId('a', 'b').as('x')", &["HasProperty"]),
            ("g.V().or(has('x', 1), has('y')).has(T.id, within('a', 'b')).as('c').has('z')", &["Or", "HasProperty"]),
        ] {
            assert_eq!(names(query)[1..], *others, "{query}");
            let steps = steps(query);
            let first: &Vertices = steps[0].get().expect(query);
            assert_eq!(first.ids.as_ref().map(Vec::len), Some(2), "{query}");
        }
        for query in [
            "g.E().hasId('a')",
            "g.E().hasLabel('l').hasId('a')",
            "g.E().has('x', 1).hasId('a').hasLabel('l')",
            "g.E().as('e').and(hasLabel('l'), hasId('a'))",
        ] {
            assert!(steps(query)[0].get::<Edges>().expect(query).ids.is_some(), "{query}");
        }
        for query in [
            "g.V().out().hasId('a')",
            "g.V().or(hasId('a'), has('x'))",
            "g.V().where(__.hasId('a').out())",
            "g.V().hasId(neq('a'))",
            "g.V().hasId(P.gt('a'))",
        ] {
            assert_eq!(steps(query)[0].get::<Vertices>().expect(query).ids, None, "{query}");
        }
        let labelled = steps("g.V().as('a').hasLabel('p').as('b').hasId('i').as('a').has('x').as('c')");
        let labels: Vec<Vec<&str>> = labelled.iter().map(|step| step.labels.iter().map(|it| &**it).collect()).collect();
        assert_eq!(labels, [vec!["a", "b"], vec!["c"]]);
        let source: &Vertices = labelled[0].get().unwrap();
        assert_eq!(source.labels.len(), 1);
    }

    /// A source may stand anywhere.
    #[test]
    fn sources_within_a_query_have_conditions() {
        assert_eq!(names("g.V('s').as('a').V().hasLabel('p').has('x', 1).out()"), ["Vertices", "Find", "Hop"]);
        assert_eq!(names("g.V('s').V().hasLabel('p').hasId('a').V().has('x', 1)"), ["Vertices", "Vertices", "Find"]);
        assert_eq!(names("g.V('s').E().hasLabel('l').count()"), ["Vertices", "FindEdges", "Reduce"]);
    }

    #[test]
    fn other_starts_stay_as_they_are() {
        let ids = |query: &str| steps(query)[0].get::<Vertices>().expect(query).ids.is_some();
        assert!(!ids("g.V().out().has('x', 1)"));
        assert!(ids("g.V('a').has('x', 1)"));
        assert!(!ids("g.V().where(out('a'))"));
    }
}

mod together {
    use std::sync::Arc;

    use hoplake_query::plan::{PlanStep, TOGETHER_NAMES_MAX};

    use super::plan;

    fn together(query: &str) -> Vec<String> {
        let each = |step: &Arc<PlanStep>| {
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
        assert_eq!(together("g.V('a').outE().has('x', 1).inV().has('y', 2)"), ["", "", "y!"]);
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
