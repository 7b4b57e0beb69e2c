// See roots.hpp.
#include "os/roots.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string_view>

#include "os/linux_call.hpp"
#include "os/linux_maps.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"

namespace sluice::os {
namespace {

constexpr uintptr_t red_zone = 128;  // bytes below the stack pointer that a function may use
constexpr size_t pages_at_once = 512;

// Where libc keeps a thread's number in its structure of a thread: behind these bytes, before those.
constexpr unsigned least_id_offset = 0x2c0, most_id_offset = 0x400;
constexpr size_t thread_structure_bytes = 0x900;

#if defined(__x86_64__)
uintptr_t thread_structure() noexcept {
  uintptr_t structure;
  asm("movq %%fs:0, %0" : "=r"(structure));
  return structure;
}

// The structure of a thread at the upper end of its stack, which begins with its own address, and has it again as third
// word; 0 where there is none.
uintptr_t structure_in(MemoryRange stack) noexcept {
  constexpr size_t step = 64, most = size_t{16} << 10;
  const uintptr_t lowest = stack.end - stack.begin > most ? stack.end - most : stack.begin;
  for (uintptr_t at = (stack.end - thread_structure_bytes) & ~(step - 1); at >= lowest && at < stack.end; at -= step) {
    const auto* const words = reinterpret_cast<const uintptr_t*>(at);
    if (words[0] == at && words[2] == at) return at;
  }
  return 0;
}
#else
uintptr_t thread_structure() noexcept {
  return 0;
}
uintptr_t structure_in(MemoryRange) noexcept {
  return 0;
}
#endif

struct Mapping {
  MemoryRange range;
  bool readable, writable, is_private;
  std::string_view path;
};

bool parse(std::string_view line, Mapping* mapping) noexcept {
  mapping->range.begin = take_hexadecimal(line);
  skip(line, 1);
  mapping->range.end = take_hexadecimal(line);
  skip(line, 1);
  if (line.size() < 5) return false;
  mapping->readable = line[0] == 'r';
  mapping->writable = line[1] == 'w';
  mapping->is_private = line[3] == 'p';
  const size_t path = line.find_first_of("/[", 5);
  skip(line, path);
  mapping->path = line;
  return mapping->range.begin < mapping->range.end;
}

constexpr std::string_view shared_anonymous = "/dev/zero (deleted)";

// Not starts_with: built without optimization it wants the C++ library, which programs in C do not link.
bool begins_with(std::string_view path, std::string_view with) noexcept {
  return path.rfind(with, 0) == 0;
}

bool may_hold_pointers(const Mapping& mapping) noexcept {
  if (!mapping.readable) return false;
  if (!mapping.is_private) return mapping.writable && mapping.path == shared_anonymous;
  if (begins_with(mapping.path, "/dev/") && !begins_with(mapping.path, "/dev/zero")) return false;  // of a device
  return mapping.writable || mapping.path.empty();
}

bool has_ended(uintptr_t structure, unsigned id_offset) noexcept {
  int id;  // the system clears it when the thread ends
  memcpy(&id, reinterpret_cast<const void*>(structure + id_offset), sizeof id);
  return id <= 0;
}

// What of a mapping the program may use: of a stack, what lies above the stack pointer, or nothing where its thread has
// ended but what it has returned, which is there until another one asks for it.
MemoryRange in_use(const Mapping& mapping, bool is_guarded, const ThreadMark& thread) noexcept {
  MemoryRange range = mapping.range;
  if (range.begin <= thread.stack_pointer && thread.stack_pointer < range.end) {
    const uintptr_t lowest = thread.stack_pointer - red_zone;
    if ((is_guarded || mapping.path == "[stack]") && lowest > range.begin) range.begin = lowest;
  } else if (is_guarded && mapping.path.empty() && thread.id_offset != 0 &&
             range.end - range.begin > thread_structure_bytes) {
    const uintptr_t structure = structure_in(range);
    if (structure != 0 && has_ended(structure, thread.id_offset)) range.begin = structure;
  }
  range.begin &= ~(sizeof(uintptr_t) - 1);
  return range;
}

// Calls found for what is left of a range.
template <typename Found>
void for_each_piece(MemoryRange range, const MemoryRange* left_out, size_t count, Found found) noexcept {
  for (size_t i = 0; i != count && range.begin < range.end; ++i) {
    const MemoryRange& hole = left_out[i];
    if (hole.end <= range.begin || hole.begin >= range.end) continue;
    if (hole.begin > range.begin) found({range.begin, hole.begin});
    range.begin = hole.end;
  }
  if (range.begin < range.end) found(range);
}

}  // namespace

struct Roots::Work {
  char lines[longest_line];
  uint64_t pages[pages_at_once];
  int page_map;  // -1: the system does not tell
};

int copy_process() noexcept {
  const uint64_t all = ~uint64_t{0};
  uint64_t before = 0;
  const bool masked = system_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all) == 0;
  // No signal at its end: the program's wait() does not find it.
  const auto result = static_cast<int>(system_call(SYS_clone, 0L, 0L, 0L, 0L, 0L));
  if (result == 0) {
    const rlimit none{0, 0};
    (void)system_call(SYS_prlimit64, 0, RLIMIT_CORE, &none, nullptr);
    (void)system_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)system_call(SYS_prctl, PR_SET_NAME, "sluice-leaks", 0, 0, 0);
    return 0;
  }
  if (masked) (void)system_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
  return result;
}

