//! Restricts access to the file of conversations.

use std::io;
use std::path::Path;

/// Creates the file, readable only by its owner, if it does not exist; SQLite gives its other files the same
/// mode. Access by others is removed from an existing file, but group permissions are kept, since they were
/// set on purpose.
#[cfg(unix)]
pub(super) fn make(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

    const OTHERS: u32 = 0o007;
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mut permissions = std::fs::metadata(path)?.permissions();
            let mode = permissions.mode();
            if mode & OTHERS != 0 && !path.is_dir() {
                permissions.set_mode(mode & !OTHERS);
                // This fails for another user's file or a read-only disk, which is fine.
                let _ = std::fs::set_permissions(path, permissions);
            }
            Ok(())
        }
        created => created.map(drop),
    }
}

#[cfg(not(unix))]
pub(super) fn make(_: &Path) -> io::Result<()> {
    Ok(())
}
