// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "core/cuda_handles.hpp"
#include "ops/batch_norm/cuda/columns.cuh"
#include "ops/chain/cuda/steps.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/cuda/dense_ops.hpp"
#include "ops/dense/dense_workspace.hpp"
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
/// Whether two matrices are one or have nothing to do with each other.
bool same_or_apart(const ConstOperand& a, const ConstOperand& b) {
  return a.data != b.data || (a.stride == b.stride && a.cols == b.cols);
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
    return has_results && is_apart && same_or_apart(call.x, call.grad_y) && is_narrow(call.x) &&
           is_narrow(call.grad_y) && is_narrow_or_absent(call.weight) &&
           is_narrow_or_absent(call.grad_x) && call.of_x.columns.absent() && call.normed.absent();
  }
  bool operator()(const BatchNormCall& call) const {
    return is_narrow(call.x) && is_narrow(call.y) && same_or_apart(call.x, call.y) &&
           ShortFormula::suits(call.formula) && call.moments.absent() && call.columns.absent();
  }
  bool operator()(const BatchNormGradCall& call) const {
    return is_narrow(call.x) && is_narrow(call.grad_y) && is_narrow(call.grad_x) &&
           same_or_apart(call.x, call.grad_y) && same_or_apart(call.x, call.grad_x) &&
           same_or_apart(call.grad_y, call.grad_x) && ShortFormula::suits(call.formula) &&
           call.factors.absent() && call.grad_columns.absent() && call.sums.absent();
  }
  bool operator()(const LossCall& call) const {
    return is_narrow(call.x) && is_narrow_or_absent(call.grad_x) &&
           same_or_apart(call.x, call.grad_x) && call.targets->form == LossForm::classes;
  }
};

/// Makes the launch of calls one after another.
template <class T>
class LaunchMaker {
 public:
  /// `room`: bytes of shared memory for matrices.
  LaunchMaker(std::int64_t rows, int blocks, int room, std::byte* memory) : room_(room) {
    launch_.rows = static_cast<int>(rows);
    launch_.share_of_row = 1 / static_cast<double>(rows);
    launch_.rows_per_block = (launch_.rows + blocks - 1) / blocks;
    launch_.workspace = cuda::workspace_in(memory);
  }

  /// False where the launch has no room for a call, and stays as it is.
  bool add(const ChainCall& call) {
    const ChainLaunch<T> before = launch_;
    std::visit(*this, call);
    if (!fits_) launch_ = before;
    return fits_;
  }
  const ChainLaunch<T>& launch() const { return launch_; }

  void operator()(const LinearCall& call) {
    const int x = read(call.x), y = written(call.y);
    add_product(
        {x, y, no_matrix, 0, rows_of<T>(call.weight), true, values_of<T>(call.bias), nullptr});
  }
  void operator()(const LinearGradCall& call) {
    const int x = read(call.x), grad_y = read(call.grad_y);
    if (!call.grad_weight.absent() || !call.grad_bias.absent()) {
      next(ChainKind::weight, weight_sums).weight = {x, grad_y, rows_of<T>(call.grad_weight),
                                                     values_of<T>(call.grad_bias)};
    }
    if (call.grad_x.absent()) return;
    add_product({grad_y, written(call.grad_x), call.before_relu ? x : no_matrix, 0,
                 rows_of<T>(call.weight), false, nullptr, values_of<T>(call.grad_x_sums)});
  }
  void operator()(const BatchNormCall& call) {
    const int x = read(call.x), y = written(call.y);
    next(ChainKind::norm, 0).norm = {x, y, call.options.training, is_relu(call.formula),
                                     statistics_of<T>(call, nullptr)};
    launch_.exchanges = launch_.exchanges || call.options.training;
  }
  void operator()(const BatchNormGradCall& call) {
    const int x = read(call.x), grad_y = read(call.grad_y), grad_x = written(call.grad_x);
    const auto* const mean = values_of<float>(call.saved_mean);
    const auto* const deviation = values_of<float>(call.saved_inverse_deviation);
    const int norm = step_that_finds(mean, deviation);
    next(ChainKind::norm_gradient, 0).norm_gradient = {x,
                                                       grad_y,
                                                       grad_x,
                                                       is_relu(call.formula),
                                                       norm,
                                                       mean,
                                                       deviation,
                                                       values_of<float>(call.gamma),
                                                       values_of<float>(call.beta),
                                                       values_of<float>(call.grad_gamma),
                                                       values_of<float>(call.grad_beta),
                                                       values_of<T>(call.grad_shift)};
    launch_.exchanges = true;
  }
  void operator()(const LossCall& call) {
    // The memory of a block has labels for one.
    if (launch_.loss >= 0) fits_ = false;
    launch_.loss = launch_.count;
    const int logits = read(call.x);
    const int gradient = call.grad_x.absent() ? no_matrix : written(call.grad_x);
    next(ChainKind::loss, chain_sums).loss = {logits,
                                              gradient,
                                              values_of<T>(call.grad_sums),
                                              call.targets->weights.data(),
                                              call.targets->labels.data(),
                                              WantedShares<float>::of(*call.targets),
                                              1 / call.targets->count,
                                              call.value};
  }

 private:
  static bool is_relu(const ActivationFormula& formula) {
    return formula.activation == Activation::relu;
  }

