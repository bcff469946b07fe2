// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera {

/// What the calling thread is in the middle of, as `LoopOrigin` said; null if nothing. In a task of
/// a parallel loop it is what the thread that has the loop is in the middle of.
const void* loop_origin() noexcept;

/// While one of these lives, its thread and the helpers of its loops are in the middle of `what`.
class LoopOrigin {
 public:
  explicit LoopOrigin(const void* what) noexcept;
  ~LoopOrigin();
  LoopOrigin(const LoopOrigin&) = delete;
  LoopOrigin& operator=(const LoopOrigin&) = delete;

 private:
  const void* before_;
};

}  // namespace tessera
