// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "cuda/launch.cuh"
#include "cuda/precision.cuh"
#include "cuda/vectors.cuh"
#include "graph/weight_functions.hpp"
#include "ops/dense/cuda/epilogue.cuh"
#include "ops/spmm/cuda/scatter/launch.hpp"

/// Gather-apply-scatter: some lanes take an edge, gather its features, apply its weight and add
/// them to the row of its target by atomics. Edges that follow each other and have the same target
/// are added up in registers first, so that edges which happen to be sorted cost few atomics.
namespace tessera::ops::scatter {

constexpr int block_threads = 256;
/// Consecutive edges of a group of lanes, and how many of them are on their way at the same time.
constexpr int edges_per_group = 16;
constexpr int edges_in_flight = 4;

template <WeightFunction function>
using FunctionOf =
    std::conditional_t<function == WeightFunction::gaussian, GaussianWeight, ProductWeight>;

__device__ inline float number_of(const float* numbers, VertexId vertex) {
  return numbers == nullptr ? 1.0f : __ldg(numbers + vertex);
}

/// A mean's share of an edge.
__device__ inline float share_of(const ScatterLaunch::Matrix& matrix, VertexId row) {
  return matrix.degrees == nullptr ? 1.0f : 1.0f / static_cast<float>(__ldg(matrix.degrees + row));
}

template <class T>
__device__ float value_of(const ScatterLaunch::Matrix& matrix, EdgeOffset edge) {
  if (matrix.stored_values != nullptr) {
    return cuda::widen(static_cast<const T*>(matrix.stored_values)[edge * matrix.value_stride]);
  }
  return matrix.graph_values != nullptr ? __ldg(matrix.graph_values + edge) : 1.0f;
}

/// The weight of an edge of this value; in a backward pass with a mean's share.
template <class Function>
__device__ float weight_of(const ScatterLaunch::Matrix& matrix, float value, VertexId row,
                           VertexId col) {
  const float weight =
      Function{}(value, number_of(matrix.row_numbers, row), number_of(matrix.col_numbers, col));
  return matrix.transposed ? weight * share_of(matrix, row) : weight;
}

/// Whether four numbers are added by one instruction.
#if __CUDA_ARCH__ >= 900
constexpr bool adds_four = true;
#else
constexpr bool adds_four = false;
#endif

__device__ inline void add_four(float* to, const float* values) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to),
               "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3])
               : "memory");
#endif
}

/// Adds to memory that others add to at the same time. Four at once lie on a 16-byte boundary.
template <int count>
__device__ void add_atomically(float* to, const float (&values)[count]) {
  if constexpr (adds_four && count % 4 == 0) {
#pragma unroll
    for (int i = 0; i < count; i += 4) add_four(to + i, values + i);
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i) atomicAdd(to + i, values[i]);
  }
}

template <class T, bool aligned>
using FeatureVector = cuda::Vector<T, aligned ? 16 : static_cast<int>(sizeof(T))>;

/// Zeros, or the term of the loop that a rule adds: a thread per vector of a row.
template <class T, class Function, bool aligned>
__global__ __launch_bounds__(block_threads) void begin_rows(const ScatterLaunch launch) {
  cuda::begin_overlapped();
  using Vector = FeatureVector<T, aligned>;
  constexpr int count = Vector::count;
  const std::int64_t per_row = (launch.features.count + count - 1) / count;
  const std::int64_t thread = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  const std::int64_t row = thread / per_row;
  if (row >= launch.matrix.num_results) return;
  const std::int64_t feature = thread % per_row * count;
  float values[count] = {};
  const float loop = launch.matrix.loops == nullptr ? 0.0f : __ldg(launch.matrix.loops + row);
  if (loop != 0) {
    const auto vertex = static_cast<VertexId>(row);
    const float weight = weight_of<Function>(launch.matrix, loop, vertex, vertex);
    Vector::load(static_cast<const T*>(launch.features.x) + row * launch.features.x_stride +
                 feature)
        .widen_to(values);
#pragma unroll
    for (float& value : values) value *= weight;
  }
  float* const sums = launch.features.sums + row * launch.features.sums_stride + feature;
  if constexpr (aligned) {
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      *reinterpret_cast<float4*>(sums + i) =
          make_float4(values[i], values[i + 1], values[i + 2], values[i + 3]);
    }
  } else {
    *sums = values[0];
  }
}

/// What a lane keeps of edges of one target.
template <int count>
class TargetSum {
 public:
  __device__ explicit TargetSum(const ScatterLaunch& launch, std::int64_t feature)
      : sums_(launch.features.sums + feature), stride_(launch.features.sums_stride) {}

