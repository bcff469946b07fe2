// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

/// Streams and processors as `gpu_limits` leave them.
namespace tessera::cuda_backend {

/// A stream of the current GPU that does not wait for the default one, confined to the processors
/// that the limits leave.
cudaStream_t make_stream(int priority = 0);

/// Of a GPU that has `all`.
int usable_processors(int index, int all);

}  // namespace tessera::cuda_backend
