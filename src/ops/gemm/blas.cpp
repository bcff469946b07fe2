// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/blas.hpp"

#include <algorithm>

#include "tessera/core/parallel.hpp"

#include "ops/gemm/blas_library.hpp"

namespace tessera::ops::blas {
namespace {

constexpr int threads_are_openmp = 2;

// Of cblas.h.
constexpr int row_major = 101;
int flag(Transpose transpose) { return transpose == Transpose::yes ? 112 : 111; }

int narrow(std::int64_t size) { return static_cast<int>(size); }

/// In this order: OpenMP ends the process where it has no memory, and loading looks whether it has.
OneOpenMpThread one_thread_after_loading() {
  library();
  return OneOpenMpThread();
}

template <class T>
void call(Library::Gemm<T>* gemm, const Product<T>& p) {
  const CallInProgress in_progress;
  gemm(row_major, flag(p.transpose_a), flag(p.transpose_b), narrow(p.rows), narrow(p.cols),
       narrow(p.inner), p.alpha, p.a, narrow(p.stride_a), p.b, narrow(p.stride_b), p.beta, p.c,
       narrow(p.stride_c));
}

}  // namespace

void multiply(const Product<float>& product) { call(library().sgemm, product); }
void multiply(const Product<double>& product) { call(library().dgemm, product); }

// The OpenMP variant asks OpenMP for the number of threads at each call and uses one inside a
// parallel region. The pthread variant has a number of its own, for the whole process.
SingleThread::SingleThread(std::int64_t calls) : openmp_(one_thread_after_loading()) {
  static const bool follows_openmp = library().get_parallel() == threads_are_openmp;
  if (!follows_openmp) library().set_num_threads(1);
  obtain_buffers(static_cast<int>(std::min<std::int64_t>(calls, num_threads())));
}

}  // namespace tessera::ops::blas
