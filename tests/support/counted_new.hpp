// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tessera::test {

/// How often `new` was called in this program, by any thread (unit/core/counted_new.cpp).
std::int64_t num_news() noexcept;

/// Bytes that `new` has given out and nobody has given back, and the most there were at once since
/// `forget_most_new_bytes`.
std::int64_t new_bytes() noexcept;
std::int64_t most_new_bytes() noexcept;
void forget_most_new_bytes() noexcept;

}  // namespace tessera::test
