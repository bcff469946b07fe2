// SPDX-License-Identifier: Apache-2.0
#include "ops/loss/chosen_rows.hpp"

#include <fmt/format.h>

namespace tessera::ops {

Buffer<std::int32_t> multiplicities(const Checker& check, std::span<const std::int64_t> rows,
                                    std::int64_t count) {
  Buffer<std::int32_t> times(count, 0);
  for (const std::int64_t row : rows) {
    if (row < 0 || row >= count) {
      check.fail(fmt::format("chosen row {} is not among the {} rows of logits", row, count));
    }
    ++times[row];
  }
  return times;
}

}  // namespace tessera::ops
