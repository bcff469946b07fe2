// SPDX-License-Identifier: Apache-2.0
#include "core/absent_gpu.hpp"

namespace tessera {

thread_local const AbsentGpu* AbsentGpu::current_ = nullptr;

}  // namespace tessera
