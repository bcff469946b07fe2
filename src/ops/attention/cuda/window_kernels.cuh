// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <type_traits>
#include <utility>

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "cuda/overlap.cuh"
#include "ops/attention/cuda/window_functions.hpp"

/// The kernels over windows, each of which is a pass. It has
///
///     Launch                     what it takes
///     threads                    of a block
///     blocks                     that an SM should hold, as registers and shared memory allow
///     shared_bytes, alignment    of a block's memory
///     starts_alone               when the kernel before is done, whose blocks may differ in size
///     num_slices(launch)         blocks that share the features of a window
///     run(begin, end)            goes over these pieces
namespace tessera::ops {

template <class Pass>
__global__ __launch_bounds__(Pass::threads, (Pass::blocks)) void go_over_windows(
    const typename Pass::Launch launch) {
  extern __shared__ __align__(Pass::alignment) char shared[];
  cuda::let_next_begin();
  const std::int32_t begin = launch.worker_offsets[blockIdx.x];
  const std::int32_t end = launch.worker_offsets[blockIdx.x + 1];
  cuda::wait_for_previous();
  Pass pass(launch, shared);
  pass.run(begin, end);
}

template <class Pass>
void launch_windows(const typename Pass::Launch& launch, Stream stream) {
  const dim3 grid(static_cast<unsigned>(launch.num_workers), Pass::num_slices(launch));
  constexpr std::size_t bytes{Pass::shared_bytes};
  if constexpr (Pass::starts_alone) {
    cuda::launch_alone(go_over_windows<Pass>, grid, Pass::threads, bytes, stream, launch);
  } else {
    cuda::launch_overlapped(go_over_windows<Pass>, grid, Pass::threads, bytes, stream, launch);
  }
}

/// That a GPU holds.
template <class Pass>
int resident_window_blocks() {
  return cuda::resident_blocks(go_over_windows<Pass>, Pass::threads, Pass::shared_bytes,
                               Pass::shared_bytes);
}

template <class Pass>
inline constexpr WindowsFunction windows_function = {launch_windows<Pass>,
                                                     resident_window_blocks<Pass>};

template <class ByRows, class ByColumns>
inline constexpr WindowsSweeps windows_sweeps = {windows_function<ByRows>,
                                                 windows_function<ByColumns>};

/// Calls `make` with each of some widths of heads as a constant.
template <const auto& widths, class Make>
constexpr auto windows_functions(Make make) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{make(std::integral_constant<int, widths[i]>{})...};
  }
  (std::make_index_sequence<widths.size()>{});
}

}  // namespace tessera::ops
