//! A program on the global allocator: it serves Rust and C, on 64 threads, and tells what it did.
use std::alloc::{GlobalAlloc, Layout};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{c_char, c_void, CStr, CString};
use std::io::{Read, Seek};
use std::process::Command;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;

use sluice_malloc::{Format, Sluice};

#[global_allocator]
static GLOBAL: Sluice = Sluice;

const THREADS: usize = 64;
const ROUNDS: usize = 2000;

extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn strdup(text: *const c_char) -> *mut c_char;
    fn free(block: *mut c_void);
    fn malloc(size: usize) -> *mut c_void;
    fn malloc_usable_size(block: *mut c_void) -> usize;
}

/// Pseudo-random numbers; the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }
}

/// Makes blocks, sends some to the next thread, and checks what comes from the one before. Returns how many came.
fn work(number: usize, next: Sender<Vec<u8>>, from_before: Receiver<Vec<u8>>) -> usize {
    let mut numbers = Numbers(number as u64);
    let mut held = HashMap::new();
    for round in 0..ROUNDS {
        let size = 1 + if round % 50 == 0 { numbers.below(200_000) } else { numbers.below(2000) };
        let mut block = vec![(size % 251) as u8; size];
        block.resize(size + numbers.below(100), (size % 251) as u8);
        match numbers.below(3) {
            0 => next.send(block).unwrap(),
            1 => drop(held.insert(numbers.below(40), block)),
            _ => drop(block),
        }
    }
    drop(next);
    for block in held.into_values() {
        check(&block);
    }
    from_before.into_iter().inspect(|block| check(block)).count()
}

fn check(block: &[u8]) {
    assert!(block.iter().all(|&byte| byte == block[0]), "a block has bytes of another");
}

#[test]
fn threads_hand_blocks_to_one_another() {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
    let mut senders: BTreeMap<_, _> = senders.into_iter().enumerate().collect();
    let threads: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(number, receiver)| {
            let next = senders.remove(&((number + 1) % THREADS)).unwrap();
            thread::spawn(move || work(number, next, receiver))
        })
        .collect();
    let came: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert!(came > THREADS * ROUNDS / 4, "{came} blocks came");
}

#[test]
fn c_and_its_libraries_use_the_same_malloc() {
    // What a shared library finds is that of this program.
    let found = unsafe { dlsym(std::ptr::null_mut(), c"malloc".as_ptr()) };
    assert_eq!(found as usize, malloc as *const () as usize);
    // libc's strdup allocates, and Rust gives the block back.
    let text = CString::new("a text ".repeat(1000)).unwrap();
    let before = sluice_malloc::stats().live_bytes;
    unsafe {
        let copy = strdup(text.as_ptr());
        assert_eq!(CStr::from_ptr(copy), text.as_c_str());
        assert!(malloc_usable_size(copy.cast()) >= 7001);
        Sluice.dealloc(copy.cast(), Layout::array::<u8>(7001).unwrap());
        let block = Sluice.alloc(Layout::array::<u8>(100).unwrap());
        free(block.cast());
    }
    assert!(before > 0);
}

#[test]
fn blocks_are_aligned_and_keep_their_bytes() {
    // Miri is slow. Its malloc aligns small blocks to less than 16, and its aligned_alloc wants multiples of the alignment.
    let (most, sizes): (_, &[usize]) =
        if cfg!(miri) { (6, &[64, 192, 4096]) } else { (16, &[1, 7, 8, 15, 16, 17, 100, 4096, 70_000]) };
    for align in (0..=most).map(|shift| 1 << shift) {
        for &size in sizes {
            let layout = Layout::from_size_align(size, align).unwrap();
            unsafe {
                let cleared = Sluice.alloc_zeroed(layout);
                assert_eq!(cleared as usize % align, 0, "{layout:?}");
                assert!((0..size).all(|at| *cleared.add(at) == 0), "{layout:?}");
                cleared.write_bytes(0xA5, size);
                let grown = Sluice.realloc(cleared, layout, size * 3);
                assert_eq!(grown as usize % align, 0, "{layout:?}");
                assert!((0..size).all(|at| *grown.add(at) == 0xA5), "{layout:?}");
                let grown_layout = Layout::from_size_align(size * 3, align).unwrap();
                let shrunk = Sluice.realloc(grown, grown_layout, size);
                assert_eq!(shrunk as usize % align, 0, "{layout:?}");
                assert!((0..size).all(|at| *shrunk.add(at) == 0xA5), "{layout:?}");
                Sluice.dealloc(shrunk, layout);
            }
        }
    }
}

#[test]
fn what_cannot_be_had_is_refused() {
    let layout = Layout::from_size_align(isize::MAX as usize - 4096, 1).unwrap();
    assert!(unsafe { Sluice.alloc(layout) }.is_null());
    let layout = Layout::from_size_align(isize::MAX as usize - 65535, 4096).unwrap();
    assert!(unsafe { Sluice.alloc(layout) }.is_null());
    let mut bytes: Vec<u8> = Vec::new();
    assert!(bytes.try_reserve_exact(isize::MAX as usize).is_err());
}

#[test]
fn statistics_tell_what_is_live() {
    let before = sluice_malloc::stats();
    let block = vec![1u8; 64 << 20];
    let during = sluice_malloc::stats();
    assert!(during.live_bytes >= before.live_bytes.saturating_sub(32 << 20) + block.len() as u64);
    assert!(during.mapped_bytes >= during.live_bytes / 2);
    assert_eq!(sluice_malloc::version(), env!("CARGO_PKG_VERSION"));
    drop(block);
    sluice_malloc::idle();
}

#[test]
fn statistics_are_written_as_json() {
    let mut file = tempfile();
    sluice_malloc::write_stats(&file, Format::Json).unwrap();
    file.rewind().unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert!(text.starts_with('{') && text.contains("live_bytes"), "{text}");
    let read_only = std::fs::File::open("/dev/null").unwrap();
    assert_eq!(sluice_malloc::write_stats(read_only, Format::Text).unwrap_err().raw_os_error(), Some(9));
}

fn tempfile() -> std::fs::File {
    let path = std::env::temp_dir().join(format!("sluice-malloc-{}", std::process::id()));
    let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    file
}

/// Runs one of the ignored tests in a process with this variable.
fn in_a_process_with(test: &str, name: &str, value: &str) -> String {
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
        .env(name, value)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && text.contains("1 passed"), "{text}");
    text
}

#[test]
fn options_of_the_environment_work() {
    let text = in_a_process_with("child_counts", "SLUICE_STATS", "1");
    assert!(text.contains("sluice"), "{text}");
}

#[test]
#[ignore = "run by options_of_the_environment_work"]
fn child_counts() {
    let before = sluice_malloc::stats();
    assert_eq!(before.counting, 1);
    let blocks: Vec<_> = (0..1000).map(|number| Box::new([number; 4])).collect();
    let after = sluice_malloc::stats();
    assert!(after.mallocs >= before.mallocs + 1000, "{before:?} {after:?}");
    drop(blocks);
    assert!(sluice_malloc::stats().frees >= before.frees + 1000);
}
