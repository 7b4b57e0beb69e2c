// An element type that knows which of its objects live, and throws when it is told to. Open it to prove that a
// container begins and ends each element's life once, and stays whole when a constructor throws.
#pragma once

#include <gtest/gtest.h>

#include <compare>
#include <cstddef>
#include <functional>
#include <limits>
#include <set>
#include <stdexcept>

namespace library_test {

// While one of these exists, Tracked counts; at its end none may live.
class Tracking {
 public:
  Tracking() { live().clear(); }
  ~Tracking() {
    never_throw();
    EXPECT_EQ(live().size(), 0u) << "objects were not destroyed";
    live().clear();
  }
  Tracking(const Tracking&) = delete;
  Tracking& operator=(const Tracking&) = delete;

  // The construction (of any kind) or copy assignment after `successes` more throws std::runtime_error, as do all
  // later.
  static void throw_after(std::size_t successes) { left() = successes; }
  static void never_throw() { left() = std::numeric_limits<std::size_t>::max(); }
  static std::size_t living() { return live().size(); }
  static std::size_t copies() { return copy_count(); }

 private:
  template <bool>
  friend class BasicTracked;
  static std::set<const void*>& live() {
    static std::set<const void*> addresses;
    return addresses;
  }
  static std::size_t& left() {
    static std::size_t successes = std::numeric_limits<std::size_t>::max();
    return successes;
  }
  static std::size_t& copy_count() {
    static std::size_t copies = 0;
    return copies;
  }
  static void step() {
    if (left() == std::numeric_limits<std::size_t>::max()) return;
    if (left() == 0) throw std::runtime_error("told to throw");
    --left();
  }
};

// With NothrowMove its moves neither throw nor count as steps. Moved from, its value is -1.
template <bool NothrowMove>
class BasicTracked {
 public:
  BasicTracked() : BasicTracked(0) {}
  BasicTracked(int value) : value_(value) {  // NOLINT: an int stands for it
    Tracking::step();
    begin();
  }
  BasicTracked(const BasicTracked& other) : value_(other.value()) {
    Tracking::step();
    ++Tracking::copy_count();
    begin();
  }
  BasicTracked(BasicTracked&& other) noexcept(NothrowMove)  // NOLINT: gtest's macros may throw
      : value_(other.value()) {
    if constexpr (!NothrowMove) Tracking::step();
    other.value_ = -1;
    begin();
  }
  BasicTracked& operator=(const BasicTracked& other) {
    Tracking::step();
    ++Tracking::copy_count();
    must_live();
    value_ = other.value();
    return *this;
  }
  BasicTracked& operator=(BasicTracked&& other) noexcept(NothrowMove) {  // NOLINT: as above
    if constexpr (!NothrowMove) Tracking::step();
    must_live();
    if (this == &other) return *this;
    value_ = other.value();
    other.value_ = -1;
    return *this;
  }
  ~BasicTracked() { EXPECT_EQ(Tracking::live().erase(this), 1u) << "destroyed, but did not live"; }

  int value() const {
    must_live();
    return value_;
  }
  friend bool operator==(const BasicTracked& a, const BasicTracked& b) { return a.value() == b.value(); }
  friend auto operator<=>(const BasicTracked& a, const BasicTracked& b) { return a.value() <=> b.value(); }

 private:
  void begin() { EXPECT_TRUE(Tracking::live().insert(this).second) << "constructed where one lives"; }
  void must_live() const { EXPECT_EQ(Tracking::live().count(this), 1u) << "used, but does not live"; }

  int value_;
};

using Tracked = BasicTracked<true>;
using ThrowingMove = BasicTracked<false>;

}  // namespace library_test

template <bool NothrowMove>
struct std::hash<library_test::BasicTracked<NothrowMove>> {
  std::size_t operator()(const library_test::BasicTracked<NothrowMove>& tracked) const {
    return std::hash<int>()(tracked.value());
  }
};