  /// The numbers of matrices.
  int read(const ConstOperand& operand) { return number_of(operand, true); }
  int written(const ConstOperand& operand) { return number_of(operand, false); }
  int number_of(const ConstOperand& operand, bool is_read) {
    const ChainMatrix<T> matrix{const_cast<T*>(static_cast<const T*>(operand.data)),
                                static_cast<int>(operand.stride), static_cast<int>(operand.cols)};
    for (int i = 0; i < launch_.matrices; ++i) {
      const ChainMatrix<T>& known = launch_.matrix[i];
      if (known.data != matrix.data) continue;
      // Two copies of the same numbers would not know of each other.
      if (known.stride != matrix.stride || known.cols != matrix.cols) fits_ = false;
      return i;
    }
    const int number = launch_.matrices;
    if (number == most_chain_matrices) {
      fits_ = false;
      return 0;
    }
    launch_.matrix[launch_.matrices++] = matrix;
    if (is_read) launch_.given_matrix[launch_.given++] = number;
    if (launch_.shared_bytes() > room_) fits_ = false;
    return number;
  }

  /// The batch norm that saves these, or the next step where they were found before this launch.
  int step_that_finds(const float* mean, const float* deviation) {
    for (int i = 0; i < launch_.count; ++i) {
      const ChainStep<T>& step = launch_.steps[i];
      if (step.kind != ChainKind::norm || !step.norm.training) continue;
      const Statistics<T>& found = step.norm.statistics;
      if (found.saved_mean != mean && found.saved_inverse_deviation != deviation) continue;
      if (found.saved_mean != mean || found.saved_inverse_deviation != deviation) fits_ = false;
      return i;
    }
    return launch_.count;
  }

  void add_product(const ProductStep<T>& product) {
    launch_.product_of_factor[launch_.factors] = launch_.count;
    ProductStep<T>& added =
        next(ChainKind::product, product.sums == nullptr ? 0 : chain_sums).product;
    added = product;
    added.factor = launch_.factors++;
  }

  ChainStep<T>& next(ChainKind kind, int left_sums) {
    const int number = launch_.count++;
    ChainStep<T>& step = launch_.steps[number];
    step.kind = kind;
    step.first_left = launch_.left_sums;
    step.left_sums = left_sums;
    launch_.left_sums += left_sums;
    std::fill(launch_.step_of_left + step.first_left / chain_width,
              launch_.step_of_left + launch_.left_sums / chain_width,
              static_cast<std::uint8_t>(number));
    return step;
  }

  ChainLaunch<T> launch_;
  int room_;
  bool fits_ = true;
};

/// Runs as many of the first calls as one launch has room for, and returns how many these are: none
/// where the blocks cannot run at once.
template <class T>
std::size_t run_first(std::span<const ChainCall> calls, std::int64_t rows, int room,
                      std::byte* memory, Stream stream) {
  const int blocks = blocks_for(rows);
  LaunchMaker<T> maker(rows, blocks, room, memory);
  std::size_t added = 0;
  while (added < calls.size() && maker.add(calls[added])) ++added;
  if (added == 0) return 0;
  return launch_chain(maker.launch(), takes_cluster(rows), blocks, stream) ? added : 0;
}

/// How many bytes blocks have for matrices on a GPU: -1 as long as that is unknown, 0 where there
/// is no room for as many blocks.
struct KnownRoom {
  std::atomic<int> bytes = -1;
};

/// In a cluster or in a grid; null for a GPU that is not counted.
std::atomic<int>* known_room(Device device, bool in_cluster) {
  static std::array<KnownRoom, 128> rooms;
  const auto index = 2 * static_cast<std::size_t>(device.index) + (in_cluster ? 1 : 0);
  return index < rooms.size() ? &rooms[index].bytes : nullptr;
}

/// Asked once for each GPU, for both types.
int room_on(Device device, bool in_cluster) {
  std::atomic<int>* const known = known_room(device, in_cluster);
  if (known == nullptr) return 0;
  int room = known->load(std::memory_order_relaxed);
  if (room < 0) {
    const cuda_backend::CurrentDevice current(device.index);
    const int blocks = in_cluster ? most_cluster_chain_blocks : most_grid_chain_blocks;
    room = std::min(chain_room<float>(in_cluster, blocks),
                    chain_room<__nv_bfloat16>(in_cluster, blocks));
    if (room < least_chain_room) room = 0;
    known->store(room, std::memory_order_relaxed);
  }
  return room;
}

}  // namespace

bool CudaDenseRun::chains(const ChainCall& call) const {
  const ConstOperand x = std::visit([](const auto& of) { return of.x; }, call);
  if (x.rows == 0 || x.rows > grid_chain_rows) return false;
  if (x.type != ElementType::fp32 && x.type != ElementType::bf16) return false;
  if (!std::visit(Suits{}, call)) return false;
  return room_on(device, takes_cluster(x.rows)) > 0;
}

std::size_t CudaDenseRun::longest_chain() { return most_chain_calls; }

void CudaDenseRun::run_chain(std::span<const ChainCall> calls) const {
  const ConstOperand x = std::visit([](const auto& of) { return of.x; }, calls.front());
  const auto chosen = x.type == ElementType::fp32 ? run_first<float> : run_first<__nv_bfloat16>;
  const bool in_cluster = takes_cluster(x.rows);
  {
    const DenseWorkspaceUse use(workspace, "chain", device, stream);
    while (!calls.empty()) {
      const std::size_t done =
          chosen(calls, x.rows, room_on(device, in_cluster), use.data(), stream);
      if (done == 0) break;
      calls = calls.subspan(done);
    }
  }
  if (calls.empty()) return;
  // The context has fewer processors than its GPU: these run one by one, and no more will wait.
  if (std::atomic<int>* const known = known_room(device, in_cluster)) {
    known->store(0, std::memory_order_relaxed);
  }
  for (const ChainCall& call : calls) std::visit([&](const auto& of) { run(of); }, call);
}

}  // namespace tessera::ops
