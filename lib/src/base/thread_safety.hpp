// Words for clang's -Wthread-safety: which lock guards what, and who must hold it. Other compilers see nothing. Open it
// to see what a word says; the order of the locks is in lock_order.hpp.
//
// The analysis follows locks that a function or a block takes and gives back. What it cannot follow (locks that stay
// taken from one call to another around a fork, lists of locks) is marked SLUICE_UNCHECKED_LOCKS, with the reason.
#pragma once

#if defined(__clang__)
#define SLUICE_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define SLUICE_THREAD_SAFETY(attribute)
#endif

// Of types: a lock; an object that holds one as long as it lives.
#define SLUICE_LOCK SLUICE_THREAD_SAFETY(capability("mutex"))
#define SLUICE_HOLDS_LOCK SLUICE_THREAD_SAFETY(scoped_lockable)

// Of data: touched only by who holds the lock.
#define SLUICE_GUARDED_BY(lock) SLUICE_THREAD_SAFETY(guarded_by(lock))

// Of functions: the caller holds the lock, or must not; the function takes it, or gives it back; it takes it if it
// returns true; it tells that the caller holds it.
#define SLUICE_REQUIRES(...) SLUICE_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define SLUICE_EXCLUDES(...) SLUICE_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
#define SLUICE_TAKES(...) SLUICE_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define SLUICE_GIVES_BACK(...) SLUICE_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define SLUICE_TAKES_IF_TRUE(...) SLUICE_THREAD_SAFETY(try_acquire_capability(true, ##__VA_ARGS__))
#define SLUICE_TELLS_HELD() SLUICE_THREAD_SAFETY(assert_capability())
#define SLUICE_UNCHECKED_LOCKS SLUICE_THREAD_SAFETY(no_thread_safety_analysis)
