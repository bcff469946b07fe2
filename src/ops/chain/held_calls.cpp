// SPDX-License-Identifier: Apache-2.0
#include "ops/chain/held_calls.hpp"

#include <exception>
#include <utility>

#include "ops/dense_workspace.hpp"

namespace tessera::ops {

void release_calls(const DenseWorkspace* workspace) {
  if (workspace == nullptr) return;
  HeldCalls& held = workspace->state().held;
  if (held.calls.empty()) return;
  // Not there while they run: each of them asks for what waits to run before it.
  std::vector<ChainCall> calls = std::exchange(held.calls, {});
  const DenseOps& ops = dense_ops(workspace->device());
  if (calls.size() == 1) {
    run_call(ops, calls.front(), held.stream, workspace);
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
    return run_call(ops, call, stream, workspace);
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
