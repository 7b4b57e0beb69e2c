// See insertion.hpp.
#include "macho/insertion.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

namespace sluice::cli::macho {
namespace {

constexpr std::string_view allows_variables = "com.apple.security.cs.allow-dyld-environment-variables";
constexpr std::string_view allows_others = "com.apple.security.cs.disable-library-validation";

bool lies_below(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

// Returns: the folder of the system's own programs that the path lies in; empty: none.
std::string_view protected_folder(std::string_view path) {
  if (lies_below(path, "/usr/local")) return {};
  for (const std::string_view folder : {"/System", "/bin", "/sbin", "/usr"})
    if (lies_below(path, folder)) return folder;
  return {};
}

bool matches(const Slice& slice, uint32_t processor, bool is_arm64e) {
  return slice.processor == processor && (processor != arm64 || (slice.variant == variant_arm64e) == is_arm64e);
}

const Slice* find(const std::vector<Slice>& slices, uint32_t processor, bool is_arm64e) {
  const auto found = std::find_if(slices.begin(), slices.end(),
                                  [&](const Slice& slice) { return matches(slice, processor, is_arm64e); });
  return found != slices.end() ? &*found : nullptr;
}

// The slice that runs on the machine. Apple's processors also run what is for Intel's, by translation.
const Slice* slice_that_runs(const std::vector<Slice>& program, uint32_t processor) {
  if (processor != arm64) return find(program, processor, false);
  for (const bool is_arm64e : {false, true})
    if (const Slice* const slice = find(program, arm64, is_arm64e)) return slice;
  return find(program, x86_64, false);
}

std::optional<std::string> obstacle_in_signature(const Slice& program, const Slice& library) {
  const Signature none;
  const Signature& signature = program.signature ? *program.signature : none;
  const bool has_runtime = (signature.flags & flag_runtime) != 0;
  if ((signature.flags & flag_restrict) != 0) return "is signed with the flag `restrict`";
  if (program.has_restrict_segment) return "has a segment __RESTRICT";
  if (has_runtime && !signature.has_entitlement(allows_variables))
    return fmt::format("has the hardened runtime, without the entitlement {}", allows_variables);
  const bool validates = (signature.flags & flag_library_validation) != 0 || has_runtime;
  const bool same_team = library.signature && !signature.team.empty() && library.signature->team == signature.team;
  if (validates && !same_team && !signature.has_entitlement(allows_others))
    return fmt::format("takes no library of another signer: it lacks the entitlement {}", allows_others);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> obstacle(const ProgramFile& file, const std::vector<Slice>& program,
                                    const std::vector<Slice>& library, uint32_t processor) {
  const std::string_view folder = protected_folder(file.path);
  if (!folder.empty() || file.is_restricted)
    return fmt::format("is one of the system's own programs{}, which System Integrity Protection protects",
                       folder.empty() ? "" : fmt::format(" ({})", folder));
  if (file.is_setuid) return "is setuid";
  if (file.is_setgid) return "is setgid";
  if (program.empty() && file.can_be_read)
    return "is no program of macOS: a shell would run it, which System Integrity Protection protects";
  if (program.empty()) return std::nullopt;
  const Slice* const slice = slice_that_runs(program, processor);
  if (slice == nullptr) return fmt::format("is for {}, which this machine does not run", processor_names(program));
  const Slice* const own = find(library, slice->processor, slice->variant == variant_arm64e);
  if (own == nullptr)
    return fmt::format("runs as {}, and the library is for {}", processor_name(*slice), processor_names(library));
  return obstacle_in_signature(*slice, *own);
}

}  // namespace sluice::cli::macho
