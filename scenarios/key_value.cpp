// An in-memory store of keys and values filled, then given commands in which some keys are far more popular than
// others, then cleared. Open it for what a cache server asks of malloc: every command's key is a block, and values are
// replaced by others of other sizes.
#include <bit>

#include "common.hpp"
#include "key_value_store.hpp"
#include "phases.hpp"

namespace {

constexpr std::uint32_t all_keys = 262'144;
constexpr std::uint32_t longest_key = 64;
constexpr std::uint32_t shortest_value = 9;  // its stamp and one letter
constexpr std::uint32_t longest_value = 16'384;
constexpr std::uint32_t longest_addition = 128;
constexpr std::uint64_t never = UINT64_MAX;

std::uint32_t value_length(scenario::Random& random) {
  const std::uint32_t kind = random.below(1000);
  if (kind < 500) return random.between(shortest_value, 64);
  if (kind < 800) return random.between(65, 256);
  if (kind < 950) return random.between(257, 1024);
  if (kind < 995) return random.between(1025, 4096);
  return random.between(4097, longest_value);
}

/// A key as programs name them, with the length that its number gives it.
class KeyText {
 public:
  explicit KeyText(std::uint32_t key) {
    static constexpr std::string_view kinds[] = {"user:", "session:", "cart:items:", "page:html:", "rate:limit:"};
    static constexpr std::string_view ends[] = {"", ":name", ":last-seen", ":settings:notifications"};
    append(kinds[key % std::size(kinds)]);
    for (std::uint32_t shift = 32; shift != 0; shift -= 4)
      letters_[length_++] = "0123456789abcdef"[(key >> (shift - 4)) & 15];
    append(ends[key / 8 % std::size(ends)]);
  }
  std::string_view view() const { return {letters_, length_}; }

 private:
  void append(std::string_view piece) {
    std::memcpy(letters_ + length_, piece.data(), piece.size());
    length_ += piece.size();
  }

  char letters_[longest_key];
  std::size_t length_ = 0;
};

/// What values consist of: a stamp that no two values share, and letters that follow from it.
class Contents {
 public:
  explicit Contents(std::uint64_t seed) : letters_(starts + longest_value) {
    scenario::Random random(seed);
    for (std::size_t i = 0; i < letters_.length(); ++i)
      letters_[i] = static_cast<char>('a' + random.below(26));
  }

  const char* letters(std::uint64_t stamp) const { return &letters_[stamp % starts]; }

  void write(char* value, std::uint64_t stamp, std::uint32_t length) const {
    std::memcpy(value, &stamp, sizeof stamp);
    std::memcpy(value + sizeof stamp, letters(stamp) + sizeof stamp, length - sizeof stamp);
  }

  bool is_held_by(std::string_view value, std::uint64_t stamp) const {
    return scenario::tag_of(value.data()) == stamp &&
           std::memcmp(value.data() + sizeof stamp, letters(stamp) + sizeof stamp, value.size() - sizeof stamp) == 0;
  }

 private:
  static constexpr std::uint32_t starts = 4096;
  scenario::Table<char> letters_;
};

/// What is known of a value that was read.
std::uint64_t digest(std::uint64_t stamp, std::uint32_t length, char last) {
  return scenario::mixed(stamp, std::uint64_t{length} << 8 | static_cast<unsigned char>(last));
}

/// The length of a value after an addition: one that would become too long loses a half.
std::uint32_t length_after(std::uint32_t length, std::uint32_t addition) {
  return length + addition <= longest_value ? length + addition : length / 2;
}

/// The store, with what a server does for each command: it has read the key into a block of its own.
class Server {
 public:
  explicit Server(const Contents& contents) : contents_(contents), reply_(longest_value) {}

  void set(std::uint32_t key, std::uint64_t now, std::uint32_t length, std::uint64_t expires) {
    const scenario::Text name = scenario::copy_of(KeyText(key).view());
    store_.set(name, make_value(now, length), expires);
  }

