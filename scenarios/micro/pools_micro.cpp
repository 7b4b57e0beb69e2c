// Pools: taking a block and giving it back, in the orders in which programs do. Open it to add a pool or an order.
//
// The rows "malloc/free" and "new/delete" are run once more under each other malloc that is installed.
#include <cstdlib>
#include <list>
#include <memory>
#include <memory_resource>

#include "micro.hpp"
#include "sluice/index_pool.hpp"
#include "sluice/pool.hpp"
#include "sluice/pool_resource.hpp"
#include "sluice/stack_pool.hpp"

#if MICRO_BOOST
#include <boost/pool/object_pool.hpp>
#include <boost/pool/pool.hpp>
#endif

namespace micro {
namespace {

constexpr std::size_t most_live = 1024;

template <std::size_t Size>
struct Block {
  alignas(8) unsigned char bytes[Size];
};

/// Has a constructor and a destructor that do little, as most objects of pools.
struct Particle {
  Particle(float x, float y) noexcept : position{x, y}, velocity{1, 2} { ++live; }
  ~Particle() { --live; }
  Particle(const Particle&) = delete;
  Particle& operator=(const Particle&) = delete;

  float position[2];
  float velocity[2];
  std::uint32_t color = 0xffffff;
  std::uint32_t age = 0;
  Particle* next = nullptr;
  static inline std::size_t live = 0;
};

// Sources of blocks. A source is made once for each run and stands on the heap.

template <class T>
struct FromMalloc {
  T* take() { return static_cast<T*>(std::malloc(sizeof(T))); }
  void give(T* block) { std::free(block); }
};
template <class T>
struct FromNew {
  T* take() { return new T; }
  void give(T* block) { delete block; }
};
template <class T>
struct FromStackPool {
  T* take() { return pool.try_acquire(); }
  void give(T* block) { pool.release(block); }
  sluice::stack_pool<T, most_live> pool;
};
template <class T>
struct FromPool {
  T* take() { return pool.acquire(); }
  void give(T* block) { pool.release(block); }
  sluice::pool<T> pool{most_live};
};
#if MICRO_BOOST
template <class T>
struct FromBoost {
  T* take() { return static_cast<T*>(pool.malloc()); }
  void give(T* block) { pool.free(block); }
  boost::pool<> pool{sizeof(T), most_live};
};
#endif
/// What it takes blocks from is called through its base class, as containers do.
template <class T, class Resource>
struct FromResource {
  FromResource() { blur(base); }
  T* take() { return static_cast<T*>(base->allocate(sizeof(T), alignof(T))); }
  void give(T* block) { base->deallocate(block, sizeof(T), alignof(T)); }
  Resource resource;
  std::pmr::memory_resource* base = &resource;
};
struct NewDelete final : std::pmr::memory_resource {
  void* do_allocate(std::size_t size, std::size_t align) override {
    return std::pmr::new_delete_resource()->allocate(size, align);
  }
  void do_deallocate(void* block, std::size_t size, std::size_t align) override {
    std::pmr::new_delete_resource()->deallocate(block, size, align);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

/// A block is written to as soon as it is there.
template <class Source>
auto* take(Source& source) {
  auto* const block = source.take();
  block->bytes[0] = 1;
  consume(block);
  return block;
}

/// One block taken and given back at once, while 64 others stay.
template <class Source>
void pair(benchmark::State& state) {
  const auto source = std::make_unique<Source>();
  decltype(source->take()) live[64];
  for (auto& block : live)
    block = take(*source);
  measure(state, 16, [&] {
    for (int i = 0; i < 16; ++i)
      source->give(take(*source));
  });
  for (auto* block : live)
    source->give(block);
}

/// 256 blocks taken, and given back in reverse order or in the order in which they were taken.
template <class Source, bool Reverse>
void burst(benchmark::State& state) {
  const auto source = std::make_unique<Source>();
  constexpr std::size_t count = 256;
  decltype(source->take()) blocks[count];
  measure(state, count, [&] {
    for (auto& block : blocks)
      block = take(*source);
    for (std::size_t i = 0; i < count; ++i)
      source->give(blocks[Reverse ? count - 1 - i : i]);
  });
}

/// A thousand blocks live; one of them, drawn at random, is given back and replaced.
template <class Source>
void churn(benchmark::State& state) {
  const auto source = std::make_unique<Source>();
  constexpr std::size_t count = 1000;
  const std::vector<std::uint32_t> places = random_numbers(4096, count);
  std::vector<decltype(source->take())> blocks(count);
  for (auto& block : blocks)
    block = take(*source);
  measure(state, places.size(), [&] {
    for (const std::uint32_t place : places) {
      source->give(blocks[place]);
      consume(source.get());  // elsewhere in the program: what is given back is not known to be what comes next
      blocks[place] = take(*source);
    }
  });
  for (auto* block : blocks)
    source->give(block);
}

template <class Source>
void add_orders(const std::string& component, const std::string& size, const std::string& who) {
  add(component, "pair_" + size, who, pair<Source>);
  add(component, "lifo_" + size, who, burst<Source, true>);
  add(component, "fifo_" + size, who, burst<Source, false>);
  add(component, "churn_" + size, who, churn<Source>);
}

/// 64 objects live, one after another is destroyed and a new one constructed: `create` and `destroy` are the source's.
template <class Create, class Destroy>
void objects(benchmark::State& state, const void* source, Create create, Destroy destroy) {
  Particle* live[64];
  for (auto& particle : live)
    particle = create(1.0F, 2.0F);
  measure(state, 64, [&] {
    for (auto& particle : live) {
      destroy(particle);
      consume(source);  // as in `churn`
      particle = create(1.0F, 2.0F);
      consume(particle);
    }
  });
  for (auto* particle : live)
    destroy(particle);
}

void add_objects() {
  const std::string component = "pools", what = "objects_40";
  add(component, what, "sluice::stack_pool", [](benchmark::State& state) {
    const auto pool = std::make_unique<sluice::stack_pool<Particle, 64>>();
    objects(
        state, pool.get(), [&](float x, float y) { return pool->create(x, y); },
        [&](Particle* it) { pool->destroy(it); });
  });
  add(component, what, "sluice::pool", [](benchmark::State& state) {
    sluice::pool<Particle> pool(64);
    objects(
        state, &pool, [&](float x, float y) { return pool.create(x, y); }, [&](Particle* it) { pool.destroy(it); });
  });
  add(component, what, "sluice::index_pool", [](benchmark::State& state) {
    const auto pool = std::make_unique<sluice::index_pool<Particle, 64>>();
    objects(
        state, pool.get(), [&](float x, float y) { return &(*pool)[*pool->create(x, y)]; },
        [&](Particle* it) { pool->destroy(pool->index_of(*it)); });
  });
#if MICRO_BOOST
  add(component, what, "boost::object_pool", [](benchmark::State& state) {
    boost::object_pool<Particle> pool(64);
    objects(
        state, &pool, [&](float x, float y) { return pool.construct(x, y); }, [&](Particle* it) { pool.destroy(it); });
  });
  add(component, what, "boost::pool", [](benchmark::State& state) {
    boost::pool<> pool(sizeof(Particle), 64);
    objects(
        state, &pool, [&](float x, float y) { return new (pool.malloc()) Particle(x, y); },
        [&](Particle* it) {
          it->~Particle();
          pool.free(it);
        });
  });
#endif
  add(component, what, "new/delete", [](benchmark::State& state) {
    objects(
        state, nullptr, [](float x, float y) { return new Particle(x, y); }, [](Particle* it) { delete it; });
  });
}

/// A list of a thousand numbers of which the first goes and a new last one comes.
template <class Resource>
void list_queue(benchmark::State& state) {
  Resource resource;
  std::pmr::list<int> list(&resource);
  for (int i = 0; i < 1000; ++i)
    list.push_back(i);
  measure(state, 16, [&] {
    for (int i = 0; i < 16; ++i) {
      list.pop_front();
      list.push_back(i);
    }
    consume(list);
  });
}

template <std::size_t Size>
void add_blocks(const std::string& size) {
  using B = Block<Size>;
  add_orders<FromStackPool<B>>("pools", size, "sluice::stack_pool");
  add_orders<FromPool<B>>("pools", size, "sluice::pool");
#if MICRO_BOOST
  add_orders<FromBoost<B>>("pools", size, "boost::pool");
#endif
  add_orders<FromResource<B, std::pmr::unsynchronized_pool_resource>>("pools", size, "pmr::unsynchronized_pool");
  add_orders<FromMalloc<B>>("pools", size, "malloc/free");
  add_orders<FromNew<B>>("pools", size, "new/delete");

  add_orders<FromResource<B, sluice::pool_resource<Size>>>("pool_resource", size, "sluice::pool_resource");
  add_orders<FromResource<B, std::pmr::unsynchronized_pool_resource>>("pool_resource", size,
                                                                      "pmr::unsynchronized_pool");
  add_orders<FromResource<B, NewDelete>>("pool_resource", size, "pmr::new_delete");
}

}  // namespace

void add_all() {
  add_blocks<16>("16");
  add_blocks<64>("64");
  add_objects();
  add("pool_resource", "list_queue", "sluice::pool_resource", list_queue<sluice::pool_resource<32>>);
  add("pool_resource", "list_queue", "pmr::unsynchronized_pool", list_queue<std::pmr::unsynchronized_pool_resource>);
  add("pool_resource", "list_queue", "pmr::new_delete", list_queue<NewDelete>);
}

}  // namespace micro
