// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "tessera/ops/operand.hpp"

/// Where rows lie that matrix units take as they are.
namespace tessera::ops {

/// From one row to the next.
inline std::int64_t stride_bytes(const ConstOperand& operand) {
  return operand.stride * static_cast<std::int64_t>(bytes_per_element(operand.precision));
}

/// Whether every row begins on a 16-byte boundary, at a distance that kernels compute with.
inline bool on_boundaries(const ConstOperand& operand) {
  const std::int64_t bytes = stride_bytes(operand);
  return reinterpret_cast<std::uintptr_t>(operand.data) % 16 == 0 && bytes % 16 == 0 &&
         bytes <= std::numeric_limits<std::uint32_t>::max();
}

}  // namespace tessera::ops
