// SPDX-License-Identifier: Apache-2.0
#include "ops/chain/cuda/chain.cuh"

namespace tessera::ops {

template bool run_chain_in_cluster(const ChainLaunch<float>&, int, Stream);
template bool run_chain_in_grid(const ChainLaunch<float>&, int, Stream);
template bool cluster_has_room<float>(int);
template bool grid_has_room<float>(int);

}  // namespace tessera::ops
