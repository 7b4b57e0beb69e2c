// Twenty buffers of 5 to 25 MiB, of which one at random is replaced by a new one of another size, written whole:
// frames, tensors, results of queries. Open it for what becomes of the pages of a freed block when the next one fits
// nowhere where it lay.
//
// The new buffer is there before the old one is freed, as with an assignment. With more threads each has its part of
// the twenty, and one at least.
#include <algorithm>

#include "common.hpp"
#include "shared_clock.hpp"

namespace {

constexpr std::uint64_t live_buffers = 20;
constexpr std::uint32_t least_size = 5u << 20;
constexpr std::uint32_t most_size = 25u << 20;
constexpr std::size_t page = 4096;

struct Buffer {
  unsigned char* bytes = nullptr;
  std::uint32_t size = 0;
  unsigned char value = 0;  // of each byte

  /// Looks at one byte in each page. Returns: non-zero bits when one is another.
  std::uint64_t damage() const {
    if (bytes == nullptr) return 0;
    std::uint64_t found = bytes[size - 1] ^ value;
    for (std::size_t offset = 0; offset < size; offset += page)
      found |= bytes[offset] ^ value;
    return found;
  }
};

Buffer written_buffer(std::uint32_t size, std::uint64_t number) {
  void* const block = std::malloc(size);
  if (block == nullptr) {
    std::fprintf(stderr, "large_churn: malloc(%u) failed\n", size);
    std::_Exit(1);
  }
  const auto value = static_cast<unsigned char>(number % 255 + 1);
  scenario::fill_bytes(block, value, size);
  scenario::escape(block);
  return {static_cast<unsigned char*>(block), size, value};
}

/// One thread with buffers of its own. Returns: non-zero bits when a buffer did not hold what was written to it.
std::uint64_t replace_buffers(const scenario::Share& share, std::uint64_t count, scenario::SharedClock& clock) {
  scenario::Random random(share.seed);
  scenario::Table<Buffer> buffers(count);
  std::uint64_t damage = 0;
  clock.start();
  for (std::uint64_t number = 0; number < share.ops; ++number) {
    Buffer& place = buffers[random.below(static_cast<std::uint32_t>(count))];
    const Buffer fresh = written_buffer(random.between(least_size, most_size), number);
    damage |= place.damage();
    std::free(place.bytes);
    place = fresh;
  }
  clock.stop();
  for (std::size_t i = 0; i < count; ++i) {
    damage |= buffers[i].damage();
    std::free(buffers[i].bytes);
  }
  return damage;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = scenario::parse_arguments(argc, argv, {.unit = "buffers replaced", .ops = 400, .threads = 1});
  scenario::Report report("large_churn");
  scenario::measure_workers(
      report, "large_churn", arguments, [&](const scenario::Share& share, scenario::SharedClock& clock) {
        const std::uint64_t part = scenario::share_of(live_buffers, arguments.threads, share.index);
        return replace_buffers(share, std::max<std::uint64_t>(part, 1), clock);
      });
  return report.finish(arguments);
}
