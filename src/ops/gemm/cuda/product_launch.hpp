// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/elements.cuh"
#include "cuda/workspace.hpp"

namespace tessera::ops {

/// What is done to each number of a factor when it is read, by its column in memory: (x - a) * b +
/// c, rounded to what is stored, and no less than 0 with `relu`.
struct ReadColumns {
  const cuda::ColumnNumbers* numbers = nullptr;  ///< null: nothing
  bool relu = false;

  /// A not-a-number passes.
  __device__ float value(float x, const cuda::ColumnNumbers& column) const {
    const float z = (x - column.a) * column.b + column.c;
    return relu && z <= 0 ? 0.0f : z;
  }
};

/// The moments of a product's columns: how far each is from the first of its column, added up, and
/// the squares of that. Blocks write theirs to `partials`, the last one of them all to `totals`:
/// the first row of the product, the sums and the sums of squares.
struct ProductMoments {
  double* totals = nullptr;  ///< null: not wanted
  std::int64_t stride = 0;   ///< of the three rows of `totals`
  double* partials = nullptr;
  unsigned* counter = nullptr;  ///< 0 between calls
};

/// What is done to a product that is a gradient: it counts only where the number at its place in
/// `results`, which ReLU put out, is above 0; and its columns are summed. Blocks write their sums
/// to `partials`, the last one of each tile of columns to `sums`.
template <class T>
struct ProductFinish {
  cuda::Rows<const T> results = {};  ///< may be absent
  T* sums = nullptr;                 ///< null: not wanted
  double* partials = nullptr;
  unsigned* counters = nullptr;  ///< one for each tile of columns; 0 between calls
};

/// Where the product goes: any matrix or its transpose. A bias is added to every row of it, or to
/// every column where it is transposed.
template <class T>
struct ProductTarget {
  T* data = nullptr;
  std::int64_t row_step = 0;
  std::int64_t col_step = 1;
  const T* bias = nullptr;  ///< may be null
  std::int64_t bias_row_step = 0;
  std::int64_t bias_col_step = 1;
  bool relu = false;  ///< follows, in products of many rows alone
};

/// The inner size is cut into `splits` parts of `inner_per_split`, each for a block of its own. The
/// sums of `group` neighbouring parts are added first, then those of the groups, always in the same
/// order.
struct ProductSplit {
  std::int64_t inner_per_split = 0;
  int splits = 1;
  int group = 1;
  float* partials = nullptr;     ///< one tile per part and tile of the product
  unsigned* counters = nullptr;  ///< one per group and tile, then one per tile; 0 between calls
};

/// target = alpha * left * right + beta * target.
template <class T>
struct ProductLaunchOf {
  std::int64_t rows = 0, cols = 0, inner = 0;
  cuda::Rows<const T> left, right;
  ProductTarget<T> target;
  float alpha = 1, beta = 0;
  ProductSplit split;
  /// If there is one, the left factor has one more row, the last, which is all 1: what it gives,
  /// the sums over the right factor's columns, goes here.
  T* column_sums = nullptr;
  /// For the second of two products in one launch.
  ProductFinish<T> finish = {};
  /// For products of many rows alone.
  ReadColumns left_columns = {}, right_columns = {};
  ProductMoments moments = {};

  __device__ bool is_row_of_ones(std::int64_t row) const {
    return column_sums != nullptr && row == rows - 1;
  }
};

using ProductLaunch = ProductLaunchOf<float>;

/// Which tile of a product a block has, and which part of the inner size.
struct TilePlace {
  std::int64_t row_tile = 0, col_tile = 0;
  std::int64_t tile = 0;  ///< its number among all tiles
  int part = 0;
};

/// What decides which kernel is launched: whether the inner size of a factor lies along its rows in
/// memory, or across them.
template <class T>
struct ProductOf : ProductLaunchOf<T> {
  bool left_in_row = true, right_in_row = true;

  const ProductLaunchOf<T>& launch() const { return *this; }
};
using Product = ProductOf<float>;

/// Small products: one instance per width of a block's tile, of fp32 and of bf16.
template <int cols, class T>
void run_small_tiles(const ProductOf<T>& product, dim3 grid, Stream stream);
/// Two products in one launch: the first has both inner sizes across its rows, a single tile of
/// columns and perhaps a row of ones; the second has the left one's along the rows, and is not
/// split.
template <int first_cols, int second_cols, class T>
void run_both(unsigned first_blocks, unsigned second_blocks, const ProductLaunchOf<T>& first,
              const ProductLaunchOf<T>& second, Stream stream);
/// Many rows times a small matrix. `fused`: reads columns of the left factor, or writes moments.
template <int cols, bool fused>
void run_stream_rows(const Product& product, Stream stream);
/// A small product of matrices with many rows: at most 64 rows and `more` columns than 64.
/// `fused`: reads columns of a factor.
template <int more, bool fused>
void run_stream_inner(const ProductLaunch& launch, Stream stream);
/// The same of one to four rows, which does not multiply in tiles.
inline constexpr std::int64_t thin_product_rows = 4;
template <class T>
void run_thin(const ProductOf<T>& product, std::byte* memory, Stream stream);
/// Many short rows times one to four columns.
inline constexpr std::int64_t most_dot_columns = 4, longest_dot = 64;
template <class T>
void run_dot_rows(const ProductOf<T>& product, Stream stream);

}  // namespace tessera::ops
