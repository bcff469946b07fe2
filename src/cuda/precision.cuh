// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "tessera/core/dtype.hpp"

namespace tessera::cuda {

/// How features of a precision are stored.
template <Precision precision>
using Stored = std::conditional_t<precision == Precision::bf16, __nv_bfloat16,
                                  std::conditional_t<precision == Precision::fp16, __half, float>>;

/// Calls `body` with a value of an element type that GPUs compute in.
template <class Body>
decltype(auto) visit_type(ElementType type, Body&& body) {
  switch (type) {
    case ElementType::bf16: return body(__nv_bfloat16{});
    case ElementType::fp16: return body(__half{});
    default: return body(float{});
  }
}

}  // namespace tessera::cuda
