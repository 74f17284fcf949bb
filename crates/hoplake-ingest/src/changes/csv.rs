//! Changes as records of CSV.

use std::{borrow::Cow, io::Read, sync::Arc};

use super::{
    batch_rows::{ChangeInput, Source},
    columns::{Column, columns, row},
    location::SourceLocation,
    raw::Raw,
    types::parse,
};
use crate::{
    IngestError,
    source::plain::{CsvRecords, PlainFile},
};

/// The changes of a CSV file.
pub(super) fn file(file: &PlainFile) -> Result<Source, IngestError> {
    changes_of(file, file.records()?)
}

/// The changes of a text of CSV; `name` stands for the file in messages.
pub(super) fn text(name: &str, text: impl Read + Send + 'static) -> Result<Source, IngestError> {
    let file = PlainFile::named(name);
    changes_of(&file, file.records_of(text)?)
}

fn changes_of(file: &PlainFile, mut records: CsvRecords) -> Result<Source, IngestError> {
    let headers = if records.advance()? { records.headers() } else { return Ok(Box::new(std::iter::empty())) };
    let columns = columns(file, headers.iter().map(|(header, is_quoted)| Column::of(header, *is_quoted)))?;
    let name: Arc<str> = file.path().display().to_string().into();
    Ok(Box::new(std::iter::from_fn(move || {
        match records.advance() {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => return Some(Err(error)),
        }
        let location = SourceLocation::line(&name, records.line());
        if records.fields() != columns.len() {
            let why = format!("it has {} columns where {} are expected", records.fields(), columns.len());
            return Some(Err(IngestError::change(location, why)));
        }
        let cell = |at: usize| {
            let text = records.field(at).ok_or("is not UTF-8 text")?;
            match columns[at].kind {
                _ if text.is_empty() => Ok(None),
                None => Ok(Some(Raw::Untyped(text.to_owned()))),
                Some(kind) => parse(text, kind).map(|value| Some(Raw::Typed(value))).map_err(Cow::Borrowed),
            }
        };
        let shown = |at| records.field(at).map(|text| format!("{text:?} ")).unwrap_or_default();
        let written = row(&columns, cell, shown);
        Some(match written {
            Ok(written) => Ok(ChangeInput::One(location, written)),
            Err(why) => Err(IngestError::change(location, why)),
        })
    })))
}
