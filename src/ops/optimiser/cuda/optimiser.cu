// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

#include <algorithm>
#include <cmath>

#include "core/cuda_handles.hpp"
#include "cuda/elements.cuh"
#include "cuda/sums.cuh"
#include "ops/cuda/dense_ops.hpp"
#include "ops/cuda/operands.cuh"

namespace tessera::ops {
namespace {

constexpr int width = cuda::chunk<float>;
constexpr std::int64_t block_elements = std::int64_t{cuda::element_threads} * width;
/// What a block has of a parameter with a transposed copy or gradient.
constexpr int tile_rows = 8;
constexpr int tile_cols = static_cast<int>(cuda::element_threads) / tile_rows * width;

/// One parameter. Its weight decay is added to the gradient (sgd, adam) or taken off the parameter
/// (adamw).
struct Target {
  cuda::Rows<const float> gradient;
  cuda::Rows<const __nv_bfloat16> narrow_gradient;  ///< if there is one, it takes its place
  cuda::Rows<float> parameter, first, second;
  cuda::Rows<__nv_bfloat16> rounded;  ///< may be absent
  cuda::Rows<std::byte> turned;       ///< bf16 beside `rounded`, else fp32; may be absent
  bool gradient_is_turned;
  std::int64_t size, cols;  ///< one long row where all is contiguous
  bool chunks;              ///< on 16-byte boundaries
  double weight_decay;

  __host__ __device__ bool has_tiles() const {
    return gradient_is_turned || turned.data != nullptr;
  }
  std::int64_t num_blocks() const {
    if (!has_tiles()) return (size + block_elements - 1) / block_elements;
    const std::int64_t rows = size / cols;
    return (rows + tile_rows - 1) / tile_rows * ((cols + tile_cols - 1) / tile_cols);
  }
};

/// All parameters of a small model fit into the arguments of one launch.
struct Targets {
  static constexpr int most = 24;
  int count = 0;
  /// The first block that belongs to the next parameter; side by side, as every block looks for its
  /// own among them.
  unsigned ends[most];
  Target all[most];
};

/// Options and the number of the step: from the host, or from a clock on the GPU.
struct StepRule {
  OptimiserKind kind;
  double learning_rate, log_beta1, log_beta2;
  float momentum, beta1, one_minus_beta1, beta2, one_minus_beta2, epsilon;
  std::int64_t step;
  const StepClock* clock;

