// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/openmp_limit.hpp"
#include "tessera/ops/gemm.hpp"

/// The BLAS library, one thread per call.
namespace tessera::ops::blas {

/// The largest size or distance between rows that one call takes: BLAS counts with 32 bits.
inline constexpr std::int64_t max_size = 0x7FFFFFFF;

/// C = alpha * op(A) * op(B) + beta * C with C of rows x cols, all row-major.
template <class T>
struct Product {
  Transpose transpose_a;
  Transpose transpose_b;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t inner;
  T alpha;
  const T* a;
  std::int64_t stride_a;
  const T* b;
  std::int64_t stride_b;
  T beta;
  T* c;
  std::int64_t stride_c;
};

void multiply(const Product<float>& product);
void multiply(const Product<double>& product);

/// While one of these lives, calls on this thread (and on the threads of our parallel loops) run on
/// one thread each. OpenBLAS sums in an order that depends on how many threads it uses; so the
/// split into threads is ours, and BLAS never splits.
class SingleThread {
 public:
  /// Throws `out_of_memory` unless BLAS has what so many calls need that our threads share.
  explicit SingleThread(std::int64_t calls);

 private:
  OneOpenMpThread openmp_;
};

}  // namespace tessera::ops::blas
