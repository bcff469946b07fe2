// SPDX-License-Identifier: Apache-2.0
#include "cuda/sums.cuh"
#include "ops/gemm/cuda/product_launch.hpp"

/// Products left^T right of a few columns and a matrix with very many rows: for each column of the
/// right factor as many sums over the rows as the left one has columns.
namespace tessera::ops {
namespace {

template <int count, class T>
struct ThinSums {
  cuda::Rows<const T> left, right;
  ReadColumns reading;  ///< of the right factor
  ProductTarget<T> target;
  float alpha;

  static constexpr int num_sums = count;
  static constexpr int rows_ahead = sizeof(T) == 2 && count <= 2 ? 4 : 2;
  using Term = float;

  template <int width>
  using Columns = cuda::KeptNumbers<width>;
  template <int width>
  struct Fetched {
    T left[count];
    cuda::Pack<T, width> right;
  };

  template <int width, bool aligned>
  __device__ Columns<width> columns(const cuda::Elements<width, aligned>& place) const {
    if (reading.numbers == nullptr) return {};
    return cuda::keep_numbers<width>(reading.numbers + place.col);
  }

  template <int width, bool aligned>
  __device__ Fetched<width> fetch(const cuda::Elements<width, aligned>& place,
                                  const Columns<width>&) const {
    Fetched<width> fetched;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      fetched.left[i] = left.data[place.row * left.stride + i];
    }
    fetched.right = cuda::fetch_pack(place, right);
    return fetched;
  }

  template <int width, bool aligned>
  __device__ void row(const cuda::Elements<width, aligned>&, const Columns<width>& columns,
                      const Fetched<width>& fetched, float (&terms)[count][width]) const {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const float right_value = cuda::widen(fetched.right.values[i]);
      const float x =
          reading.numbers == nullptr ? right_value : reading.value(right_value, columns.of[i]);
#pragma unroll
      for (int sum = 0; sum < count; ++sum) {
        terms[sum][i] = cuda::widen(fetched.left[sum]) * x;
      }
    }
  }

  __device__ void finish(std::int64_t col, const double (&totals)[count]) const {
#pragma unroll
    for (int sum = 0; sum < count; ++sum) {
      target.data[sum * target.row_step + col * target.col_step] =
          cuda::narrow<T>(alpha * static_cast<float>(totals[sum]));
    }
  }
};

template <int count, class T>
void run_sums(const ProductOf<T>& product, std::byte* memory, Stream stream) {
  const ThinSums<count, T> function{product.left, product.right, product.right_columns,
                                    product.target, product.alpha};
  const auto extent = cuda::Extent{product.inner, product.cols}.with(function.right);
  cuda::for_long_columns<cuda::columns_at_once>(extent, function, cuda::workspace_in(memory),
                                                stream);
}

}  // namespace

template <class T>
void run_thin(const ProductOf<T>& product, std::byte* memory, Stream stream) {
  switch (product.rows) {
    case 1: return run_sums<1>(product, memory, stream);
    case 2: return run_sums<2>(product, memory, stream);
    case 3: return run_sums<3>(product, memory, stream);
    default: return run_sums<4>(product, memory, stream);
  }
}
template void run_thin(const ProductOf<float>&, std::byte*, Stream);
template void run_thin(const ProductOf<__nv_bfloat16>&, std::byte*, Stream);

}  // namespace tessera::ops
