// See report.hpp.
#include "guarded/report.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/destination.hpp"
#include "base/options.hpp"
#include "base/print.hpp"
#include "guarded/slot.hpp"
#include "os/memory.hpp"
#include "os/seldom_touched.hpp"
#include "pages/region.hpp"

namespace sluice::guarded {
namespace {

constexpr size_t most_leak_groups = 32;  // printed, the largest first

struct Reports {
  Mutex lock{LockRank::Reports};  // held by whoever prints; under it no lock of the heap is taken
  Destination target;
  pid_t pid;
  char buffer[2048];
};
SLUICE_SELDOM_TOUCHED constinit Reports reports{};

// Holds the reports' lock and prints to their destination.
class Report {
 public:
  Report() noexcept
      : held_(reports.lock),
        descriptor_(reports.target.open("sluice: guarded blocks")),
        out_(reports.buffer, sizeof reports.buffer, descriptor_) {}
  ~Report() {
    out_.flush();
    reports.target.close(descriptor_);
  }
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  Print& out() noexcept { return out_; }
  Report& text(const char* text) noexcept {
    out_.text(text);
    return *this;
  }
  Report& number(uint64_t value) noexcept {
    out_.decimal(value);
    return *this;
  }
  Report& address(uintptr_t value) noexcept {
    out_.text("0x").hexadecimal(value);
    return *this;
  }

  // "8 bytes into a block of 24 bytes at 0x…"
  Report& place(const Slot& slot, uintptr_t at) noexcept {
    const auto start = reinterpret_cast<uintptr_t>(slot.block);
    const uintptr_t end = start + slot.size;
    if (at < start)
      number(start - at).text(" bytes before");
    else if (at >= end)
      number(at - end).text(" bytes after the end of");
    else
      number(at - start).text(" bytes into");
    return text(" a block of ").number(slot.size).text(" bytes at ").address(start);
  }

  void trace(const char* what, const Trace& trace) noexcept {
    text("  ").text(what).text(" by thread ").number(trace.thread).text(" at:\n");
    frames(trace);
  }

  void frames(const Trace& trace) noexcept {
    for (unsigned i = 0; i < trace.count; ++i) {
      const os::CodePlace place = os::place_of(trace.frames[i]);
      text("    #").number(i).text(" ").address(trace.frames[i]);
      if (place.module != nullptr) text("  ").text(place.module).text("+").address(place.module_offset);
      if (place.symbol != nullptr) text(" (").text(place.symbol).text("+").address(place.symbol_offset).text(")");
      text("\n");
    }
    if (trace.count == 0) text("    (unknown)\n");
  }

  void history(const Slot& slot, bool freed) noexcept {
    trace("allocated", slot.allocated);
    if (freed) trace("freed", slot.freed);
  }

 private:
  const MutexLock<Mutex> held_;
  const int descriptor_;
  Print out_;
};

bool has_ended(const Slot& slot) noexcept {
  return slot.state.load(std::memory_order_acquire) != SlotState::Live;
}

Trace here() noexcept {
  Trace trace;
  trace.capture();
  return trace;
}

void stop_if_asked() noexcept {
  if (options.guard_abort) std::abort();
}

const char* name_of(os::Access access) noexcept {
  switch (access) {
    case os::Access::Read:
      return "read";
    case os::Access::Write:
      return "write";
    case os::Access::Unknown:
      break;
  }
  return "access";
}

void report_fault(const Slot& slot, const os::Fault& fault, bool freed) noexcept {
  Trace trace;
  trace.thread = os::thread_id();
  trace.count = os::capture_trace_of_fault(trace.frames, most_frames, fault.instruction);
  const char* what = "use after free: ";
  if (!freed) what = fault.address < reinterpret_cast<uintptr_t>(slot.block) ? "underflow: " : "overflow: ";
  Report report;
  report.text("sluice: ").text(what).text(name_of(fault.access)).text(" at ").address(fault.address).text(", ");
  report.place(slot, fault.address).text("\n");
  report.trace("done", trace);
  report.history(slot, freed);
}

// Makes what faulted accessible; open_pages closes it before the slot serves again.
bool expose(Slot& slot, uintptr_t address, bool freed) noexcept {
  const size_t page = os::page_size();
  slot.exposed.store(true, std::memory_order_relaxed);
  const bool in_data = address - reinterpret_cast<uintptr_t>(data_of(slot)) < data_bytes(slot);
  if (freed && in_data) return os::commit(data_of(slot), data_bytes(slot));
  return os::commit(reinterpret_cast<char*>(address - address % page), page);
}

bool on_fault(const os::Fault& fault) noexcept {
  const auto* const address = reinterpret_cast<const char*>(fault.address);
  if (!covers(address) || reports.lock.held_by_this_thread()) return false;
  Slot& slot = slot_at(address);
  const bool freed = has_ended(slot);
  if (slot.block == nullptr) return false;  // nothing was ever there
  if (!freed && address >= data_of(slot) && address < data_of(slot) + data_bytes(slot)) return false;
  if (!slot.reported.exchange(true, std::memory_order_relaxed)) report_fault(slot, fault, freed);
  if (!options.guard_abort) return expose(slot, fault.address, freed);
  os::let_faults_end_the_process();
  return true;
}

bool same(const Trace& a, const Trace& b) noexcept {
  return a.count == b.count && std::memcmp(a.frames, b.frames, a.count * sizeof a.frames[0]) == 0;
}

// Live blocks with one trace; the first of them stands for all.
struct Group {
  const Slot* first;
  size_t blocks, bytes;
};

class Groups {
 public:
  void add(const Group& group) noexcept {
    size_t at = count_ < most_leak_groups ? count_++ : most_leak_groups;
    while (at != 0 && groups_[at - 1].bytes < group.bytes) {
      if (at < most_leak_groups) groups_[at] = groups_[at - 1];
      --at;
    }
    if (at < most_leak_groups) groups_[at] = group;
  }
  const Group* begin() const noexcept { return groups_; }
  const Group* end() const noexcept { return groups_ + count_; }
  size_t size() const noexcept { return count_; }

