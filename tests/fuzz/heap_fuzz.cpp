// Sequences of heap operations read out of bytes. With libFuzzer it looks for a sequence that breaks the heap:
//
//   cmake -B build/fuzz -G Ninja -DSLUICE_FUZZ=ON -DSLUICE_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=RelWithDebInfo
//         -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14 -DSLUICE_COMMAND=OFF -DSLUICE_SCENARIOS=OFF
//   cmake --build build/fuzz --target heap_fuzz && build/fuzz/bin/tests/heap_fuzz
//
// Everywhere else (SLUICE_FUZZ_SEQUENCES is defined) a main of its own runs that many sequences out of a generator, or
// the files that it is given, so that what the fuzzer found can be run again under any compiler.
#include <string>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap_program.hpp"
#include "input.hpp"

namespace {

using namespace sluice;
using test::HeapProgram;
using test::Input;

constexpr size_t slots = 48;
constexpr size_t largest = size_t{4} << 20;  // bytes
constexpr unsigned size_bits = 22;

[[noreturn]] void report(const std::string& what) {
  test::stop_on("heap_fuzz", what);
}

void expect_valid(const HeapProgram& program) {
  if (!program.wrong().empty()) report(program.wrong());
  if (const char* wrong = heap::validate().what) report(wrong);
}

void run_sequence(const uint8_t* data, size_t size) {
  HeapProgram program(slots, size, largest);
  Input input(data, size);
  while (!input.over()) {
    const uint8_t operation = input.byte();
    const size_t slot = input.byte() % slots;
    switch (operation % 10) {
      case 0:
      case 1:
      case 2:
        program.allocate(slot, input.size(size_bits));
        break;
      case 3:
        program.allocate_zeroed(slot, input.byte() % 4 + 1, input.size(size_bits) / 4);
        break;
      case 4:
        program.allocate_aligned(slot, size_t{1} << (input.byte() % 21), input.size(size_bits));
        break;
      case 5:
      case 6:
        program.reallocate(slot, input.size(size_bits) + 1);
        break;
      case 7:
        program.release(slot);
        break;
      case 8:
        for (size_t first = slot; first < slots; first += input.byte() % 4 + 1)
          program.release(first);
        break;
      case 9:
        (void)heap::trim(input.size(size_bits));
        expect_valid(program);
        break;
    }
    if (!program.wrong().empty()) report(program.wrong());
  }
  program.release_all();
  expect_valid(program);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool small_retention = (options.retain = size_t{8} << 20) != 0;
  (void)small_retention;
  run_sequence(data, size);
  return 0;
}

#include "seeded_main.hpp"  // last: it calls LLVMFuzzerTestOneInput
