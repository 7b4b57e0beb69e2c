// The churn of small objects in a program that runs for long: sizes and lifetimes as they were measured in real
// programs, a hundred thousand blocks alive, of which most die at once and some stay to the end. Open it for how an
// allocator does on the mixture of everything.
//
// A block takes the place of another of the same lifetime, chosen at random; the number of places is what makes the
// lifetime. At rest (--quiesce) those of the two longest lifetimes are left.
#include "common.hpp"
#include "filled.hpp"
#include "service_sizes.hpp"
#include "shared_clock.hpp"

namespace {

using scenario::Filled;

/// The places of one lifetime among those of a thread.
struct Places {
  std::uint32_t first, count;
};

/// Their number is the lifetime times the share of blocks that have it. The last ones are never chosen, so that their
/// blocks live from beginning to end.
constexpr Places places[scenario::lifetimes] = {{0, 4},     {4, 16},        {20, 64},
                                                {84, 2048}, {2132, 65'536}, {67'668, 24'576}};
constexpr std::uint32_t staying = 8'192;
constexpr std::uint32_t all_places = places[scenario::longer].first + places[scenario::longer].count + staying;
constexpr std::uint32_t first_at_rest = places[scenario::up_to_1048576].first;

/// Blocks to allocate next, again and again, and numbers that choose their places; one cycle moves on against the
/// other, so that a block is another one's neighbour each time.
class Plan {
 public:
  explicit Plan(std::uint64_t seed) : draws_(length), numbers_(length) {
    scenario::Random random(seed);
    for (std::size_t i = 0; i < length; ++i) {
      draws_[i] = scenario::draw_block(random);
      numbers_[i] = static_cast<std::uint32_t>(random.next());
    }
  }

  std::uint32_t size(std::uint64_t step) const { return draws_[step % length].size; }

  std::uint32_t place(std::uint64_t step) const {
    constexpr std::uint64_t shift = 40'503;
    const Places& among = places[draws_[step % length].lifetime];
    const std::uint64_t number = numbers_[(step + step / length * shift) % length];
    return among.first + static_cast<std::uint32_t>((number * among.count) >> 32);
  }

 private:
  static constexpr std::uint64_t length = 65'536;
  scenario::Table<scenario::Draw> draws_;
  scenario::Table<std::uint32_t> numbers_;
};

std::uint32_t lifetime_of_place(std::uint32_t place) {
  std::uint32_t lifetime = scenario::longer;
  while (place < places[lifetime].first)
    --lifetime;
  return lifetime;
}

/// Fills all places, those of the various lifetimes in turn, as they would come in a program that has run for a while.
void build(Filled* blocks, std::uint64_t seed) {
  constexpr std::uint64_t stride = 61'001;  // shares no factor with the number of places
  scenario::Random random(seed);
  for (std::uint64_t i = 0; i < all_places; ++i) {
    const auto place = static_cast<std::uint32_t>(i * stride % all_places);
    const std::uint32_t lifetime = lifetime_of_place(place);
    blocks[place] = scenario::allocate_filled(scenario::draw_block(random, lifetime, lifetime + 1).size, i);
  }
}

std::uint64_t replace(Filled* blocks, const Plan& plan, std::uint64_t ops) {
  std::uint64_t damage = 0;
  for (std::uint64_t i = 0; i < ops; ++i) {
    Filled& filled = blocks[plan.place(i)];
    damage |= scenario::release(filled);
    filled = scenario::allocate_filled(plan.size(i), i);
  }
  return damage;
}

/// Releases what has ended when the program rests. Returns: non-zero bits when any block was damaged, also of the
/// others.
std::uint64_t come_to_rest(Filled* blocks) {
  std::uint64_t damage = 0;
  for (std::uint32_t place = 0; place < first_at_rest; ++place)
    damage |= scenario::release(blocks[place]);
  for (std::uint32_t place = first_at_rest; place < all_places; ++place)
    damage |= blocks[place].damage();
  return damage;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      scenario::parse_arguments(argc, argv, {.unit = "blocks replaced", .ops = 6'000'000, .threads = 1});
  scenario::Table<Filled> blocks(arguments.threads * all_places);
  scenario::Report report("churn");
  scenario::measure_workers(report, "churn", arguments,
                            [&](const scenario::Share& share, scenario::SharedClock& clock) {
                              Filled* const own = &blocks[share.index * all_places];
                              const Plan plan(share.seed);
                              build(own, share.seed + 1);
                              clock.start();
                              const std::uint64_t damage = replace(own, plan, share.ops);
                              clock.stop();
                              return damage | come_to_rest(own);
                            });
  const int status = report.finish(arguments);
  for (std::uint64_t thread = 0; thread < arguments.threads; ++thread) {
    for (std::uint32_t place = first_at_rest; place < all_places; ++place)
      std::free(blocks[thread * all_places + place].block);
  }
  return status;
}
