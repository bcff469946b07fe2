// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace tessera {

/// A character of a text in UTF-8.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;
};

/// The first one of a text that is not empty; `bytes` is 0 where its first byte begins none.
Character first_character(std::string_view text);

}  // namespace tessera
