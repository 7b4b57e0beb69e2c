//! The global allocator.
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

/// What `malloc` aligns every block to, small ones too.
const ALIGNED: usize = 16;

extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn calloc(count: usize, size: usize) -> *mut c_void;
    fn realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn aligned_alloc(align: usize, size: usize) -> *mut c_void;
    fn free(block: *mut c_void);
}

/// Sluice's malloc as the allocator of a Rust program.
///
/// ```
/// #[global_allocator]
/// static GLOBAL: sluice_malloc::Sluice = sluice_malloc::Sluice;
/// # fn main() { assert_eq!(vec![1; 100].len(), 100) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sluice;

// SAFETY: blocks are malloc's, which unwinds nowhere, and have the size and alignment of the layout; realloc keeps the
// alignment that malloc gives, and is called for no other.
unsafe impl GlobalAlloc for Sluice {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNED {
            malloc(layout.size()).cast()
        } else {
            aligned_alloc(layout.align(), layout.size()).cast()
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNED {
            return calloc(1, layout.size()).cast();
        }
        let block = self.alloc(layout);
        if !block.is_null() {
            block.write_bytes(0, layout.size());
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        free(block.cast());
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if layout.align() <= ALIGNED {
            return realloc(block.cast(), new_size).cast();
        }
        let moved = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
        if !moved.is_null() {
            moved.copy_from_nonoverlapping(block, layout.size().min(new_size));
            free(block.cast());
        }
        moved
    }
}
