// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <charconv>
#include <ostream>

#include <fmt/format.h>

#include "core/names.hpp"
#include "tessera/core/error.hpp"
#include "tessera/reorder/nm.hpp"

namespace tessera::reorder {
namespace {

constexpr const char* known_patterns =
    "write V:2:M with V of 1, 2, 4, 8, 16 or 32 and M of 4, 8, 16 or 32, such as 1:2:4";

[[noreturn]] void unknown_pattern(std::string_view text, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no pattern: {}", text, why),
              "pattern", known_patterns);
}

bool is_power(int number, int least, int most) {
  return number >= least && number <= most && std::has_single_bit(static_cast<unsigned>(number));
}

/// `text` is the pattern as it was written.
void check(const NmPattern& pattern, std::string_view text) {
  if (pattern.n != 2) unknown_pattern(text, "sparse tensor cores have N = 2");
  if (!is_power(pattern.v, 1, 32)) unknown_pattern(text, fmt::format("V is {}", pattern.v));
  if (!is_power(pattern.m, 4, 32)) unknown_pattern(text, fmt::format("M is {}", pattern.m));
}

constexpr std::array<Named<NmAlgorithm>, 2> algorithms = {
    {{NmAlgorithm::paper, "paper"}, {NmAlgorithm::group, "group"}}};
constexpr std::array<Named<NmSearch>, 3> searches = {
    {{NmSearch::paper, "paper"}, {NmSearch::hardest, "hardest"}, {NmSearch::time, "time"}}};

}  // namespace

NmPattern NmPattern::parse(std::string_view text) {
  std::array<int, 3> numbers{};
  std::size_t count = 0;
  const char* from = text.data();
  const char* const end = text.data() + text.size();
  for (; count < numbers.size(); ++count) {
    const auto [next, error] = std::from_chars(from, end, numbers[count]);
    if (error != std::errc{}) unknown_pattern(text, "it is not three numbers with colons between");
    from = next;
    if (from == end || *from != ':') break;
    ++from;
  }
  if (from != end || count == 0 || count == numbers.size()) {
    unknown_pattern(text, "it is not three numbers with colons between");
  }
  const NmPattern pattern = count == 1 ? NmPattern{1, numbers[0], numbers[1]}
                                       : NmPattern{numbers[0], numbers[1], numbers[2]};
  check(pattern, text);
  return pattern;
}

void NmPattern::validate() const { check(*this, to_string(*this)); }

std::string to_string(const NmPattern& pattern) {
  return fmt::format("{}:{}:{}", pattern.v, pattern.n, pattern.m);
}

std::ostream& operator<<(std::ostream& out, const NmPattern& pattern) {
  return out << to_string(pattern);
}

NmAlgorithm parse_nm_algorithm(std::string_view text) {
  return find_named(algorithms, text, "name", "algorithm").value;
}

const char* to_string(NmAlgorithm algorithm) noexcept { return name_of(algorithms, algorithm); }

NmSearch parse_nm_search(std::string_view text) {
  return find_named(searches, text, "name", "search").value;
}

}  // namespace tessera::reorder