  /// Returns the digest of the value, which it copies into the reply; 0 if there is none.
  std::uint64_t get(std::uint32_t key, std::uint64_t now) {
    const scenario::Text name = scenario::copy_of(KeyText(key).view());
    const scenario::Entry* const entry = store_.find(name.view(), now);
    std::free(name.letters);
    if (entry == nullptr) return 0;
    const scenario::Text& value = entry->value;
    std::memcpy(&reply_[0], value.letters, value.length);
    return digest(scenario::tag_of(&reply_[0]), value.length, reply_[value.length - 1]);
  }

  /// Makes the value longer by so much, or a new one of that length. Returns its length.
  std::uint64_t append(std::uint32_t key, std::uint64_t now, std::uint32_t addition) {
    const scenario::Text name = scenario::copy_of(KeyText(key).view());
    scenario::Entry* const entry = store_.find(name.view(), now);
    if (entry == nullptr) {
      store_.set(name, make_value(now, addition), never);
      return addition;
    }
    std::free(name.letters);
    scenario::Text& value = entry->value;
    const std::uint32_t before = value.length;
    value.length = length_after(before, addition);
    value.letters =
        static_cast<char*>(scenario::require_block(std::realloc(value.letters, value.length), value.length));
    if (value.length > before) {
      const char* const letters = contents_.letters(scenario::tag_of(value.letters));
      std::memcpy(value.letters + before, letters + before, value.length - before);
    }
    return value.length;
  }

  bool erase(std::uint32_t key, std::uint64_t now) {
    const scenario::Text name = scenario::copy_of(KeyText(key).view());
    const bool was_there = store_.erase(name.view(), now);
    std::free(name.letters);
    return was_there;
  }

  void tend(std::uint64_t now) { store_.tend(now); }
  scenario::KeyValueStore& store() { return store_; }

 private:
  scenario::Text make_value(std::uint64_t stamp, std::uint32_t length) const {
    const scenario::Text value{static_cast<char*>(scenario::require_block(std::malloc(length), length)), length};
    contents_.write(value.letters, stamp, length);
    scenario::escape(value.letters);
    return value;
  }

  const Contents& contents_;
  scenario::KeyValueStore store_;
  scenario::Table<char> reply_;
};

/// What the store must answer, from a table of what each key has, without any value.
class Expectation {
 public:
  Expectation(const Contents& contents, std::uint32_t keys) : contents_(contents), states_(keys) {}

  void set(std::uint32_t key, std::uint64_t now, std::uint32_t length, std::uint64_t expires) {
    states_[key] = {now, expires, length};
  }
  std::uint64_t get(std::uint32_t key, std::uint64_t now) const {
    const State& state = states_[key];
    return is_there(state, now) ? digest(state.stamp, state.length, contents_.letters(state.stamp)[state.length - 1])
                                : 0;
  }
  std::uint64_t append(std::uint32_t key, std::uint64_t now, std::uint32_t addition) {
    State& state = states_[key];
    if (is_there(state, now)) {
      state.length = length_after(state.length, addition);
    } else {
      state = {now, never, addition};
    }
    return state.length;
  }
  bool erase(std::uint32_t key, std::uint64_t now) {
    const bool was_there = is_there(states_[key], now);
    states_[key] = {};
    return was_there;
  }
  void tend(std::uint64_t) {}

  /// Whether this is what the store has at that moment.
  bool holds(scenario::KeyValueStore& store, std::uint64_t now) const {
    std::size_t count = 0;
    for (std::uint32_t key = 0; key < states_.length(); ++key) {
      const scenario::Entry* const entry = store.find(KeyText(key).view(), now);
      if ((entry != nullptr) != is_there(states_[key], now)) return false;
      if (entry == nullptr) continue;
      ++count;
      if (entry->value.length != states_[key].length) return false;
      if (!contents_.is_held_by(entry->value.view(), states_[key].stamp)) return false;
    }
    return store.count() == count;
  }

 private:
  struct State {
    std::uint64_t stamp, expires;
    std::uint32_t length;
  };
  static bool is_there(const State& state, std::uint64_t now) { return state.expires > now; }

