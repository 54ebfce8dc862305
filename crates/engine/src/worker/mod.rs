//! The loop of one engine thread: due? send. receive? record. Generic over clock and network.
//!
//! A turn sends all that is due, then waits for events, then receives a batch and sends what follows
//! from it. "Receive several, then send several" keeps the kernel's code of one kind hot, which is worth
//! about a tenth of the CPU; a batch ends after 16 events or 50 us so that it costs no latency. Larger ones
//! were measured (64, 256): no cheaper, and requests leave 300 us late instead of 80.
//!
//! Here are the loop and the account of its time; `sending` and `receiving` do what happens on connections,
//! `exchange` what follows for users, `closing` the end of the measured part and of the run; `changes` follows
//! changes of the load; `stalls` is what the thread may have missed.

mod changes;
mod closing;
mod connections;
mod control;
mod destination;
mod exchange;
mod groups;
mod pool;
mod receiving;
pub mod reply;
mod sending;
pub mod shard;
mod stalls;
pub mod timers;

use std::collections::VecDeque;
use std::sync::Arc;

use derive_more::AddAssign;
use loadlens_base::units::{MICROSECOND, MILLISECOND};
use loadlens_plan::program::CheckTally;
use loadlens_record::recorder::{Leftover, Recorder};
use loadlens_transport::{Negotiated, Net, Ready};
use serde::{Deserialize, Serialize};

use crate::clock::{Clock, ThreadTimes};
use crate::feed_cursor::Used;
use crate::script::{NoScript, Script, ScriptSignal};
use crate::user::{Event, Phase};

use connections::Connections;
pub use control::{Change, Control, Level, AHEAD};
use reply::Store;
use shard::StreamShard;
use stalls::{ServedUntil, Stalls};
use timers::{Kind, Timer, Timers, UserRef};

/// Bytes of the one receive buffer of a thread.
pub const RECEIVE_BYTES: usize = 64 << 10;
/// Events that one wait hands out at most.
pub const EVENTS: usize = 256;
/// The longest wait: how soon a stop from outside is seen.
const LONGEST_WAIT: u64 = 20 * MILLISECOND;
/// A thread that does not read its clock for so long, waits left out, did not run: every loop over users, events or
/// bytes is bounded far below.
const STALL: u64 = 30 * MILLISECOND;
/// After so many events what follows from them is sent.
const BATCH_EVENTS: u32 = 16;
/// And after this time.
const BATCH_NS: u64 = 50 * MICROSECOND;
/// Polling begins so long before a due time, where a thread has a core of its own: a sleeping core is late by that
/// much in one of a thousand wakings, on a virtual machine.
const SPIN: u64 = 250 * MICROSECOND;
/// Period at which counts are made visible.
const PUBLISH_EVERY: u64 = 10 * MILLISECOND;
/// Period at which rows of the logs go to the collector even when few: a kill loses at most this much.
const HAND_OVER_EVERY: u64 = 250 * MILLISECOND;
/// The drain of a run that was stopped is at most this long.
const DRAIN_OF_A_STOP: u64 = 1_000 * MILLISECOND;
/// Arrivals that are started before answers are looked at again.
const ARRIVALS_AT_ONCE: u32 = 64;
/// Requests that are sent before events are looked at again: ten thousand users who begin together must
/// not keep the thread from everything else.
const SENDS_AT_ONCE: usize = 256;

/// Settings of a worker besides its shards.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Time that requests in flight have to finish after the end.
    pub drain_ns: u64,
    /// True if the thread has a core of its own and may poll for due times.
    pub may_spin: bool,
    /// Wall clock at `t0`.
    pub t0_unix_ns: u64,
    /// Bytes of answers and unsent requests that may be kept in memory.
    pub store_bytes: usize,
}

/// Bytes of answers and unsent requests that a connection adds to what may be kept in memory.
pub const STORE_BYTES_PER_CONNECTION: usize = 64 << 10;

/// Requests still open at the end, for each step.
#[derive(AddAssign, Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Unfinished {
    /// Due and never issued.
    pub waiting: u64,
    /// Issued and not ended.
    pub in_flight: u64,
}

