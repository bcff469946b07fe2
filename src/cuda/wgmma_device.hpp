// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"

namespace tessera::cuda {

/// Whether a GPU is there, has wgmma, and this build has code for it. Asked once for each GPU.
bool has_wgmma(Device device);

}  // namespace tessera::cuda
