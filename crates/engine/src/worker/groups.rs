//! Runs of groups: from when the first request of a run is due to its last answer.
//!
//! Everything follows from the ends of requests, so sending costs nothing more, and streams without groups pay nothing.
//! A run is completed when all its requests were answered as expected. It failed when one was not, or when the
//! iteration ended within it; after a timed-out request, all that is known of the run is that it lasted longer. Runs
//! that the end of the load cuts off are unfinished, even if their first request was due and never issued.

use loadlens_base::{Class, Outcome};
use loadlens_plan::program::StreamProgram;
use loadlens_record::interval::Course;
use loadlens_transport::Net;

use crate::clock::Clock;
use crate::script::Script;

use super::timers::UserRef;
use super::Worker;

/// The runs that are open, of all users of one stream on one thread.
#[derive(Debug)]
pub struct OpenRuns {
    depth: usize,
    /// By user, the outermost first.
    runs: Vec<Vec<Run>>,
}

/// One run of a group.
#[derive(Clone, Copy, Debug)]
struct Run {
    group: u16,
    course: Course,
    /// Due time of its first request.
    due: u64,
    /// Time at which that was issued.
    sent: u64,
}

impl OpenRuns {
    /// No open runs for this many users; none: the stream has no groups.
    pub fn new(program: &StreamProgram, users: usize) -> Option<OpenRuns> {
        let depth = program.flow.depth();
        let runs = || (0..users).map(|_| Vec::with_capacity(depth)).collect();
        (depth > 0).then(|| OpenRuns {
            depth,
            runs: runs(),
        })
    }

    /// Room for one more user.
    pub fn add_user(&mut self) {
        self.runs.push(Vec::with_capacity(self.depth));
    }
}

impl Run {
    /// A request of it ended so.
    fn note(&mut self, outcome: Outcome) {
        if outcome.class() == Some(Class::Censored) {
            self.course = Course::Censored;
        } else if outcome != Outcome::Ok {
            self.fail();
        }
    }

    fn fail(&mut self) {
        if self.course == Course::Completed {
            self.course = Course::Failed;
        }
    }
}

impl<C: Clock, N: Net, S: Script> Worker<'_, C, N, S> {
    /// A request has ended: what that is to the groups around it.
    pub(super) fn end_in_groups(
        &mut self,
        who: UserRef,
        outcome: Outcome,
        ends_iteration: bool,
        now: u64,
    ) {
        let shard = &mut self.shards[who.shard as usize];
        let user = &shard.users[who.user as usize];
        let Some(open) = &mut shard.open_runs else {
            return;
        };
        let runs = &mut open.runs[who.user as usize];
        let first = shard.program.first_group;
        for group in shard.program.flow.begun_at(user.at) {
            self.recorder.group_due(first + usize::from(*group));
            runs.push(Run {
                group: *group,
                course: Course::Completed,
                due: user.due,
                sent: user.sent,
            });
        }
        runs.iter_mut().for_each(|run| run.note(outcome));
        let whole = shard.program.flow.ended_at(user.at);
        let ended = if ends_iteration { runs.len() } else { whole };
        for number in 0..ended {
            let Some(mut run) = runs.pop() else { return };
            if number >= whole {
                run.fail();
            }
            let (response, service) = (now - run.due, now - run.sent);
            let group = first + usize::from(run.group);
            self.recorder
                .group_ended(group, run.course, response, service);
        }
    }

    /// A user leaves at `now`: what it is in the middle of will never be finished.
    pub(super) fn leave_groups(&mut self, who: UserRef, now: u64) {
        let shard = &mut self.shards[who.shard as usize];
        let Some(open) = &mut shard.open_runs else {
            return;
        };
        for run in open.runs[who.user as usize].drain(..) {
            let group = shard.program.first_group + usize::from(run.group);
            let lasted = |from: u64| now.saturating_sub(from);
            let (response, service) = (lasted(run.due), Some(lasted(run.sent)));
            self.recorder.group_unfinished(group, response, service);
        }
    }

    /// The measured part ends while the request at a position is due, or in flight: the runs that begin with it are
    /// unfinished.
    pub(super) fn censor_groups(&mut self, index: usize, at: u16, due: u64, sent: Option<u64>) {
        let program = self.shards[index].program;
        for group in program.flow.begun_at(at) {
            let group = program.first_group + usize::from(*group);
            self.recorder.group_due(group);
            let lasted = |from: u64| self.end.saturating_sub(from);
            let (response, service) = (lasted(due), sent.map(lasted));
            self.recorder.group_unfinished(group, response, service);
        }
    }
}
