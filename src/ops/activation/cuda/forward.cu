// SPDX-License-Identifier: Apache-2.0
#include "cuda/elements.cuh"
#include "cuda/precision.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/cuda/activation_formula.cuh"
#include "ops/dense/cuda/dense_ops.hpp"

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

void CudaDenseRun::run(const ActivationCall& call) const {
  cuda::visit_type(call.x.type, [&]<class T>(T) {
    const Activate<T> function{rows_of<T>(call.x), values_of<T>(call.bias), rows_of<T>(call.y),
                               DeviceFormula(call.formula)};
    auto extent = cuda::Extent{call.x.rows, call.x.cols}.with(function.x).with(function.y);
    extent = call.bias.absent() ? extent.flattened() : extent.with(columns_of(function.bias));
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
