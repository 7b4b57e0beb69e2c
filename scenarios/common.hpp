// What every scenario program shares: arguments, random numbers, size mixes, tables outside the heap, and the
// report. Open it to change how a scenario is timed, how its memory is read, or what its JSON line says.
//
// A scenario measures whatever malloc the process was started with. So nothing here allocates from the heap
// before the report is complete: tables come straight from mmap, and the peak of memory is read before a line
// is formatted.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string_view>

namespace scenario {

/// Makes the compiler believe that the block is read and written elsewhere: it can neither drop the
/// allocation nor remember what was stored in it.
inline void escape(void* block) {
  asm volatile("" : : "r"(block) : "memory");
}

/// The C library's memcpy and memset, called for certain. A compiler puts a copy of its own into one variant of a
/// workload and not into another, and what then differs is not the memory.
inline void* (*const volatile copy_bytes)(void*, const void*, std::size_t) = std::memcpy;
inline void* (*const volatile fill_bytes)(void*, int, std::size_t) = std::memset;

/// SplitMix64: a counter put through a mixing function. The same seed gives the same workload under every
/// allocator.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t mixed = (state_ += 0x9e3779b97f4a7c15u);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
  }

  /// A number in [0, bound).
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32); }

  /// A number in [low, high].
  std::uint32_t between(std::uint32_t low, std::uint32_t high) { return low + below(high - low + 1); }

  /// A number in [2^low, 2^high), every doubling equally likely.
  std::uint32_t by_doubling(std::uint32_t low, std::uint32_t high) {
    const std::uint32_t power = 1u << between(low, high - 1);
    return power + below(power);
  }

 private:
  std::uint64_t state_;
};

/// Sizes of 8…1024 bytes as programs ask for them: half of them at most 64, one in seven above 256.
inline std::uint32_t small_size(Random& random) {
  const std::uint32_t kind = random.below(100);
  if (kind < 50) return random.between(8, 64);
  if (kind < 85) return random.between(65, 256);
  return random.between(257, 1024);
}

/// Sizes of a long-lived heap: mostly 16…512 bytes, three in a hundred up to 4 KiB.
inline std::uint32_t object_size(Random& random) {
  const std::uint32_t kind = random.below(100);
  if (kind < 55) return random.between(16, 64);
  if (kind < 85) return random.between(65, 160);
  if (kind < 97) return random.between(161, 512);
  if (kind < 99) return random.between(513, 1024);
  return random.between(1025, 4096);
}

/// A fixed-length array outside the heap, its pages present from the start: no fault of its own falls into
/// the measured part, and it weighs the same in the memory of every allocator.
template <class T>
class Table {
 public:
  explicit Table(std::size_t length) : length_(length) {
    void* const pages = mmap(nullptr, length * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
      std::perror("scenario: cannot map a table");
      std::exit(1);
    }
    std::memset(pages, 0, length * sizeof(T));
    items_ = static_cast<T*>(pages);
  }
  ~Table() { munmap(items_, length_ * sizeof(T)); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  T& operator[](std::size_t index) { return items_[index]; }
  const T& operator[](std::size_t index) const { return items_[index]; }
  std::size_t length() const { return length_; }

 private:
  T* items_;
  std::size_t length_;
};

/// A power-of-two cycle of sizes, drawn before the clock starts.
class SizeCycle {
 public:
  SizeCycle(std::size_t length, std::uint64_t seed, std::uint32_t (*draw)(Random&)) : sizes_(length) {
    Random random(seed);
    for (std::size_t i = 0; i < length; ++i)
      sizes_[i] = draw(random);
  }
  std::uint32_t operator[](std::uint64_t position) const { return sizes_[position & (sizes_.length() - 1)]; }

