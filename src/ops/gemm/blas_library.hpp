// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

/// OpenBLAS. It is loaded at the first product and not linked with: as it starts it maps a buffer
/// of 128 MiB for each processor, and where it gets none it asks again for ever. Here it is asked
/// for nothing until there is room.
namespace tessera::ops::blas {

/// The functions used, as cblas.h declares them. Enumerations of C are ints.
struct Library {
  template <class T>
  using Gemm = void(int order, int transpose_a, int transpose_b, int rows, int cols, int inner,
                    T alpha, const T* a, int stride_a, const T* b, int stride_b, T beta, T* c,
                    int stride_c);

  Gemm<float>* sgemm;
  Gemm<double>* dgemm;
  void (*set_num_threads)(int threads);
  int (*get_parallel)();
  char* (*get_config)();
  void* (*take_buffer)(int place);
  void (*return_buffer)(void* buffer);
  std::string path;  ///< the file that it was loaded from
};

/// Loads it the first time. Throws `backend_unavailable` where it is not installed, and
/// `out_of_memory` where there is no room for it.
const Library& library();

/// Has OpenBLAS map buffers until so many calls can run at a time, or throws `out_of_memory`.
void obtain_buffers(int calls);

/// What a call holds as it runs: the promise that OpenBLAS has a buffer for it.
class CallInProgress {
 public:
  CallInProgress();
  ~CallInProgress();
  CallInProgress(const CallInProgress&) = delete;
  CallInProgress& operator=(const CallInProgress&) = delete;
};

}  // namespace tessera::ops::blas
