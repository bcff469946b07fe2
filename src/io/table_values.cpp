// SPDX-License-Identifier: Apache-2.0
#include "io/table_values.hpp"

#include <algorithm>

#include "io/scan.hpp"

namespace tessera::io {
namespace {

constexpr std::string_view missing_words[] = {"",     "na",   "n/a",  "#n/a", "<na>", "nan",
                                              "-nan", "null", "none", "?",    "-"};
constexpr std::size_t longest_missing_word = 4;

/// `word` is in lower case.
bool is_word(std::string_view field, std::string_view word) {
  return std::equal(field.begin(), field.end(), word.begin(), word.end(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

}  // namespace

bool is_missing(std::string_view field) {
  return field.size() <= longest_missing_word &&
         std::any_of(std::begin(missing_words), std::end(missing_words),
                     [&](std::string_view word) { return is_word(field, word); });
}

std::optional<bool> parse_truth(std::string_view field) {
  if (is_word(field, "true")) return true;
  if (is_word(field, "false")) return false;
  return {};
}

std::optional<float> parse_value(std::string_view field) {
  if (const auto truth = parse_truth(field)) return *truth ? 1.0f : 0.0f;
  return parse_any_real(field);
}

std::string_view category_of(std::string_view field) {
  const auto truth = parse_truth(field);
  if (!truth) return field;
  return *truth ? "true" : "false";
}

}  // namespace tessera::io
