// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/cuda_check.hpp"
#include "cuda/overlap.cuh"
#include "tessera/core/device.hpp"

namespace tessera::cuda {

inline cudaStream_t raw(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }

/// Enough blocks of `per_block` for `count` of something; throws where the grid has no room.
inline unsigned num_blocks(std::int64_t count, std::int64_t per_block) {
  const std::int64_t blocks = (count + per_block - 1) / per_block;
  if (blocks > 0x7fffffff) {
    throw Error(ErrorCode::unsupported, std::to_string(blocks) + " blocks in one launch", "CUDA",
                "use a smaller graph or fewer features");
  }
  return static_cast<unsigned>(blocks);
}

/// Starts a kernel on the caller's stream when the one before it is done; nothing happens for an
/// empty grid. So start kernels of as many blocks as the GPU holds at once, each of which has its
/// share of the work: blocks that came while those of another size still run would lie between
/// them. The gaps that these leave may be too small, and the last blocks would wait until others
/// have done all of their work.
template <class... Parameters, class... Arguments>
void launch_alone(void (*kernel)(Parameters...), dim3 grid, unsigned threads,
                  std::size_t shared_bytes, Stream stream, Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  kernel<<<grid, threads, shared_bytes, raw(stream)>>>(std::forward<Arguments>(arguments)...);
  cuda_check(cudaGetLastError(), "starting a kernel");
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, unsigned threads, Stream stream,
            Arguments&&... arguments) {
  launch_alone(kernel, grid, threads, 0, stream, std::forward<Arguments>(arguments)...);
}

/// The same with a thread for each of `count`.
template <class... Parameters, class... Arguments>
void launch_each(void (*kernel)(Parameters...), std::int64_t count, Stream stream,
                 Arguments&&... arguments) {
  constexpr unsigned block_threads = 256;
  launch(kernel, dim3(num_blocks(count, block_threads)), block_threads, stream,
         std::forward<Arguments>(arguments)...);
}

/// Starts a kernel whose blocks may come to the GPU while the kernel before it on the stream
/// still runs. Every warp of it must call `wait_for_previous` (overlap.cuh) before it reads what
/// other kernels write, or writes anything.
template <class... Parameters, class... Arguments>
void launch_overlapped(void (*kernel)(Parameters...), dim3 grid, unsigned threads,
                       std::size_t shared_bytes, Stream stream, Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = raw(stream);
  config.attrs = &early;
  config.numAttrs = overlaps_launches() ? 1 : 0;
  cuda_check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...),
             "starting a kernel");
}

template <class... Parameters, class... Arguments>
void launch_overlapped(void (*kernel)(Parameters...), dim3 grid, unsigned threads, Stream stream,
                       Arguments&&... arguments) {
  launch_overlapped(kernel, grid, threads, std::size_t{0}, stream,
                    std::forward<Arguments>(arguments)...);
}

}  // namespace tessera::cuda