  const Contents& contents_;
  scenario::Table<State> states_;
};

/// The commands that one worker gives. They are the same for the store and for what is expected of it.
class Script {
 public:
  Script(std::uint64_t seed, std::uint32_t keys, std::uint64_t commands)
      : seed_(seed), keys_(keys), commands_(commands) {}

  std::uint64_t ends() const { return keys_ + commands_; }

  /// Gives every key a value, in an order without neighbours.
  template <class Target>
  void fill(Target& target) const {
    constexpr std::uint64_t stride = 2'654'435'761;  // a prime above any number of keys, so that each is met once
    scenario::Random random(seed_);
    for (std::uint64_t now = 0; now < keys_; ++now) {
      target.set(static_cast<std::uint32_t>(now * stride % keys_), now, value_length(random), never);
      target.tend(now);
    }
  }

  /// Returns a digest of all answers.
  template <class Target>
  std::uint64_t serve(Target& target) const {
    scenario::Random random(~seed_);
    std::uint64_t answers = 0;
    for (std::uint64_t now = keys_; now < ends(); ++now) {
      answers = scenario::mixed(answers, give_one(target, random, now));
      target.tend(now);
    }
    return answers;
  }

 private:
  template <class Target>
  std::uint64_t give_one(Target& target, scenario::Random& random, std::uint64_t now) const {
    const std::uint32_t kind = random.below(100);
    const std::uint32_t key = random.below(4) == 0 ? random.below(keys_) : popular_key(random);
    if (kind < 55) return target.get(key, now);
    if (kind < 75) {
      target.set(key, now, value_length(random), never);
    } else if (kind < 82) {
      const std::uint64_t expires = now + random.between(1'000, 200'000);
      target.set(key, now, value_length(random), expires);
    } else if (kind < 88) {
      return target.append(key, now, random.between(shortest_value, longest_addition));
    } else {
      return target.erase(key, now) ? 1 : 0;
    }
    return 0;
  }

  /// The key of rank n comes up about as often as 1/n says.
  std::uint32_t popular_key(scenario::Random& random) const {
    for (;;) {
      const std::uint32_t rank = random.by_doubling(0, static_cast<std::uint32_t>(std::bit_width(keys_))) - 1;
      if (rank < keys_) return rank;
    }
  }

  std::uint64_t seed_;
  std::uint32_t keys_;
  std::uint64_t commands_;
};

enum Phase : std::size_t { preparation, filling, serving, checking, clearing };

bool work(const scenario::Arguments& arguments, const Contents& contents, scenario::PhaseClock& clock,
          std::uint64_t worker) {
  const auto keys = static_cast<std::uint32_t>(scenario::share_of(all_keys, arguments.threads, worker));
  const Script script(scenario::seed_of(arguments, worker), keys,
                      scenario::share_of(arguments.ops, arguments.threads, worker));
  Server server(contents);
  clock.end(preparation);
  script.fill(server);
  clock.end(filling);
  const std::uint64_t answers = script.serve(server);
  clock.end(serving);
  Expectation expectation(contents, keys);
  script.fill(expectation);
  const bool is_right = script.serve(expectation) == answers && expectation.holds(server.store(), script.ends());
  clock.end(checking);
  server.store().clear();
  clock.end(clearing);
  return is_right;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = scenario::parse_arguments(
      argc, argv, {.unit = "commands after the table of 262,144 keys is filled", .ops = 2'000'000, .threads = 1});
  const Contents contents(arguments.seed);
  scenario::PhaseClock clock(arguments.threads);
  scenario::Report report("key_value");
  report.require(scenario::are_all_right(
      arguments.threads, [&](std::uint64_t worker) { return work(arguments, contents, clock, worker); }));
  report.add("key_value_fill", all_keys, clock.nanoseconds(filling));
  report.add("key_value_mixed", arguments.ops, clock.nanoseconds(serving));
  report.add("key_value_clear", all_keys, clock.nanoseconds(clearing));
  return report.finish(arguments);
}