  explicit StepRule(const OptimiserCall& call)
      : kind(call.options.kind),
        learning_rate(call.options.learning_rate),
        log_beta1(std::log(call.options.beta1)),
        log_beta2(std::log(call.options.beta2)),
        momentum(static_cast<float>(call.options.momentum)),
        beta1(static_cast<float>(call.options.beta1)),
        one_minus_beta1(static_cast<float>(1 - call.options.beta1)),
        beta2(static_cast<float>(call.options.beta2)),
        one_minus_beta2(static_cast<float>(1 - call.options.beta2)),
        epsilon(static_cast<float>(call.options.epsilon)),
        step(call.step),
        clock(call.clock) {}
};

/// What differs from step to step. One thread of a block reads it for the others, which meanwhile
/// read their parameters.
struct PresentStep {
  double rate, number;
};

__device__ inline PresentStep present_step(const StepRule& rule) {
  if (rule.clock == nullptr) return {rule.learning_rate, static_cast<double>(rule.step)};
  return {rule.learning_rate * rule.clock->rate_factor, static_cast<double>(rule.clock->step + 1)};
}

__device__ inline cuda::Rows<const float> read(const cuda::Rows<float>& rows) {
  return {rows.data, rows.stride};
}

/// What a thread has of a gradient, which may be transposed: then all numbers are on their way
/// before one of them is looked at, and a chunk that ends early reads its last one again.
template <class T, bool aligned>
__device__ void load_gradient(cuda::Rows<const T> gradient, bool is_turned,
                              const cuda::Elements<width, aligned>& place, float (&values)[width]) {
  if (!is_turned) return place.load(gradient, values);
  T fetched[width] = {};
  if (place.count > 0) {
    const T* from = gradient.data + place.col * gradient.stride + place.row;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      fetched[i] = *from;
      from += i + 1 < place.count ? gradient.stride : 0;
    }
  }
#pragma unroll
  for (int i = 0; i < width; ++i) values[i] = i < place.count ? cuda::widen(fetched[i]) : 0.0f;
}

template <bool aligned>
__device__ void load_gradient(const Target& target, const cuda::Elements<width, aligned>& place,
                              float (&values)[width]) {
  if (target.narrow_gradient.data != nullptr) {
    load_gradient(target.narrow_gradient, target.gradient_is_turned, place, values);
  } else {
    load_gradient(target.gradient, target.gradient_is_turned, place, values);
  }
}

template <bool aligned>
__device__ void store_parameter(const float (&values)[width], const Target& target,
                                const cuda::Elements<width, aligned>& place) {
  place.store(values, target.parameter);
  if (target.rounded.data != nullptr) place.store(values, target.rounded);
  if (target.turned.data == nullptr) return;
  place.each([&](int i, std::int64_t row, std::int64_t col) {
    const std::int64_t at = col * target.turned.stride + row;
    if (target.rounded.data != nullptr) {
      reinterpret_cast<__nv_bfloat16*>(target.turned.data)[at] =
          cuda::narrow<__nv_bfloat16>(values[i]);
    } else {
      reinterpret_cast<float*>(target.turned.data)[at] = values[i];
    }
  });
}

template <bool aligned>
__device__ void descend(const StepRule& rule, const Target& target,
                        const cuda::Elements<width, aligned>& place, const PresentStep& present) {
  const auto weight_decay = static_cast<float>(target.weight_decay);
  float p[width], g[width];
  place.load(read(target.parameter), p);
  load_gradient(target, place, g);
  __syncthreads();
  const auto rate = static_cast<float>(present.rate);
#pragma unroll
  for (int i = 0; i < width; ++i) g[i] += weight_decay * p[i];
  if (target.first.data != nullptr) {
    float velocity[width];
    place.load(read(target.first), velocity);
#pragma unroll
    for (int i = 0; i < width; ++i) g[i] += rule.momentum * velocity[i];
    place.store(g, target.first);
  }
#pragma unroll
  for (int i = 0; i < width; ++i) p[i] -= rate * g[i];
  store_parameter(p, target, place);
}

template <bool aligned>
__device__ void adapt(const StepRule& rule, const Target& target,
                      const cuda::Elements<width, aligned>& place, const PresentStep& present) {
  float p[width], g[width], m[width], v[width];
  place.load(read(target.parameter), p);
  load_gradient(target, place, g);
  place.load(read(target.first), m);
  place.load(read(target.second), v);
  __syncthreads();
  const double rate = present.rate;
  const bool decoupled = rule.kind == OptimiserKind::adamw;
  const auto kept = static_cast<float>(decoupled ? 1 - rate * target.weight_decay : 1.0);
  const auto gradient_decay = static_cast<float>(decoupled ? 0.0 : target.weight_decay);
  // 1 - beta^number, without the cancellation, and in fp32, which is sooner done: the factors are
  // right to its last bits all the same.
  const auto kept_of = [&](double log_beta) {
    return -expm1f(static_cast<float>(present.number * log_beta));
  };
  const float step_size = static_cast<float>(rate) / kept_of(rule.log_beta1);
  const float root_correction = rsqrtf(kept_of(rule.log_beta2));
#pragma unroll
  for (int i = 0; i < width; ++i) {
    p[i] *= kept;
    g[i] += gradient_decay * p[i];
    m[i] = rule.beta1 * m[i] + rule.one_minus_beta1 * g[i];
    v[i] = rule.beta2 * v[i] + rule.one_minus_beta2 * g[i] * g[i];
    p[i] -= step_size * m[i] / (sqrtf(v[i]) * root_correction + rule.epsilon);
  }
  place.store(m, target.first);
  place.store(v, target.second);
  store_parameter(p, target, place);
}

/// The chunk of a thread of a parameter's block: one after the other, or of a tile where something
/// is transposed, so that neighbouring threads are neighbours there too.
template <bool aligned>
__device__ cuda::Elements<width, aligned> place_of(const Target& target, unsigned block) {
  cuda::Elements<width, aligned> place;
  place.cols = target.cols;
  std::int64_t left = 0;
  if (target.has_tiles()) {
    // No more than there are blocks.
    const auto tiles = static_cast<unsigned>((target.cols + tile_cols - 1) / tile_cols);
    place.row = std::int64_t{block / tiles} * tile_rows + threadIdx.x % tile_rows;
    place.col = std::int64_t{block % tiles} * tile_cols + threadIdx.x / tile_rows * width;
    left = place.row * target.cols < target.size ? target.cols - place.col : 0;
  } else {
    const std::int64_t first = (std::int64_t{block} * cuda::element_threads + threadIdx.x) * width;
    place.row = cuda::quotient(first, target.cols, target.size <= 0x7fffffff);
    place.col = first - place.row * target.cols;
    left = target.size - first;
  }
  place.count = static_cast<int>(left < 0 ? 0 : left < width ? left : width);
  return place;
}

/// Which parameter and where is known from the launch, and waits for nothing.
template <bool aligned>
__device__ void step_chunk(const StepRule& rule, const Target& target, unsigned block,
                           PresentStep& present) {
  const auto place = place_of<aligned>(target, block);
  cuda::wait_for_previous();
  if (threadIdx.x == 0) present = present_step(rule);
  if (rule.kind == OptimiserKind::sgd) {
    descend(rule, target, place, present);
  } else {
    adapt(rule, target, place, present);
  }
}

/// What is to advance when all blocks have read it; null: nothing. No more is told by the counter,
/// so nothing else has to be there before a block counts itself.
struct Advance {
  StepClock* clock;
  unsigned* counter;
};

/// Blocks belong to the parameters in order.
__global__ __launch_bounds__(cuda::element_threads) void step_targets(
    const StepRule rule, const __grid_constant__ Targets targets, const Advance advance) {
  __shared__ PresentStep present;
  cuda::let_next_begin();
  int index = 0;
  while (blockIdx.x >= targets.ends[index]) ++index;
  const Target& target = targets.all[index];
  const unsigned first_block = index == 0 ? 0 : targets.ends[index - 1];
  if (target.chunks) {
    step_chunk<true>(rule, target, blockIdx.x - first_block, present);
  } else {
    step_chunk<false>(rule, target, blockIdx.x - first_block, present);
  }
  if (advance.clock == nullptr || threadIdx.x != 0) return;
  if (atomicAdd(advance.counter, 1u) == gridDim.x - 1) {
    *advance.counter = 0;
    ++advance.clock->step;
  }
}

__global__ void advance_clock(StepClock* clock) {
  cuda::begin_overlapped();
  ++clock->step;
}

Target target_of(const OptimiserTarget& given, const OptimiserOptions& options) {
  Target target{};
  if (given.gradient.type == ElementType::bf16) {
    target.narrow_gradient = rows_of<__nv_bfloat16>(given.gradient);
  } else {
    target.gradient = rows_of<float>(given.gradient);
  }
  target.rounded = rows_of<__nv_bfloat16>(given.rounded);
  target.parameter = rows_of<float>(given.parameter);
  if (options.kind != OptimiserKind::sgd || options.momentum != 0) {
    target.first = rows_of<float>(given.first);
  }
  if (options.kind != OptimiserKind::sgd) target.second = rows_of<float>(given.second);
  target.turned = {static_cast<std::byte*>(given.turned.data), given.turned.stride};
  target.gradient_is_turned = given.gradient_is_turned;
  cuda::Extent extent = cuda::Extent{given.parameter.rows, given.parameter.cols}
                            .with(target.rounded)
                            .with(target.parameter)
                            .with(target.first)
                            .with(target.second);
  if (!given.gradient_is_turned) {
    extent = extent.with(target.gradient).with(target.narrow_gradient);
    if (given.turned.absent()) extent = extent.flattened();
  }
  target.size = extent.size();
  target.cols = extent.cols;
  target.chunks = extent.in_chunks(width);
  target.weight_decay = options.weight_decay * given.decay;
  return target;
}

}  // namespace

