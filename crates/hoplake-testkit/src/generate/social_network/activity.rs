//! The activity of a person: forums, their posts, and the comments below them.
//!
//! As in SNB, everybody has a wall, half of all persons have an album a month, and few moderate groups.
//! All friends are members of the wall, some of them of each album; a group has friends, their friends
//! and strangers. A wall has posts by its owner, in proportion to friends and to the time since joining; a
//! group has posts by members; albums hold pictures. Walls and groups have threads of up to 20
//! comments by members, within days. Everything follows from the seed and the person, so any person's
//! activity can be had without the others'.

use super::{
    people::{People, Purpose, stream},
    shape::{COMMENT_TAGS, FRIENDS_MEAN_MEASURED, POST_TAGS, REPLY_HOURS},
    time::{self, DAY_MS, HOUR_MS, SPAN_MS},
    topics,
};
use crate::generate::SplitMix64;

/// The most posts of an album and comments of a thread; all numbers up to it are as likely.
const RUN_MAX: u64 = 20;

/// The share of persons who publish albums.
const PHOTOGRAPHERS: f64 = 0.467;

/// The share of persons who moderate groups, one to three each.
const MODERATORS: f64 = 0.0455;

/// Posts on a wall for each friend of somebody who was there all the time and is as talkative as can be.
const POSTS_PER_FRIEND_MAX: f64 = 1.98;

/// Posts in a group for each member.
const POSTS_PER_MEMBER: f64 = 0.617;

/// Members of a group over the mean number of friends.
const GROUP_MEMBERS_PER_FRIEND: f64 = 1.28;

/// The exponent of the tail of likes: P(likes ≥ x) = x^−0.5, at most as many as members.
const LIKES_TAIL: f64 = 0.5;

/// The share of messages with likes grows by this power of the mean number of friends, so that
/// likes per message are those of SF0.1 and SF10 at either size.
const LIKED_GROWTH: f64 = 0.2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForumKind {
    Wall,
    Album,
    Group,
}

#[derive(Debug, Clone)]
pub struct Forum {
    pub key: i64,
    pub kind: ForumKind,
    pub created_ms: u64,
    pub moderator: u32,
    /// Each once, in no order.
    pub members: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
pub struct Message {
    pub key: i64,
    pub created_ms: u64,
    pub author: u32,
}

/// The comments below a post.
#[derive(Debug, Default)]
pub struct Thread {
    /// Each with the index of the comment it replies to; none for the post.
    pub comments: Vec<(Message, Option<usize>)>,
}

impl People {
    /// The forums that a person moderates, the wall first.
    pub fn forums(&self, person: u32) -> Vec<Forum> {
        let mut random = stream(self.seed, Purpose::Forums, person.into(), 0);
        let joined_ms = self.joined_ms(person);
        let mut forums = Vec::new();
        let mut add = |kind, created_ms, members| {
            let key = time::own_key(created_ms, person, forums.len() as u64);
            forums.push(Forum { key, kind, created_ms, moderator: person, members });
        };
        add(ForumKind::Wall, joined_ms, self.friends(person).to_vec());
        if random.unit() <= PHOTOGRAPHERS {
            for month_ms in (joined_ms..SPAN_MS).step_by(30 * DAY_MS as usize) {
                // 42 % of the friends on average, as counted.
                let invited = 0.1 + 0.634 * random.unit();
                let members = self.friends(person).iter().copied().filter(|_| random.unit() <= invited).collect();
                add(ForumKind::Album, (month_ms + random.below(30 * DAY_MS)).min(SPAN_MS - 1), members);
            }
        }
        if random.unit() <= MODERATORS {
            for _ in 0..=random.below(3) {
                let created_ms = joined_ms + random.below(SPAN_MS - joined_ms);
                add(ForumKind::Group, created_ms, self.group_members(person, &mut random));
            }
        }
        forums
    }

    /// Up to twice the mean size: a quarter friends, a fifth friends of friends, and others.
    fn group_members(&self, moderator: u32, random: &mut SplitMix64) -> Vec<u32> {
        let most = 2.0 * GROUP_MEMBERS_PER_FRIEND * self.friends_mean;
        let wanted = 1 + random.below(most as u64);
        let one_of =
            |these: &[u32], random: &mut SplitMix64| these.get(random.below(these.len() as u64) as usize).copied();
        let mut members = Vec::new();
        for _ in 0..wanted {
            let draw = random.unit();
            let friend = one_of(self.friends(moderator), random).filter(|_| draw < 0.48);
            let member = match friend {
                Some(friend) if draw < 0.26 => Some(friend),
                Some(friend) => one_of(self.friends(friend), random),
                None => Some(random.below(self.count().into()) as u32),
            };
            members.extend(member.filter(|&member| member != moderator));
        }
        members.sort_unstable();
        members.dedup();
        members
    }

