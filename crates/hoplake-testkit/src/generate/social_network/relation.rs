//! The labels and edge types of a social network, named as LDBC names them.

/// A label of vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SocialLabel {
    /// A person.
    Person,
    /// A wall, an album or a group.
    Forum,
    /// A message in a forum.
    Post,
    /// A reply to a post or a comment.
    Comment,
    /// A topic.
    Tag,
    /// A class of topics.
    TagClass,
    /// A university or a company.
    Organisation,
    /// A city, a country or a continent.
    Place,
}

impl SocialLabel {
    /// All labels.
    pub const ALL: [Self; 8] = [
        Self::Person,
        Self::Forum,
        Self::Post,
        Self::Comment,
        Self::Tag,
        Self::TagClass,
        Self::Organisation,
        Self::Place,
    ];

    /// Its name: `Person`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Person => "Person",
            Self::Forum => "Forum",
            Self::Post => "Post",
            Self::Comment => "Comment",
            Self::Tag => "Tag",
            Self::TagClass => "TagClass",
            Self::Organisation => "Organisation",
            Self::Place => "Place",
        }
    }
}

macro_rules! relations {
    ($($(#[$doc:meta])* $name:ident: $source:ident $label:literal $target:ident;)*) => {
        /// An edge type: a label between two labels of vertices.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum SocialRelation {
            $($(#[$doc])* $name,)*
        }

        impl SocialRelation {
            /// All edge types.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The label of the vertices it leaves.
            pub fn source(self) -> SocialLabel {
                match self { $(Self::$name => SocialLabel::$source,)* }
            }

            /// Its edge label: `knows`.
            pub fn label(self) -> &'static str {
                match self { $(Self::$name => $label,)* }
            }

            /// The label of the vertices it reaches.
            pub fn target(self) -> SocialLabel {
                match self { $(Self::$name => SocialLabel::$target,)* }
            }
        }
    };
}

relations! {
    /// Friends, each pair once, from the lower key.
    Knows: Person "knows" Person;
    /// What interests a person.
    HasInterest: Person "hasInterest" Tag;
    /// Where a person lives: a city.
    PersonIsLocatedIn: Person "isLocatedIn" Place;
    /// Where a person studied: a university.
    StudyAt: Person "studyAt" Organisation;
    /// Where a person works: companies.
    WorkAt: Person "workAt" Organisation;
    /// Posts that a person likes.
    LikesPost: Person "likes" Post;
    /// Comments that a person likes.
    LikesComment: Person "likes" Comment;
    /// Who is in a forum.
    HasMember: Forum "hasMember" Person;
    /// Who owns a forum.
    HasModerator: Forum "hasModerator" Person;
    /// What a forum is about.
    ForumHasTag: Forum "hasTag" Tag;
    /// What was posted in a forum.
    ContainerOf: Forum "containerOf" Post;
    /// Who wrote a post.
    PostHasCreator: Post "hasCreator" Person;
    /// What a post is about.
    PostHasTag: Post "hasTag" Tag;
    /// Where a post was written: a country.
    PostIsLocatedIn: Post "isLocatedIn" Place;
    /// Who wrote a comment.
    CommentHasCreator: Comment "hasCreator" Person;
    /// What a comment is about.
    CommentHasTag: Comment "hasTag" Tag;
    /// Where a comment was written: a country.
    CommentIsLocatedIn: Comment "isLocatedIn" Place;
    /// The post that a comment replies to, if it is one.
    ReplyOfPost: Comment "replyOf" Post;
    /// The comment that a comment replies to, if it is one.
    ReplyOfComment: Comment "replyOf" Comment;
    /// The class of a tag.
    HasType: Tag "hasType" TagClass;
    /// The class above.
    IsSubclassOf: TagClass "isSubclassOf" TagClass;
    /// The seat of an organisation.
    OrganisationIsLocatedIn: Organisation "isLocatedIn" Place;
    /// Cities in countries in continents.
    IsPartOf: Place "isPartOf" Place;
}
