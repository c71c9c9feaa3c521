//! All connections: what each one waits for, which are late, and which end when there is no room.

use super::limits::{ConnectionLimits, holder};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long a connection that was asked to leave may take.
const LEAVE: Duration = Duration::from_secs(5);

/// How long a connection without a request is kept after the server was asked to end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long what was buffered may take to be written after the last request. Replies to HTTP/2's pings are written, too,
/// so that writing alone is no sign of a reader.
const BUFFERED: Duration = Duration::from_secs(600);

/// A connection that has waited for its peer for less than this is not ended for a newcomer while it is in a request.
const FAIR: Duration = Duration::from_secs(1);

/// How long a connection that has just come may take to send its first request before it counts as a silent one. Where
/// everybody comes through one proxy, nothing else tells newcomers from the connections that fill the server.
const GRACE: Duration = Duration::from_secs(2);

/// Whose move it is in a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The peer's: its body is read, since then.
    Body(Instant),
    /// The server's.
    Working,
    /// The peer's: it has to take what it was sent, since then.
    Sending(Instant),
}

#[derive(Debug)]
struct State {
    /// Requests so far.
    begun: u64,
    /// Whether it speaks HTTP/2.
    multiplexed: bool,
    /// Requests that are being answered.
    open: BTreeMap<u64, Step>,
    /// Since when there has been no request.
    quiet: Instant,
    /// When something was written last.
    wrote: Instant,
    /// Since when a head is half read.
    head: Option<Instant>,
    /// Since when the socket takes nothing.
    blocked: Option<Instant>,
    /// When it was asked to leave.
    asked: Option<Instant>,
}

/// A connection as the register knows it.
pub(super) struct Connection {
    number: u64,
    holder: IpAddr,
    /// Cancelled when it is to end after what it is doing.
    pub(super) leave: CancellationToken,
    /// Cancelled when it is to end at once.
    pub(super) end: CancellationToken,
    state: Mutex<State>,
}

impl Connection {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The peer said something.
    pub(super) fn read(&self) {
        let mut state = self.state();
        if state.open.is_empty() && !state.multiplexed {
            state.head.get_or_insert_with(Instant::now);
        }
    }

    /// The peer took something.
    pub(super) fn wrote(&self) {
        let mut state = self.state();
        state.blocked = None;
        state.wrote = Instant::now();
    }

    /// The peer takes nothing at the moment.
    pub(super) fn cannot_write(&self) {
        self.state().blocked.get_or_insert_with(Instant::now);
    }

    /// A request begins: its number.
    pub(super) fn begin(&self, multiplexed: bool) -> u64 {
        let mut state = self.state();
        state.begun += 1;
        state.multiplexed |= multiplexed;
        state.head = None;
        let number = state.begun;
        state.open.insert(number, Step::Working);
        number
    }

    pub(super) fn step(&self, number: u64, step: Step) {
        if let Some(known) = self.state().open.get_mut(&number) {
            *known = step;
        }
    }

    /// A request has been answered, or was given up.
    pub(super) fn finish(&self, number: u64) {
        let mut state = self.state();
        state.open.remove(&number);
        state.quiet = Instant::now();
    }
}

impl State {
    /// The action against a connection that took too long.
    fn late(&self, limits: &ConnectionLimits, now: Instant, ending: bool) -> Late {
        let over = |since: Option<Instant>, limit: Duration| {
            since.is_some_and(|since| now.saturating_duration_since(since) > limit)
        };
        let stalled = self.open.values().any(|step| match step {
            // The body is read with a limit of its own, which answers with words; this catches what it cannot.
            // When the server ends, a body that has not come yet does not hold it up.
            Step::Body(since) => over(Some(*since), if ending { LAST_WORDS } else { limits.body + LEAVE }),
            Step::Sending(since) => over(Some(*since), limits.stall),
            Step::Working => false,
        });
        if stalled || over(self.blocked, limits.stall) || over(self.asked, LEAVE) && self.open.is_empty() {
            return Late::End;
        }
        if !self.open.is_empty() {
            return Late::No;
        }
        if over(self.head, limits.head) || ending && over(Some(self.quiet.max(self.wrote)), LAST_WORDS) {
            return Late::End;
        }
        if over(Some(self.quiet.max(self.wrote)), limits.idle) || over(Some(self.quiet), BUFFERED.max(limits.idle)) {
            return if self.begun == 0 { Late::End } else { Late::Leave };
        }
        Late::No
    }

    /// Whether it has just come and has not sent a request yet.
    fn is_new(&self, now: Instant) -> bool {
        self.begun == 0 && now.saturating_duration_since(self.quiet) < GRACE
    }

