//! Wrong access tokens and passwords: how many an address may still try, and one line in the log for many of them.

use super::Client;
use super::bucket::Buckets;
use super::standing::Standing;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Wrong tokens that an address may try at once, and how long it takes until it may try one more.
const BURST: u32 = 10;
const EACH: Duration = Duration::from_secs(6);

/// Wrong passwords that may be tried for one name at once, from wherever they come, and how long it takes until one more
/// may be. Enough are left for the owner of the name while somebody guesses slowly.
const NAME_BURST: u32 = 30;
const NAME_EACH: Duration = Duration::from_secs(5);

/// How often wrong tokens are told in the log at most.
pub(crate) const TELL_EVERY: Duration = Duration::from_secs(30);

/// Wrong values remembered of an address: a browser that goes on sending an old cookie guesses once.
const WRONG: usize = 16;

/// Addresses of which wrong values are remembered, and sessions that are remembered as good.
const MOST: usize = 4096;

type Mark = [u8; 32];

/// The result of looking at a token or cookie.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is right.
    Right,
    /// It is wrong.
    Wrong,
    /// It was not looked at: too many wrong ones came from there.
    TooMany(Standing),
}

struct Told {
    what: &'static str,
    last: Option<Instant>,
    wrong: BTreeMap<IpAddr, u64>,
    others: u64,
}

struct Memory {
    wrong: HashMap<IpAddr, VecDeque<Mark>>,
    good: HashSet<Mark>,
    order: VecDeque<Mark>,
    /// The value that was refused last: a request may be judged more than once, and is reported once.
    refused: Option<Mark>,
    told: Told,
}

/// Wrong tokens, by address.
pub(crate) struct Guesses {
    buckets: Buckets<IpAddr>,
    memory: Mutex<Memory>,
}

impl Default for Guesses {
    fn default() -> Self {
        let memory = Memory {
            wrong: HashMap::default(),
            good: HashSet::default(),
            order: VecDeque::default(),
            refused: None,
            told: Told::of("wrong access tokens were sent"),
        };
        Guesses { buckets: Buckets::new("access-tokens", BURST, EACH), memory: Mutex::new(memory) }
    }
}

impl Guesses {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session that was just opened with the right token: its cookie is right from now on, whatever others at the same
    /// address guess.
    pub(crate) fn remember(&self, cookie: &str) {
        let mut memory = self.memory();
        let mark = Sha256::digest(cookie).into();
        if memory.good.insert(mark) {
            memory.order.push_back(mark);
            if memory.order.len() > MOST
                && let Some(oldest) = memory.order.pop_front()
            {
                memory.good.remove(&oldest);
            }
        }
    }

    /// Looks at a token or cookie. `is_right` compares it; it is not asked when the address has guessed too often. A good
    /// session's cookie holds a number that cannot be guessed, so it is always looked at.
    pub(crate) fn judge(&self, client: Client, given: &str, is_right: impl Fn() -> bool) -> Verdict {
        let now = Instant::now();
        let mark: Mark = Sha256::digest(given).into();
        let mut memory = self.memory();
        if memory.good.contains(&mark) && is_right() {
            return Verdict::Right;
        }
        if memory.wrong.get(&client.0).is_some_and(|known| known.contains(&mark)) {
            return Verdict::Wrong;
        }
        let standing = self.buckets.look(client.0, now);
        if !standing.allowed {
            if memory.refused.replace(mark) != Some(mark) {
                memory.told.count(client.0, now);
            }
            return Verdict::TooMany(standing);
        }
        if is_right() {
            return Verdict::Right;
        }
        self.buckets.take(client.0, now);
        memory.told.count(client.0, now);
        if memory.wrong.len() >= MOST && !memory.wrong.contains_key(&client.0) {
            memory.wrong.clear();
        }
        let wrong = memory.wrong.entry(client.0).or_default();
        wrong.push_back(mark);
        if wrong.len() > WRONG {
            wrong.pop_front();
        }
        Verdict::Wrong
    }

    /// Tells the log of wrong tokens that have not been told yet.
    pub(crate) fn tell(&self) {
        self.memory().told.tell(Instant::now());
    }
}

/// Wrong passwords, by address and by name, and links that make no account.
///
/// A password takes a while to compare, so a guess is taken before, and given back when it was right: many at the same
/// moment get no further than many in a row.
pub(crate) struct PasswordGuesses {
    addresses: Buckets<IpAddr>,
    names: Buckets<Mark>,
    told: Mutex<Told>,
}

impl Default for PasswordGuesses {
    fn default() -> Self {
        PasswordGuesses {
            addresses: Buckets::new("passwords", BURST, EACH),
            names: Buckets::new("passwords-of-one-name", NAME_BURST, NAME_EACH),
            told: Mutex::new(Told::of("wrong passwords or links were sent")),
        }
    }
}

impl PasswordGuesses {
    fn name(name: &str) -> Mark {
        Sha256::digest(name.trim().to_lowercase()).into()
    }

