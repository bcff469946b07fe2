// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tessera::test {

/// How often `new` was called in this program, by any thread (unit/core/counted_new.cpp).
std::int64_t num_news() noexcept;

}  // namespace tessera::test
