//! Due times of closed users that need more than the last answer plus a pause: users who come and go,
//! and users with a pace.

use loadlens_base::Random;

use super::presence::Presence;
use crate::{Think, Workload};

/// Due times of the users of one stream on one thread.
#[derive(Debug)]
pub struct Timetable {
    presence: Option<Presence>,
    pace: Option<Think>,
    /// By place of the paced user: when its current or next iteration was due.
    due: Vec<u64>,
}

/// The timetable of one user.
#[derive(Debug)]
pub struct Timing<'a> {
    presence: Option<&'a Presence>,
    pace: Option<(Think, &'a mut u64)>,
}

impl Timetable {
    /// The timetable of a workload; none: it needs none.
    pub fn new(workload: &Workload) -> Option<Timetable> {
        let Workload::Closed { pace, profile, .. } = workload else {
            return None;
        };
        (pace.is_some() || profile.is_some()).then(|| Timetable {
            presence: profile.as_ref().map(Presence::new),
            pace: *pace,
            due: Vec::new(),
        })
    }

    /// First due time of user `number`; none: never.
    pub fn first(&self, number: u32, begin: u64) -> Option<u64> {
        match &self.presence {
            None => Some(begin),
            Some(presence) => presence.from(number, begin),
        }
    }

    /// Takes in the users, in the order of their places, each with when it is due first.
    pub fn seat(&mut self, due: impl Iterator<Item = u64>) {
        if self.pace.is_some() {
            self.due = due.collect();
        }
    }

    /// True if iterations are due at a pace.
    pub fn is_paced(&self) -> bool {
        self.pace.is_some()
    }

    /// The timetable of the user in a place.
    pub fn of(&mut self, place: u32) -> Timing<'_> {
        Timing {
            presence: self.presence.as_ref(),
            pace: self
                .pace
                .and_then(|pace| Some((pace, self.due.get_mut(place as usize)?))),
        }
    }
}

impl Timing<'_> {
    /// Due time of the next iteration of user `number`, which without a pace would be `after`; none: never.
    pub fn next(&mut self, number: u32, after: u64, random: &mut Random) -> Option<u64> {
        let wanted = match &self.pace {
            None => after,
            Some((pace, last)) => last.saturating_add(pace.sample(random)),
        };
        let due = match self.presence {
            None => wanted,
            Some(presence) => presence.from(number, wanted)?,
        };
        if let Some((_, last)) = &mut self.pace {
            **last = due;
        }
        Some(due)
    }

    /// True if the due time holds even when the user is late for it.
    pub fn is_paced(&self) -> bool {
        self.pace.is_some()
    }
}
