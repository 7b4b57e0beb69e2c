// See profile_file.hpp.
#include "stats/profile_file.hpp"

#include <errno.h>
#include <unistd.h>

#include <string_view>

#include "base/destination.hpp"
#include "base/keep_errno.hpp"
#include "base/options.hpp"
#include "base/policy.hpp"
#include "base/print.hpp"
#include "heap/sampling.hpp"
#include "os/process.hpp"
#include "os/unwind.hpp"
#include "profile/profile.hpp"
#include "stats/profile_encoder.hpp"
#include "stats/report_file.hpp"
#include "stats/report_link.hpp"

namespace sluice::stats {
namespace {

struct ProfileFile {
  bool wanted;
  bool has_pid;  // in its name
  Destination target;
};
constinit ProfileFile file{};

void say(std::string_view what) noexcept {
  char line[256];
  Print(line, sizeof line, STDERR_FILENO).text("sluice: SLUICE_PROFILE: ").text(what).character('\n');
}

int write_all(std::string_view bytes, int descriptor) noexcept {
  char buffer[4096];
  Print out(buffer, sizeof buffer, descriptor);
  return out.text(bytes).finish();
}

int write_encoded(void* context, int descriptor) noexcept {
  const auto& encoded = *static_cast<const EncodedProfile*>(context);
  const int error = write_all(encoded.first(), descriptor);
  return error != 0 ? error : write_all(encoded.second(), descriptor);
}

struct Names {
  char path[Destination::path_capacity];
  char beside[Destination::path_capacity];
};

void write_to_file(EncodedProfile& encoded) noexcept {
  auto* const names = static_cast<Names*>(os::map_scratch(sizeof(Names)));
  if (names == nullptr) return say("no memory to write it");
  if (file.target.expand_path(names->path)) {
    const int error = write_file(names->path, {names->beside, sizeof names->beside}, write_encoded, &encoded);
    if (error == link_of_others)
      say("the file is a symbolic link that another user may have made; it is not followed");
    else if (error != 0)
      Destination::complain("sluice: profile", names->path, error);
  }
  os::unmap_scratch(names, sizeof(Names));
}

}  // namespace

bool start_profile() noexcept {
  const std::string_view name = options.profile;
  if (name.empty()) return false;
  if (secure) return say("libsluice-secure.so takes no profile; libsluice.so does"), false;
  if (!file.target.remember(options.profile)) return say("the file's name is too long"), false;
  os::prepare_unwinding();
  if (!profile::start(options.profile_rate)) return say("no memory for its tables; there is no profile"), false;
  file.wanted = true;
  file.has_pid = name.find("%p") != std::string_view::npos;
  sampling::start_profile();
  return true;
}

bool writes_profile(bool is_forked_child) noexcept {
  return file.wanted && (file.has_pid || !is_forked_child);
}

bool write_profile(bool wait) noexcept {
  const KeepErrno keep;
  EncodedProfile encoded(wait);
  switch (encoded.outcome()) {
    case EncodedProfile::Outcome::Busy:
      return false;
    case EncodedProfile::Outcome::NoMemory:
      say("no memory to write it");
      return true;
    case EncodedProfile::Outcome::Done:
      write_to_file(encoded);
  }
  return true;
}

}  // namespace sluice::stats