/// Final state of a worker.
pub struct WorkerEnd {
    /// By step, over all streams.
    pub unfinished: Vec<Unfinished>,
    /// By shard: its stream, and what it used of each feed.
    pub feeds: Vec<(u8, Vec<Used>)>,
    /// Final state of its recorder.
    pub leftover: Leftover,
    /// By stream of the plan: what its checks said, over all its steps; empty: no part of the stream was this worker's.
    pub checks: Vec<Vec<CheckTally>>,
    /// TLS parameters negotiated on its connections.
    pub negotiated: Vec<Negotiated>,
    /// Time from `t0` to its first turn.
    pub start_late_ns: u64,
    /// Time at which it ended.
    pub at: u64,
    /// Buffers of answers and requests that were never given back; anything but 0 is a leak.
    pub buffers_lost: usize,
}

/// One engine thread's state.
pub struct Worker<'p, C: Clock, N: Net, S: Script = NoScript> {
    clock: C,
    net: N,
    shards: Vec<StreamShard<'p>>,
    connections: Connections<N::Handle>,
    timers: Timers,
    /// Users whose request is due, in order.
    ready: VecDeque<UserRef>,
    events: Vec<Ready>,
    /// Start of the last wait.
    waited_at: u64,
    served: ServedUntil,
    stalls: Stalls,
    /// Tokens of connections with more to receive than one turn takes.
    more: Vec<u64>,
    buffer: Box<[u8]>,
    rendered: Vec<u8>,
    store: Store,
    recorder: Recorder,
    control: Arc<Control>,
    script: S,
    settings: Settings,
    unfinished: Vec<Unfinished>,
    in_flight: u32,
    end: u64,
    /// True if a load of this thread has not ended: until then the measured part does not end by itself.
    has_load: bool,
    /// The next moment that changes what is recorded or who is there: a cut, the end, a change of users. 0: another
    /// thread may end the measured part at any moment, so each reading of the clock looks.
    horizon: u64,
    is_closing: bool,
    /// Changes of the load that were seen so far.
    changes_seen: usize,
    /// Changes of users that lie ahead.
    changes_ahead: VecDeque<Change>,
    /// The last reading of the clock: good enough where a few microseconds do not matter.
    last: u64,
    published: u64,
    handed_over: u64,
    times: ThreadTimes,
}

impl<'p, C: Clock, N: Net> Worker<'p, C, N> {
    /// A worker for `shards`.
    pub fn new(
        clock: C,
        net: N,
        shards: Vec<StreamShard<'p>>,
        recorder: Recorder,
        control: Arc<Control>,
        settings: Settings,
    ) -> Self {
        let beginning = Beginning {
            script: NoScript,
            clock,
            shards,
            recorder,
            control,
            settings,
        };
        Worker::with_script(net, beginning)
    }
}

/// All that a worker begins with, but for its network.
pub struct Beginning<'p, C: Clock, S: Script> {
    /// The script; it is given back at the end.
    pub script: S,
    /// Clock of the run.
    pub clock: C,
    /// The parts of the streams that the worker does.
    pub shards: Vec<StreamShard<'p>>,
    /// The worker's recorder.
    pub recorder: Recorder,
    /// Control of the run.
    pub control: Arc<Control>,
    /// Settings of the run.
    pub settings: Settings,
}

