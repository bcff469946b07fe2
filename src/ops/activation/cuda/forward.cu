// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_handles.hpp"
#include "cuda/elements.cuh"
#include "cuda/precision.cuh"
#include "ops/activation/cuda/formula.cuh"
#include "ops/cuda/dense_ops.hpp"
#include "ops/cuda/operands.cuh"

namespace tessera::ops {
namespace {

template <class T>
struct Activate {
  cuda::Rows<const T> x;
  const T* bias;  ///< null: none
  cuda::Rows<T> y;
  DeviceFormula formula;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::Elements<width, aligned>& place) const {
    float values[width];
    place.load(x, values);
    if (bias != nullptr) {
      float shifts[width];
      place.load_columns(bias, shifts);
#pragma unroll
      for (int i = 0; i < width; ++i) values[i] += shifts[i];
    }
#pragma unroll
    for (int i = 0; i < width; ++i) values[i] = formula.value(values[i]);
    formula.drop(place.element(), values);
    place.store(values, y);
  }
};

}  // namespace

void CudaDenseOps::activate(ConstOperand x, ConstOperand bias, const ActivationFormula& formula,
                            Operand y, Stream stream) const {
  const cuda_backend::CurrentDevice current(device_.index);
  cuda::visit_type(x.type, [&](auto element) {
    using T = decltype(element);
    const Activate<T> function{rows_of<T>(x), values_of<T>(bias), rows_of<T>(y),
                               DeviceFormula(formula)};
    auto extent = cuda::Extent{x.rows, x.cols}.with(function.x).with(function.y);
    extent = bias.absent() ? extent.flattened() : extent.with(columns_of(function.bias));
    // A few are sooner done by more threads.
    constexpr std::int64_t few = 1 << 17;
    if (extent.size() <= few) {
      cuda::for_elements<2, 1>(extent, function, stream);
    } else {
      cuda::for_elements<cuda::chunk<T>>(extent, function, stream);
    }
  });
}

}  // namespace tessera::ops
