// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/launch.cuh"
#include "cuda/vectors.cuh"

/// Passes over the elements of matrices: a thread takes 16 bytes of a row at once where all rows
/// lie on 16-byte boundaries, else the same number of elements one by one.
namespace tessera::cuda {

/// A matrix as kernels take it; null: absent.
template <class T>
struct Rows {
  T* data = nullptr;
  std::int64_t stride = 0;
};

/// The elements that a thread takes at once.
template <class T>
inline constexpr int chunk = 16 / static_cast<int>(sizeof(T));

/// Values side by side, moved by as few instructions as their size allows.
template <class T, int width>
struct alignas(sizeof(T) * width < 16 ? sizeof(T) * width : 16) Pack {
  T values[width];
};

/// `count` consecutive elements of a matrix, in the order of its rows, beginning at (row, col).
/// With `aligned` all of them are in one row and on a boundary; else they may go on in the next
/// row.
template <int width, bool aligned>
struct Elements {
  std::int64_t row = 0;
  std::int64_t col = 0;
  std::int64_t cols = 0;
  int count = 0;

  __device__ std::int64_t element() const { return row * cols + col; }

  /// Calls `visit(i, row, col)` for each element.
  template <class Visit>
  __device__ void each(Visit&& visit) const {
    std::int64_t at_row = row;
    std::int64_t at_col = col;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if (i >= count) break;
      visit(i, at_row, at_col);
      if (++at_col == cols) {
        at_col = 0;
        ++at_row;
      }
    }
  }

  /// Values beyond the last element are 0.
  template <class T>
  __device__ void load(Rows<const T> from, float (&values)[width]) const {
    if constexpr (aligned) {
      if (count == width) return unpack(from.data + row * from.stride + col, values);
    }
#pragma unroll
    for (int i = 0; i < width; ++i) values[i] = 0;
    each([&](int i, std::int64_t r, std::int64_t c) {
      values[i] = widen(from.data[r * from.stride + c]);
    });
  }

  /// One value for each column.
  template <class T>
  __device__ void load_columns(const T* from, float (&values)[width]) const {
    load(Rows<const T>{from, 0}, values);
  }

  template <class T>
  __device__ void store(const float (&values)[width], Rows<T> to) const {
    if constexpr (aligned) {
      if (count == width) {
        Pack<T, width> pack;
#pragma unroll
        for (int i = 0; i < width; ++i) pack.values[i] = narrow<T>(values[i]);
        *reinterpret_cast<Pack<T, width>*>(to.data + row * to.stride + col) = pack;
        return;
      }
    }
    each([&](int i, std::int64_t r, std::int64_t c) {
      to.data[r * to.stride + c] = narrow<T>(values[i]);
    });
  }

 private:
  template <class T>
  __device__ static void unpack(const T* from, float (&values)[width]) {
    const auto pack = *reinterpret_cast<const Pack<T, width>*>(from);
#pragma unroll
    for (int i = 0; i < width; ++i) values[i] = widen(pack.values[i]);
  }
};

/// The shape that a pass goes over, and how.
struct Extent {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool aligned = true;
  bool contiguous = true;

  std::int64_t size() const { return rows * cols; }

  /// Takes one more matrix of this shape into account.
  template <class T>
  Extent& with(const Rows<T>& matrix) {
    if (matrix.data == nullptr) return *this;
    constexpr int width = chunk<std::remove_const_t<T>>;
    const bool on_boundary = reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0;
    aligned = aligned && on_boundary && (rows <= 1 || matrix.stride % width == 0);
    contiguous = contiguous && (rows <= 1 || matrix.stride == cols);
    return *this;
  }

  /// One long row where rows follow each other without gaps: for passes that know no columns.
  Extent flattened() const {
    Extent flat = *this;
    if (contiguous) {
      flat.rows = size() > 0 ? 1 : 0;
      flat.cols = size();
    }
    return flat;
  }

  /// Whether chunks of so many elements lie on boundaries and within rows. Where rows may end with
  /// a `shorter` one, most of them must be whole.
  bool in_chunks(int width, bool shorter = false) const {
    return aligned && (rows <= 1 || cols % width == 0 || (shorter && cols >= 2 * width));
  }
};

inline constexpr unsigned element_threads = 256;

/// Division of 32 bits is several times cheaper.
__device__ inline std::int64_t quotient(std::int64_t a, std::int64_t b, bool narrow) {
  return narrow ? static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b) : a / b;
}

template <int width, bool aligned, class Function>
__global__ __launch_bounds__(element_threads) void over_elements(std::int64_t size,
                                                                 std::int64_t cols,
                                                                 const Function function) {
  begin_overlapped();
  const std::int64_t chunk = std::int64_t{blockIdx.x} * element_threads + threadIdx.x;
  const bool narrow = size <= 0xffffffff;
  Elements<width, aligned> place;
  place.cols = cols;
  if constexpr (aligned) {
    const std::int64_t row_chunks = (cols + width - 1) / width;
    place.row = quotient(chunk, row_chunks, narrow);
    place.col = (chunk - place.row * row_chunks) * width;
    if (place.element() >= size) return;
    place.count = static_cast<int>(cols - place.col < width ? cols - place.col : width);
  } else {
    const std::int64_t first = chunk * width;
    if (first >= size) return;
    place.row = quotient(first, cols, narrow);
    place.col = first - place.row * cols;
    place.count = static_cast<int>(size - first < width ? size - first : width);
  }
  function(place);
}

/// Calls `function(place)` for chunks of `width` elements where they lie on boundaries and within
/// rows, else of `loose_width`; unless that is 1, those may go on in the next row, and those on
/// boundaries may be shorter at the end of a row.
template <int width, int loose_width = width, class Function>
void for_elements(const Extent& extent, const Function& function, Stream stream) {
  if (extent.size() == 0) return;
  const bool chunks = extent.in_chunks(width, loose_width > 1);
  const auto kernel =
      chunks ? over_elements<width, true, Function> : over_elements<loose_width, false, Function>;
  const std::int64_t row_chunks = (extent.cols + width - 1) / width;
  const dim3 grid(chunks ? num_blocks(extent.rows * row_chunks, element_threads)
                         : num_blocks(extent.size(), std::int64_t{element_threads} * loose_width));
  launch_overlapped(kernel, grid, element_threads, stream, extent.size(), extent.cols, function);
}

}  // namespace tessera::cuda
