// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "ops/dense/dense_ops.hpp"
#include "tessera/detail/ops/held_calls.hpp"

namespace tessera::ops {

/// What a workspace keeps.
struct HeldCalls {
  bool holds = false;
  Stream stream = {};
  std::vector<ChainCall> calls;
};

/// Whether a call has to wait until others are over: it takes more from them, or leaves more to
/// them, than a row for each row.
bool must_follow(const ChainCall& call, std::span<const ChainCall> others);

/// Runs a call, or defers it.
void submit(Device device, const ChainCall& call, Stream stream, const DenseWorkspace* workspace);

}  // namespace tessera::ops