impl<'p, C: Clock, N: Net, S: Script> Worker<'p, C, N, S> {
    /// A worker that is accompanied by a script.
    pub fn with_script(net: N, beginning: Beginning<'p, C, S>) -> Self {
        let Beginning {
            script,
            clock,
            shards,
            recorder,
            control,
            settings,
        } = beginning;
        let users: usize = shards.iter().map(|shard| shard.users.len()).sum();
        let connections: usize = shards.iter().map(|shard| shard.pool.most as usize).sum();
        let end = control.end();
        let mut worker = Worker {
            clock,
            net,
            connections: Connections::with_room(connections.min(1 << 16)),
            timers: Timers::for_users(users),
            ready: VecDeque::with_capacity(users.max(ARRIVALS_AT_ONCE as usize)),
            events: Vec::with_capacity(EVENTS),
            waited_at: 0,
            served: ServedUntil::default(),
            stalls: Stalls::default(),
            more: Vec::with_capacity(EVENTS),
            buffer: vec![0; RECEIVE_BYTES].into_boxed_slice(),
            rendered: Vec::with_capacity(4096),
            store: Store::new(settings.store_bytes),
            has_load: shards.iter().any(StreamShard::has_load),
            horizon: 0,
            unfinished: vec![Unfinished::default(); recorder.steps()],
            recorder,
            control,
            script,
            settings,
            in_flight: 0,
            end,
            is_closing: false,
            changes_seen: 0,
            changes_ahead: VecDeque::new(),
            last: 0,
            published: 0,
            handed_over: 0,
            times: ThreadTimes::default(),
            shards,
        };
        worker.times = worker.clock.thread_times();
        worker.set_horizon();
        worker
    }

    /// Runs to the end and returns what is left, and the script.
    pub fn run(mut self) -> (WorkerEnd, S) {
        self.begin();
        while self.turn() {}
        self.finish()
    }

    /// Lets the users of closed streams in; before the first turn.
    pub fn begin(&mut self) {
        self.join_users();
        self.now();
    }

    /// One turn of the loop; says whether there is another one. A simulation of several workers takes turns itself.
    pub fn turn(&mut self) -> bool {
        self.serve_events();
        self.look_at_end();
        self.count_at(self.last); // what is due is counted at the moment of waking, and the end may have come before
        self.start_due(self.last);
        self.send_ready();
        self.end_shards(self.last);
        if self.last + 1 >= self.end {
            self.now(); // the load has just ended
        }
        if self.is_finished() {
            return false;
        }
        self.wait();
        true
    }

    /// Reads the clock; whatever is recorded after it belongs to the interval of this moment.
    #[inline]
    fn now(&mut self) -> u64 {
        let now = self.clock.now();
        self.count_at(now);
        now
    }

    /// Takes notice of the time; whatever follows may be counted at this moment.
    #[inline]
    fn count_at(&mut self, now: u64) {
        if self.horizon == 0 {
            self.control.count_until(now);
        }
        self.see(now);
    }

    /// Takes notice of the time.
    #[inline]
    fn see(&mut self, now: u64) {
        if now - self.last > STALL {
            self.note_stall(now, now - self.last);
        }
        self.last = now;
        if now >= self.horizon {
            self.pass_horizon(now);
        }
    }

    /// The thread did not run for so long, up to `now`.
    #[cold]
    fn note_stall(&mut self, now: u64, length: u64) {
        self.recorder.stalled(now, length);
        self.stalls.push(now, length);
        // The end may have come meanwhile, and nothing behind it may be counted before it.
        self.look_at_end();
        self.look_at_changes();
    }

    #[cold]
    fn pass_horizon(&mut self, now: u64) {
        self.look_at_end();
        if now >= self.recorder.cut() {
            self.control.count_until(now);
            self.look_at_end();
            self.note_checks();
            self.note_thread_times();
        }
        self.look_at_changes();
        if !self.is_closing {
            self.change_users(now);
        }
        if !self.is_closing && now >= self.end {
            self.close_measured_part();
        }
        self.recorder.cross(now);
        self.set_horizon();
    }

    /// Credits the processor time since the last look to the present interval.
    fn note_thread_times(&mut self) {
        let times = self.clock.thread_times();
        let engine = self.recorder.engine();
        engine.cpu_ns += times.cpu_ns.saturating_sub(self.times.cpu_ns);
        engine.runq_wait_ns += times.runq_wait_ns.saturating_sub(self.times.runq_wait_ns);
        self.times = times;
    }

    /// Adds the check results so far to the interval that ends now.
    fn note_checks(&mut self) {
        for shard in &self.shards {
            let first = shard.program.first_check;
            self.recorder.checked(first, &shard.judging.tallies);
        }
    }

    fn set_horizon(&mut self) {
        self.horizon = if self.has_load || self.is_closing {
            self.edge()
        } else {
            0
        };
    }

