// What the microbenchmarks share: names that scripts/bench-library takes apart, a loop that counts operations, and ways
// to keep the compiler from removing what is measured. Open it to change how a case is named or timed.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace micro {

/// The compiler must have made this value, and must take all memory that others can reach for changed.
template <class T>
inline void consume(const T& value) {
  if constexpr (std::is_scalar_v<T>)
    asm volatile("" : : "r,m"(value) : "memory");
  else
    asm volatile("" : : "m"(value) : "memory");
}

/// The compiler must not know what this object or value is, nor where it came from.
template <class T>
inline void blur(T& value) {
  if constexpr (std::is_pointer_v<T> || std::is_integral_v<T>)
    asm volatile("" : "+r"(value) : : "memory");
  else
    asm volatile("" : "+m"(value) : : "memory");
}

/// Adds a benchmark. `component` is a table, `what` a row of it, and `who` a column: "sluice::pool" for ours. `body` is
/// called with the state each time Google Benchmark tries a number of iterations, so it makes what it needs itself.
/// Whatever the order of these calls, the benchmarks of one row run one after another.
void add(const std::string& component, const std::string& what, const std::string& who,
         std::function<void(benchmark::State&)> body);

/// Times `step`, each call of which does `operations` of what the table shows nanoseconds for.
template <class Step>
void measure(benchmark::State& state, std::size_t operations, Step&& step) {
  for ([[maybe_unused]] auto turn : state)
    step();
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * operations));
}

/// Each case draws from a generator of its own, so that every peer sees the same sequence.
inline std::mt19937_64 fixed_random(std::uint64_t seed = 1) {
  return std::mt19937_64(seed * 0x9e3779b97f4a7c15);
}

/// `count` numbers below `limit`.
inline std::vector<std::uint32_t> random_numbers(std::size_t count, std::uint32_t limit, std::uint64_t seed = 1) {
  std::mt19937_64 random = fixed_random(seed);
  std::vector<std::uint32_t> numbers(count);
  for (std::uint32_t& number : numbers)
    number = static_cast<std::uint32_t>(random() % limit);
  return numbers;
}

/// Adds what the executable measures; each *_micro.cpp defines it.
void add_all();

}  // namespace micro
