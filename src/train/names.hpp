// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "tessera/core/error.hpp"

/// Enumerations with the names that users give their values.
namespace tessera::train {

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

/// `what` says what there is one of: "unknown metric 'auc'".
template <class Enum, std::size_t N>
Enum parse_name(const std::array<Named<Enum>, N>& names, const char* what,
                const std::string& text) {
  std::string known;
  for (const Named<Enum>& entry : names) {
    if (text == entry.name) return entry.value;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw Error(ErrorCode::invalid_argument, std::string("unknown ") + what + " '" + text + "'", "",
              "use " + known);
}

}  // namespace tessera::train
