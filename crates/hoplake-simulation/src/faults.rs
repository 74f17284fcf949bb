//! The fault schedule of a seed: kinds of faults, and their rates.
//!
//! Faults are injected as an [`object_store::ObjectStore`], where Hoplake meets the store's client. What a real client
//! makes of them was read from the source of object_store 0.14:
//!
//! - *A status of 5xx* is repeated by the client, and at last an error of kind `Generic`. Reads go through a client
//!   without repetitions, so that they meet every one.
//! - *A create that is answered with 5xx after it took effect* is repeated, meets itself and is answered
//!   `AlreadyExists`. A time-out or a broken connection is not repeated for a create: `Generic`, and the effect may
//!   come later.
//! - *409* (two concurrent creates; perhaps neither took effect) becomes `AlreadyExists` as 412 does, in some clients
//!   `Precondition`; so the caller cannot conclude that the object exists.
//! - *Steps of an upload in parts* are repeated, and each is answered as itself; a completion that took effect and is
//!   repeated finds no such upload: `NotFound`.
//! - *A body that is shorter than announced* is an error; one whose announced length is short already arrives as a
//!   short answer.
//! - *200 where 206 was due* and *a wrong range* are errors of S3's client, which compares headers. Other clients, and
//!   proxies with a wrong header and body, deliver such bytes: they are simulated as bytes, which is worse.
//! - *403* is `PermissionDenied` at once.
//! - Nothing waits longer than the client's time-out of 30 s for an answer.

use std::{collections::BTreeMap, time::Duration};

use hoplake_testkit::generate::SplitMix64;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// 503: nothing is done.
    Rejected,
    /// No answer, and nothing is done.
    TimedOutBefore,
    /// No answer, but it is done.
    TimedOutAfter,
    /// 403 until the credentials are renewed.
    Expired,
    /// No answer arrives from here on for seconds or minutes; requests in flight may still take effect.
    CutOff,
    /// The connection breaks in the middle of a body.
    Reset,
    /// A body that is too short, and looks complete.
    Short,
    /// The complete object instead of a range.
    Whole,
    /// Half of a body, and then nothing for longer than anybody waits.
    Stalled,
    /// Another range of the same length.
    WrongRange,
    /// One bit of a body is wrong.
    FlippedBit,
    /// 404 for an existing object.
    Missing,
    /// An object is created or written, and the connection breaks before the answer.
    LostAnswer,
    /// A create is answered with 409, and nothing is done.
    ConflictForNothing,
    /// A create takes effect, is repeated by the client, and gets the answer that the object exists.
    ExistsByItself,
    /// The answer "exists" arrives as "precondition failed".
    Precondition,
    /// No answer; the request takes effect minutes or hours later.
    Late,
    /// It is done and answered, and done once more minutes later.
    Twice,
    /// An upload in parts disappears: the rules of the bucket removed it.
    UploadGone,
    /// An upload is completed, which the client repeats, and the answer is that the upload does not exist.
    UploadRepeated,
    /// A listing that lacks what was written of late.
    StaleList,
    /// A listing in any order.
    ShuffledList,
    /// A listing of several pages, between which things happen.
    PagedList,
    /// The process ends at this request.
    Crash,
    /// The process stands still for minutes or hours, from this request on.
    Zombie,
    /// The machine's clock is set to another time.
    ClockJump,
    /// Only the beginning of what is written to the local disk arrives; a crash leaves the last log cut anywhere.
    DiskTorn,
    /// The local disk is full, which shows in the middle of a write.
    DiskFull,
    /// A bit on the local disk is wrong from now on.
    DiskFlipped,
    /// A log on the local disk cannot be read; after a restart some are missing.
    DiskLost,
    /// The local disk reads from another position.
    DiskOther,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 31] = [
        Self::Rejected,
        Self::TimedOutBefore,
        Self::TimedOutAfter,
        Self::Expired,
        Self::CutOff,
        Self::Reset,
        Self::Short,
        Self::Whole,
        Self::Stalled,
        Self::WrongRange,
        Self::FlippedBit,
        Self::Missing,
        Self::LostAnswer,
        Self::ConflictForNothing,
        Self::ExistsByItself,
        Self::Precondition,
        Self::Late,
        Self::Twice,
        Self::UploadGone,
        Self::UploadRepeated,
        Self::StaleList,
        Self::ShuffledList,
        Self::PagedList,
        Self::Crash,
        Self::Zombie,
        Self::ClockJump,
        Self::DiskTorn,
        Self::DiskFull,
        Self::DiskFlipped,
        Self::DiskLost,
        Self::DiskOther,
    ];

    /// Those of local disks.
    const OF_DISKS: [Self; 5] = [Self::DiskTorn, Self::DiskFull, Self::DiskFlipped, Self::DiskLost, Self::DiskOther];

    /// The kinds of requests that it can affect.
    fn befalls(self, kind: OperationKind) -> bool {
        match self {
            Self::Rejected | Self::TimedOutBefore | Self::Expired | Self::CutOff | Self::Zombie | Self::ClockJump => {
                !kind.is_of_disk()
            }
            Self::Crash => kind != OperationKind::DiskRead,
            Self::TimedOutAfter | Self::LostAnswer => kind.writes(),
            Self::Late | Self::Twice => matches!(
                kind,
                OperationKind::Put | OperationKind::Create | OperationKind::Part | OperationKind::Complete
            ),
            Self::UploadGone => matches!(kind, OperationKind::Part | OperationKind::Complete),
            Self::UploadRepeated => kind == OperationKind::Complete,
            Self::Reset | Self::Short | Self::Stalled | Self::FlippedBit => kind == OperationKind::Get,
            Self::Whole | Self::WrongRange => kind == OperationKind::Get,
            Self::Missing => matches!(kind, OperationKind::Get | OperationKind::Head),
            Self::ConflictForNothing | Self::ExistsByItself | Self::Precondition => kind == OperationKind::Create,
            Self::StaleList | Self::ShuffledList | Self::PagedList => kind == OperationKind::List,
            Self::DiskTorn | Self::DiskFull => kind == OperationKind::DiskWrite,
            Self::DiskFlipped | Self::DiskLost | Self::DiskOther => kind == OperationKind::DiskRead,
        }
    }

    /// The highest share of requests that it befalls: rarer where each makes a history shorter.
    fn share_max(self) -> f64 {
        match self {
            Self::Crash | Self::Zombie | Self::CutOff => 0.02,
            Self::Late | Self::TimedOutBefore | Self::TimedOutAfter => 0.1,
            Self::StaleList | Self::ShuffledList | Self::PagedList => 0.8,
            _ => 0.25,
        }
    }
}

