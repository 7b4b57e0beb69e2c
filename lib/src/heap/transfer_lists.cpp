// What stands behind transfer.hpp: apart from it, since it works with the caches that are told of it. All that takes a
// list and puts another one holds the lock of a cache meanwhile, so that a fork and a look at the whole heap find each
// block in one place.
#include "heap/transfer.hpp"

#include "base/options.hpp"
#include "heap/link.hpp"
#include "heap/registry.hpp"
#include "heap/sparse.hpp"
#include "heap/thread_life.hpp"
#include "os/memory.hpp"
#include "os/seldom_touched.hpp"
#include "pages/nodes.hpp"

namespace sluice::cache::transfer {

constinit std::atomic<ThreadCache*> common_caches[most_nodes]{};
constinit std::atomic<bool> were_used{false};
constinit std::atomic<bool> has_others{false};

namespace {

constexpr unsigned lists_per_class = 4;
constexpr uint32_t most_of_class = 2;   // times SLUICE_CACHE, of blocks one by one…
constexpr uint32_t least_blocks = 2;    // …but so many in each list, if SLUICE_CACHE allows one
constexpr uint8_t alone_after = 8;      // blocks taken from a list to which nobody else came…
constexpr uint8_t alone_for = 2;        // …and then steps of a clock: threads take turns where processors are few
constexpr uint64_t clock_step_ms = 64;  // so that it is 64 ms at least
constexpr uint64_t looks_a_delay = 4;   // at what lies unused

// A list in one word: where its first block lies, the memory node that it is of, and how many blocks there are. 0:
// none.
class List {
 public:
  constexpr List() noexcept = default;
  explicit constexpr List(uint64_t word) noexcept : word_(word) {}
  List(const void* first, uint32_t count, unsigned node) noexcept
      : word_(reinterpret_cast<uintptr_t>(first) << first_shift | uint64_t{node} << node_shift | count) {}

  explicit constexpr operator bool() const noexcept { return word_ != 0; }
  constexpr uint64_t word() const noexcept { return word_; }
  void* first() const noexcept { return reinterpret_cast<void*>(word_ >> count_bits << 4); }
  uint32_t count() const noexcept { return static_cast<uint32_t>(word_ & most_blocks); }
  unsigned node() const noexcept { return static_cast<unsigned>(word_ >> node_shift) % most_nodes; }
  // Of a list that is another after each change, most likely.
  uint32_t mark() const noexcept { return static_cast<uint32_t>(word_ >> count_bits) & most_marks; }

  static constexpr uint32_t most_blocks = (1u << 13) - 1;
  static constexpr uint32_t most_marks = (1u << 24) - 1;

 private:
  static constexpr unsigned count_bits = 16, node_shift = 13, first_shift = count_bits - 4;  // addresses have 52 bits
  static_assert(most_nodes << node_shift == 1u << count_bits);

  uint64_t word_ = 0;
};

class Place {
 public:
  List look() const noexcept { return List(word_.load(std::memory_order_seq_cst)); }  // pairs with put
  // Acquire, and release or more (see note_put): who takes the list sees its links.
  List take() noexcept { return List(word_.exchange(0, std::memory_order_acquire)); }
  bool put(List list) noexcept {
    uint64_t none = 0;
    return word_.load(std::memory_order_relaxed) == 0 &&
           word_.compare_exchange_strong(none, list.word(), std::memory_order_seq_cst, std::memory_order_relaxed);
  }
  // Takes the list if it is the one that lay here when this was last called.
  List take_if_still() noexcept {
    uint64_t now = word_.load(std::memory_order_relaxed);
    const auto mark = static_cast<uint32_t>(now >> 32 ^ now);
    const bool is_still = now != 0 && seen_.exchange(mark, std::memory_order_relaxed) == mark;
    if (!is_still || !word_.compare_exchange_strong(now, 0, std::memory_order_acquire, std::memory_order_relaxed))
      return {};
    return List(now);
  }

