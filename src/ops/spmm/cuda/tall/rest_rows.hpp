// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/rows.hpp"
#include "tessera/core/dtype.hpp"

/// The edges that tiles leave out: sums of their rows in fp32, which the store of the tiles adds.
namespace tessera::ops {

struct RestLaunch {
  VertexId num_rows = 0;
  cuda::Offsets offsets;
  const VertexId* indices = nullptr;
  const float* col_scale = nullptr;  ///< null: 1

  const void* x = nullptr;
  std::int64_t x_stride = 0;  ///< in elements, as all that follow
  std::int64_t features = 0;
  float* sums = nullptr;
  std::int64_t sums_stride = 0;  ///< at least the features, rounded up to a multiple of 32
};

using RestFunction = void (*)(const RestLaunch& launch, Stream stream);

/// `aligned`: rows of X start and end on 16-byte boundaries.
RestFunction rest_function(Precision precision, std::int64_t features, bool aligned);

}  // namespace tessera::ops
