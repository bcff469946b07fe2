// SPDX-License-Identifier: Apache-2.0
#include "tessera/step/range_search.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::step {
namespace {

constexpr const char* fix = "give a share above 0 and at most 1, or LOWER,UPPER";

template <class T>
T number_in(const std::string& text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && rest == end) return number;
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no number", text), "ranges", fix);
}

/// How far the share of the numbers in the middle reaches above 0, and below.
std::pair<float, float> reach_of(std::vector<float>& numbers, double share) {
  std::erase_if(numbers, [](float number) { return !std::isfinite(number); });
  if (numbers.empty()) return {0.0f, 0.0f};
  const auto size = static_cast<double>(numbers.size());
  const auto outside = std::min(static_cast<std::ptrdiff_t>((1 - share) / 2 * size + 1e-9),
                                (std::ssize(numbers) - 1) / 2);
  const auto lowest = numbers.begin() + outside;
  std::nth_element(numbers.begin(), lowest, numbers.end());
  const float lower = *lowest;
  const auto highest = numbers.end() - 1 - outside;
  std::nth_element(lowest, highest, numbers.end());
  return {std::max(*highest, 0.0f), std::max(-lower, 0.0f)};
}

}  // namespace

void RangeSearch::validate() const {
  if (!(share > 0 && share <= 1)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("a share of {}", share), "ranges", fix);
  }
  if (!bounds) return;
  const auto [lower, upper] = *bounds;
  if (std::isfinite(lower) && std::isfinite(upper) && lower < upper) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("bounds of {} and {}", lower, upper),
              "ranges", fix);
}

RangeSearch parse_range_search(const std::string& text) {
  RangeSearch search;
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) {
    search.share = number_in<double>(text);
  } else {
    search.bounds = {number_in<float>(text.substr(0, comma)),
                     number_in<float>(text.substr(comma + 1))};
  }
  search.validate();
  return search;
}

std::vector<float> find_ranges(MatrixView<const float> x, ops::RoundingRange range,
                               const float* row_scale, const RangeSearch& search) {
  const std::int64_t count = range == ops::RoundingRange::matrix ? 1
                             : range == ops::RoundingRange::rows ? x.rows
                                                                 : x.cols;
  std::vector<float> ranges;
  ranges.reserve(static_cast<std::size_t>(count * 2));
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    std::pair<float, float> reach;
    if (search.bounds) {
      reach = {std::max(search.bounds->second, 0.0f), std::max(-search.bounds->first, 0.0f)};
    } else {
      const bool one_row = range == ops::RoundingRange::rows;
      const bool one_col = range == ops::RoundingRange::columns;
      numbers.clear();
      for (std::int64_t r = one_row ? i : 0; r < (one_row ? i + 1 : x.rows); ++r) {
        const float scale = row_scale == nullptr ? 1.0f : row_scale[r];
        for (std::int64_t c = one_col ? i : 0; c < (one_col ? i + 1 : x.cols); ++c) {
          numbers.push_back(scale * x(r, c));
        }
      }
      reach = reach_of(numbers, search.share);
    }
    ranges.push_back(reach.first);
    ranges.push_back(reach.second);
  }
  return ranges;
}

}  // namespace tessera::step
