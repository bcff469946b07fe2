// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/chain/call.hpp"

/// Small dense ops on a GPU take longer to begin than to run, and those of a layer or two follow
/// one another on the same rows. So they may wait for each other and run in one launch: from
/// `HoldCalls` on, calls that can be in a chain are kept with the workspace that they are given,
/// and run when something else is given the workspace, when they no longer fit together, or at
/// `release_calls`. Whoever holds calls has to release them before anything else reads what they
/// write.
namespace tessera::ops {

/// What a workspace keeps.
struct HeldCalls {
  bool holds = false;
  Stream stream = {};
  std::vector<ChainCall> calls;
};

/// Runs what waits; nothing without a workspace.
void release_calls(const DenseWorkspace* workspace);

/// Runs a call, or lets it wait.
void submit(Device device, const ChainCall& call, Stream stream, const DenseWorkspace* workspace);

/// Calls may wait while it lives, and run when it goes, where none could wait before. Where it goes
/// by an exception, those that wait are forgotten.
class HoldCalls {
 public:
  explicit HoldCalls(const DenseWorkspace* workspace);
  ~HoldCalls() noexcept(false);
  HoldCalls(const HoldCalls&) = delete;
  HoldCalls& operator=(const HoldCalls&) = delete;

  /// Whether calls may wait from now on; if not, those that do run now.
  void set(bool holds);
  /// As it was before; where calls could not wait then, those that do run now.
  void end() { set(before_); }

 private:
  HeldCalls* held_ = nullptr;
  const DenseWorkspace* workspace_;
  bool before_ = false;
  int exceptions_ = 0;  ///< under way when it was made
};

}  // namespace tessera::ops