    /// Takes a guess for a name. The standing when there is none left; the password is not to be looked at then.
    pub(crate) fn begin(&self, client: Client, name: &str) -> Result<(), Standing> {
        let now = Instant::now();
        let standing = self.addresses.take(client.0, now);
        if !standing.allowed {
            self.count(client, now);
            return Err(standing);
        }
        let standing = self.names.take(Self::name(name), now);
        if !standing.allowed {
            self.addresses.give_back(client.0, now);
            self.count(client, now);
            return Err(standing);
        }
        Ok(())
    }

    /// The guess was right, so it was none.
    pub(crate) fn was_right(&self, client: Client, name: &str) {
        let now = Instant::now();
        self.addresses.give_back(client.0, now);
        self.names.give_back(Self::name(name), now);
    }

    /// The guess was wrong: it stays taken, and is told.
    pub(crate) fn was_wrong(&self, client: Client) {
        self.count(client, Instant::now());
    }

    /// Whether a link from this address is looked up; the standing when too many wrong ones came.
    pub(crate) fn may_follow(&self, client: Client) -> Result<(), Standing> {
        let standing = self.addresses.look(client.0, Instant::now());
        if standing.allowed { Ok(()) } else { Err(standing) }
    }

    /// A link that makes no account.
    pub(crate) fn wrong_link(&self, client: Client) {
        let now = Instant::now();
        self.addresses.take(client.0, now);
        self.count(client, now);
    }

    fn count(&self, client: Client, now: Instant) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).count(client.0, now);
    }

    /// Tells the log of wrong passwords that have not been told yet.
    pub(crate) fn tell(&self) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).tell(Instant::now());
    }
}

impl Told {
    fn of(what: &'static str) -> Told {
        Told { what, last: None, wrong: BTreeMap::new(), others: 0 }
    }

    fn count(&mut self, address: IpAddr, now: Instant) {
        if self.wrong.len() < MOST || self.wrong.contains_key(&address) {
            *self.wrong.entry(address).or_default() += 1;
        } else {
            self.others += 1;
        }
        if self.last.is_none_or(|last| now.saturating_duration_since(last) >= TELL_EVERY) {
            self.tell(now);
        }
    }

    fn tell(&mut self, now: Instant) {
        let count = self.wrong.values().sum::<u64>() + self.others;
        let Some((from, most)) = self.wrong.iter().max_by_key(|(_, count)| **count) else { return };
        let addresses = self.wrong.len();
        tracing::warn!(count, addresses, %from, most, "{}", self.what);
        *self = Told { last: Some(now), ..Told::of(self.what) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> Client {
        Client(IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn guesses_run_out_and_are_not_compared_then() {
        let guesses = Guesses::default();
        for n in 0..BURST {
            assert_eq!(guesses.judge(client(1), &format!("guess {n}"), || false), Verdict::Wrong);
        }
        let last = guesses.judge(client(1), "the right one", || panic!("it must not be compared"));
        let Verdict::TooMany(standing) = last else { panic!("{last:?}") };
        assert!(!standing.wait.is_zero() && standing.wait <= EACH);
        assert_eq!(guesses.judge(client(2), "the right one", || true), Verdict::Right, "others are not concerned");
    }

    #[test]
    fn the_same_wrong_one_again_is_no_further_guess() {
        let guesses = Guesses::default();
        for _ in 0..1000 {
            assert_eq!(guesses.judge(client(1), "an old cookie", || false), Verdict::Wrong);
        }
        assert_eq!(guesses.judge(client(1), "the right one", || true), Verdict::Right);
    }

    #[test]
    fn passwords_are_limited_by_address_and_by_name_and_right_ones_cost_nothing() {
        let guesses = PasswordGuesses::default();
        for _ in 0..100 {
            guesses.begin(client(1), "ada").unwrap();
            guesses.was_right(client(1), "ada");
        }
        for _ in 0..BURST {
            guesses.begin(client(1), "ada").unwrap();
        }
        assert_eq!(guesses.begin(client(1), "eve").unwrap_err().quota.name, "passwords");
        assert!(guesses.may_follow(client(1)).is_err() && guesses.may_follow(client(2)).is_ok());
        for n in 0..NAME_BURST - BURST {
            guesses.begin(client(2 + (n / BURST) as u8), " ADA ").unwrap();
        }
        assert_eq!(guesses.begin(client(9), "Ada").unwrap_err().quota.name, "passwords-of-one-name");
        guesses.begin(client(9), "eve").unwrap();
    }

    #[test]
    fn who_is_signed_in_stays_so_while_a_neighbour_guesses() {
        let guesses = Guesses::default();
        guesses.remember("a good session");
        for n in 0..100 {
            guesses.judge(client(1), &format!("guess {n}"), || false);
        }
        assert_eq!(guesses.judge(client(1), "a good session", || true), Verdict::Right);
    }
}
