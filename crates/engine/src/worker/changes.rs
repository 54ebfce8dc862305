//! Changes of the load while it runs: another rate, more users, fewer users.
//!
//! A change takes effect at a moment that all threads know before it comes. What is due before that moment stays due:
//! arrivals are never taken back, and users who are to leave still end their request.

use loadlens_transport::Net;

use crate::clock::Clock;
use crate::script::Script;
use crate::user::{Event, Phase, User};

use super::control::{Change, Level};
use super::shard::StreamShard;
use super::timers::UserRef;
use super::{Worker, STORE_BYTES_PER_CONNECTION};

impl<C: Clock, N: Net, S: Script> Worker<'_, C, N, S> {
    /// Takes notice of changes. Nothing that a reading of the clock shows to be due is taken before this.
    #[inline]
    pub(super) fn look_at_changes(&mut self) {
        if self.control.changed() != self.changes_seen {
            self.see_changes();
        }
    }

    #[cold]
    fn see_changes(&mut self) {
        for change in self.control.changes_from(self.changes_seen) {
            self.changes_seen += 1;
            match change.new {
                Level::RatePerS(rate_per_s) => {
                    let shards = self.shards.iter_mut();
                    shards
                        .filter(|shard| shard.stream == change.stream)
                        .for_each(|shard| shard.change_rate(change.at, rate_per_s));
                }
                Level::Users(_) => self.changes_ahead.push_back(change),
            }
        }
        self.set_horizon();
    }

    /// Lets users in and out whose time has come at `now`.
    pub(super) fn change_users(&mut self, now: u64) {
        while let Some(&Change {
            at, stream, new, ..
        }) = self.changes_ahead.front().filter(|next| next.at <= now)
        {
            self.changes_ahead.pop_front();
            let Level::Users(users) = new else { continue };
            if at >= self.end {
                return;
            }
            // Intervals that ended before must not get what is recorded now.
            self.recorder.cross(now.min(self.end - 1));
            for index in 0..self.shards.len() {
                let shard = &self.shards[index];
                if shard.stream != stream || shard.has_ended {
                    continue;
                }
                if users < shard.present {
                    self.dismiss_pausing(index, users, at, now);
                } else {
                    self.admit(index, users, at, now);
                }
            }
        }
    }

    /// Lets in all users below the number `users` who are not there; they are due at `at`.
    fn admit(&mut self, index: usize, users: u32, at: u64, now: u64) {
        let shard = &mut self.shards[index];
        let before = shard.present;
        shard.present = users;
        shard.is_emptied = false;
        let there = shard.users.len();
        let more = shard.add_users(users);
        self.store.widen(more * STORE_BYTES_PER_CONNECTION);
        for place in 0..self.shards[index].users.len() {
            let shard = &mut self.shards[index];
            let user = &mut shard.users[place];
            let may_return = user.number >= before && user.phase == Phase::Absent;
            if place >= there || (may_return && user.number < users) {
                user.due = at;
                shard.active += 1;
                let who = UserRef::new(index, place as u32);
                self.step_user(who, Event::Join, now);
            }
        }
    }

    /// Lets go the users from the number `users` on whose next request is due at `at` or later; the others follow after
    /// their request.
    fn dismiss_pausing(&mut self, index: usize, users: u32, at: u64, now: u64) {
        self.shards[index].present = users;
        for place in 0..self.shards[index].users.len() {
            let shard = &mut self.shards[index];
            let user = &shard.users[place];
            if user.number >= shard.present && user.phase == Phase::Pausing && user.due >= at {
                shard.pausing -= 1;
                self.dismiss(UserRef::new(index, place as u32), now);
            }
        }
    }

    /// Lets one user go; the rest of its iteration is left out.
    #[cold]
    pub(super) fn dismiss(&mut self, who: UserRef, now: u64) {
        let shard = &mut self.shards[who.shard as usize];
        shard.users[who.user as usize].phase = Phase::Absent;
        shard.leave(who.user);
        shard.is_emptied = shard.active == 0;
        if shard.open_runs.is_some() {
            self.leave_groups(who, now);
        }
        self.end_shard_if_over(who.shard as usize, now);
    }
}

impl StreamShard<'_> {
    /// Adds the users of this part up to the number `users`, absent; returns how many.
    fn add_users(&mut self, users: u32) -> usize {
        let there = self.users.len() as u64;
        let all = self.part.count_of(u64::from(users));
        for place in there..all {
            let number = self.part.number(place);
            self.add_user(User::new(number as u32, None));
        }
        if self.pool.is_sticky {
            self.pool.most = self.pool.most.max(self.users.len() as u32);
        }
        all.saturating_sub(there) as usize
    }
}
