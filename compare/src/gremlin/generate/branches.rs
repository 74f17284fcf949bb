//! Conditions with traversals, branches, loops, groups and projections.

use super::{At, Generator, TraverserKind};
use crate::gremlin::tree::{Argument, StepCall, bare, step};

impl Generator<'_> {
    pub(super) fn filter(&mut self, at: &mut At) {
        let kind = at.kind.clone();
        let child = self.child(&kind).0;
        at.push(match self.random.below(8) {
            0 => step("not", [child]),
            1 => step("filter", [child]),
            2 => {
                let other = self.child(&kind).0;
                step("and", [child, other])
            }
            3 => {
                let other = self.child(&kind).0;
                step("or", [child, other])
            }
            _ => step("where", [child]),
        });
    }

    pub(super) fn branch(&mut self, at: &mut At) {
        let kind = at.kind.clone();
        let (one, first) = self.child(&kind);
        let (other, second) = self.child(&kind);
        let either = if first == second { first.clone() } else { TraverserKind::Mixed };
        match self.random.below(9) {
            0 | 1 => {
                at.push(step("union", [one, other])).becomes(either);
            }
            2 => {
                at.push(step("coalesce", [one, other])).becomes(either);
            }
            3 => {
                let condition = self.child(&kind).0;
                at.push(step("choose", [condition, one, other])).becomes(either);
            }
            4 if kind == first => {
                at.push(step("optional", [one]));
            }
            5 => {
                at.push(step(self.pick(&["local", "flatMap"]), [one])).becomes(first);
            }
            6 => {
                let (by, of) = self.scalar(&kind);
                at.push(step("choose", [by]));
                let literal = self.literal(&of);
                at.push(step("option", [Argument::Text(literal), one.into()]));
                if self.one_in(2) {
                    at.push(step("option", [Argument::from("Pick.none"), other.into()]));
                }
                at.becomes(TraverserKind::Mixed);
            }
            7 | 8 if kind == TraverserKind::Vertex => self.loops(at),
            _ => {
                at.push(step("optional", [one])).becomes(TraverserKind::Mixed);
            }
        }
        at.is_ordered = false;
        // Labels are of one branch alone.
        at.is_tangled = true;
    }

    /// A loop, or two: modulators between them are those of the first as long as it lacks them.
    pub(super) fn loops(&mut self, at: &mut At) {
        at.is_ordered = false;
        at.is_tangled = true;
        let loops = if self.one_in(2) { 1 } else { 2 };
        for number in 0..loops {
            if self.hops < 2 {
                return;
            }
            self.hops -= 2;
            let form = match (loops, number) {
                (2, 0) => self.pick(&[0, 0, 1, 2, 3, 12]),
                (2, _) => self.pick(&[0, 2, 2, 4, 6, 7, 8, 9, 13]),
                _ => self.random.below(14),
            };
            at.steps.extend(self.one_loop(form));
        }
    }

    /// A loop with its modulators, one of which ends it, in one of 14 forms.
    fn one_loop(&mut self, form: u64) -> Vec<StepCall> {
        let labels = self.distinct(&["'knows'", "'in'", "'has'"]);
        let mut body = vec![step(self.pick(&["out", "in", "both"]), labels)];
        match self.random.below(8) {
            0 => body.push(bare("simplePath")),
            1 => body.push(bare("dedup")),
            2 => {
                let mut filtered = At::new(TraverserKind::Vertex);
                self.has(&mut filtered);
                body.extend(filtered.steps);
            }
            3 => {
                // The other hop of this loop.
                let times = self.random.below(2).to_string();
                let inner = step("repeat", [vec![bare("out")]]);
                body = match self.one_in(2) {
                    true => vec![inner, step("times", [times])],
                    false => vec![step("times", [times]), inner],
                };
            }
            _ => {}
        }
        let hops = std::mem::take(&mut self.hops);
        let condition = self.child(&TraverserKind::Vertex).0;
        self.hops = hops;
        let repeat = match self.one_in(8) {
            true => step("repeat", [Argument::from("'l'"), body.into()]),
            false => step("repeat", [body]),
        };
        let count = if self.one_in(8) { 0 } else { 1 + self.random.below(2) };
        let times = step("times", [count.to_string()]);
        let emit = if self.one_in(2) { bare("emit") } else { step("emit", [condition.clone()]) };
        let rounds: Vec<StepCall> = vec![bare("loops"), step("is", ["P.gte(2)"])];
        let until = step("until", [vec![step("or", [condition, rounds])]]);
        match form {
            0 => vec![repeat, times],
            1 => vec![repeat, emit, times],
            2 => vec![emit, repeat, times],
            3 => vec![repeat, until],
            4 => vec![until, repeat],
            5 => vec![repeat, until, emit],
            6 => vec![times, repeat],
            7 => vec![emit, times, repeat],
            8 => vec![times, emit, repeat],
            9 => vec![until, emit, repeat],
            10 => vec![times, repeat, emit],
            11 => vec![emit, repeat, until],
            // More than a loop has, unless another one follows or precedes it.
            12 => {
                let another = self.pick(&[&times, &until, &emit]).clone();
                vec![repeat, times, another]
            }
            _ => {
                let another = self.pick(&[&times, &until, &emit]).clone();
                vec![another, times, repeat]
            }
        }
    }

    pub(super) fn group(&mut self, at: &mut At) {
        let kind = at.kind.clone();
        let by = self.by(&kind);
        if self.one_in(2) {
            self.reduce(at, bare("groupCount"), TraverserKind::Map(false, Box::new(TraverserKind::Number)));
            at.push(by);
            return;
        }
        let is_counted = self.one_in(2);
        let values =
            if is_counted { TraverserKind::Number } else { TraverserKind::List(false, Box::new(TraverserKind::Mixed)) };
        self.reduce(at, bare("group"), TraverserKind::Map(false, Box::new(values)));
        at.push(by);
        if is_counted {
            let child = match self.random.below(3) {
                0 if matches!(kind, TraverserKind::Vertex | TraverserKind::Edge) => {
                    let key = self.pick(&["age", "weight", "n"]);
                    vec![step("values", [format!("'{key}'")]), bare(self.pick(&["sum", "max", "mean"]))]
                }
                1 if kind == TraverserKind::Number => vec![bare(self.pick(&["sum", "min"]))],
                _ => vec![bare("count")],
            };
            at.push(step("by", [child]));
        } else {
            self.lists_are_ordered = false;
            // Of a traversal that does not reduce it has the last result, in whichever order they come.
            match kind {
                TraverserKind::Vertex | TraverserKind::Edge if self.one_in(2) => {
                    let key = self.single_key(&kind);
                    at.push(step("by", [format!("'{key}'")]));
                }
                TraverserKind::Number | TraverserKind::Text | TraverserKind::Date if self.one_in(2) => {
                    at.push(step("by", [vec![bare("order"), bare("fold")]]));
                }
                _ => {}
            }
        }
    }

    pub(super) fn project(&mut self, at: &mut At) {
        let kind = at.kind.clone();
        let names = ["'name'", "'age'", "'x'"];
        let count = 1 + self.random.below(3) as usize;
        at.push(step("project", names[..count].iter().copied()));
        for _ in 0..count {
            let by = self.by(&kind);
            at.push(by);
        }
        at.becomes(TraverserKind::Map(true, Box::new(TraverserKind::Mixed)));
        at.is_ordered = false;
    }
}
