// Phases of a program that each use other sizes: memory is filled, churned and given back, a stretch of blocks stays
// until the next phase has ended. The resident set follows what lives. A round is a phase. Open it when a program that
// changes its ways keeps the memory of all of them.
#include <thread>
#include <vector>

#include "store.hpp"

namespace {

using namespace soak;

constexpr size_t most_blocks = size_t{1} << 20;
constexpr size_t least_peak = 64 * MiB, most_peak = 192 * MiB;
constexpr size_t most_beside = 16 * MiB;  // beside what lives, after the fall
constexpr size_t kept_part = 50;          // the first 2 % of the blocks, which lie side by side
constexpr unsigned keepers = 2;           // threads, which end when their share is filled

// What one thread holds.
struct Share {
  Share() : blocks(most_blocks) {}
  Table<Block> blocks;
  size_t count = 0, bytes = 0;
};

struct Sizes {
  size_t least, most;  // bytes
  size_t any(Random& random) const { return least + random.below(most - least + 1); }
};

Sizes choose_sizes(Random& random) {
  const size_t least = size_t{16} << random.below(18);  // to 2 MiB
  return {least, least * (1 + random.below(4))};
}

// Every page of a block is written, so that what lives is what is resident.
Block make(Random& random, const Sizes& sizes) {
  Block block{nullptr, sizes.any(random), random.next(), 0, Origin::Malloc};
  block.data = static_cast<unsigned char*>(random.chance(10) ? calloc(1, block.size) : malloc(block.size));
  if (block.data == nullptr) Run::fail("no memory");
  fill(block);
  ++totals.operations;
  return block;
}

void fill_share(Share& share, uint64_t seed, const Sizes& sizes, size_t target) {
  Random random(seed);
  while (share.bytes < target && share.count < most_blocks) {
    share.blocks[share.count] = make(random, sizes);
    share.bytes += share.blocks[share.count++].size;
  }
  const size_t kept = share.count / kept_part;
  for (size_t n = 0; n < share.count / 2; ++n) {
    Block& block = share.blocks[kept + random.below(share.count - kept)];
    share.bytes -= block.size;
    discard(block);
    block = make(random, sizes);
    share.bytes += block.size;
  }
}

// Frees all but the first `keep` blocks, in one of the orders that programs have.
void shrink(Share& share, size_t keep, Random& random) {
  const bool backwards = random.chance(50);
  for (size_t n = keep; n < share.count; ++n) {
    const Block& block = share.blocks[backwards ? share.count - 1 - (n - keep) : n];
    share.bytes -= block.size;
    discard(block);
    ++totals.operations;
  }
  share.count = std::min(share.count, keep);
  share.blocks.forget_from(share.count);
}

void one_phase(Random& random, std::vector<Share>& now, std::vector<Share>& before, size_t base) {
  const Sizes sizes = choose_sizes(random);
  const size_t peak = least_peak + random.below(most_peak - least_peak);
  std::vector<std::thread> threads;
  for (Share& share : now)
    threads.emplace_back([&, seed = random.next()] { fill_share(share, seed, sizes, peak / keepers); });
  totals.threads += keepers;
  for (std::thread& thread : threads)
    thread.join();
  size_t live = 0;
  for (Share& share : before)
    shrink(share, 0, random);
  for (Share& share : now) {
    shrink(share, share.count / kept_part, random);
    live += share.bytes;
  }
  const auto require_fall = [&](const char* when, size_t beside) {
    if (!falls_to(base + 2 * live + beside))
      Run::fail("a phase of %zu KiB in blocks of %zu to %zu bytes has ended, %zu KiB live and %zu KiB stay %s",
                peak / KiB, sizes.least, sizes.most, live / KiB, (resident_bytes() - base) / KiB, when);
  };
  // Blocks in this thread's cache hold their slabs, until it uses those sizes again or asks for it.
  require_fall("by themselves", most_beside + peak / 3);
  malloc_trim(0);
  require_fall("after malloc_trim", most_beside);
}

}  // namespace

int main(int count, char** arguments) {
  const Run run("soak_phases", count, arguments);
  Random random(run.seed());
  std::vector<Share> shares[2] = {std::vector<Share>(keepers), std::vector<Share>(keepers)};
  const size_t base = resident_bytes();
  for (; run.goes_on(); ++totals.rounds)
    one_phase(random, shares[totals.rounds % 2], shares[(totals.rounds + 1) % 2], base);
  for (std::vector<Share>& both : shares)
    for (Share& share : both)
      shrink(share, 0, random);
  return 0;
}
