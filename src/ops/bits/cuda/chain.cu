// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/chain.hpp"

#include "ops/bits/cuda/chain_steps.cuh"
#include "ops/bits/cuda/instances.cuh"

/// A block has one part of a batch: 128 vertices, the edges between them and all steps of a model.
namespace tessera::ops {
namespace {

__global__ __launch_bounds__(chain_threads) void bit_chain_kernel(
    const __grid_constant__ ChainLaunch launch) {
  extern __shared__ __align__(16) std::uint8_t shared[];
  const chain::ChainMemory memory(shared, launch.image_bytes);
  cuda::let_next_begin();
  chain::load_image(launch, memory);
  cuda::wait_for_previous();
  chain::load_vertices(launch, memory);
  chain::load_features(launch, memory.codes[0]);
  cuda::wait_for_copies<0>();
  __syncthreads();
  for (int i = 0; i < launch.num_steps; ++i) {
    chain::run_step<8>(launch, launch.steps[i], memory, memory.codes[i % 2],
                       memory.codes[(i + 1) % 2]);
    __syncthreads();
  }
}

}  // namespace

int allow_chains() { return allow_all_shared(bit_chain_kernel); }

void launch_chain(const ChainLaunch& launch, Stream stream) {
  cuda::launch_overlapped(
      bit_chain_kernel, dim3(static_cast<unsigned>(launch.num_parts)), chain_threads,
      static_cast<std::size_t>(chain_shared_bytes(launch.image_bytes)), stream, launch);
}

}  // namespace tessera::ops
