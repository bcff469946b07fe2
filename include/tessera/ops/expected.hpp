// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device_profile.hpp"
#include "tessera/ops/aggregate_update.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/bits.hpp"
#include "tessera/ops/edge_softmax.hpp"
#include "tessera/ops/sddmm.hpp"
#include "tessera/ops/spmm.hpp"

/// What plans would choose on a GPU that need not be there, and what they expect of each kernel:
/// by built-in costs over the rates of a profile. Nothing is prepared, no order of rows is looked
/// for, and the graph stays in the memory of this process. Throws `backend_unavailable` in a build
/// without CUDA, which has no table of its kernels.
namespace tessera::ops {

/// With a child "backward" where the options ask for that pass.
Explanation expected(const Graph& graph, const SpmmOptions& options, const DeviceProfile& gpu);
Explanation expected(const Graph& graph, const SddmmOptions& options, const DeviceProfile& gpu);
Explanation expected(const Graph& graph, const EdgeSoftmaxOptions& options,
                     const DeviceProfile& gpu);
Explanation expected(const Graph& graph, const AttentionOptions& options, const DeviceProfile& gpu);
Explanation expected(const Graph& graph, const AggregateUpdateOptions& options,
                     const DeviceProfile& gpu);
Explanation expected_bit_aggregate(const Graph& graph, const BitOptions& options,
                                   const DeviceProfile& gpu);
Explanation expected_bit_gemm(const BitOptions& options, const DeviceProfile& gpu);

}  // namespace tessera::ops
