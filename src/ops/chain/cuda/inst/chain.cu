// SPDX-License-Identifier: Apache-2.0
#include "ops/chain/cuda/chain.cuh"

namespace tessera::ops {

template bool run_chain_in_cluster(const ChainLaunch<float>&, int, Stream);
template bool run_chain_in_grid(const ChainLaunch<float>&, int, Stream);
template int chain_room_in_cluster<float>(int);
template int chain_room_in_grid<float>(int);

}  // namespace tessera::ops
