// Where the code of this library lies, whose frames no stack shows. Open it when a stack begins inside malloc.
//
// Of libsluice.so that is all of the object. The code of libsluice.a lies in two sections of the program, whose bounds
// the linker tells: lib/cmake/own_code.cmake puts it there. Where that was not done, nothing is known.
#pragma once

#include <sys/auxv.h>

#include <cstdint>

#include "os/objects.hpp"

// By the linker. Null where there is no such section.
extern "C" {
extern const char __start_sluice_code[] __attribute__((weak, visibility("hidden")));
extern const char __stop_sluice_code[] __attribute__((weak, visibility("hidden")));
extern const char __start_sluice_code_unlikely[] __attribute__((weak, visibility("hidden")));
extern const char __stop_sluice_code_unlikely[] __attribute__((weak, visibility("hidden")));
}

namespace sluice::os {

class OwnCode {
 public:
  bool covers(uintptr_t address) const noexcept { return likely_.covers(address) || unlikely_.covers(address); }

  // Effects: finds it. Requires: prepare_objects().
  void find() noexcept {
    if (__start_sluice_code != nullptr) {
      likely_ = between(__start_sluice_code, __stop_sluice_code);
      unlikely_ = between(__start_sluice_code_unlikely, __stop_sluice_code_unlikely);
      return;
    }
    LoadedObject program{};
    LoadedObject here{};
    const bool known = find_object(reinterpret_cast<uintptr_t>(&prepare_objects), &here);
    // The program is what was given its entry.
    if (known && (!find_object(getauxval(AT_ENTRY), &program) || program.start != here.start)) likely_ = here;
  }

 private:
  static LoadedObject between(const char* start, const char* end) noexcept {
    return {reinterpret_cast<uintptr_t>(start), reinterpret_cast<uintptr_t>(end), nullptr};
  }

  LoadedObject likely_{}, unlikely_{};
};

}  // namespace sluice::os
