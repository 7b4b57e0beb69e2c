// inline_buffer against std::string: the same random operations must give the same bytes, wherever they stand.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include "counting_resource.hpp"
#include "sluice/inline_buffer.hpp"

namespace {

using library_test::CountingResource;
using sluice::buffer_base;
using sluice::inline_buffer;

std::string letters(std::size_t count) {
  std::string text(count, '\0');
  for (std::size_t i = 0; i < count; ++i)
    text[i] = static_cast<char>('a' + i % 26);
  return text;
}

// Random operations through the base, on the buffer and on a string.
void run_against_string(buffer_base& buffer, buffer_base& other, const CountingResource& resource, unsigned seed) {
  const std::size_t N = buffer.inline_capacity();
  SCOPED_TRACE(testing::Message() << "N " << N << ", seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random() % end); };
  std::string model, other_model;
  for (int step = 0; step < 4000; ++step) {
    const std::size_t place = below(model.size() + 1);
    const std::size_t count = below(model.size() - place + 1);
    const std::string text = letters(below(2 * N + 4));
    switch (below(17)) {
      case 0:
      case 1:
        buffer.append(text);
        model += text;
        break;
      case 2:
        buffer.append(buffer.data() + place, count);
        model += std::string(model, place, count);
        break;
      case 3:
      case 4:
        buffer.push_back(static_cast<char>(step));
        model.push_back(static_cast<char>(step));
        break;
      case 5:
        if (!model.empty()) {
          buffer.pop_back();
          model.pop_back();
        }
        break;
      case 6:
        buffer.erase(place, count);
        model.erase(place, count);
        break;
      case 7:
        buffer.insert(place, text);
        model.insert(place, text);
        break;
      case 8:
        buffer.resize(place, 'r');
        model.resize(place, 'r');
        break;
      case 9:
        buffer.resize(model.size() + text.size(), 'r');
        model.resize(model.size() + text.size(), 'r');
        break;
      case 10:
        buffer.reserve(text.size());
        break;
      case 11:
        buffer.shrink_to_fit();
        ASSERT_TRUE(buffer.size() > N || buffer.is_inline());
        break;
      case 12:
        buffer = other;
        model = other_model;
        break;
      case 13:
        buffer = std::move(other);
        model = other_model;
        other_model.clear();
        break;
      case 14:
        other.swap(buffer);
        model.swap(other_model);
        break;
      case 15:
        buffer.assign(buffer.view().substr(place, count));
        model = std::string(model, place, count);
        break;
      default:
        if (model.size() > 8 * N + 64) {
          buffer.clear();
          model.clear();
        }
    }
    ASSERT_EQ(buffer.view(), model) << "step " << step;
    ASSERT_EQ(other.view(), other_model) << "step " << step;  // NOLINT: moved from, it is empty
    ASSERT_EQ(resource.live_blocks(), (buffer.is_inline() ? 0u : 1u) + (other.is_inline() ? 0u : 1u));
    ASSERT_GE(buffer.capacity(), std::max(buffer.size(), buffer.inline_capacity()));
    ASSERT_GE(other.capacity(), std::max(other.size(), other.inline_capacity()));
  }
}

template <std::size_t N>
void run_against_string(unsigned seed) {
  CountingResource resource;
  inline_buffer<N> buffer(&resource);
  inline_buffer<N / 2 + 3> other(&resource);
  run_against_string(buffer, other, resource, seed);
}

TEST(InlineBufferModel, DoesWhatAStringDoes) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    run_against_string<0>(seed);
    run_against_string<1>(seed);
    run_against_string<16>(seed);
    run_against_string<100>(seed);
  }
}

}  // namespace
