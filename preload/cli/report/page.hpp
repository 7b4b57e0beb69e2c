// The page of a report as the build has embedded it: template, style, scripts and charts in one. Open it with
// page.cmake, which makes it.
#pragma once

#include <cstddef>

namespace sluice::cli {

extern const unsigned char report_page[];
extern const std::size_t report_page_size;

}  // namespace sluice::cli