/// A kind of operation on the object store or the local disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {
    /// Reads an object or a range of it.
    Get,
    /// Reads an object's length.
    Head,
    /// Writes an object, and replaces any existing one.
    Put,
    /// Writes an object that is not there.
    Create,
    /// Begins an upload in parts.
    Begin,
    /// Sends a part of one.
    Part,
    /// Makes an object of the parts.
    Complete,
    /// Gives an upload up.
    Abort,
    /// Lists names.
    List,
    /// Deletes an object.
    Delete,
    /// Reads a block from the local disk.
    DiskRead,
    /// Writes one there.
    DiskWrite,
}

impl OperationKind {
    /// Whether it changes anything in the bucket.
    pub fn writes(self) -> bool {
        matches!(self, Self::Create) || self.is_repeated() && self != Self::List
    }

    /// Whether the client repeats it when the connection breaks: all but reads, which are another client's, and
    /// creates.
    pub fn is_repeated(self) -> bool {
        use OperationKind::{Abort, Begin, Complete, Delete, List, Part, Put};
        matches!(self, Put | Begin | Part | Complete | Abort | List | Delete)
    }

    fn is_of_disk(self) -> bool {
        matches!(self, Self::DiskRead | Self::DiskWrite)
    }
}

/// A time in which most requests are rejected, or all.
#[derive(Debug, Clone)]
struct Storm {
    from: Duration,
    until: Duration,
    all: bool,
}

/// How often each fault occurs in a seed, and until when.
#[derive(Debug, Clone, Default)]
pub struct FaultSchedule {
    /// The share of requests.
    shares: BTreeMap<Fault, f64>,
    /// While one of these lasts, requests are rejected.
    storms: Vec<Storm>,
    /// From then on nothing goes wrong any more.
    pub calm_from: Duration,
    /// The approximate duration of requests in milliseconds.
    pub latency_ms: u64,
}

