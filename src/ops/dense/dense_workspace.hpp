// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "core/stream_uses.hpp"
#include "tessera/ops/dense_workspace.hpp"

namespace tessera::ops {

struct DenseWorkspace::State {
  explicit State(const Place& of)
      : place(of), memory(DenseWorkspace::num_bytes(of.device), of), uses(of) {}

  Place place;
  Buffer<std::byte> memory;
  mutable StreamUses uses;  ///< the last member: see there
};

/// One call's use of a workspace, from before its first launch to behind its last.
class DenseWorkspaceUse {
 public:
  /// Throws `invalid_argument` where there is none, or one of another device.
  DenseWorkspaceUse(const DenseWorkspace* workspace, const char* op, Device device, Stream stream);
  ~DenseWorkspaceUse() { state_->uses.mark(stream_); }
  DenseWorkspaceUse(const DenseWorkspaceUse&) = delete;
  DenseWorkspaceUse& operator=(const DenseWorkspaceUse&) = delete;

  std::byte* data() const noexcept { return const_cast<std::byte*>(state_->memory.data()); }

 private:
  const DenseWorkspace::State* state_ = nullptr;
  Stream stream_;
};

}  // namespace tessera::ops
