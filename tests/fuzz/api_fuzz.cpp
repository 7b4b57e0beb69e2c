// Sequences over everything that a program can ask of the heap, on several threads and on an operating system whose
// calls fail when the input says so. With libFuzzer it looks for a sequence that breaks the heap; heap_fuzz.cpp says
// how to build it, and the same holds here with the target api_fuzz.
//
// Three programs, each on a thread of its own with scopes and frames, hand blocks to each other; they take turns, so
// that a sequence runs the same way each time. In the end every block has been freed, and the heap must know of none.
//
// Everywhere else (SLUICE_FUZZ_SEQUENCES is defined) a main of its own runs the files that it is given and that many
// sequences out of a generator.
#include <array>
#include <memory>
#include <string>

#include "../unit/mock_os.hpp"
#include "arena_program.hpp"
#include "base/options.hpp"
#include "frame_program.hpp"
#include "input.hpp"
#include "stats/snapshot.hpp"

namespace {

using namespace sluice;
using test::ArenaProgram;
using test::Block;
using test::FrameProgram;
using test::Helper;
using test::Input;

constexpr size_t slots = 40;
constexpr size_t actors = 3;
constexpr unsigned size_bits = 21;

[[noreturn]] void report(const std::string& what) {
  test::stop_on("api_fuzz", what);
}

// A thread and what it does.
class Actor {
 public:
  void start(uint64_t seed) {
    seed_ = seed;
    on_its_thread([this] {
      program_ = std::make_unique<ArenaProgram>(slots, seed_);
      frames_ = std::make_unique<FrameProgram>();
      set_may_run_out();
    });
  }
  template <class Body>
  void on_its_thread(Body body) {
    thread_.run(body);
  }
  // The program goes on, on a thread that starts now: what it holds was allocated by one that has ended.
  void change_thread() {
    std::array<Block, slots> kept;
    on_its_thread([this, &kept] {
      check();
      for (size_t slot = 0; slot < slots; ++slot)
        kept[slot] = program_->take(slot);
      // Half of the time with scopes open and frames filled, which the thread's end has to clear away.
      if (seed_ % 2 == 0) frames_->rewind(0);
      program_.reset();
      frames_.reset();
    });
    thread_.stop();
    start(seed_ + actors);
    on_its_thread([this, &kept] {
      for (size_t slot = 0; slot < slots; ++slot)
        program_->give(slot, kept[slot]);
    });
  }
  void end() {
    on_its_thread([this] {
      check();
      program_->leave_all();
      program_->release_all();
      frames_->rewind(0);
      check();
      program_.reset();
      frames_.reset();
    });
    thread_.stop();
  }
  void may_run_out(bool may) {
    may_run_out_ = may_run_out_ || may;  // a heap that could not start a thread's cache goes on without it
    if (program_) set_may_run_out();
  }
  void check() const {
    if (!program_->wrong().empty()) report(program_->wrong());
    frames_->check();
    if (!frames_->wrong().empty()) report(frames_->wrong());
  }
  ArenaProgram& program() { return *program_; }
  FrameProgram& frames() { return *frames_; }

 private:
  void set_may_run_out() {
    program_->may_run_out(may_run_out_);
    frames_->may_run_out(may_run_out_);
  }

