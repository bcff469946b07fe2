// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/rows.hpp"
#include "tessera/ops/operand.hpp"

namespace tessera::ops {

inline constexpr int dots_32_rows = 32;  ///< of a window: a lane for each

/// What a plan keeps for its launches; passed to the GPU by value.
struct Dots32Windows {
  cuda::Offsets row_offsets;
  const EdgeOffset* step_offsets = nullptr;  ///< of windows; 16 columns a step
  const VertexId* columns = nullptr;
  const std::uint32_t* rows_of_column = nullptr;  ///< bit by bit
};

void launch_dots_32(const Dots32Windows& windows, const ConstOperand& u, const ConstOperand& v,
                    const Operand& edges, Stream stream);

}  // namespace tessera::ops
