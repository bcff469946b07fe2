// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/core/memory.hpp"

#include "ops/dense_check.hpp"

namespace tessera::ops {

/// How often each of `count` rows is among `rows`. Losses walk over all rows with these numbers: a
/// row listed twice counts twice without two threads writing to it. Throws for a row that is not
/// there.
Buffer<std::int32_t> multiplicities(const Checker& check, std::span<const std::int64_t> rows,
                                    std::int64_t count);

}  // namespace tessera::ops
