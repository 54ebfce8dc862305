//! Settings with which an origin starts.

use std::net::Ipv4Addr;

use strum::{EnumString, VariantNames};

use crate::tls::TlsConfig;

/// Settings of an origin; the default is a healthy one on a free port.
#[derive(Clone, Debug)]
pub struct Config {
    /// Port; 0: a free one.
    pub port: u16,
    /// Address that it serves on; counts are always on loopback.
    pub address: Ipv4Addr,
    /// Threads that serve; connections are dealt to them in turn.
    pub threads: usize,
    /// Thread i is kept on processor `cpus[i % len]`; empty: anywhere.
    pub cpus: Vec<usize>,
    /// The target that requests for `/` are answered as, such as `/mm1?mean_ms=2`.
    pub root: Option<String>,
    /// Periods in which no request is served.
    pub freeze: Option<Freeze>,
    /// Treatment of new connections.
    pub admission: Admission,
    /// Length of the accept queue.
    pub backlog: u32,
    /// Connections beyond are ended at once.
    pub max_connections: Option<u64>,
    /// Rows that each thread keeps in its log of requests; 0: no log.
    pub log_rows: usize,
    /// TLS settings; none: plain TCP.
    pub tls: Option<TlsConfig>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            port: 0,
            address: Ipv4Addr::LOCALHOST,
            threads: 1,
            cpus: Vec::new(),
            root: None,
            freeze: None,
            admission: Admission::Accept,
            backlog: 4096,
            max_connections: None,
            log_rows: 0,
            tls: None,
        }
    }
}

/// Treatment of new connections, before any request.
#[derive(Clone, Copy, Debug, Default, EnumString, Eq, PartialEq, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Admission {
    /// They are served.
    #[default]
    Accept,
    /// The port is bound without listening: connecting is refused.
    Refuse,
    /// They stay in the accept queue; beyond `backlog` connecting times out.
    Hold,
    /// Ended in good order as soon as they are accepted.
    Close,
    /// Reset as soon as they are accepted.
    Reset,
    /// Unsolicited bytes are sent before any request.
    Greet,
}

/// A program of freezes: all threads do nothing for `len_ns`, first at `first_ns` after the start, then
/// every `every_ns` (0: once). The kernel goes on taking connections and bytes, as in a real pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// From the start to the first freeze.
    pub first_ns: u64,
    /// Length of each.
    pub len_ns: u64,
    /// From the beginning of one to the beginning of the next; 0: there is only one.
    pub every_ns: u64,
}

impl Freeze {
    /// The freeze that is on at `age_ns` after the start, or the next one: from and until.
    pub fn around(&self, age_ns: u64) -> Option<(u64, u64)> {
        let passed = age_ns.saturating_sub(self.first_ns);
        let mut number = passed.checked_div(self.every_ns).unwrap_or(0);
        let begins = |number: u64| self.first_ns + number * self.every_ns;
        if begins(number) + self.len_ns <= age_ns {
            if self.every_ns == 0 {
                return None;
            }
            number += 1;
        }
        Some((begins(number), begins(number) + self.len_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_freeze_is_on_for_its_length_in_every_period() {
        let freeze = Freeze {
            first_ns: 40,
            len_ns: 10,
            every_ns: 100,
        };

        assert_eq!(freeze.around(0), Some((40, 50)));
        assert_eq!(freeze.around(45), Some((40, 50)));
        assert_eq!(freeze.around(50), Some((140, 150)));
        assert_eq!(freeze.around(349), Some((340, 350)));
    }

    #[test]
    fn a_single_freeze_never_comes_again() {
        let freeze = Freeze {
            first_ns: 40,
            len_ns: 10,
            every_ns: 0,
        };

        assert_eq!(freeze.around(49), Some((40, 50)));
        assert_eq!(freeze.around(50), None);
    }
}
