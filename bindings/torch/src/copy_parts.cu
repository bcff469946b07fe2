// SPDX-License-Identifier: Apache-2.0
#include "copy_parts.hpp"

#include <algorithm>

#include "cuda/elements.cuh"
#include "cuda/precision.cuh"
#include "ops/cuda/operands.cuh"

namespace tessera::torch_ops {
namespace {

constexpr int most_parts = 8;  ///< of one launch: they travel as its argument
constexpr int width = 8;       ///< elements of a thread
constexpr std::int64_t block_elements = std::int64_t{width} * cuda::element_threads;

struct Part {
  const void* from;
  void* to;
  std::int64_t from_stride, to_stride;
  std::int64_t size, cols, diagonal;
  unsigned first_block;
  ElementType from_type, to_type;
  bool in_chunks;  ///< a thread's elements lie side by side in one row, on a boundary
};

struct Parts {
  Part parts[most_parts];
  int count = 0;
};

/// Elements outside of the blocks on the diagonal are 0.
template <int count, bool aligned>
__device__ void keep_diagonal(const cuda::Elements<count, aligned>& place, std::int64_t diagonal,
                              float (&values)[count]) {
  place.each([&](int i, std::int64_t row, std::int64_t col) {
    if (col / diagonal != row) values[i] = 0;
  });
}

template <class From, class To, bool aligned>
__device__ void copy_elements(const Part& part, std::int64_t first) {
  if (first >= part.size) return;
  cuda::Elements<width, aligned> place;
  place.cols = part.cols;
  place.row = part.cols == part.size
                  ? 0
                  : cuda::quotient(first, part.cols, part.size <= std::int64_t{0xffffffff});
  place.col = first - place.row * part.cols;
  place.count = static_cast<int>(part.size - first < width ? part.size - first : width);
  float values[width];
  place.load(cuda::Rows<const From>{static_cast<const From*>(part.from), part.from_stride}, values);
  if (part.diagonal > 0) keep_diagonal(place, part.diagonal, values);
  place.store(values, cuda::Rows<To>{static_cast<To*>(part.to), part.to_stride});
}

/// Calls `body` with a value of a type, as `visit_type` does on the host.
template <class Body>
__device__ void with_type(ElementType type, Body&& body) {
  switch (type) {
    case ElementType::bf16: return body(__nv_bfloat16{});
    case ElementType::fp16: return body(__half{});
    default: return body(float{});
  }
}

__global__ __launch_bounds__(cuda::element_threads) void copy_all(const Parts all) {
  cuda::begin_overlapped();
  int which = 0;
  while (which + 1 < all.count && blockIdx.x >= all.parts[which + 1].first_block) ++which;
  const Part& part = all.parts[which];
  const std::int64_t first =
      std::int64_t{blockIdx.x - part.first_block} * block_elements + threadIdx.x * width;
  with_type(part.from_type, [&](auto from) {
    with_type(part.to_type, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      if (part.in_chunks) {
        copy_elements<From, To, true>(part, first);
      } else {
        copy_elements<From, To, false>(part, first);
      }
    });
  });
}

Part part_of(const CopyPart& copy) {
  Part part{copy.from.data,
            copy.to.data,
            copy.diagonal > 0 ? 0 : copy.from.stride,
            copy.to.stride,
            copy.to.rows * copy.to.cols,
            copy.to.cols,
            copy.diagonal,
            0,
            copy.from.type,
            copy.to.type,
            false};
  const bool one_piece = copy.to.rows <= 1 || (part.from_stride == part.cols &&
                                               part.to_stride == part.cols && part.diagonal == 0);
  if (one_piece) part.cols = part.size;
  const auto on_boundary = [](const void* memory) {
    return reinterpret_cast<std::uintptr_t>(memory) % 16 == 0;
  };
  part.in_chunks = on_boundary(part.from) && on_boundary(part.to) &&
                   (one_piece || (part.cols % width == 0 && part.from_stride % width == 0 &&
                                  part.to_stride % width == 0));
  return part;
}

template <class T>
struct ClearWhereZero {
  cuda::Rows<T> values;
  cuda::Rows<const T> decides;

  template <int count, bool aligned>
  __device__ void operator()(const cuda::Elements<count, aligned>& place) const {
    float kept[count], deciding[count];
    place.load(cuda::Rows<const T>{values.data, values.stride}, kept);
    place.load(decides, deciding);
#pragma unroll
    for (int i = 0; i < count; ++i) kept[i] = deciding[i] == 0 ? 0.0F : kept[i];
    place.store(kept, values);
  }
};

}  // namespace

void copy_parts(std::span<const CopyPart> copies, Stream stream) {
  while (!copies.empty()) {
    Parts all;
    std::int64_t blocks = 0;
    const std::size_t taken = std::min(copies.size(), std::size_t{most_parts});
    for (const CopyPart& copy : copies.first(taken)) {
      if (copy.to.rows * copy.to.cols == 0) continue;
      Part part = part_of(copy);
      part.first_block = cuda::num_blocks(blocks, 1);
      blocks += (part.size + block_elements - 1) / block_elements;
      all.parts[all.count++] = part;
    }
    const dim3 grid(cuda::num_blocks(blocks, 1));
    cuda::launch_overlapped(copy_all, grid, cuda::element_threads, stream, all);
    copies = copies.subspan(taken);
  }
}

void clear_where_zero(ops::Operand values, ops::ConstOperand decides, Stream stream) {
  cuda::visit_type(values.type, [&](auto zero) {
    using T = decltype(zero);
    const ClearWhereZero<T> function{ops::rows_of<T>(values), ops::rows_of<T>(decides)};
    cuda::Extent extent{values.rows, values.cols};
    extent.with(function.values).with(function.decides);
    cuda::for_elements<cuda::chunk<T>>(extent.flattened(), function, stream);
  });
}

}  // namespace tessera::torch_ops
