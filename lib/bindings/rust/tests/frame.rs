//! Frames: what lies in one is there until it ends, whatever other frames do meanwhile.
#![cfg(feature = "allocator-api2")]
use std::alloc::Layout;
use std::panic::{catch_unwind, AssertUnwindSafe};

use allocator_api2::alloc::Allocator;
use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use sluice_malloc::{frame, Frame, Sluice};

#[global_allocator]
static GLOBAL: Sluice = Sluice;

fn address(frame: &Frame) -> usize {
    frame.allocate_layout(Layout::new::<u64>()).unwrap().as_ptr() as usize
}

#[test]
fn memory_serves_again_after_the_frame() {
    let first = frame(address);
    for _ in 0..1000 {
        assert_eq!(frame(address), first);
    }
}

#[test]
fn the_last_vector_grows_in_place() {
    frame(|frame| {
        let mut numbers: Vec<u64, _> = Vec::with_capacity_in(1, frame);
        numbers.push(0);
        let start = numbers.as_ptr();
        numbers.extend(1..1000);
        assert_eq!(numbers.as_ptr(), start);
        numbers.extend(1000..1_000_000); // beyond a chunk
        assert!(numbers.iter().enumerate().all(|(at, &number)| at as u64 == number));
        numbers.truncate(10);
        numbers.shrink_to_fit();
        assert_eq!(numbers.iter().sum::<u64>(), 45);
    });
}

#[test]
fn an_outer_vector_that_grows_in_an_inner_frame_stays() {
    frame(|outer| {
        let mut kept: Vec<u32, _> = Vec::new_in(outer);
        for round in 0..100 {
            frame(|inner| {
                let mut dropped: Vec<u32, _> = Vec::new_in(inner);
                for number in 0..1000 {
                    dropped.push(number);
                    if number % 100 == 0 {
                        kept.push(round);
                    }
                }
                assert_eq!(dropped.iter().sum::<u32>(), 499_500);
            });
            frame(|inner| Vec::<u8, _>::with_capacity_in(100_000, inner).resize(100_000, 0xEE));
        }
        assert_eq!(kept.len(), 1000);
        assert!(kept.iter().enumerate().all(|(at, &round)| at as u32 / 10 == round));
    });
}

#[test]
fn a_panic_ends_the_frame_and_runs_destructors() {
    struct Counts<'a>(&'a std::cell::Cell<u32>);
    impl Drop for Counts<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let first = frame(address);
    let dropped = std::cell::Cell::new(0);
    let result = catch_unwind(AssertUnwindSafe(|| {
        frame(|frame| {
            let _boxes = [Box::new_in(Counts(&dropped), frame), Box::new_in(Counts(&dropped), frame)];
            panic!("on purpose");
        })
    }));
    assert!(result.is_err());
    assert_eq!(dropped.get(), 2);
    assert_eq!(frame(address), first);
}

#[test]
fn blocks_are_aligned_and_apart() {
    frame(|frame| {
        let mut ends = std::vec::Vec::new();
        for shift in 0..=16 {
            for size in [0, 1, 3, 64, 5000, 300_000] {
                let layout = Layout::from_size_align(size, 1 << shift).unwrap();
                let block = frame.allocate(layout).unwrap().cast::<u8>().as_ptr();
                assert_eq!(block as usize % layout.align(), 0, "{layout:?}");
                if size != 0 {
                    unsafe { block.write_bytes(0xFF, size) };
                    ends.push((block as usize, block as usize + size));
                }
            }
        }
        ends.sort_unstable();
        assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    });
}

#[test]
fn grown_and_shrunk_blocks_keep_alignment_and_bytes() {
    frame(|frame| unsafe {
        let layout = |size, align| Layout::from_size_align(size, align).unwrap();
        let block = frame.allocate_zeroed(layout(24, 8)).unwrap().cast::<u8>();
        block.as_ptr().write_bytes(7, 24);
        let grown = frame.grow_zeroed(block, layout(24, 8), layout(100, 256)).unwrap().cast::<u8>();
        assert_eq!(grown.as_ptr() as usize % 256, 0);
        let bytes = std::slice::from_raw_parts(grown.as_ptr(), 100);
        assert!(bytes[..24].iter().all(|&byte| byte == 7) && bytes[24..].iter().all(|&byte| byte == 0));
        let shrunk = frame.shrink(grown, layout(100, 256), layout(10, 4096)).unwrap().cast::<u8>();
        assert_eq!(shrunk.as_ptr() as usize % 4096, 0);
        assert!(std::slice::from_raw_parts(shrunk.as_ptr(), 10).iter().all(|&byte| byte == 7));
        frame.deallocate(shrunk, layout(10, 4096));
        let empty = frame.allocate(layout(0, 64)).unwrap().cast::<u8>();
        let filled = frame.grow(empty, layout(0, 64), layout(64, 64)).unwrap().cast::<u8>();
        let emptied = frame.shrink(filled, layout(64, 64), layout(0, 64)).unwrap().cast::<u8>();
        frame.deallocate(emptied, layout(0, 64));
    });
}

#[test]
fn what_cannot_be_had_is_refused() {
    frame(|frame| {
        assert!(frame.allocate(Layout::from_size_align(isize::MAX as usize - 63, 64).unwrap()).is_err());
        assert!(frame.allocate(Layout::from_size_align(1, 1 << 62).unwrap()).is_err());
        let mut bytes: Vec<u8, _> = Vec::new_in(frame);
        bytes.push(5);
        assert!(bytes.try_reserve(isize::MAX as usize - 10).is_err());
        assert_eq!(bytes[0], 5);
    });
}

#[test]
fn random_frames_of_64_threads_keep_what_is_theirs() {
    fn nest(depth: u32, seed: &mut u64, outer: &mut Vec<u64, &Frame>) {
        frame(|inner| {
            let mut own: Vec<u64, _> = Vec::new_in(inner);
            for _ in 0..40 {
                *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                match *seed >> 61 {
                    0 | 1 => outer.push(outer.len() as u64),
                    2 if depth < 3 => nest(depth + 1, seed, &mut own),
                    3 => drop(Box::new_in([*seed; 50], inner)),
                    4 => own.shrink_to_fit(),
                    _ => own.push(own.len() as u64),
                }
            }
            assert!(own.iter().enumerate().all(|(at, &number)| at as u64 == number));
        });
        assert!(outer.iter().enumerate().all(|(at, &number)| at as u64 == number));
    }
    std::thread::scope(|threads| {
        for number in 0..64 {
            threads.spawn(move || {
                let mut seed = number;
                for _ in 0..4 {
                    frame(|outermost| nest(0, &mut seed, &mut Vec::new_in(outermost)));
                }
            });
        }
    });
}
