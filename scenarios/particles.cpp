// Particles: sparks and smoke that begin in bursts, move in each picture and end a few pictures later. Open it for what
// a pool of fixed capacity gains for objects of one type that come and go by the thousand.
#include <memory_resource>
#include <utility>

#include "common.hpp"
#include "memory.hpp"
#include "sluice/stack_pool.hpp"

namespace {

constexpr std::uint32_t burst = 512;  // particles that begin in a picture
constexpr std::uint32_t shortest_life = 4;
constexpr std::uint32_t longest_life = 28;
constexpr std::uint32_t capacity = burst * longest_life;  // there are never more at a time
constexpr float seconds = 1.0F / 60;

struct Particle {
  Particle(std::uint32_t number, std::uint64_t drawn)
      : place{1, 2, 3}, tag(number), left(life_of(drawn)), life(life_of(drawn)), check(~number) {
    for (std::uint32_t i = 0; i < 3; ++i)
      speed[i] = static_cast<float>(static_cast<std::int16_t>(drawn >> 16 * i & 0xffff)) / 4096;
  }

  static std::uint32_t life_of(std::uint64_t drawn) {
    return shortest_life + static_cast<std::uint32_t>((drawn >> 48) * (longest_life - shortest_life + 1) >> 16);
  }

  float place[3];
  std::uint32_t tag;
  float speed[3];
  std::uint32_t left;  // pictures
  float colour[4] = {1, 1, 1, 1};
  float size = 1;
  std::uint32_t life;  // pictures
  std::uint32_t moved = 0;
  std::uint32_t check;
};
static_assert(sizeof(Particle) == 64);

/// Moves the particles and notes the positions of those whose last picture this is; returns how many there are. One
/// function for all kinds of memory, so that they differ in nothing but where the particles lie.
[[gnu::noinline]] std::uint32_t move(Particle* const* particles, std::uint32_t count, std::uint32_t* last) {
  std::uint32_t ended = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    Particle& particle = *particles[i];
    particle.speed[1] -= 9.81F * seconds;
    for (std::uint32_t axis = 0; axis < 3; ++axis)
      particle.place[axis] += particle.speed[axis] * seconds;
    particle.colour[3] *= 0.97F;
    particle.size += 0.01F;
    ++particle.moved;
    last[ended] = i;
    ended += --particle.left == 0;
  }
  return ended;
}

struct Plain : scenario::AlwaysInEffect<Plain> {
  static constexpr const char* name = "plain";
  template <class... Arguments>
  Particle* create(Arguments&&... arguments) {
    return new Particle(std::forward<Arguments>(arguments)...);
  }
  void destroy(Particle* particle) { delete particle; }
};

struct StackPool : scenario::AlwaysInEffect<StackPool> {
  static constexpr const char* name = "stack_pool";
  template <class... Arguments>
  Particle* create(Arguments&&... arguments) {
    return pool.create(std::forward<Arguments>(arguments)...);
  }
  void destroy(Particle* particle) { pool.destroy(particle); }

  static inline sluice::stack_pool<Particle, capacity> pool{"particles"};
};

struct Pmr : scenario::AlwaysInEffect<Pmr> {
  static constexpr const char* name = "pmr";
  template <class... Arguments>
  Particle* create(Arguments&&... arguments) {
    return allocator.new_object<Particle>(std::forward<Arguments>(arguments)...);
  }
  void destroy(Particle* particle) { allocator.delete_object(particle); }

  std::pmr::unsynchronized_pool_resource resource;
  std::pmr::polymorphic_allocator<> allocator{&resource};
};

template <class Memory>
class Effects {
 public:
  Effects(Memory& memory, std::uint64_t seed) : memory_(memory), random_(seed), alive_(capacity), ended_(capacity) {}

  void play(std::uint64_t pictures, scenario::Report& report) {
    for (std::uint64_t i = 0; i < pictures; ++i)
      show_picture();
    while (count_ > 0)
      end(count_ - 1);
    report.require(damage_ == 0);
    report.add("particles_turnover", begun_, turnover_watch_.nanoseconds());
    report.add("particles_move", moves_, move_watch_.nanoseconds());
  }

 private:
  void show_picture() {
    turnover_watch_.start();
    for (std::uint32_t i = 0; i < burst; ++i)
      begin();
    turnover_watch_.stop();
    move_watch_.start();
    const std::uint32_t ended = move(&alive_[0], count_, &ended_[0]);
    move_watch_.stop();
    moves_ += count_;
    // From the back, so that what moves into a gap is one that goes on.
    turnover_watch_.start();
    for (std::uint32_t i = ended; i > 0; --i)
      end(ended_[i - 1]);
    turnover_watch_.stop();
  }

  void begin() {
    Particle* const particle = memory_.create(static_cast<std::uint32_t>(begun_++), random_.next());
    scenario::escape(particle);
    alive_[count_++] = particle;
  }

  void end(std::uint32_t position) {
    Particle* const particle = alive_[position];
    damage_ |= (particle->tag ^ ~particle->check) | (particle->moved + particle->left - particle->life);
    memory_.destroy(particle);
    alive_[position] = alive_[--count_];
  }

  Memory& memory_;
  scenario::Random random_;
  scenario::Table<Particle*> alive_;
  scenario::Table<std::uint32_t> ended_;  // positions in alive_
  std::uint32_t count_ = 0;
  std::uint64_t begun_ = 0;
  std::uint64_t moves_ = 0;
  std::uint32_t damage_ = 0;
  scenario::Stopwatch turnover_watch_;
  scenario::Stopwatch move_watch_;
};

}  // namespace

int main(int argc, char** argv) {
  scenario::Choice memory("--memory", "plain|stack_pool|pmr");
  const auto arguments = scenario::parse_arguments(argc, argv, "pictures", 4'000, 1, {&memory});
  scenario::Report report("particles");
  scenario::with_memory<Plain, StackPool, Pmr>(
      memory, report, [&](auto& kind) { Effects(kind, arguments.seed).play(arguments.ops, report); });
  return report.finish(arguments);
}
