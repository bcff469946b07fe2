// SPDX-License-Identifier: Apache-2.0
#include "io/csv_field.hpp"

#include <charconv>

namespace tessera::io {
namespace {

/// "-1.5", "+7": a number that begins like a formula.
bool is_signed_number(std::string_view text) {
  if (text.size() < 2 || (text[0] != '+' && text[0] != '-')) return false;
  text.remove_prefix(1);
  if (text[0] != '.' && (text[0] < '0' || text[0] > '9')) return false;
  double value = 0;
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem != std::errc::invalid_argument && stop == text.data() + text.size();
}

}  // namespace

bool is_formula(std::string_view field) {
  constexpr std::string_view begins_formula = "=+-@\t\r\n";
  return !field.empty() && begins_formula.find(field[0]) != std::string_view::npos &&
         !is_signed_number(field);
}

void append_csv_field(std::string& text, std::string_view name) {
  std::string field(is_formula(name) ? 1 : 0, '\'');
  field += name;
  if (!field.empty() && field.find_first_of(",;\"\r\n#%/ \t") == std::string::npos) {
    text += field;
    return;
  }
  text.push_back('"');
  for (const char c : field) {
    if (c == '"') text.push_back('"');
    text.push_back(c);
  }
  text.push_back('"');
}

}  // namespace tessera::io
