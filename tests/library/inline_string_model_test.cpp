// inline_string against std::basic_string: random sequences of operations must leave the same characters.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <list>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "counting_resource.hpp"
#include "sluice/inline_string.hpp"

namespace {

using library_test::CountingResource;

// A string of ours and one of the standard's, which are changed alike.
template <class Char, std::size_t N>
class Pair {
 public:
  using Model = std::basic_string<Char>;
  using View = std::basic_string_view<Char>;
  using Ours = sluice::basic_inline_string<Char, N>;
  using Other = sluice::basic_inline_string<Char, (N / 2 + 3)>;

  explicit Pair(unsigned seed) : random_(seed), ours_(&resource_), other_(&resource_) {}

  void step() {
    switch (below(6)) {
      case 0:
        assign();
        break;
      case 1:
        append();
        break;
      case 2:
        insert_or_erase();
        break;
      case 3:
        replace();
        break;
      case 4:
        resize_or_move();
        break;
      default:
        part_of_itself();
        break;
    }
    // Short again now and then, so that all sizes around the inline capacity come up.
    if (model_.size() > 3 * N + 60) {
      ours_.erase(N / 2);
      model_.erase(N / 2);
    }
  }

  void check() {
    expect_whole(ours_, model_);
    expect_whole(other_, other_model_);
    search();
    compare();
  }

 private:
  template <std::size_t M>
  static void expect_whole(const sluice::basic_inline_string<Char, M>& ours, const Model& model) {
    ASSERT_EQ(View(ours), View(model));
    ASSERT_EQ(ours.data()[ours.size()], Char());
    ASSERT_LE(ours.size(), ours.capacity());
    ASSERT_GE(ours.capacity(), M);
    ASSERT_FALSE(ours.is_inline() && ours.size() > M);
    ASSERT_FALSE(ours.is_inline() && ours.capacity() != M);
  }

  std::size_t below(std::size_t end) { return random_() % end; }
  Char letter() { return static_cast<Char>('a' + below(3)); }
  Model letters() {
    Model text(below(4) == 0 ? below(2 * N + 40) : below(12), Char());
    for (Char& one : text)
      one = letter();
    return text;
  }
  // After the call that returned the position: a comparison with begin() might read that before.
  std::size_t index_of(const Char* position) { return static_cast<std::size_t>(position - ours_.begin()); }
  std::size_t place() { return below(model_.size() + 1); }

  void assign() {
    const Model text = letters();
    switch (below(9)) {
      case 0:
        ours_ = text, model_ = text;
        break;
      case 1:
        ours_ = text.c_str(), model_ = text;
        break;
      case 2:
        ours_ = Char('x'), model_ = Char('x');
        break;
      case 3:
        ours_.assign(text.data(), text.size() / 2), model_.assign(text.data(), text.size() / 2);
        break;
      case 4:
        ours_.assign(text.size(), Char('y')), model_.assign(text.size(), Char('y'));
        break;
      case 5:
        ours_.assign(text, text.size() / 3, 7), model_.assign(text, text.size() / 3, 7);
        break;
      case 6:
        ours_ = other_, model_ = other_model_;
        break;
      case 7: {
        const std::list<Char> list(text.begin(), text.end());
        ours_.assign(list.begin(), list.end()), model_ = text;
        break;
      }
      default:
        other_.assign(text.begin(), text.end()), other_model_ = text;
        break;
    }
  }

  void append() {
    const Model text = letters();
    switch (below(9)) {
      case 0:
        ours_ += text, model_ += text;
        break;
      case 1:
        ours_ += text.c_str(), model_ += text;
        break;
      case 2:
        for (std::size_t i = 0; i < 20; ++i)
          ours_ += Char('z'), model_ += Char('z');
        break;
      case 3:
        ours_.append(text, text.size() / 2), model_.append(text, text.size() / 2);
        break;
      case 4:
        ours_.append(text.size(), Char('y')), model_.append(text.size(), Char('y'));
        break;
      case 5:
        ours_.append(text.rbegin(), text.rend()), model_.append(text.rbegin(), text.rend());
        break;
      case 6:
        ours_.append_range(text), model_.append(text);
        break;
      case 7: {
        std::basic_istringstream<Char> in(text);
        ours_.append(std::istreambuf_iterator<Char>(in), std::istreambuf_iterator<Char>()), model_.append(text);
        break;
      }
      default:
        ours_ += {Char('i'), Char('j')}, model_ += {Char('i'), Char('j')};
        break;
    }
  }

