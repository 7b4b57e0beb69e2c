// A game: levels that are loaded, played for many pictures and unloaded; temporaries of each picture; particles that
// come and go. Open it for what frames and scopes do with lifetimes that lie within each other.
#include "common.hpp"
#include "memory.hpp"

namespace {

constexpr std::uint32_t level_objects = 20'000;
constexpr std::uint64_t level_pictures = 1'000;
constexpr std::uint32_t picture_objects = 500;
constexpr std::uint32_t particles = 2'000;
constexpr std::uint32_t particles_replaced = 200;

/// One picture in so many has its temporaries checked, off the clock.
constexpr std::uint64_t checked_every = 16;

struct Particle {
  std::uint64_t tag;
  std::uint64_t born;   // how often the particles had moved when it began
  std::uint64_t moved;  // how often it has moved itself
  std::uint64_t place[5];
};

template <class Memory>
class Game {
 public:
  Game(Memory& memory, std::uint64_t seed)
      : memory_(memory),
        asset_sizes_(65536, seed, scenario::object_size),
        command_sizes_(16384, seed + 1, scenario::small_size),
        random_(seed + 2),
        assets_(level_objects),
        commands_(picture_objects),
        particles_(particles) {}

  void play(std::uint64_t pictures, scenario::Report& report) {
    for (std::uint32_t i = 0; i < particles; ++i)
      particles_[i] = spawn();
    for (std::uint64_t done = 0; done < pictures; done += level_pictures)
      play_level(done + level_pictures <= pictures ? level_pictures : pictures - done);
    for (std::uint32_t i = 0; i < particles; ++i)
      end(particles_[i]);
    report.require(damage_ == 0);
    report.add("game_picture", picture_ * picture_objects, picture_watch_.nanoseconds());
    report.add("game_level", levels_ * level_objects, level_watch_.nanoseconds());
    report.add("game_particle", picture_ * particles_replaced, particle_watch_.nanoseconds());
  }

 private:
  /// A level's objects outlive the scope in which they are loaded, and are unloaded in reverse order.
  void play_level(std::uint64_t pictures) {
    const std::uint64_t first = levels_++ * level_objects;
    level_watch_.start();
    {
      const typename Memory::Lifetime level(memory_);
      {
        const typename Memory::Routing loading(memory_);
        for (std::uint32_t i = 0; i < level_objects; ++i)
          assets_[i] = object(asset_sizes_[first + i], first + i);
      }
      level_watch_.stop();
      for (std::uint64_t i = 0; i < pictures; ++i) {
        show_picture();
        move_particles();
        ++picture_;
      }
      for (std::uint32_t i = 0; i < level_objects; ++i)
        check(assets_[i], asset_sizes_[first + i], first + i);
      level_watch_.start();
      if constexpr (Memory::frees_objects) {
        for (std::uint32_t i = level_objects; i > 0; --i)
          memory_.release(assets_[i - 1]);
      }
    }
    level_watch_.stop();
  }

  void show_picture() {
    const std::uint64_t first = picture_ * picture_objects;
    picture_watch_.start();
    {
      const typename Memory::Unit picture(memory_);
      for (std::uint32_t i = 0; i < picture_objects; ++i)
        commands_[i] = object(command_sizes_[first + i], first + i);
      if (picture_ % checked_every == 0) {
        picture_watch_.stop();
        for (std::uint32_t i = 0; i < picture_objects; ++i)
          check(commands_[i], command_sizes_[first + i], first + i);
        picture_watch_.start();
      }
      if constexpr (Memory::frees_objects) {
        for (std::uint32_t i = 0; i < picture_objects; ++i)
          memory_.release(commands_[i]);
      }
    }
    picture_watch_.stop();
  }

  /// All particles move; some end, in random order, and others begin. They are no temporaries of the picture and live
  /// in the heap, outside any scope, in every kind of memory.
  void move_particles() {
    particle_watch_.start();
    for (std::uint32_t i = 0; i < particles; ++i)
      ++particles_[i]->moved;
    ++moves_;
    for (std::uint32_t i = 0; i < particles_replaced; ++i) {
      Particle*& slot = particles_[random_.below(particles)];
      end(slot);
      slot = spawn();
    }
    particle_watch_.stop();
  }

  Particle* spawn() {
    auto* const particle = static_cast<Particle*>(memory_.allocate_lasting(sizeof(Particle)));
    *particle = {spawned_, moves_, 0, {}};
    particle->place[4] = ~spawned_++;
    scenario::escape(particle);
    return particle;
  }

  void end(Particle* particle) {
    damage_ |= (particle->born + particle->moved) ^ moves_;
    damage_ |= particle->place[4] ^ ~particle->tag;
    memory_.release_lasting(particle);
  }

  void* object(std::uint32_t size, std::uint64_t tag) {
    void* const block = memory_.allocate(size);
    static_cast<unsigned char*>(block)[size - 1] = static_cast<unsigned char>(tag);
    std::memcpy(block, &tag, sizeof tag);
    scenario::escape(block);
    return block;
  }

  void check(const void* block, std::uint32_t size, std::uint64_t tag) {
    damage_ |= scenario::tag_of(block) ^ tag;
    if (size > sizeof tag)
      damage_ |= static_cast<const unsigned char*>(block)[size - 1] ^ static_cast<unsigned char>(tag);
  }

  Memory& memory_;
  const scenario::SizeCycle asset_sizes_;
  const scenario::SizeCycle command_sizes_;
  scenario::Random random_;
  scenario::Table<void*> assets_;
  scenario::Table<void*> commands_;
  scenario::Table<Particle*> particles_;
  std::uint64_t levels_ = 0;
  std::uint64_t picture_ = 0;
  std::uint64_t moves_ = 0;  // of all particles
  std::uint64_t spawned_ = 0;
  std::uint64_t damage_ = 0;
  scenario::Stopwatch level_watch_;
  scenario::Stopwatch picture_watch_;
  scenario::Stopwatch particle_watch_;
};

}  // namespace

int main(int argc, char** argv) {
  scenario::Choice memory("--memory", "plain|scope|frame");
  const auto arguments = scenario::parse_arguments(argc, argv, "pictures", 20'000, 1, {&memory});
  scenario::Report report("game_loop");
  scenario::with_memory<scenario::PlainMemory, scenario::ScopeMemory, scenario::FrameMemory>(
      memory, report, [&](auto& kind) { Game(kind, arguments.seed).play(arguments.ops, report); });
  return report.finish(arguments);
}
