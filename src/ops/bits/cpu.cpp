// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/core/parallel.hpp"

#include "ops/bits/kernel.hpp"
#include "ops/bits/loops.hpp"
#include "ops/bits/store.hpp"
#ifdef TESSERA_WITH_CUDA
#include "ops/bits/cuda/kernels.hpp"
#endif

namespace tessera::ops {
namespace {

using bits::columns_at_once;
using Codes = quant::BitTensorView<const std::uint32_t>;

/// Blocks of rows are shared by this many workers, each with room for the sums of one.
constexpr std::int64_t most_workers = 64;

/// What the kernels of the CPU have in common: the room for a block's sums, and going over blocks.
class CpuBits : public PreparedBits {
 public:
  explicit CpuBits(const BitProblem& problem)
      : options_(problem.options),
        constant_(problem.a),
        loops_(bit_loops()),
        blocks_((options_.rows + block_rows - 1) / block_rows),
        workers_(std::min(blocks_, most_workers)),
        sums_(need_.add<std::int64_t>(
            checked_area(checked_area(workers_, block_rows), options_.cols))) {
    if (options_.a_words == 0) return;
    filled_ = quant::bit_tensor_shape(options_.a_bits, options_.rows, options_.depth);
    filled_words_ = need_.add<std::uint32_t>(filled_.num_words());
  }

  WorkspaceNeed workspace() const override { return need_; }

 protected:
  /// Loops take rows that are filled up.
  Codes left(const BitInputs& inputs, const WorkspaceView& workspace) const {
    if (constant_ != nullptr) return constant_->view();
    if (options_.a_words == 0) return inputs.a;
    const auto filled = filled_.over(filled_words_.in(workspace));
    const std::int64_t words = std::min(options_.a_words, filled.words_per_row);
    parallel_for(filled.bits * filled.padded_rows, 1024, [&](std::int64_t line) {
      std::uint32_t* const to = filled.words + line * filled.words_per_row;
      std::copy_n(inputs.a.words + line * options_.a_words, words, to);
      std::fill(to + words, to + filled.words_per_row, 0u);
    });
    return filled;
  }

  /// Calls sum_block(first_row, rows, sums) for every block, and stores what it gave.
  template <class SumBlock>
  void for_blocks(const Codes& a, const BitInputs& inputs, const BitOutputs& outputs,
                  const WorkspaceView& workspace, SumBlock&& sum_block,
                  const OwnCodes& own = {}) const {
    const BitStore store(options_, a, inputs.epilogue, outputs, own);
    parallel_tasks(workers_, [&](std::int64_t worker) {
      std::int64_t* const sums = sums_.in(workspace) + worker * block_rows * options_.cols;
      for (std::int64_t block = worker; block < blocks_; block += workers_) {
        const std::int64_t first = block * block_rows;
        sum_block(first, std::min(block_rows, options_.rows - first), sums);
        store(first, sums);
      }
    });
    store.clear_padding();
  }

  /// The same for dot products: dots(row, column, products) has `columns_at_once` of them.
  template <class Dots>
  void for_dots(const Codes& a, const BitInputs& inputs, const BitOutputs& outputs,
                const WorkspaceView& workspace, Dots&& dots) const {
    for_blocks(a, inputs, outputs, workspace,
               [&](std::int64_t first, std::int64_t rows, std::int64_t* sums) {
                 for (std::int64_t j = 0; j < options_.cols; j += columns_at_once) {
                   for (std::int64_t r = 0; r < rows; ++r) {
                     std::int64_t products[columns_at_once] = {};
                     dots(first + r, j, products);
                     const std::int64_t count =
                         std::min<std::int64_t>(columns_at_once, options_.cols - j);
                     std::copy_n(products, count, sums + r * options_.cols + j);
                   }
                 }
               });
  }

  const BitOptions options_;
  std::shared_ptr<const quant::BitTensor> constant_;
  const bits::Table& loops_;
  WorkspaceNeed need_;

 private:
  std::int64_t blocks_;
  std::int64_t workers_;
  WorkspacePart<std::int64_t> sums_;
  quant::BitTensor filled_;  ///< shape of an A whose rows come shorter
  WorkspacePart<std::uint32_t> filled_words_;
};

/// Every plane of A with every plane of B.
class GemmOfPlanes final : public CpuBits {
 public:
  using CpuBits::CpuBits;