  void insert_or_erase() {
    const Model text = letters();
    const std::size_t at = place(), count = below(10);
    const auto offset = static_cast<std::ptrdiff_t>(at);
    switch (below(9)) {
      case 0:
        ours_.insert(at, text), model_.insert(at, text);
        break;
      case 1:
        ours_.insert(at, text.c_str()), model_.insert(at, text.c_str());
        break;
      case 2:
        ours_.insert(at, count, Char('n')), model_.insert(at, count, Char('n'));
        break;
      case 3:
        ASSERT_EQ(index_of(ours_.insert(ours_.begin() + at, Char('m'))), at);
        model_.insert(model_.begin() + offset, Char('m'));
        break;
      case 4:
        ASSERT_EQ(index_of(ours_.insert(ours_.cbegin() + at, text.begin(), text.end())), at);
        model_.insert(model_.begin() + offset, text.begin(), text.end());
        break;
      case 5:
        ours_.erase(at, count), model_.erase(at, count);
        break;
      case 6:
        if (at == model_.size()) break;
        ASSERT_EQ(index_of(ours_.erase(ours_.begin() + at)), at);
        model_.erase(model_.begin() + offset);
        break;
      case 7:
        ASSERT_EQ(index_of(ours_.erase(ours_.begin() + at, ours_.end())), at);
        model_.erase(model_.begin() + offset, model_.end());
        break;
      default:
        ASSERT_EQ(erase(ours_, Char('a')), std::erase(model_, Char('a')));
        break;
    }
  }

  void replace() {
    const Model text = letters();
    const std::size_t at = place(), count = below(10);
    const std::size_t end = at + std::min(count, model_.size() - at);
    const auto first = model_.cbegin() + static_cast<std::ptrdiff_t>(at);
    const auto last = model_.cbegin() + static_cast<std::ptrdiff_t>(end);
    switch (below(7)) {
      case 0:
        ours_.replace(at, count, text), model_.replace(at, count, text);
        break;
      case 1:
        ours_.replace(at, count, text.c_str(), text.size() / 2),
            model_.replace(at, count, text.c_str(), text.size() / 2);
        break;
      case 2:
        ours_.replace(at, count, count / 2 + 3, Char('r')), model_.replace(at, count, count / 2 + 3, Char('r'));
        break;
      case 3:
        ours_.replace(at, count, text, text.size() / 3, 4), model_.replace(at, count, text, text.size() / 3, 4);
        break;
      case 4:
        ours_.replace(ours_.begin() + at, ours_.begin() + end, text), model_.replace(first, last, text);
        break;
      case 5:
        ours_.replace(ours_.cbegin() + at, ours_.cbegin() + end, text.rbegin(), text.rend());
        model_.replace(first, last, text.rbegin(), text.rend());
        break;
      default:
        ours_.replace(ours_.begin() + at, ours_.end(), {Char('p'), Char('q')});
        model_.replace(first, model_.cend(), {Char('p'), Char('q')});
        break;
    }
  }

  void resize_or_move() {
    const std::size_t size = below(2 * N + 20);
    switch (below(12)) {
      case 0:
        ours_.resize(size, Char('s')), model_.resize(size, Char('s'));
        break;
      case 1:
        ours_.reserve(size), ours_.reserve(0);
        ASSERT_GE(ours_.capacity(), size);
        break;
      case 2:
        ours_.shrink_to_fit();
        ASSERT_EQ(ours_.capacity(), std::max(N, ours_.size()));
        break;
      case 3:
        ours_.clear(), model_.clear();
        break;
      case 4:
        swap(ours_, other_), swap(model_, other_model_);
        break;
      case 5:
        other_ = std::move(ours_), other_model_ = std::move(model_);
        model_.clear();
        break;
      case 6: {
        Ours moved(std::move(ours_));
        ASSERT_TRUE(ours_.empty());
        ours_.swap(moved);
        break;
      }
      case 7: {
        const Ours copied(ours_);
        ours_.clear();
        ours_ = copied;
        break;
      }
      case 8:
        if (model_.empty()) break;
        ours_.pop_back(), model_.pop_back();
        break;
      case 9:
        ours_.resize_and_overwrite(size, [&](Char* characters, std::size_t most) {
          for (std::size_t i = 0; i < most; ++i)
            characters[i] = static_cast<Char>('A' + i % 26);
          return most / 2;
        });
        model_.clear();
        for (std::size_t i = 0; i < size / 2; ++i)
          model_ += static_cast<Char>('A' + i % 26);
        break;
      case 10:
        ours_ = ours_ + other_ + Char('+') + other_model_, model_ = model_ + other_model_ + Char('+') + other_model_;
        break;
      default:
        ours_ = ours_.substr(model_.size() / 2, size), model_ = model_.substr(model_.size() / 2, size);
        break;
    }
  }

