// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "tessera/core/error.hpp"

namespace tessera::links {

/// A score that is not a number has no place among others.
[[noreturn]] inline void refuse_score(const char* where) {
  throw Error(ErrorCode::bad_data, "a score is not a number", where,
              "train with a lower learning rate");
}

template <class Score>
void require_numbers(std::span<const Score> scores, const char* where) {
  if (std::any_of(scores.begin(), scores.end(), [](Score s) { return std::isnan(s); })) {
    refuse_score(where);
  }
}

}  // namespace tessera::links