  void run(const BitInputs& inputs, const BitOutputs& outputs, Stream,
           const WorkspaceView& workspace) const override {
    const Codes a = left(inputs, workspace);
    const Codes& b = inputs.b;
    for_dots(a, inputs, outputs, workspace,
             [&](std::int64_t row, std::int64_t col, std::int64_t(&totals)[columns_at_once]) {
               // The word of B's rows that the first of A's meets.
               const std::int64_t start =
                   options_.block == 0 ? 0 : inputs.block_starts(row / rows_of_start, 0) / 32;
               const std::int64_t words = std::min(a.words_per_row, b.words_per_row - start);
               for (int p = 0; p < a.bits; ++p) {
                 for (int q = 0; q < b.bits; ++q) {
                   std::int64_t counts[columns_at_once];
                   loops_.count(a.row(p, row), b.row(q, col) + start, b.words_per_row, words,
                                counts);
                   for (int c = 0; c < columns_at_once; ++c) totals[c] += counts[c] << (p + q);
                 }
               }
             });
  }
};

/// Both sides as bytes.
class GemmOfBytes final : public CpuBits {
 public:
  explicit GemmOfBytes(const BitProblem& problem)
      : CpuBits(problem),
        depth_((options_.depth + 127) / 128 * 128),
        padded_cols_((options_.cols + columns_at_once - 1) / columns_at_once * columns_at_once),
        a_bytes_(need_.add<std::uint8_t>(checked_area(options_.rows, depth_))),
        b_bytes_(need_.add<std::uint8_t>(checked_area(padded_cols_, depth_))) {}

  void run(const BitInputs& inputs, const BitOutputs& outputs, Stream,
           const WorkspaceView& workspace) const override {
    std::uint8_t* const a = a_bytes_.in(workspace);
    std::uint8_t* const b = b_bytes_.in(workspace);
    const Codes codes = left(inputs, workspace);
    spread_rows(codes, options_.rows, a);
    spread_rows(inputs.b, padded_cols_, b);
    for_dots(codes, inputs, outputs, workspace,
             [&](std::int64_t row, std::int64_t col, std::int64_t(&products)[columns_at_once]) {
               loops_.dot(a + row * depth_, b + col * depth_, depth_, depth_, products);
             });
  }

 private:
  /// Rows behind the last are padding of the tensor, which has as many.
  void spread_rows(const Codes& from, std::int64_t rows, std::uint8_t* to) const {
    parallel_for(rows, 64, [&](std::int64_t row) {
      loops_.spread(from.row(0, row), from.plane_words(), from.bits, from.words_per_row,
                    to + row * depth_);
    });
  }

  std::int64_t depth_;
  std::int64_t padded_cols_;
  WorkspacePart<std::uint8_t> a_bytes_;
  WorkspacePart<std::uint8_t> b_bytes_;
};

/// Rows of a graph, or lists of sources that come with a run: the codes of B's rows are spread
/// once, then every target adds those of its sources.
class AggregateRows final : public CpuBits {
 public:
  explicit AggregateRows(const BitProblem& problem)
      : CpuBits(problem),
        graph_(problem.graph),
        width_((options_.cols + 127) / 128 * 128),
        wide_(options_.b_bits > 8),
        codes_(need_.add<std::uint8_t>(
            options_.b_bytes ? 0
                             : checked_area(checked_area(options_.depth, width_), wide_ ? 2 : 1))) {
  }

  void run(const BitInputs& inputs, const BitOutputs& outputs, Stream,
           const WorkspaceView& workspace) const override {
    if (options_.b_bytes) {
      return add(inputs, outputs, workspace, {inputs.b_bytes.data, nullptr, inputs.b_bytes.stride});
    }
    std::uint8_t* const bytes = codes_.in(workspace);
    auto* const words = reinterpret_cast<std::uint16_t*>(bytes);
    const Codes& b = inputs.b;
    parallel_for(options_.depth, 64, [&](std::int64_t row) {
      if (wide_) {
        loops_.spread_wide(b.row(0, row), b.plane_words(), b.bits, b.words_per_row,
                           words + row * width_);
      } else {
        loops_.spread(b.row(0, row), b.plane_words(), b.bits, b.words_per_row,
                      bytes + row * width_);
      }
    });
    add(inputs, outputs, workspace, {wide_ ? nullptr : bytes, wide_ ? words : nullptr, width_});
  }

 private:
  void add(const BitInputs& inputs, const BitOutputs& outputs, const WorkspaceView& workspace,
           const OwnCodes& codes) const {
    for_blocks(
        {}, inputs, outputs, workspace,
        [&](std::int64_t first, std::int64_t rows, std::int64_t* sums) {
          for (std::int64_t r = 0; r < rows; ++r) {
            const std::int64_t row = first + r;
            std::int64_t* const to = sums + r * options_.cols;
            if (options_.block > 0) {
              const std::int64_t start = inputs.block_starts(row / rows_of_start, 0);
              const std::int32_t begin = inputs.list_offsets(row, 0);
              const std::span<const std::uint16_t> sources(
                  inputs.list_sources.data + begin,
                  static_cast<std::size_t>(inputs.list_offsets(row + 1, 0) - begin));
              sum_row(sources, start, codes, to);
            } else {
              sum_row(graph_.neighbours(static_cast<VertexId>(row)), 0, codes, to);
            }
          }
        },
        codes);
  }

  /// As many features at once, and as many sources before their sums leave 32 bits.
  static constexpr std::int64_t features_at_once = 256;
  static constexpr std::int64_t sources_at_once = 1 << 16;