  void part_of_itself() {
    const std::size_t at = place(), from = place(), count = below(model_.size() + 1), gone = below(8);
    const Model part = model_.substr(from, count);
    switch (below(9)) {
      case 0:
        ours_.append(ours_), model_ += Model(model_);
        break;
      case 1:
        ours_.insert(at, ours_), model_.insert(at, Model(model_));
        break;
      case 2:
        ours_.insert(at, ours_.view(from, count)), model_.insert(at, part);
        break;
      case 3:
        ours_.replace(at, gone, ours_.view(from, count)), model_.replace(at, gone, part);
        break;
      case 4:
        ours_ = ours_.view(from, count), model_ = part;
        break;
      case 5:
        ours_ = ours_.c_str() + from, model_ = Model(model_.c_str() + from);
        break;
      case 6:
        ours_.replace(ours_.begin() + at, ours_.begin() + std::min(at + gone, ours_.size()), ours_.rbegin(),
                      ours_.rend());
        model_.replace(at, gone, Model(model_.rbegin(), model_.rend()));
        break;
      case 7: {  // the terminator too
        const Model with_terminator = model_.substr(from) + Char();
        ours_.insert(at, ours_.data() + from, with_terminator.size()), model_.insert(at, with_terminator);
        break;
      }
      default:
        ours_.append(ours_.data() + from, part.size()), model_ += part;
        break;
    }
  }

  void search() {
    const Model part = letters().substr(0, 2);
    const View wanted(part);
    const std::size_t from = place();
    ASSERT_EQ(ours_.find(wanted, from), model_.find(wanted, from));
    ASSERT_EQ(ours_.find(part.c_str(), from, wanted.size()), model_.find(part.c_str(), from, wanted.size()));
    ASSERT_EQ(ours_.rfind(wanted, from), model_.rfind(wanted, from));
    ASSERT_EQ(ours_.rfind(Char('b')), model_.rfind(Char('b')));
    ASSERT_EQ(ours_.find_first_of(wanted, from), model_.find_first_of(wanted, from));
    ASSERT_EQ(ours_.find_last_of(wanted, from), model_.find_last_of(wanted, from));
    ASSERT_EQ(ours_.find_first_not_of(wanted, from), model_.find_first_not_of(wanted, from));
    ASSERT_EQ(ours_.find_last_not_of(Char('a'), from), model_.find_last_not_of(Char('a'), from));
    ASSERT_EQ(ours_.contains(wanted), model_.find(wanted) != Model::npos);
    ASSERT_EQ(ours_.starts_with(wanted), model_.starts_with(wanted));
    ASSERT_EQ(ours_.ends_with(wanted), model_.ends_with(wanted));
  }

  void compare() {
    ASSERT_EQ(ours_ == other_, model_ == other_model_);
    ASSERT_EQ(ours_ <=> other_, model_ <=> other_model_);
    ASSERT_EQ(ours_ < other_model_.c_str(), View(model_) < View(other_model_.c_str()));
    const std::size_t at = place();
    const int expected = View(model_).substr(at, 5).compare(other_model_);
    const int compared = ours_.compare(at, 5, other_);
    ASSERT_EQ(compared < 0, expected < 0);
    ASSERT_EQ(compared > 0, expected > 0);
  }

  std::mt19937 random_;
  CountingResource resource_;
  Ours ours_;
  Model model_;
  Other other_;
  Model other_model_;
};

template <class Char, std::size_t N>
void agree_with_the_model() {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("N " + std::to_string(N) + ", seed " + std::to_string(seed));
    Pair<Char, N> pair(seed);
    for (int step = 0; step < 1500; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      pair.step();
      pair.check();
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(InlineString, HoldsWhatStdStringHoldsWithNoRoomInside) {
  agree_with_the_model<char, 0>();
}
TEST(InlineString, HoldsWhatStdStringHoldsWithRoomForOne) {
  agree_with_the_model<char, 1>();
}
TEST(InlineString, HoldsWhatStdStringHoldsWithRoomFor15) {
  agree_with_the_model<char, 15>();
}
TEST(InlineString, HoldsWhatStdStringHoldsWithRoomFor23) {
  agree_with_the_model<char, 23>();
}
TEST(InlineString, HoldsWhatStdStringHoldsWithRoomFor200) {
  agree_with_the_model<char, 200>();
}
TEST(InlineString, HoldsWhatStdWstringHolds) {
  agree_with_the_model<wchar_t, 5>();
}

}  // namespace
