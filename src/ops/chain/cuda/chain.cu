// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "core/cuda_handles.hpp"
#include "ops/chain/cuda/steps.cuh"
#include "ops/cuda/dense_ops.hpp"
#include "ops/cuda/operands.cuh"
#include "ops/dense_workspace.hpp"
#include "ops/loss/targets.hpp"

namespace tessera::ops {
namespace {

/// A constant for each number of rows: sums must not depend on the GPU.
int blocks_for(std::int64_t rows) {
  const auto useful = static_cast<std::uint64_t>(std::max<std::int64_t>(1, rows / 64));
  return static_cast<int>(std::bit_floor(std::min(useful, std::uint64_t{most_chain_blocks})));
}

bool is_narrow(const ConstOperand& matrix) { return matrix.cols > 0 && matrix.cols <= chain_width; }

/// Whether a matrix can be read in chunks that belong to one thread each.
bool in_chunks(const ConstOperand& matrix) {
  const std::int64_t chunk = 16 / bytes_of(matrix.type, 1);
  const bool begins_well = reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0;
  return begins_well && matrix.stride % chunk == 0 && matrix.cols % chunk == 0 &&
         std::has_single_bit(static_cast<std::uint64_t>(matrix.cols / chunk));
}

/// Whether the shape of a call is one for a chain.
struct Suits {
  bool operator()(const LinearCall& call) const {
    return is_narrow(call.x) && is_narrow(call.y) && call.of_x.columns.absent() &&
           call.moments.absent();
  }
  bool operator()(const LinearGradCall& call) const {
    const bool has_results =
        !call.grad_weight.absent() || !call.grad_bias.absent() || !call.grad_x.absent();
    return has_results && is_narrow(call.x) && is_narrow(call.grad_y) &&
           call.of_x.columns.absent() && call.normed.absent();
  }
  bool operator()(const BatchNormCall& call) const {
    return is_narrow(call.x) && ShortFormula::suits(call.formula) && call.moments.absent() &&
           call.columns.absent() && in_chunks(call.x) && in_chunks(call.y);
  }
  bool operator()(const BatchNormGradCall& call) const {
    return is_narrow(call.x) && ShortFormula::suits(call.formula) && call.factors.absent() &&
           call.grad_columns.absent() && call.sums.absent() && !call.grad_x.absent() &&
           in_chunks(call.x) && in_chunks(call.grad_y) && in_chunks(call.grad_x);
  }
  bool operator()(const LossCall& call) const {
    return is_narrow(call.x) && !call.targets->is_binary;
  }
};

template <class T>
struct StepMaker {
  ChainStep<T>& step;

