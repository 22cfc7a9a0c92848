//! Turns on their way to the turn log, in files, so that they survive a process that is killed.
//!
//! A turn is appended to a file in a few microseconds, without syncing: what a process has written stays if
//! only the process ends. The turn log follows in the background. A process has two files. When all turns of
//! one are in the log it is emptied, while new turns go to the other, so that neither grows under constant
//! load. Each process locks its files; the next one to start recovers the files of a process that was killed.
//!
//! Invariant: a turn is removed from its file only when it is in the turn log.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use docent_core::session::SessionError;
use docent_core::turn_log::{LoggedTurn, TurnLog};
use uuid::Uuid;

use crate::failpoint;

const PREFIX: &str = "turn-log-";

/// Maximum size of a file in bytes. If the turn log cannot be written for so long that the file is full,
/// further turns are only in memory.
const LARGEST: u64 = 16 << 20;

/// The turns of this process that are not in the turn log yet.
#[derive(Debug)]
pub struct PendingTurns {
    slots: [Slot; 2],
    /// The file that new turns are appended to.
    current: usize,
}

/// The file that a turn is in; `None` if it is in none.
pub type Place = Option<usize>;

#[derive(Debug)]
struct Slot {
    file: File,
    path: PathBuf,
    length: u64,
    /// Number of turns in the file that are not in the turn log.
    waiting: usize,
}

impl PendingTurns {
    /// Creates the files of this process in `folder`.
    pub fn create(folder: &Path) -> io::Result<Self> {
        Ok(Self { slots: [Slot::create(folder)?, Slot::create(folder)?], current: 0 })
    }

    /// Appends a turn.
    pub fn add(&mut self, turn: &LoggedTurn) -> io::Result<Place> {
        if self.slots[self.current].length >= LARGEST {
            return Ok(None);
        }
        failpoint::reach("turn_log.pending")?;
        self.slots[self.current].append(turn)?;
        Ok(Some(self.current))
    }

    /// Records that turns at these places are in the turn log.
    pub fn logged(&mut self, places: impl Iterator<Item = Place>) -> io::Result<()> {
        for place in places.flatten() {
            self.slots[place].waiting = self.slots[place].waiting.saturating_sub(1);
        }
        for slot in &mut self.slots {
            if slot.waiting == 0 {
                slot.empty()?;
            }
        }
        let other = 1 - self.current;
        if self.slots[other].waiting == 0 {
            self.current = other;
        }
        Ok(())
    }

    /// Removes the files whose turns are all in the turn log; no turn may be added afterwards.
    pub fn close(&mut self) {
        for slot in self.slots.iter().filter(|slot| slot.waiting == 0) {
            // If this fails, an empty file is left, which the next process removes.
            let _ = std::fs::remove_file(&slot.path);
        }
    }
}

