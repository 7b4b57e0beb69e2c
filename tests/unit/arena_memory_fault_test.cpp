// No memory for an arena, for its next chunk or for the heap behind it: scopes are refused or their objects go to the
// pools, calls give null with ENOMEM, and what lives stays whole.
#include "arena/arena.hpp"

#include <string>

#include "arena_program.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"

namespace {

using namespace sluice;
using mock_os::Call;
using test::filled;
using test::in_chunk;
using test::Scope;
using test::scoped_allocate;
using test::scoped_free;

std::string valid_or_wrong() {
  const char* const wrong = heap::validate().what;
  return wrong != nullptr ? wrong : "";
}

TEST(ArenaMemoryFault, a_scope_in_a_heap_that_cannot_start_is_refused_and_may_be_left) {
  const std::string wrong = test::in_child([]() -> std::string {
    mock_os::fail_from(mock_os::any, 1);
    {
      const Scope scope;
      if (scope.result() != -1) return "the scope is open";
      errno = 0;
      if (scoped_allocate(10) != nullptr || errno != ENOMEM) return "a block out of nothing";
      if (arena::allocate_zeroed(1, 10) != nullptr) return "a block out of nothing";
    }
    mock_os::never_fail();
    const Scope scope;
    if (scope.result() != 0) return "no scope when there is memory again";
    void* const block = scoped_allocate(10);
    if (!in_chunk(block)) return "not routed when there is memory again";
    scoped_free(block);
    return valid_or_wrong();
  });
  EXPECT_EQ(wrong, "");
}

// Every system call that a program with scopes makes fails once.
TEST(ArenaMemoryFault, any_call_may_fail_once_and_objects_stay_whole) {
  bool failed = true;
  unsigned n = 1;
  for (; failed && n < 200; ++n) {
    const std::string wrong = test::in_child([n]() -> std::string {
      mock_os::fail_nth(mock_os::any, n);
      std::string text;
      {
        test::ArenaProgram program(600, n);
        program.may_run_out(true);
        for (int i = 0; i < 6000; ++i) {
          if (program.open_scopes() == 0) program.enter(SLUICE_ROUTE);
          program.step();
        }
        program.leave_all();
        program.release_all();
        text = program.wrong();
      }
      if (text.empty()) text = valid_or_wrong();
      return text.empty() && !mock_os::has_failed() ? "no call failed" : text;
    });
    if (wrong == "no call failed") failed = false;
    ASSERT_TRUE(wrong.empty() || !failed) << "call " << n << ": " << wrong;
  }
  EXPECT_GT(n, 3u);
}

TEST(ArenaMemoryFault, when_memory_ends_for_good_what_lives_stays_whole) {
  for (unsigned n = 1; n < 40; n += 3) {
    const std::string wrong = test::in_child([n]() -> std::string {
      std::string text;
      {
        test::ArenaProgram program(3000, n);
        program.may_run_out(true);
        program.enter(SLUICE_ROUTE);
        program.allocate(0, 100);
        mock_os::fail_from(Call::Commit, n);
        for (int i = 0; i < 20'000; ++i)
          program.step();
        mock_os::never_fail();
        program.may_run_out(false);
        for (int i = 0; i < 2000; ++i)
          program.step();
        program.leave_all();
        program.release_all();
        text = program.wrong();
      }
      return text.empty() ? valid_or_wrong() : text;
    });
    EXPECT_EQ(wrong, "") << n;
  }
}

// The next chunk is not to be had, but the pools still have blocks: they serve the scope.
TEST(ArenaMemoryFault, without_a_next_chunk_the_pools_serve_the_scope) {
  const std::string wrong = test::in_child([]() -> std::string {
    std::vector<void*> pooled, objects;
    for (int i = 0; i < 5000; ++i)
      pooled.push_back(scoped_allocate(100));
    for (void* const block : pooled)
      scoped_free(block);
    const Scope scope;
    objects.push_back(filled(100, 1));
    if (!in_chunk(objects[0])) return "not routed";
    mock_os::fail_from(mock_os::any, 1);
    for (int i = 0; i < 200'000 && in_chunk(objects.back()); ++i)
      objects.push_back(filled(100, 1));
    if (objects.back() == nullptr) return "null while the pools have blocks";
    if (!mock_os::has_failed()) return "no call failed";
    // In the middle of everything, objects still end and resize.
    auto* const last = static_cast<unsigned char*>(arena::reallocate(objects[0], 50));
    if (!test::all_bytes(last, 50, 1)) return "contents lost";
    objects[0] = last;
    errno = 0;
    void* const object = objects[1];
    if (arena::reallocate(object, size_t{1} << 30) != nullptr || errno != ENOMEM) return "realloc out of nothing";
    if (!test::all_bytes(object, 100, 1)) return "a failed realloc touched its object";
    mock_os::never_fail();
    for (void* const block : objects)
      scoped_free(block);
    objects.assign(1, filled(100, 1));
    const bool routed = in_chunk(objects[0]);
    scoped_free(objects[0]);
    if (!routed) return "the routing does not come back with the memory";
    return valid_or_wrong();
  });
  EXPECT_EQ(wrong, "");
}

}  // namespace
