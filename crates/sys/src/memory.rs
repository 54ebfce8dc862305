//! Memory that stays for ever: shared between processes, or a file's.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::{io, ptr};

use crate::check;

/// Memory of zeros for ever, which processes forked from this one share.
///
/// # Safety
///
/// Zeros must be a value of `T`, and `T` must support access by several threads.
pub unsafe fn shared_zeros<T: Sync + 'static>() -> io::Result<&'static T> {
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_SHARED | libc::MAP_ANONYMOUS,
    );
    let size = std::mem::size_of::<T>();
    // SAFETY: a new mapping; it is aligned to a page, larger than any `T` asks for.
    let at = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: by the caller's word; the mapping is never undone.
    Ok(unsafe { &*at.cast::<T>() })
}

/// A file in memory for ever, to be read only; pages come one by one, without their neighbours.
pub fn map(file: &File, bytes: usize) -> io::Result<&'static [u8]> {
    let (fd, flags) = (file.as_raw_fd(), libc::MAP_SHARED);
    // SAFETY: a new mapping of a descriptor that is open; it stays valid when that is closed.
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ, flags, fd, 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is ours, has so many bytes and is never undone; the file does not change.
    unsafe {
        check(libc::madvise(at, bytes, libc::MADV_RANDOM))?;
        Ok(std::slice::from_raw_parts(at.cast::<u8>(), bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_file_is_there_after_it_is_closed() {
        let path = std::env::temp_dir().join(format!("loadlens-map-{}", std::process::id()));
        let bytes: Vec<u8> = (0..10_000u32).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let file = File::open(&path).unwrap();

        let mapped = map(&file, bytes.len()).unwrap();
        drop(file);
        std::fs::remove_file(&path).unwrap();

        assert!(mapped == bytes);
    }

    #[test]
    fn nothing_cannot_be_mapped() {
        let null = File::open("/dev/null").unwrap();

        let error = map(&null, 0).unwrap_err();

        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
