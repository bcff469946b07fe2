// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/sddmm/cuda/lists/policy.hpp"
#include "tessera/core/device.hpp"
#include "tessera/core/dtype.hpp"
#include "tessera/core/types.hpp"

namespace tessera::ops {

/// One end of the edges of a list.
struct ListedEnd {
  const VertexId* vertices = nullptr;  ///< of each edge, with whole tiles at the end
  const void* features = nullptr;
  std::int64_t stride = 0;  ///< in elements
};

/// Everything a launch needs; passed to the GPU by value.
struct ListLaunch {
  ListedEnd kept;  ///< that edges which follow each other have in common: the target, or the source
  ListedEnd gathered;
  const std::int32_t* places = nullptr;  ///< of results; null: as listed
  int num_edges = 0;
  int share = 0;                ///< edges of a block, in whole tiles
  std::uint32_t row_bytes = 0;  ///< in whole lines
  void* edges = nullptr;
  std::int64_t edges_stride = 0;
};

using ListFunction = void (*)(const ListLaunch& launch, Stream stream);

/// Compiled in units of their own (inst/).
template <Precision precision>
struct ListKernel {
  static ListFunction get();
};

}  // namespace tessera::ops
