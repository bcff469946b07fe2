// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/elements.cuh"
#include "cuda/precision.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/cuda/dense_ops.hpp"
#include "ops/elementwise/cuda/transfer.hpp"

namespace tessera::ops {
namespace {

template <class From, class To>
struct Copy {
  cuda::Rows<const From> x;
  cuda::Rows<To> y;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::Elements<width, aligned>& place) const {
    float values[width];
    place.load(x, values);
    place.store(values, y);
  }
};

template <class From, class To>
struct ScaleRows {
  cuda::Rows<const From> x;
  cuda::Rows<const float> scale;
  cuda::Rows<To> y;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::Elements<width, aligned>& place) const {
    float values[width];
    place.load(x, values);
    if constexpr (aligned) {
      const float factor = scale.data[place.row * scale.stride];
#pragma unroll
      for (int i = 0; i < width; ++i) values[i] *= factor;
    } else {
      place.each([&](int i, std::int64_t row, std::int64_t) {
        values[i] *= scale.data[row * scale.stride];
      });
    }
    place.store(values, y);
  }
};

}  // namespace

void CudaDenseRun::run(const ScaleRowsCall& call) const {
  const auto& [x, scale, y] = call;
  cuda::visit_type(x.type, [&]<class From>(From) {
    cuda::visit_type(y.type, [&]<class To>(To) {
      const ScaleRows<From, To> function{rows_of<From>(x), rows_of<float>(scale), rows_of<To>(y)};
      const auto extent = cuda::Extent{x.rows, x.cols}.with(function.x).with(function.y);
      cuda::for_elements<std::max(cuda::chunk<From>, cuda::chunk<To>)>(extent, function, stream);
    });
  });
}

void CudaDenseRun::run(const CopyCall& call) const {
  const auto& [x, y] = call;
  if (x.rows == 0 || x.cols == 0) return;
  if (x.device != y.device) return transfer(x, y, device, stream);
  cuda::visit_type(x.type, [&]<class From>(From) {
    cuda::visit_type(y.type, [&]<class To>(To) {
      const Copy<From, To> function{rows_of<From>(x), rows_of<To>(y)};
      const auto extent =
          cuda::Extent{x.rows, x.cols}.with(function.x).with(function.y).flattened();
      cuda::for_elements<std::max(cuda::chunk<From>, cuda::chunk<To>)>(extent, function, stream);
    });
  });
}

}  // namespace tessera::ops
