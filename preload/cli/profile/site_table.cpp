// Lays figures and sites out. Open it with site_table.hpp.
#include "site_table.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace sluice::cli::profile {
namespace {

// Letters that a terminal shows: bytes that do not continue a sequence of UTF-8.
bool begins_letter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_letter));
}

std::string cut_to(const std::string& text, size_t width) {
  if (width_of(text) <= width) return text;
  size_t end = 0;
  for (size_t letters = 0; end < text.size(); ++end)
    if (begins_letter(text[end]) && ++letters == width) break;
  return text.substr(0, end) + "…";
}

}  // namespace

SiteTable::SiteTable(bench::Grid figures, size_t width) : figures_(std::move(figures)), width_(width) {
  for (size_t i = 0; i < figures_.front().size(); ++i) {
    widths_.push_back(0);
    for (const auto& row : figures_)
      widths_.back() = std::max(widths_.back(), width_of(row[i]));
  }
  constexpr size_t least_for_sites = 32, kept = 3;
  while (width_ != 0 && widths_.size() > kept && left_width() + least_for_sites > width_) {
    left_out_ = fmt::format("{}{}{}", figures_.front()[widths_.size() - 1], left_out_.empty() ? "" : "; ", left_out_);
    widths_.pop_back();
  }
}

size_t SiteTable::left_width() const {
  return std::accumulate(widths_.begin(), widths_.end(), 2 * (widths_.size() + 1));
}

std::string SiteTable::row(size_t index, const std::vector<std::string>& texts) const {
  std::string left;
  for (size_t i = 0; i < widths_.size(); ++i)
    left += "  " + std::string(widths_[i] - width_of(figures_[index][i]), ' ') + figures_[index][i];
  std::string lines;
  for (const std::string& text : texts) {
    const size_t room = width_ > left_width() ? width_ - left_width() : 1;
    lines += fmt::format("{}  {}\n", lines.empty() ? left : std::string(left_width() - 2, ' '),
                         width_ == 0 ? text : cut_to(text, room));
  }
  return lines;
}

std::string SiteTable::remark() const {
  if (left_out_.empty()) return {};
  return bench::wrapped(fmt::format("(left out, for --wide: {})", left_out_), width_) + "\n";
}

}  // namespace sluice::cli::profile
