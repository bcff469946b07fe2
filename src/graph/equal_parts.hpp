// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/types.hpp"

namespace tessera {

/// Something too long for one worker, cut into parts: edges of a row, steps of a window. Parts
/// follow each other and differ by at most one. The cut depends on the two numbers alone, so that
/// sums over parts are the same bits wherever they are made.
class EqualParts {
 public:
  /// As few parts as it takes to have at most `most` in each; none of nothing.
  static constexpr EqualParts of_at_most(EdgeOffset length, EdgeOffset most) {
    return {length, (length + most - 1) / most};
  }
  constexpr EqualParts(EdgeOffset length, EdgeOffset count) : length_(length), count_(count) {}

  constexpr EdgeOffset count() const noexcept { return count_; }
  constexpr EdgeOffset begin(EdgeOffset part) const noexcept { return length_ * part / count_; }
  constexpr EdgeOffset end(EdgeOffset part) const noexcept { return begin(part + 1); }

 private:
  EdgeOffset length_;
  EdgeOffset count_;
};

}  // namespace tessera
