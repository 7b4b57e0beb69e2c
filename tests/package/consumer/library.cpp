// Uses each part of the header-only library once, as a program does that has only the installed headers, and exits with
// 0 when each gave what it promises.
#include <array>
#include <cstdint>
#include <cstdio>
#include <list>
#include <memory_resource>
#include <ostream>
#include <sluice/handle_stack.hpp>
#include <sluice/hash.hpp>
#include <sluice/index_pool.hpp>
#include <sluice/index_stack.hpp>
#include <sluice/inline_buffer.hpp>
#include <sluice/inline_map.hpp>
#include <sluice/inline_set.hpp>
#include <sluice/inline_stream.hpp>
#include <sluice/inline_string.hpp>
#include <sluice/inline_vector.hpp>
#include <sluice/lifo_resource.hpp>
#include <sluice/lifo_stack.hpp>
#include <sluice/marker_arena.hpp>
#include <sluice/marker_resource.hpp>
#include <sluice/pool.hpp>
#include <sluice/pool_resource.hpp>
#include <sluice/split.hpp>
#include <sluice/split_index_stack.hpp>
#include <sluice/stack_pool.hpp>
#include <sluice/stream_buffer.hpp>
#include <sluice/violation.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace {

int failures = 0;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "library: %s\n", what);
  ++failures;
}

struct Particle {
  float x, y;
};
struct Tile {
  std::uint8_t x, y;
  std::uint16_t page;
  bool operator==(const Tile&) const = default;
};

void use_pools() {
  sluice::stack_pool<Particle, 64> particles;
  Particle* const spark = particles.create(1.0f, 2.0f);
  require(spark != nullptr && spark->y == 2.0f && particles.size() == 1, "stack_pool");
  particles.destroy(spark);

  sluice::index_pool<std::string, 256> sprites;
  const auto hero = sprites.create("hero");
  require(hero && sizeof(*hero) == 1 && sprites[*hero] == "hero", "index_pool");
  sprites.destroy(*hero);

  sluice::pool<std::string> names(10);
  std::string* const name = names.create("a name that is too long for a short string");
  require(name->size() > 30 && names.size() == 1, "pool");
  names.destroy(name);

  sluice::pool_resource<64> nodes;
  std::pmr::list<int> numbers({1, 2, 3}, &nodes);
  require(numbers.size() == 3 && nodes.size() == 3, "pool_resource");
}

void use_stacks() {
  sluice::index_stack<256> handles;
  const auto first = handles.pop();
  require(first && handles.in_use() == 1, "index_stack");
  handles.push(*first);

  sluice::split_index_stack<18, 1024> blocks;
  require(blocks.push(0x3ffff) && blocks.pop() == 0x3ffffu && sizeof blocks < 1024 * 3, "split_index_stack");

  sluice::handle_stack<Tile, 64> tiles;
  require(tiles.push({1, 2, 3}) && tiles.pop() == Tile{1, 2, 3}, "handle_stack");
}

void use_arenas() {
  alignas(std::max_align_t) std::array<std::byte, 1024> memory;
  sluice::lifo_stack<> stack(memory.data(), memory.size());
  void* const block = stack.try_allocate(100);
  require(block != nullptr && stack.top() == block, "lifo_stack");
  stack.pop(block);

  sluice::lifo_resource<> scratch(4096);
  std::pmr::vector<int> growing(&scratch);
  for (int i = 0; i < 100; ++i)
    growing.push_back(i);
  require(growing[99] == 99, "lifo_resource");

  sluice::marker_arena<> level(memory.data(), memory.size());
  Particle* const lasting = level.create<Particle>(1.0f, 2.0f);
  const std::size_t before = level.used();
  {
    const sluice::marker_arena<>::frame picture(level);
    require(level.create<Particle>(3.0f, 4.0f) != nullptr && level.used() > before, "marker_arena");
  }
  require(level.used() == before && lasting->x == 1.0f, "marker_arena::frame");
  level.clear();

  sluice::marker_resource<> assets(4096);
  const auto start = assets.mark();
  {
    std::pmr::string text("the name of an asset that takes memory", &assets);
    require(text.size() == 38, "marker_resource");
  }
  assets.rewind(start);
}

void fill(sluice::vector_base<int>& numbers, sluice::string_base& text, sluice::map_base<int, int>& squares,
          sluice::set_base<std::string>& words, sluice::buffer_base& bytes, sluice::stream_base& stream) {
  for (int i = 0; i < 100; ++i) {
    numbers.push_back(i);
    squares[i] = i * i;
    words.insert(std::to_string(i));
    bytes.push_back('b');
    text += "text";
    stream << i << ' ';
  }
}

void use_containers() {
  sluice::inline_vector<int, 4> numbers;
  sluice::inline_string<15> text;
  sluice::inline_map<int, int, 8> squares;
  sluice::inline_set<std::string, 8> words;
  sluice::inline_buffer<32> bytes;
  sluice::inline_stream<32> stream;
  fill(numbers, text, squares, words, bytes, stream);
  require(numbers.size() == 100 && numbers[99] == 99, "inline_vector");
  require(text.size() == 400 && text.starts_with("texttext"), "inline_string");
  require(squares.size() == 100 && squares.at(12) == 144, "inline_map");
  require(words.size() == 100 && words.contains(std::string_view("42")), "inline_set");
  require(bytes.size() == 100, "inline_buffer");
  int read = -1;
  require(stream >> read && read == 0, "inline_stream");
  sluice::stream_buffer adaptor(stream);
  std::ostream out(&adaptor);
  out << "more" << std::flush;
  require(stream.view().ends_with("more"), "stream_buffer");

  sluice::inline_vector<sluice::inline_string<7>, 4> pieces;
  sluice::split("one,two,a piece that is longer", ',', pieces);
  require(pieces.size() == 3 && pieces[1] == "two", "split");
  require(sluice::hash<int>()(1) != sluice::hash<int>()(2), "hash");
}

}  // namespace

int main() {
  use_pools();
  use_stacks();
  use_arenas();
  use_containers();
  return failures == 0 ? 0 : 1;
}
