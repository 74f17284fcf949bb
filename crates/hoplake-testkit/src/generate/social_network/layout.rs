//! How a network is written to files that a load understands: a mapping and the names in it.

use std::fmt::Write;

use super::{SocialLabel, SocialNetwork, SocialRelation};

impl SocialLabel {
    /// Whether its vertices have a creation date.
    pub fn is_dated(self) -> bool {
        matches!(self, Self::Person | Self::Forum | Self::Post | Self::Comment)
    }

    /// The file of its vertices, `Person.csv`: columns `id` and, if they are dated, `creationDate` in milliseconds.
    pub fn file(self, ending: &str) -> String {
        format!("{}.{ending}", self.name())
    }
}

impl SocialRelation {
    /// The file of its edges, `Person_knows_Person.csv`: columns `source` and `target`.
    pub fn file(self, ending: &str) -> String {
        format!("{}_{}_{}.{ending}", self.source().name(), self.label(), self.target().name())
    }
}

impl SocialNetwork {
    /// The mapping (TOML) to load all labels and edge types from such files.
    pub fn mapping(ending: &str) -> String {
        let mut text = String::new();
        for label in SocialLabel::ALL {
            let file = label.file(ending);
            let name = label.name();
            let vertices =
                format!("[[vertices]]\nfile = \"{file}\"\nlabel = \"{name}\"\nkey = \"id\"\nkey_type = \"int64\"\n");
            let properties = match label.is_dated() {
                true => "[vertices.properties]\ncreationDate = \"timestamp_ms\"\n",
                false => "ignore_others = true\n",
            };
            writeln!(text, "{vertices}{properties}").expect("a string takes all that is written");
        }
        for relation in SocialRelation::ALL {
            let [source, target] = [relation.source(), relation.target()].map(SocialLabel::name);
            let ends = format!(
                "source = \"source\"\nsource_label = \"{source}\"\ntarget = \"target\"\ntarget_label = \"{target}\"\n"
            );
            let file = relation.file(ending);
            let label = relation.label();
            writeln!(text, "[[edges]]\nfile = \"{file}\"\nlabel = \"{label}\"\n{ends}")
                .expect("a string takes all that is written");
        }
        text
    }
}
