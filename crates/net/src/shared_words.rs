//! Memory shared by processes: an array of atomic words, and file locks that the kernel releases
//! when their holder ends.
//!
//! It is a file in memory of a sealed size, so that no access can fault. Child processes inherit
//! the descriptor and map the file. The meaning of the words is up to the caller.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// The seals of every such file: its size cannot change.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// The words, mapped into one process.
pub struct SharedWords {
    /// A separately opened file: locks belong to the open file, and the inherited one is shared.
    file: File,
    start: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the memory is accessed only by shared reference, as atomics, and stays mapped as long as
// the value lives; the file is `Send` and `Sync`.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Creates a file of `count` words, all zero.
    pub fn create(count: usize) -> io::Result<OwnedFd> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("weir-shared-words", flags)?;
        rustix::fs::ftruncate(&file, bytes(count) as u64)?;
        rustix::fs::fcntl_add_seals(&file, SEALS)?;
        Ok(file)
    }

    /// Maps a file made by [`create`](Self::create), possibly by another process. Any other file,
    /// or another size, is an error.
    pub fn map(file: BorrowedFd<'_>, count: usize) -> io::Result<Self> {
        let is_sealed = rustix::fs::fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SEALS));
        if !is_sealed || rustix::fs::fstat(file)?.st_size != bytes(count) as i64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not the expected memory"));
        }
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the system chooses touches no other memory.
        let start = unsafe {
            rustix::mm::mmap(ptr::null_mut(), bytes(count), protection, MapFlags::SHARED, &file, 0)
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { file, start, count })
    }

    /// Takes a lock, unless another process holds it. The lock ends with [`unlock`](Self::unlock),
    /// when the words are dropped, or with the process. It does not exclude other threads of this
    /// process.
    pub fn try_lock(&self, number: usize) -> io::Result<bool> {
        match self.set_lock(number, libc::F_WRLCK) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
                Ok(false)
            }
            done => done.map(|()| true),
        }
    }

    /// Releases a lock.
    pub fn unlock(&self, number: usize) -> io::Result<()> {
        self.set_lock(number, libc::F_UNLCK)
    }

    /// Locks one byte of the file. The lock belongs to the open file, not to the process (as
    /// `F_SETLK` does), so closing another descriptor of the file does not release it.
    fn set_lock(&self, number: usize, kind: libc::c_int) -> io::Result<()> {
        // SAFETY: all-zero bytes are a valid value of this struct of integers.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        lock.l_start = number as libc::off_t;
        lock.l_len = 1;
        // SAFETY: the descriptor is open, and the struct outlives the call, which only reads it.
        match unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: `start` is the beginning of a mapping of `count` words, aligned to a page, which
        // lasts until `drop`. Its file cannot shrink. Every bit pattern is a valid word, and all
        // mappings, in this process and others, change it by atomic operations only.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping has this size, and no reference into it outlives the value.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), bytes(self.count)) };
    }
}

fn bytes(count: usize) -> usize {
    count * size_of::<AtomicU64>()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::sync::atomic::Ordering::SeqCst;

    use super::*;

    #[test]
    fn two_mappings_share_the_words() {
        let file = SharedWords::create(1000).unwrap();
        let one = SharedWords::map(file.as_fd(), 1000).unwrap();
        let other = SharedWords::map(file.as_fd(), 1000).unwrap();
        drop(file);
        one[999].store(7, SeqCst);
        assert_eq!((other[999].load(SeqCst), other[0].load(SeqCst), other.len()), (7, 0, 1000));
        drop(one);
        assert_eq!(other[999].fetch_add(1, SeqCst), 7);
    }

    #[test]
    fn a_lock_is_released_with_its_holder() {
        let file = SharedWords::create(1).unwrap();
        let one = SharedWords::map(file.as_fd(), 1).unwrap();
        let other = SharedWords::map(file.as_fd(), 1).unwrap();
        assert!(one.try_lock(3).unwrap() && one.try_lock(5).unwrap());
        assert!(!other.try_lock(3).unwrap());
        one.unlock(3).unwrap();
        assert!(other.try_lock(3).unwrap() && !other.try_lock(5).unwrap());
        // Closing another descriptor of the same file releases no lock.
        drop(file);
        assert!(!other.try_lock(5).unwrap());
        drop(one);
        // A process that another test starts also has the descriptor until it executes its program.
        while !other.try_lock(5).unwrap() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn files_of_another_kind_or_size_are_refused() {
        let file = SharedWords::create(10).unwrap();
        assert!(SharedWords::map(file.as_fd(), 11).is_err(), "another size");
        let plain = File::open("/proc/self/exe").unwrap();
        assert!(SharedWords::map(plain.as_fd(), 10).is_err(), "a file of a disk");
        let sealed = crate::channel::sealed(&[0; 80]).unwrap();
        assert!(SharedWords::map(sealed.as_fd(), 10).is_err(), "one that nobody may write");
        let grown = rustix::fs::ftruncate(&file, 4096);
        assert!(grown.is_err(), "its size stays");
    }
}