  void operator()(const LinearCall& call) const {
    step.kind = ChainKind::linear;
    step.linear = {
        static_cast<int>(call.x.cols), static_cast<int>(call.y.cols), rows_of<T>(call.x),
        rows_of<T>(call.weight),       values_of<T>(call.bias),       rows_of<T>(call.y)};
  }
  void operator()(const LinearGradCall& call) const {
    step.kind = ChainKind::linear_gradient;
    step.linear_gradient = {static_cast<int>(call.x.cols),
                            static_cast<int>(call.grad_y.cols),
                            rows_of<T>(call.x),
                            rows_of<T>(call.weight),
                            rows_of<T>(call.grad_y),
                            rows_of<T>(call.grad_weight),
                            rows_of<T>(call.grad_x),
                            values_of<T>(call.grad_bias),
                            values_of<T>(call.grad_x_sums),
                            call.before_relu};
  }
  void operator()(const BatchNormCall& call) const {
    const Statistics<T> statistics{values_of<float>(call.gamma),
                                   values_of<float>(call.beta),
                                   values_of<T>(call.shift),
                                   values_of<float>(call.state.running_mean),
                                   values_of<float>(call.state.running_variance),
                                   values_of<float>(call.saved_mean),
                                   values_of<float>(call.saved_inverse_deviation),
                                   call.options.epsilon,
                                   call.options.momentum,
                                   call.x.rows,
                                   nullptr};
    const auto x = rows_of<T>(call.x);
    step.kind = ChainKind::norm;
    step.norm = {static_cast<int>(call.x.cols),
                 call.options.training,
                 {x, statistics},
                 {x, rows_of<T>(call.y), nullptr, ShortFormula{call.formula.activation}}};
  }
  void operator()(const BatchNormGradCall& call) const {
    const Normalised<T, MatrixGradient<T>, ShortFormula> normalised{
        rows_of<T>(call.x),
        {rows_of<T>(call.grad_y)},
        values_of<float>(call.saved_mean),
        values_of<float>(call.saved_inverse_deviation),
        values_of<float>(call.gamma),
        values_of<float>(call.beta),
        ShortFormula{call.formula.activation}};
    step.kind = ChainKind::norm_gradient;
    step.norm_gradient = {
        static_cast<int>(call.x.cols),
        {normalised, values_of<float>(call.grad_gamma), values_of<float>(call.grad_beta),
         values_of<T>(call.grad_shift), call.x.rows, nullptr, nullptr},
        {normalised, rows_of<T>(call.grad_x), nullptr}};
  }
  void operator()(const LossCall& call) const {
    step.kind = ChainKind::loss;
    step.loss = {static_cast<int>(call.x.cols), rows_of<T>(call.x),
                 rows_of<T>(call.grad_x),       values_of<T>(call.grad_sums),
                 call.targets->times.data(),    call.targets->labels.data(),
                 call.targets->count,           call.value};
  }
};

template <class T>
void run(std::span<const ChainCall> calls, std::int64_t rows, Stream stream) {
  ChainLaunch<T> launch;
  const int blocks = blocks_for(rows);
  launch.rows = rows;
  launch.rows_per_block = (rows + blocks - 1) / blocks;
  for (const ChainCall& call : calls) {
    std::visit(StepMaker<T>{launch.steps[launch.count++]}, call);
  }
  run_chain_in_cluster(launch, blocks, stream);
}

/// Asked once for each GPU, for both types.
bool has_large_clusters(Device device) {
  enum class Answer : char { unknown, no, yes };
  static std::array<std::atomic<Answer>, 64> answers{};
  const auto index = static_cast<std::size_t>(device.index);
  if (index >= answers.size()) return false;
  Answer answer = answers[index].load(std::memory_order_relaxed);
  if (answer == Answer::unknown) {
    const cuda_backend::CurrentDevice current(device.index);
    const bool has_room = has_room_for_chain<float>(most_chain_blocks) &&
                          has_room_for_chain<__nv_bfloat16>(most_chain_blocks);
    answer = has_room ? Answer::yes : Answer::no;
    answers[index].store(answer, std::memory_order_relaxed);
  }
  return answer == Answer::yes;
}

}  // namespace

bool CudaDenseOps::chains(const ChainCall& call) const {
  const ConstOperand x = std::visit([](const auto& of) { return of.x; }, call);
  if (x.rows == 0 || x.rows > cuda::cluster_rows) return false;
  if (x.type != ElementType::fp32 && x.type != ElementType::bf16) return false;
  if (!std::visit(Suits{}, call)) return false;
  return has_large_clusters(device_);
}

std::size_t CudaDenseOps::longest_chain() const { return most_chain_steps; }

void CudaDenseOps::run_chain(std::span<const ChainCall> calls, Stream stream,
                             const DenseWorkspace*) const {
  const cuda_backend::CurrentDevice current(device_.index);
  const ConstOperand x = std::visit([](const auto& of) { return of.x; }, calls.front());
  const auto chosen = x.type == ElementType::fp32 ? run<float> : run<__nv_bfloat16>;
  chosen(calls, x.rows, stream);
}

}  // namespace tessera::ops
