// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"

namespace tessera::cuda {

/// Starts a kernel of as many blocks as the GPU holds at once, each of which has its share of the
/// work, when the kernel before it is done. Blocks that came while those of another size still run
/// would lie between them: the gaps that these leave may be too small, and the last blocks would
/// wait until others have done all of their work.
template <class... Parameters, class... Arguments>
void launch_alone(void (*kernel)(Parameters...), dim3 grid, unsigned threads,
                  std::size_t shared_bytes, Stream stream, Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  kernel<<<grid, threads, shared_bytes, raw(stream)>>>(std::forward<Arguments>(arguments)...);
  cuda_check(cudaGetLastError(), "starting a kernel");
}

}  // namespace tessera::cuda
