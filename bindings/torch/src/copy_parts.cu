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

/// Calls `body` with a value of a type, as `visit_type` does on the host.
template <class Body>
__device__ void with_type(ElementType type, Body&& body) {
  switch (type) {
    case ElementType::bf16: return body(__nv_bfloat16{});
    case ElementType::fp16: return body(__half{});
    default: return body(float{});
  }
}

/// Reads in one type and writes in another: code for each of them, and not for all pairs.
template <bool aligned>
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
  with_type(part.from_type, [&](auto from) {
    using T = decltype(from);
    place.load(cuda::Rows<const T>{static_cast<const T*>(part.from), part.from_stride}, values);
  });
  if (part.diagonal > 0) keep_diagonal(place, part.diagonal, values);
  with_type(part.to_type, [&](auto to) {
    using T = decltype(to);
    place.store(values, cuda::Rows<T>{static_cast<T*>(part.to), part.to_stride});
  });
}

__global__ __launch_bounds__(cuda::element_threads) void copy_all(const Parts all) {
  cuda::begin_overlapped();
  int which = 0;
  while (which + 1 < all.count && blockIdx.x >= all.parts[which + 1].first_block) ++which;
  const Part& part = all.parts[which];
  const std::int64_t first =
      std::int64_t{blockIdx.x - part.first_block} * block_elements + threadIdx.x * width;
  part.in_chunks ? copy_elements<true>(part, first) : copy_elements<false>(part, first);
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

}  // namespace tessera::torch_ops
