// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/products.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cuda/wgmma_device.hpp"
#include "ops/cuda/operands.cuh"
#include "ops/gemm/cuda/normed_launch.hpp"
#include "ops/gemm/cuda/product.cuh"
#include "ops/gemm/cuda/stream_inner_narrow.cuh"
#include "ops/gemm/cuda/stream_rows.cuh"

namespace tessera::ops {
namespace {

/// Blocks that fill a large GPU. A constant: the cut must not depend on the GPU.
constexpr std::int64_t wanted_blocks = 264;
/// From so many rows on streaming them is faster than one launch of small tiles.
constexpr std::int64_t many_rows = 32768;
/// From so many on it is as fast as BLAS, which looks for a kernel whenever it sees another number
/// of rows: batches have another one in every step.
constexpr std::int64_t some_rows = 8192;
/// Multiplications up to which small tiles take no longer than BLAS, and numbers of their result.
constexpr std::int64_t most_work = std::int64_t{1} << 27;
constexpr std::int64_t most_results = std::int64_t{1} << 19;

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Parts of at least `shortest` of the inner size, for no more than so many blocks.
ProductSplit cut(std::int64_t tiles, std::int64_t inner, std::int64_t shortest, std::int64_t chunk,
                 std::byte* memory, std::int64_t blocks = wanted_blocks) {
  ProductSplit split;
  const std::int64_t useful = std::max<std::int64_t>(1, inner / shortest);
  const std::int64_t wanted = std::clamp<std::int64_t>(blocks / tiles, 1, useful);
  split.inner_per_split = divide_up(divide_up(inner, wanted), chunk) * chunk;
  split.splits = static_cast<int>(divide_up(inner, split.inner_per_split));
  // Few parts are added at once, many in groups.
  split.group =
      split.splits <= 64 ? split.splits : static_cast<int>(std::ceil(std::sqrt(split.splits)));
  split.partials = reinterpret_cast<float*>(memory);
  split.counters = cuda::workspace_in(memory).counters;
  return split;
}

// The partial sums of all blocks fit where BLAS has its workspace, and a tile has a counter for
// itself and for each of its groups.
static_assert(wanted_blocks * product_rows * 64 * sizeof(float) <= cuda::blas_workspace_bytes);
static_assert(wanted_blocks * 4 <= cuda::workspace_counters);

template <class T>
ProductOf<T> transposed(ProductOf<T> product) {
  std::swap(product.rows, product.cols);
  std::swap(product.left, product.right);
  std::swap(product.left_in_row, product.right_in_row);
  std::swap(product.left_columns, product.right_columns);
  std::swap(product.target.row_step, product.target.col_step);
  std::swap(product.target.bias_row_step, product.target.bias_col_step);
  return product;
}

template <class T>
bool is_small(const ProductOf<T>& product) {
  return product.rows <= many_rows && product.cols <= many_rows &&
         product.rows * product.cols <= most_results &&
         product.rows * product.cols * product.inner <= most_work;
}

bool streams_rows(const Product& product, bool allows_tf32) {
  const std::int64_t least = is_small(product) ? many_rows : some_rows;
  // More than 64 columns take the rows twice. That pays where these are short, so that BLAS has few
  // multiplications between reading and writing, unless it may round them.
  const bool fits =
      product.cols <= 64 || (product.cols <= 128 && product.inner <= 96 && !allows_tf32);
  // A shorter inner size is all padding: BLAS writes the result faster.
  return product.rows >= least && fits && product.inner >= 8 && product.left_in_row &&
         product.target.col_step == 1 &&
         StreamLayout::bytes(product.inner, false) <= StreamLayout::most_bytes;
}

/// Few columns of two matrices with many rows: sums over the rows, faster without tiles.
template <class T>
bool is_thin(const ProductOf<T>& product) {
  return product.inner > many_rows && product.rows <= thin_product_rows && !product.left_in_row &&
         !product.right_in_row && product.beta == 0 && product.left_columns.numbers == nullptr &&
         product.target.bias == nullptr && product.cols <= cuda::workspace_columns;
}

/// Few columns of very many short rows: a tile would be all padding.
template <class T>
bool is_dots(const ProductOf<T>& product) {
  return product.rows > many_rows && product.cols <= most_dot_columns &&
         product.inner <= longest_dot && product.left_in_row && product.target.col_step == 1 &&
         !product.target.relu && product.beta == 0 && product.moments.totals == nullptr &&
         product.right_columns.numbers == nullptr;
}

template <class T>
bool streams_inner(const ProductOf<T>& product) {
  return product.inner >= many_rows && !product.left_in_row && !product.right_in_row &&
         std::max(product.rows, product.cols) <= 96;
}

template <class T>
void run_small(const ProductOf<T>& given, std::byte* memory, Stream stream) {
  // Tiles have more rows than columns.
  const bool turn = given.rows < given.cols && given.rows <= 64;
  ProductOf<T> product = turn ? transposed(given) : given;
  const int tile_cols = product.cols <= 16 ? 16 : product.cols <= 32 ? 32 : 64;
  const std::int64_t row_tiles = divide_up(product.rows, product_rows);
  const std::int64_t col_tiles = divide_up(product.cols, tile_cols);
  product.split = cut(row_tiles * col_tiles, product.inner, 2 * inner_chunk, inner_chunk, memory);
  const dim3 grid(cuda::num_blocks(row_tiles, 1), cuda::num_blocks(col_tiles, 1),
                  static_cast<unsigned>(product.split.splits));
  const auto run_chosen = tile_cols == 16   ? run_small_tiles<16, T>
                          : tile_cols == 32 ? run_small_tiles<32, T>
                                            : run_small_tiles<64, T>;
  run_chosen(product, grid, stream);
}

bool reads_columns(const Product& product) {
  return product.left_columns.numbers != nullptr || product.right_columns.numbers != nullptr;
}

void run_rows(Product product, std::byte* memory, Stream stream) {
  const cuda::Workspace parts = cuda::workspace_in(memory);
  product.moments.partials = parts.partials;
  product.moments.counter = parts.counters;
  const bool fused = reads_columns(product) || product.moments.totals != nullptr;
  const auto run_chosen = product.cols <= 32
                              ? (fused ? run_stream_rows<32, true> : run_stream_rows<32, false>)
                              : (fused ? run_stream_rows<64, true> : run_stream_rows<64, false>);
  run_chosen(product, stream);
}

static_assert(most_stream_blocks * 2 * 64 <= cuda::workspace_partials);

/// The rows of a result from `first` on, no more than a tile has.
Product tile_of(Product product, std::int64_t first) {
  product.rows = std::min<std::int64_t>(product.rows - first, inner_tile_rows);
  product.left.data += first;
  product.target.data += first * product.target.row_step;
  if (product.target.bias != nullptr) product.target.bias += first * product.target.bias_row_step;
  return product;
}

/// More rows than a tile has take a launch each: both read the right factor, and take less than
/// BLAS does in fp32.
void run_inner(const Product& given, std::byte* memory, Stream stream) {
  Product product = given.rows > inner_tile_rows ? transposed(given) : given;
  product.split = cut(1, product.inner, 4 * inner_lines, inner_lines, memory);
  // Where columns are read there are no more than 64 (`linear_fuses`).
  const auto run_chosen = reads_columns(product) ? run_stream_inner<0, true>
                          : product.cols <= 64   ? run_stream_inner<0, false>
                          : product.cols <= 80   ? run_stream_inner<16, false>
                                                 : run_stream_inner<32, false>;
  for (std::int64_t first = 0; first < product.rows; first += inner_tile_rows) {
    run_chosen(tile_of(product, first), stream);
  }
}

/// False where the result has more than a tile, which BLAS takes at the speed of memory, or where
/// rows do not lie as they can be copied.
bool run_narrow_inner(const ProductOf<__nv_bfloat16>& given, std::byte* memory, Stream stream) {
  if (std::min(given.rows, given.cols) > inner_tile_rows) return false;
  auto product = given.rows > inner_tile_rows ? transposed(given) : given;
  const bool wide = copies_narrow_rows(product.right, product.cols, 16);
  if (!copies_narrow_rows(product.left, product.rows, 16)) return false;
  if (!wide && !copies_narrow_rows(product.right, product.cols, 4)) return false;
  product.split = cut(1, product.inner, 4 * inner_lines, inner_lines, memory, wanted_blocks / 2);
  const auto run_chosen = product.cols <= 64   ? run_stream_inner_narrow<0>
                          : product.cols <= 80 ? run_stream_inner_narrow<16>
                                               : run_stream_inner_narrow<32>;
  run_chosen(product, wide, stream);
  return true;
}

ReadColumns reading_of(const ColumnReading& reading) {
  return {static_cast<const cuda::ColumnNumbers*>(reading.columns.data), reading.relu};
}

template <class T>
ProductOf<T> product_of(const GemmCall& call) {
  ProductOf<T> product;
  product.rows = call.c.rows;
  product.cols = call.c.cols;
  product.inner = call.inner;
  product.left = rows_of<T>(call.a);
  product.right = rows_of<T>(call.b);
  product.left_in_row = call.transpose_a == Transpose::no;
  product.right_in_row = call.transpose_b == Transpose::yes;
  product.left_columns = reading_of(call.of_a);
  product.right_columns = reading_of(call.of_b);
  product.target = {static_cast<T*>(call.c.data), call.c.stride, 1,
                    static_cast<const T*>(call.bias.data)};
  product.target.relu = call.relu;
  product.alpha = static_cast<float>(call.alpha);
  product.beta = static_cast<float>(call.beta);
  product.moments = {static_cast<double*>(call.moments.data), call.moments.stride};
  return product;
}

/// Whether many rows were streamed.
bool run_stream(const Product& product, bool allows_tf32, std::byte* memory, Stream stream) {
  if (streams_rows(product, allows_tf32)) {
    run_rows(product, memory, stream);
  } else if (streams_inner(product)) {
    run_inner(product, memory, stream);
  } else {
    return false;
  }
  return true;
}

/// Products of many rows of 16 bits with a small matrix come through BLAS: kernels that wait for
/// each tile take longer.
bool run_stream(const ProductOf<__nv_bfloat16>& product, bool, std::byte* memory, Stream stream) {
  return streams_inner(product) && run_narrow_inner(product, memory, stream);
}

template <class T>
bool run(const GemmCall& call, Device device, std::byte* memory, Stream stream) {
  const auto product = product_of<T>(call);
  if (is_thin(product)) {
    run_thin(product, memory, stream);
  } else if (is_dots(product)) {
    run_dot_rows(product, stream);
  } else if (cuda::has_wgmma(device) && run_stream(product, call.allows_tf32, memory, stream)) {
    return true;
  } else if (is_small(product)) {
    run_small(product, memory, stream);
  } else {
    return false;
  }
  return true;
}

/// Those of the sums of columns come after all that the first product may need.
constexpr std::int64_t finish_counters = wanted_blocks * 4;
constexpr std::int64_t most_finished_cols = 4096;
static_assert(finish_counters + most_finished_cols / 16 <= cuda::workspace_counters);

template <class T>
void run_both_products(const LinearGradCall& call, std::byte* memory, Stream stream) {
  const std::int64_t rows = call.x.rows, in = call.x.cols, out = call.grad_y.cols;
  // The weight's gradient transposed, so that a row of ones beside x gives that of the bias.
  ProductLaunchOf<T> of_weight;
  of_weight.rows = in + (call.grad_bias.absent() ? 0 : 1);
  of_weight.cols = out;
  of_weight.inner = rows;
  of_weight.left = rows_of<T>(call.x);
  of_weight.right = rows_of<T>(call.grad_y);
  of_weight.target = {static_cast<T*>(call.grad_weight.data), 1, call.grad_weight.stride};
  of_weight.column_sums = static_cast<T*>(call.grad_bias.data);
  const std::int64_t weight_tiles = divide_up(of_weight.rows, product_rows);

  ProductLaunchOf<T> of_input;
  of_input.rows = rows;
  of_input.cols = in;
  of_input.inner = out;
  of_input.left = rows_of<T>(call.grad_y);
  of_input.right = rows_of<T>(call.weight);
  of_input.target = {static_cast<T*>(call.grad_x.data), call.grad_x.stride, 1};
  of_input.split.inner_per_split = out;
  if (call.before_relu) of_input.finish.results = rows_of<T>(call.x);
  of_input.finish.sums = static_cast<T*>(call.grad_x_sums.data);
  const cuda::Workspace parts = cuda::workspace_in(memory);
  of_input.finish.partials = parts.partials;
  of_input.finish.counters = parts.counters + finish_counters;
  const bool narrow_weight = out <= 16, narrow_input = in <= 16;
  const std::int64_t input_tiles =
      divide_up(rows, product_rows) * divide_up(in, narrow_input ? 16 : 64);
  // Both products together come to the GPU at once.
  of_weight.split = cut(weight_tiles, rows, 2 * inner_chunk, inner_chunk, memory,
                        std::max<std::int64_t>(wanted_blocks - input_tiles, wanted_blocks / 4));

  const auto run_chosen = narrow_weight
                              ? (narrow_input ? run_both<16, 16, T> : run_both<16, 64, T>)
                              : (narrow_input ? run_both<64, 16, T> : run_both<64, 64, T>);
  run_chosen(cuda::num_blocks(weight_tiles * of_weight.split.splits, 1),
             cuda::num_blocks(input_tiles, 1), of_weight, of_input, stream);
}

void run_normed(const LinearGradCall& call, std::byte* memory, Stream stream) {
  const auto& [y, columns, relu, factors] = call.normed;
  NormedLaunch launch;
  launch.rows = call.x.rows;
  launch.in = static_cast<int>(call.x.cols);
  launch.out = static_cast<int>(y.cols);
  launch.x = rows_of<float>(call.x);
  launch.y = rows_of<float>(y);
  launch.gradient = rows_of<float>(call.grad_y);
  launch.left = rows_of<float>(factors.left);
  launch.right = rows_of<float>(factors.right);
  launch.inner = static_cast<int>(factors.left.cols);
  launch.weight = rows_of<float>(call.weight);
  launch.x_columns = reading_of(call.of_x);
  launch.columns = static_cast<const GradientColumn*>(columns.data);
  launch.relu = relu;
  launch.grad_x = rows_of<float>(call.grad_x);
  launch.grad_weight = rows_of<float>(call.grad_weight);
  launch.sums = rows_of<double>(call.norm_sums);
  const cuda::Workspace parts = cuda::workspace_in(memory);
  launch.partial_sums = parts.partials;
  launch.split.splits = call.grad_x.absent() ? normed_weight_blocks : normed_blocks;
  launch.split.group = static_cast<int>(std::ceil(std::sqrt(launch.split.splits)));
  launch.split.partials = reinterpret_cast<float*>(memory);
  launch.split.counters = parts.counters;
  const auto run_chosen = call.grad_x.absent() ? run_normed_weight : run_normed_gradient;
  run_chosen(launch, stream);
}

}  // namespace

bool run_linear_backward(const LinearGradCall& call, std::byte* memory, Stream stream) {
  if (!call.normed.absent()) {
    run_normed(call, memory, stream);
    return true;
  }
  const std::int64_t rows = call.x.rows, in = call.x.cols, out = call.grad_y.cols;
  const bool has_both = !call.grad_weight.absent() && !call.grad_x.absent();
  if (!has_both || rows == 0 || in == 0 || out == 0) return false;
  if (rows > many_rows || out > 64 || rows * in > most_results || rows * in * out > most_work) {
    return false;
  }
  const bool finishes = call.before_relu || !call.grad_x_sums.absent();
  if (finishes && in > most_finished_cols) return false;
  if (call.x.type == ElementType::fp32) {
    run_both_products<float>(call, memory, stream);
  } else if (call.x.type == ElementType::bf16) {
    run_both_products<__nv_bfloat16>(call, memory, stream);
  } else {
    return false;
  }
  return true;
}

bool run_product(const GemmCall& call, Device device, std::byte* memory, Stream stream) {
  if (call.a.type != call.c.type) return false;
  if (call.a.type == ElementType::fp32) return run<float>(call, device, memory, stream);
  return call.a.type == ElementType::bf16 && run<__nv_bfloat16>(call, device, memory, stream);
}

bool products_fuse(Device device, ElementType type) {
  return type == ElementType::fp32 && cuda::has_wgmma(device);
}

}  // namespace tessera::ops
