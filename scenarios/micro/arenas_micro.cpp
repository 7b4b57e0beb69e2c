// Memory that is given back in reverse order or all at once. Open it to add an arena or a pattern.
#include <obstack.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <memory_resource>

#include "micro.hpp"
#include "sluice/lifo_resource.hpp"
#include "sluice/lifo_stack.hpp"
#include "sluice/marker_arena.hpp"
#include "sluice/marker_resource.hpp"

#if MICRO_LLVM
#include <llvm/Support/Allocator.h>
#endif

// What the macros of obstack.h call.
#define obstack_chunk_alloc std::malloc
#define obstack_chunk_free std::free

namespace micro {
namespace {

constexpr std::size_t block_bytes = 1 << 18;

/// Sizes of 8 to 256 bytes, half of them at most 64.
const std::vector<std::uint32_t>& sizes() {
  static const std::vector<std::uint32_t> drawn = [] {
    std::mt19937_64 random = fixed_random();
    std::vector<std::uint32_t> numbers(256);
    for (std::uint32_t& number : numbers)
      number = static_cast<std::uint32_t>(8 * (1 + random() % (random() % 2 == 0 ? 8 : 32)));
    return numbers;
  }();
  return drawn;
}

inline void touch(void* block) {
  *static_cast<std::uint64_t*>(block) = 1;
  consume(block);
}

/// Allocated for the run; what an arena on a caller's block lies on.
struct CallerBlock {
  std::unique_ptr<std::byte[]> bytes{new std::byte[block_bytes]};
};

class Obstack {
 public:
  Obstack() { obstack_begin(&stack_, block_bytes); }
  ~Obstack() { obstack_free(&stack_, nullptr); }
  Obstack(const Obstack&) = delete;
  Obstack& operator=(const Obstack&) = delete;
  void* take(std::size_t size) { return obstack_alloc(&stack_, size); }
  void give(void* block, std::size_t) { obstack_free(&stack_, block); }
  void begin() { mark_ = obstack_alloc(&stack_, 0); }
  void end() { obstack_free(&stack_, mark_); }

 private:
  obstack stack_;
  void* mark_ = nullptr;
};

class LifoStack : CallerBlock {
 public:
  void* take(std::size_t size) { return stack_.try_allocate(size); }
  void give(void* block, std::size_t) { stack_.pop(block); }

 private:
  sluice::lifo_stack<> stack_{bytes.get(), block_bytes};
};

class MarkerArena : CallerBlock {
 public:
  void* take(std::size_t size) { return arena_.try_allocate(size); }
  void begin() { mark_ = arena_.mark(); }
  void end() { arena_.rewind(mark_); }

