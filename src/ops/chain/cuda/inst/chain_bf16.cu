// SPDX-License-Identifier: Apache-2.0
#include "ops/chain/cuda/chain.cuh"

namespace tessera::ops {

template bool run_chain_in_cluster(const ChainLaunch<__nv_bfloat16>&, int, Stream);
template bool run_chain_in_grid(const ChainLaunch<__nv_bfloat16>&, int, Stream);
template bool cluster_has_room<__nv_bfloat16>(int);
template bool grid_has_room<__nv_bfloat16>(int);

}  // namespace tessera::ops