impl FaultSchedule {
    /// Draws the fault schedule: none in one seed of ten, one kind alone in three, some or all together in the others.
    pub fn draw(random: &mut SplitMix64) -> Self {
        let mut schedule = Self {
            calm_from: Duration::from_secs(5 + random.below(300)),
            latency_ms: [5, 20, 60, 400][random.below(4) as usize],
            ..Self::default()
        };
        let chosen: Vec<Fault> = match random.below(10) {
            0 => Vec::new(),
            1..=3 => vec![Fault::ALL[random.below(Fault::ALL.len() as u64) as usize]],
            4..=7 => {
                let one_in = 2 + random.below(5);
                Fault::ALL.into_iter().filter(|_| random.below(one_in) == 0).collect()
            }
            _ => Fault::ALL.to_vec(),
        };
        // All kinds at once, each often, would leave nothing that works.
        let tamer = (chosen.len() as f64 / 4.0).max(1.0);
        for fault in chosen {
            // Squared: half of the shares are below a quarter of the highest, so that most seeds get somewhere.
            let share = fault.share_max() * random.unit().powi(2) / tamer;
            schedule.shares.insert(fault, share);
        }
        if schedule.shares.contains_key(&Fault::Rejected) {
            for _ in 0..random.below(3) {
                let from = Duration::from_millis(random.below(60_000));
                let until = from + Duration::from_millis(random.below(120_000));
                schedule.storms.push(Storm { from, until, all: random.below(2) == 0 });
            }
        }
        schedule
    }

    /// Leaves what can befall a machine with its own disk, without a network.
    pub fn keep_local(&mut self) {
        let local = [Fault::Crash, Fault::Zombie, Fault::ClockJump, Fault::ShuffledList, Fault::PagedList];
        // After all were drawn: the rates of those that stay are as in a bucket.
        self.shares.retain(|fault, _| local.contains(fault) || Fault::OF_DISKS.contains(fault));
        self.storms.clear();
    }

    /// Whether this kind occurs in the seed.
    pub fn has(&self, fault: Fault) -> bool {
        self.shares.contains_key(&fault)
    }

    /// Whether anything can go wrong in the seed that makes an operation fail.
    pub fn is_fair(&self) -> bool {
        let harmless = [Fault::ShuffledList, Fault::PagedList, Fault::ClockJump, Fault::Precondition, Fault::Crash];
        self.shares.keys().all(|fault| harmless.contains(fault) || Fault::OF_DISKS.contains(fault))
    }

    /// Whether anything goes wrong with local disks.
    pub fn spoils_disks(&self) -> bool {
        Fault::OF_DISKS.iter().any(|fault| self.has(*fault))
    }

    /// The fault of a request.
    pub fn strike(&self, kind: OperationKind, now: Duration, random: &mut SplitMix64) -> Option<Fault> {
        if now >= self.calm_from {
            return None;
        }
        let storm = self.storms.iter().find(|storm| (storm.from..storm.until).contains(&now));
        let storm = storm.filter(|_| !kind.is_of_disk());
        if storm.is_some_and(|storm| storm.all || random.below(4) > 0) {
            return Some(Fault::Rejected);
        }
        let mut struck = None;
        for (fault, share) in &self.shares {
            // Manifests are created once a version, and everything hangs on them, as do uploads on being completed.
            let decisive = matches!(kind, OperationKind::Create | OperationKind::Complete);
            let share = if decisive { (share * 5.0).min(0.5) } else { *share };
            // A draw for each fault, also after one has struck: how many are drawn depends on the kind of request alone.
            if fault.befalls(kind) && random.unit() <= share && struck.is_none() {
                struck = Some(*fault);
            }
        }
        struck
    }

    /// Its kinds and shares, for a trace.
    pub fn describe(&self) -> String {
        let shares = self.shares.iter().map(|(fault, share)| format!("{fault:?} {:.2}%", share * 100.0));
        let shares: Vec<_> = shares.collect();
        let calm = self.calm_from.as_secs();
        format!(
            "latency {} ms, {} storms, calm from {calm} s: {}",
            self.latency_ms,
            self.storms.len(),
            shares.join(", ")
        )
    }
}
