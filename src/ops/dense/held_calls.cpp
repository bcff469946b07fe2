// SPDX-License-Identifier: Apache-2.0
#include "ops/dense/held_calls.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <span>
#include <utility>

#include "ops/dense/dense_workspace.hpp"
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

void release_calls(const DenseWorkspace* workspace) {
  if (workspace == nullptr) return;
  HeldCalls& held = workspace->state().held;
  if (held.calls.empty()) return;
  // Not there while they run: each of them asks for what waits to run before it.
  std::vector<ChainCall> calls = std::exchange(held.calls, {});
  const DenseOps& ops = dense_ops(workspace->device());
  if (calls.size() == 1) {
    run_alone(ops, calls.front(), held.stream, workspace);
  } else {
    ops.run_chain(calls, held.stream, workspace);
  }
  // None began to wait meanwhile; the next ones wait in the same memory.
  calls.clear();
  held.calls = std::move(calls);
}

void submit(Device device, const ChainCall& call, Stream stream, const DenseWorkspace* workspace) {
  const DenseOps& ops = dense_ops(device);
  const bool waits = workspace != nullptr && workspace->state().held.holds &&
                     workspace->device() == device && ops.chains(call);
  if (!waits) {
    release_calls(workspace);
    return run_alone(ops, call, stream, workspace);
  }
  HeldCalls& held = workspace->state().held;
  const auto fits = [&] {
    return held.stream.handle == stream.handle && held.calls.size() < ops.longest_chain() &&
           goes_with(call, held.calls.front()) && !must_follow(call, held.calls);
  };
  if (!held.calls.empty() && !fits()) release_calls(workspace);
  held.stream = stream;
  held.calls.reserve(ops.longest_chain());
  held.calls.push_back(call);
}

HoldCalls::HoldCalls(const DenseWorkspace* workspace) : workspace_(workspace) {
  if (workspace == nullptr) return;
  held_ = &workspace->state().held;
  before_ = held_->holds;
  exceptions_ = std::uncaught_exceptions();
}

HoldCalls::~HoldCalls() noexcept(false) {
  if (held_ == nullptr) return;
  held_->holds = before_;
  if (before_) return;
  if (std::uncaught_exceptions() > exceptions_) {
    held_->calls.clear();
  } else {
    release_calls(workspace_);
  }
}

void HoldCalls::set(bool holds) {
  if (held_ == nullptr) return;
  held_->holds = holds;
  if (!holds) release_calls(workspace_);
}

}  // namespace tessera::ops