  __device__ void add(VertexId target, float weight, const float (&values)[count]) {
    if (target != target_) {
      flush();
      target_ = target;
#pragma unroll
      for (float& sum : kept_) sum = 0;
    }
#pragma unroll
    for (int i = 0; i < count; ++i) kept_[i] = fmaf(weight, values[i], kept_[i]);
  }

  __device__ void flush() const {
    if (target_ >= 0) add_atomically(sums_ + target_ * stride_, kept_);
  }

 private:
  float* sums_;
  std::int64_t stride_;
  VertexId target_ = -1;
  float kept_[count] = {};
};

/// `lanes` lanes take `edges_per_group` consecutive edges, a vector of features each.
template <class T, class Function, bool aligned>
__global__ __launch_bounds__(block_threads) void add_edges(const ScatterLaunch launch) {
  cuda::begin_overlapped();
  using Vector = FeatureVector<T, aligned>;
  constexpr int count = Vector::count;
  const int lanes = launch.work.lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const std::int64_t feature = (std::int64_t{blockIdx.y} * lanes + lane) * count;
  if (feature >= launch.features.count) return;
  const std::int64_t group =
      (std::int64_t{blockIdx.x} * block_threads + threadIdx.x) / static_cast<unsigned>(lanes);
  const EdgeOffset begin = group * edges_per_group;
  if (begin >= launch.matrix.num_edges) return;
  const EdgeOffset end = begin + edges_per_group < launch.matrix.num_edges
                             ? begin + edges_per_group
                             : launch.matrix.num_edges;
  const T* const x = static_cast<const T*>(launch.features.x) + feature;
  TargetSum<count> sum(launch, feature);
  for (EdgeOffset first = begin; first < end; first += edges_in_flight) {
    VertexId targets[edges_in_flight];
    float weights[edges_in_flight];
    Vector rows[edges_in_flight];
#pragma unroll
    for (int i = 0; i < edges_in_flight; ++i) {
      // The last edge stands for those that do not exist, and is left out below.
      const EdgeOffset edge = first + i < end ? first + i : end - 1;
      const VertexId row = __ldg(launch.matrix.rows + edge);
      const VertexId col = __ldg(launch.matrix.cols + edge);
      targets[i] = launch.matrix.transposed ? col : row;
      const std::int64_t source = launch.matrix.transposed ? row : col;
      rows[i] = Vector::load(x + source * launch.features.x_stride);
      weights[i] = weight_of<Function>(launch.matrix, value_of<T>(launch.matrix, edge), row, col);
    }
#pragma unroll
    for (int i = 0; i < edges_in_flight; ++i) {
      if (first + i >= end) break;
      float values[count];
      rows[i].widen_to(values);
      sum.add(targets[i], weights[i], values);
    }
  }
  sum.flush();
}

/// Division of a mean, epilogue and rounding: a thread per `width` features of a row.
template <class T, int width>
__global__ __launch_bounds__(block_threads) void finish_rows(const ScatterLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t per_row = (launch.features.count + width - 1) / width;
  const std::int64_t thread = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  const EpiloguePlace place = {thread / per_row, thread % per_row * width, launch.features.count};
  if (place.row >= launch.matrix.num_results) return;
  const float* const sums =
      launch.features.sums + place.row * launch.features.sums_stride + place.feature;
  float values[width];
#pragma unroll
  for (int i = 0; i < width; ++i) values[i] = sums[i];
  if (launch.matrix.degrees != nullptr && !launch.matrix.transposed) {
    const std::uint32_t degree = __ldg(launch.matrix.degrees + place.row);
#pragma unroll
    for (int i = 0; i < width && degree != 0; ++i) values[i] /= static_cast<float>(degree);
  }
  store_with_epilogue<T>(launch.epilogue, launch.features.y, launch.features.y_stride, place,
                         values);
}

template <class T, class Function, bool aligned>
void launch_scatter(const ScatterLaunch& launch, Stream stream) {
  constexpr int count = FeatureVector<T, aligned>::count;
  const std::int64_t per_row = (launch.features.count + count - 1) / count;
  cuda::launch_overlapped(
      begin_rows<T, Function, aligned>,
      dim3(cuda::num_blocks(launch.matrix.num_results * per_row, block_threads)), block_threads,
      stream, launch);
  const std::int64_t groups = (launch.matrix.num_edges + edges_per_group - 1) / edges_per_group;
  const dim3 grid(cuda::num_blocks(groups * launch.work.lanes, block_threads),
                  cuda::num_blocks(per_row, launch.work.lanes));
  cuda::launch_overlapped(add_edges<T, Function, aligned>, grid, block_threads, stream, launch);
  if (!launch.work.finishes) return;
  const bool in_fours = launch.features.count % 4 == 0;
  const std::int64_t parts = in_fours ? launch.features.count / 4 : launch.features.count;
  cuda::launch_overlapped(in_fours ? finish_rows<T, 4> : finish_rows<T, 1>,
                          dim3(cuda::num_blocks(launch.matrix.num_results * parts, block_threads)),
                          block_threads, stream, launch);
}

