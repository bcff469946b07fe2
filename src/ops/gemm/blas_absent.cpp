// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/blas.hpp"

#include "tessera/core/error.hpp"

/// A build of the sparse ops alone has no BLAS library.
namespace tessera::ops::blas {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::backend_unavailable, "built without BLAS", "gemm",
              "build the whole library (TESSERA_SPARSE_ONLY=OFF)");
}

}  // namespace

void multiply(const Product<float>&) { refuse(); }
void multiply(const Product<double>&) { refuse(); }
SingleThread::SingleThread() = default;

}  // namespace tessera::ops::blas
