// inline_stream against std::stringstream: the same random operations must read and write the same.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <sstream>
#include <string>

#include "sluice/inline_stream.hpp"

namespace {

using sluice::inline_stream;
using sluice::stream_base;

// Random operations through the base, on the stream and on a std::stringstream, whose state is cleared after each.
void run_against_stringstream(stream_base& stream, unsigned seed) {
  SCOPED_TRACE(testing::Message() << "N " << stream.inline_capacity() << ", seed " << seed);
  std::mt19937 random(seed);
  std::stringstream model;
  model << std::boolalpha;
  std::size_t model_position = 0;
  for (int step = 0; step < 1500; ++step) {
    const auto number = static_cast<int>(random() >> random() % 32);
    std::array<char, 16> bytes{}, model_bytes{};
    const std::size_t count = random() % 17;
    std::string text, model_text;
    int value = 0, model_value = 0;
    double real = 0, model_real = 0;
    bool is_read = true, model_is_read = true;
    switch (random() % 12) {
      case 0:
        stream << number << ' ';
        model << number << ' ';
        break;
      case 1:
        stream << "some words\n" << 'c' << ' ';
        model << "some words\n" << 'c' << ' ';
        break;
      case 2:
        stream << number / 8.0 << '\n';
        model.precision(17);
        model << number / 8.0 << '\n';
        break;
      case 3:
        stream.write(&number, sizeof number);
        model.write(reinterpret_cast<const char*>(&number), sizeof number);
        break;
      case 4:
        stream << true << '\t' << reinterpret_cast<const void*>(std::uintptr_t{0x1f}) << std::string(count, '.');
        model << true << "\t0x1f" << std::string(count, '.');
        break;
      case 5:
        is_read = bool(stream >> value);
        model_is_read = bool(model >> model_value);
        if (!is_read) model_value = value = 0;  // std::stringstream writes a value where it fails
        break;
      case 6:
        is_read = bool(stream >> real);
        model_is_read = bool(model >> model_real);
        if (!is_read) model_real = real = 0;
        break;
      case 7:
        is_read = bool(stream >> text);
        model_is_read = bool(model >> model_text);
        break;
      case 8:
        is_read = stream.getline(text);
        model_is_read = bool(std::getline(model, model_text));
        break;
      case 9:
        is_read = stream.read(bytes.data(), count);
        model_is_read = bool(model.read(model_bytes.data(), static_cast<std::streamsize>(count)));
        if (!is_read) model_bytes.fill(0);
        break;
      case 10:
        if (stream.size() > 400) {
          stream.reset();
          model.str("");
        }
        break;
      default:
        model_position = random() % (stream.size() + 1);
        ASSERT_TRUE(stream.seek(model_position));
        model.seekg(static_cast<std::streamoff>(model_position));
    }
    ASSERT_EQ(is_read, model_is_read) << "step " << step;
    ASSERT_EQ(value, model_value) << "step " << step;
    ASSERT_EQ(real, model_real) << "step " << step;
    ASSERT_EQ(text, model_text) << "step " << step;
    ASSERT_EQ(bytes, model_bytes) << "step " << step;
    ASSERT_EQ(stream.view(), model.view()) << "step " << step;
    model.clear();
    stream.clear();
    // Where a read has failed, std::stringstream has gone on.
    if (!is_read) model.seekg(static_cast<std::streamoff>(stream.tell()));
    ASSERT_EQ(static_cast<std::streamoff>(stream.tell()), static_cast<std::streamoff>(model.tellg()))
        << "step " << step;
  }
}

TEST(InlineStreamModel, DoesWhatAStringstreamDoes) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    inline_stream<0> none;
    inline_stream<16> some;
    inline_stream<1000> all;
    run_against_stringstream(none, seed);
    run_against_stringstream(some, seed);
    run_against_stringstream(all, seed);
    EXPECT_TRUE(all.is_inline());
  }
}

}  // namespace
