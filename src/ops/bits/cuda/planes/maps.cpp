// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/planes/maps.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "tessera/core/error.hpp"

#include "core/cuda_check.hpp"

namespace tessera::ops {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

/// A function of the driver, which the library is not linked with.
Encode encoder() {
  static const Encode function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    cuda_check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                                cudaEnableDefault, &result),
               "asking the driver for tensor maps");
    if (result != cudaDriverEntryPointSuccess) {
      throw Error(ErrorCode::backend_unavailable, "the driver has no tensor maps", "CUDA",
                  "install a driver for CUDA 12 or later");
    }
    return reinterpret_cast<Encode>(found);
  }();
  return function;
}

/// A map and what it is made of.
struct DescribedPlanes {
  BitRows planes;
  int rows = 0;
  CUtensorMap map;
};

CUtensorMap make_map(const BitRows& planes, int rows) {
  const cuuint64_t sizes[3] = {static_cast<cuuint64_t>(planes.row_words),
                               static_cast<cuuint64_t>(planes.rows),
                               static_cast<cuuint64_t>(planes.planes)};
  const cuuint64_t row_bytes = sizes[0] * 4;
  const cuuint64_t strides[2] = {
      row_bytes, std::max(static_cast<cuuint64_t>(planes.plane_words) * 4, row_bytes)};
  const cuuint32_t box[3] = {32, static_cast<cuuint32_t>(rows), 1};
  const cuuint32_t steps[3] = {1, 1, 1};
  CUtensorMap map;
  const CUresult done = encoder()(
      &map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 3, const_cast<std::uint32_t*>(planes.words), sizes,
      strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (done == CUDA_SUCCESS) return map;
  throw Error(ErrorCode::internal, "the driver refused a tensor map of planes", "bit_gemm");
}

}  // namespace

CUtensorMap plane_map(const BitRows& planes, int rows) {
  // The GPU is idle while the driver describes operands: those of the last runs are kept.
  thread_local std::array<DescribedPlanes, 4> recent = {};
  thread_local std::size_t oldest = 0;
  for (const DescribedPlanes& one : recent) {
    if (one.planes == planes && one.rows == rows) return one.map;
  }
  const CUtensorMap map = make_map(planes, rows);
  recent[oldest] = {planes, rows, map};
  oldest = (oldest + 1) % recent.size();
  return map;
}

}  // namespace tessera::ops
