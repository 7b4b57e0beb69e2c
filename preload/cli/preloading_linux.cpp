// The preload on Linux, read from the files themselves. The loader ignores LD_PRELOAD without a word in privileged
// programs, and is not there at all in static ones. See preloading.hpp.
#include "preloading.hpp"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <elf.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fmt/core.h>

#include "base/copy_note.hpp"
#include "installation.hpp"
#include "macho/image.hpp"

namespace sluice::cli {

const char* const preload_variable = "LD_PRELOAD";
const char* const preload_separators = ": ";
const bool system_shells_take_preloads = true;
const char* const default_library = "libsluice.so";
const char* const secure_library = "libsluice-secure.so";

namespace {

// What decides whether two ELF files can share a process.
struct Architecture {
  unsigned char elf_class;
  unsigned char byte_order;
  uint16_t machine;
  bool operator==(const Architecture&) const = default;
};

// The start of an ELF header is the same for 32 and 64 bits. Returns: nothing when the file is not ELF.
std::optional<Architecture> architecture_of(const File& file) {
  const std::string start = file.read(0, offsetof(Elf64_Ehdr, e_machine) + sizeof(uint16_t));
  if (start.size() < offsetof(Elf64_Ehdr, e_machine) + sizeof(uint16_t) ||
      !start.starts_with(std::string_view(ELFMAG, SELFMAG)))
    return std::nullopt;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(start[i]); };
  const size_t machine = offsetof(Elf64_Ehdr, e_machine);
  const bool little = byte(EI_DATA) == ELFDATA2LSB;
  const auto value = static_cast<uint16_t>(byte(machine + (little ? 0 : 1)) | byte(machine + (little ? 1 : 0)) << 8);
  return Architecture{byte(EI_CLASS), byte(EI_DATA), value};
}

std::string describe(const Architecture& architecture) {
  struct Name {
    uint16_t machine;
    std::string_view name;
  };
  constexpr Name names[] = {{EM_386, "x86"},      {EM_X86_64, "x86-64"}, {EM_ARM, "ARM"},    {EM_AARCH64, "arm64"},
                            {EM_RISCV, "RISC-V"}, {EM_PPC64, "POWER"},   {EM_S390, "s390x"}, {EM_MIPS, "MIPS"}};
  std::string machine = fmt::format("machine {}", architecture.machine);
  for (const Name& each : names)
    if (each.machine == architecture.machine) machine = each.name;
  return fmt::format("{}-bit {}", architecture.elf_class == ELFCLASS32 ? 32 : 64, machine);
}

// How a 64-bit ELF file of this machine's byte order is linked.
struct Linkage {
  std::string interpreter;  // the dynamic loader; empty when the file names none
  bool is_library = false;  // has a soname: the loader itself, run as a program, is one
};

Linkage linkage_of(const File& file) {
  Linkage linkage;
  const auto header = file.read_as<Elf64_Ehdr>(0);
  if (!header) return linkage;
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    const auto segment = file.read_as<Elf64_Phdr>(header->e_phoff + uint64_t{i} * header->e_phentsize);
    if (!segment) return linkage;
    if (segment->p_type == PT_INTERP) {
      linkage.interpreter = file.read(segment->p_offset, std::min<uint64_t>(segment->p_filesz, PATH_MAX));
      linkage.interpreter.resize(strnlen(linkage.interpreter.c_str(), linkage.interpreter.size()));
    } else if (segment->p_type == PT_DYNAMIC) {
      for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment->p_filesz; at += sizeof(Elf64_Dyn)) {
        const auto entry = file.read_as<Elf64_Dyn>(segment->p_offset + at);
        if (!entry || entry->d_tag == DT_NULL) break;
        if (entry->d_tag == DT_SONAME) linkage.is_library = true;
      }
    }
  }
  return linkage;
}

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// Returns: why the kernel runs the program with privileges that the caller has not, or nothing.
std::optional<std::string> privileges_of(const std::string& path) {
  struct stat status;
  struct statvfs file_system;
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  if (statvfs(path.c_str(), &file_system) == 0 && (file_system.f_flag & ST_NOSUID) != 0) return std::nullopt;
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return std::nullopt;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) return "is setuid";
  const mode_t setgid = S_ISGID | S_IXGRP;
  if ((status.st_mode & setgid) == setgid && status.st_gid != getgid()) return "is setgid";
  if (getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) return "has file capabilities";
  return std::nullopt;
}

// Returns: what a file is that Linux does not run; nothing when it is not for macOS.
std::optional<std::string> origin_of(const File& file) {
  const auto slices = macho::read_image([&](uint64_t offset, size_t size) { return file.read(offset, size); });
  if (slices.empty()) return std::nullopt;
  return fmt::format("is for macOS ({})", macho::processor_names(slices));
}

}  // namespace

bool is_library(const File& file) {
  return architecture_of(file).has_value();
}

std::optional<std::string> preload_obstacle(const std::string& path, const File& file, const std::string& library) {
  if (auto privileges = privileges_of(path)) return privileges;
  const std::optional<Architecture> architecture = architecture_of(file);
  if (!architecture) return origin_of(file);
  const std::optional<Architecture> wanted = architecture_of(File(library));
  if (wanted && *architecture != *wanted)
    return fmt::format("is {} and libsluice.so is {}", describe(*architecture), describe(*wanted));
  const Linkage linkage = linkage_of(file);
  if (linkage.interpreter.empty() && !linkage.is_library) return "is statically linked";
  const std::string own_loader = linkage_of(File("/proc/self/exe")).interpreter;
  if (!linkage.interpreter.empty() && !own_loader.empty() && file_name(linkage.interpreter) != file_name(own_loader))
    return fmt::format("runs on another C library ({})", linkage.interpreter);
  return std::nullopt;
}

std::optional<std::string> linked_copy(const File& file) {
  const std::optional<Architecture> architecture = architecture_of(file);
  const auto header = file.read_as<Elf64_Ehdr>(0);
  if (!header || !architecture || architecture != architecture_of(File("/proc/self/exe"))) return std::nullopt;
  constexpr uint64_t most_notes = 1 << 20;
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    const auto segment = file.read_as<Elf64_Phdr>(header->e_phoff + uint64_t{i} * header->e_phentsize);
    if (!segment) break;
    if (segment->p_type != PT_NOTE) continue;
    const std::string notes = file.read(segment->p_offset, std::min(segment->p_filesz, most_notes));
    if (const auto version = find_copy_note(notes.data(), notes.size(), segment->p_align); !version.empty())
      return std::string(version);
  }
  return std::nullopt;
}

std::string command_file() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

}  // namespace sluice::cli
