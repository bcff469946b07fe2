// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/random.hpp"

namespace tessera::links {

/// Keeps what links draw apart from what layers and training draw: layers of `Random`.
/// The two behind it are those of pairs (ops/pairs/draw_formula.hpp).
enum RandomUse : std::uint32_t { draw_parts = 0x7E000000u };

}  // namespace tessera::links
