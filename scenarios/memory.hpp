// The kinds of memory that a scenario can run with: malloc and free for each object, the same inside scopes, frames,
// and std::pmr for comparison. Open it to see what differs between the variants of a scenario: nothing but this.
//
// A workload is a template over one of these classes. All have the same members:
//   allocate, grow, release    an object that ends with the unit of work it belongs to
//   allocate_lasting, release_lasting    an object that may outlive it
//   Lifetime    an object of this type is a span of time; what is allocated while it is open ends with it, in memory
//               that is dropped as a whole
//   Routing     one that tells the allocator that what is allocated while it is open is short-lived
//   Unit        both: a unit of work
//   frees_objects    whether release does anything; a workload that only walks its objects to free them asks first
// Blocks are aligned to 16 bytes in all of them, as those of malloc are.
#pragma once

#include <memory_resource>
#include <optional>

#include "common.hpp"
#include "sluice/frame.hpp"
#include "sluice/scope.hpp"

namespace scenario {

/// Ends the scenario when there is no memory.
inline void* require_block(void* block, std::size_t size) {
  if (__builtin_expect(block == nullptr, 0)) {
    std::fprintf(stderr, "scenario: no memory for %zu bytes\n", size);
    std::_Exit(1);
  }
  return block;
}

/// malloc and free for each object. Whether scopes are opened is decided at run time, so that the plain variant and
/// those with scopes are the same code: compiled apart they differ by more than the memory.
class MallocMemory {
 public:
  static constexpr bool frees_objects = true;
  enum class Scopes { none, around_all, not_around_what_lasts };

  explicit MallocMemory(Scopes scopes) : scopes_(scopes) {}

  struct Lifetime {
    explicit Lifetime(MallocMemory&) {}
  };
  struct Routing {
    explicit Routing(MallocMemory& memory) {
      if (memory.scopes_ != Scopes::none) scope.emplace();
    }
    std::optional<sluice::scope> scope;
  };
  using Unit = Routing;

  void* allocate(std::size_t size) { return require_block(std::malloc(size), size); }
  void* grow(void* block, std::size_t, std::size_t size) { return require_block(std::realloc(block, size), size); }
  void release(void* block) { std::free(block); }
  void* allocate_lasting(std::size_t size) {
    if (scopes_ != Scopes::not_around_what_lasts) return allocate(size);
    const sluice::scope outside(sluice::routing::off);
    return allocate(size);
  }
  void release_lasting(void* block) { std::free(block); }

 private:
  const Scopes scopes_;
};

struct PlainMemory {
  static constexpr const char* name = "plain";
  static bool in_effect() { return true; }
  static MallocMemory make() { return MallocMemory(MallocMemory::Scopes::none); }
};

struct ScopeMemory {
  static constexpr const char* name = "scope";
  static bool in_effect() { return sluice::scope().in_effect(); }
  static MallocMemory make() { return MallocMemory(MallocMemory::Scopes::around_all); }
};

/// Scopes again, but the program knows what lasts and keeps it out of them.
struct NorouteMemory {
  static constexpr const char* name = "noroute";
  static bool in_effect() { return sluice::scope().in_effect(); }
  static MallocMemory make() { return MallocMemory(MallocMemory::Scopes::not_around_what_lasts); }
};

class FrameMemory {
 public:
  static constexpr const char* name = "frame";
  static constexpr bool frees_objects = false;
  static bool in_effect() { return true; }
  static FrameMemory make() { return {}; }

  struct Lifetime {
    explicit Lifetime(FrameMemory& owner) : memory(owner), outer(owner.innermost_) { owner.innermost_ = &frame; }
    ~Lifetime() { memory.innermost_ = outer; }
    Lifetime(const Lifetime&) = delete;
    Lifetime& operator=(const Lifetime&) = delete;
    FrameMemory& memory;
    sluice::frame* const outer;
    sluice::frame frame;
  };
  struct Routing {
    explicit Routing(FrameMemory&) {}
  };
  using Unit = Lifetime;

  void* allocate(std::size_t size) { return innermost_->allocate(size, 16); }
  void* grow(void* block, std::size_t old_size, std::size_t size) { return innermost_->grow(block, old_size, size); }
  void release(void*) {}
  void* allocate_lasting(std::size_t size) { return require_block(std::malloc(size), size); }
  void release_lasting(void* block) { std::free(block); }

 private:
  sluice::frame* innermost_ = nullptr;
};

/// The standard's counterpart of a frame: one resource for the whole run, with a buffer of its own that is large enough
/// and filled from its start for each unit of work.
class MonotonicMemory {
 public:
  static constexpr const char* name = "monotonic";
  static constexpr bool frees_objects = false;
  static bool in_effect() { return true; }
  static MonotonicMemory make() { return {}; }

  struct Unit {
    explicit Unit(MonotonicMemory& owner) : memory(owner) {}
    ~Unit() { memory.resource_.release(); }
    Unit(const Unit&) = delete;
    Unit& operator=(const Unit&) = delete;
    MonotonicMemory& memory;
  };

  void* allocate(std::size_t size) { return resource_.allocate(size, 16); }
  void release(void*) {}

 private:
  Table<std::byte> buffer_{std::size_t{1} << 20};
  std::pmr::monotonic_buffer_resource resource_{&buffer_[0], buffer_.length()};
};

/// A block of malloc's that arenas are laid out in, all of it in one.
class HeapBlock {
 public:
  explicit HeapBlock(std::size_t size) : start_(require_block(std::malloc(size), size)) {}
  ~HeapBlock() { std::free(start_); }
  HeapBlock(const HeapBlock&) = delete;
  HeapBlock& operator=(const HeapBlock&) = delete;

  void* start() { return start_; }

 private:
  void* const start_;
};

/// What a kind of memory that every program has says of itself: the kinds of the scenarios for the library's components
/// derive from it. One of them also has a `name`, and the operations that its scenario calls.
template <class Kind>
struct AlwaysInEffect {
  static bool in_effect() { return true; }
  static Kind make() { return Kind(); }
};

/// Calls `body` with the kind of memory that `choice` names, after telling the report. The choice offers no others than
/// the kinds listed.
template <class... Kinds, class Body>
void with_memory(const Choice& choice, Report& report, Body&& body) {
  const auto offer = [&]<class Kind>() {
    if (choice.chosen() != Kind::name) return;
    report.set_memory(Kind::name, Kind::in_effect());
    auto memory = Kind::make();
    body(memory);
  };
  (offer.template operator()<Kinds>(), ...);
}

}  // namespace scenario
