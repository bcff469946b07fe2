// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks a function that kernels of a GPU call as the host does, and that cannot be `constexpr`.
#ifdef __CUDACC__
#define TESSERA_ANYWHERE __host__ __device__
#else
#define TESSERA_ANYWHERE
#endif
