// Scopes and frames at random, on threads that come and go: nested, left by exceptions and by longjmp's cousin, a scope
// opened at the place of another one; objects outlive their scopes, are freed by other threads, in children of forks,
// and after their thread has ended inside a scope. A round is a generation of threads. On another malloc than Sluice
// the same calls have no effect, and the same must hold. Open it when objects of scopes or frames lose their contents.
#include <sys/wait.h>

#include <memory_resource>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sluice/frame.hpp"
#include "sluice/scope.hpp"
#include "store.hpp"

namespace {

using namespace soak;

constexpr size_t slots = 300;
constexpr size_t largest = MiB;
constexpr int episodes_of_a_thread = 60;

Exchange exchange;

void use(Store& store, int steps) {
  for (int i = 0; i < steps; ++i) {
    store.step();
    if (i % 5 != 0) continue;
    const size_t slot = store.any_slot();
    store.give(slot, exchange.swap(store.take(slot), store.random().next()));
  }
}

sluice::routing any_routing(Random& random) {
  return random.chance(80) ? sluice::routing::on : sluice::routing::off;
}

void nest_scopes(Store& store, size_t depth) {
  const sluice::scope scope(any_routing(store.random()));
  use(store, 40);
  if (depth != 0) nest_scopes(store, depth - 1);
  use(store, 20);
  if (store.random().chance(5)) throw std::runtime_error(std::string(100, 'x'));
}

// Raw blocks of a frame, of which each is checked when the frame ends; inner frames come and go between them.
void nest_frames(Store& store, size_t depth) {
  sluice::frame frame;
  Random& random = store.random();
  std::vector<Block> blocks;
  for (int i = 0; i < 30; ++i) {
    const size_t alignment = size_t{1} << random.below(random.chance(5) ? 14 : 7);
    Block block{nullptr, random.size(MiB / 2), random.next(), alignment, Origin::Malloc};
    block.data = static_cast<unsigned char*>(frame.allocate(block.size, alignment));
    if (reinterpret_cast<uintptr_t>(block.data) % alignment != 0) Run::fail("frame: not aligned to %zu", alignment);
    fill(block);
    blocks.push_back(block);
    if (random.chance(20)) {
      Block& grown = blocks.back();
      const size_t size = grown.size + random.below(3000);
      grown.data = static_cast<unsigned char*>(frame.grow(grown.data, grown.size, size));
      if (!holds_until(grown, grown.size)) Run::fail("frame: a block lost its contents as it grew");
      grown.size = size;
      fill(grown);
    }
    if (depth != 0 && random.chance(10)) nest_frames(store, depth - 1);
    ++totals.operations;
  }
  use(store, 10);
  for (const Block& block : blocks)
    require_intact(block, "in a frame");
}

// Containers in an outer frame grow while inner frames and scopes come and go.
void fill_containers(Store& store) {
  sluice::frame outer;
  std::pmr::vector<std::pmr::string> words(outer.resource());
  for (size_t i = 0; i < 200; ++i) {
    sluice::frame inner;
    const sluice::scope scope;
    std::pmr::vector<size_t> numbers(i, i, inner.resource());
    words.emplace_back(i % 90, static_cast<char>('a' + i % 26));
    use(store, 3);
    if (!numbers.empty() && numbers.back() != i) Run::fail("frame: a container lost its contents");
  }
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i].size() != i % 90 || words[i].find_first_not_of(static_cast<char>('a' + i % 26)) != std::string::npos)
      Run::fail("frame: a string lost its contents");
}

// A child that was forked inside scopes goes on in them.
void fork_in_scope(Store& store) {
  const sluice::scope scope;
  sluice::frame frame;
  Block block{static_cast<unsigned char*>(frame.allocate(5000)), 5000, 77, 0, Origin::Malloc};
  fill(block);
  use(store, 50);
  const pid_t child = fork();
  if (child < 0) Run::fail("fork: errno %d", errno);
  if (child == 0) {
    Run::limit_child();
    store.check_all();
    require_intact(block, "in a frame of the parent");
    try {
      nest_scopes(store, 3);
    } catch (const std::runtime_error&) {
    }
    nest_frames(store, 2);
    require_intact(block, "in a frame of the parent");
    store.release_all();
    _exit(0);
  }
  ++totals.forks;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) Run::fail("a child ended with wait status %d", status);
  require_intact(block, "after a fork");
}

// Scopes that are opened where another one is still open, and left twice or never.
void misuse_scopes(Store& store) {
  if (!sluice_present()) return;
  sluice_scope scopes[3];
  for (int i = 0; i < 6; ++i) {
    sluice_scope& scope = scopes[store.random().below(3)];
    (void)sluice_scope_enter(&scope, SLUICE_ROUTE);
    use(store, 15);
    if (store.random().chance(50)) sluice_scope_leave(&scopes[store.random().below(3)]);
  }
  for (sluice_scope& scope : scopes)
    sluice_scope_leave(&scope);
}

void one_episode(Store& store) {
  try {
    switch (store.random().below(10)) {
      case 0:
      case 1:
        return nest_frames(store, 3);
      case 2:
        return fill_containers(store);
      case 3:
        return misuse_scopes(store);
      case 4:
        return use(store, 100);
      case 5:
        return store.random().chance(30) ? fork_in_scope(store) : store.check_all();
      default:
        return nest_scopes(store, store.random().below(70));
    }
  } catch (const std::runtime_error& error) {
    if (error.what() != std::string(100, 'x')) Run::fail("an exception lost its text");
  }
}

void live(uint64_t seed) {
  {
    Store store(slots, seed, largest);
    for (int i = 0; i < episodes_of_a_thread; ++i)
      one_episode(store);
    for (size_t slot = 0; slot < slots / 2; ++slot)  // objects that outlive their thread
      discard(exchange.swap(store.take(slot), store.random().next()));
  }
  // The thread ends inside a scope and with a frame that is never rewound.
  static thread_local sluice_scope never_left;
  if (sluice_present()) (void)sluice_scope_enter(&never_left, SLUICE_ROUTE);
  (void)sluice_frame_alloc(10'000, 16);
  Store last(20, seed, largest);
  for (int i = 0; i < 40; ++i)
    last.step();
}

}  // namespace

int main(int count, char** arguments) {
  const Run run("soak_scopes", count, arguments);
  Random random(run.seed());
  const size_t before = resident_bytes();
  for (; run.goes_on(); ++totals.rounds) {
    std::vector<std::thread> threads;
    for (uint64_t i = 0, most = 1 + random.below(8); i < most; ++i)
      threads.emplace_back(live, random.next());
    totals.threads += threads.size();
    for (std::thread& thread : threads)
      thread.join();
  }
  exchange.release_all();
  if (!falls_to(before + 64 * MiB))
    Run::fail("no object lives, and %zu KiB stay in memory", (resident_bytes() - before) / KiB);
  return 0;
}
