// SPDX-License-Identifier: Apache-2.0
#include "ops/dense/call_chain.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include "tessera/core/dtype.hpp"

namespace tessera::ops {
namespace {

/// Memory that a call reads or writes.
struct Access {
  const std::byte* begin;
  const std::byte* end;
  std::int64_t stride;
  bool writes;
  bool by_rows;  ///< a row of it belongs to the same row of the other matrices
  bool by_all;   ///< every block of a chain that writes it knows all of it

  /// With one that comes before.
  bool conflicts(const Access& other) const {
    if (!writes && !other.writes) return false;
    if (begin >= other.end || other.begin >= end) return false;
    if (by_all && other.by_all && begin == other.begin && end == other.end) return writes;
    return !(by_rows && other.by_rows && begin == other.begin && stride == other.stride);
  }
};

class Accesses {
 public:
  explicit Accesses(const ChainCall& call) {
    std::visit([&](const auto& of) { list(of); }, call);
  }

  bool conflict(const Accesses& others) const {
    return std::ranges::any_of(all(), [&](const Access& own) {
      return std::ranges::any_of(others.all(),
                                 [&](const Access& other) { return own.conflicts(other); });
    });
  }

 private:
  std::span<const Access> all() const { return {all_.data(), count_}; }

  void add(const ConstOperand& operand, bool writes, bool by_rows, bool by_all = false) {
    if (operand.absent() || operand.rows == 0 || operand.cols == 0) return;
    const auto* const begin = static_cast<const std::byte*>(operand.data);
    const std::int64_t elements = (operand.rows - 1) * operand.stride + operand.cols;
    all_.at(count_++) = {
        begin, begin + bytes_of(operand.type, elements), operand.stride, writes, by_rows, by_all};
  }
  void reads_rows(const ConstOperand& operand) { add(operand, false, true); }
  void writes_rows(const ConstOperand& operand) { add(operand, true, true); }
  void reads(std::initializer_list<ConstOperand> operands) {
    for (const ConstOperand& operand : operands) add(operand, false, false);
  }
  void writes(std::initializer_list<ConstOperand> operands) {
    for (const ConstOperand& operand : operands) add(operand, true, false);
  }

  void list(const LinearCall& call) {
    reads_rows(call.x);
    writes_rows(call.y);
    reads({call.weight, call.bias});
  }
  void list(const LinearGradCall& call) {
    reads_rows(call.x);
    reads_rows(call.grad_y);
    writes_rows(call.grad_x);
    reads({call.weight});
    writes({call.grad_weight, call.grad_bias, call.grad_x_sums});
  }
  void list(const BatchNormCall& call) {
    reads_rows(call.x);
    writes_rows(call.y);
    reads({call.gamma, call.beta, call.shift});
    writes({call.state.running_mean, call.state.running_variance});
    add(call.saved_mean, true, false, true);
    add(call.saved_inverse_deviation, true, false, true);
  }
  void list(const BatchNormGradCall& call) {
    reads_rows(call.x);
    reads_rows(call.grad_y);
    writes_rows(call.grad_x);
    reads({call.gamma, call.beta});
    add(call.saved_mean, false, false, true);
    add(call.saved_inverse_deviation, false, false, true);
    writes({call.grad_gamma, call.grad_beta, call.grad_shift});
  }
  void list(const LossCall& call) {
    reads_rows(call.x);
    writes_rows(call.grad_x);
    writes({call.grad_sums, {call.value, ElementType::fp64, call.x.device, 1, 1}});
  }

  std::array<Access, 10> all_ = {};  ///< room for the call with the most matrices
  std::size_t count_ = 0;
};

/// Whether two calls have the same rows of the same type.
bool goes_with(const ChainCall& call, const ChainCall& other) {
  const auto input = [](const auto& of) { return of.x; };
  const ConstOperand own = std::visit(input, call), others = std::visit(input, other);
  return own.rows == others.rows && own.type == others.type;
}

/// Runs a call by itself.
void run_alone(const DenseOps& ops, const ChainCall& call, Stream stream,
               const DenseWorkspace* workspace) {
  std::visit([&](const auto& of) { ops.run(of, stream, workspace); }, call);
}

}  // namespace

bool must_follow(const ChainCall& call, std::span<const ChainCall> others) {
  const Accesses own(call);
  return std::any_of(others.begin(), others.end(),
                     [&](const ChainCall& other) { return own.conflict(Accesses(other)); });
}

void DenseOps::run_chain(std::span<const ChainCall> calls, Stream stream,
                         const DenseWorkspace* workspace) const {
  for (const ChainCall& call : calls) run_alone(*this, call, stream, workspace);
}

CallChain::CallChain() : state_(std::make_unique<State>()) {}
CallChain::~CallChain() = default;

void CallChain::run() {
  const auto& [device, stream, workspace, calls] = *state_;
  if (calls.empty()) return;
  const DenseOps& ops = dense_ops(device);
  if (calls.size() == 1) {
    run_alone(ops, calls.front(), stream, workspace);
  } else {
    ops.run_chain(calls, stream, workspace);
  }
  state_->calls.clear();
}

void CallChain::drop() noexcept { state_->calls.clear(); }

void run_or_join(CallChain* chain, Device device, const ChainCall& call, Stream stream,
                 const DenseWorkspace* workspace) {
  const DenseOps& ops = dense_ops(device);
  if (chain == nullptr) return run_alone(ops, call, stream, workspace);
  CallChain::State& state = chain->state();
  const bool joins = workspace != nullptr && workspace->device() == device && ops.chains(call);
  const auto fits = [&] {
    return state.calls.size() < ops.longest_chain() && goes_with(call, state.calls.front()) &&
           !must_follow(call, state.calls);
  };
  if (!joins || (!state.calls.empty() && !fits())) chain->run();
  if (!joins) return run_alone(ops, call, stream, workspace);
  state.device = device;
  state.stream = stream;
  state.workspace = workspace;
  state.calls.reserve(ops.longest_chain());
  state.calls.push_back(call);
}

}  // namespace tessera::ops
