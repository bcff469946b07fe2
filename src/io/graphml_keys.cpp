// SPDX-License-Identifier: Apache-2.0
#include "io/graphml_keys.hpp"

#include <utility>

#include "io/scan.hpp"
#include "io/table_columns.hpp"
#include "io/table_layout.hpp"

namespace tessera::io {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

}  // namespace

bool Attribute::set_last(std::int64_t count, std::string value) {
  values.resize(static_cast<std::size_t>(count));
  if (values.back()) return false;
  values.back() = std::move(value);
  return true;
}

std::vector<std::string> Attribute::filled(std::int64_t count) const {
  std::vector<std::string> all(static_cast<std::size_t>(count), default_value.value_or(""));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i]) all[i] = *values[i];
  }
  return all;
}

std::optional<std::string> value_of_type(std::string_view text, std::string_view type) {
  const std::string value(trimmed(text));
  if (is_missing(value)) return value;
  if (type == "boolean") {
    const std::string word = lower_case(value);
    if (word == "true" || word == "1") return "true";
    return word == "false" || word == "0" ? std::optional<std::string>("false") : std::nullopt;
  }
  if (type == "int" || type == "long") {
    return is_integer(value) ? std::optional(value) : std::nullopt;
  }
  if (type == "float" || type == "double") {
    return parse_any_real(value) ? std::optional(value) : std::nullopt;
  }
  return value;
}

}  // namespace tessera::io
