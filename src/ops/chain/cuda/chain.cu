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

bool takes_cluster(std::int64_t rows) { return rows <= cluster_chain_rows; }

/// A constant for each number of rows: sums must not depend on the GPU.
int blocks_for(std::int64_t rows) {
  if (!takes_cluster(rows)) return most_grid_chain_blocks;
  const auto useful = static_cast<std::uint64_t>(std::max<std::int64_t>(1, rows / 64));
  return static_cast<int>(
      std::bit_floor(std::min(useful, std::uint64_t{most_cluster_chain_blocks})));
}

bool is_narrow(const ConstOperand& matrix) {
  return matrix.cols > 0 && matrix.cols <= chain_width && matrix.stride <= most_chain_stride;
}
bool is_narrow_or_absent(const ConstOperand& matrix) {
  return matrix.absent() || is_narrow(matrix);
}

/// Whether the shape of a call is one for a chain.
struct Suits {
  bool operator()(const LinearCall& call) const {
    return is_narrow(call.x) && is_narrow(call.y) && call.of_x.columns.absent() &&
           is_narrow(call.weight) && call.moments.absent() && call.y.data != call.x.data;
  }
  bool operator()(const LinearGradCall& call) const {
    const bool has_results =
        !call.grad_weight.absent() || !call.grad_bias.absent() || !call.grad_x.absent();
    // The threads of a row read all of it while others write.
    const bool is_apart = call.grad_x.absent() ||
                          (call.grad_x.data != call.grad_y.data && call.grad_x.data != call.x.data);
    return has_results && is_apart && is_narrow(call.x) && is_narrow(call.grad_y) &&
           is_narrow_or_absent(call.weight) && is_narrow_or_absent(call.grad_x) &&
           call.of_x.columns.absent() && call.normed.absent();
  }
  bool operator()(const BatchNormCall& call) const {
    return is_narrow(call.x) && is_narrow(call.y) && ShortFormula::suits(call.formula) &&
           call.moments.absent() && call.columns.absent();
  }
  bool operator()(const BatchNormGradCall& call) const {
    return is_narrow(call.x) && is_narrow(call.grad_y) && is_narrow(call.grad_x) &&
           ShortFormula::suits(call.formula) && call.factors.absent() &&
           call.grad_columns.absent() && call.sums.absent();
  }
  bool operator()(const LossCall& call) const {
    return is_narrow(call.x) && is_narrow_or_absent(call.grad_x) && !call.targets->is_binary;
  }
};

/// Makes the steps of a call.
template <class T>
class StepMaker {
 public:
  explicit StepMaker(ChainLaunch<T>& launch) : launch_(launch) {}

  void operator()(const LinearCall& call) {
    next(ChainKind::product, 0).product = {width(call.x),
                                           width(call.y),
                                           rows_of<T>(call.x),
                                           rows_of<T>(call.weight),
                                           true,
                                           values_of<T>(call.bias),
                                           {},
                                           rows_of<T>(call.y),
                                           nullptr};
  }
  void operator()(const LinearGradCall& call) {
    if (!call.grad_weight.absent() || !call.grad_bias.absent()) {
      next(ChainKind::weight, weight_sums).weight = {
          width(call.x),           width(call.grad_y),           rows_of<T>(call.x),
          rows_of<T>(call.grad_y), rows_of<T>(call.grad_weight), values_of<T>(call.grad_bias)};
    }
    if (call.grad_x.absent()) return;
    next(ChainKind::product, call.grad_x_sums.absent() ? 0 : chain_sums).product = {
        width(call.grad_y),
        width(call.x),
        rows_of<T>(call.grad_y),
        rows_of<T>(call.weight),
        false,
        nullptr,
        call.before_relu ? rows_of<T>(call.x) : cuda::Rows<const T>{},
        rows_of<T>(call.grad_x),
        values_of<T>(call.grad_x_sums)};
  }
  void operator()(const BatchNormCall& call) {
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
    next(ChainKind::norm, 0).norm = {width(call.x),         call.options.training,
                                     is_relu(call.formula), rows_of<T>(call.x),
                                     rows_of<T>(call.y),    statistics};
    launch_.exchanges = launch_.exchanges || call.options.training;
    has_norm_ = true;
  }
  void operator()(const BatchNormGradCall& call) {
    next(ChainKind::norm_gradient, 0).norm_gradient = {
        width(call.x),
        is_relu(call.formula),
        has_norm_,
        rows_of<T>(call.x),
        rows_of<T>(call.grad_y),
        rows_of<T>(call.grad_x),
        values_of<float>(call.saved_mean),
        values_of<float>(call.saved_inverse_deviation),
        values_of<float>(call.gamma),
        values_of<float>(call.beta),
        values_of<float>(call.grad_gamma),
        values_of<float>(call.grad_beta),
        values_of<T>(call.grad_shift)};
    launch_.exchanges = true;
  }
  void operator()(const LossCall& call) {
    next(ChainKind::loss, chain_sums).loss = {width(call.x),
                                              rows_of<T>(call.x),
                                              rows_of<T>(call.grad_x),
                                              values_of<T>(call.grad_sums),
                                              call.targets->times.data(),
                                              call.targets->labels.data(),
                                              call.targets->count,
                                              call.value};
  }

