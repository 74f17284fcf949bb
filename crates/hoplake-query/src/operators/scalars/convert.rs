//! Values as another type.

use std::fmt::Write;

use bigdecimal::{BigDecimal, FromPrimitive, ToPrimitive};
use jiff::SignedDuration;
use num_bigint::BigInt;

use super::scoped;
use crate::{
    literal::Number,
    moment::Moment,
    operators::prelude::*,
    run::numbers_of_texts,
    tokens::{GType, Scope},
    value::{kind_of, to_big_decimal, to_f64, to_i64},
};

/// A value as another type.
#[derive(Debug, Clone, PartialEq)]
pub struct Convert {
    /// Whether each of a list becomes another.
    pub scope: Scope,
    /// The type.
    pub conversion: Conversion,
}

/// What a value becomes.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is the step that it is called after")]
pub enum Conversion {
    String,
    Number(Option<GType>),
    Date,
    Boolean,
}

impl Operator for Convert {
    fn name(&self) -> &'static str {
        "As"
    }

    fn reach(&self, _: &mut Reach<'_>, _: Elements) -> Elements {
        Elements::default()
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Convert {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let growth = run.growth.clone();
        if self.conversion != Conversion::String {
            return run.each_value(batch, |value| converted(&self.conversion, value, &growth).map(Some)).await;
        }
        let finished = run.finished(batch.items.copies(&growth)?, false).await?;
        let as_text = |value: &Value| match value {
            Value::Null => Err(QueryError::wrong_type("Can't parse null as String.")),
            value => shown(value, &growth).map(Some),
        };
        let mut values = growth.column(finished.len())?;
        for value in &finished {
            values.push(scoped(self.scope, value, &growth, as_text)?);
            run.pace.rest(1).await?;
        }
        run.mapped_if(&batch, values)
    }
}

/// A value as text.
fn shown(value: &Value, growth: &Growth) -> Done<Value> {
    let mut text = growth.text();
    text.push_value(value)?;
    Ok(text.finish())
}

/// Bytes of a value that a message has.
const MESSAGE_BYTES: usize = 200;

/// The beginning of a value as text, for a message: it may have gigabytes.
fn briefly(value: &Value) -> String {
    struct Beginning(String);
    impl Write for Beginning {
        fn write_str(&mut self, more: &str) -> fmt::Result {
            let left = MESSAGE_BYTES.saturating_sub(self.0.len());
            if more.len() <= left {
                self.0.push_str(more);
                return Ok(());
            }
            self.0.push_str(&more[..more.floor_char_boundary(left)]);
            self.0.push('…');
            Err(fmt::Error)
        }
    }
    let mut beginning = Beginning(String::new());
    // It ends with an error where the text is cut.
    let _ = write!(beginning, "{value}");
    beginning.0
}

fn converted(conversion: &Conversion, value: &Value, growth: &Growth) -> Done<Value> {
    let cannot = |to: &str| QueryError::wrong_type(format!("Can't parse {} as {to}.", briefly(value)));
    match conversion {
        Conversion::String => shown(value, growth),
        Conversion::Boolean => match value {
            Value::Boolean(_) => Ok(value.clone()),
            Value::Number(number) => {
                let number = to_f64(number);
                Ok((number != 0.0 && !number.is_nan()).into())
            }
            Value::Text(text) if trimmed(text).eq_ignore_ascii_case("true") => Ok(true.into()),
            Value::Text(text) if trimmed(text).eq_ignore_ascii_case("false") => Ok(false.into()),
            _ => Err(cannot("Boolean")),
        },
        Conversion::Date => match value {
            Value::DateTime(..) => Ok(value.clone()),
            Value::Number(Number::Byte(_) | Number::Short(_) | Number::Int(_) | Number::Long(_)) => {
                let Value::Number(number) = value else { return Err(cannot("date")) };
                let since = SignedDuration::from_millis(to_i64(number));
                Ok(Value::DateTime(Moment::since_epoch(since).ok_or_else(|| cannot("date"))?))
            }
            Value::Text(text) => Moment::parse(text).map(Value::DateTime).ok_or_else(|| cannot("date")),
            _ => Err(cannot("date")),
        },
        Conversion::Number(kind) => {
            let number = match value {
                Value::Number(number) => number.clone(),
                Value::Null => return Ok(Value::Null),
                Value::Text(text) => numbers_of_texts::parse(trimmed(text), growth)?.ok_or_else(|| {
                    QueryError::wrong_type(format!("Can't parse string '{}' as number.", briefly(value)))
                })?,
                Value::DateTime(moment) => Number::Long(moment.millis()),
                Value::List(_) => return Err(QueryError::wrong_type("Can't parse type ArrayList as number.")),
                other => {
                    return Err(QueryError::wrong_type(format!("Can't parse type {} as number.", kind_of(other))));
                }
            };
            let Some(kind) = kind else { return Ok(number.into()) };
            let number = cast(&number, *kind)?;
            number.beyond().map_or(Ok(number.into()), |limit| Err(QueryError::wrong_type(limit)))
        }
    }
}