    /// The next moment that changes what is recorded, as far as it is known.
    fn edge(&self) -> u64 {
        if self.is_closing {
            self.recorder.cut()
        } else {
            let change = self
                .changes_ahead
                .front()
                .map_or(u64::MAX, |change| change.at);
            self.recorder.cut().min(self.end).min(change)
        }
    }

    /// Takes notice of an end that another thread has brought nearer.
    fn look_at_end(&mut self) {
        let end = self.control.end();
        if end < self.end && !self.is_closing {
            self.end = self.recorder.set_end(end);
            self.set_horizon();
        }
    }

    fn join_users(&mut self) {
        for index in 0..self.shards.len() {
            if self.shards[index].open.is_some() {
                continue;
            }
            for user in 0..self.shards[index].users.len() as u32 {
                let who = UserRef::new(index, user);
                self.step_user(who, Event::Join, 0);
            }
        }
    }

    /// Moves everything that is due at `now` into the ready queue: pauses, deadlines, arrivals.
    #[inline]
    fn start_due(&mut self, now: u64) {
        self.look_at_changes();
        if self.timers.next().is_some_and(|at| at <= now) {
            self.fire_timers(now);
        }
        if self.is_closing {
            return;
        }
        for index in 0..self.shards.len() {
            if self.shards[index]
                .next_arrival()
                .is_some_and(|due| due <= now)
            {
                self.take_arrivals(index, now);
            }
        }
    }

    fn fire_timers(&mut self, now: u64) {
        while let Some(timer) = self.timers.pop(now) {
            match timer.kind {
                Kind::Due => {
                    let shard = &mut self.shards[timer.who.shard as usize];
                    let user = &shard.users[timer.who.user as usize];
                    // A user who left in a pause and came again left a timer of that pause behind.
                    let is_due = user.phase == Phase::Pausing && user.ready == timer.at;
                    if is_due && !self.is_closing {
                        shard.pausing -= 1;
                        self.step_user(timer.who, Event::Due, now);
                    }
                }
                Kind::Deadline => self.look_at_deadline(timer, now),
            }
        }
    }

    fn look_at_deadline(&mut self, timer: Timer, now: u64) {
        let shard = &mut self.shards[timer.who.shard as usize];
        let timeout = shard.timeout;
        let user = &mut shard.users[timer.who.user as usize];
        user.watched = false;
        if !user.is_in_flight() {
            return;
        }
        let deadline = user.sent.saturating_add(timeout);
        // While we did not run we neither sent nor read: that time is not the service's.
        let deadline = deadline.saturating_add(self.stalls.since(user.sent));
        if deadline > now || deadline > self.served.until {
            user.watched = true;
            // One that has passed unseen is looked at again after the next look at the sockets.
            let at = deadline.max(now + 1);
            self.timers.push(Timer { at, ..timer });
        } else {
            self.time_out(timer.who, now);
        }
    }

    fn take_arrivals(&mut self, index: usize, now: u64) {
        for _ in 0..ARRIVALS_AT_ONCE {
            let Some(arrival) = self.shards[index].arrive(now) else {
                return;
            };
            self.take_arrival(index, arrival, now);
        }
    }

    /// Time at which something will be due, and true if it is an arrival.
    fn next_due(&self) -> (u64, bool) {
        let timer = self.timers.next().unwrap_or(u64::MAX);
        let arrivals = self.shards.iter().filter_map(StreamShard::next_arrival);
        let arrival = if self.is_closing {
            u64::MAX
        } else {
            arrivals.min().unwrap_or(u64::MAX)
        };
        (timer.min(arrival), arrival < timer)
    }

