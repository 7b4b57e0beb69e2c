// malloc and free, followed by the model. See calls.cpp.
#pragma once

#include <cstddef>

namespace sluice::contention {

void* allocate(size_t size) noexcept;
void release(void* block) noexcept;

}  // namespace sluice::contention
