//! What each person adds to the vertices of a label and to the edges of a type.

use super::{
    KeyedEdge, SocialLabel, SocialRelation, SocialVertex,
    activity::{Forum, Message, Thread},
    people::{People, Purpose, stream},
    places, shape, time,
};

/// The persons, forums or messages that a person adds.
pub fn vertices_of(people: &People, person: u32, label: SocialLabel, out: &mut Vec<SocialVertex>) {
    let mut add = |key, created_ms: u64| {
        out.push(SocialVertex { key, created_unix_ms: Some(time::START_UNIX_MS + created_ms as i64) });
    };
    match label {
        SocialLabel::Person => add(people.key(person), people.joined_ms(person)),
        SocialLabel::Forum => people.forums(person).iter().for_each(|forum| add(forum.key, forum.created_ms)),
        _ => people.for_each_thread(person, |_, post, thread| match label {
            SocialLabel::Post => add(post.key, post.created_ms),
            _ => thread.comments.iter().for_each(|(comment, _)| add(comment.key, comment.created_ms)),
        }),
    }
}

/// The edges of a type that a person adds: its own, or those of its forums and the messages in them.
pub fn of_person(people: &People, person: u32, relation: SocialRelation, out: &mut Vec<KeyedEdge>) {
    use SocialRelation as R;
    match relation {
        R::Knows | R::HasInterest | R::PersonIsLocatedIn | R::StudyAt | R::WorkAt => {
            person_edges(people, person, relation, out);
        }
        R::HasMember | R::HasModerator | R::ForumHasTag => forum_edges(people, person, relation, out),
        _ => message_edges(people, person, relation, out),
    }
}

fn person_edges(people: &People, person: u32, relation: SocialRelation, out: &mut Vec<KeyedEdge>) {
    let key = people.key(person);
    match relation {
        SocialRelation::Knows => {
            let friends = people.friends(person).iter().map(|&friend| people.key(friend));
            out.extend(friends.filter(|&friend| friend > key).map(|friend| (key, friend)));
        }
        SocialRelation::HasInterest => out.extend(people.interests(person).iter().map(|&tag| (key, tag as i64))),
        SocialRelation::PersonIsLocatedIn => out.push((key, people.city(person) as i64)),
        SocialRelation::StudyAt => {
            let mut random = stream(people.seed, Purpose::Study, person.into(), 0);
            if random.unit() <= 0.791 {
                out.push((key, places::university_in(people.country(person), &mut random) as i64));
            }
        }
        _ => out.extend(employers(people, person).iter().map(|&company| (key, company as i64))),
    }
}

/// The companies a person works for, nine in ten in its country.
fn employers(people: &People, person: u32) -> Vec<u64> {
    let mut random = stream(people.seed, Purpose::Work, person.into(), 0);
    let mut employers = Vec::new();
    let wanted = shape::EMPLOYERS.draw(&mut random);
    for _ in 0..3 * wanted {
        let abroad = random.below(10) == 0;
        let country = if abroad { random.below(places::COUNTRIES) } else { people.country(person) };
        let company = places::company_in(country, &mut random);
        if employers.len() < wanted && !employers.contains(&company) {
            employers.push(company);
        }
    }
    employers
}

fn forum_edges(people: &People, person: u32, relation: SocialRelation, out: &mut Vec<KeyedEdge>) {
    for forum in people.forums(person) {
        match relation {
            SocialRelation::HasMember => {
                out.extend(forum.members.iter().map(|&member| (forum.key, people.key(member))));
            }
            SocialRelation::HasModerator => out.push((forum.key, people.key(person))),
            _ => out.extend(people.forum_tags(&forum).iter().map(|&tag| (forum.key, tag as i64))),
        }
    }
}

fn message_edges(people: &People, person: u32, relation: SocialRelation, out: &mut Vec<KeyedEdge>) {
    let tagged = matches!(relation, SocialRelation::PostHasTag | SocialRelation::CommentHasTag);
    // The threads of one forum follow each other.
    let mut forum_key = None;
    let mut forum_tags = Vec::new();
    people.for_each_thread(person, |forum, post, thread| {
        if tagged && forum_key != Some(forum.key) {
            forum_key = Some(forum.key);
            forum_tags = people.forum_tags(forum);
        }
        let seen = PostContext { people, forum, forum_tags: &forum_tags, post, thread };
        match relation.source() {
            SocialLabel::Comment => seen.comment_edges(relation, out),
            _ if relation == SocialRelation::LikesComment => seen.comment_edges(relation, out),
            _ => seen.post_edges(relation, out),
        }
    });
}

/// A post with its forum and thread, from which its edges are generated.
struct PostContext<'a> {
    people: &'a People,
    forum: &'a Forum,
    /// Empty where nobody asks for tags.
    forum_tags: &'a [u64],
    post: &'a Message,
    thread: &'a Thread,
}

impl PostContext<'_> {
    fn post_edges(&self, relation: SocialRelation, out: &mut Vec<KeyedEdge>) {
        let Self { people, forum, post, .. } = self;
        match relation {
            SocialRelation::ContainerOf => out.push((forum.key, post.key)),
            SocialRelation::PostHasCreator => out.push((post.key, people.key(post.author))),
            SocialRelation::PostIsLocatedIn => out.push((post.key, people.country(post.author) as i64)),
            SocialRelation::PostHasTag => out.extend(self.post_tags().iter().map(|&tag| (post.key, tag as i64))),
            _ => {
                let likers = people.likers(forum, post, false);
                out.extend(likers.iter().map(|&liker| (people.key(liker), post.key)));
            }
        }
    }

    fn comment_edges(&self, relation: SocialRelation, out: &mut Vec<KeyedEdge>) {
        let people = self.people;
        let post_tags = if relation == SocialRelation::CommentHasTag { self.post_tags() } else { Vec::new() };
        for (comment, parent) in &self.thread.comments {
            match relation {
                SocialRelation::CommentHasCreator => out.push((comment.key, people.key(comment.author))),
                SocialRelation::CommentIsLocatedIn => out.push((comment.key, people.country(comment.author) as i64)),
                SocialRelation::CommentHasTag => {
                    let tags = people.comment_tags(&post_tags, comment);
                    out.extend(tags.iter().map(|&tag| (comment.key, tag as i64)));
                }
                SocialRelation::ReplyOfPost if parent.is_none() => out.push((comment.key, self.post.key)),
                SocialRelation::ReplyOfComment => {
                    out.extend(parent.map(|parent| (comment.key, self.thread.comments[parent].0.key)));
                }
                SocialRelation::LikesComment => {
                    let likers = people.likers(self.forum, comment, true);
                    out.extend(likers.iter().map(|&liker| (people.key(liker), comment.key)));
                }
                _ => {}
            }
        }
    }

    fn post_tags(&self) -> Vec<u64> {
        self.people.post_tags(self.forum.kind, self.forum_tags, self.post)
    }
}
