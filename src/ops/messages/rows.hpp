// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "ops/rows/row_schedule.hpp"
#include "ops/simd/isa.hpp"
#include "tessera/core/types.hpp"

/// The inner kernels of messages on the CPU: what one range of rows needs, and their table. Plain
/// data only, since `rows_simd.cpp` is compiled several times.
namespace tessera::ops {

/// Rows of features stored as T.
template <class T>
struct MessageMatrix {
  T* data = nullptr;
  std::int64_t stride = 0;
};

/// The operands of one run. Forward rows are targets, and the others their sources; backward it is
/// the other way round.
template <class T>
struct MessageRows {
  const EdgeOffset* offsets = nullptr;
  const VertexId* others = nullptr;
  EdgeOffset num_edges = 0;
  const EdgeOffset* positions = nullptr;  ///< of edges in CSR order; null: they are in it
  const EdgeOffset* edge_rows = nullptr;  ///< by that order; null: the same

  MessageMatrix<const T> x;
  MessageMatrix<const T> edges;
  MessageMatrix<const T> grad_y;  ///< backward
  MessageMatrix<T> sums;          ///< y, or the gradient of x; null: not wanted
  MessageMatrix<T> grad_edges;    ///< backward; null: not wanted

  double* slots = nullptr;  ///< a row of sums for each slot
  std::int64_t slot_stride = 0;
};

/// Of messages stored as T; by the number of the message (tessera/ops/messages.hpp).
template <class T>
struct MessageFunctions {
  using Function = void (*)(const MessageRows<T>& rows, const RowRange& range,
                            std::int64_t features);
  std::array<Function, 3> forward, backward;
};

}  // namespace tessera::ops

TESSERA_SIMD_TABLE(ByStorage<MessageFunctions>, message_rows)
