// What the models share: how one is run, and what must come of it. A model is a protocol of the heap on Relacy's
// atomics, which run it in all orders of its threads' steps that fit the bound, with every value that the memory model
// of C++ lets a load see. Open it to add one.
//
// Beside the protocol as it is (`Orders()`), a model runs weaker ones, each with one order less, which Relacy must
// reject: that shows that the model sees what the order is for.
//
// What Relacy leaves out: in the search of all orders a load sees the latest value or the one before, in the random
// runs that follow also the one before that; no store is seen before an older load of its thread (load buffering); a
// compare_exchange that fails has seen the latest value, so that models of locks load first.
#pragma once

#include <cstdint>
#include <cstdio>
#include <ostream>
#include <streambuf>

#include <relacy/relacy.hpp>
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert
#undef errno

namespace model {

using rl::atomic;
using rl::memory_order;
using rl::mo_acq_rel;
using rl::mo_acquire;
using rl::mo_relaxed;
using rl::mo_release;
using rl::mo_seq_cst;
using rl::var;

// How far is searched: every order of the steps, or those with so many switches from a thread that could go on.
struct Search {
  unsigned switches;
};
inline constexpr Search all{0};
inline constexpr Search with_switches(unsigned count) {
  return {count};
}

// What a model that is rejected does wrong.
inline constexpr rl::test_result_e race = rl::test_result_data_race;                // of plain accesses
inline constexpr rl::test_result_e assertion = rl::test_result_user_assert_failed;  // RL_ASSERT
inline constexpr rl::test_result_e no_end = rl::test_result_livelock;

inline int failures = 0;

namespace detail {

// What Relacy writes, in memory that was there before: what it allocates in a run must be freed in it. More is dropped.
class Text : public std::streambuf {
 public:
  void clear() { setp(text_, text_ + sizeof text_ - 1); }
  const char* get() {
    *pptr() = '\0';
    return text_;
  }

 private:
  char text_[1 << 18];
};
inline Text text;

struct Run {
  rl::test_result_e result;
  unsigned long long executions;
};

template <typename Test>
Run run(rl::scheduler_type_e scheduler, unsigned switches, unsigned long long most) {
  text.clear();
  std::ostream out(&text);
  rl::test_params params;
  params.search_type = scheduler;
  params.context_bound = switches;
  params.iteration_count = most;
  params.output_stream = params.progress_stream = &out;
  (void)rl::simulate<Test>(params);
  return {params.test_result, params.stop_iteration};
}

// First all orders, then random ones, which see older values.
template <typename Test>
Run explore(Search search) {
  constexpr unsigned long long random_runs = 10'000;
  const auto scheduler = search.switches == 0 ? rl::sched_full : rl::sched_bound;
  const Run systematic = run<Test>(scheduler, search.switches, 0);
  if (systematic.result != rl::test_result_success) return systematic;
  Run random = run<Test>(rl::sched_random, 0, random_runs);
  random.executions += systematic.executions;
  return random;
}

}  // namespace detail

// The protocol as it is: no execution goes wrong.
template <typename Test>
void holds(const char* what, Search search = all) {
  const detail::Run found = detail::explore<Test>(search);
  if (found.result == rl::test_result_success) {
    std::printf("holds: %s (%llu executions)\n", what, found.executions);
    return;
  }
  ++failures;
  std::printf("WRONG: %s: %s in execution %llu\n%s\n", what, rl::test_result_str(found.result), found.executions,
              detail::text.get());
}

// A weaker one: an execution goes wrong in this way.
template <typename Test>
void is_rejected(const char* what, rl::test_result_e expected, Search search = all) {
  const detail::Run found = detail::explore<Test>(search);
  if (found.result == expected) {
    std::printf("rejected: %s (%s in execution %llu)\n", what, rl::test_result_str(found.result), found.executions);
    return;
  }
  ++failures;
  std::printf("NOT REJECTED as expected: %s: %s after %llu executions\n%s\n", what, rl::test_result_str(found.result),
              found.executions, detail::text.get());
}

inline int outcome() {
  return failures == 0 ? 0 : 1;
}

}  // namespace model
