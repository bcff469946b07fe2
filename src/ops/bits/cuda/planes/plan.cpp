// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "cuda/array.hpp"
#include "cuda/wgmma_device.hpp"
#include "ops/bits/cuda/cost.hpp"
#include "ops/bits/cuda/kernels.hpp"
#include "ops/bits/cuda/launch.hpp"

namespace tessera::ops {
namespace {

BitRows shape_of(int bits, std::int64_t rows, std::int64_t depth) {
  return rows_of(quant::bit_tensor_shape(bits, rows, depth).view());
}

/// Whether there are enough tall and wide blocks for most processors.
bool fills_tall_blocks(const BitOptions& options, const DeviceTraits& traits) {
  const std::int64_t tall = (options.rows + 127) / 128 * ((options.cols + 127) / 128);
  return options.depth > 0 && options.cols > 64 && tall * 4 >= traits.processors * 3;
}

const BitFunction& planes_function_of(const BitOptions& options) {
  const int order = std::min(options.b_bits, 3) - 1;
  if (fills_tall_blocks(options, device_traits(options.device))) return boxed_planes[order];
  return planes_functions[order][options.cols > 32 ? 0 : 1];
}

const BitFunction& bytes_function_of(const BitOptions& options) {
  return bytes_functions[options.cols > 64 ? 0 : 1];
}

BitBlocks blocks_of(const BitFunction& function) {
  return {function.rows, function.width, function.splits};
}

/// The parts of K in which a tile of rows has any bit.
struct TileIndex {
  std::vector<std::int32_t> offsets;  ///< one per tile, and the end
  std::vector<std::int32_t> parts;    ///< rising within a tile
  std::int64_t all_parts = 0;         ///< of all tiles, without skipping

  bool skips() const noexcept { return static_cast<std::int64_t>(parts.size()) < all_parts; }
};

TileIndex index_tiles(const quant::BitTensor& a, int rows_of_tile, int words_of_part) {
  const std::int64_t tiles = (a.rows + rows_of_tile - 1) / rows_of_tile;
  const std::int64_t parts = (a.words_per_row + words_of_part - 1) / words_of_part;
  const auto view = a.view();
  TileIndex index;
  index.all_parts = tiles * parts;
  index.offsets.push_back(0);
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    std::vector<bool> used(static_cast<std::size_t>(parts), false);
    const std::int64_t end = std::min(a.rows, (tile + 1) * rows_of_tile);
    for (int plane = 0; plane < a.bits; ++plane) {
      for (std::int64_t row = tile * rows_of_tile; row < end; ++row) {
        const std::uint32_t* words = view.row(plane, row);
        for (std::int64_t word = 0; word < a.words_per_row; ++word) {
          if (words[word] != 0) used[static_cast<std::size_t>(word / words_of_part)] = true;
        }
      }
    }
    for (std::size_t part = 0; part < used.size(); ++part) {
      if (used[part]) index.parts.push_back(static_cast<std::int32_t>(part));
    }
    index.offsets.push_back(static_cast<std::int32_t>(index.parts.size()));
  }
  return index;
}

enum class Operands { planes, bits_and_bytes, bytes };

class CudaGemm : public CudaBits {
 public:
  /// `operands`: what the function multiplies in place of planes.
  CudaGemm(const BitProblem& problem, const BitFunction& function, Operands operands)
      : CudaBits(problem, function.launch_finished != nullptr),
        function_(function),
        operands_(operands),
        split_(blocks_of_tile(options_, blocks_of(function), device_traits(options_.device))) {
    product_.a = shape_of(options_.a_bits, options_.rows, depth_of_a(options_));
    if (options_.a_words > 0) {
      const quant::BitTensor shape =
          quant::bit_tensor_shape(options_.a_bits, options_.rows, options_.depth);
      product_.a.plane_words = shape.padded_rows * options_.a_words;
      product_.a.row_words = options_.a_words;
    }
    product_.b = shape_of(options_.b_bits, options_.cols, options_.depth);
    if (options_.terms_of_a && function.launch_finished == nullptr) {
      terms_ = need_.add<float>(checked_area(options_.rows, options_.terms));
    }
    if (operands == Operands::bytes) {
      a_bytes_ = need_.add<std::uint8_t>(checked_area(options_.rows, depth_bytes()));
      bytes_ = need_.add<std::uint8_t>(checked_area(options_.cols, depth_bytes()));
    }
    if (operands == Operands::bits_and_bytes) {
      bytes_ = need_.add<std::uint8_t>(
          byte_operand_bytes(options_.cols, product_.b.row_words, function.width));
    }
    if (problem.a != nullptr) keep(*problem.a);
    function.allow(product_);
  }

