//! A file of numbers, mapped into memory or held there.
//!
//! The one place with `unsafe`: mapping a file is sound only while nobody changes it.
//! Files of a generation are written once, before it is published, and never again; a
//! removed file stays readable to those who mapped it.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

use bytemuck::Pod;
use memmap2::Mmap;

/// A read-only array of numbers.
#[derive(Debug)]
pub enum Column<T: Pod> {
    /// Backed by a file.
    Mapped(Mmap, std::marker::PhantomData<T>),
    /// Backed by memory.
    Owned(Vec<T>),
}

impl<T: Pod> Column<T> {
    /// Maps a file of a published generation.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len() as usize;
        if length == 0 {
            return Ok(Self::Owned(Vec::new())); // An empty file cannot be mapped.
        }
        if !length.is_multiple_of(size_of::<T>()) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "its length is not a whole number of values",
            ));
        }
        // SAFETY: files of a generation are immutable (see above), and the mapping is read-only.
        #[allow(unsafe_code)]
        let map = unsafe { Mmap::map(&file)? };
        Ok(Self::Mapped(map, std::marker::PhantomData))
    }
}

impl<T: Pod> Deref for Column<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            // Mappings start at a page, which is aligned for every number; the length was checked.
            Self::Mapped(map, _) => bytemuck::cast_slice(map),
            Self::Owned(values) => values,
        }
    }
}
