// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "core/cuda_handles.hpp"
#include "cuda/launch.cuh"
#include "cuda/precision.cuh"
#include "cuda/search.cuh"
#include "cuda/sums.cuh"
#include "ops/cuda/dropout.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/dense_workspace.hpp"
#include "ops/gaussian/kernels.hpp"

namespace tessera::ops {
namespace {

/// `Random::normal` on a GPU.
__device__ inline double normal(const DropoutConstants& draw, std::uint32_t step,
                                std::uint64_t element) {
  const uint4 words = philox_words(draw, step, element);
  const std::uint64_t first = (std::uint64_t{words.y} << 32) | words.x;
  const std::uint64_t second = (std::uint64_t{words.w} << 32) | words.z;
  const double radius = sqrt(-2 * log((static_cast<double>(first >> 11) + 1) * 0x1p-53));
  return radius * cospi(2 * (static_cast<double>(second >> 11) * 0x1p-53));
}

/// Where the kernels read and write, by element of y.
template <class T>
struct Halves {
  cuda::Rows<const T> x;
  std::int64_t rows, width;

  __device__ double mean(std::int64_t row, std::int64_t col) const {
    return cuda::widen(x.data[row * x.stride + col]);
  }
  __device__ double log_deviation(std::int64_t row, std::int64_t col) const {
    return cuda::widen(x.data[row * x.stride + width + col]);
  }
};

template <class T>
__global__ void draw_rows(const Halves<T> halves, const DropoutConstants draw, cuda::Rows<T> y) {
  const std::int64_t k = cuda::thread_number();
  if (k >= halves.rows * halves.width) return;
  const std::int64_t row = k / halves.width, col = k - row * halves.width;
  const double deviation = exp(fmin(halves.log_deviation(row, col), most_log_deviation));
  const double noise = normal(draw, present_step(draw), static_cast<std::uint64_t>(k));
  y.data[row * y.stride + col] =
      cuda::narrow<T>(static_cast<float>(halves.mean(row, col) + noise * deviation));
}

template <class T>
__global__ __launch_bounds__(cuda::sum_threads) void differentiate_rows(
    const Halves<T> halves, const DropoutConstants draw, cuda::Rows<const T> grad_y,
    cuda::Rows<T> grad_x, double weight, double* value, const cuda::Workspace workspace) {
  cuda::begin_overlapped();
  const std::uint32_t step = present_step(draw);
  const std::int64_t size = halves.rows * halves.width;
  const std::int64_t stride = std::int64_t{gridDim.x} * cuda::sum_threads;
  double divergence[1] = {};
  for (std::int64_t k = std::int64_t{blockIdx.x} * cuda::sum_threads + threadIdx.x; k < size;
       k += stride) {
    const std::int64_t row = k / halves.width, col = k - row * halves.width;
    const double mean = halves.mean(row, col), given = halves.log_deviation(row, col);
    const double logarithm = fmin(given, most_log_deviation), deviation = exp(logarithm);
    const double noise = normal(draw, step, static_cast<std::uint64_t>(k));
    const double arriving = cuda::widen(grad_y.data[row * grad_y.stride + col]);
    T* const to = grad_x.data + row * grad_x.stride;
    to[col] = cuda::narrow<T>(static_cast<float>(arriving + weight * mean));
    const double of_logarithm = arriving * noise * deviation + weight * (deviation * deviation - 1);
    to[halves.width + col] =
        cuda::narrow<T>(static_cast<float>(given > most_log_deviation ? 0 : of_logarithm));
    divergence[0] -= 0.5 * (1 + 2 * logarithm - mean * mean - deviation * deviation);
  }
  cuda::add_across_grid(divergence, workspace,
                        [&](const double(&sum)[1]) { *value += weight * sum[0]; });
}

template <class T>
Halves<T> halves_of(const ConstOperand& x) {
  return {rows_of<T>(x), x.rows, x.cols / 2};
}

}  // namespace

void gaussian_on_gpu(ConstOperand x, const DropoutConstants& draw, Operand y, Device device,
                     Stream stream) {
  const cuda_backend::CurrentDevice current(device.index);
  cuda::visit_type(x.type, [&]<class T>(T) {
    cuda::launch_each(draw_rows<T>, y.rows * y.cols, stream, halves_of<T>(x), draw, rows_of<T>(y));
  });
}

void gaussian_backward_on_gpu(const GaussianGradient& gradient, const DropoutConstants& draw,
                              Device device, Stream stream, const DenseWorkspace* workspace) {
  const cuda_backend::CurrentDevice current(device.index);
  const DenseWorkspaceUse use(workspace, "gaussian_backward", device, stream);
  const auto& [x, grad_y, grad_x, weight, value] = gradient;
  const std::int64_t size = grad_y.rows * grad_y.cols;
  cuda::visit_type(x.type, [&]<class T>(T) {
    cuda::launch_overlapped(differentiate_rows<T>,
                            cuda::sum_grid(size, std::int64_t{cuda::sum_threads} * 4),
                            cuda::sum_threads, stream, halves_of<T>(x), draw, rows_of<T>(grad_y),
                            rows_of<T>(grad_x), weight, value, cuda::workspace_in(use.data()));
  });
}

}  // namespace tessera::ops
