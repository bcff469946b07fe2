// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera::cuda {

/// Whether the current GPU can start a kernel before the one ahead of it is done, and the kernels
/// were compiled to wait for it. Asked once for each GPU.
bool overlaps_launches();

}  // namespace tessera::cuda
