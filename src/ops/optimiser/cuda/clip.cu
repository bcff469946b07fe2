// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

#include <algorithm>
#include <cmath>

#include "cuda/elements.cuh"
#include "cuda/sums.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/cuda/dense_ops.hpp"
#include "ops/dense/dense_workspace.hpp"

namespace tessera::ops {
namespace {

struct Gradient {
  cuda::Rows<const float> wide;
  cuda::Rows<const __nv_bfloat16> narrow;  ///< if there is one, it takes its place
  std::int64_t cols, size;

  explicit Gradient(const ConstOperand& given) : cols(given.cols), size(given.rows * given.cols) {
    if (given.type == ElementType::bf16) {
      narrow = rows_of<__nv_bfloat16>(given);
    } else {
      wide = rows_of<float>(given);
    }
  }
  Gradient() = default;

  __device__ float at(std::int64_t i) const {
    const std::int64_t row = i / cols, col = i % cols;
    return narrow.data != nullptr ? cuda::widen(narrow.data[row * narrow.stride + col])
                                  : wide.data[row * wide.stride + col];
  }
};

/// As many as fit into the arguments of one launch.
struct Gradients {
  static constexpr int most = 48;
  int count = 0;
  std::int64_t size = 0;  ///< of all
  Gradient all[most];
};

/// Of launches one after the other: between them the factor is the sum so far.
struct ClipRule {
  double most;
  double* factor;
  bool is_first, is_last;
};

__global__ __launch_bounds__(cuda::sum_threads) void add_squares(
    const __grid_constant__ Gradients gradients, const ClipRule rule,
    const cuda::Workspace workspace) {
  cuda::begin_overlapped();
  double total[1] = {};
  const std::int64_t first = std::int64_t{blockIdx.x} * cuda::sum_threads + threadIdx.x;
  for (int k = 0; k < gradients.count; ++k) {
    const Gradient& gradient = gradients.all[k];
    for (std::int64_t i = first; i < gradient.size; i += gridDim.x * cuda::sum_threads) {
      const auto value = static_cast<double>(gradient.at(i));
      total[0] += value * value;
    }
  }
  cuda::add_across_grid(total, workspace, [&](const double(&sums)[1]) {
    double& factor = *rule.factor;
    const double sum = sums[0] + (rule.is_first ? 0 : factor);
    const double norm = sqrt(sum);
    factor = !rule.is_last ? sum : norm > rule.most ? rule.most / norm : 1;
  });
}

struct Average {
  cuda::Rows<const float> values;
  cuda::Rows<float> mean;
  double decay, log_decay;
  const StepClock* clock;

  /// What the newest counts, where all steps together count 1.
  __device__ float share() const {
    const auto steps = static_cast<double>(clock->step);
    if (decay >= 1) return 1 / static_cast<float>(steps);
    return static_cast<float>(1 - decay) / -expm1f(static_cast<float>(steps * log_decay));
  }

  template <int width, bool aligned>
  __device__ void operator()(const cuda::Elements<width, aligned>& place) const {
    const float newest = share();
    float now[width], before[width];
    place.load(values, now);
    place.load(cuda::Rows<const float>{mean.data, mean.stride}, before);
#pragma unroll
    for (int i = 0; i < width; ++i) before[i] += newest * (now[i] - before[i]);
    place.store(before, mean);
  }
};

}  // namespace

void CudaDenseRun::run(const ClipCall& call) const {
  const DenseWorkspaceUse use(workspace, "clip_gradients", device, stream);
  const cuda::Workspace parts = cuda::workspace_in(use.data());
  for (std::size_t begin = 0; begin == 0 || begin < call.targets.size(); begin += Gradients::most) {
    const auto taken = call.targets.subspan(
        begin, std::min<std::size_t>(Gradients::most, call.targets.size() - begin));
    Gradients gradients;
    for (const OptimiserTarget& target : taken) {
      const Gradient& added = gradients.all[gradients.count++] = Gradient(target.gradient);
      gradients.size += added.size;
    }
    const ClipRule rule{call.most, call.factor, begin == 0,
                        begin + taken.size() == call.targets.size()};
    cuda::launch_overlapped(add_squares, cuda::sum_grid(gradients.size, 4 * cuda::sum_threads),
                            cuda::sum_threads, stream, gradients, rule, parts);
  }
}

void CudaDenseRun::run(const AverageCall& call) const {
  const Average function{rows_of<float>(call.x), rows_of<float>(call.y), call.decay,
                         std::log(call.decay), call.clock};
  const auto extent =
      cuda::Extent{call.x.rows, call.x.cols}.with(function.values).with(function.mean).flattened();
  cuda::for_elements<cuda::chunk<float>>(extent, function, stream);
}

}  // namespace tessera::ops
