// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

/// Text such as "rmat?scale=17&edges=2e6" and the parameters it sets.
namespace tessera::data {

struct Description {
  std::string kind;
  std::vector<std::pair<std::string, std::string>> settings;  ///< names and values, as written
};

/// Splits the text; `invalid_argument` unless it has the form kind?name=value&name=value.
Description parse_description(const std::string& text);

/// Numbers may be written 2000000 or 2e6, booleans true, false, 1 or 0. `where` is for the error.
void read_value(const std::string& text, const std::string& where, std::int32_t& value);
void read_value(const std::string& text, const std::string& where, std::int64_t& value);
void read_value(const std::string& text, const std::string& where, std::uint64_t& value);
void read_value(const std::string& text, const std::string& where, double& value);
void read_value(const std::string& text, const std::string& where, bool& value);

/// One parameter of a kind: its name, its meaning in a few words, and the member it sets.
template <class Parameters>
struct Parameter {
  const char* name;
  const char* meaning;
  std::variant<std::int32_t Parameters::*, std::int64_t Parameters::*, std::uint64_t Parameters::*,
               double Parameters::*, bool Parameters::*>
      member;
};

/// "scale=14 (2^scale vertices), edges=200000 (…), …": what there is, with the defaults.
template <class Parameters>
std::string list_parameters(const std::vector<Parameter<Parameters>>& table) {
  const Parameters defaults{};
  std::string list;
  for (const auto& parameter : table) {
    const std::string value = std::visit(
        [&](auto member) { return fmt::format("{}", defaults.*member); }, parameter.member);
    list += fmt::format("{}{}={} ({})", list.empty() ? "" : ", ", parameter.name, value,
                        parameter.meaning);
  }
  return list;
}

/// The defaults with the description's settings applied.
template <class Parameters>
Parameters read_parameters(const Description& description,
                           const std::vector<Parameter<Parameters>>& table) {
  Parameters result{};
  for (const auto& setting : description.settings) {
    const std::string& name = setting.first;
    const std::string& text = setting.second;
    const auto found = std::find_if(table.begin(), table.end(),
                                    [&](const auto& candidate) { return candidate.name == name; });
    if (found == table.end()) {
      throw Error(ErrorCode::invalid_argument, fmt::format("unknown parameter '{}'", name),
                  description.kind, "there are " + list_parameters(table));
    }
    const std::string where = description.kind + "?" + name;
    std::visit([&](auto member) { read_value(text, where, result.*member); }, found->member);
  }
  return result;
}

}  // namespace tessera::data
