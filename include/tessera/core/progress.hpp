// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace tessera {

/// Told how far long work has come: a stage in words, and `done` of `total` units (0 of 0 when the
/// length is unknown). The library itself never prints. May throw to stop the work; is called from
/// one thread at a time.
using Progress = std::function<void(std::string_view stage, std::int64_t done, std::int64_t total)>;

inline void report(const Progress& progress, std::string_view stage, std::int64_t done = 0,
                   std::int64_t total = 0) {
  if (progress) progress(stage, done, total);
}

}  // namespace tessera
