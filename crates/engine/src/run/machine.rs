//! Resources of this machine as the system reports them; a value that it does not report is unknown, not zero.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use loadlens_sys as sys;

/// Resources of the machine.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    /// Descriptors that are open now.
    pub(super) open_files: u64,
    /// Soft and hard limit of open files.
    pub(super) files: (u64, u64),
    /// Local ports for connections to one address.
    pub(super) ports: Option<u64>,
    /// `net.ipv4.tcp_tw_reuse`: 1 everywhere, 2 on loopback.
    pub(super) reuse: u64,
    /// Bytes of memory that are left, and the source of that number.
    pub(super) memory: Option<(u64, &'static str)>,
    /// Bytes of address space that are left under RLIMIT_AS.
    pub(super) addresses: Option<u64>,
    /// Cores that this process may use, quotas included.
    pub(super) cores: u32,
}

impl Machine {
    /// As it is now.
    pub(super) fn look() -> io::Result<Machine> {
        Ok(Machine {
            open_files: open_descriptors(),
            files: sys::descriptor_limits()?,
            ports: local_ports(),
            reuse: number(Path::new("/proc/sys/net/ipv4/tcp_tw_reuse")).unwrap_or(0),
            memory: memory_left(),
            addresses: addresses_left(),
            cores: usable_cores(),
        })
    }
}

/// Cores that the process may use.
pub(super) fn usable_cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// Descriptors that the process has open now.
fn open_descriptors() -> u64 {
    fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64)
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The range that connections take their local ports from, less what is reserved in it.
fn local_ports() -> Option<u64> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let reserved =
        fs::read_to_string("/proc/sys/net/ipv4/ip_local_reserved_ports").unwrap_or_default();
    ports_of(&range, &reserved)
}

fn ports_of(range: &str, reserved: &str) -> Option<u64> {
    let (first, last) = range.trim().split_once(char::is_whitespace)?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.trim().parse().ok()?);
    let taken = |part: &str| -> Option<u64> {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
        Some((to.min(last) + 1).saturating_sub(from.max(first)))
    };
    let reserved: u64 = reserved.trim().split(',').filter_map(taken).sum();
    Some((last + 1).saturating_sub(first).saturating_sub(reserved))
}

/// Memory that can still be had: what the machine has left, or what the cgroup allows in all, if that is less.
///
/// A cgroup's use counts pages that it would give up when asked, so its whole limit is taken, not what is free of it.
fn memory_left() -> Option<(u64, &'static str)> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok();
    let available = meminfo.and_then(|text| {
        let line = text
            .lines()
            .find(|line| line.starts_with("MemAvailable:"))?;
        let kib: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some((kib << 10, "MemAvailable"))
    });
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let allowed = cgroup_files(&groups)
        .iter()
        .filter_map(|file| number(file))
        .min()
        .map(|bytes| (bytes, "the cgroup's limit"));
    available.into_iter().chain(allowed).min()
}

/// The files with the memory limits of our cgroup and all above it, of either version.
fn cgroup_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(place)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            named if named.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let root = Path::new(root);
        let own = root.join(place.trim_start_matches('/'));
        let upwards = own
            .ancestors()
            .take_while(|folder| folder.starts_with(root));
        files.extend(upwards.map(|folder| folder.join(file)));
    }
    files
}

fn addresses_left() -> Option<u64> {
    let limit = sys::address_space_limit()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmSize:"))?;
    let kib: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(limit.saturating_sub(kib << 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_ports_are_none_that_a_connection_gets() {
        assert_eq!(ports_of("32768\t60999\n", "\n"), Some(28_232));
        // 40000, 40001 to 40010, and 5 of a range that begins below
        assert_eq!(
            ports_of("32768\t60999\n", "40000,40001-40010,32000-32772"),
            Some(28_232 - 16)
        );
        assert_eq!(ports_of("nothing", ""), None);
    }

    #[test]
    fn limits_of_all_cgroups_on_the_way_up_are_looked_at() {
        let files = cgroup_files("5:cpu,cpuacct:/a\n4:memory:/a/b\n0::/c\n");

        let files: Vec<_> = files.iter().map(|file| file.to_str().unwrap()).collect();
        assert_eq!(
            files,
            [
                "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/c/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
    }

    #[test]
    fn this_machine_tells_what_it_has() {
        let machine = Machine::look().unwrap();

        assert!(machine.files.0 > 0 && machine.open_files > 2 && machine.cores > 0);
        assert!(machine.ports.is_some_and(|ports| ports > 1_000));
        assert!(machine.memory.is_some_and(|(bytes, _)| bytes > 1 << 20));
    }
}
