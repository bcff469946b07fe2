// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "ops/check.hpp"
#include "ops/cpu_dense_ops.hpp"
#include "ops/gemm/blas.hpp"

namespace tessera::ops {
namespace {

/// How one product is cut into BLAS calls. It depends on the sizes alone, never on the number of
/// threads, so that the sums are the same bits for any number of threads.
struct Blocks {
  std::int64_t rows;   ///< of C, at most, in one call
  std::int64_t cols;   ///< of C
  std::int64_t inner;  ///< of the sum
  std::int64_t row_blocks;
  std::int64_t col_blocks;
  std::int64_t inner_blocks;
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Blocks of C are tall enough that packing B again for each costs little. Where C is small and
/// the sum long (the gradient of a weight sums over all vertices), the sum itself is cut.
Blocks choose_blocks(std::int64_t rows, std::int64_t cols, std::int64_t inner) {
  constexpr std::int64_t wanted_blocks = 16;
  constexpr std::int64_t wanted_products = std::int64_t{1} << 22;
  constexpr std::int64_t max_cols = 4096;
  constexpr std::int64_t min_inner = 1024;
  constexpr std::int64_t max_inner = std::int64_t{1} << 30;
  Blocks blocks{};
  blocks.cols = std::min(cols, max_cols);
  const std::int64_t products_per_row = std::max<std::int64_t>(blocks.cols * inner, 1);
  const std::int64_t rows_wanted = ceil_div(wanted_products, products_per_row);
  blocks.rows = std::min(rows, std::clamp<std::int64_t>(ceil_div(rows_wanted, 64) * 64, 128, 4096));
  blocks.row_blocks = ceil_div(rows, blocks.rows);
  blocks.col_blocks = ceil_div(cols, blocks.cols);
  const std::int64_t blocks_of_c = blocks.row_blocks * blocks.col_blocks;
  const std::int64_t cuts =
      std::min(ceil_div(wanted_blocks, blocks_of_c), std::max<std::int64_t>(inner / min_inner, 1));
  blocks.inner = std::min(ceil_div(ceil_div(inner, cuts), 8) * 8, max_inner);
  blocks.inner_blocks = ceil_div(inner, blocks.inner);
  return blocks;
}

template <class T>
blas::Product<T> part_of(const blas::Product<T>& whole, std::int64_t row, std::int64_t rows,
                         std::int64_t col, std::int64_t cols, std::int64_t first,
                         std::int64_t inner) {
  blas::Product<T> part = whole;
  part.rows = rows;
  part.cols = cols;
  part.inner = inner;
  part.a += whole.transpose_a == Transpose::yes ? first * whole.stride_a + row
                                                : row * whole.stride_a + first;
  part.b += whole.transpose_b == Transpose::yes ? col * whole.stride_b + first
                                                : first * whole.stride_b + col;
  part.c += row * whole.stride_c + col;
  return part;
}

/// C = beta * C + the partial products, added in order.
template <class T>
void add_partials(const blas::Product<T>& whole, const Buffer<T>& partials, std::int64_t count) {
  const std::int64_t area = whole.rows * whole.cols;
  parallel_for(whole.rows, even_grain(whole.rows, 1 + 4096 / whole.cols), [&](std::int64_t i) {
    T* const c = whole.c + i * whole.stride_c;
    const T* const first = partials.data() + i * whole.cols;
    for (std::int64_t j = 0; j < whole.cols; ++j) {
      T sum = first[j];
      for (std::int64_t part = 1; part < count; ++part) sum += first[part * area + j];
      c[j] = whole.beta == 0 ? sum : sum + whole.beta * c[j];
    }
  });
}

template <class T>
void multiply_in_blocks(const blas::Product<T>& whole) {
  const Blocks blocks = choose_blocks(whole.rows, whole.cols, whole.inner);
  const std::int64_t blocks_of_c = blocks.row_blocks * blocks.col_blocks;
  const bool cut = blocks.inner_blocks > 1;
  const std::int64_t area = whole.rows * whole.cols;
  // Kept, so that the same product allocates nothing the next time.
  static thread_local Buffer<T> partials;
  const std::int64_t needed = cut ? checked_area(blocks.inner_blocks, area) : 0;
  if (needed > partials.size()) partials = Buffer<T>(needed);
  Buffer<T>& own_partials = partials;
  const blas::SingleThread single_thread;
  parallel_tasks(blocks_of_c * blocks.inner_blocks, [&](std::int64_t task) {
    const std::int64_t slice = task / blocks_of_c;
    const std::int64_t row = task % blocks_of_c / blocks.col_blocks * blocks.rows;
    const std::int64_t col = task % blocks_of_c % blocks.col_blocks * blocks.cols;
    const std::int64_t first = slice * blocks.inner;
    blas::Product<T> target = whole;
    if (cut) {
      target.beta = 0;
      target.c = own_partials.data() + slice * area;
      target.stride_c = whole.cols;
    }
    blas::multiply(part_of(target, row, std::min(blocks.rows, whole.rows - row), col,
                           std::min(blocks.cols, whole.cols - col), first,
                           std::min(blocks.inner, whole.inner - first)));
  });
  if (cut) add_partials(whole, partials, blocks.inner_blocks);
}

/// What remains when there is nothing to multiply.
template <class T>
void scale(MatrixView<T> c, T beta) {
  parallel_for(c.rows, even_grain(c.rows, 1 + 4096 / c.cols), [&](std::int64_t i) {
    T* const row = c.row(i);
    for (std::int64_t j = 0; j < c.cols; ++j) row[j] = beta == 0 ? T{0} : beta * row[j];
  });
}

void require_stride(const ConstOperand& operand, const char* name) {
  if (std::max(operand.stride, operand.cols) > blas::max_size) {
    throw Error(ErrorCode::unsupported,
                std::string(name) + " has rows longer than BLAS takes, 2^31 - 1 elements", "gemm",
                "multiply it in pieces");
  }
}

}  // namespace

void CpuDenseOps::gemm(const GemmCall& call, Stream, const DenseWorkspace*) const {
  require_stride(call.a, "a");
  require_stride(call.b, "b");
  require_stride(call.c, "c");
  if (call.c.rows == 0 || call.c.cols == 0) return;
  visit_floating(call.c.type, [&](auto element) {
    using T = decltype(element);
    if (call.inner == 0 || call.alpha == 0) {
      return scale(call.c.as<T>(), static_cast<T>(call.beta));
    }
    const auto at_least_one_row = [](const auto& operand) {
      return std::max<std::int64_t>({operand.stride, operand.cols, 1});
    };
    multiply_in_blocks(blas::Product<T>{
        call.transpose_a, call.transpose_b, call.c.rows, call.c.cols, call.inner,
        static_cast<T>(call.alpha), static_cast<const T*>(call.a.data), at_least_one_row(call.a),
        static_cast<const T*>(call.b.data), at_least_one_row(call.b), static_cast<T>(call.beta),
        static_cast<T*>(call.c.data), at_least_one_row(call.c)});
  });
}

}  // namespace tessera::ops
