//! How many connections there may be, and how long each step of one may take.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// Limits of the listener. The defaults suit people's browsers; tests set smaller ones.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Most connections at once.
    pub in_all: usize,
    /// Most connections at once of one address (of one /64 network for IPv6).
    pub per_address: usize,
    /// From the first byte of a request's head to its last.
    pub head: Duration,
    /// From the end of a request's head to the end of its body.
    pub body: Duration,
    /// Without a request.
    pub idle: Duration,
    /// Without taking anything of what it is being sent.
    pub stall: Duration,
}

/// Most connections, however many descriptors there are.
const MOST: usize = 8192;

/// Fewest connections, however few descriptors there are.
const FEWEST: usize = 8;

/// Descriptors that are never given to connections: database, checkpoints, logs, standard streams, the runtime's own.
const RESERVE: usize = 256;

impl Default for ConnectionLimits {
    fn default() -> Self {
        ConnectionLimits {
            in_all: 768,
            per_address: 768,
            head: Duration::from_secs(15),
            body: Duration::from_secs(20),
            idle: Duration::from_secs(75),
            stall: Duration::from_secs(60),
        }
    }
}

impl ConnectionLimits {
    /// Limits for a process that may open so many descriptors. A quarter of them, but never more than needed, is kept
    /// for files; one address may have half of the rest, because a whole class may sit behind one.
    pub fn of_process(descriptors: usize) -> ConnectionLimits {
        let reserve = RESERVE.min(descriptors / 2).max(descriptors.min(4 * RESERVE) / 4);
        let in_all = descriptors.saturating_sub(reserve).clamp(FEWEST, MOST);
        ConnectionLimits { in_all, per_address: (in_all / 2).max(FEWEST), ..ConnectionLimits::default() }
    }

    /// How often connections are looked at.
    pub(super) fn tick(&self) -> Duration {
        let shortest = self.head.min(self.body).min(self.idle).min(self.stall);
        (shortest / 4).clamp(Duration::from_millis(20), Duration::from_secs(1))
    }
}

/// Raises the number of descriptors this process may open to the most the system allows it: the number now.
pub fn raise_descriptors() -> usize {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        Err(error) => {
            tracing::debug!("the limit of open files cannot be raised: {error}");
            rlimit::getrlimit(rlimit::Resource::NOFILE)
                .map_or(1024, |(soft, _)| usize::try_from(soft).unwrap_or(usize::MAX))
        }
    }
}

/// Whose an address is: an IPv4 address as it is (also inside IPv6), an IPv6 address by its /64, which one household or
/// machine has to itself.
pub(crate) fn holder(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) if !six.is_loopback() => {
            let [a, b, c, d, ..] = six.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_left_for_files() {
        for (descriptors, connections) in [(64, 32), (256, 128), (1024, 768), (20_000, 8192), (usize::MAX, 8192)] {
            let limits = ConnectionLimits::of_process(descriptors);
            assert_eq!(limits.in_all, connections, "{descriptors}");
            assert!(limits.per_address <= limits.in_all);
        }
    }

    #[test]
    fn an_ipv6_network_is_one_holder() {
        let of = |text: &str| holder(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::9"));
        assert_ne!(of("2001:db8:1:2::9"), of("2001:db8:1:3::9"));
        assert_eq!(of("::ffff:10.0.0.7"), of("10.0.0.7"));
        assert_ne!(of("10.0.0.7"), of("10.0.0.8"));
    }
}
