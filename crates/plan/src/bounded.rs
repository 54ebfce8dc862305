//! Files read whole, up to a bound.

use std::fs::File;
use std::io::{self, Read};

use crate::program::sha256_hex;

/// The bytes of a file; none: there are more than `most`.
///
/// Also of what does not say its length beforehand, as a pipe or a device without end.
fn read(path: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    if length > most {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// The bytes of a file that is called `name` in faults; `use_` is what they are for: `sent`.
pub(crate) fn read_file(name: &str, path: &str, most: u64, use_: &str) -> Result<Vec<u8>, String> {
    let bytes = read(path, most).map_err(|error| format!("{name} cannot be read: {error}"))?;
    bytes.ok_or_else(|| format!("{name} has more than {most} bytes, the most that is {use_}"))
}

/// The fault of a file whose digest is another one than when the plan was made.
pub(crate) fn check_digest(name: &str, digest: &str, planned: &str) -> Result<(), String> {
    if digest.eq_ignore_ascii_case(planned) {
        return Ok(());
    }
    Err(format!(
        "{name} has changed since the plan was made: its SHA-256 is {digest}"
    ))
}

/// The bytes of a file that must be the one of the plan.
pub fn read_planned(
    name: &str,
    (path, digest): (&str, &str),
    most: u64,
    use_: &str,
) -> Result<Vec<u8>, String> {
    let bytes = read_file(name, path, most, use_)?;
    check_digest(name, &sha256_hex(&bytes), digest)?;
    Ok(bytes)
}

/// The number of the line, from 1, that holds the byte at `at`.
pub(crate) fn line_of(bytes: &[u8], at: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', &bytes[..at]).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_end_is_read_up_to_the_bound() {
        assert_eq!(read("/dev/zero", 1_000).unwrap(), None);
        assert_eq!(read("/dev/null", 1_000).unwrap(), Some(Vec::new()));
    }
}