 private:
  sluice::marker_arena<> arena_{bytes.get(), block_bytes};
  sluice::marker_arena<>::marker mark_ = arena_.mark();
};

struct Malloc {
  void* take(std::size_t size) { return std::malloc(size); }
  void give(void* block, std::size_t) { std::free(block); }
};

/// Called through the base class, as containers do.
struct Base {
  void* take(std::size_t size) { return base->allocate(size); }
  void give(void* block, std::size_t size) { base->deallocate(block, size); }
  std::pmr::memory_resource* base = nullptr;
};
struct LifoResource : Base {
  LifoResource() { blur(base = &resource); }
  sluice::lifo_resource<> resource{block_bytes};
};
struct MarkerResource : Base {
  MarkerResource() { blur(base = &resource); }
  void begin() { mark = resource.mark(); }
  void end() { resource.rewind(mark); }
  sluice::marker_resource<> resource{block_bytes};
  decltype(resource.mark()) mark = resource.mark();
};
struct Monotonic : CallerBlock, Base {
  Monotonic() { blur(base = &resource); }
  void begin() {}
  void end() { resource.release(); }
  std::pmr::monotonic_buffer_resource resource{bytes.get(), block_bytes};
};
struct NewDelete : Base {
  NewDelete() { blur(base = std::pmr::new_delete_resource()); }
};
#if MICRO_LLVM
struct BumpPtr {
  void* take(std::size_t size) { return allocator.Allocate(size, alignof(std::max_align_t)); }
  void begin() {}
  void end() { allocator.Reset(); }
  llvm::BumpPtrAllocatorImpl<llvm::MallocAllocator, block_bytes> allocator;
};
#endif

/// One block taken and given back at once, while 16 others lie below it.
template <class Source>
void pair(benchmark::State& state) {
  Source source;
  for (int i = 0; i < 16; ++i)
    touch(source.take(40));
  measure(state, sizes().size(), [&] {
    for (const std::uint32_t size : sizes()) {
      void* const block = source.take(size);
      touch(block);
      source.give(block, size);
    }
  });
}

/// 256 blocks of mixed sizes taken, and given back in reverse order.
template <class Source>
void nested(benchmark::State& state) {
  Source source;
  std::array<void*, 256> blocks;
  measure(state, blocks.size(), [&] {
    for (std::size_t i = 0; i < blocks.size(); ++i)
      touch(blocks[i] = source.take(sizes()[i]));
    for (std::size_t i = blocks.size(); i-- > 0;)
      source.give(blocks[i], sizes()[i]);
  });
}

/// 256 blocks of mixed sizes taken, and all of them given back at once.
template <class Source>
void picture(benchmark::State& state) {
  Source source;
  measure(state, sizes().size(), [&] {
    source.begin();
    for (const std::uint32_t size : sizes())
      touch(source.take(size));
    source.end();
  });
}

/// Four blocks taken in a frame of their own, over what 64 others take.
template <class Source>
void small_frame(benchmark::State& state) {
  Source source;
  for (std::size_t i = 0; i < 64; ++i)
    touch(source.take(sizes()[i]));
  measure(state, 4, [&] {
    source.begin();
    for (std::size_t i = 0; i < 4; ++i)
      touch(source.take(sizes()[i]));
    source.end();
  });
}

/// A pmr vector of 32 numbers that grows from nothing, and a string of 100 letters; both end before the next begin.
template <class Source>
void containers(benchmark::State& state) {
  Source source;
  measure(state, 1, [&] {
    std::pmr::vector<int> numbers(source.base);
    for (int i = 0; i < 32; ++i)
      numbers.push_back(i);
    consume(numbers.data());
    const std::pmr::string text(100, 'x', source.base);
    consume(text.data());
  });
}

/// A block on top grows from 16 bytes to 1,024, by 16 at a time.
void grow_lifo(benchmark::State& state) {
  const CallerBlock memory;
  sluice::lifo_stack<> stack(memory.bytes.get(), block_bytes);
  measure(state, 64, [&] {
    void* const block = stack.try_allocate(16);
    for (std::size_t size = 16; size <= 1024; size += 16) {
      consume(stack.try_resize_top(block, size));
      consume(block);
    }
    stack.pop(block);
  });
}
void grow_obstack(benchmark::State& state) {
  obstack stack;
  obstack_begin(&stack, block_bytes);
  measure(state, 64, [&] {
    obstack_blank(&stack, 16);
    for (std::size_t size = 16; size <= 1024; size += 16) {
      obstack_blank(&stack, 16);
      consume(obstack_base(&stack));
    }
    obstack_free(&stack, obstack_finish(&stack));
  });
  obstack_free(&stack, nullptr);
}
void grow_realloc(benchmark::State& state) {
  measure(state, 64, [&] {
    void* block = std::malloc(16);
    for (std::size_t size = 16; size <= 1024; size += 16) {
      block = std::realloc(block, size);
      consume(block);
    }
    std::free(block);
  });
}

}  // namespace

void add_all() {
  add("lifo_stack", "pair", "sluice::lifo_stack", pair<LifoStack>);
  add("lifo_stack", "pair", "obstack", pair<Obstack>);
  add("lifo_stack", "pair", "malloc/free", pair<Malloc>);
  add("lifo_stack", "nested_256", "sluice::lifo_stack", nested<LifoStack>);
  add("lifo_stack", "nested_256", "obstack", nested<Obstack>);
  add("lifo_stack", "nested_256", "malloc/free", nested<Malloc>);
  add("lifo_stack", "grow_top", "sluice::lifo_stack", grow_lifo);
  add("lifo_stack", "grow_top", "obstack", grow_obstack);
  add("lifo_stack", "grow_top", "realloc", grow_realloc);

  add("lifo_resource", "pair", "sluice::lifo_resource", pair<LifoResource>);
  add("lifo_resource", "pair", "pmr::new_delete", pair<NewDelete>);
  add("lifo_resource", "nested_256", "sluice::lifo_resource", nested<LifoResource>);
  add("lifo_resource", "nested_256", "pmr::new_delete", nested<NewDelete>);
  add("lifo_resource", "containers", "sluice::lifo_resource", containers<LifoResource>);
  add("lifo_resource", "containers", "pmr::new_delete", containers<NewDelete>);

  add("marker_arena", "picture_256", "sluice::marker_arena", picture<MarkerArena>);
  add("marker_arena", "picture_256", "sluice::marker_resource", picture<MarkerResource>);
  add("marker_arena", "picture_256", "pmr::monotonic_buffer", picture<Monotonic>);
  add("marker_arena", "picture_256", "obstack", picture<Obstack>);
  add("marker_arena", "frame_4", "sluice::marker_arena", small_frame<MarkerArena>);
  add("marker_arena", "frame_4", "sluice::marker_resource", small_frame<MarkerResource>);
  add("marker_arena", "frame_4", "obstack", small_frame<Obstack>);
#if MICRO_LLVM
  add("marker_arena", "picture_256", "llvm::BumpPtrAllocator", picture<BumpPtr>);
#endif
}

}  // namespace micro
