//! Steps for anything: how many, in which order, under which names.

use super::{At, Generator, TraverserKind};
use crate::gremlin::tree::{Argument, StepCall, bare, step};

impl Generator<'_> {
    /// Steps for anything.
    pub(super) fn general(&mut self, at: &mut At) {
        match self.random.below(29) {
            0 => self.reduce(at, bare("count"), TraverserKind::Number),
            1 => {
                if !at.is_ordered {
                    self.order_totally(at);
                }
                let is_ordered = at.is_ordered;
                self.lists_are_ordered &= is_ordered;
                let kind = TraverserKind::List(is_ordered, Box::new(at.kind.clone()));
                self.reduce(at, bare("fold"), kind);
            }
            2 => self.deduplicate(at),
            3 | 4 => self.order_totally(at),
            5 => self.take_some(at),
            6 | 7 => self.name(at),
            8 | 9 => self.select(at),
            10 | 11 => self.filter(at),
            12 | 13 => self.branch(at),
            14 => self.group(at),
            15 => self.project(at),
            16 if !at.is_tangled && self.depth == 0 => {
                at.push(bare("path")).becomes(TraverserKind::Path);
                // Equal ones came along several.
                at.is_ordered = false;
                if self.one_in(4) {
                    self.part_of_path(at);
                }
                if self.one_in(3) {
                    at.push(step("by", ["'uid'"]));
                    at.becomes(TraverserKind::Path);
                }
            }
            17 if self.depth == 0 && !at.is_tangled => {
                at.push(bare(self.pick(&["simplePath", "cyclicPath"])));
                if self.one_in(4) {
                    self.part_of_path(at);
                }
            }
            18 if self.depth == 0 => {
                at.push(step("aggregate", ["'s'"]));
                self.has_side_effect = true;
            }
            19 if self.has_side_effect && self.depth == 0 => {
                let predicate = self.pick(&["P.within('s')", "P.without('s')"]);
                at.push(step("where", [predicate]));
            }
            20 => {
                let (child, kind) = self.scalar(&at.kind.clone());
                at.push(step("map", [child])).becomes(kind);
                at.is_ordered = false;
            }
            21 => {
                let literal = self.literal(&TraverserKind::Mixed);
                at.push(step("constant", [literal])).becomes(TraverserKind::Mixed);
                at.is_ordered = false;
            }
            22 => {
                at.push(bare(self.pick(&["identity", "barrier"])));
            }
            23 if self.depth == 0 && !at.is_tangled => {
                self.reduce(at, bare("tree"), TraverserKind::Map(false, Box::new(TraverserKind::Mixed)));
            }
            24 => {
                let child = self.child(&at.kind.clone()).0;
                at.push(step("sideEffect", [child]));
            }
            25 if self.one_in(4) => self.unknown_name(at),
            26 if self.depth == 0 && !at.is_tangled => self.labelled_condition(at),
            27 if matches!(at.kind, TraverserKind::Mixed | TraverserKind::List(..) | TraverserKind::Property)
                && self.one_in(3) =>
            {
                let name = self.pick(&["sum", "min", "max", "mean"]);
                self.reduce(at, bare(name), TraverserKind::Number);
            }
            _ => self.filter(at),
        }
    }

    /// `from` and `to` of a path: labels, perhaps in the wrong order, or one that nothing has.
    fn part_of_path(&mut self, at: &mut At) {
        for name in ["from", "to"] {
            if self.one_in(2) {
                let label = self.label();
                at.push(step(name, [label]));
            }
        }
    }

    /// A label of a step, or at times one that no step has.
    fn label(&mut self) -> String {
        match self.scope.is_empty() || self.one_in(4) {
            true => "'none'".to_owned(),
            false => format!("'{}'", self.pick(&self.scope.clone()).0),
        }
    }

    /// A step that asks for something by a name that nothing has.
    fn unknown_name(&mut self, at: &mut At) {
        match self.random.below(7) {
            0 if self.depth == 0 => self.reduce(at, step("cap", ["'none'"]), TraverserKind::Mixed),
            0 | 1 => {
                at.push(step("select", ["'none'"])).becomes(TraverserKind::Mixed);
            }
            2 => {
                let label = self.label();
                at.push(step("select", [label, "'none'".to_owned()]))
                    .becomes(TraverserKind::Map(true, Box::new(TraverserKind::Mixed)));
            }
            3 => {
                let predicate = self.pick(&[
                    "P.eq('none')",
                    "P.neq('none')",
                    "P.within('none')",
                    "P.without('none')",
                    "P.gt('none')",
                ]);
                at.push(step("where", [predicate]));
            }
            4 => {
                at.push(step("where", [vec![step("as", ["'none'"]), bare("identity")]]));
            }
            5 => {
                at.push(step("math", [self.pick(&["'none + 1'", "'_ * none'", "'-none ^ 2'"])]))
                    .becomes(TraverserKind::Number);
            }
            _ => {
                let pop = self.pick(&["Pop.first", "Pop.last", "Pop.all", "Pop.mixed"]);
                let label = self.label();
                at.push(step("select", [pop.to_owned(), label])).becomes(TraverserKind::Mixed);
                at.is_tangled = true;
            }
        }
        at.is_ordered = false;
    }

    /// A condition that begins, and perhaps ends, with what has a label.
    fn labelled_condition(&mut self, at: &mut At) {
        let Some((label, kind)) = (!self.scope.is_empty()).then(|| self.pick(&self.scope.clone())) else { return };
        let mut child = vec![step("as", [format!("'{label}'")])];
        child.extend(self.child(&kind).0);
        if self.one_in(2) {
            let end = self.label();
            child.push(step("as", [end]));
        }
        at.push(match self.random.below(3) {
            0 => step("where", [vec![step("not", [child])]]),
            _ => step("where", [child]),
        });
    }

    /// A step that leaves one traverser without a past.
    pub(super) fn reduce(&mut self, at: &mut At, step: StepCall, kind: TraverserKind) {
        at.push(step).becomes(kind);
        at.is_ordered = self.depth == 0;
        at.is_tangled = false;
        if self.depth == 0 {
            self.scope.clear();
        }
    }

    /// An order that leaves no choice, if the kind has one.
    pub(super) fn order_totally(&mut self, at: &mut At) {
        let direction = self.pick(&["asc", "desc"]);
        match at.kind {
            TraverserKind::Vertex | TraverserKind::Edge => {
                at.push(bare("order"));
                if self.one_in(2) {
                    let key = self.key(&at.kind.clone());
                    // Elements without the property would be dropped: they are sometimes meant to be.
                    if self.is_changed || self.one_in(2) {
                        at.push(step("by", [Argument::Text(format!("'{key}'")), direction.into()]));
                    } else {
                        let (child, _) = self.scalar(&at.kind.clone());
                        at.push(step("by", [Argument::Child(child), direction.into()]));
                    }
                }
                at.push(step("by", ["'uid'"]));
            }
            TraverserKind::Text | TraverserKind::Boolean | TraverserKind::Date => {
                at.push(bare("order"));
                if self.one_in(2) {
                    at.push(step("by", [direction]));
                }
            }
            // Perhaps with elements, whose ids are the server's.
            TraverserKind::Mixed => {
                at.push(bare("order"));
                at.is_ordered = false;
                return;
            }
            TraverserKind::Number => {
                at.push(bare("order")).push(step("by", [direction]));
                if self.one_in(3) {
                    // Equal numbers of several types are in the order in which they came.
                    at.is_ordered = false;
                    return;
                }
                at.push(step("by", [vec![bare("asString")]]));
            }
            _ => return,
        }
        at.is_ordered = true;
    }

    pub(super) fn deduplicate(&mut self, at: &mut At) {
        if self.scope.len() > 1 && !at.is_tangled && self.one_in(2) {
            let labels: Vec<String> = self.scope.iter().map(|(label, _)| format!("'{label}'")).collect();
            at.push(step("dedup", labels));
            at.is_tangled = true;
            at.becomes(TraverserKind::Mixed);
            // Which of those with the same labels it is, is not said.
            self.reduce(at, bare("count"), TraverserKind::Number);
            return;
        }
        match at.kind {
            TraverserKind::Vertex | TraverserKind::Edge if self.one_in(2) => {
                // Which of several it keeps is not said: TinkerPop moves it before an order.
                let by = self.by(&at.kind.clone());
                let same = by.arguments.clone();
                at.push(bare("dedup")).push(by);
                match &same[..] {
                    [Argument::Text(key)] if key.starts_with('\'') => {
                        at.push(step("values", same)).becomes(TraverserKind::Mixed);
                        at.is_ordered = false;
                    }
                    _ => self.reduce(at, bare("count"), TraverserKind::Number),
                }
            }
            _ => {
                at.push(bare("dedup"));
            }
        }
        at.is_tangled = true;
    }

    /// A part of them, after an order that says which.
    pub(super) fn take_some(&mut self, at: &mut At) {
        if !at.is_ordered || self.one_in(2) {
            self.order_totally(at);
        }
        if !at.is_ordered {
            return;
        }
        let count = self.random.below(5);
        let more = count + self.random.below(4);
        at.push(match self.random.below(4) {
            0 => step("range", [count.to_string(), more.to_string()]),
            1 => step("tail", [count.to_string()]),
            2 => step("skip", [count.to_string()]),
            _ => step("limit", [count.to_string()]),
        });
        at.is_tangled = true;
    }

    pub(super) fn name(&mut self, at: &mut At) {
        if self.depth > 0 || at.is_tangled {
            return;
        }
        let label = ["a", "b", "c", "d"][self.named.min(3)].to_owned();
        self.named += 1;
        // A label of a start would hide what follows from rules that look at the start; both are wanted.
        if self.scope.iter().all(|(other, _)| *other != label) {
            at.push(step("as", [format!("'{label}'")]));
            self.scope.push((label, at.kind.clone()));
        }
    }

    pub(super) fn select(&mut self, at: &mut At) {
        if self.scope.is_empty() || at.is_tangled {
            return;
        }
        let (label, kind) = self.pick(&self.scope.clone());
        if self.scope.len() > 1 && self.one_in(3) {
            let labels: Vec<String> = self.scope.iter().map(|(label, _)| format!("'{label}'")).collect();
            at.push(step("select", labels)).becomes(TraverserKind::Map(true, Box::new(TraverserKind::Mixed)));
            if self.scope.iter().all(|(_, kind)| matches!(kind, TraverserKind::Vertex | TraverserKind::Edge))
                && self.one_in(2)
            {
                at.push(step("by", ["'uid'"]));
                at.becomes(TraverserKind::Map(true, Box::new(TraverserKind::Text)));
            }
            at.is_ordered = false;
            return;
        }
        if self.one_in(4) {
            let predicate = self.pick(&["eq", "neq"]);
            at.push(step("where", [format!("{predicate}('{label}')")]));
            if matches!(
                (&at.kind, &kind),
                (TraverserKind::Vertex | TraverserKind::Edge, TraverserKind::Vertex | TraverserKind::Edge)
            ) && self.one_in(2)
            {
                let by = self.pick(&["'uid'", "'age'", "'weight'", "T.label", "'x'"]);
                at.push(step("by", [by]));
            }
            return;
        }
        at.push(step("select", [format!("'{label}'")])).becomes(kind);
        at.is_ordered = false;
    }
}