void CudaDenseOps::optimiser_step(const OptimiserCall& call, Stream stream) const {
  const cuda_backend::CurrentDevice current(device_.index);
  const StepRule rule(call);
  Targets targets;
  std::int64_t blocks = 0;
  const auto run = [&](const Advance& advance) {
    cuda::launch_overlapped(step_targets, dim3(cuda::num_blocks(blocks, 1)), cuda::element_threads,
                            stream, rule, targets, advance);
    targets.count = 0;
    blocks = 0;
  };
  for (const OptimiserTarget& given : call.targets) {
    if (given.parameter.rows == 0 || given.parameter.cols == 0) continue;
    if (targets.count == Targets::most) run({});
    Target& target = targets.all[targets.count++];
    target = target_of(given, call.options);
    blocks += target.num_blocks();
    targets.ends[targets.count - 1] = cuda::num_blocks(blocks, 1);
  }
  if (targets.count > 0) {
    run({call.advancing, call.counter});
  } else if (call.advancing != nullptr) {
    advance(call.advancing, stream);
  }
}

void CudaDenseOps::advance(StepClock* clock, Stream stream) const {
  const cuda_backend::CurrentDevice current(device_.index);
  cuda::launch_overlapped(advance_clock, dim3(1), 1, stream, clock);
}

}  // namespace tessera::ops
