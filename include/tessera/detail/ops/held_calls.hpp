// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/ops/dense_workspace.hpp"

/// Small dense ops on a GPU take longer to begin than to run, and those of a layer or two follow
/// one another on the same rows. So they may be deferred and run in one launch: from `HoldCalls`
/// on, calls that can be in a chain are kept with the workspace that they are given, and run when
/// something else is given the workspace, when they no longer fit together, or at `release_calls`.
/// Code that defers calls has to release them before anything else reads what they write.
namespace tessera::ops {

struct HeldCalls;

/// Runs the deferred calls; nothing without a workspace.
void release_calls(const DenseWorkspace* workspace);

/// Calls may be deferred while it lives, and run when it goes, where none could be before. Where it
/// goes by an exception, deferred calls are dropped.
class HoldCalls {
 public:
  explicit HoldCalls(const DenseWorkspace* workspace);
  ~HoldCalls() noexcept(false);
  HoldCalls(const HoldCalls&) = delete;
  HoldCalls& operator=(const HoldCalls&) = delete;

  /// Whether calls are deferred from now on; otherwise the deferred calls run now.
  void set(bool holds);
  /// As it was before; where calls were not deferred then, the deferred calls run now.
  void end() { set(before_); }

 private:
  HeldCalls* held_ = nullptr;
  const DenseWorkspace* workspace_;
  bool before_ = false;
  int exceptions_ = 0;  ///< in flight when it was made
};

}  // namespace tessera::ops
