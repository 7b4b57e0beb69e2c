//! Frames: memory that is dropped at once (`sluice/frame.h`).
use std::alloc::Layout;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The first fields of `sluice_frame_state`; frame.c asserts where they are.
#[repr(C)]
struct State {
    cursor: Cell<usize>,
    limit: Cell<usize>,
    _chunk_and_tag: [Cell<usize>; 2],
    depth: Cell<usize>,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Mark([usize; 2]);

/// `opened_frame` of frame.c.
#[repr(C)]
struct Opened {
    state: *const State,
    depth: usize,
    mark: Mark,
    outer: Mark,
}

extern "C" {
    fn sluice_rust_frame_open(frame: *mut Opened);
    fn sluice_rust_frame_close(frame: *const Opened);
    fn sluice_rust_frame_alloc(state: *const State, size: usize, align: usize) -> *mut u8;
}

/// Memory that lasts as long as the function that [`frame`] calls. It stays on its thread; its blocks are dropped with
/// it, without a call for each.
///
/// With the feature `allocator-api2`, `&Frame` is an `Allocator`. Giving memory back frees it only if the block is the
/// last one, and the last block grows in place.
pub struct Frame {
    opened: Opened,
    /// What was allocated here while an inner frame was open: that one's end must not take it along.
    beside: Cell<*mut Beside>,
    on_its_thread: PhantomData<*mut ()>,
}

/// Stands before a block from malloc.
struct Beside {
    next: *mut Beside,
    layout: Layout,
}

/// Effects: opens a frame, calls `work` with it, and drops what was allocated in it, also if `work` panics. Destructors
/// of what lies in it run as usual, where their owners end. Frames nest.
///
/// ```
/// # #[cfg(feature = "allocator-api2")] {
/// use allocator_api2::vec::Vec;
///
/// let longest = sluice_malloc::frame(|frame| {
///     let mut words = Vec::new_in(frame);
///     words.extend("a text of some words".split(' '));
///     words.iter().map(|word| word.len()).max()
/// });
/// assert_eq!(longest, Some(5));
/// # }
/// ```
///
/// Nothing of a frame leaves it, neither by its result nor to another thread:
///
/// ```compile_fail
/// let words = sluice_malloc::frame(|frame| allocator_api2::vec::Vec::<u8, _>::new_in(frame));
/// ```
///
/// ```compile_fail
/// sluice_malloc::frame(|frame| {
///     let mut words = allocator_api2::vec::Vec::<u8, _>::new_in(frame);
///     std::thread::scope(|threads| { threads.spawn(|| words.push(1)); });
/// });
/// ```
pub fn frame<R>(work: impl FnOnce(&Frame) -> R) -> R {
    let mut frame = Frame {
        opened: Opened { state: std::ptr::null(), depth: 0, mark: Mark::default(), outer: Mark::default() },
        beside: Cell::new(std::ptr::null_mut()),
        on_its_thread: PhantomData,
    };
    // SAFETY: the frame is dropped at the end of this function, after those that `work` opens: last in, first out.
    unsafe { sluice_rust_frame_open(&mut frame.opened) };
    work(&frame)
}

impl Drop for Frame {
    fn drop(&mut self) {
        let mut next = self.beside.get();
        while !next.is_null() {
            // SAFETY: allocate_beside made it, and nothing borrows from the frame any more.
            unsafe {
                let Beside { next: following, layout } = next.read();
                std::alloc::dealloc(next.cast(), layout);
                next = following;
            }
        }
        // SAFETY: it is the innermost frame of its thread.
        unsafe { sluice_rust_frame_close(&self.opened) };
    }
}

impl Frame {
    #[inline]
    fn state(&self) -> &State {
        // SAFETY: a variable of the thread that a frame cannot leave. All of it are cells, since C changes it too.
        unsafe { &*self.opened.state }
    }

    #[inline]
    fn is_innermost(&self) -> bool {
        self.state().depth.get() == self.opened.depth
    }

