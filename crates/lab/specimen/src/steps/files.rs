//! Files that operations write to, store pages in or read pages of.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;

use crate::settings::{Settings, Touch, MOST_PAGES, PAGE};
use crate::sys;

use super::{refusal, refuse, uniform, Todo, Visit, World};

const BLOCK: usize = 1 << 20;

/// A file in memory, of which each request reads some pages.
pub struct Pages {
    mapped: &'static [u8],
    each: u64,
    /// Draws of two steps of one request differ.
    salt: u64,
}

impl Pages {
    /// Writes the file, to storage too, so that its pages can be dropped and read again.
    pub(super) fn new(touch: &Touch, salt: u64, folder: &str) -> Result<Pages, String> {
        let path = std::path::Path::new(folder).join(&touch.file);
        let bytes = touch.bytes / PAGE * PAGE;
        filled(&path, bytes)
            .and_then(|file| sys::map(&file, bytes))
            .map(|mapped| Pages {
                mapped,
                each: touch.pages,
                salt: (salt + 1) << 32,
            })
            .map_err(|error| format!("cannot map {}: {error}", path.display()))
    }

    pub(super) fn touch(&self, visit: &Visit, world: &World<'_>) {
        let pages = (self.mapped.len() / PAGE) as f64;
        for at in 0..self.each {
            let page = (uniform(world.seed, visit.number, self.salt + at) * pages) as usize;
            std::hint::black_box(self.mapped[page * PAGE]);
        }
    }
}

/// A file of so many bytes that are no zeros; each block is on the disk before the next one.
fn filled(path: &std::path::Path, bytes: usize) -> std::io::Result<File> {
    let mut file = File::options()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .open(path)?;
    let block = vec![b'.'; BLOCK];
    for at in (0..bytes).step_by(BLOCK) {
        file.write_all(&block[..BLOCK.min(bytes - at)])?;
        file.sync_data()?;
    }
    Ok(file)
}

pub(super) fn opened(
    settings: &Settings,
    name: &str,
    options: &mut OpenOptions,
) -> Result<File, String> {
    let path = std::path::Path::new(settings.folder.as_deref().unwrap_or(".")).join(name);
    options
        .create(true)
        .open(&path)
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// A file whose pages are written past the cache, in turn.
pub struct Stored {
    file: File,
    kept: Vec<u8>,
    begin: usize,
    at: u64,
}

impl Stored {
    pub(super) fn new(file: File, pages: usize) -> Stored {
        let kept = vec![b'.'; (pages + 1) * PAGE];
        let begin = kept.as_ptr().align_offset(PAGE); // without a cache, memory must lie as pages do
        Stored {
            file,
            kept,
            begin,
            at: 0,
        }
    }

    pub(super) fn once(&mut self) -> io::Result<()> {
        let pages = &self.kept[self.begin..][..self.kept.len() - PAGE];
        self.file.write_all_at(pages, self.at)?;
        self.at += pages.len() as u64;
        if self.at + pages.len() as u64 > (MOST_PAGES * PAGE) as u64 {
            self.at = 0;
        }
        Ok(())
    }
}

pub(super) fn written(mut file: &File, line: &[u8], is_synced: bool, visit: &mut Visit) -> Todo {
    let done = file
        .write_all(line)
        .and_then(|()| if is_synced { file.sync_data() } else { Ok(()) });
    match done {
        Ok(()) => Todo::Next,
        Err(error) => refuse(visit, &refusal(500, &error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;

    #[test]
    fn pages_are_stored_in_turn_within_their_file() {
        let folder = std::env::temp_dir().join(format!("specimen-store-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("data");
        let file = File::create(&path).unwrap();
        let mut stored = Stored::new(file, 6_000); // twice they fit

        let sizes: Vec<u64> = (0..4)
            .map(|_| {
                stored.once().unwrap();
                path.metadata().unwrap().len()
            })
            .collect();
        std::fs::remove_dir_all(&folder).unwrap();

        assert_eq!((stored.begin + stored.kept.as_ptr() as usize) % PAGE, 0);
        assert_eq!(sizes, [24_576_000, 49_152_000, 49_152_000, 49_152_000]);
    }

    #[test]
    fn a_file_has_whole_pages_and_all_of_them_can_be_read() {
        let folder = std::env::temp_dir().join(format!("pages-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let touch =
            serde_json::from_str(r#"{"file": "f", "bytes": 1048999, "pages": 300}"#).unwrap();
        let pages = Pages::new(&touch, 0, folder.to_str().unwrap()).unwrap();
        let world = World {
            seed: 7,
            counts: &Counts::default(),
            warmup: None,
        };
        let path = folder.join("f");

        pages.touch(&Visit::default(), &world);

        assert_eq!(std::fs::metadata(&path).unwrap().len(), 1_048_576); // 256 whole pages
        assert!(pages.mapped.iter().all(|&byte| byte == b'.'));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