    /// How gladly it is ended for a newcomer (the smallest first), and since when it has waited for its peer. `None` while
    /// it is at work.
    fn spare(&self, now: Instant) -> Option<(u8, Instant)> {
        if self.open.is_empty() {
            let quiet = self.quiet.max(self.wrote);
            return Some((u8::from(self.begun > 0), quiet));
        }
        let waits = |since: &Instant| now.saturating_duration_since(*since) >= FAIR;
        let body = |step: &Step| if let Step::Body(since) = step { Some(*since) } else { None };
        let bodies: Option<Vec<_>> = self.open.values().map(body).collect();
        if let Some(oldest) = bodies.and_then(|all| all.into_iter().min()).filter(waits) {
            return Some((2, oldest));
        }
        let sending = |step: &Step| if let Step::Sending(since) = step { Some(*since) } else { None };
        let stuck: Option<Vec<_>> = self.open.values().map(sending).collect();
        let stuck = stuck.and_then(|all| all.into_iter().min());
        stuck.or(self.blocked).filter(waits).map(|since| (3, since))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Late {
    No,
    /// It ends after what it is doing.
    Leave,
    /// It ends at once.
    End,
}

#[derive(Default)]
struct Entries {
    next: u64,
    all: BTreeMap<u64, Arc<Connection>>,
    held: HashMap<IpAddr, usize>,
}

/// The connections there are.
pub(super) struct Register {
    limits: ConnectionLimits,
    entries: Mutex<Entries>,
}

/// Takes a connection out of the register when it ends, however it ends.
pub(super) struct Leave<'a>(pub(super) &'a Register, pub(super) &'a Connection);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.remove(self.1);
    }
}

impl Register {
    pub(super) fn new(limits: ConnectionLimits) -> Register {
        Register { limits, entries: Mutex::default() }
    }

    pub(super) fn limits(&self) -> &ConnectionLimits {
        &self.limits
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this address has as many connections as it may.
    pub(super) fn is_crowded(&self, address: IpAddr) -> bool {
        self.entries().held.get(&holder(address)).is_some_and(|held| *held >= self.limits.per_address)
    }

    /// A new connection.
    pub(super) fn enter(&self, address: IpAddr) -> Arc<Connection> {
        let mut entries = self.entries();
        entries.next += 1;
        let now = Instant::now();
        let connection = Arc::new(Connection {
            number: entries.next,
            holder: holder(address),
            leave: CancellationToken::new(),
            end: CancellationToken::new(),
            state: Mutex::new(State {
                begun: 0,
                multiplexed: false,
                open: BTreeMap::new(),
                quiet: now,
                wrote: now,
                head: None,
                blocked: None,
                asked: None,
            }),
        });
        entries.all.insert(connection.number, connection.clone());
        *entries.held.entry(connection.holder).or_default() += 1;
        connection
    }

    fn remove(&self, connection: &Connection) {
        let mut entries = self.entries();
        if entries.all.remove(&connection.number).is_none() {
            return;
        }
        if let Some(held) = entries.held.get_mut(&connection.holder) {
            *held -= 1;
            if *held == 0 {
                entries.held.remove(&connection.holder);
            }
        }
    }

    /// Ends the connection that is missed least (of this address only, if one is given). False when all are at work.
    ///
    /// Who holds most gives first, whatever its connections do: else kept connections of a few addresses would fill the
    /// server, and every newcomer would be ended by the next one before it has sent its request. Those that have just
    /// come are spared while there are others, but only a quarter of all places: more at once are a flood, and a flood
    /// of silent connections is to end its own.
    pub(super) fn shed(&self, of: Option<IpAddr>) -> bool {
        let now = Instant::now();
        let of = of.map(holder);
        let chosen = {
            let entries = self.entries();
            let mine = entries.all.values().filter(|connection| of.is_none_or(|of| connection.holder == of));
            let spare = mine.filter_map(|connection| {
                let state = connection.state();
                let (kind, since) = state.spare(now)?;
                let held = entries.held.get(&connection.holder).copied().unwrap_or(0);
                Some((state.is_new(now), (Reverse(held), kind, since), connection.clone()))
            });
            let spare: Vec<_> = spare.collect();
            let new = spare.iter().filter(|(new, ..)| *new).count();
            let grace = new <= (self.limits.in_all / 4).max(1);
            let chosen = spare.into_iter().min_by_key(|(new, order, _)| (grace && *new, *order));
            chosen.map(|(.., connection)| connection)
        };
        let Some(connection) = chosen else { return false };
        self.remove(&connection);
        connection.end.cancel();
        true
    }

    /// Ends the connections that took too long.
    pub(super) fn end_the_late(&self, now: Instant, ending: bool) {
        let all: Vec<_> = self.entries().all.values().cloned().collect();
        for connection in all {
            let mut state = connection.state();
            match state.late(&self.limits, now, ending) {
                Late::No => {}
                Late::Leave => {
                    state.asked.get_or_insert(now);
                    connection.leave.cancel();
                }
                Late::End => connection.end.cancel(),
            }
        }
    }
}
