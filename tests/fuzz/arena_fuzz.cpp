// Sequences of calls with scopes and frames read out of bytes. With libFuzzer it looks for a sequence that breaks the
// stack arena; heap_fuzz.cpp says how to build it, and the same holds here with the target arena_fuzz.
//
// Everywhere else (SLUICE_FUZZ_SEQUENCES is defined) a main of its own runs that many sequences out of a generator, or
// the files that it is given, so that what the fuzzer found can be run again under any compiler.
#include <memory>
#include <string>
#include <vector>

#include "arena_program.hpp"
#include "base/options.hpp"
#include "frame_program.hpp"
#include "input.hpp"

namespace {

using namespace sluice;
using test::ArenaProgram;
using test::Block;
using test::FrameProgram;
using test::Helper;
using test::Input;

constexpr size_t slots = 48;

[[noreturn]] void report(const std::string& what) {
  test::stop_on("arena_fuzz", what);
}

void expect_valid(const ArenaProgram& program) {
  if (!program.wrong().empty()) report(program.wrong());
  if (const char* wrong = heap::validate().what) report(wrong);
}

void allocate(ArenaProgram& program, Input& input, uint8_t kind, size_t slot) {
  switch (kind % 4) {
    case 0:
    case 1:
      return program.allocate(slot, input.size());
    case 2:
      return program.allocate_zeroed(slot, input.byte() % 3 + 1, input.size() / 2);
    default:
      return program.allocate_aligned(slot, size_t{1} << (input.byte() % 15), input.size());
  }
}

// What the other thread does with a slot: it owns a program of its own.
void hand_over(ArenaProgram& program, ArenaProgram& other, Input& input, size_t slot) {
  switch (input.byte() % 5) {
    case 0:  // frees
      return other.discard(program.take(slot));
    case 1:  // keeps
      return other.give(slot, program.take(slot));
    case 2:  // gives one of its own
      return program.give(slot, other.take(slot));
    case 3:
      other.give(slot, program.take(slot));
      return other.reallocate(slot, input.size() + 1);
    default:
      return allocate(other, input, input.byte(), slot);
  }
}

void run_sequence(const uint8_t* data, size_t size) {
  Input input(data, size);
  Helper helper;
  auto other = std::make_unique<ArenaProgram>(slots, size + 1);
  ArenaProgram program(slots, size);
  FrameProgram frames;
  program.enter(SLUICE_ROUTE);
  while (!input.over()) {
    const uint8_t operation = input.byte();
    const size_t slot = input.byte() % slots;
    switch (operation % 20) {
      case 0:
        program.enter(input.byte() % 4 != 0 ? SLUICE_ROUTE : SLUICE_NOROUTE);
        break;
      case 1:
        program.leave();
        break;
      case 2:
        program.leave_from(slot);
        break;
      case 3:
        program.leave_stale();
        break;
      case 4:
      case 5:
      case 6:
      case 7:
        allocate(program, input, operation, slot);
        break;
      case 8:
        for (size_t n = 0; n < slots; ++n)  // a stretch of a chunk
          program.allocate((slot + n) % slots, 100 + n * input.byte() / 4);
        break;
      case 9:
      case 10:
        program.reallocate(slot, input.size() + 1);
        break;
      case 11:
      case 12:
        program.release(slot);
        break;
      case 13:
        for (size_t n = slot + 1; n-- > 0;)
          program.release(n);
        break;
      case 14:
        for (size_t n = slot; n < slots; n += input.byte() % 4 + 1)
          program.release(n);
        break;
      case 15:
      case 16:
        helper.run([&] {
          if (other->open_scopes() == 0) other->enter(SLUICE_ROUTE);
          hand_over(program, *other, input, slot);
        });
        break;
      case 17:
        if (input.byte() % 4 == 0) {  // its objects stay behind
          std::vector<Block> left;
          for (size_t n = 0; n < slots; ++n)
            left.push_back(other->take(n));
          helper.run([&] { other.reset(); });
          helper.stop();
          other = std::make_unique<ArenaProgram>(slots, size + 2);
          for (size_t n = 0; n < slots; ++n)
            other->give(n, left[n]);
        }
        break;
      case 18:
        switch (input.byte() % 4) {
          case 0:
            frames.mark();
            break;
          case 1:
            frames.rewind(input.byte() % FrameProgram::most_marks);
            break;
          case 2:
            frames.grow(slot, input.size(18));
            break;
          default:
            frames.allocate(input.size(18), size_t{1} << (input.byte() % 18), operation);
            break;
        }
        break;
      case 19:
        if (input.byte() % 4 == 0) (void)heap::trim(input.size());
        frames.check();
        expect_valid(program);
        break;
    }
    if (!program.wrong().empty()) report(program.wrong());
    if (!other->wrong().empty()) report(other->wrong());
    if (!frames.wrong().empty()) report(frames.wrong());
  }
  helper.run([&] { other.reset(); });
  helper.stop();
  program.leave_all();
  program.release_all();
  frames.rewind(0);
  expect_valid(program);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  test::scoped_free(test::scoped_allocate(1));  // the options are read
  // Little, so that a short sequence reaches every policy; the size chooses how little.
  options.arena_hot = size % 3 * unit_size;
  options.arena_pinned = size % 2 * unit_size;
  run_sequence(data, size);
  return 0;
}

#include "seeded_main.hpp"  // last: it calls LLVMFuzzerTestOneInput
