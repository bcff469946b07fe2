// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/reorder/nm.hpp"

namespace tessera::train {

/// Whether training renumbers vertices so that the adjacency fits a pattern of sparse tensor cores
/// (reorder/nm.hpp), and which. Self loops count where V is 1.
struct PatternChoice {
  enum class Kind {
    off,
    given,      ///< `pattern`, as far as an order can be found
    best,       ///< the one with the least predicted time of a product
    automatic,  ///< 1:2:4, where products are expected to gain more than the order takes to find
  };

  Kind kind = Kind::off;
  reorder::NmPattern pattern = {};

  friend bool operator==(const PatternChoice&, const PatternChoice&) = default;
};

/// "off", "best", "auto", or a pattern such as "16:2:16".
std::string to_string(const PatternChoice& choice);
PatternChoice parse_pattern_choice(const std::string& text);

}  // namespace tessera::train
