// Who reports a mistake: the component, its name and the object. Open it when a checked class is made of parts that
// find mistakes on its behalf. Empty under `unchecked`.
#pragma once

#include <cstddef>

#include "sluice/detail/checks.hpp"

namespace sluice::detail {

template <class Checks, bool = Checks::enabled>
class reporter {
 public:
  constexpr reporter(const char* component, const void* object, const char* name) noexcept
      : component_(component), object_(object), name_(name) {}

  constexpr void block(violation_kind kind, const void* address) const {
    if (address != nullptr)
      report_block(kind, component_, name_, object_, address);
    else
      report(kind, component_, name_, object_, 0);
  }
  constexpr void number(violation_kind kind, std::size_t value) const {
    report(kind, component_, name_, object_, value);
  }

 private:
  const char* component_;
  const void* object_;
  object_name<Checks> name_;
};
template <class Checks>
class reporter<Checks, false> {
 public:
  constexpr reporter(const char*, const void*, const char*) noexcept {}
  constexpr void block(violation_kind, const void*) const noexcept {}
  constexpr void number(violation_kind, std::size_t) const noexcept {}
};

}  // namespace sluice::detail