  uint64_t seed_ = 0;
  bool may_run_out_ = false;
  std::unique_ptr<ArenaProgram> program_;
  std::unique_ptr<FrameProgram> frames_;
  Helper thread_;
};

using Actors = std::array<Actor, actors>;

void allocate(ArenaProgram& program, Input& input, size_t slot) {
  switch (input.byte() % 8) {
    case 0:
    case 1:
    case 2:
      return program.allocate(slot, input.size(size_bits));
    case 3:
      return program.allocate_zeroed(slot, input.byte() % 5, input.size(size_bits) / 4);
    case 4:
      return program.allocate_aligned(slot, size_t{1} << (input.byte() % 22), input.size(size_bits));
    case 5: {  // one size many times: whole bins and slabs
      const size_t size = input.size(14);
      for (size_t n = slot; n < slots; ++n)
        program.allocate(n, size);
      return;
    }
    case 6: {  // a block that grows little by little
      const size_t step = input.size(13) + 1;
      for (size_t n = 1; n <= 12; ++n)
        program.reallocate(slot, n * step);
      return;
    }
    default:
      return program.reallocate(slot, input.size(size_bits) + 1);
  }
}

void release(ArenaProgram& program, Input& input, size_t slot) {
  switch (input.byte() % 4) {
    case 0:  // like a stack
      for (size_t n = slot + 1; n-- > 0;)
        program.release(n);
      return;
    case 1: {  // holes
      const size_t step = input.byte() % 4 + 1;
      for (size_t n = slot; n < slots; n += step)
        program.release(n);
      return;
    }
    default:
      return program.release(slot);
  }
}

void use_scopes(ArenaProgram& program, Input& input, size_t slot) {
  switch (input.byte() % 6) {
    case 0:
    case 1:
      return program.enter(SLUICE_ROUTE);
    case 2:
      return program.enter(SLUICE_NOROUTE);
    case 3:
      return program.leave_from(slot);
    case 4:
      return program.leave_stale();
    default:
      return program.leave();
  }
}

void use_frames(FrameProgram& frames, Input& input, size_t slot) {
  switch (input.byte() % 5) {
    case 0:
      return frames.mark();
    case 1:
      return frames.rewind(input.byte() % FrameProgram::most_marks);
    case 2:
      return frames.grow(slot, input.size(19));
    default:
      return frames.allocate(input.size(19), size_t{1} << (input.byte() % 18), static_cast<uint8_t>(slot | 1));
  }
}

// Requests that every heap refuses, and pointers that belong to nobody: nothing may come of them.
void ask_for_the_impossible(Input& input) {
  const size_t huge = SIZE_MAX / 2 + 1 + input.size();
  void* const block = test::scoped_allocate(16);
  if (test::scoped_allocate(huge) != nullptr) report("a block of more than half of all addresses");
  if (arena::allocate_zeroed(huge, 2) != nullptr) report("calloc: a product that overflows");
  if (arena::allocate_aligned(size_t{1} << 48, 1) != nullptr) report("an alignment that no address has");
  if (block != nullptr && arena::reallocate(block, huge) != nullptr) report("realloc to more than all memory");
  test::scoped_free(block);
  test::scoped_free(nullptr);
  alignas(16) static char foreign[64];
  test::scoped_free(foreign + 16);
  if (arena::usable_size(foreign + 16) != 0) report("a usable size of what is not ours");
}

// What fails from now on, or nothing.
void choose_faults(Actors& all, Input& input) {
  const uint8_t kind = input.byte();
  const unsigned n = input.byte() % 32 + 1u;
  const auto call = static_cast<mock_os::Call>(input.byte() % (static_cast<unsigned>(mock_os::any) + 1));
  for (Actor& actor : all)
    actor.may_run_out(true);
  if (kind % 4 == 0)
    mock_os::fail_from(call, n);
  else if (kind % 4 < 3)
    mock_os::fail_nth(call, n);
  else
    mock_os::never_fail();
}

void hand_over(Actors& all, Actor& from, Input& input, size_t slot) {
  Actor& to = all[input.byte() % actors];
  const uint8_t what = input.byte();
  const size_t size = input.size() + 1;
  std::array<Block, slots> given;
  const size_t count = what % 2 == 0 ? 1 : slots - slot;
  for (size_t n = 0; n < count; ++n)
    given[n] = from.program().take(slot + n);
  to.on_its_thread([&] {
    for (size_t n = 0; n < count; ++n) {
      if (what % 8 < 4) {
        to.program().discard(given[n]);
        continue;
      }
      to.program().give(slot + n, given[n]);
      if (what % 8 == 7) to.program().reallocate(slot + n, size + n);
    }
  });
}

void validate(const Actors& all) {
  for (const Actor& actor : all)
    actor.check();
  if (const char* wrong = heap::validate().what) report(wrong);
}

// Ends each program on its thread, and what it left undone with its thread. Then nothing lives any more, and all
// threads have looked at what others freed.
void end(Actors& all) {
  mock_os::never_fail();
  for (size_t n = actors; n-- > 0;)
    all[n].end();
  cache::flush_idle();
  if (const char* wrong = heap::validate().what) report(wrong);
  static stats::Snapshot snapshot;
  stats::take_snapshot(&snapshot);
  if (snapshot.live_bytes != 0) report(std::to_string(snapshot.live_bytes) + " bytes live, and no block is held");
  if (snapshot.arena.frame_bytes != 0) report("frame memory of ended threads stays");
}

void run_sequence(const uint8_t* data, size_t size) {
  Input input(data, size);
  Actors all;
  for (size_t n = 0; n < actors; ++n)
    all[n].start(size * actors + n);
  while (!input.over()) {
    const uint8_t operation = input.byte();
    const size_t slot = input.byte() % slots;
    Actor& actor = all[operation / 16 % actors];
    switch (operation % 16) {
      case 11:
        hand_over(all, actor, input, slot);
        break;
      case 12:
        if (input.byte() % 4 == 0) actor.change_thread();
        break;
      case 13:
        choose_faults(all, input);
        break;
      case 14:
        if (input.byte() % 4 == 0) (void)heap::trim(input.size(size_bits));
        if (slot % 4 == 0) cache::flush_idle();
        validate(all);
        break;
      default:
        actor.on_its_thread([&] {
          if (operation % 16 < 5) return allocate(actor.program(), input, slot);
          if (operation % 16 < 8) return release(actor.program(), input, slot);
          if (operation % 16 == 8) return use_scopes(actor.program(), input, slot);
          if (operation % 16 < 11) return use_frames(actor.frames(), input, slot);
          ask_for_the_impossible(input);
        });
        break;
    }
    if (!actor.program().wrong().empty()) report(actor.program().wrong());
  }
  end(all);
  mock_os::forget_records();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  test::scoped_free(test::scoped_allocate(1));  // the options are read
  // Little, so that a short sequence reaches every policy; the size chooses how little.
  options.retain = size % 5 * (size_t{1} << 20);
  options.arena_hot = size % 3 * unit_size;
  options.arena_pinned = size % 2 * unit_size;
  run_sequence(data, size);
  return 0;
}

#include "seeded_main.hpp"  // last: it calls LLVMFuzzerTestOneInput