void await_copy(int copy, unsigned milliseconds) noexcept {
  const auto has_gone = [copy](int options) noexcept {
    const long result = system_call(SYS_wait4, copy, nullptr, options | __WALL, nullptr);
    return result == copy || (result < 0 && result != -EINTR);
  };
  // Counted by sleeps, each of a millisecond at least: there may be no clock.
  bool gone = has_gone(WNOHANG);
  for (unsigned slept = 0; !gone && slept != milliseconds; ++slept) {
    sleep_briefly();
    gone = has_gone(WNOHANG);
  }
  if (!gone) (void)system_call(SYS_kill, copy, SIGKILL);
  while (!gone)
    gone = has_gone(0);
}

void* map_shared(size_t bytes) noexcept {
  const long result = system_call(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0L);
  return result < 0 && result > -4096 ? nullptr : reinterpret_cast<void*>(result);
}

ThreadMark mark_thread(uintptr_t stack_pointer) noexcept {
  ThreadMark mark{stack_pointer, 0};
  const uintptr_t structure = thread_structure();
  if (structure == 0) return mark;
  const auto own = static_cast<int>(system_call(SYS_gettid));
  for (unsigned offset = least_id_offset; offset != most_id_offset && mark.id_offset == 0; offset += sizeof own)
    if (memcmp(reinterpret_cast<const void*>(structure + offset), &own, sizeof own) == 0) mark.id_offset = offset;
  return mark;
}

Roots::Roots() noexcept : work_(static_cast<Work*>(map_scratch(sizeof(Work)))) {
  if (work_ != nullptr)
    work_->page_map =
        static_cast<int>(system_call(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0));
}

Roots::~Roots() {
  if (work_ == nullptr) return;
  if (work_->page_map >= 0) (void)system_call(SYS_close, work_->page_map);
  unmap_scratch(work_, sizeof(Work));
}

void Roots::for_each_present(MemoryRange range, Found found, void* context) noexcept {
  constexpr uint64_t present_or_swapped = uint64_t{3} << 62;
  const uintptr_t page = page_size();
  for (uintptr_t at = range.begin & ~(page - 1); at < range.end;) {
    const size_t left = (range.end - at + page - 1) / page;
    const size_t count = left < pages_at_once ? left : pages_at_once;
    const auto offset = static_cast<long>(at / page * sizeof(uint64_t));
    const size_t bytes = count * sizeof(uint64_t);
    const bool told = work_->page_map >= 0 && system_call(SYS_pread64, work_->page_map, work_->pages, bytes, offset) ==
                                                  static_cast<long>(bytes);
    for (size_t i = 0; i != count; ++i, at += page) {
      // Who cannot tell which pages are present can tell whether they can be read.
      if (told ? (work_->pages[i] & present_or_swapped) == 0 : !is_mapped(reinterpret_cast<const void*>(at), page))
        continue;
      found(context, {at > range.begin ? at : range.begin, at + page < range.end ? at + page : range.end});
    }
  }
}

// Pages of a shared mapping are not in the tables of a process that has not touched them.
void Roots::for_each_shared(MemoryRange range, Found found, void* context) noexcept {
  struct Part {
    Found found;
    void* context;
    uintptr_t begin;
  } part{found, context, range.begin};
  (void)resident_bytes(
      reinterpret_cast<const void*>(range.begin), range.end - range.begin, page_size(),
      [](void* self, size_t offset, size_t bytes) noexcept {
        const auto& p = *static_cast<const Part*>(self);
        p.found(p.context, {p.begin + offset, p.begin + offset + bytes});
      },
      &part);
}

bool Roots::for_each(const ThreadMark& thread, const MemoryRange* left_out, size_t left_out_count, Found found,
                     void* context) noexcept {
  if (work_ == nullptr) return false;
  Lines lines("/proc/self/maps", work_->lines);
  std::string_view line;
  uintptr_t guard_end = 0;  // of the last mapping that nobody can touch
  bool any = false;
  while (lines.next(&line)) {
    Mapping mapping{};
    if (!parse(line, &mapping)) continue;
    if (!mapping.readable && !mapping.writable) guard_end = mapping.range.end;
    if (!may_hold_pointers(mapping)) continue;
    any = true;
    const bool is_private = mapping.is_private;  // the next line may take this one's place
    const MemoryRange used = in_use(mapping, guard_end == mapping.range.begin, thread);
    for_each_piece(used, left_out, left_out_count, [&](MemoryRange piece) noexcept {
      if (is_private)
        for_each_present(piece, found, context);
      else
        for_each_shared(piece, found, context);
    });
  }
  return any;
}

}  // namespace sluice::os
