// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tessera::ops {

/// The library that computes products on the CPU, its version and its file: "OpenBLAS 0.3.21 ...,
/// /usr/lib/libopenblas.so.0". The first product of a process loads it, or this function: throws
/// `backend_unavailable` where it is not installed, and `out_of_memory` where it has no room.
std::string describe_blas();

}  // namespace tessera::ops
