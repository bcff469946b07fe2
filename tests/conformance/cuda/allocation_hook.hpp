// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tessera::test {

/// How often this program, the library included, has asked CUDA for memory of a GPU by any of its
/// functions. The linker leads those calls through allocation_hook.cpp (tests/CMakeLists.txt); what
/// NVIDIA's own libraries take for themselves is not seen.
std::int64_t num_cuda_allocations() noexcept;

/// The same for memory of this process that is pinned.
std::int64_t num_pinned_allocations() noexcept;

/// How often it has waited for a GPU: for a stream, an event or all of one, or in a copy that ends
/// only when its bytes are here.
std::int64_t num_cuda_waits() noexcept;

/// Bytes of the largest copy from a GPU to this process since the last call.
std::int64_t largest_copy_to_host() noexcept;

}  // namespace tessera::test
