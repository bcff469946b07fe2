// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tessera::io {

/// A note of `Dataset::notes`. Those on tables begin with what they are about: "labels: 'churn', 2
/// classes". Reports show them as rows of that name, so that together they sum up what was read.
struct Note {
  std::string_view topic;  ///< "edge list", "labels" …; empty: about no part of a table
  std::string_view text;
};

/// Both are parts of `note`.
Note parted(std::string_view note);

}  // namespace tessera::io
