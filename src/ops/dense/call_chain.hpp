// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "ops/dense/dense_ops.hpp"
#include "tessera/detail/ops/call_chain.hpp"

namespace tessera::ops {

struct CallChain::State {
  Device device = {};
  Stream stream = {};
  const DenseWorkspace* workspace = nullptr;
  std::vector<ChainCall> calls;
};

/// Whether a call has to wait until others are over: it takes more from them, or leaves more to
/// them, than a row for each row.
bool must_follow(const ChainCall& call, std::span<const ChainCall> others);

/// Runs a call, or adds it to a chain, which may be null.
void run_or_join(CallChain* chain, Device device, const ChainCall& call, Stream stream,
                 const DenseWorkspace* workspace);

}  // namespace tessera::ops
