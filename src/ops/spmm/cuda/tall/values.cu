// SPDX-License-Identifier: Apache-2.0
#include "cuda/finite_bf16.cuh"
#include "cuda/launch.cuh"
#include "cuda/overlap.cuh"
#include "cuda/vectors.cuh"
#include "ops/spmm/cuda/tall/values.hpp"
#include "tiles/tile_values.hpp"

namespace tessera::ops {
namespace {

__device__ float value_of(const ValueSource& source, std::int32_t edge) {
  const std::int64_t at = edge * source.stride;
  if (source.values == nullptr) return 1;
  switch (source.stored) {
    case Precision::bf16: return cuda::widen(static_cast<const __nv_bfloat16*>(source.values)[at]);
    case Precision::fp16: return cuda::widen(static_cast<const __half*>(source.values)[at]);
    default: return static_cast<const float*>(source.values)[at];
  }
}

/// The same bits as tiles::pack_values.
__device__ std::uint32_t entry_of(float value, Precision precision) {
  if (precision == Precision::bf16) {
    const std::uint32_t high = cuda::nearest_finite_bf16(value, 0) & 0xffffu;
    const __nv_bfloat16 low = __float2bfloat16_rn(value - __uint_as_float(high << 16));
    return high | static_cast<std::uint32_t>(__bfloat16_as_ushort(low)) << 16;
  }
  if (precision == Precision::fp16) {
    const __half high = __float2half_rn(value);
    const __half low = __float2half_rn(value - __half2float(high));
    return __half_as_ushort(high) | static_cast<std::uint32_t>(__half_as_ushort(low)) << 16;
  }
  return __float_as_uint(value);
}

/// A thread a unit of entries.
__global__ void pack(const int4* edges, std::int64_t units, const ValueSource source,
                     Precision precision, uint4* entries) {
  cuda::let_next_begin();
  const std::int64_t unit = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int4 of = __ldg(edges + (unit < units ? unit : 0));
  cuda::wait_for_previous();
  if (unit >= units) return;
  const auto entry = [&](std::int32_t edge) -> std::uint32_t {
    if (edge < 0) return 0;
    float value = value_of(source, edge);
    if (source.edge_scales != nullptr) value *= __ldg(source.edge_scales + edge);
    return entry_of(value * source.factor, precision);
  };
  entries[unit] = make_uint4(entry(of.x), entry(of.y), entry(of.z), entry(of.w));
}

}  // namespace

void pack_values(std::span<const std::int32_t> edges, const ValueSource& source,
                 Precision precision, std::uint32_t* entries, Stream stream) {
  constexpr unsigned threads = 256;
  const auto units = static_cast<std::int64_t>(edges.size()) / tiles::value_unit;
  cuda::launch_overlapped(pack, dim3(cuda::num_blocks(units, threads)), threads, stream,
                          reinterpret_cast<const int4*>(edges.data()), units, source, precision,
                          reinterpret_cast<uint4*>(entries));
}

}  // namespace tessera::ops