 private:
  Group groups_[most_leak_groups];
  size_t count_ = 0;
};

bool is_first_of_group(size_t index) noexcept {
  for (size_t i = 0; i < index; ++i)
    if (!has_ended(slot_of_index(i)) && same(slot_of_index(i).allocated, slot_of_index(index).allocated)) return false;
  return true;
}

Group group_of(size_t index) noexcept {
  Group group{&slot_of_index(index), 0, 0};
  for (size_t i = index; i < slot_count(); ++i) {
    const Slot& slot = slot_of_index(i);
    if (has_ended(slot) || !same(slot.allocated, group.first->allocated)) continue;
    ++group.blocks;
    group.bytes += slot.size;
  }
  return group;
}

}  // namespace

void start_reports() noexcept {
  // A fork does not wait for a report that is being printed: that may be for ever, in a pipe that nobody reads.
  os::register_fork_handlers(nullptr, nullptr, [] { (void)reports.lock.unlock_in_child(); });
  if (!reports.target.remember(options.guard_log[0] != '\0' ? options.guard_log : nullptr)) {
    char line[128];
    Print(line, sizeof line, STDERR_FILENO).text("sluice: SLUICE_GUARD_LOG: the file's name is too long\n");
    (void)reports.target.remember(nullptr);
  }
  reports.pid = getpid();
  os::prepare_traces();
  os::install_fault_handler(on_fault);
}

void report_bad_free(Slot& slot, const void* block) noexcept {
  const Trace trace = here();
  const bool freed = has_ended(slot);
  const bool twice = freed && slot.block == block;
  if (!slot.reported.exchange(true, std::memory_order_relaxed)) {
    Report report;
    report.text(twice ? "sluice: double free of " : "sluice: invalid free of ");
    report.address(reinterpret_cast<uintptr_t>(block)).text(", ");
    report.place(slot, reinterpret_cast<uintptr_t>(block)).text(freed && !twice ? ", which has been freed\n" : "\n");
    report.trace("done", trace);
    report.history(slot, freed);
  }
  stop_if_asked();
}

void report_damage(Slot& slot, const char* changed) noexcept {
  const char* const what = changed < slot.block ? "underflow" : "overflow";
  if (!slot.reported.exchange(true, std::memory_order_relaxed)) {
    Report report;
    report.text("sluice: ").text(what).text(", found when the block was freed: a byte was written at ");
    report.address(reinterpret_cast<uintptr_t>(changed)).text(", ");
    report.place(slot, reinterpret_cast<uintptr_t>(changed)).text("\n");
    report.history(slot, true);
  }
  stop_if_asked();
}

namespace {

// Apart, since every program asks for it at its end.
__attribute__((noinline, cold)) void report_groups() noexcept {
  Groups groups;
  size_t blocks = 0, bytes = 0, places = 0;
  for (size_t i = 0; i < slot_count(); ++i) {
    if (has_ended(slot_of_index(i)) || !is_first_of_group(i)) continue;
    const Group group = group_of(i);
    groups.add(group);
    blocks += group.blocks;
    bytes += group.bytes;
    ++places;
  }
  if (blocks == 0) return;
  Report report;
  report.text("sluice: leaks: ").number(blocks).text(" guarded blocks with ").number(bytes);
  report.text(" bytes are still allocated, from ").number(places).text(" places");
  if (places > groups.size()) report.text("; the largest ").number(groups.size());
  report.text("\n");
  for (const Group& group : groups) {
    report.text("  ").number(group.blocks).text(" blocks with ").number(group.bytes).text(" bytes, the first");
    report.text(" allocated by thread ").number(group.first->allocated.thread).text(" at:\n");
    report.frames(group.first->allocated);
  }
}

}  // namespace

void report_leaks() noexcept {
  if (options.guard_leaks && options.guard_rate != 0 && getpid() == reports.pid) report_groups();
}

}  // namespace sluice::guarded
