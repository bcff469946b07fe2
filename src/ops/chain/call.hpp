// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "ops/dense_ops.hpp"

namespace tessera::ops {

/// Runs a call by itself.
void run_call(const DenseOps& ops, const ChainCall& call, Stream stream,
              const DenseWorkspace* workspace);

/// Whether two calls have the same rows of the same type.
bool goes_with(const ChainCall& call, const ChainCall& other);

/// Whether a call has to wait until others are over: it takes more from them, or leaves more to
/// them, than a row for each row.
bool must_follow(const ChainCall& call, std::span<const ChainCall> others);

}  // namespace tessera::ops