impl Slot {
    fn create(folder: &Path) -> io::Result<Self> {
        loop {
            let path = folder.join(format!("{PREFIX}{}.jsonl", Uuid::new_v4().simple()));
            let file = private(&path)?;
            // Another process may have found the file before it was locked, and removed it.
            match file.try_lock() {
                Ok(()) if path.exists() => return Ok(Self { file, path, length: 0, waiting: 0 }),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    fn append(&mut self, turn: &LoggedTurn) -> io::Result<()> {
        let mut line = serde_json::to_vec(turn)?;
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line) {
            // Part of a line would make the next one unreadable.
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.length += line.len() as u64;
        self.waiting += 1;
        Ok(())
    }

    fn empty(&mut self) -> io::Result<()> {
        if self.length > 0 {
            self.file.set_len(0)?;
            self.length = 0;
        }
        Ok(())
    }
}

/// Creates a file for appending that only its owner can read.
fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Why turns could not be recovered.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The files cannot be read or removed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The turn log cannot be written.
    #[error(transparent)]
    Log(#[from] SessionError),
}

/// Moves the turns of killed processes from `folder` to the turn log; returns how many there were.
pub async fn recover(folder: &Path, log: &dyn TurnLog) -> Result<usize, RecoveryError> {
    let mut recovered = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with(PREFIX) || !name.ends_with(".jsonl") {
            continue;
        }
        let mut file = File::open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            // A running process uses it.
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        // The last line may be incomplete.
        let turns: Vec<LoggedTurn> =
            bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        if !turns.is_empty() {
            log.record(&turns).await?;
        }
        recovered += turns.len();
        std::fs::remove_file(&path)?;
    }
    Ok(recovered)
}

#[cfg(test)]
mod tests {
    use docent_core::testing::sessions::turn;

    use super::*;
    use crate::session::memory::MemorySessions;

    fn logged(question: &str) -> LoggedTurn {
        let mut logged = LoggedTurn::new(&turn(question).response, &[]);
        logged.question = question.to_owned();
        logged
    }

    fn files(folder: &Path) -> Vec<u64> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut sizes: Vec<u64> = entries.map(|entry| entry.unwrap().metadata().unwrap().len()).collect();
        sizes.sort_unstable();
        sizes
    }

    #[tokio::test]
    async fn turns_of_a_killed_process_are_recovered_once() {
        let folder = tempfile::tempdir().unwrap();
        let log = MemorySessions::default();
        let mut pending = PendingTurns::create(folder.path()).unwrap();
        let (first, second) = (logged("one"), logged("two"));
        for turn in [&first, &second] {
            assert!(pending.add(turn).unwrap().is_some());
        }
        pending.slots[0].file.write_all(b"{\"turn_id\": \"cut o").unwrap();
        // As long as the process runs, its turns are its own.
        assert_eq!(recover(folder.path(), &log).await.unwrap(), 0);
        // When a process is killed, its files stay and their locks end.
        drop(pending);
        // One of them was written to the log just before the end.
        log.record(std::slice::from_ref(&first)).await.unwrap();
        assert_eq!(recover(folder.path(), &log).await.unwrap(), 2);
        let mut questions: Vec<String> =
            log.since("").await.unwrap().into_iter().map(|turn| turn.question).collect();
        questions.sort();
        assert_eq!(questions, ["one", "two"]);
        assert_eq!(files(folder.path()), [0_u64; 0]);
        assert_eq!(recover(folder.path(), &log).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn turns_stay_in_their_file_if_the_log_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut pending = PendingTurns::create(folder.path()).unwrap();
        pending.add(&logged("one")).unwrap();
        drop(pending);
        assert!(matches!(recover(folder.path(), &Broken).await, Err(RecoveryError::Log(_))));
        assert_eq!(recover(folder.path(), &MemorySessions::default()).await.unwrap(), 1);
    }

    #[test]
    fn files_do_not_grow_under_constant_load_and_are_removed_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut pending = PendingTurns::create(folder.path()).unwrap();
        let mut places = std::collections::VecDeque::new();
        // There are always three turns that are not in the log yet.
        for number in 0..100 {
            places.push_back(pending.add(&logged(&number.to_string())).unwrap());
            if places.len() > 3 {
                pending.logged(places.pop_front().into_iter()).unwrap();
            }
        }
        let one = serde_json::to_vec(&logged("100")).unwrap().len() as u64;
        assert!(files(folder.path()).iter().sum::<u64>() < 12 * one, "{:?}", files(folder.path()));
        pending.logged(places.into_iter()).unwrap();
        assert_eq!(files(folder.path()), [0, 0]);
        pending.close();
        assert_eq!(files(folder.path()), [0_u64; 0]);
    }

    /// A log that cannot be written.
    struct Broken;

    #[async_trait::async_trait]
    impl TurnLog for Broken {
        async fn record(&self, _: &[LoggedTurn]) -> Result<(), SessionError> {
            Err(SessionError::Unavailable("broken".to_owned()))
        }

        async fn rate(&self, id: Uuid, _: &docent_core::turn_log::Feedback) -> Result<(), SessionError> {
            Err(SessionError::NotFound(id))
        }

        async fn since(&self, _: &str) -> Result<Vec<LoggedTurn>, SessionError> {
            Ok(Vec::new())
        }

        async fn tokens_since(&self, _: &str) -> Result<u64, SessionError> {
            Ok(0)
        }

        async fn forget_before(&self, _: &str) -> Result<usize, SessionError> {
            Ok(0)
        }
    }
}