 private:
  static int width(const ConstOperand& matrix) { return static_cast<int>(matrix.cols); }
  static bool is_relu(const ActivationFormula& formula) {
    return formula.activation == Activation::relu;
  }

  ChainStep<T>& next(ChainKind kind, int left_sums) {
    ChainStep<T>& step = launch_.steps[launch_.count++];
    step.kind = kind;
    step.first_left = left_;
    step.left_sums = left_sums;
    left_ += left_sums;
    launch_.leaves = launch_.leaves || left_sums > 0;
    return step;
  }

  ChainLaunch<T>& launch_;
  int left_ = 0;
  bool has_norm_ = false;
};

/// False where there was no room for it.
template <class T>
bool run(std::span<const ChainCall> calls, std::int64_t rows, std::byte* memory, Stream stream) {
  ChainLaunch<T> launch;
  const int blocks = blocks_for(rows);
  launch.rows = static_cast<int>(rows);
  launch.rows_per_block = (launch.rows + blocks - 1) / blocks;
  launch.workspace = cuda::workspace_in(memory);
  StepMaker<T> maker(launch);
  for (const ChainCall& call : calls) std::visit(maker, call);
  const auto chosen = takes_cluster(rows) ? run_chain_in_cluster<T> : run_chain_in_grid<T>;
  return chosen(launch, blocks, stream);
}

enum class Answer : char { unknown, no, yes };

/// Whether there is room for clusters or for grids on a GPU, or null for one that is not counted.
std::atomic<Answer>* answer_of(Device device, bool in_cluster) {
  static std::array<std::atomic<Answer>, 128> answers{};
  const auto index = 2 * static_cast<std::size_t>(device.index) + (in_cluster ? 1 : 0);
  return index < answers.size() ? &answers[index] : nullptr;
}

/// Asked once for each GPU, for both types.
bool has_room(Device device, bool in_cluster) {
  std::atomic<Answer>* const known = answer_of(device, in_cluster);
  if (known == nullptr) return false;
  Answer answer = known->load(std::memory_order_relaxed);
  if (answer == Answer::unknown) {
    const cuda_backend::CurrentDevice current(device.index);
    const bool has = in_cluster ? cluster_has_room<float>(most_cluster_chain_blocks) &&
                                      cluster_has_room<__nv_bfloat16>(most_cluster_chain_blocks)
                                : grid_has_room<float>(most_grid_chain_blocks) &&
                                      grid_has_room<__nv_bfloat16>(most_grid_chain_blocks);
    answer = has ? Answer::yes : Answer::no;
    known->store(answer, std::memory_order_relaxed);
  }
  return answer == Answer::yes;
}

}  // namespace

bool CudaDenseOps::chains(const ChainCall& call) const {
  const ConstOperand x = std::visit([](const auto& of) { return of.x; }, call);
  if (x.rows == 0 || x.rows > grid_chain_rows) return false;
  if (x.type != ElementType::fp32 && x.type != ElementType::bf16) return false;
  if (!std::visit(Suits{}, call)) return false;
  return has_room(device_, takes_cluster(x.rows));
}

std::size_t CudaDenseOps::longest_chain() const { return most_chain_calls; }

void CudaDenseOps::run_chain(std::span<const ChainCall> calls, Stream stream,
                             const DenseWorkspace* workspace) const {
  const cuda_backend::CurrentDevice current(device_.index);
  const ConstOperand x = std::visit([](const auto& of) { return of.x; }, calls.front());
  const auto chosen = x.type == ElementType::fp32 ? run<float> : run<__nv_bfloat16>;
  {
    const DenseWorkspaceUse use(workspace, "chain", device_, stream);
    if (chosen(calls, x.rows, use.data(), stream)) return;
  }
  // The context has fewer processors than its GPU: these run one by one, and no more will wait.
  if (std::atomic<Answer>* const known = answer_of(device_, takes_cluster(x.rows))) {
    known->store(Answer::no, std::memory_order_relaxed);
  }
  DenseOps::run_chain(calls, stream, workspace);
}

}  // namespace tessera::ops
