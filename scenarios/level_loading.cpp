// Levels of a game: assets of all sizes loaded from files with temporaries of the loader among them, pictures played
// above them, and all of it dropped at the level's end. Open it for what an arena with markers gains where lifetimes
// are nested.
#include <memory_resource>

#include "common.hpp"
#include "memory.hpp"
#include "sluice/marker_arena.hpp"

namespace {

constexpr std::uint32_t level_assets = 20'000;
constexpr std::uint32_t file_assets = 16;  // that a file of the level's package holds
constexpr std::uint32_t asset_temporaries = 6;
constexpr std::uint32_t level_pictures = 200;
constexpr std::uint32_t picture_objects = 400;
constexpr std::size_t level_bytes = std::size_t{24} << 20;  // enough for any level and its pictures
constexpr std::size_t loader_bytes = std::size_t{2} << 20;  // enough for any file and its temporaries

/// One picture in so many has its objects checked, off the clock.
constexpr std::uint64_t checked_every = 16;

/// Records, strings and small tables; two in a hundred are meshes, sounds and textures of 4…64 KiB.
std::uint32_t asset_size(scenario::Random& random) {
  return random.below(100) < 98 ? scenario::object_size(random) : random.by_doubling(12, 16);
}

/// Each asset, temporary and object of a picture is a block of malloc's, freed by itself.
struct Plain : scenario::AlwaysInEffect<Plain> {
  static constexpr const char* name = "plain";
  static constexpr bool frees_objects = true;

  struct Span {
    explicit Span(Plain&) {}
  };
  using Level = Span;
  using Picture = Span;
  using File = Span;
  using Asset = Span;

  void* allocate(std::size_t size) { return scenario::require_block(std::malloc(size), size); }
  void* allocate_temporary(std::size_t size) { return allocate(size); }
  void* allocate_in_picture(std::size_t size) { return allocate(size); }
  void release(void* block) { std::free(block); }
};

/// One arena for the level, with a frame for each picture above it, and one for the loader, with a frame for each file
/// and one in it for each asset.
class MarkerArena : public scenario::AlwaysInEffect<MarkerArena> {
 public:
  static constexpr const char* name = "marker_arena";
  static constexpr bool frees_objects = false;
  using Arena = sluice::marker_arena<>;

  struct Level : Arena::frame {
    explicit Level(MarkerArena& memory) : frame(memory.level_) {}
  };
  struct File : Arena::frame {
    explicit File(MarkerArena& memory) : frame(memory.loader_) {}
  };
  using Picture = Level;
  using Asset = File;

  void* allocate(std::size_t size) { return scenario::require_block(level_.try_allocate(size, 16), size); }
  void* allocate_temporary(std::size_t size) { return scenario::require_block(loader_.try_allocate(size, 16), size); }
  void* allocate_in_picture(std::size_t size) { return allocate(size); }
  void release(void*) {}

 private:
  scenario::HeapBlock level_block_{level_bytes};
  scenario::HeapBlock loader_block_{loader_bytes};
  Arena level_{level_block_.start(), level_bytes, "level"};
  Arena loader_{loader_block_.start(), loader_bytes, "loader"};
};

/// The standard's counterpart, with the same two blocks and one more for pictures: a monotonic_buffer_resource has no
/// markers, so that each lifetime needs one of its own, and the temporaries of an asset last as long as its file.
class Pmr : public scenario::AlwaysInEffect<Pmr> {
 public:
  static constexpr const char* name = "pmr";
  static constexpr bool frees_objects = false;
  using Resource = std::pmr::monotonic_buffer_resource;

  template <Resource Pmr::*resource>
  struct Span {
    explicit Span(Pmr& owner) : memory(owner) {}
    ~Span() { (memory.*resource).release(); }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;
    Pmr& memory;
  };
  struct Asset {
    explicit Asset(Pmr&) {}
  };

  void* allocate(std::size_t size) { return level_.allocate(size, 16); }
  void* allocate_temporary(std::size_t size) { return loader_.allocate(size, 16); }
  void* allocate_in_picture(std::size_t size) { return picture_.allocate(size, 16); }
  void release(void*) {}

 private:
  static constexpr std::size_t picture_bytes = std::size_t{1} << 20;
  scenario::HeapBlock level_block_{level_bytes};
  scenario::HeapBlock loader_block_{loader_bytes};
  scenario::HeapBlock picture_block_{picture_bytes};
  Resource level_{level_block_.start(), level_bytes};
  Resource loader_{loader_block_.start(), loader_bytes};
  Resource picture_{picture_block_.start(), picture_bytes};

 public:
  using Level = Span<&Pmr::level_>;
  using File = Span<&Pmr::loader_>;
  using Picture = Span<&Pmr::picture_>;
};

template <class Memory>
class Game {
 public:
  Game(Memory& memory, std::uint64_t seed)
      : memory_(memory),
        asset_sizes_(65536, seed, asset_size),
        temporary_sizes_(16384, seed + 1, scenario::small_size),
        object_sizes_(16384, seed + 2, scenario::small_size),
        assets_(level_assets),
        objects_(picture_objects) {}

