// stream_buffer: std::ostream and std::istream on an inline_stream do what they do on a std::stringbuf.
#include "sluice/stream_buffer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <iomanip>
#include <istream>
#include <iterator>
#include <limits>
#include <ostream>
#include <random>
#include <sstream>
#include <string>

#include "counting_resource.hpp"

namespace {

using library_test::CountingResource;
using sluice::inline_stream;
using sluice::stream_base;
using sluice::stream_buffer;

TEST(StreamBuffer, WritesWhatAnOstreamIsGiven) {
  CountingResource resource;
  inline_stream<64> stream(&resource);
  stream << "first ";
  {
    stream_buffer buffer(stream);
    std::ostream out(&buffer);
    out << std::hex << 255 << std::setw(5) << 'x' << std::endl;
    std::fill_n(std::ostreambuf_iterator<char>(out), 3, '.');
    EXPECT_EQ(out.tellp(), std::ostream::pos_type(static_cast<std::streamoff>(stream.size())));
    EXPECT_TRUE(out);
    EXPECT_EQ(&buffer.stream(), &stream);
  }
  EXPECT_EQ(stream.view(), "first ff    x\n...");
  EXPECT_EQ(stream.tell(), 0u);
  EXPECT_EQ(resource.allocations(), 0u);
}

TEST(StreamBuffer, ReadsFromThePositionOnAndGivesItBack) {
  inline_stream<8> stream("skip 12 words of text\nand a line\nlast");
  std::string word, line;
  int number = 0;
  EXPECT_TRUE(stream >> word);
  {
    stream_buffer buffer(stream);
    std::istream in(&buffer);
    EXPECT_TRUE(in >> number >> word);
    EXPECT_TRUE(number == 12 && word == "words");
    EXPECT_EQ(in.tellg(), std::istream::pos_type(13));
    EXPECT_EQ(in.peek(), ' ');
    EXPECT_TRUE(in.unget() && in.get() == 's');
  }
  EXPECT_EQ(stream.tell(), 13u);
  EXPECT_TRUE(stream >> word);
  EXPECT_EQ(word, "of");
  stream_buffer buffer(stream);
  std::istream in(&buffer);
  EXPECT_TRUE(std::getline(in, line) && line == " text");
  EXPECT_TRUE(std::getline(in, line) && line == "and a line");
  EXPECT_EQ(in.rdbuf()->in_avail(), 4);
  EXPECT_TRUE(std::getline(in, line) && line == "last" && in.eof());
  EXPECT_FALSE(std::getline(in, line));
  EXPECT_EQ(in.rdbuf()->in_avail(), -1);
  in.clear();
  EXPECT_TRUE(in.seekg(-4, std::ios::end) && in >> word);
  EXPECT_EQ(word, "last");
}

TEST(StreamBuffer, SeeksInsideOnly) {
  inline_stream<8> stream("0123456789");
  stream_buffer buffer(stream);
  std::iostream both(&buffer);
  const auto refuses = [&](auto seek) {
    const auto before = both.tellg();
    seek();
    EXPECT_TRUE(both.fail());
    both.clear();
    EXPECT_EQ(both.tellg(), before);
  };
  EXPECT_TRUE(both.seekg(4));
  refuses([&] { both.seekg(11); });
  refuses([&] { both.seekg(-1); });
  refuses([&] { both.seekg(-5, std::ios::cur); });
  refuses([&] { both.seekg(7, std::ios::cur); });
  refuses([&] { both.seekg(1, std::ios::end); });
  refuses([&] { both.seekg(std::numeric_limits<std::streamoff>::max(), std::ios::cur); });
  refuses([&] { both.seekg(std::numeric_limits<std::streamoff>::min(), std::ios::end); });
  refuses([&] { both.seekp(3); });
  EXPECT_TRUE(both.seekg(2, std::ios::cur) && both.get() == '6');
  EXPECT_TRUE(both.seekp(0, std::ios::end) && both << "AB");
  EXPECT_EQ(both.tellp(), std::iostream::pos_type(12));
  EXPECT_EQ(both.get(), '7') << "writing leaves the position of reading";
  EXPECT_TRUE(both.seekg(0, std::ios::end));
  EXPECT_EQ(both.get(), std::char_traits<char>::eof());
}

TEST(StreamBuffer, ReadsWhatIsWrittenAfterTheEndWasReached) {
  inline_stream<4> stream;
  stream_buffer buffer(stream);
  std::iostream both(&buffer);
  std::string word;
  for (int i = 0; i < 200; ++i) {
    both << 'w' << i << ' ';
    ASSERT_TRUE(both >> word) << i;
    ASSERT_EQ(word, "w" + std::to_string(i));
    ASSERT_FALSE(both >> word);
    both.clear();
  }
  both << "across ";  // the block moves while there is a get area
  EXPECT_EQ(both.peek(), 'a');
  both << std::string(10000, 'x');
  EXPECT_TRUE(both >> word);
  EXPECT_EQ(word, "across");
  EXPECT_TRUE(both >> word);
  EXPECT_EQ(word.size(), 10000u);
}

TEST(StreamBuffer, LetsTheStreamBeUsedInBetweenAfterASync) {
  inline_stream<4> stream("one two three");
  stream_buffer buffer(stream);
  std::istream in(&buffer);
  std::string word;
  EXPECT_TRUE(in >> word);
  in.sync();
  EXPECT_EQ(stream.tell(), 3u);
  EXPECT_TRUE(stream >> word);
  EXPECT_EQ(word, "two");
  stream << std::string(1000, '!');
  EXPECT_TRUE(in >> word);
  EXPECT_EQ(word, "three" + std::string(1000, '!'));
}

TEST(StreamBuffer, SetsBadbitWhenThereIsNoMemory) {
  CountingResource resource;
  inline_stream<8> stream(&resource);
  resource.fail_after(0);
  stream_buffer buffer(stream);
  std::ostream out(&buffer);
  out << "12345678";
  EXPECT_TRUE(out);
  out << "9";
  EXPECT_TRUE(out.bad());
  out.clear();
  out.put('9');
  EXPECT_TRUE(out.bad());
  EXPECT_EQ(stream.view(), "12345678");
}

// Random operations on an iostream over a stream_buffer and on one over a std::stringbuf.
void run_against_stringbuf(stream_base& stream, unsigned seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  stream_buffer buffer(stream);
  std::iostream tested(&buffer);
  std::stringstream model;
  const auto same_state = [&] { return tested.rdstate() == model.rdstate(); };
  for (int step = 0; step < 1500; ++step) {
    const auto number = static_cast<int>(random() >> random() % 32);
    const auto place = static_cast<std::streamoff>(random() % (stream.size() + 3)) - 1;
    const auto count = static_cast<std::streamsize>(random() % 20);
    std::array<char, 20> bytes{}, model_bytes{};
    std::string text, model_text;
    int value = 0, model_value = 0;
    const auto write_both = [&](const auto& what) {
      tested << what;
      model << what;
    };
    switch (random() % 11) {
      case 0:
        write_both(number);
        break;
      case 1:
        write_both(std::string(static_cast<std::size_t>(count), 'w') + '\n');
        break;
      case 2:
        write_both(' ');
        break;
      case 3:
        tested >> value;
        model >> model_value;
        break;
      case 4:
        tested >> text;
        model >> model_text;
        break;
      case 5:
        std::getline(tested, text);
        std::getline(model, model_text);
        break;
      case 6:
        tested.read(bytes.data(), count);
        model.read(model_bytes.data(), count);
        ASSERT_EQ(tested.gcount(), model.gcount());
        break;
      case 7:
        tested.seekg(place);
        model.seekg(place);
        break;
      case 8:
        tested.seekg(-place, std::ios::end);
        model.seekg(-place, std::ios::end);
        break;
      case 9:
        tested.seekg(place - 20, std::ios::cur);
        model.seekg(place - 20, std::ios::cur);
        break;
      default:
        ASSERT_EQ(tested.peek(), model.peek());
        tested.unget();
        model.unget();
    }
    ASSERT_TRUE(same_state()) << "step " << step;
    tested.clear();
    model.clear();
    ASSERT_EQ(value, model_value) << "step " << step;
    ASSERT_EQ(text, model_text) << "step " << step;
    ASSERT_EQ(bytes, model_bytes) << "step " << step;
    ASSERT_EQ(tested.tellg(), model.tellg()) << "step " << step;
    ASSERT_EQ(tested.tellp(), model.tellp()) << "step " << step;
    ASSERT_EQ(stream.view(), model.view()) << "step " << step;
  }
}

TEST(StreamBuffer, DoesWhatAStringbufDoes) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    inline_stream<0> none;
    inline_stream<100> some;
    run_against_stringbuf(none, seed);
    run_against_stringbuf(some, seed);
  }
}

}  // namespace
