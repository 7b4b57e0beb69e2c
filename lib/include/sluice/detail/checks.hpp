// The parts that checked pools, stacks and arenas are made of, each empty under `unchecked`: a name, a bitmap of what
// is handed out, fences and poison. Open it to change what a check costs or how it looks at memory.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

#include "sluice/violation.hpp"

namespace sluice::detail {

// The name of an object in messages. A member of this type is [[no_unique_address]].
template <class Checks, bool = Checks::enabled>
class object_name {
 public:
  constexpr explicit object_name(const char* name) noexcept : name_(name != nullptr ? name : "") {}
  constexpr const char* get() const noexcept { return name_; }

 private:
  const char* name_;
};
template <class Checks>
class object_name<Checks, false> {
 public:
  constexpr explicit object_name(const char*) noexcept {}
  constexpr const char* get() const noexcept { return ""; }
};

// One bit for each of N places: whether it is handed out.
template <std::size_t N, class Checks, bool = Checks::enabled>
class occupancy {
 public:
  constexpr bool test(std::size_t place) const noexcept { return (words_[place / bits] >> place % bits & 1) != 0; }
  constexpr void set(std::size_t place) noexcept { words_[place / bits] |= std::size_t{1} << place % bits; }
  constexpr void reset(std::size_t place) noexcept { words_[place / bits] &= ~(std::size_t{1} << place % bits); }
  constexpr void clear() noexcept {
    for (std::size_t& word : words_)
      word = 0;
  }

 private:
  static constexpr std::size_t bits = sizeof(std::size_t) * CHAR_BIT;
  std::size_t words_[(N + bits - 1) / bits] = {};
};
template <std::size_t N, class Checks>
class occupancy<N, Checks, false> {
 public:
  constexpr bool test(std::size_t) const noexcept { return false; }
  constexpr void set(std::size_t) noexcept {}
  constexpr void reset(std::size_t) noexcept {}
  constexpr void clear() noexcept {}
};

// Effects: calls the handler. For what has no address.
template <class Checks>
constexpr void report(violation_kind kind, const char* component, const object_name<Checks>& name, const void* object,
                      std::size_t value) {
  report_violation({kind, component, name.get(), object, nullptr, value});
}

// Effects: calls the handler. For a block.
template <class Checks>
constexpr void report_block(violation_kind kind, const char* component, const object_name<Checks>& name,
                            const void* object, const void* block) {
  report_violation({kind, component, name.get(), object, block, 0});
}

// Returns: the entry. A table's entries get their values as it is used, which gcc does not follow through a sanitizer's
// code: it then warns of what cannot happen.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
template <class T>
constexpr T initialized(const T& entry) noexcept {
  return entry;
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

inline constexpr unsigned char poison_byte = 0xdd;  // fills released blocks
inline constexpr unsigned char fence_byte = 0xfd;   // stands behind blocks that are handed out
inline constexpr std::size_t fence_bytes = 8;

inline void fill(void* start, std::size_t size, unsigned char value) noexcept {
  auto* const bytes = static_cast<volatile unsigned char*>(start);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = value;
}

// Returns: whether all bytes have the value.
inline bool is_filled(const void* start, std::size_t size, unsigned char value) noexcept {
  const auto* const bytes = static_cast<const volatile unsigned char*>(start);
  for (std::size_t i = 0; i < size; ++i)
    if (bytes[i] != value) return false;
  return true;
}

}  // namespace sluice::detail
