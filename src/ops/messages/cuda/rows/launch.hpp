// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "cuda/cuts.hpp"
#include "tessera/core/dtype.hpp"
#include "tessera/ops/messages.hpp"

namespace tessera::ops {

inline constexpr int messages_block_threads = 128;

/// Rows of features, as they are stored; strides in elements.
struct MessageRowsOf {
  const void* data = nullptr;
  std::int64_t stride = 0;
};

/// Everything a launch needs; passed to the GPU by value. Forward rows are targets, and the others
/// their sources; backward it is the other way round.
struct MessagesLaunch {
  cuda::CutRows rows;
  const VertexId* others = nullptr;
  const EdgeOffset* positions = nullptr;  ///< of edges in CSR order; null: they are in it
  const EdgeOffset* edge_rows = nullptr;  ///< by that order; null: the same
  int features = 0;
  int lanes = 32;  ///< of a team, which has a row

  MessageRowsOf x;
  MessageRowsOf edges;
  MessageRowsOf grad_y;  ///< backward
  void* sums = nullptr;  ///< y, or the gradient of x; null: not wanted
  std::int64_t sums_stride = 0;
  void* grad_edges = nullptr;  ///< backward; null: not wanted
  std::int64_t grad_edges_stride = 0;
  float* slots = nullptr;  ///< a row of sums for each piece of a long row
};

using MessagesFunction = void (*)(const MessagesLaunch& launch, Stream stream);

/// What sets kernels apart: 16 bytes at once, where all rows lie on such boundaries, or single
/// features.
struct MessagesKey {
  Precision precision = Precision::fp32;
  bool aligned = false;

  friend constexpr bool operator==(const MessagesKey&, const MessagesKey&) = default;
};

/// Both passes of all messages, each by the number of the message.
struct MessagesPasses {
  std::array<MessagesFunction, 3> forward, backward;
};

/// Compiled in units of their own (inst/).
template <MessagesKey key>
struct MessagesKernels {
  static MessagesPasses get();
};

}  // namespace tessera::ops