  void run(const BitInputs& inputs, const BitOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    BitProduct product = product_;
    if (constant_.empty()) product.a.words = inputs.a.words;
    product.b.words = inputs.b.words;
    if (options_.block > 0) product.block_starts = inputs.block_starts.data;
    if (operands_ == Operands::bytes) {
      product.a = spread(product.a, a_bytes_.in(workspace), stream);
      product.b = spread(product.b, bytes_.in(workspace), stream);
    }
    if (function_.launch_finished != nullptr && options_.output != BitOutput::sums32) {
      return function_.launch_finished(product, result(inputs, outputs), stream);
    }
    const Sums sums = sums_in(outputs, workspace);
    product.sums = sums.data;
    product.stride = sums.stride;
    if (operands_ == Operands::bits_and_bytes) {
      product.b_bytes = bytes_.in(workspace);
      planes_to_bytes(product.b, function_.width, bytes_.in(workspace), stream);
    }
    function_.launch(product, split_, stream);
    if (terms_.size == 0) return finish(inputs, outputs, stream, workspace);
    BitInputs with_terms = inputs;
    const auto& scale = inputs.epilogue.row_scale;
    float* const terms = terms_.in(workspace);
    make_row_terms(product.a, scale.data, scale.stride, terms, options_.terms, stream);
    with_terms.epilogue.row_terms = {terms, options_.rows, options_.terms, options_.device};
    finish(with_terms, outputs, stream, workspace);
  }

 private:
  /// Whole steps of the matrix unit.
  std::int64_t depth_bytes() const { return (options_.depth + 31) / 32 * 32; }

  BitRows spread(const BitRows& planes, std::uint8_t* to, Stream stream) const {
    spread_rows(planes, depth_bytes(), to, stream);
    return {reinterpret_cast<const std::uint32_t*>(to), 0, depth_bytes() / 4, planes.rows, 1};
  }

  void keep(const quant::BitTensor& a) {
    const Place place = options_.place();
    constant_ = cuda::to_device(a.words.span(), place);
    product_.a.words = constant_.data();
    product_.a_stays = true;
    if (function_.part_words == 0) return;
    const TileIndex index = index_tiles(a, function_.rows, function_.part_words);
    if (!index.skips()) return;
    offsets_ = cuda::to_device(std::span<const std::int32_t>(index.offsets), place);
    parts_ = cuda::to_device(std::span<const std::int32_t>(index.parts), place);
    product_.index = {offsets_.data(), parts_.data()};
  }

  const BitFunction& function_;
  Operands operands_;
  int split_;
  BitProduct product_;
  Buffer<std::uint32_t> constant_;
  Buffer<std::int32_t> offsets_, parts_;
  WorkspacePart<std::uint8_t> a_bytes_;
  WorkspacePart<std::uint8_t> bytes_;
  WorkspacePart<float> terms_;  ///< of A, where the product does not make them by itself
};

std::string why_not_wgmma(const BitProblem& problem) {
  if (!cuda::has_wgmma(problem.options.device)) {
    return "needs a GPU with wgmma (compute capability 9.0)";
  }
  if (problem.options.a_bits != 1) return "takes one plane on the left";
  if (problem.options.block > 0) return "takes no blocks";
  if (problem.options.a_words > 0) return "takes rows that are filled up";
  return why_not_on_gpu(problem);
}

std::string why_not_byte_operand(const BitProblem& problem) {
  return problem.options.b_bits > 8 ? "more than 8 bits" : why_not_wgmma(problem);
}

std::string why_not_byte_pairs(const BitProblem& problem) {
  if (problem.options.a_bits > 8 || problem.options.b_bits > 8) return "more than 8 bits";
  if (problem.options.block > 0) return "takes no blocks";
  return why_not_on_gpu(problem);
}

template <auto function_of, Operands operands>
struct Gemm final : CudaGemm {
  explicit Gemm(const BitProblem& problem)
      : CudaGemm(problem, function_of(problem.options), operands) {}
};

const BitFunction& pairs_of(const BitOptions&) { return pairs_function; }
const BitFunction& byte_pairs_of(const BitOptions&) { return byte_pairs_function; }

/// The time of a kernel whose blocks depend on the shape.
template <auto predict, auto function_of>
double predict_us(const BitProblem& problem, const DeviceTraits& traits) {
  return predict(problem, blocks_of(function_of(problem.options)), traits);
}

}  // namespace

void append_cuda_bit_gemm_kernels(std::vector<BitKernel>& table) {
  table.push_back(
      cuda_kernel<BitKernel, why_not_wgmma, predict_us<predict_planes_us, planes_function_of>,
                  prepared<Gemm<planes_function_of, Operands::planes>>>(cuda_info(
          "bit_gemm", "planes", "bits that two planes share are counted on wgmma, A loaded once")));
  table.push_back(
      cuda_kernel<BitKernel, why_not_byte_operand, predict_us<predict_bytes_us, bytes_function_of>,
                  prepared<Gemm<bytes_function_of, Operands::bits_and_bytes>>>(
          cuda_info("bit_gemm", "bytes", "bits expanded in registers times bytes on wgmma")));
  table.push_back(cuda_kernel<BitKernel, why_not_on_gpu, predict_pairs_us,
                              prepared<Gemm<pairs_of, Operands::planes>>>(
      cuda_info("bit_gemm", "pairs", "every two planes counted on mma.sync")));
  table.push_back(cuda_kernel<BitKernel, why_not_byte_pairs, predict_byte_pairs_us,
                              prepared<Gemm<byte_pairs_of, Operands::bytes>>>(
      cuda_info("bit_gemm", "byte_pairs", "both sides as bytes on mma.sync")));
}

}  // namespace tessera::ops