 private:
  std::atomic<uint64_t> word_{0};
  std::atomic<uint32_t> seen_{0};
};

struct alignas(lists_per_class * sizeof(Place)) Places {
  Place of[lists_per_class];
};
SLUICE_SELDOM_TOUCHED constinit Places places[size_class_count]{};

// In how many lists of the class blocks lie one by one: as many as hold two each, if all hold what they may.
unsigned lists_one_by_one(unsigned k) noexcept {
  const size_t least_bytes = size_t{class_sizes[k]} * least_blocks;
  unsigned lists = lists_per_class;
  while (lists > 1 && lists * least_bytes > options.cache * most_of_class)
    --lists;
  return lists;
}

// The n-th place that a thread looks at. It begins with its own, of those where blocks lie one by one.
Place& place_at(const ThreadCache& own, unsigned k, unsigned n) noexcept {
  const unsigned lists = lists_one_by_one(k);
  return places[k].of[n < lists ? (own.first_transfer + n) % lists : n];
}

unsigned node_of(const void* block) noexcept {
  return nodes::are_several() ? nodes::of(region::index_of(slab::of(block))) : 0;
}

// A list was put. Sequentially consistent: pairs with background::look, which is seen to be asleep or finds it.
void note_put() noexcept {
  if (!were_used.load(std::memory_order_relaxed)) were_used.store(true, std::memory_order_relaxed);
  if (region::rest::word.load(std::memory_order_seq_cst) == region::rest::asleep) [[unlikely]]
    region::rest::wake();
}

// Whether a list of blocks of a shared class has no room for one more.
bool is_full(List list, unsigned k) noexcept {
  const uint32_t least = options.cache >= class_sizes[k] ? least_blocks : 1;
  return list.count() >= least &&
         (list.count() + size_t{1}) * class_sizes[k] * lists_one_by_one(k) > options.cache * most_of_class;
}

// Takes note of what this thread leaves in the place that it looks at first.
void note_left(ThreadCache& own, unsigned k) noexcept SLUICE_REQUIRES(own.lock) {
  if (shares(k)) own.uses[k].seen_list.mark = place_at(own, k, 0).look().mark();
}

// Returns: false if a list lies there.
bool put(Place& place, List list) noexcept {
  if (!place.put(list)) return false;
  note_put();
  return true;
}

// Of a list, one more than are passed on at most: one that a block was freed into twice has a circle. A thread's own
// count may be off by one where a signal handler or a fork came.
uint32_t length_of(const void* list) noexcept {
  uint32_t length = 0;
  for (; list != nullptr && length <= List::most_blocks; list = next_of(list))
    ++length;
  return length;
}

// Puts a list back that this thread has taken, wherever there is room.
void put_back(ThreadCache& own, unsigned k, List list) noexcept SLUICE_REQUIRES(own.lock) {
  for (unsigned n = 0; n < lists_per_class; ++n)
    if (put(place_at(own, k, n), list)) return;
  (void)flush_list(own, list.first());
}

}  // namespace

bool give_of_others(ThreadCache& own, unsigned k, void* list) noexcept {
  if (!has_others.load(std::memory_order_relaxed)) return false;
  const uint32_t count = length_of(list);
  const size_t bytes = size_t{count} * class_sizes[k];
  if (count > List::most_blocks || bytes > options.cache) return false;
  if (slab::of(list)->owner.load(std::memory_order_relaxed)->orphan.load(std::memory_order_relaxed)) return false;
  const List given(list, count, node_of(list));
  for (unsigned n = 0; n < lists_per_class && (n + 1) * bytes <= options.cache; ++n) {
    if (!put(place_at(own, k, n), given)) continue;
    if (n == 0) note_left(own, k);
    return true;
  }
  return false;
}

namespace {

// Takes a list that serves this thread from the n-th of its places.
List take_near(ThreadCache& own, unsigned k, unsigned n) noexcept SLUICE_REQUIRES(own.lock) {
  Place& place = place_at(own, k, n);
  const List seen = place.look();
  if (!seen || (nodes::are_several() && seen.node() != nodes::own())) return {};
  return place.take();
}

}  // namespace

slab::BlockList take(ThreadCache& own, unsigned k, uint32_t most) noexcept {
  List list;
  for (unsigned n = 0; n < lists_per_class && !list; ++n)
    list = take_near(own, k, n);
  slab::BlockList blocks{list.first(), list.count()};
  if (blocks.count > most) {
    void* last = list.first();
    for (uint32_t i = 1; i < most; ++i)
      last = next_of(last);
    put_back(own, k, List(next_of(last), list.count() - most, list.node()));
    set_next(last, nullptr);
    blocks.count = most;
  }
  if (list) note_left(own, k);
  return blocks;
}

bool others_came(const ThreadCache& own, unsigned k) noexcept {
  return place_at(own, k, 0).look().mark() != own.uses[k].seen_list.mark;
}

void give_one(ThreadCache& own, unsigned k, void* block) noexcept {
  const unsigned node = node_of(block);
  for (unsigned n = 0; n < lists_one_by_one(k) && has_others.load(std::memory_order_relaxed); ++n) {
    Place& place = place_at(own, k, n);
    const List seen = place.look();
    if (seen && (is_full(seen, k) || seen.node() != node)) continue;
    const List list = seen ? place.take() : List();
    if (is_full(list, k) || (list && list.node() != node)) {  // another one by now
      put_back(own, k, list);
      continue;
    }
    set_next(block, list.first());
    const List longer(block, list.count() + 1, node);
    if (!put(place, longer))
      put_back(own, k, longer);
    else if (n == 0)
      own.uses[k].seen_list.mark = longer.mark();
    return;
  }
  set_next(block, nullptr);
  (void)flush_list(own, block);
}

namespace {

// It begins anew after 16 s. While it shows 0, nobody is alone since then.
uint8_t coarse_clock() noexcept {
  return static_cast<uint8_t>(os::clock_ms() / clock_step_ms);
}

// This thread found a list where it looks first, and left another one there.
void note_whether_alone(ClassUse& use, List found, List left) noexcept {
  const bool others_came = found.mark() != use.seen_list.mark;
  use.seen_list.mark = left.mark();
  if (others_came) {
    use.streak = 0;
    use.seen_list.alone_since = 0;
    return;
  }
  if (use.streak < alone_after) ++use.streak;
  if (use.streak < alone_after) return;
  const uint8_t now = coarse_clock();
  if (use.seen_list.alone_since == 0)
    use.seen_list.alone_since = now;
  else if (static_cast<uint8_t>(now - use.seen_list.alone_since) >= alone_for)
    use.from_others = false;
}

}  // namespace

void* take_one(ThreadCache& own, unsigned k) noexcept {
  for (unsigned n = 0; n < lists_per_class; ++n) {
    const List list = take_near(own, k, n);
    if (!list) continue;
    void* const block = list.first();
    const List rest = list.count() > 1 ? List(next_of(block), list.count() - 1, list.node()) : List();
    if (rest && !put(place_at(own, k, n), rest)) put_back(own, k, rest);
    if (n == 0) note_whether_alone(own.uses[k], list, rest);
    return block;
  }
  return nullptr;
}

namespace {

constexpr unsigned most_tries = 64;  // for the lock of a common cache, which is held for a microsecond or so

// Made now if need be; null where that cannot be done at this moment.
ThreadCache* common_cache() noexcept {
  std::atomic<ThreadCache*>& known = common_caches[nodes::own()];
  ThreadCache* c = known.load(std::memory_order_acquire);
  if (c != nullptr) [[likely]]
    return c;
  if (registry.lock.held_by_this_thread() || !registry.lock.try_lock()) return nullptr;
  c = known.load(std::memory_order_relaxed);
  if (c == nullptr) {
    c = add_common_cache();
    known.store(c, std::memory_order_release);  // pairs with the load above
    were_used.store(true, std::memory_order_relaxed);
  }
  registry.lock.unlock();
  return c;
}

bool try_lock_briefly(ThreadCache& c) noexcept SLUICE_TAKES_IF_TRUE(c.lock) {
  for (unsigned tries = 0; tries < most_tries; ++tries) {
    if (c.lock.try_lock()) return true;
    cpu_relax();
  }
  return false;
}

}  // namespace

void* take_from_common(ThreadCache& own, unsigned k) noexcept {
  ThreadCache* const c = common_cache();
  if (c == nullptr || c->lock.held_by_this_thread() || !try_lock_briefly(*c)) return nullptr;
  Unit* s = own_partial_slab(*c, k);
  if (s == nullptr) s = own_partial_slab(own, k);
  if (s == nullptr) s = sparing_slab(*c, k);
  void* const block = s != nullptr ? slab::take_blocks(s, 1).first : nullptr;
  if (sparse::is_due(*c)) sparse::look(*c);
  c->lock.unlock();
  return block;
}

namespace {

// Calls act(place) for each, under the lock of the thread's cache, or of the shared one where it has none.
template <typename Act>
void flush_some(Act act) noexcept SLUICE_UNCHECKED_LOCKS {
  ThreadCache& c = thread_cache->attached ? *thread_cache : shared_cache;
  if (c.lock.held_by_this_thread()) return;
  const CacheLock held(c.lock);
  for (Places& each : places)
    for (Place& place : each.of)
      if (place.look())
        if (const List list = act(place)) (void)flush_list(c, list.first());
}

constinit std::atomic<uint64_t> next_look_ms{0};

}  // namespace

// Nobody else does it for caches that no thread has.
void collect_for_common() noexcept {
  for_each_common([](ThreadCache& c) SLUICE_UNCHECKED_LOCKS {
    slab::collect_pending(c);
    slab::destroy_empty(c);
    if (sparse::is_due(c)) sparse::look(c);
    budget::begin_anew(c);
  });
}

void flush_lists() noexcept {
  flush_some([](Place& place) { return place.take(); });
  collect_for_common();
}

void look_if_due() noexcept {
  const uint64_t now = os::clock_ms();
  uint64_t due = next_look_ms.load(std::memory_order_relaxed);
  if (now < due || !next_look_ms.compare_exchange_strong(due, now + options.purge_delay / looks_a_delay + 1,
                                                         std::memory_order_relaxed))
    return;
  flush_some([](Place& place) { return place.take_if_still(); });
  collect_for_common();
}

bool hold_any() noexcept {
  if (!were_used.load(std::memory_order_relaxed)) return false;
  for (const Places& each : places)
    for (const Place& place : each.of)
      if (place.look()) return true;
  return false;
}

uint32_t held_blocks(unsigned k) noexcept {
  uint32_t blocks = 0;
  for (const Place& place : places[k].of)
    blocks += place.look().count();
  return blocks;
}

const char* validate(unsigned k) noexcept {
  for (const Place& place : places[k].of) {
    const List list = place.look();
    uint32_t length = 0;
    for (const void* block = list.first(); block != nullptr; block = next_of(block)) {
      if (unit_index_of(block) >= region::limit() || class_bytes()[unit_index_of(block)] != class_byte_of(k))
        return "transfer list: block of another class";
      if (++length > list.count()) return "transfer list: too long";
    }
    if (length != list.count()) return "transfer list: too short";
  }
  return nullptr;
}

}  // namespace sluice::cache::transfer
