// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/grouped.hpp"

#include <fmt/format.h>

namespace tessera {

std::string grouped(std::int64_t number) {
  std::string digits = fmt::format("{}", number);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t place = digits.size(); place > first + 3; place -= 3) {
    digits.insert(place - 3, 1, ',');
  }
  return digits;
}

}  // namespace tessera
