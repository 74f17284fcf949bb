//! Names of graphs, and where a name leads.

use std::str::FromStr;

use crate::failure::Failure;

/// The longest name of a graph, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// What is served, as it is written on the command line.
///
/// * `NAME=URL` is one graph under a name of its own.
/// * `URL` is a graph under the last part of its URL, or a folder of graphs: `URL/NAME` is opened when somebody asks
///   for NAME.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    name: Option<String>,
    url: String,
}

impl FromStr for Source {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        // An = behind the scheme belongs to the URL.
        let (name, url) = match text.split_once('=').filter(|(name, _)| !name.contains(['/', ':'])) {
            Some((name, url)) => (Some(check_name(name)?.to_owned()), url),
            None => (None, text),
        };
        if url.is_empty() {
            return Err(Failure::invalid(format!("{text:?} names no place; write URL or NAME=URL")));
        }
        Ok(Self { name, url: url.to_owned() })
    }
}

impl Source {
    /// The places where a graph of this name may be, the likeliest first.
    pub(crate) fn places(&self, name: &str) -> Vec<String> {
        let below = || format!("{}/{name}", self.url.trim_end_matches('/'));
        match &self.name {
            Some(own) if own == name => vec![self.url.clone()],
            Some(_) => Vec::new(),
            None if self.last_part() == Some(name) => vec![self.url.clone(), below()],
            None => vec![below()],
        }
    }

    /// The name that it is sure to be asked for by, if it has one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn last_part(&self) -> Option<&str> {
        self.url.trim_end_matches('/').rsplit('/').next()
    }
}

/// Refuses a name that is not one part of a path, or could leave it.
///
/// # Errors
/// [`Reason::Invalid`](crate::Reason::Invalid), with what a name may be.
pub(crate) fn check_name(name: &str) -> Result<&str, Failure> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins = name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    if begins && name.len() <= NAME_BYTES_MAX && name.bytes().all(good) && !name.contains("..") {
        return Ok(name);
    }
    Err(Failure::invalid(format!(
        "{name:?} is not a valid name of a graph: at most {NAME_BYTES_MAX} letters, digits, '.', '_' and '-', with a letter or \
         digit first, and no '..'"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_below_its_prefix() {
        for name in ["a", "air-routes", "snb.sf0_1", "9"] {
            assert_eq!(check_name(name).unwrap(), name);
        }
        for name in ["", ".", "..", "a..b", "../a", "a/b", "a\\b", "-a", "a b", "ä", "%2e", &"a".repeat(129)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_source_is_a_graph_or_a_folder_of_graphs() {
        let places = |source: &str, name: &str| source.parse::<Source>().unwrap().places(name);
        assert_eq!(places("s3://b/graphs/", "social"), ["s3://b/graphs/social"]);
        assert_eq!(places("s3://b/social", "social"), ["s3://b/social", "s3://b/social/social"]);
        assert_eq!(places("people=s3://b/social", "people"), ["s3://b/social"]);
        assert!(places("people=s3://b/social", "social").is_empty());
        assert_eq!(places("s3://b/x=y", "a"), ["s3://b/x=y/a"]);
        assert!("../x=s3://b".parse::<Source>().is_ok_and(|source| source.name().is_none()));
        assert!("a b=s3://b".parse::<Source>().is_err() && "a=".parse::<Source>().is_err());
    }
}
