// Buffers of 256 KiB to 32 MiB, written whole, some dozens of them alive, replaced at random or grown by half with
// realloc: images and frames of video, matrices, columns, files read at once. Open it for what blocks cost that a
// system call may stand behind, and for how much of them an allocator keeps when they are freed.
//
// 192 MiB are alive, among all threads; where that makes the part of one too small for the largest buffers, it has
// smaller ones.
#include <algorithm>
#include <bit>

#include "common.hpp"
#include "filled.hpp"
#include "shared_clock.hpp"

namespace {

using scenario::Filled;

constexpr std::uint64_t most_live_bytes = 192u << 20;
constexpr std::uint32_t least_power = 18;
constexpr std::uint32_t most_power = 25;
constexpr std::uint32_t grown_percent = 25;

/// Buffers of one thread, in no order.
class Buffers {
 public:
  Buffers(std::uint64_t most_bytes, std::uint64_t seed)
      : most_bytes_(most_bytes),
        end_power_(
            std::clamp(static_cast<std::uint32_t>(std::bit_width(most_bytes / 4)) - 1, least_power + 1, most_power)),
        buffers_((most_bytes >> least_power) + 1),
        random_(seed) {}

  /// One operation: a buffer grows, or others make room for a new one.
  void step(std::uint64_t number) {
    const bool is_to_grow = random_.below(100) < grown_percent;
    if (is_to_grow && count_ > 0 && grow(buffers_[random_.below(count_)])) return;
    const std::uint32_t size = random_.by_doubling(least_power, end_power_);
    while (count_ > 0 && bytes_ + size > most_bytes_)
      drop(random_.below(count_));
    buffers_[count_++] = scenario::allocate_filled(size, number);
    bytes_ += size;
  }

  /// Frees what is left. Returns: non-zero bits when any buffer so far did not hold what was written to it.
  std::uint64_t finish() {
    while (count_ > 0)
      drop(count_ - 1);
    return damage_;
  }

 private:
  void drop(std::uint32_t index) {
    bytes_ -= buffers_[index].size;
    damage_ |= scenario::release(buffers_[index]);
    buffers_[index] = buffers_[--count_];
  }

  /// Returns: whether there was room for it.
  bool grow(Filled& buffer) {
    const std::uint32_t before = buffer.size;
    const std::uint32_t after = before + before / 2;
    if (after > 1u << end_power_ || bytes_ + (after - before) > most_bytes_) return false;
    void* const moved = std::realloc(buffer.block, after);
    if (moved == nullptr) {
      std::fprintf(stderr, "large_buffers: realloc to %u bytes failed\n", after);
      std::_Exit(1);
    }
    buffer.block = moved;
    damage_ |= buffer.damage();
    buffer.size = after;
    fill_from(buffer, before);
    bytes_ += after - before;
    return true;
  }

  /// Writes what `fill` would write from there on.
  static void fill_from(const Filled& buffer, std::uint32_t first) {
    constexpr std::uint32_t word = sizeof(std::uint64_t);
    const std::uint32_t words = first / word;
    scenario::fill(static_cast<unsigned char*>(buffer.block) + words * word, buffer.size - words * word,
                   std::uint64_t{buffer.tag} + words);
  }

  const std::uint64_t most_bytes_;
  const std::uint32_t end_power_;  // every size is below its power of two
  scenario::Table<Filled> buffers_;
  scenario::Random random_;
  std::uint32_t count_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t damage_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      scenario::parse_arguments(argc, argv, {.unit = "buffers replaced or grown", .ops = 400, .threads = 1});
  scenario::Report report("large_buffers");
  scenario::measure_workers(report, "large_buffers", arguments,
                            [&](const scenario::Share& share, scenario::SharedClock& clock) {
                              Buffers buffers(most_live_bytes / arguments.threads, share.seed);
                              clock.start();
                              for (std::uint64_t number = 0; number < share.ops; ++number)
                                buffers.step(number);
                              clock.stop();
                              return buffers.finish();
                            });
  return report.finish(arguments);
}
