// What an arena keeps: a few empty chunks, bounded by an option; what survivors pin, bounded by another; and what it
// does beyond that: it backs off, and comes back.
#include "arena/arena.hpp"

#include "arena_calls.hpp"
#include "base/options.hpp"

namespace {

using namespace sluice;
using test::chunks_in_use;
using test::filled;
using test::Scope;
using test::scoped_allocate;
using test::scoped_free;

// An option that has another value for a while.
class With {
 public:
  With(uint64_t& option, uint64_t value) : option_(option), before_(std::exchange(option, value)) {}
  ~With() { option_ = before_; }
  With(const With&) = delete;
  With& operator=(const With&) = delete;

 private:
  uint64_t& option_;
  const uint64_t before_;
};

class ArenaPolicy : public testing::Test {
 protected:
  void SetUp() override { cache::flush_idle(); }
  void TearDown() override { test::expect_valid(); }
};

void allocate_and_free(size_t count, size_t size, bool reversed = false) {
  std::vector<void*> objects;
  for (size_t i = 0; i < count; ++i)
    objects.push_back(filled(size, 1));
  if (reversed) std::reverse(objects.begin(), objects.end());
  for (void* const object : objects)
    scoped_free(object);
}

TEST_F(ArenaPolicy, empty_chunks_are_kept_as_the_option_says_and_no_more) {
  for (const size_t hot : {0u, 1u, 4u, 16u}) {
    const With option(options.arena_hot, hot * unit_size);
    for (const bool reversed : {false, true}) {
      test::on_another_thread([hot, reversed] {
        const size_t before = chunks_in_use();
        const Scope scope;
        allocate_and_free(20'000, 100, reversed);
        EXPECT_LE(chunks_in_use(), before + hot + 1) << hot;
      });
    }
  }
}

TEST_F(ArenaPolicy, empty_chunks_are_used_again_the_last_one_first) {
  const Scope scope;
  allocate_and_free(2000, 100);
  const uint64_t opened = test::arena_figures().chunks_opened;
  for (int i = 0; i < 100; ++i)
    allocate_and_free(2000, 100, i % 2 == 0);
  EXPECT_EQ(test::arena_figures().chunks_opened, opened) << "memory is streamed through";
}

TEST_F(ArenaPolicy, trim_gives_empty_chunks_back) {
  const Scope scope;
  allocate_and_free(2000, 100);
  EXPECT_GE(chunks_in_use(), 2u);
  (void)heap::trim(0);
  EXPECT_LE(chunks_in_use(), 1u);
}

// One survivor in a thousand objects, a million of them.
TEST_F(ArenaPolicy, few_survivors_of_many_objects_pin_no_more_than_the_budget) {
  std::vector<unsigned char*> survivors;
  size_t most = 0;
  for (unsigned request = 0; request < 1000; ++request) {
    const Scope scope;
    std::vector<void*> objects;
    for (unsigned i = 0; i < 1000; ++i) {
      if (i == 500)
        survivors.push_back(filled(64, static_cast<unsigned char>(request)));
      else
        objects.push_back(filled(32 + i % 128, 0xee));
    }
    for (size_t i = 0; i < objects.size(); ++i)
      scoped_free(objects[request % 2 == 0 ? i : objects.size() - 1 - i]);
    most = std::max(most, chunks_in_use());
  }
  for (size_t i = 0; i < survivors.size(); ++i)
    ASSERT_TRUE(test::all_bytes(survivors[i], 64, static_cast<unsigned char>(i)));
  // The survivors themselves fill two chunks.
  const size_t allowed = (options.arena_pinned + options.arena_hot) / unit_size + 6;
  EXPECT_LE(most, allowed);
  for (unsigned char* const survivor : survivors)
    scoped_free(survivor);
  cache::flush_idle();
  EXPECT_LE(chunks_in_use(), 1u);
}

// Each chunk gets a survivor at its end as well, so that no hole joins another.
std::vector<void*> pin_chunks(size_t chunks) {
  std::vector<void*> survivors;
  for (size_t i = 0; i < chunks; ++i) {
    std::vector<void*> objects;
    for (int n = 0; n < 640; ++n)
      objects.push_back(filled(88, 1));
    for (size_t n = 0; n < objects.size(); ++n) {
      if (n % 5 == 0)
        survivors.push_back(objects[n]);
      else
        scoped_free(objects[n]);
    }
  }
  return survivors;
}

TEST_F(ArenaPolicy, survivors_beyond_the_budget_end_the_routing_and_it_comes_back_when_they_go) {
  test::on_another_thread([] {  // an arena that has not backed off before
    const With option(options.arena_pinned, 2 * unit_size);
    const arena::Figures before = test::arena_figures();
    std::vector<void*> survivors;
    bool off = false;
    {
      const Scope scope;
      EXPECT_EQ(scope.result(), 0);
      for (int i = 0; i < 40 && !off; ++i) {
        const std::vector<void*> more = pin_chunks(1);
        survivors.insert(survivors.end(), more.begin(), more.end());
        off = !test::routed();
      }
      EXPECT_TRUE(off) << "nothing bounds what survivors pin";
      EXPECT_EQ(test::arena_figures().back_offs, before.back_offs + 1);
      EXPECT_LE(chunks_in_use(), 24u);
      void* const pooled = scoped_allocate(100);
      EXPECT_FALSE(test::in_chunk(pooled));
      scoped_free(pooled);
    }
    {
      const Scope refused;
      EXPECT_EQ(refused.result(), -1);
      EXPECT_FALSE(test::routed());
    }
    for (void* const survivor : survivors)
      scoped_free(survivor);
    int refusals = 0;
    for (bool on = false; !on && refusals < 10; ++refusals) {
      const Scope scope;
      on = scope.result() == 0 && test::routed();
    }
    EXPECT_LT(refusals, 10) << "the routing does not come back";
    EXPECT_LE(chunks_in_use(), options.arena_hot / unit_size + 2);
  });
}

// A chunk is looked at when a quarter of it is freed; the other three quarters are freed later, and pinned as well.
TEST_F(ArenaPolicy, the_budget_counts_all_that_is_freed) {
  test::on_another_thread([] {
    const With option(options.arena_pinned, 16 * unit_size);
    const size_t before = chunks_in_use();
    const Scope scope;
    constexpr size_t per_chunk = arena::chunk_capacity / arena::total_for(100);
    std::vector<void*> survivors, objects;
    for (size_t i = 0; i < 30 * per_chunk; ++i)
      objects.push_back(filled(100, 1));
    for (size_t i = 0; i < objects.size(); ++i) {
      if (i % per_chunk == 0)
        survivors.push_back(objects[i]);
      else
        scoped_free(objects[i]);
    }
    for (size_t i = 0; i < 30 * per_chunk; ++i)
      survivors.push_back(filled(100, 1));
    const size_t live_chunks = 30 + 2;
    EXPECT_LE(chunks_in_use() - before, live_chunks + 16 + live_chunks / 8 + options.arena_hot / unit_size);
    for (void* const survivor : survivors)
      scoped_free(survivor);
  });
}

TEST_F(ArenaPolicy, while_survivors_stay_most_scopes_are_refused_and_few_try_again) {
  test::on_another_thread([] {
    const With option(options.arena_pinned, 0);
    std::vector<void*> survivors;
    {
      const Scope scope;
      survivors = pin_chunks(40);
    }
    const size_t chunks = chunks_in_use();
    const uint64_t back_offs = test::arena_figures().back_offs;
    EXPECT_GE(back_offs, 1u);
    for (int i = 0; i < 4000; ++i) {
      const Scope scope;
      // Too large for any hole that is left.
      void* const object = scoped_allocate(16'000);
      void* const second = scoped_allocate(16'000);
      void* const third = scoped_allocate(16'000);
      void* const fourth = scoped_allocate(16'000);
      void* const fifth = scoped_allocate(16'000);
      for (void* const block : {object, second, third, fourth, fifth})
        scoped_free(block);
    }
    EXPECT_LE(chunks_in_use(), chunks + options.arena_hot / unit_size + 2);
    EXPECT_LE(test::arena_figures().back_offs - back_offs, 40u) << "it does not back off for longer each time";
    for (void* const survivor : survivors)
      scoped_free(survivor);
  });
}

TEST_F(ArenaPolicy, objects_that_all_live_are_no_waste) {
  const Scope scope;
  const uint64_t before = test::arena_figures().back_offs;
  std::vector<void*> objects;
  for (int i = 0; i < 100'000; ++i)
    objects.push_back(filled(100, 1));
  EXPECT_TRUE(test::in_chunk(objects.back()));
  EXPECT_EQ(test::arena_figures().back_offs, before);
  for (void* const object : objects)
    scoped_free(object);
}

TEST_F(ArenaPolicy, a_vector_that_doubles_and_a_queue_leave_no_chunks_behind) {
  const Scope scope;
  for (int round = 0; round < 50; ++round) {
    void* block = scoped_allocate(16);
    for (size_t size = 32; size <= 1'000'000; size *= 2)
      block = arena::reallocate(block, size);
    scoped_free(block);
  }
  EXPECT_LE(chunks_in_use(), options.arena_hot / unit_size + 4);
}

}  // namespace
