//! Traversals that are chosen by what rows are.

use super::Branch;
use crate::{
    operators::prelude::*,
    plan::{Case, Choice, is_stateful, units},
    tokens::Pick,
    value::equals,
};

/// The traversals of the cases that a choice matches.
#[derive(Debug, Clone, PartialEq)]
pub struct Choose {
    /// What decides.
    pub choice: Choice,
    /// When a traversal is taken, and the traversal.
    pub cases: Vec<(Case, Steps)>,
    /// Whether all matching cases count, and not the first alone.
    pub all: bool,
}

impl Operator for Choose {
    nested!(choice, cases);

    fn is_stateful(&self) -> bool {
        self.cases.iter().any(|(_, steps)| is_stateful(steps))
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        let input = input.others();
        match &self.choice {
            Choice::Productive(steps) => drop(reach.steps(steps, input.clone())),
            Choice::By(by) => drop(reach.by(by, input.clone())),
            Choice::Test(_) => {}
        }
        for (case, _) in &self.cases {
            if let Case::Steps(steps) = case {
                reach.steps(steps, input.clone());
            }
        }
        let mut after = reach.branches(self.cases.iter().map(|(_, steps)| steps), &input);
        after.join(input);
        after
    }

    fn start(self: Arc<Self>) -> Running {
        let branches = self.cases.iter().map(|(_, steps)| Branch::new(steps)).collect();
        let is_collecting = self.is_stateful();
        Running::new(Choosing { operator: self, branches, is_collecting })
    }
}

#[derive(Debug)]
struct Choosing {
    operator: Arc<Choose>,
    branches: Vec<Branch>,
    is_collecting: bool,
}

impl Stage for Choosing {
    fn is_collecting(&self) -> bool {
        self.is_collecting
    }

    fn input<'a>(&'a mut self, run: &'a mut Run, batch: Batch, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(self.choose(run, batch, out))
    }

    fn finish<'a>(&'a mut self, run: &'a mut Run, all: Batch, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move { if all.is_empty() { Ok(()) } else { self.choose(run, all, out).await } })
    }
}

impl Choosing {
    async fn choose(&mut self, run: &mut Run, batch: Batch, out: &mut Vec<Output>) -> Done<()> {
        let (parts, unmoved) = self.operator.parts(run, &batch).await?;
        let chosen = run.branches_with(&mut self.branches, &batch, parts, self.is_collecting, unmoved).await?;
        out.extend(Output::Same(chosen).parts(&run.growth)?);
        Ok(())
    }
}

impl Choose {
    /// The rows of each branch, and those that go on as they are.
    async fn parts(&self, run: &mut Run, batch: &Batch) -> Done<(Vec<Vec<u32>>, Vec<u32>)> {
        let choices: Vec<Option<Value>> = match &self.choice {
            Choice::Productive(steps) => {
                run.exists(steps, batch).await?.into_iter().map(|it| Some(it.into())).collect()
            }
            Choice::Test(predicate) => {
                let test = |at: usize, growth: &Growth| predicate.test(&batch.items.get(at), growth);
                let matching = run.tested(batch.len(), test).await?;
                matching.into_iter().map(|it| Some(it.into())).collect()
            }
            Choice::By(by) => run.by(by, batch).await?,
        };
        let mut parts: Vec<Vec<u32>> = vec![Vec::new(); self.cases.len()];
        let mut taken = vec![false; batch.len()];
        let growth = run.growth.clone();
        let mut chosen = batch.take_rows(&(0..batch.len() as u32).collect::<Vec<_>>(), &growth)?;
        let values = choices.iter().map(|choice| growth.copy(choice.as_ref().unwrap_or(&Value::Null)));
        chosen.items = Items::of_values(values.collect::<Done<_>>()?);
        for (number, (case, _)) in self.cases.iter().enumerate() {
            // There may be tens of thousands of them.
            run.pace.rest(1 + batch.len() as u64).await?;
            let matching: Vec<bool> = match case {
                Case::Equal(value) => {
                    let equals = |at: usize, growth: &Growth| match &choices[at] {
                        Some(choice) => growth.work(units(choice, value)).map(|()| equals(choice, value)),
                        None => Ok(false),
                    };
                    run.tested(choices.len(), equals).await?
                }
                Case::Test(predicate) => {
                    let test = |at: usize, growth: &Growth| match &choices[at] {
                        Some(choice) => predicate.test(choice, growth),
                        None => Ok(false),
                    };
                    run.tested(choices.len(), test).await?
                }
                Case::Steps(steps) => {
                    let exists = run.exists(steps, &chosen).await?;
                    exists.into_iter().zip(&choices).map(|(exists, choice)| exists && choice.is_some()).collect()
                }
                Case::Pick(Pick::Any) if self.all => vec![true; batch.len()],
                Case::Pick(_) => continue,
            };
            for at in 0..batch.len() {
                if matching[at] && (self.all || !taken[at]) {
                    parts[number].push(at as u32);
                    // `any` is taken besides others, and does not keep `none` from being taken.
                    taken[at] |= !matches!(case, Case::Pick(_));
                }
            }
        }
        let position = |pick: Pick| self.cases.iter().position(|(case, _)| *case == Case::Pick(pick));
        let unproductive = position(Pick::Unproductive);
        let none = position(Pick::None);
        let mut unmoved = Vec::new();
        for at in 0..batch.len() {
            if taken[at] {
                continue;
            }
            match if choices[at].is_none() { unproductive } else { none } {
                Some(branch) => parts[branch].push(at as u32),
                None if self.all => {}
                None => unmoved.push(at as u32),
            }
        }
        Ok((parts, unmoved))
    }
}
