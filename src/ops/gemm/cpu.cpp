// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "ops/dense/cpu_dense_ops.hpp"
#include "ops/dense/wide_rows.hpp"
#include "ops/gemm/blas.hpp"
#include "ops/plan/check.hpp"

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

/// A product of matrices stored as F whose result is stored as C: where they differ, or have 16
/// bits, it is computed in fp32. `sizes` has no pointers.
template <class F, class C>
struct Whole {
  blas::Product<Wide<F>> sizes;
  const F* a;
  const F* b;
  C* c;
};

/// Rows and columns of C, and a piece of the sum.
struct Block {
  std::int64_t row, rows, col, cols, first, inner;
};

/// An element of op(M).
template <class T>
const T* element(const T* matrix, Transpose transposed, std::int64_t stride, std::int64_t row,
                 std::int64_t col) {
  return matrix + (transposed == Transpose::yes ? col * stride + row : row * stride + col);
}

/// The block of op(A) op(B) + beta * C to a C of this stride.
template <class T>
void multiply_block(const Whole<T, T>& whole, const Block& block, T beta, T* c,
                    std::int64_t stride_c) {
  blas::Product<T> part = whole.sizes;
  part.rows = block.rows;
  part.cols = block.cols;
  part.inner = block.inner;
  part.a = element(whole.a, part.transpose_a, part.stride_a, block.row, block.first);
  part.b = element(whole.b, part.transpose_b, part.stride_b, block.first, block.col);
  part.beta = beta;
  part.c = c;
  part.stride_c = stride_c;
  blas::multiply(part);
}

/// A piece of a matrix as floats one row after the other, in memory that is kept.
const float* widened(const Bfloat16* from, std::int64_t stride, std::int64_t rows,
                     std::int64_t cols, Buffer<float>& to) {
  if (to.size() < rows * cols) to = Buffer<float>(rows * cols);
  for (std::int64_t i = 0; i < rows; ++i) {
    std::copy_n(from + i * stride, cols, to.data() + i * cols);
  }
  return to.data();
}

/// The same of 16-bit factors, which are widened a piece of the sum at a time. Beta is 0.
template <class C>
void multiply_block(const Whole<Bfloat16, C>& whole, const Block& block, float, float* c,
                    std::int64_t stride_c) {
  constexpr std::int64_t most_inner = 2048;
  static thread_local Buffer<float> a, b;
  blas::Product<float> part = whole.sizes;
  const bool a_turned = part.transpose_a == Transpose::yes;
  const bool b_turned = part.transpose_b == Transpose::yes;
  part.rows = block.rows;
  part.cols = block.cols;
  part.c = c;
  part.stride_c = stride_c;
  for (std::int64_t done = 0; done < block.inner; done += most_inner) {
    part.inner = std::min(most_inner, block.inner - done);
    const std::int64_t first = block.first + done;
    const std::int64_t a_cols = a_turned ? part.rows : part.inner;
    const std::int64_t b_cols = b_turned ? part.inner : part.cols;
    part.a = widened(element(whole.a, part.transpose_a, whole.sizes.stride_a, block.row, first),
                     whole.sizes.stride_a, a_turned ? part.inner : part.rows, a_cols, a);
    part.b = widened(element(whole.b, part.transpose_b, whole.sizes.stride_b, first, block.col),
                     whole.sizes.stride_b, b_turned ? part.cols : part.inner, b_cols, b);
    part.stride_a = a_cols;
    part.stride_b = b_cols;
    part.beta = done == 0 ? 0.0f : 1.0f;
    blas::multiply(part);
  }
}

/// sum + beta * c. With beta = 0 what c held plays no part.
template <class C>
C finished(Wide<C> sum, Wide<C> beta, C c) {
  return C(beta == 0 ? sum : sum + beta * c);
}

/// A block of C itself.
template <class F, class C>
void multiply_into_c(const Whole<F, C>& whole, const Block& block) {
  const std::int64_t stride = whole.sizes.stride_c;
  C* const c = whole.c + block.row * stride + block.col;
  if constexpr (is_wide<F>) {
    multiply_block(whole, block, whole.sizes.beta, c, stride);
  } else {
    static thread_local Buffer<float> sums;
    if (sums.size() < block.rows * block.cols) sums = Buffer<float>(block.rows * block.cols);
    multiply_block(whole, block, 0, sums.data(), block.cols);
    for (std::int64_t i = 0; i < block.rows; ++i) {
      const float* const from = sums.data() + i * block.cols;
      C* const to = c + i * stride;
      for (std::int64_t j = 0; j < block.cols; ++j) {
        to[j] = finished(from[j], whole.sizes.beta, to[j]);
      }
    }
  }
}

