// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tessera::test {

/// How often this program, the library included, has asked CUDA for memory by any of its functions.
/// The linker leads those calls through allocation_hook.cpp (tests/CMakeLists.txt); what NVIDIA's
/// own libraries take for themselves is not seen.
std::int64_t num_cuda_allocations() noexcept;

}  // namespace tessera::test