  void play(std::uint64_t levels, scenario::Report& report) {
    for (std::uint64_t i = 0; i < levels; ++i)
      play_level(i * level_assets);
    report.require(damage_ == 0);
    report.add("level_loading", levels * level_assets, level_watch_.nanoseconds());
    report.add("level_picture", pictures_ * picture_objects, picture_watch_.nanoseconds());
  }

 private:
  void play_level(std::uint64_t first) {
    level_watch_.start();
    {
      const typename Memory::Level level(memory_);
      for (std::uint32_t i = 0; i < level_assets; i += file_assets)
        load_file(first, i);
      level_watch_.stop();
      for (std::uint32_t i = 0; i < level_pictures; ++i)
        show_picture();
      for (std::uint32_t i = 0; i < level_assets; ++i)
        check(assets_[i], asset_sizes_[first + i], first + i);
      level_watch_.start();
      if constexpr (Memory::frees_objects) {
        for (std::uint32_t i = level_assets; i > 0; --i)
          memory_.release(assets_[i - 1]);
      }
    }
    level_watch_.stop();
  }

  /// Reads a file, half as large as what is in it, and unpacks one asset after another.
  void load_file(std::uint64_t first, std::uint32_t asset) {
    std::size_t packed_size = 8;
    for (std::uint32_t i = asset; i < asset + file_assets; ++i)
      packed_size += asset_sizes_[first + i] / 2;
    const typename Memory::File file(memory_);
    void* const packed = memory_.allocate_temporary(packed_size);
    write(packed, packed_size, asset);
    for (std::uint32_t i = asset; i < asset + file_assets; ++i) {
      const typename Memory::Asset unpacking(memory_);
      void* temporaries[asset_temporaries];
      for (void*& temporary : temporaries) {
        const std::size_t size = temporary_sizes_[temporaries_++];
        temporary = memory_.allocate_temporary(size);
        touch(temporary, size, i);
      }
      assets_[i] = memory_.allocate(asset_sizes_[first + i]);
      write(assets_[i], asset_sizes_[first + i], first + i);
      for (void* const temporary : temporaries) {
        damage_ |= scenario::tag_of(temporary) ^ i;
        memory_.release(temporary);
      }
    }
    damage_ |= scenario::tag_of(packed) ^ asset;
    memory_.release(packed);
  }

  void show_picture() {
    const std::uint64_t first = pictures_ * picture_objects;
    picture_watch_.start();
    {
      const typename Memory::Picture picture(memory_);
      for (std::uint32_t i = 0; i < picture_objects; ++i) {
        objects_[i] = memory_.allocate_in_picture(object_sizes_[first + i]);
        touch(objects_[i], object_sizes_[first + i], first + i);
      }
      if (pictures_ % checked_every == 0) {
        picture_watch_.stop();
        for (std::uint32_t i = 0; i < picture_objects; ++i)
          damage_ |= scenario::tag_of(objects_[i]) ^ (first + i);
        picture_watch_.start();
      }
      if constexpr (Memory::frees_objects) {
        for (std::uint32_t i = 0; i < picture_objects; ++i)
          memory_.release(objects_[i]);
      }
    }
    picture_watch_.stop();
    ++pictures_;
  }

  /// Writes the first eight bytes and the last one.
  static void touch(void* block, std::size_t size, std::uint64_t tag) {
    static_cast<unsigned char*>(block)[size - 1] = static_cast<unsigned char>(tag);
    std::memcpy(block, &tag, sizeof tag);
    scenario::escape(block);
  }

  static void write(void* block, std::size_t size, std::uint64_t tag) {
    scenario::fill_bytes(block, static_cast<unsigned char>(tag), size);
    touch(block, size, tag);
  }

  void check(const void* block, std::uint32_t size, std::uint64_t tag) {
    damage_ |= scenario::tag_of(block) ^ tag;
    const auto* const bytes = static_cast<const unsigned char*>(block);
    for (std::uint32_t i = sizeof tag; i < size; ++i)
      damage_ |= bytes[i] ^ static_cast<unsigned char>(tag);
  }

  Memory& memory_;
  const scenario::SizeCycle asset_sizes_;
  const scenario::SizeCycle temporary_sizes_;
  const scenario::SizeCycle object_sizes_;
  scenario::Table<void*> assets_;
  scenario::Table<void*> objects_;
  std::uint64_t temporaries_ = 0;
  std::uint64_t pictures_ = 0;
  std::uint64_t damage_ = 0;
  scenario::Stopwatch level_watch_;
  scenario::Stopwatch picture_watch_;
};

}  // namespace

int main(int argc, char** argv) {
  scenario::Choice memory("--memory", "plain|marker_arena|pmr");
  const auto arguments = scenario::parse_arguments(argc, argv, "levels", 12, 1, {&memory});
  scenario::Report report("level_loading");
  scenario::with_memory<Plain, MarkerArena, Pmr>(
      memory, report, [&](auto& kind) { Game(kind, arguments.seed).play(arguments.ops, report); });
  return report.finish(arguments);
}
