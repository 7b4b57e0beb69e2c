// A C++ program that copes with std::bad_alloc: containers, threads, scopes and frames keep what they hold, nothing
// that was constructed is left behind, and once memory is there again all is served. Run by faults_test.py under
// refuse_calls; open it when a run says what was wrong.
//
// Usage: refused_cpp. Ends with status 0 when all held, 1 and a line when not.
#include <unistd.h>
#include <sluice/frame.hpp>
#include <sluice/scope.hpp>

#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "relief.h"

namespace {

bool strict = false;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "refused_cpp: %s\n", what);
  _exit(1);
}

void expect(bool holds, const char* what) {
  if (!holds) fail(what);
}

// Runs a part that may find no memory, or must not.
template <typename Part>
bool attempt(Part part) {
  try {
    part();
    return true;
  } catch (const std::bad_alloc&) {
    if (strict) fail("bad_alloc though the system has memory");
  } catch (const std::system_error&) {
    if (strict) fail("no thread though the system has memory");
  }
  return false;
}

char letter(size_t i) {
  return static_cast<char>('a' + i % 26);
}
bool consists_of(const std::string& text, size_t length, char c) {
  return text.size() == length && text.find_first_not_of(c) == std::string::npos;
}

// An object that counts how many of it live.
struct Counted {
  Counted() : text(new char[200]) {
    text[199] = 'x';
    ++alive;
  }
  ~Counted() {
    delete[] text;
    --alive;
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  char* text;
  static inline long alive = 0;
};

void arrays_of_objects() {
  attempt([] {
    std::vector<std::unique_ptr<Counted[]>> arrays;
    for (int i = 0; i < 40; ++i)
      arrays.emplace_back(new Counted[100]);
    for (const auto& array : arrays)
      expect(array[99].text[199] == 'x', "an object of an array changed");
  });
  expect(Counted::alive == 0, "objects of an array that could not be made are left behind");
}

class Containers {
 public:
  void grow() {
    attempt([this] {
      for (size_t i = 0; i < 400; ++i)
        if (texts_.find(next_) == texts_.end()) {
          texts_.emplace(next_, std::string(next_ % 900, letter(next_)));
          ++next_;
        }
    });
    attempt([this] {
      for (size_t i = 0; i < 150000; ++i)
        numbers_.push_back(numbers_.size() * 3);
    });
    attempt([this] {
      for (size_t i = 0; i < 300; ++i)
        queue_.emplace_back(i * 7, letter(i * 7));
    });
  }
  void check() const {
    for (const auto& [key, text] : texts_)
      expect(consists_of(text, key % 900, letter(key)), "a string of a map changed");
    for (size_t i = 0; i < numbers_.size(); ++i)
      expect(numbers_[i] == i * 3, "an element of a vector changed");
    for (const std::string& text : queue_)
      expect(text.empty() || consists_of(text, text.size(), letter(text.size())), "a string of a deque changed");
  }
  void shrink() {
    numbers_.clear();
    attempt([this] { numbers_.shrink_to_fit(); });
    while (queue_.size() > 10)
      queue_.pop_front();
    if (texts_.size() > 500) texts_.erase(texts_.begin(), std::next(texts_.begin(), 300));
  }

 private:
  std::map<size_t, std::string> texts_;
  std::vector<size_t> numbers_;
  std::deque<std::string> queue_;
  size_t next_ = 0;
};

void scopes_and_frames() {
  std::vector<std::string> kept;
  for (size_t round = 0; round < 30; ++round) {
    const sluice::scope scope;
    attempt([&] {
      std::vector<std::string> words;
      for (size_t i = 0; i < 300; ++i)
        words.emplace_back(i % 700, letter(i));
      for (size_t i = 0; i < words.size(); ++i)
        expect(consists_of(words[i], i % 700, letter(i)), "a string in a scope changed");
      kept.push_back(std::string(round + 20, letter(round)));
    });
  }
  for (const std::string& text : kept)
    expect(consists_of(text, text.size(), letter(text.size() - 20)), "a string that left its scope changed");
  attempt([] {
    sluice::frame frame;
    std::pmr::vector<std::pmr::string> words(frame.resource());
    for (size_t i = 0; i < 2000; ++i)
      words.emplace_back(i % 90, letter(i));
    for (size_t i = 0; i < words.size(); ++i)
      expect(words[i].find_first_not_of(letter(i)) == std::string::npos, "a string in a frame changed");
  });
}

// Threads that allocate, and whose blocks the caller frees.
void threads() {
  std::vector<std::unique_ptr<std::string>> made[3];
  for (auto& strings : made) {
    attempt([&] {
      std::thread([&] {
        attempt([&] {
          for (size_t i = 0; i < 600; ++i)
            strings.push_back(std::make_unique<std::string>(i * 5, letter(i)));
        });
        scopes_and_frames();
      }).join();
    });
  }
  for (const auto& strings : made)
    for (size_t i = 0; i < strings.size(); ++i)
      expect(consists_of(*strings[i], i * 5, letter(i)), "a string of another thread changed");
}

int handler_calls = 0;

// A request that no system can serve: the handler is called as often as it likes.
void new_handler() {
  handler_calls = 0;
  std::set_new_handler([] {
    if (++handler_calls == 3) std::set_new_handler(nullptr);
  });
  const volatile size_t beyond_all = size_t{1} << 62;
  bool thrown = false;
  try {
    ::operator delete(::operator new(beyond_all));
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  expect(thrown && handler_calls == 3, "the new-handler is not called until it gives up");
  expect(::operator new(beyond_all, std::nothrow) == nullptr, "a block out of nothing");
}

void everything(Containers& containers) {
  containers.grow();
  arrays_of_objects();
  scopes_and_frames();
  threads();
  containers.check();
  containers.shrink();
  containers.grow();
  containers.check();
  new_handler();
}

}  // namespace

// Throwing takes memory that libstdc++ sets aside at its start: what fails earlier than that ends in std::terminate.
int main() {
  ask_for_refusals();
  Containers containers;
  everything(containers);
  ask_for_relief();
  strict = true;
  everything(containers);
  return 0;
}
