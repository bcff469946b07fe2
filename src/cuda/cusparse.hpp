// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cusparse.h>

#include <memory>
#include <string>
#include <type_traits>

#include "tessera/core/dtype.hpp"
#include "tessera/core/error.hpp"

/// Handles of cuSPARSE that clean up after themselves, and its errors as exceptions.
namespace tessera::cuda {

inline void cusparse_check(cusparseStatus_t status, const char* what) {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  const bool memory =
      status == CUSPARSE_STATUS_ALLOC_FAILED || status == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES;
  throw Error(memory ? ErrorCode::out_of_memory : ErrorCode::internal,
              std::string("cuSPARSE failed: ") + cusparseGetErrorString(status), what);
}

inline cudaDataType cuda_type(ElementType type) {
  switch (type) {
    case ElementType::bf16: return CUDA_R_16BF;
    case ElementType::fp16: return CUDA_R_16F;
    default: return CUDA_R_32F;
  }
}

template <auto destroy>
struct CusparseDeleter {
  template <class Handle>
  void operator()(Handle* handle) const {
    destroy(handle);
  }
};

template <class Handle, auto destroy>
using CusparseOwner = std::unique_ptr<std::remove_pointer_t<Handle>, CusparseDeleter<destroy>>;

using CusparseHandle = CusparseOwner<cusparseHandle_t, cusparseDestroy>;
using SparseMatrix = CusparseOwner<cusparseSpMatDescr_t, cusparseDestroySpMat>;
using DenseMatrix = CusparseOwner<cusparseDnMatDescr_t, cusparseDestroyDnMat>;

inline CusparseHandle make_cusparse_handle() {
  cusparseHandle_t handle = nullptr;
  cusparse_check(cusparseCreate(&handle), "cusparseCreate");
  return CusparseHandle(handle);
}

/// A view of a row-major matrix.
inline DenseMatrix dense_matrix(const void* data, std::int64_t rows, std::int64_t cols,
                                std::int64_t stride, ElementType type) {
  cusparseDnMatDescr_t matrix = nullptr;
  cusparse_check(cusparseCreateDnMat(&matrix, rows, cols, stride, const_cast<void*>(data),
                                     cuda_type(type), CUSPARSE_ORDER_ROW),
                 "cusparseCreateDnMat");
  return DenseMatrix(matrix);
}

}  // namespace tessera::cuda
