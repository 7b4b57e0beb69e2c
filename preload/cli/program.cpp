// How a program is found, and what the kernel and the dynamic loader do with it, read from the file itself.
// The loader ignores LD_PRELOAD without a word in privileged programs, and is not there at all in static
// ones.
#include "program.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include <elf.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fmt/core.h>

#include "command.hpp"

namespace sluice::cli {
namespace {

constexpr int max_interpreter_depth = 4;      // scripts whose interpreters are scripts: the kernel's own limit
constexpr size_t script_line_capacity = 256;  // the kernel reads no more of a script's first line

// A file opened for reading, by offset.
class File {
 public:
  explicit File(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Returns: the bytes from `offset` on, fewer than `size` at the end of the file, none when they cannot be
  // read.
  std::string read(uint64_t offset, size_t size) const {
    std::string bytes(size, '\0');
    size_t got = 0;
    while (got < size) {
      const ssize_t part = pread(descriptor_, bytes.data() + got, size - got, static_cast<off_t>(offset + got));
      if (part < 0 && errno == EINTR) continue;
      if (part <= 0) break;
      got += static_cast<size_t>(part);
    }
    bytes.resize(got);
    return bytes;
  }

  template <typename T>
  std::optional<T> read_as(uint64_t offset) const {
    const std::string bytes = read(offset, sizeof(T));
    if (bytes.size() != sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

 private:
  int descriptor_;
};

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

// Returns: the interpreter that a script's first line names, or nothing when the file is no such script.
std::optional<std::string> script_interpreter(const File& file) {
  const std::string start = file.read(0, script_line_capacity);
  if (!start.starts_with("#!")) return std::nullopt;
  const std::string line =
      start.substr(2, start.find('\n') == std::string::npos ? std::string::npos : start.find('\n') - 2);
  const size_t first = line.find_first_not_of(" \t");
  if (first == std::string::npos) return std::nullopt;
  return line.substr(first, line.find_first_of(" \t", first) - first);
}

[[noreturn]] void refuse(const std::string& subject, const std::string& reason) {
  throw CommandError(exit_cannot_preload, fmt::format("{} {}: the preload cannot work", subject, reason));
}

// Returns: 0 when the file can be executed, else the errno value that execve would give.
int execution_error(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  if (!S_ISREG(status.st_mode) || faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) != 0) return EACCES;
  return 0;
}

// What is said of a program that is not there: a whole command line in one word is a common mistake.
std::string not_found(const std::string& name) {
  if (name.find(' ') == std::string::npos) return "not found";
  return fmt::format("not found; a command line is given word by word (-- {0}), or to a shell (-- sh -c '{0}')", name);
}

}  // namespace

std::string find_program(const std::string& name) {
  std::vector<std::string> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(name);
  } else if (!name.empty()) {
    const char* const variable = getenv("PATH");
    const std::string path = variable != nullptr ? variable : "/bin:/usr/bin";
    for (size_t start = 0; start <= path.size();) {
      const size_t end = std::min(path.find(':', start), path.size());
      const std::string folder = path.substr(start, end - start);
      candidates.push_back((folder.empty() ? "." : folder) + "/" + name);
      start = end + 1;
    }
  }
  int worst = ENOENT;
  for (const std::string& candidate : candidates) {
    const int error = execution_error(candidate);
    if (error == 0) return candidate;
    if (error != ENOENT && error != ENOTDIR) worst = error;
  }
  throw CommandError(worst == ENOENT ? exit_not_found : exit_cannot_execute,
                     fmt::format("{}: {}", name, worst == ENOENT ? not_found(name) : std::strerror(worst)));
}

void check_can_preload(const std::string& name, const std::string& path, const std::string& library) {
  const std::optional<Architecture> wanted = architecture_of(File(library));
  if (!wanted) throw CommandError(exit_cannot_preload, fmt::format("{} is not a shared library", library));

  std::string file_path = path;
  std::string subject = name;
  for (int depth = 0; depth <= max_interpreter_depth; ++depth) {
    const File file(file_path);
    if (const auto interpreter = script_interpreter(file)) {
      file_path = *interpreter;
      subject = fmt::format("{}, the interpreter of {},", *interpreter, name);
      if (const int error = execution_error(file_path))
        throw CommandError(exit_cannot_execute,
                           fmt::format("{} cannot be executed: {}", subject, std::strerror(error)));
      continue;
    }
    if (const auto privileges = privileges_of(file_path)) refuse(subject, *privileges);
    const std::optional<Architecture> architecture = architecture_of(file);
    if (!architecture) return;
    if (*architecture != *wanted)
      refuse(subject, fmt::format("is {} and libsluice.so is {}", describe(*architecture), describe(*wanted)));
    const Linkage linkage = linkage_of(file);
    if (linkage.interpreter.empty() && !linkage.is_library) refuse(subject, "is statically linked");
    const std::string own_loader = linkage_of(File("/proc/self/exe")).interpreter;
    if (!linkage.interpreter.empty() && !own_loader.empty() && file_name(linkage.interpreter) != file_name(own_loader))
      refuse(subject, fmt::format("runs on another C library ({})", linkage.interpreter));
    return;
  }
}

}  // namespace sluice::cli
