// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "cuda/elements.cuh"
#include "cuda/sums.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/cuda/dense_ops.hpp"

namespace tessera::ops {
namespace {

constexpr int block_threads = 256;

/// How the threads of a block lie on a parameter, a number each: most of what a step of few numbers
/// takes is to load its code, and chunks of several numbers need four times as much. Where
/// something is transposed a warp has 4 x 8 numbers, so that it moves whole sectors either way.
///
///     a warp of a tile of 16 columns    0 1 2 3 4 5 6 7 . . . . . . . .
///                                       8 9 ...         (the next warp)
struct Tile {
  int log_warp_cols = 5;
  int log_cols = 5;

  static Tile of(std::int64_t rows, std::int64_t cols, bool is_turned) {
    Tile tile;
    if (is_turned) {
      const int log_rows = bit_width(std::clamp<std::int64_t>(rows, 4, 32) - 1);
      tile.log_warp_cols = 3;
      tile.log_cols = log_block_threads - log_rows;
    } else {
      tile.log_cols = bit_width(std::clamp<std::int64_t>(cols, 32, block_threads) - 1);
    }
    return tile;
  }
  static constexpr int log_block_threads = 8;
  static int bit_width(std::int64_t number) {
    return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(number)));
  }

  __host__ __device__ int cols() const { return 1 << log_cols; }
  __host__ __device__ int rows() const { return block_threads >> log_cols; }
  __device__ int row_of(unsigned thread) const {
    const int warp = static_cast<int>(thread / 32), lane = static_cast<int>(thread % 32);
    return (warp >> (log_cols - log_warp_cols) << (5 - log_warp_cols)) + (lane >> log_warp_cols);
  }
  __device__ int col_of(unsigned thread) const {
    const int warp = static_cast<int>(thread / 32), lane = static_cast<int>(thread % 32);
    const int warps = cols() >> log_warp_cols;
    return ((warp & (warps - 1)) << log_warp_cols) + (lane & ((1 << log_warp_cols) - 1));
  }
};
static_assert(1 << Tile::log_block_threads == block_threads);

/// One parameter. Its weight decay is added to the gradient (sgd, adam) or taken off the parameter
/// (adamw).
struct Target {
  cuda::Rows<const float> gradient;
  cuda::Rows<const __nv_bfloat16> narrow_gradient;  ///< if there is one, it takes its place
  cuda::Rows<float> parameter, first, second;
  cuda::Rows<__nv_bfloat16> rounded;  ///< may be absent
  cuda::Rows<std::byte> turned;       ///< bf16 beside `rounded`, else fp32; may be absent
  bool gradient_is_turned;
  std::int64_t rows, cols;  ///< one long row where all is contiguous
  Tile tile;
  double weight_decay;

  std::int64_t tiles_of_row() const { return (cols + tile.cols() - 1) / tile.cols(); }
  std::int64_t num_blocks() const {
    return (rows + tile.rows() - 1) / tile.rows() * tiles_of_row();
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
  const double* gradient_factor;

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
        clock(call.clock),
        gradient_factor(call.gradient_factor) {}
};

/// What differs from step to step. One thread of a block reads it for the others, which meanwhile
/// read their parameters.
struct PresentStep {
  double rate, number, gradient_factor;
};

__device__ inline PresentStep present_step(const StepRule& rule) {
  if (rule.clock == nullptr) return {rule.learning_rate, static_cast<double>(rule.step), 1};
  const double factor = rule.gradient_factor == nullptr ? 1 : *rule.gradient_factor;
  return {rule.learning_rate * rule.clock->rate_factor, static_cast<double>(rule.clock->step + 1),
          factor};
}

/// A number of a parameter.
struct Place {
  std::int64_t row, col;
  bool exists;

  /// The one of this thread; `block` is counted from the parameter's first.
  __device__ static Place of(const Target& target, unsigned block) {
    const Tile& tile = target.tile;
    // No more than there are blocks.
    const auto tiles = static_cast<unsigned>((target.cols + tile.cols() - 1) >> tile.log_cols);
    const std::int64_t row = std::int64_t{block / tiles} * tile.rows() + tile.row_of(threadIdx.x);
    const std::int64_t col = std::int64_t{block % tiles} * tile.cols() + tile.col_of(threadIdx.x);
    return {row, col, row < target.rows && col < target.cols};
  }

  template <class T>
  __device__ T* in(const cuda::Rows<T>& rows) const {
    return rows.data + row * rows.stride + col;
  }
  template <class T>
  __device__ T* in_turned(const cuda::Rows<T>& rows) const {
    return rows.data + col * rows.stride + row;
  }
};

/// Where a thread reads.
struct Sources {
  const float *parameter, *first, *second, *gradient;
  const __nv_bfloat16* narrow_gradient;

  __device__ Sources(const Target& target, const Place& place)
      : parameter(place.in(target.parameter)),
        first(place.in(target.first)),
        second(place.in(target.second)),
        gradient(of(target, place, target.gradient)),
        narrow_gradient(of(target, place, target.narrow_gradient)) {}

  /// Waits for the kernels before with all addresses at hand, which the compiler would put off:
  /// what they are found by is not cached, and until then it costs nothing to ask for it.
  __device__ void wait_for_previous() const {
#if __CUDA_ARCH__ >= 900
    const auto bits = [](const void* address) { return reinterpret_cast<std::uintptr_t>(address); };
    // Never 0, as there is a parameter.
    const std::uintptr_t all =
        bits(parameter) | bits(first) | bits(second) | bits(gradient) | bits(narrow_gradient);
    asm volatile(
        "{ .reg .pred known; setp.ne.u64 known, %0, 0; @known griddepcontrol.wait; }" ::"l"(all)
        : "memory");
#endif
  }

