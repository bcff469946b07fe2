// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/scales.hpp"

#include "cuda/array.hpp"
#include "cuda/launch.cuh"
#include "cuda/vectors.cuh"

namespace tessera::ops {
namespace {

template <class T>
__device__ std::uint32_t two_parts(float value) {
  const T high = cuda::narrow<T>(value);
  const T low = cuda::narrow<T>(value - cuda::widen(high));
  std::uint16_t parts[2];
  memcpy(&parts[0], &high, 2);
  memcpy(&parts[1], &low, 2);
  return parts[0] | static_cast<std::uint32_t>(parts[1]) << 16;
}

__global__ void pack(const VertexId* columns, std::int64_t count, const float* scales,
                     Precision precision, float factor, std::uint32_t* packed) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float scale = scales[columns[i]] * factor;
  packed[i] = precision == Precision::bf16   ? two_parts<__nv_bfloat16>(scale)
              : precision == Precision::fp16 ? two_parts<__half>(scale)
                                             : __float_as_uint(scale);
}

}  // namespace

Buffer<std::uint32_t> pack_scales(std::span<const VertexId> columns,
                                  const SharedArray<float>& scales, float factor,
                                  Precision precision, const Place& place) {
  if (scales.empty()) return {};
  const std::int64_t count = std::ssize(columns);
  Buffer<std::uint32_t> packed(count, place);
  constexpr unsigned threads = 256;
  cuda::launch(pack, dim3(cuda::num_blocks(count, threads)), threads, place.stream, columns.data(),
               count, scales.data(), precision, factor, packed.data());
  return packed;
}

}  // namespace tessera::ops
