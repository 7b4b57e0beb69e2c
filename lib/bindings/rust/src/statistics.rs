//! What the allocator tells about itself (`sluice/sluice.h`).
use std::ffi::{c_char, c_int, CStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Totals of the process, in bytes of whole blocks unless it says otherwise. Counts are 0 unless `counting` is 1: the
/// option `SLUICE_STATS` switches them on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub struct Stats {
    /// 1: counts are exact since the first call; 0: counts are 0 and only sizes are known.
    pub counting: u64,
    /// Blocks handed out, by any entry point (counted).
    pub mallocs: u64,
    /// Blocks taken back (counted).
    pub frees: u64,
    /// Bytes that the program asked for, summed (counted).
    pub requested_bytes: u64,
    /// Bytes of the blocks handed out (counted).
    pub allocated_bytes: u64,
    /// Bytes of the blocks taken back (counted).
    pub freed_bytes: u64,
    /// Bytes of the blocks that the program holds now.
    pub live_bytes: u64,
    /// Highest `live_bytes` (counted).
    pub peak_live_bytes: u64,
    /// Address space of slabs, large spans, chunks and frame memory in use.
    pub active_bytes: u64,
    /// Free blocks held by thread caches.
    pub cached_bytes: u64,
    /// Free spans whose pages have not yet gone back to the system.
    pub retained_bytes: u64,
    /// Readable and writable address space held by the heap.
    pub mapped_bytes: u64,
    /// Descriptors, class bytes, bitmaps and thread caches.
    pub metadata_bytes: u64,
    /// Threads that have a cache now.
    pub threads: u64,
    /// Scopes entered.
    pub scopes: u64,
    /// Of `live_bytes`, what scopes placed in stack arenas.
    pub arena_live_bytes: u64,
    /// Address space of the chunks that they lie in.
    pub arena_chunk_bytes: u64,
    /// Address space of frame memory in use.
    pub frame_bytes: u64,
}

extern "C" {
    fn sluice_stats_get(out: *mut Stats, size: usize) -> c_int;
    fn sluice_stats_print(descriptor: c_int, json: c_int) -> c_int;
    fn sluice_idle();
    fn sluice_version() -> *const c_char;
}

/// Returns the totals of the process now. Walks over the heap's slabs, under its locks.
pub fn stats() -> Stats {
    let mut stats = Stats::default();
    // SAFETY: it writes no more than the size that it is told.
    let status = unsafe { sluice_stats_get(&mut stats, std::mem::size_of::<Stats>()) };
    debug_assert_eq!(status, 0);
    stats
}

/// How [`write_stats`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A table to read.
    Text,
    /// For programs.
    Json,
}

/// Writes the statistics to a file, pipe or socket. Allocates nothing.
pub fn write_stats(to: impl AsFd, format: Format) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as `to` is borrowed.
    match unsafe { sluice_stats_print(to.as_fd().as_raw_fd(), (format == Format::Json).into()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives back to the system what is free, and what the calling thread's cache holds. For an event loop that is about to
/// wait for longer than some ten milliseconds.
pub fn idle() {
    // SAFETY: it asks for nothing.
    unsafe { sluice_idle() }
}

/// Returns the version of the library that is linked, "MAJOR.MINOR.PATCH".
pub fn version() -> &'static str {
    // SAFETY: it returns a constant of the library.
    unsafe { CStr::from_ptr(sluice_version()) }.to_str().unwrap_or_default()
}