 private:
  template <class T>
  __device__ static T* of(const Target& target, const Place& place, const cuda::Rows<T>& rows) {
    return target.gradient_is_turned ? place.in_turned(rows) : place.in(rows);
  }
};

/// What a thread has read of its number.
struct Fetched {
  float parameter = 0, gradient = 0, first = 0, second = 0;

  __device__ Fetched(const Target& target, const Place& place, const Sources& from) {
    if (!place.exists) return;
    parameter = *from.parameter;
    if (target.first.data != nullptr) first = *from.first;
    if (target.second.data != nullptr) second = *from.second;
    gradient = target.narrow_gradient.data != nullptr ? cuda::widen(*from.narrow_gradient)
                                                      : *from.gradient;
  }
};

__device__ void store_parameter(float value, const Target& target, const Place& place) {
  *place.in(target.parameter) = value;
  const bool is_rounded = target.rounded.data != nullptr;
  const auto rounded = cuda::narrow<__nv_bfloat16>(value);
  if (is_rounded) *place.in(target.rounded) = rounded;
  if (target.turned.data == nullptr) return;
  if (is_rounded) {
    *place.in_turned(cuda::Rows<__nv_bfloat16>{reinterpret_cast<__nv_bfloat16*>(target.turned.data),
                                               target.turned.stride}) = rounded;
  } else {
    *place.in_turned(cuda::Rows<float>{reinterpret_cast<float*>(target.turned.data),
                                       target.turned.stride}) = value;
  }
}

__device__ void descend(const StepRule& rule, const Target& target, const Place& place,
                        const Fetched& fetched, const PresentStep& present) {
  const float gradient = fetched.gradient * static_cast<float>(present.gradient_factor);
  float step = gradient + static_cast<float>(target.weight_decay) * fetched.parameter;
  if (target.first.data != nullptr) {
    step += rule.momentum * fetched.first;
    *place.in(target.first) = step;
  }
  store_parameter(fetched.parameter - static_cast<float>(present.rate) * step, target, place);
}

__device__ void adapt(const StepRule& rule, const Target& target, const Place& place,
                      const Fetched& fetched, const PresentStep& present) {
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
  const float p = fetched.parameter * kept;
  const float gradient = fetched.gradient * static_cast<float>(present.gradient_factor);
  const float g = gradient + gradient_decay * p;
  const float m = rule.beta1 * fetched.first + rule.one_minus_beta1 * g;
  const float v = rule.beta2 * fetched.second + rule.one_minus_beta2 * g * g;
  *place.in(target.first) = m;
  *place.in(target.second) = v;
  store_parameter(p - step_size * m / (sqrtf(v) * root_correction + rule.epsilon), target, place);
}

/// What is to advance when all blocks have read it; null: nothing. No more is told by the counter,
/// so nothing else has to be there before a block counts itself.
struct Advance {
  StepClock* clock;
  unsigned* counter;
};

/// Blocks belong to the parameters in order. Which parameter and where is known from the launch,
/// and waits for nothing.
__global__ __launch_bounds__(block_threads) void step_targets(
    const StepRule rule, const __grid_constant__ Targets targets, const Advance advance) {
  __shared__ PresentStep present;
  cuda::let_next_begin();
  int index = 0;
  while (blockIdx.x >= targets.ends[index]) ++index;
  const Target& target = targets.all[index];
  const Place place = Place::of(target, blockIdx.x - (index == 0 ? 0 : targets.ends[index - 1]));
  const Sources sources(target, place);
  sources.wait_for_previous();
  const Fetched fetched(target, place, sources);
  if (threadIdx.x == 0) present = present_step(rule);
  __syncthreads();
  const bool counts = advance.clock != nullptr && threadIdx.x == 0;
  const unsigned counted = counts ? atomicAdd(advance.counter, 1u) : 0;
  if (place.exists) {
    if (rule.kind == OptimiserKind::sgd) {
      descend(rule, target, place, fetched, present);
    } else {
      adapt(rule, target, place, fetched, present);
    }
  }
  if (counts && counted == gridDim.x - 1) {
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
  target.rows = extent.rows;
  target.cols = extent.cols;
  target.tile =
      Tile::of(extent.rows, extent.cols, given.gradient_is_turned || !given.turned.absent());
  target.weight_decay = options.weight_decay * given.decay;
  return target;
}

}  // namespace

void CudaDenseRun::run(const OptimiserCall& call) const {
  const StepRule rule(call);
  Targets targets;
  std::int64_t blocks = 0;
  const auto launch = [&](const Advance& advance) {
    cuda::launch_overlapped(step_targets, dim3(cuda::num_blocks(blocks, 1)), block_threads, stream,
                            rule, targets, advance);
    targets.count = 0;
    blocks = 0;
  };
  for (const OptimiserTarget& given : call.targets) {
    if (given.parameter.rows == 0 || given.parameter.cols == 0) continue;
    if (targets.count == Targets::most) launch({});
    Target& target = targets.all[targets.count++];
    target = target_of(given, call.options);
    blocks += target.num_blocks();
    targets.ends[targets.count - 1] = cuda::num_blocks(blocks, 1);
  }
  if (targets.count > 0) {
    launch({call.advancing, call.counter});
  } else if (call.advancing != nullptr) {
    run(AdvanceCall{call.advancing});
  }
}

void CudaDenseRun::run(const AdvanceCall& call) const {
  cuda::launch_overlapped(advance_clock, dim3(1), 1, stream, call.clock);
}

}  // namespace tessera::ops