    /// Waits for events until something is due.
    fn wait(&mut self) {
        let now = self.now();
        self.waited_at = now;
        let (due, is_arrival) = self.next_due();
        let mut until = due.min(self.edge()).min(now + LONGEST_WAIT);
        if self.is_closing {
            until = until.min(self.end_of_drain());
        }
        let mut timeout = until.saturating_sub(now);
        let mut spins = false;
        if !self.ready.is_empty() || !self.more.is_empty() {
            timeout = 0;
        } else if self.settings.may_spin && is_arrival && until == due {
            spins = timeout <= SPIN;
            timeout = timeout.saturating_sub(SPIN);
        }
        self.net.wait(&mut self.events, timeout);
        let woken = self.clock.now();
        let is_idle_spin = spins && self.events.is_empty();
        // A wait that the end cut short belongs to the measured part only until then.
        let end = self.control.end().max(now);
        let until = if self.is_closing {
            woken
        } else {
            woken.min(end)
        };
        // The timer would have ended the wait: what lasted longer was no wait.
        let overslept = woken.saturating_sub(now + timeout);
        let mut waited = until - now;
        if overslept > STALL {
            waited = waited.saturating_sub(overslept);
        }
        let engine = self.recorder.engine();
        engine.loops += 1;
        if is_idle_spin {
            engine.spinning_ns += waited;
        } else if timeout > 0 && !spins {
            engine.waiting_ns += waited;
        }
        if overslept > STALL {
            self.note_stall(woken, overslept);
        }
        self.last = woken;
        self.see(woken); // after it is credited to the interval in which the wait began
    }

    /// Receives the data that events announce, in batches, each followed by the sends that result.
    fn serve_events(&mut self) {
        let mut began = self.last;
        let mut served = 0;
        let unfinished = self.more.len();
        for at in 0..unfinished {
            let token = self.more[at];
            self.serve(Ready {
                token,
                readable: true,
                ..Ready::default()
            });
        }
        self.more.drain(..unfinished); // those that still have more were appended behind
        for at in 0..self.events.len() {
            let now = self.serve(self.events[at]);
            served += 1;
            if served >= BATCH_EVENTS || now.saturating_sub(began) >= BATCH_NS {
                self.send_ready();
                began = self.now();
                self.start_due(began);
                self.send_ready();
                served = 0;
            }
        }
        let connections = self.connections.count();
        self.served
            .served(self.waited_at, self.events.len(), connections);
        self.send_ready();
        if began.saturating_sub(self.published) >= PUBLISH_EVERY {
            self.publish(began);
        }
    }

    fn publish(&mut self, now: u64) {
        self.published = now;
        self.recorder.publish();
        if now - self.handed_over >= HAND_OVER_EVERY {
            self.handed_over = now;
            self.recorder.hand_over_rows();
        }
    }

    /// Ends the loads that have nothing more to do, also where no answer showed it: all arrivals dropped, say.
    fn end_shards(&mut self, now: u64) {
        for index in 0..self.shards.len() {
            self.end_shard_if_over(index, now);
        }
    }

    /// Ends a load whose last request has ended at `now`, if it was the last; the last load ends the measured part.
    #[inline]
    fn end_shard_if_over(&mut self, index: usize, now: u64) {
        let shard = &self.shards[index];
        if shard.has_load() && shard.is_over() && !self.is_closing {
            self.end_shard(index, now);
        }
    }

    #[cold]
    fn end_shard(&mut self, index: usize, now: u64) {
        self.shards[index].has_ended = true;
        self.has_load = self.shards.iter().any(StreamShard::has_load);
        self.control.end_part(now);
        self.look_at_end();
        self.set_horizon();
    }

    /// Does what the script of a shard wants after one of its calls.
    #[inline]
    fn heed_script(&mut self, shard: u8, now: u64) {
        let signal = self.script.signal();
        if signal == ScriptSignal::GoOn {
            return;
        }
        self.shards[shard as usize].quota.close();
        if signal == ScriptSignal::EndRun {
            self.control.stop(now + AHEAD);
            self.look_at_end();
        }
    }

    fn is_finished(&self) -> bool {
        if !self.is_closing {
            return false;
        }
        // A lasting stream of bytes must not keep the clock from being looked at: it is, each turn.
        self.in_flight == 0 || self.clock.now() >= self.end_of_drain()
    }

    fn end_of_drain(&self) -> u64 {
        let is_stopped = self.control.is_stopped();
        let longest = if is_stopped {
            DRAIN_OF_A_STOP
        } else {
            u64::MAX
        };
        self.end.saturating_add(self.settings.drain_ns.min(longest))
    }
}
