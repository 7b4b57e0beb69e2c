// Which memory node runs a thread: asked of the kernel's vDSO, which answers without a system call on x86-64. See
// memory_node() in memory.hpp. A system call would cost more than the answer is worth,
// and ends programs that their sandbox does not allow it (RISC-V's vDSO makes one, AArch64's has no such function); a
// file would tell the same of processors, and must be read. libc's getcpu() asks the vDSO, too, but only since
// glibc 2.29.
//
// Source: vdso(7), elf(5); the kernel's Documentation/ABI/stable/vdso.
#include "os/memory.hpp"

#if defined(__x86_64__)
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include "os/keep_errno.hpp"

namespace sluice::os {
namespace {

using GetCpu = int (*)(unsigned* processor, unsigned* node, void* unused);

constexpr char name_wanted[] = "__vdso_getcpu";

constinit std::atomic<GetCpu> get_cpu{nullptr};
constinit std::atomic<bool> looked_up{false};

bool is_wanted(const char* name) noexcept {
  size_t i = 0;
  while (name[i] != '\0' && name[i] == name_wanted[i])
    ++i;
  return name[i] == name_wanted[i];
}

// The tables of symbols, in a library that is linked to lie at 0 and lies at `base`.
struct Symbols {
  const ElfW(Sym) * all;
  const char* names;
  const uint32_t* hash;      // DT_HASH: buckets, symbols, …
  const uint32_t* gnu_hash;  // DT_GNU_HASH: buckets, first symbol, words of the filter, its shift, …
};

// The last symbol of the last chain ends them.
size_t count_by_gnu_hash(const uint32_t* hash) noexcept {
  const uint32_t buckets = hash[0];
  const uint32_t first = hash[1];
  const uint32_t* const bucket = hash + 4 + hash[2] * (sizeof(size_t) / sizeof(uint32_t));
  const uint32_t* const chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i)
    if (bucket[i] > last) last = bucket[i];
  if (last < first) return 0;
  while ((chain[last - first] & 1) == 0)
    ++last;
  return last + 1;
}

Symbols find_symbols(const char* base) noexcept {
  const auto* const header = reinterpret_cast<const ElfW(Ehdr)*>(base);
  const auto* const parts = reinterpret_cast<const ElfW(Phdr)*>(base + header->e_phoff);
  Symbols found{};
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    if (parts[i].p_type != PT_DYNAMIC) continue;
    for (const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(base + parts[i].p_offset); entry->d_tag != DT_NULL;
         ++entry) {
      const char* const place = base + entry->d_un.d_ptr;
      if (entry->d_tag == DT_SYMTAB) found.all = reinterpret_cast<const ElfW(Sym)*>(place);
      if (entry->d_tag == DT_STRTAB) found.names = place;
      if (entry->d_tag == DT_GNU_HASH) found.gnu_hash = reinterpret_cast<const uint32_t*>(place);
      if (entry->d_tag == DT_HASH) found.hash = reinterpret_cast<const uint32_t*>(place);
    }
  }
  return found;
}

// Older kernels of x86-64 linked the vDSO to another address, to which those of the tables are relative then: it is
// none.
bool lies_at_0(const char* base) noexcept {
  const auto* const header = reinterpret_cast<const ElfW(Ehdr)*>(base);
  const auto* const parts = reinterpret_cast<const ElfW(Phdr)*>(base + header->e_phoff);
  for (unsigned i = 0; i < header->e_phnum; ++i)
    if (parts[i].p_type == PT_LOAD) return parts[i].p_vaddr == 0 && parts[i].p_offset == 0;
  return false;
}

GetCpu look_up() noexcept {
  const KeepErrno keep;  // getauxval says by it that there is none
  const auto* const base = reinterpret_cast<const char*>(getauxval(AT_SYSINFO_EHDR));
  if (base == nullptr || !lies_at_0(base)) return nullptr;
  const Symbols symbols = find_symbols(base);
  if (symbols.all == nullptr || symbols.names == nullptr) return nullptr;
  size_t count = 0;
  if (symbols.hash != nullptr)
    count = symbols.hash[1];
  else if (symbols.gnu_hash != nullptr)
    count = count_by_gnu_hash(symbols.gnu_hash);
  for (size_t i = 0; i < count; ++i)
    if (symbols.all[i].st_shndx != SHN_UNDEF && is_wanted(symbols.names + symbols.all[i].st_name))
      return reinterpret_cast<GetCpu>(const_cast<char*>(base) + symbols.all[i].st_value);
  return nullptr;
}

}  // namespace

uint32_t memory_node() noexcept {
  if (!looked_up.load(std::memory_order_acquire)) {
    get_cpu.store(look_up(), std::memory_order_relaxed);
    looked_up.store(true, std::memory_order_release);
  }
  const GetCpu ask = get_cpu.load(std::memory_order_relaxed);
  unsigned node = 0;
  return ask != nullptr && ask(nullptr, &node, nullptr) == 0 ? node : 0;
}

}  // namespace sluice::os

#else

namespace sluice::os {

uint32_t memory_node() noexcept {
  return 0;
}

}  // namespace sluice::os

#endif