/// As `String.trim` of Java: without what is not above a space.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|character| character <= ' ')
}

fn cast(number: &Number, kind: GType) -> Done<Number> {
    let overflow = || {
        QueryError::wrong_type(format!(
            "Can't convert number of type {} to {} due to overflow.",
            type_name(number),
            target(kind)
        ))
    };
    let whole = || -> Done<i64> {
        match number {
            Number::BigInteger(big) => big.to_i64().ok_or_else(overflow),
            Number::BigDecimal(big) => big.to_i64().ok_or_else(overflow),
            Number::Float(_) | Number::Double(_) => {
                let number = to_f64(number);
                // Both bounds are powers of two, and so exact.
                let fits = (i64::MIN as f64..-(i64::MIN as f64)).contains(&number);
                if fits { Ok(number as i64) } else { Err(overflow()) }
            }
            other => Ok(to_i64(other)),
        }
    };
    Ok(match kind {
        GType::Byte => Number::Byte(i8::try_from(whole()?).map_err(|_| overflow())?),
        GType::Short => Number::Short(i16::try_from(whole()?).map_err(|_| overflow())?),
        GType::Int => Number::Int(i32::try_from(whole()?).map_err(|_| overflow())?),
        GType::Long => Number::Long(whole()?),
        GType::Float => {
            let wide = to_f64(number);
            let narrow = wide as f32;
            if narrow.is_infinite() && !wide.is_infinite() {
                return Err(overflow());
            }
            Number::Float(narrow)
        }
        GType::Double => {
            let wide = match number {
                // As its text has it: 0.1 does not become 0.10000000149011612.
                Number::Float(float) => float.to_string().parse().unwrap_or(f64::from(*float)),
                number => to_f64(number),
            };
            let finite = !matches!(number, Number::Float(_) | Number::Double(_));
            if wide.is_infinite() && finite {
                return Err(overflow());
            }
            Number::Double(wide)
        }
        GType::BigInt => match number {
            Number::BigInteger(_) => number.clone(),
            Number::BigDecimal(big) => Number::BigInteger(big.with_scale(0).into_bigint_and_exponent().0),
            Number::Float(_) | Number::Double(_) if !to_f64(number).is_finite() => return Err(overflow()),
            Number::Float(float) => {
                Number::BigInteger(BigInt::from_f64(f64::from(*float).trunc()).ok_or_else(overflow)?)
            }
            // As its text has it.
            Number::Double(_) => Number::BigInteger(to_big_decimal(number).with_scale(0).into_bigint_and_exponent().0),
            other => Number::BigInteger(to_i64(other).into()),
        },
        GType::BigDecimal => match number {
            Number::BigDecimal(_) => number.clone(),
            Number::BigInteger(big) => Number::BigDecimal(BigDecimal::from(big.clone())),
            Number::Float(_) | Number::Double(_) if !to_f64(number).is_finite() => return Err(overflow()),
            Number::Float(_) | Number::Double(_) => Number::BigDecimal(to_big_decimal(number)),
            other => Number::BigDecimal(BigDecimal::from(to_i64(other))),
        },
        GType::Number => number.clone(),
        other => {
            return Err(QueryError::wrong_type(format!(
                "asNumber() requires a numeric type token, got {}",
                other.name()
            )));
        }
    })
}

fn type_name(number: &Number) -> &'static str {
    match number {
        Number::Byte(_) => "Byte",
        Number::Short(_) => "Short",
        Number::Int(_) => "Integer",
        Number::Long(_) => "Long",
        Number::BigInteger(_) => "BigInteger",
        Number::Float(_) => "Float",
        Number::Double(_) => "Double",
        Number::BigDecimal(_) => "BigDecimal",
    }
}

fn target(kind: GType) -> &'static str {
    match kind {
        GType::Byte => "Byte",
        GType::Short => "Short",
        GType::Int => "Integer",
        GType::Long => "Long",
        GType::Float => "Float",
        GType::Double => "Double",
        other => other.name(),
    }
}
