// A program or library of macOS as its file says it is: processors, load commands, the code signature. Open it when
// something of the file is read wrongly. Nothing here is of macOS: it runs, and is tested, on Linux too.
//
//   universal file:  | 0xcafebabe | count | processor, place, length | … |     numbers with the highest byte first
//   slice:           | header | load commands: segments, LC_BUILD_VERSION, LC_CODE_SIGNATURE, … | … | signature |
//   signature:       | 0xfade0cc0 | length | count | kind, place | … | CodeDirectory | entitlements | … |
//
// Files may be cut off, or made to harm: what is not there is left out, and no number of the file is taken for a size
// of memory. Sizes are in bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli::macho {

// Returns: the bytes of the file from `offset` on, fewer than `size` where it ends.
using Read = std::function<std::string(uint64_t offset, size_t size)>;

inline constexpr uint32_t x86 = 7, x86_64 = 0x1000007, arm = 12, arm64 = 0x100000c, powerpc = 18;
inline constexpr uint32_t variant_arm64e = 2;

// Flags of a CodeDirectory.
inline constexpr uint32_t flag_ad_hoc = 0x2, flag_restrict = 0x800, flag_library_validation = 0x2000,
                          flag_runtime = 0x10000;

struct Signature {
  uint32_t flags = 0;
  std::string team;                       // of the signer; empty: none, as of what is signed ad hoc
  std::vector<std::string> entitlements;  // those that are true
  bool has_entitlement(std::string_view name) const;
};

// The file as one processor sees it.
struct Slice {
  uint32_t processor = 0;
  uint32_t variant = 0;  // of the processor: arm64e is one of arm64
  bool is_library = false;
  bool has_restrict_segment = false;  // __RESTRICT,__restrict: as the signature's flag
  std::optional<Signature> signature;
};

// Returns: the slices of a file in their order; none when it is no file of macOS.
std::vector<Slice> read_image(const Read& read);

// Returns: "arm64e", or "processor 99".
std::string processor_name(const Slice& slice);
// Returns: "x86_64 and arm64".
std::string processor_names(const std::vector<Slice>& slices);

}  // namespace sluice::cli::macho
