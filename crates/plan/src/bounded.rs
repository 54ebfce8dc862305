//! Files read whole, up to a bound.

use std::fs::File;
use std::io::{self, Read};

/// The bytes of a file; none: there are more than `most`.
///
/// Also of what does not say its length beforehand, as a pipe or a device without end.
pub(crate) fn read(path: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = File::open(path)?;
    let said = file.metadata()?.len();
    if said > most {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(said as usize);
    file.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
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