    /// Returns: memory for the layout, not cleared, valid while the frame is; None where there is none.
    #[inline]
    pub fn allocate_layout(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return NonNull::new(std::ptr::null_mut::<u8>().wrapping_add(layout.align()));
        }
        if !self.is_innermost() {
            return self.allocate_beside(layout);
        }
        let state = self.state();
        let block = (state.cursor.get().wrapping_add(layout.align() - 1)) & !(layout.align() - 1);
        // A layout's size, rounded up to its alignment, is at most isize::MAX, as is an address.
        let end = block.wrapping_add(layout.size());
        if block >= state.cursor.get() && end >= block && end < state.limit.get() {
            state.cursor.set(end);
            return NonNull::new(block as *mut u8);
        }
        // SAFETY: the state is that of this thread, and the alignment a power of two.
        NonNull::new(unsafe { sluice_rust_frame_alloc(self.opened.state, layout.size(), layout.align()) })
    }

    #[cold]
    fn allocate_beside(&self, layout: Layout) -> Option<NonNull<u8>> {
        let (whole, offset) = Layout::new::<Beside>().extend(layout).ok()?;
        // SAFETY: the size is not 0, since a Beside lies at its front.
        unsafe {
            let memory = NonNull::new(std::alloc::alloc(whole))?;
            memory.cast::<Beside>().as_ptr().write(Beside { next: self.beside.get(), layout: whole });
            self.beside.set(memory.cast().as_ptr());
            NonNull::new(memory.as_ptr().add(offset))
        }
    }

    /// Effects: moves the end of the last block, if this one is it and there is room.
    #[cfg(feature = "allocator-api2")]
    fn moved_end(&self, block: NonNull<u8>, old: Layout, new_size: usize) -> bool {
        let (state, start) = (self.state(), block.as_ptr() as usize);
        if old.size() == 0 || start.wrapping_add(old.size()) != state.cursor.get() || !self.is_innermost() {
            return false;
        }
        match start.checked_add(new_size) {
            Some(end) if end < state.limit.get() => {
                state.cursor.set(end);
                true
            }
            _ => false,
        }
    }
}

#[cfg(feature = "allocator-api2")]
mod allocator {
    use super::Frame;
    use allocator_api2::alloc::{AllocError, Allocator};
    use std::alloc::Layout;
    use std::ptr::NonNull;

    fn whole(block: NonNull<u8>, size: usize) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(block, size)
    }

    /// Effects: has the block in new memory with its first bytes. Requires: they are those of `copied` bytes.
    unsafe fn moved(
        frame: &Frame,
        block: NonNull<u8>,
        copied: usize,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        let memory = frame.allocate_layout(new).ok_or(AllocError)?;
        memory.as_ptr().copy_from_nonoverlapping(block.as_ptr(), copied);
        Ok(whole(memory, new.size()))
    }

    fn is_aligned(block: NonNull<u8>, layout: Layout) -> bool {
        block.as_ptr() as usize % layout.align() == 0
    }

    // SAFETY: a block lasts as long as the frame, which every copy of the reference borrows.
    unsafe impl Allocator for &Frame {
        #[inline]
        fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
            self.allocate_layout(layout).map(|block| whole(block, layout.size())).ok_or(AllocError)
        }

        #[inline]
        unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
            self.moved_end(block, layout, 0);
        }

        unsafe fn grow(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
            if is_aligned(block, new) && self.moved_end(block, old, new.size()) {
                return Ok(whole(block, new.size()));
            }
            moved(self, block, old.size(), new)
        }

        unsafe fn grow_zeroed(
            &self,
            block: NonNull<u8>,
            old: Layout,
            new: Layout,
        ) -> Result<NonNull<[u8]>, AllocError> {
            let grown = self.grow(block, old, new)?;
            grown.cast::<u8>().as_ptr().add(old.size()).write_bytes(0, new.size() - old.size());
            Ok(grown)
        }

        unsafe fn shrink(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
            if !is_aligned(block, new) {
                return moved(self, block, new.size(), new);
            }
            self.moved_end(block, old, new.size());
            Ok(whole(block, new.size()))
        }
    }
}