 private:
  Table<std::uint32_t> sizes_;
};

/// malloc that ends the scenario when it fails, writes `tag` into the first eight bytes and the block's last
/// byte. The size is at least eight.
inline void* allocate_tagged(std::size_t size, std::uint64_t tag) {
  void* const block = std::malloc(size);
  if (block == nullptr) {
    std::fprintf(stderr, "scenario: malloc(%zu) failed\n", size);
    std::_Exit(1);
  }
  static_cast<unsigned char*>(block)[size - 1] = static_cast<unsigned char>(tag);
  std::memcpy(block, &tag, sizeof tag);
  escape(block);
  return block;
}

/// The tag in the first eight bytes of the block.
inline std::uint64_t tag_of(const void* block) {
  std::uint64_t tag;
  std::memcpy(&tag, block, sizeof tag);
  return tag;
}

struct Arguments {
  std::uint64_t ops;
  std::uint64_t seed;
};

/// An argument that takes one of a few words. The first is the default.
class Choice {
 public:
  /// `words` are separated by bars.
  Choice(const char* name, std::string_view words) : name_(name), words_(words), chosen_(first_of(words)) {}

  const char* name() const { return name_; }
  std::string_view words() const { return words_; }
  std::string_view chosen() const { return chosen_; }

  /// Returns: whether `text` is one of the words; if so, it is the chosen one.
  bool choose(std::string_view text) {
    for (std::string_view rest = words_; !rest.empty();) {
      const std::string_view word = first_of(rest);
      if (word == text) {
        chosen_ = word;
        return true;
      }
      rest.remove_prefix(word.size() < rest.size() ? word.size() + 1 : word.size());
    }
    return false;
  }

 private:
  static std::string_view first_of(std::string_view words) { return words.substr(0, words.find('|')); }

