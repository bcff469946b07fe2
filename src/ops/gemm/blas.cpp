// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/blas.hpp"

#include <cblas.h>

// OpenBLAS's own; absent from the header of the reference BLAS that may come first in the path.
extern "C" void openblas_set_num_threads(int threads);
extern "C" int openblas_get_parallel(void);

namespace tessera::ops::blas {
namespace {

constexpr int threads_are_openmp = 2;

CBLAS_TRANSPOSE flag(Transpose transpose) {
  return transpose == Transpose::yes ? CblasTrans : CblasNoTrans;
}

int narrow(std::int64_t size) { return static_cast<int>(size); }

}  // namespace

void multiply(const Product<float>& p) {
  cblas_sgemm(CblasRowMajor, flag(p.transpose_a), flag(p.transpose_b), narrow(p.rows),
              narrow(p.cols), narrow(p.inner), p.alpha, p.a, narrow(p.stride_a), p.b,
              narrow(p.stride_b), p.beta, p.c, narrow(p.stride_c));
}

void multiply(const Product<double>& p) {
  cblas_dgemm(CblasRowMajor, flag(p.transpose_a), flag(p.transpose_b), narrow(p.rows),
              narrow(p.cols), narrow(p.inner), p.alpha, p.a, narrow(p.stride_a), p.b,
              narrow(p.stride_b), p.beta, p.c, narrow(p.stride_c));
}

// The OpenMP variant asks OpenMP for the number of threads at each call and uses one inside a
// parallel region. The pthread variant has a number of its own, for the whole process.
SingleThread::SingleThread() {
  static const bool follows_openmp = openblas_get_parallel() == threads_are_openmp;
  if (!follows_openmp) openblas_set_num_threads(1);
}

}  // namespace tessera::ops::blas