  template <class Source>
  void sum_row(std::span<const Source> sources, std::int64_t start, const OwnCodes& codes,
               std::int64_t* sums) const {
    const auto num_sources = static_cast<std::int64_t>(sources.size());
    for (std::int64_t from = 0; from < options_.cols; from += features_at_once) {
      const std::int64_t count = std::min(features_at_once, options_.cols - from);
      std::fill_n(sums + from, count, std::int64_t{0});
      for (std::int64_t begin = 0; begin < num_sources; begin += sources_at_once) {
        const std::int64_t end = std::min(begin + sources_at_once, num_sources);
        std::uint32_t few[features_at_once] = {};
        for (std::int64_t e = begin; e < end; ++e) {
          const std::int64_t source = start + sources[static_cast<std::size_t>(e)];
          const std::int64_t at = source * codes.stride + from;
          if (wide_) {
            loops_.add_wide(codes.words + at, count, few);
          } else {
            loops_.add_bytes(codes.bytes + at, count, few);
          }
        }
        for (std::int64_t j = 0; j < count; ++j) sums[from + j] += few[j];
      }
    }
  }

  Graph graph_;
  std::int64_t width_;
  bool wide_;
  WorkspacePart<std::uint8_t> codes_;
};

std::string anything(const BitProblem&) { return {}; }

std::string why_not_as_bytes(const BitProblem& problem) {
  if (problem.options.block > 0) return "takes no blocks";
  return problem.options.a_bits > 8 || problem.options.b_bits > 8 ? "more than 8 bits" : "";
}

double products_of(const BitOptions& options) {
  return static_cast<double>(options.rows) * static_cast<double>(options.cols) *
         static_cast<double>((depth_of_a(options) + 127) / 128 * 128);
}

/// On one core about 16 bits of a pair of planes in a tenth of a nanosecond, and a call for each.
double planes_us(const BitProblem& problem) {
  const BitOptions& options = problem.options;
  const double pairs = options.a_bits * options.b_bits;
  const double calls = static_cast<double>(options.rows) * static_cast<double>(options.cols) / 4;
  return pairs * (products_of(options) * 5e-6 + calls * 4e-3) / num_threads();
}

/// About a tenth of a nanosecond for each product, and half of one for each code that is spread.
double bytes_us(const BitProblem& problem) {
  const BitOptions& options = problem.options;
  const double spread = static_cast<double>(options.rows) * options.a_bits +
                        static_cast<double>(options.cols) * options.b_bits;
  return (products_of(options) * 8e-5 + spread * static_cast<double>(options.depth) * 1e-4) /
         num_threads();
}

double rows_us(const BitProblem& problem) {
  const double numbers =
      static_cast<double>(problem.graph.num_edges()) * static_cast<double>(problem.options.cols);
  return numbers * 3e-4 / num_threads();
}

/// How many sources come is not known; nothing else is to be chosen.
double lists_us(const BitProblem& problem) {
  return static_cast<double>(problem.options.rows) * static_cast<double>(problem.options.cols) *
         1e-3 / num_threads();
}

template <class Prepared>
BitKernel cpu_kernel(const std::string& op, const std::string& name, std::string description,
                     std::string (*why_not)(const BitProblem&), double (*us)(const BitProblem&)) {
  return {{.name = op + "/cpu/" + name, .description = std::move(description), .op = op},
          why_not,
          us,
          [](const BitProblem& problem) -> std::unique_ptr<const PreparedBits> {
            return std::make_unique<Prepared>(problem);
          }};
}

BitKernel rows_kernel(const std::string& op, double (*us)(const BitProblem&)) {
  return cpu_kernel<AggregateRows>(
      op, "rows", "codes are spread once, every target adds those of its sources", anything, us);
}

}  // namespace

std::span<const BitKernel> bit_gemm_kernels() {
  static const std::vector<BitKernel> table = [] {
    std::vector<BitKernel> kernels = {
        cpu_kernel<GemmOfPlanes>("bit_gemm", "planes",
                                 "bits that every two planes share are counted", anything,
                                 planes_us),
        cpu_kernel<GemmOfBytes>("bit_gemm", "bytes",
                                "codes are spread to bytes and multiplied as these",
                                why_not_as_bytes, bytes_us)};
#ifdef TESSERA_WITH_CUDA
    append_cuda_bit_gemm_kernels(kernels);
#endif
    return kernels;
  }();
  return table;
}

std::span<const BitKernel> bit_aggregate_kernels() {
  static const std::vector<BitKernel> table = [] {
    std::vector<BitKernel> kernels = {rows_kernel("bit_aggregate", rows_us)};
#ifdef TESSERA_WITH_CUDA
    append_cuda_byte_rows(kernels);
    append_cuda_wide_aggregate(kernels);
    append_cuda_byte_windows(kernels);
#endif
    return kernels;
  }();
  return table;
}

std::span<const BitKernel> bit_lists_kernels() {
  static const std::vector<BitKernel> table = [] {
    std::vector<BitKernel> kernels = {rows_kernel("bit_lists", lists_us)};
#ifdef TESSERA_WITH_CUDA
    append_cuda_byte_lists(kernels);
#endif
    return kernels;
  }();
  return table;
}

}  // namespace tessera::ops
