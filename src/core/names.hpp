// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "tessera/core/error.hpp"

/// Tables of what users call by names: of structs with a member `name`.
namespace tessera {

/// "a, b, c"
template <class Table>
std::string names_of(const Table& table) {
  std::string names;
  for (const auto& entry : table) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

/// The entry of this name. `what` says what there is one of: "unknown metric 'auc'".
template <class Table>
const auto& find_named(const Table& table, std::string_view name, const char* what,
                       const char* where, const char* fix = "use one of ") {
  for (const auto& entry : table) {
    if (name == entry.name) return entry;
  }
  throw Error(ErrorCode::invalid_argument,
              std::string("unknown ") + what + " '" + std::string(name) + "'", where,
              fix + names_of(table));
}

/// A value of an enumeration and its name.
template <class Enum>
struct Named {
  Enum value;
  const char* name;
};

template <class Enum, std::size_t N>
const char* name_of(const std::array<Named<Enum>, N>& names, Enum value) noexcept {
  for (const Named<Enum>& entry : names) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";
}

template <class Enum, std::size_t N>
Enum parse_name(const std::array<Named<Enum>, N>& names, const char* what,
                const std::string& text) {
  return find_named(names, text, what, "", "use ").value;
}

}  // namespace tessera