    /// Visits every thread of the forums of a person, in the order of their keys' numbers.
    pub fn for_each_thread(&self, person: u32, mut visit: impl FnMut(&Forum, &Message, &Thread)) {
        let mut number = 0;
        let mut thread = Thread::default();
        for (index, forum) in (0..).zip(self.forums(person)) {
            let mut random = stream(self.seed, Purpose::Thread, person.into(), index);
            let mut times: Vec<u64> = (0..self.post_count(&forum, &mut random))
                .map(|_| match forum.kind {
                    ForumKind::Album => (forum.created_ms + random.below(HOUR_MS)).min(SPAN_MS - 1),
                    _ => forum.created_ms + random.below(SPAN_MS - forum.created_ms),
                })
                .collect();
            times.sort_unstable();
            for created_ms in times {
                let author = match forum.kind {
                    ForumKind::Group => forum.members[random.below(forum.members.len() as u64) as usize],
                    _ => person,
                };
                let post = Message { key: time::own_key(created_ms, person, number), created_ms, author };
                number += 1;
                self.fill_thread(&forum, &post, &mut number, &mut random, &mut thread);
                visit(&forum, &post, &thread);
            }
        }
    }

    fn post_count(&self, forum: &Forum, random: &mut SplitMix64) -> u64 {
        let draw = random.unit();
        match forum.kind {
            ForumKind::Album => random.below(RUN_MAX + 1),
            _ if forum.members.is_empty() => 0,
            ForumKind::Wall => {
                let time_left = (SPAN_MS - forum.created_ms) as f64 / SPAN_MS as f64;
                let friends = f64::from(self.sociability[forum.moderator as usize]);
                (POSTS_PER_FRIEND_MAX * friends * time_left * draw).round() as u64
            }
            ForumKind::Group => (2.0 * POSTS_PER_MEMBER * forum.members.len() as f64 * draw).round() as u64,
        }
    }

    /// Comments on a post: the first replies to it, four in nine of the others too, the rest to one
    /// before, rather an early one.
    fn fill_thread(
        &self,
        forum: &Forum,
        post: &Message,
        number: &mut u64,
        random: &mut SplitMix64,
        thread: &mut Thread,
    ) {
        thread.comments.clear();
        if forum.kind == ForumKind::Album || forum.members.is_empty() {
            return;
        }
        for index in 0..random.below(RUN_MAX + 1) as usize {
            let parent = (index > 0 && random.unit() > 0.437).then(|| (index as f64 * random.unit().powi(2)) as usize);
            let parent = parent.map(|parent| parent.min(index - 1));
            let replied_ms = parent.map_or(post.created_ms, |parent| thread.comments[parent].0.created_ms);
            let delay_ms = (REPLY_HOURS.at(random.unit()) * HOUR_MS as f64) as u64;
            let created_ms = (replied_ms + delay_ms).min(SPAN_MS - 1);
            let author = forum.members[random.below(forum.members.len() as u64) as usize];
            let key = time::own_key(created_ms, forum.moderator, *number);
            *number += 1;
            thread.comments.push((Message { key, created_ms, author }, parent));
        }
    }

    /// The tags of a forum: the owner's interests, or one of them.
    pub fn forum_tags(&self, forum: &Forum) -> Vec<u64> {
        let mut tags = self.interests(forum.moderator);
        if forum.kind != ForumKind::Wall {
            let chosen = stream(self.seed, Purpose::Tags, forum.key as u64, 0).below(tags.len() as u64);
            tags = vec![tags[chosen as usize]];
        }
        tags
    }

    /// The tags of a post: one of its forum's and others that go with it; pictures have none.
    pub fn post_tags(&self, kind: ForumKind, forum_tags: &[u64], post: &Message) -> Vec<u64> {
        if kind == ForumKind::Album {
            return Vec::new();
        }
        let mut random = stream(self.seed, Purpose::Tags, post.key as u64, 1);
        let wanted = POST_TAGS.draw(&mut random);
        let first = forum_tags[random.below(forum_tags.len() as u64) as usize];
        with_related(vec![first], first, wanted, &mut random)
    }

    /// The tags of a comment: two thirds have none, the others those of the post or what goes with them.
    pub fn comment_tags(&self, post_tags: &[u64], comment: &Message) -> Vec<u64> {
        let mut random = stream(self.seed, Purpose::Tags, comment.key as u64, 2);
        let wanted = COMMENT_TAGS.draw(&mut random);
        let mut tags: Vec<u64> = post_tags.iter().copied().filter(|_| random.below(3) == 0).collect();
        tags.truncate(wanted);
        with_related(tags, post_tags[0], wanted, &mut random)
    }

    /// Which members like a message: mostly nobody, else a number with a heavy tail.
    pub fn likers(&self, forum: &Forum, message: &Message, is_comment: bool) -> Vec<u32> {
        let liked = match forum.kind {
            _ if is_comment => 0.0304,
            ForumKind::Wall => 0.096,
            ForumKind::Album => 0.059,
            ForumKind::Group => 0.078,
        };
        let mut random = stream(self.seed, Purpose::Likes, message.key as u64, is_comment.into());
        if random.unit() > liked * (self.friends_mean / FRIENDS_MEAN_MEASURED).powf(LIKED_GROWTH) {
            return Vec::new();
        }
        let mut members = forum.members.clone();
        let likes = (random.unit().powf(-1.0 / LIKES_TAIL) as usize).min(members.len());
        for chosen in 0..likes {
            let other = chosen + random.below((members.len() - chosen) as u64) as usize;
            members.swap(chosen, other);
        }
        members.truncate(likes);
        members
    }
}

/// `tags`, filled up with what goes with one of them. There may be too few of those.
fn with_related(mut tags: Vec<u64>, of: u64, wanted: usize, random: &mut SplitMix64) -> Vec<u64> {
    for _ in 0..2 * wanted {
        let tag = topics::related(of, random);
        if tags.len() < wanted && !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags
}
