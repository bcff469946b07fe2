// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "core/cuda_handles.hpp"
#include "cuda/launch.cuh"
#include "cuda/precision.cuh"
#include "cuda/rows.hpp"
#include "cuda/search.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/grouped_linear/call.hpp"

namespace tessera::ops {
namespace {

/// What kernels read: rows of x, y or their gradients, and the weight of each group.
template <class T>
struct Grouped {
  const VertexId* groups = nullptr;
  cuda::Rows<const T> weights;
  std::int64_t rows = 0, in = 0, out = 0, height = 0, width = 0;
};

/// A thread computes an element of y.
template <class T>
__global__ void products(const Grouped<T> all, const cuda::Rows<const T> x, const cuda::Rows<T> y) {
  const std::int64_t k = cuda::thread_number();
  const std::int64_t row = k / all.out;
  if (row >= all.rows) return;
  const std::int64_t col = k - row * all.out, block = col / all.width;
  const T* const from = x.data + row * x.stride + block * all.height;
  const T* const weight = all.weights.data + all.groups[row] * all.weights.stride +
                          block * all.height * all.width + (col - block * all.width);
  float sum = 0;
  for (std::int64_t i = 0; i < all.height; ++i) {
    sum += cuda::widen(from[i]) * cuda::widen(weight[i * all.width]);
  }
  y.data[row * y.stride + col] = cuda::narrow<T>(sum);
}

/// The same of the gradient of x.
template <class T>
__global__ void turned_products(const Grouped<T> all, const cuda::Rows<const T> grad_y,
                                const cuda::Rows<T> grad_x) {
  const std::int64_t k = cuda::thread_number();
  const std::int64_t row = k / all.in;
  if (row >= all.rows) return;
  const std::int64_t col = k - row * all.in;
  const T* const slopes = grad_y.data + row * grad_y.stride + col / all.height * all.width;
  const T* const weight = all.weights.data + all.groups[row] * all.weights.stride + col * all.width;
  float sum = 0;
  for (std::int64_t j = 0; j < all.width; ++j) {
    sum += cuda::widen(slopes[j]) * cuda::widen(weight[j]);
  }
  grad_x.data[row * grad_x.stride + col] = cuda::narrow<T>(sum);
}

/// The rows of each group one after the other.
struct GroupRows {
  cuda::Offsets offsets;
  const VertexId* rows = nullptr;
  std::int64_t groups = 0;
};

__device__ std::int64_t offset_at(const cuda::Offsets& offsets, std::int64_t group) {
  return offsets.narrow != nullptr ? offsets.narrow[group] : offsets.wide[group];
}

/// A warp finds one number of a group's weight: each lane adds up every 32nd row, and their sums
/// are added in one order.
constexpr int threads_per_sum = 32, sums_per_block = 8;

template <class T>
__global__ void outer_products(const Grouped<T> all, const GroupRows members,
                               const cuda::Rows<const T> x, const cuda::Rows<const T> grad_y,
                               const cuda::Rows<T> grad_weights) {
  const std::int64_t size = all.in * all.width;
  const auto lane = static_cast<int>(threadIdx.x % threads_per_sum);
  const std::int64_t k = std::int64_t{blockIdx.x} * sums_per_block + threadIdx.x / threads_per_sum;
  const std::int64_t group = k / size;
  if (group >= members.groups) return;
  const std::int64_t place = k - group * size, col = place / all.width;
  const std::int64_t slope = col / all.height * all.width + (place - col * all.width);
  const std::int64_t end = offset_at(members.offsets, group + 1);
  float sum = 0;
  for (std::int64_t i = offset_at(members.offsets, group) + lane; i < end; i += threads_per_sum) {
    const std::int64_t row = members.rows[i];
    sum += cuda::widen(x.data[row * x.stride + col]) *
           cuda::widen(grad_y.data[row * grad_y.stride + slope]);
  }
  for (int distance = threads_per_sum / 2; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xFFFFFFFFu, sum, distance);
  }
  if (lane == 0) {
    grad_weights.data[group * grad_weights.stride + place] = cuda::narrow<T>(sum);
  }
}

Place place_of(const GroupedCall& call, Device device, Stream stream) {
  Place place = call.groups.place();
  if (place.device != device) place = Place{device};
  place.stream = stream;
  return place;
}

template <class T>
Grouped<T> grouped_of(const GroupedCall& call, const cuda::DeviceRows& rows) {
  const auto [in, height, width] = call.shape;
  return {rows.indices.data(),
          rows_of<T>(call.weights),
          call.x.rows,
          in,
          in / height * width,
          height,
          width};
}

}  // namespace

void grouped_on_gpu(const GroupedCall& call, Operand y, Device device, Stream stream) {
  const cuda_backend::CurrentDevice current(device.index);
  const auto rows = cuda::device_rows(call.groups, place_of(call, device, stream));
  cuda::visit_type(y.type, [&]<class T>(T) {
    cuda::launch_each(products<T>, y.rows * y.cols, stream, grouped_of<T>(call, *rows),
                      rows_of<T>(call.x), rows_of<T>(y));
  });
}

void grouped_backward_on_gpu(const GroupedCall& call, ConstOperand grad_y, Operand grad_x,
                             Operand grad_weights, Device device, Stream stream) {
  const cuda_backend::CurrentDevice current(device.index);
  const Place place = place_of(call, device, stream);
  const auto rows = cuda::device_rows(call.groups, place);
  cuda::visit_type(grad_y.type, [&]<class T>(T) {
    const Grouped<T> all = grouped_of<T>(call, *rows);
    if (!grad_x.absent() && grad_x.rows * grad_x.cols > 0) {
      cuda::launch_each(turned_products<T>, grad_x.rows * grad_x.cols, stream, all,
                        rows_of<T>(grad_y), rows_of<T>(grad_x));
    }
    const std::int64_t sums = grad_weights.rows * grad_weights.cols;
    if (grad_weights.absent() || sums == 0) return;
    const auto members = cuda::device_columns(call.groups, place);
    const GroupRows of_groups{members->offsets(), members->indices.data(), grad_weights.rows};
    cuda::launch(outer_products<T>, dim3(cuda::num_blocks(sums, sums_per_block)),
                 threads_per_sum * sums_per_block, stream, all, of_groups, rows_of<T>(call.x),
                 rows_of<T>(grad_y), rows_of<T>(grad_weights));
  });
}

}  // namespace tessera::ops
