// What every fuzz target reads its sequence with, how it stops, and the threads that it tells what to do. Open it to
// write another target.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace sluice::test {

// Takes numbers off the front of the input; zeros when it is over.
class Input {
 public:
  Input(const uint8_t* data, size_t size) noexcept : data_(data), left_(size) {}
  bool over() const noexcept { return left_ == 0; }
  uint8_t byte() noexcept {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  // Small sizes are as likely as large ones: a byte says how many bits count.
  size_t size(unsigned most_bits = 16) noexcept {
    const unsigned bits = byte() % (most_bits + 1);
    const size_t value = size_t{byte()} | size_t{byte()} << 8 | size_t{byte()} << 16;
    return value & ((size_t{1} << bits) - 1);
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

// Ends the process in the way that a fuzzer takes for a finding.
[[noreturn]] inline void stop_on(const char* target, const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", target, what.c_str());
  std::abort();
}

// A second thread that does what it is told, one thing at a time: sequences stay the same each time they are run.
class Helper {
 public:
  ~Helper() { stop(); }
  Helper() = default;
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  void run(std::function<void()> task) {
    if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
    std::unique_lock guard(lock_);
    task_ = std::move(task);
    changed_.notify_all();
    changed_.wait(guard, [this] { return !task_; });
  }
  // The thread ends; the next task starts another one.
  void stop() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard guard(lock_);
      ending_ = true;
      changed_.notify_all();
    }
    thread_.join();
    ending_ = false;
  }

 private:
  void serve() {
    std::unique_lock guard(lock_);
    for (;;) {
      changed_.wait(guard, [this] { return task_ || ending_; });
      if (!task_) return;
      task_();
      task_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::function<void()> task_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace sluice::test
