// SPDX-License-Identifier: Apache-2.0
#include "cuda/finite_bf16.cuh"
#include "cuda/launch.cuh"
#include "cuda/offsets.cuh"
#include "cuda/overlap.cuh"
#include "cuda/vectors.cuh"
#include "ops/windows/values.hpp"
#include "tiles/tile_values.hpp"

namespace tessera::ops {
namespace {

constexpr unsigned block_threads = 256;

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

/// A thread a column.
__global__ void pack_columns(const VertexId* columns, std::int64_t count, const float* scales,
                             Precision precision, float factor, std::uint32_t* packed) {
  const std::int64_t i = cuda::thread_number();
  if (i < count) packed[i] = entry_of(scales[columns[i]] * factor, precision);
}

__global__ void spread_scales(const cuda::Offsets offsets, const VertexId* indices,
                              VertexId num_rows, EdgeOffset num_edges, const float* scales,
                              bool forward, float* of_edges) {
  const EdgeOffset edge = cuda::thread_number();
  if (edge >= num_edges) return;
  of_edges[edge] = scales[forward ? indices[edge] : cuda::row_of(offsets, num_rows, edge)];
}

}  // namespace

Buffer<std::uint32_t> pack_scales(std::span<const VertexId> columns,
                                  const SharedArray<float>& scales, float factor,
                                  Precision precision, const Place& place) {
  if (scales.empty()) return {};
  Buffer<std::uint32_t> packed(std::ssize(columns), place);
  cuda::launch(pack_columns, dim3(cuda::num_blocks(packed.size(), block_threads)), block_threads,
               place.stream, columns.data(), packed.size(), scales.data(), precision, factor,
               packed.data());
  return packed;
}

Buffer<float> edge_scales(const cuda::DeviceRows& rows, const SharedArray<float>& column_scales,
                          bool forward, const Place& place) {
  if (column_scales.empty()) return {};
  Buffer<float> scales(rows.num_edges, place);
  cuda::launch(spread_scales, dim3(cuda::num_blocks(rows.num_edges, block_threads)), block_threads,
               place.stream, rows.offsets(), rows.indices.data(), rows.num_rows, rows.num_edges,
               column_scales.data(), forward, scales.data());
  return scales;
}

void pack_values(std::span<const std::int32_t> edges, const ValueSource& source,
                 Precision precision, std::uint32_t* entries, Stream stream) {
  const auto units = static_cast<std::int64_t>(edges.size()) / tiles::value_unit;
  cuda::launch_overlapped(pack, dim3(cuda::num_blocks(units, block_threads)), block_threads, stream,
                          reinterpret_cast<const int4*>(edges.data()), units, source, precision,
                          reinterpret_cast<uint4*>(entries));
}

}  // namespace tessera::ops