/// `lanes` lanes take an edge.
template <class T, class Function, bool aligned>
__global__ __launch_bounds__(block_threads) void edge_dots(const EdgeDotsLaunch launch) {
  cuda::begin_overlapped();
  using Vector = FeatureVector<T, aligned>;
  constexpr int count = Vector::count;
  const int lanes = launch.lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const EdgeOffset edge =
      (std::int64_t{blockIdx.x} * block_threads + threadIdx.x) / static_cast<unsigned>(lanes);
  const bool live = edge < launch.matrix.num_edges;
  const VertexId row = live ? __ldg(launch.matrix.rows + edge) : 0;
  const VertexId col = live ? __ldg(launch.matrix.cols + edge) : 0;
  const T* const grad_y = static_cast<const T*>(launch.grad_y) + row * launch.grad_y_stride;
  const T* const x = static_cast<const T*>(launch.x) + col * launch.x_stride;
  float sum = 0;
  for (std::int64_t k = lane * count; live && k < launch.features; k += lanes * count) {
    float a[count], b[count];
    Vector::load(grad_y + k).widen_to(a);
    Vector::load(x + k).widen_to(b);
#pragma unroll
    for (int i = 0; i < count; ++i) sum = fmaf(a[i], b[i], sum);
  }
  for (int distance = 1; distance < lanes; distance *= 2) {
    sum += __shfl_xor_sync(~0u, sum, distance);
  }
  if (!live || lane != 0) return;
  const float factor = Function{}.by_value(value_of<T>(launch.matrix, edge),
                                           number_of(launch.matrix.row_numbers, row),
                                           number_of(launch.matrix.col_numbers, col));
  static_cast<T*>(launch.result)[edge * launch.result_stride] =
      cuda::narrow<T>(sum * factor * share_of(launch.matrix, row));
}

template <class T, class Function, bool aligned>
void launch_edge_dots(const EdgeDotsLaunch& launch, Stream stream) {
  cuda::launch_overlapped(
      edge_dots<T, Function, aligned>,
      dim3(cuda::num_blocks(launch.matrix.num_edges * launch.lanes, block_threads)), block_threads,
      stream, launch);
}

template <class T>
__global__ __launch_bounds__(block_threads) void fill_values(const MovedValuesLaunch launch) {
  cuda::begin_overlapped();
  const EdgeOffset k = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  if (k < launch.num_moved) {
    static_cast<T*>(launch.moved)[k] = cuda::narrow<T>(launch.loop_weight);
  }
}

/// The numbers of a product are scales of the rows already.
template <class T, class Function>
__global__ __launch_bounds__(block_threads) void move_values(const MovedValuesLaunch launch) {
  cuda::begin_overlapped();
  const EdgeOffset k = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  if (k >= launch.matrix.num_edges) return;
  float value = value_of<T>(launch.matrix, k);
  if constexpr (!std::is_same_v<Function, ProductWeight>) {
    value = weight_of<Function>(launch.matrix, value, launch.matrix.rows[k], launch.matrix.cols[k]);
  }
  static_cast<T*>(launch.moved)[launch.edge_ids[k]] = cuda::narrow<T>(value);
}

template <class T, class Function>
void launch_moved_values(const MovedValuesLaunch& launch, Stream stream) {
  if (launch.num_moved > launch.matrix.num_edges) {
    cuda::launch_overlapped(fill_values<T>, dim3(cuda::num_blocks(launch.num_moved, block_threads)),
                            block_threads, stream, launch);
  }
  cuda::launch_overlapped(move_values<T, Function>,
                          dim3(cuda::num_blocks(launch.matrix.num_edges, block_threads)),
                          block_threads, stream, launch);
}

}  // namespace tessera::ops::scatter

namespace tessera::ops {

template <ScatterKey key>
ScatterFunctions ScatterKernels<key>::get() {
  using T = cuda::Stored<key.precision>;
  using Function = scatter::FunctionOf<key.function>;
  return {scatter::launch_scatter<T, Function, key.aligned>,
          scatter::launch_edge_dots<T, Function, key.aligned>,
          scatter::launch_moved_values<T, Function>};
}

}  // namespace tessera::ops
