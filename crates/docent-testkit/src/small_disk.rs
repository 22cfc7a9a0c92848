//! A real file system with little space, for tests with a full disk.
//!
//! Invariant: it is unmounted when dropped.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::skipped;

/// An in-memory file system; unmounted when dropped.
pub struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// Mounts a file system of `megabytes`. Requires root on Linux; otherwise the test is skipped.
    pub fn mount(megabytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().ok()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "tmpfs"]).arg(folder.path());
        let mounted = mount.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self { folder });
        }
        skipped("a small file system cannot be mounted; run the tests as root on Linux");
        None
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Fills the disk completely.
    pub fn fill(&self) {
        let Ok(mut file) = File::options().append(true).create(true).open(self.filler()) else { return };
        for size in [1 << 16, 1 << 12, 1] {
            let bytes = vec![b'x'; size];
            while file.write_all(&bytes).is_ok() {}
        }
    }

    /// Frees the space that [`SmallDisk::fill`] used.
    pub fn free(&self) {
        let _ = std::fs::remove_file(self.filler());
    }

    fn filler(&self) -> PathBuf {
        self.folder.path().join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.folder.path()).status();
    }
}
