// SPDX-License-Identifier: Apache-2.0
#include "column_sums.hpp"

#include "cuda/elements.cuh"
#include "cuda/precision.cuh"
#include "cuda/sums.cuh"
#include "ops/cuda/operands.cuh"

namespace tessera::torch_ops {
namespace {

template <class T>
struct ColumnSums {
  cuda::Rows<T> values;
  cuda::Rows<const T> decides;  ///< may be absent
  float* sums;

  static constexpr int num_sums = 1;
  static constexpr int rows_ahead = 2;
  using Term = float;

  struct Nothing {};
  template <int width>
  struct Fetched {
    float values[width], decides[width];
  };

  template <int width, bool aligned>
  __device__ Nothing columns(const cuda::Elements<width, aligned>&) const {
    return {};
  }

  template <int width, bool aligned>
  __device__ Fetched<width> fetch(const cuda::Elements<width, aligned>& place, Nothing) const {
    Fetched<width> fetched;
    place.load(cuda::Rows<const T>{values.data, values.stride}, fetched.values);
    if (decides.data != nullptr) place.load(decides, fetched.decides);
    return fetched;
  }

  template <int width, bool aligned>
  __device__ void row(const cuda::Elements<width, aligned>& place, Nothing,
                      const Fetched<width>& fetched, float (&terms)[1][width]) const {
    const bool decided = decides.data != nullptr;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      terms[0][i] = decided && fetched.decides[i] == 0 ? 0.0F : fetched.values[i];
    }
    if (decided) place.store(terms[0], values);
  }

  __device__ void finish(std::int64_t col, const double (&totals)[1]) const {
    sums[col] = static_cast<float>(totals[0]);
  }
};

template <class T>
void run(const ops::Operand& values, const ops::ConstOperand& decides, const ops::Operand& sums,
         std::byte* workspace, Stream stream) {
  const ColumnSums<T> function{ops::rows_of<T>(values), ops::rows_of<T>(decides),
                               ops::values_of<float>(sums)};
  cuda::Extent extent{values.rows, values.cols};
  extent.with(function.values).with(function.decides);
  cuda::for_columns<cuda::chunk<T>>(extent, function, cuda::workspace_in(workspace), stream);
}

}  // namespace

void column_sums(ops::Operand values, ops::ConstOperand decides, ops::Operand sums,
                 std::byte* workspace, Stream stream) {
  const auto chosen = values.type == ElementType::bf16 ? run<__nv_bfloat16> : run<__half>;
  chosen(values, decides, sums, workspace, stream);
}

}  // namespace tessera::torch_ops
