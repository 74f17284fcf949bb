//! Texts with values in them.

use crate::{
    growth::TextBuilder,
    operators::prelude::*,
    run::{elements::elements, properties::Wanted},
    tokens::Pop,
};

/// A text with values in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Format {
    /// The text: `%{name}` stands for a property or what was met under the name, `%{_}` for what is computed.
    pub format: Name,
    /// What is computed, in turn.
    pub by: Vec<By>,
}

impl Operator for Format {
    nested!(by);

    fn reach(&self, _: &mut Reach<'_>, _: Elements) -> Elements {
        Elements::default()
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Format {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        run.format(batch, &self.format, &self.by).await
    }
}

/// Stands for a value that is not there, among values.
const ABSENT: crate::tokens::Token = crate::tokens::Token::Pick(crate::tokens::Pick::Unproductive);

impl Run {
    /// `format("%{name} is %{_}")`
    async fn format(&mut self, batch: Batch, format: &Name, by: &[By]) -> Done<Output> {
        let mut pieces: Vec<(String, Option<Name>)> = Vec::new();
        let mut rest: &str = format;
        let mut literal = String::new();
        while let Some((before, behind)) = rest.split_once("%{") {
            literal.push_str(before);
            // Behind another `%` it is no name.
            if literal.ends_with('%') {
                literal.push_str("%{");
                rest = behind;
                continue;
            }
            let Some((name, after)) = behind.split_once('}') else {
                literal.push_str("%{");
                rest = behind;
                break;
            };
            pieces.push((std::mem::take(&mut literal), Some(name.into())));
            rest = after;
        }
        literal.push_str(rest);
        pieces.push((literal, None));
        let growth = self.growth.clone();
        let mut texts: Vec<Option<TextBuilder<'_>>> = growth.column(batch.len())?;
        texts.extend((0..batch.len()).map(|_| Some(growth.text())));
        let mut number = 0;
        for (before, name) in pieces {
            texts.iter_mut().flatten().try_for_each(|text| text.push(&before))?;
            let Some(name) = name else { continue };
            let values = if &*name == "_" {
                let identity = By::Identity;
                let one = if by.is_empty() { &identity } else { &by[number % by.len()] };
                number += 1;
                self.by(one, &batch).await?
            } else {
                let read = self.read(elements(&batch), Wanted::Named(std::slice::from_ref(&name))).await?;
                let met = self.met(&name, Pop::Last, &batch).await?;
                let value = |(at, met): (usize, Option<Value>)| {
                    let own = batch.items.element(at).and_then(|element| read.first(element, &name));
                    own.map(|value| growth.built(value)).transpose().map(|own| own.or(met))
                };
                met.into_iter().enumerate().map(value).collect::<Done<Vec<_>>>()?
            };
            let values =
                self.finished(values.into_iter().map(|it| it.unwrap_or(Value::Token(ABSENT))).collect(), false).await?;
            for (text, value) in texts.iter_mut().zip(values) {
                match (value, text.as_mut()) {
                    (Value::Token(ABSENT), _) => *text = None,
                    (value, Some(text)) => text.push_value(&value)?,
                    _ => {}
                }
            }
        }
        let values = texts.into_iter().map(|text| text.map(TextBuilder::finish)).collect();
        self.mapped_if(&batch, values)
    }
}