  const char* name_;
  std::string_view words_;
  std::string_view chosen_;
};

constexpr unsigned long long largest_argument = 4'000'000'000;

[[noreturn]] inline void print_help(const char* program, const char* unit, std::uint64_t default_ops,
                                    std::initializer_list<Choice*> choices) {
  std::printf("Usage: %s [--ops N] [--seed N]", program);
  for (const Choice* const choice : choices)
    std::printf(" [%s %.*s]", choice->name(), static_cast<int>(choice->words().size()), choice->words().data());
  std::printf("\n  --ops N   %s (default %llu)\n  --seed N  of the workload\n", unit,
              static_cast<unsigned long long>(default_ops));
  std::exit(0);
}

/// Reads `--ops N`, `--seed N` and the choices; `unit` says in the help what one operation of this scenario is.
/// `least` is the smallest N that makes sense. Ends the program on `--help` and on anything else.
inline Arguments parse_arguments(int argc, char** argv, const char* unit, std::uint64_t default_ops,
                                 std::uint64_t least = 1, std::initializer_list<Choice*> choices = {}) {
  Arguments arguments{default_ops, 1};
  for (int i = 1; i < argc; ++i) {
    const char* const name = argv[i];
    if (std::strcmp(name, "--help") == 0) print_help(argv[0], unit, default_ops, choices);
    const char* const text = i + 1 < argc ? argv[i + 1] : "";
    Choice* named = nullptr;
    for (Choice* const choice : choices)
      if (std::strcmp(name, choice->name()) == 0) named = choice;
    const bool is_ops = std::strcmp(name, "--ops") == 0;
    if (named == nullptr && !is_ops && std::strcmp(name, "--seed") != 0) {
      std::fprintf(stderr, "%s: unknown argument '%s' (see --help)\n", argv[0], name);
      std::exit(2);
    }
    ++i;
    if (named != nullptr) {
      if (named->choose(text)) continue;
      std::fprintf(stderr, "%s: %s needs one of %.*s, not '%s'\n", argv[0], name,
                   static_cast<int>(named->words().size()), named->words().data(), text);
      std::exit(2);
    }
    char* end = nullptr;
    const unsigned long long value = std::strtoull(text, &end, 10);
    const std::uint64_t smallest = is_ops ? least : 0;
    if (*text < '0' || *text > '9' || *end != '\0' || value < smallest || value > largest_argument) {
      std::fprintf(stderr, "%s: %s needs a whole number from %llu to %llu, not '%s'\n", argv[0], name,
                   static_cast<unsigned long long>(smallest), largest_argument, text);
      std::exit(2);
    }
    (is_ops ? arguments.ops : arguments.seed) = value;
  }
  return arguments;
}

/// The most memory this process has had resident, in KiB. Linux carries getrusage's figure over exec from the
/// program that started this one, so the kernel's own high-water mark of this address space comes first.
inline long peak_rss_kib() {
  const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    char text[8192];
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    const char* const mark = std::strstr(text, "VmHWM:");
    if (mark != nullptr) return std::strtol(mark + 6, nullptr, 10);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// Adds up the time of a case that is interrupted by what is not measured.
class Stopwatch {
 public:
  void start() { started_ = std::chrono::steady_clock::now(); }
  void stop() { elapsed_ += std::chrono::steady_clock::now() - started_; }
  double nanoseconds() const { return std::chrono::duration<double, std::nano>(elapsed_).count(); }

 private:
  std::chrono::steady_clock::time_point started_{};
  std::chrono::steady_clock::duration elapsed_{};
};

/// Collects the timed cases of one scenario and prints them as one JSON line.
class Report {
 public:
  explicit Report(const char* scenario) : scenario_(scenario) {}

  /// Runs `body`, which performs `ops` operations, and records how long it took.
  template <class Body>
  void measure(const char* name, std::uint64_t ops, Body&& body) {
    Stopwatch watch;
    watch.start();
    body();
    watch.stop();
    add(name, ops, watch.nanoseconds());
  }

  /// Records a case that took so long for `ops` operations.
  void add(const char* name, std::uint64_t ops, double nanoseconds) {
    if (count_ == max_cases) std::abort();
    cases_[count_++] = {name, ops, nanoseconds / static_cast<double>(ops)};
  }

  /// Says which kind of memory the scenario ran with, and whether it had any effect under this malloc.
  void set_memory(const char* memory, bool in_effect) {
    memory_ = memory;
    in_effect_ = in_effect;
  }

  /// Remembers that a block did not hold what was written to it, when `holds` is false.
  void require(bool holds) { intact_ = intact_ && holds; }

  /// Prints the line; returns the program's exit status.
  int finish() {
    const long peak = peak_rss_kib();
    if (!intact_) {
      std::fprintf(stderr, "%s: a block did not hold what was written to it\n", scenario_);
      return 1;
    }
    std::printf("{\"scenario\":\"%s\",", scenario_);
    if (memory_ != nullptr)
      std::printf("\"memory\":\"%s\",\"memory_in_effect\":%s,", memory_, in_effect_ ? "true" : "false");
    std::printf("\"cases\":[");
    for (std::size_t i = 0; i < count_; ++i) {
      std::printf("%s{\"name\":\"%s\",\"ops\":%llu,\"ns_per_op\":%.4f}", i == 0 ? "" : ",", cases_[i].name,
                  static_cast<unsigned long long>(cases_[i].ops), cases_[i].ns_per_op);
    }
    std::printf("],\"peak_rss_kib\":%ld", peak);
    print_origin("malloc");
    print_origin("free");
    std::printf("}\n");
    return std::fflush(stdout) == 0 ? 0 : 1;
  }

 private:
  static constexpr std::size_t max_cases = 8;
  struct Case {
    const char* name;
    std::uint64_t ops;
    double ns_per_op;
  };

  /// Names the object file that serves `symbol` in this process.
  static void print_origin(const char* symbol) {
    Dl_info info{};
    void* const address = dlsym(RTLD_DEFAULT, symbol);
    const bool known = address != nullptr && dladdr(address, &info) != 0 && info.dli_fname != nullptr;
    std::printf(",\"%s_from\":\"", symbol);
    for (const char* letter = known ? info.dli_fname : ""; *letter != '\0'; ++letter) {
      if (*letter == '"' || *letter == '\\') std::putchar('\\');
      std::putchar(*letter);
    }
    std::putchar('"');
  }

  const char* scenario_;
  const char* memory_ = nullptr;
  bool in_effect_ = true;
  Case cases_[max_cases] = {};
  std::size_t count_ = 0;
  bool intact_ = true;
};

}  // namespace scenario
