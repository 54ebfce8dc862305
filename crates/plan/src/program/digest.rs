//! SHA-256, to know that a file is the one that was planned.

use sha2::{Digest, Sha256};

/// The digest of `bytes` in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}
