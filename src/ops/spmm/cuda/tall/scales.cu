// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/scales.hpp"

#include <algorithm>
#include <cmath>

#include "cuda/array.hpp"
#include "cuda/launch.cuh"
#include "cuda/vectors.cuh"

namespace tessera::ops {
namespace {

/// fp16 holds 11 bits from 2^-14 on, and steps of 2^-24 below: the low part of a scale of 2^-8
/// still brings the error under 2^-17 of it.
constexpr int largest_exponent = 15;
constexpr int smallest_exponent = -8;

struct Range {
  float smallest = INFINITY;
  float largest = 0;
};

Range range_of(std::span<const float> scales) {
  Range range;
  for (const float scale : scales) {
    const float size = std::abs(scale);
    if (size == 0) continue;
    range.smallest = std::min(range.smallest, size);
    range.largest = std::max(range.largest, size);
  }
  return range;
}

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

float scale_factor(std::span<const float> scales, Precision precision) {
  if (precision != Precision::fp16) return 1;
  const Range range = range_of(scales);
  if (range.largest == 0 || !std::isfinite(range.largest)) return 1;
  return std::ldexp(1.0f, largest_exponent - 1 - std::ilogb(range.largest));
}

std::string why_not_scales(std::span<const float> scales, Precision precision) {
  if (precision != Precision::fp16 || scales.empty()) return {};
  const Range range = range_of(scales);
  if (range.largest == 0) return {};
  const bool narrow =
      std::isfinite(range.largest) && std::ilogb(range.largest) - std::ilogb(range.smallest) <
                                          largest_exponent - 1 - smallest_exponent;
  return narrow ? "" : "weights differ by more than fp16 holds";
}

Buffer<std::uint32_t> pack_scales(const Buffer<VertexId>& columns, std::span<const float> scales,
                                  Precision precision, Device device) {
  if (scales.empty()) return {};
  const Buffer<float> on_device = cuda::to_device(scales, device);
  Buffer<std::uint32_t> packed(columns.size(), default_memory(device));
  constexpr unsigned threads = 256;
  cuda::launch(pack, dim3(cuda::num_blocks(columns.size(), threads)), threads, Stream{},
               columns.data(), columns.size(), on_device.data(), precision,
               scale_factor(scales, precision), packed.data());
  synchronise(device);
  return packed;
}

}  // namespace tessera::ops
