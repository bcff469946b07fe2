// SPDX-License-Identifier: Apache-2.0
#include "io/scan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::io {
namespace {

/// A number beyond the range of float: rounds to zero if it is too small, is refused if too large.
std::optional<float> parse_extreme(const std::string& word) {
  double value = 0;
  const auto [stop, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (problem == std::errc::result_out_of_range) {
    const bool tiny = word.find("e-") != std::string::npos || word.find("E-") != std::string::npos;
    return tiny ? std::optional(0.0f) : std::nullopt;
  }
  const auto narrow = static_cast<float>(value);
  return std::isinf(narrow) ? std::nullopt : std::optional(narrow);
}

}  // namespace

std::optional<float> parse_real(std::string_view word) {
  if (word.starts_with('+')) word.remove_prefix(1);
  // Fortran writes exponents with a D, which nobody else reads.
  std::string with_e;
  if (word.find_first_of("dD") != std::string_view::npos) {
    with_e = word;
    std::replace_if(
        with_e.begin(), with_e.end(), [](char c) { return c == 'd' || c == 'D'; }, 'e');
    word = with_e;
  }
  float value = 0;
  const auto [stop, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (stop != word.data() + word.size()) return {};
  if (problem == std::errc::result_out_of_range) return parse_extreme(std::string(word));
  return problem == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<float> parse_any_real(std::string_view word) {
  if (const auto value = parse_real(word)) return value;
  double value = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, problem] = std::from_chars(word.data(), end, value);
  const bool is_number = stop == end && problem != std::errc::invalid_argument;
  return is_number ? std::optional(std::numeric_limits<float>::infinity()) : std::nullopt;
}

}  // namespace tessera::io
