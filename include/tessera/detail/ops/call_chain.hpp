// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "tessera/ops/dense_workspace.hpp"

namespace tessera::ops {

/// The largest matrices of ops that join a chain.
inline constexpr std::int64_t most_chain_rows = 32768, most_chain_columns = 16;

/// Small dense ops on a GPU take longer to begin than to run, and those of a layer or two follow
/// one another on the same rows. A chain gathers them and runs them in one launch. `linear`,
/// `linear_backward`, `batch_norm`, `batch_norm_backward` and `loss` join the chain that they are
/// given. One that cannot be in a launch with those before it runs after them, and one that is
/// never in a chain, as on the CPU, runs when it is called.
///
/// Nothing is allocated once the first calls have joined.
///
/// What has joined is not computed before `run`, which has to come before anything else reads or
/// writes the same memory. All that join have the same device, stream and workspace.
class CallChain {
 public:
  CallChain();
  ~CallChain();
  CallChain(const CallChain&) = delete;
  CallChain& operator=(const CallChain&) = delete;

  /// Runs what has joined, if anything has.
  void run();
  /// Forgets what has joined and not run, as after an exception.
  void drop() noexcept;

  struct State;
  State& state() noexcept { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tessera::ops