/// C = beta * C + the partial products, added in order.
template <class F, class C>
void add_partials(const Whole<F, C>& whole, const Buffer<Wide<F>>& partials, std::int64_t count) {
  using W = Wide<F>;
  const blas::Product<W>& sizes = whole.sizes;
  const std::int64_t area = sizes.rows * sizes.cols;
  parallel_for(sizes.rows, even_grain(sizes.rows, 1 + 4096 / sizes.cols), [&](std::int64_t i) {
    C* const c = whole.c + i * sizes.stride_c;
    const W* const first = partials.data() + i * sizes.cols;
    for (std::int64_t j = 0; j < sizes.cols; ++j) {
      W sum = first[j];
      for (std::int64_t part = 1; part < count; ++part) sum += first[part * area + j];
      c[j] = finished(sum, sizes.beta, c[j]);
    }
  });
}

template <class F, class C>
void multiply_in_blocks(const Whole<F, C>& whole) {
  using W = Wide<F>;
  const blas::Product<W>& sizes = whole.sizes;
  const Blocks blocks = choose_blocks(sizes.rows, sizes.cols, sizes.inner);
  const std::int64_t blocks_of_c = blocks.row_blocks * blocks.col_blocks;
  const bool cut = blocks.inner_blocks > 1;
  const std::int64_t area = sizes.rows * sizes.cols;
  // Kept, so that the same product allocates nothing the next time.
  static thread_local Buffer<W> partials;
  const std::int64_t needed = cut ? checked_area(blocks.inner_blocks, area) : 0;
  if (needed > partials.size()) partials = Buffer<W>(needed);
  Buffer<W>& own_partials = partials;
  const std::int64_t calls = blocks_of_c * blocks.inner_blocks;
  const blas::SingleThread single_thread(calls);
  parallel_tasks(calls, [&](std::int64_t task) {
    const std::int64_t slice = task / blocks_of_c;
    const std::int64_t row = task % blocks_of_c / blocks.col_blocks * blocks.rows;
    const std::int64_t col = task % blocks_of_c % blocks.col_blocks * blocks.cols;
    const std::int64_t first = slice * blocks.inner;
    const Block block{row,   std::min(blocks.rows, sizes.rows - row),
                      col,   std::min(blocks.cols, sizes.cols - col),
                      first, std::min(blocks.inner, sizes.inner - first)};
    if (!cut) return multiply_into_c(whole, block);
    W* const part = own_partials.data() + slice * area + row * sizes.cols + col;
    multiply_block(whole, block, W{0}, part, sizes.cols);
  });
  if (cut) add_partials(whole, partials, blocks.inner_blocks);
}

/// What remains when there is nothing to multiply.
template <class C>
void scale(MatrixView<C> c, Wide<C> beta) {
  parallel_for(c.rows, even_grain(c.rows, 1 + 4096 / c.cols), [&](std::int64_t i) {
    C* const row = c.row(i);
    for (std::int64_t j = 0; j < c.cols; ++j) row[j] = C(beta == 0 ? Wide<C>{0} : beta * row[j]);
  });
}

void require_stride(const ConstOperand& operand, const char* name) {
  if (std::max(operand.stride, operand.cols) > blas::max_size) {
    throw Error(ErrorCode::unsupported,
                std::string(name) + " has rows longer than BLAS takes, 2^31 - 1 elements", "gemm",
                "multiply it in pieces");
  }
}

template <class F, class C>
void multiply(const GemmCall& call) {
  using W = Wide<F>;
  if (call.inner == 0 || call.alpha == 0) {
    return scale(call.c.as<C>(), static_cast<W>(call.beta));
  }
  const auto stride_of = [](const auto& operand) {
    return std::max<std::int64_t>({operand.stride, operand.cols, 1});
  };
  const blas::Product<W> sizes{call.transpose_a,
                               call.transpose_b,
                               call.c.rows,
                               call.c.cols,
                               call.inner,
                               static_cast<W>(call.alpha),
                               nullptr,
                               stride_of(call.a),
                               nullptr,
                               stride_of(call.b),
                               static_cast<W>(call.beta),
                               nullptr,
                               stride_of(call.c)};
  multiply_in_blocks(Whole<F, C>{sizes, static_cast<const F*>(call.a.data),
                                 static_cast<const F*>(call.b.data), static_cast<C*>(call.c.data)});
}

}  // namespace

void run_on_cpu(const GemmCall& call) {
  require_stride(call.a, "a");
  require_stride(call.b, "b");
  require_stride(call.c, "c");
  if (call.c.rows == 0 || call.c.cols == 0) return;
  visit_stored(call.a.type, [&]<class F>() {
    // The factors' own type, or fp32 for 16-bit factors.
    if (call.c.type == call.a.type) return multiply<F, F>(call);
    multiply<F, Wide<F>>(call);
  });
  if (!call.bias.absent()) run_on_cpu(ActivationCall{call.c, call.bias, {}, call.c});
}

}  // namespace tessera::ops
