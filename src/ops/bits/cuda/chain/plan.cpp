// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "core/on_device.hpp"
#include "cuda/array.hpp"
#include "ops/bits/check_run.hpp"
#include "ops/bits/cuda/chain/launch.hpp"
#include "ops/bits/cuda/kernels.hpp"
#include "ops/bits/finish_many.hpp"
#include "ops/bits/kernel.hpp"
#include "tessera/detail/ops/bit_chain.hpp"
#include "tessera/detail/ops/plan_only.hpp"

namespace tessera::ops {
namespace {

/// Weights and numbers of all steps, one after another as the kernel finds them.
class ChainImage {
 public:
  /// Lines of bytes, filled up as the matrix unit reads them.
  int add(const quant::BitTensor& weights) {
    const int place = static_cast<int>(bytes_.size());
    const int pitch = chain_pitch(static_cast<int>(weights.depth));
    const Matrix<std::uint16_t> codes = quant::unpack(weights);
    bytes_.resize(bytes_.size() + static_cast<std::size_t>((codes.rows() + 7) / 8 * 8 * pitch));
    for (std::int64_t row = 0; row < codes.rows(); ++row) {
      for (std::int64_t k = 0; k < codes.cols(); ++k) {
        bytes_[static_cast<std::size_t>(place + row * pitch + k)] =
            static_cast<std::uint8_t>(codes(row, k));
      }
    }
    return place;
  }
  /// Returns the place in floats; -1: there are none.
  int add(std::span<const float> numbers) {
    if (numbers.empty()) return -1;
    const std::size_t place = bytes_.size();
    bytes_.resize(place + numbers.size_bytes());
    std::memcpy(bytes_.data() + place, numbers.data(), numbers.size_bytes());
    return static_cast<int>(place / sizeof(float));
  }
  int add(const MatrixView<const float>& numbers) {
    const auto count = static_cast<std::size_t>(numbers.rows * numbers.cols);
    return numbers.data == nullptr ? -1 : add(std::span<const float>(numbers.data, count));
  }
  const std::vector<std::uint8_t>& finished() {
    bytes_.resize((bytes_.size() + 15) / 16 * 16);
    return bytes_;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

ChainStep make_step(const BitChainStep& given, bool next_sums, ChainImage& image) {
  ChainStep step;
  step.in = static_cast<int>(given.in);
  step.out = static_cast<int>(given.out);
  if (!given.aggregates) step.weights = image.add(given.weights);
  step.col_scale = image.add(given.columns.col_scale);
  step.col_terms = image.add(given.columns.col_terms);
  step.bias = image.add(given.columns.bias);
  step.norm_scale = image.add(given.columns.norm_scale);
  step.norm_shift = image.add(given.columns.norm_shift);
  step.terms = given.terms;
  step.activation = given.activation;
  step.scales_result = given.scales_result;
  step.to_columns = next_sums;
  if (given.requantise) {
    const quant::Affine& affine = *given.requantise;
    step.lower = image.add(std::span<const float>(affine.lower));
    step.step = image.add(std::span<const float>(affine.scale));
    step.inverse = image.add(std::span<const float>(inverses_of(affine.scale)));
    step.range_stride = affine.granularity == quant::Granularity::columns ? 1 : 0;
    step.floors = affine.rounding == quant::Rounding::floor;
    step.last_code = static_cast<float>(affine.max_code());
  }
  return step;
}

/// The steps of one launch.
struct ChainPart {
  ChainLaunch launch;
  Buffer<std::uint8_t> image;
};

class CudaBitChain final : public BitChain {
 public:
  CudaBitChain(const BitChainProblem& problem, std::vector<ChainPart> parts)
      : check_(problem),
        device_(problem.options.device),
        vertices_(problem.vertices),
        lists_(problem.lists),
        spreads_(problem.lists && problem.steps.front().aggregates),
        parts_(std::move(parts)) {
    for (ChainPart& part : parts_) part.launch.image = part.image.data();
    if (!lists_) return;
    const Place place = problem.options.place();
    if (spreads_) codes_[0] = Buffer<std::uint8_t>(bytes_of(problem.steps.front().in), place);
    for (std::size_t i = 0; i + 1 < parts_.size(); ++i) {
      const std::int64_t bytes = bytes_of(out_of(parts_[i].launch));
      Buffer<std::uint8_t>& codes = codes_[(i + 1) % 2];
      if (codes.size() < bytes) codes = Buffer<std::uint8_t>(bytes, place);
    }
  }

  void run(const BitChainInputs& inputs, MatrixView<float> values, Stream stream) const override {
    check_(inputs, values);
    if (plans_only()) return;
    const OnDevice current(device_);
    const BitRows features = rows_of(inputs.features);
    if (spreads_) {
      spread_rows(features, padded_bytes(parts_.front().launch.steps[0].in), codes_[0].data(),
                  stream);
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      ChainLaunch launch = parts_[i].launch;
      launch.features = features;
      launch.row_scale = inputs.row_scale;
      launch.col_scale = inputs.col_scale;
      launch.row_weights = inputs.row_weights;
      launch.values = values.data;
      launch.stride = values.stride;
      if (!lists_) {
        launch.adjacency = inputs.adjacency.words;
        launch_chain(launch, false, stream);
        continue;
      }
      launch.list_offsets = inputs.list_offsets.data;
      launch.list_sources = inputs.list_sources.data;
      launch.block_starts = inputs.block_starts.data;
      launch.bytes_in = codes_[i % 2].data();
      launch.bytes_in_stride = padded_bytes(launch.steps[0].in);
      if (i + 1 < parts_.size()) {
        launch.bytes_out = codes_[(i + 1) % 2].data();
        launch.bytes_out_stride = padded_bytes(out_of(launch));
      }
      launch_chain(launch, true, stream);
    }
  }

  std::string name() const override {
    return lists_ ? "bit_chain/cuda/lists" : "bit_chain/cuda/parts";
  }
  std::int64_t weight_bytes() const override {
    std::int64_t bytes = 0;
    for (const ChainPart& part : parts_) bytes += part.image.size();
    return bytes;
  }
  std::int64_t activation_bytes() const override { return codes_[0].size() + codes_[1].size(); }

 private:
  static int out_of(const ChainLaunch& launch) { return launch.steps[launch.num_steps - 1].out; }
  std::int64_t bytes_of(std::int64_t width) const {
    return checked_area(vertices_, padded_bytes(width));
  }

  ChainCheck check_;
  Device device_;
  std::int64_t vertices_;
  bool lists_;
  bool spreads_;  ///< the features: sums over lists take bytes
  std::vector<ChainPart> parts_;
  /// Bytes between two launches, which alternate between both: what a run leaves there is nothing.
  mutable Buffer<std::uint8_t> codes_[2];
};

/// Those from `first` on, up to the next sum over lists.
std::size_t end_of_part(const BitChainProblem& problem, std::size_t first) {
  std::size_t end = first + 1;
  while (end < problem.steps.size() && !(problem.lists && problem.steps[end].aggregates)) ++end;
  return end;
}

}  // namespace

std::unique_ptr<const BitChain> make_cuda_bit_chain(const BitChainProblem& problem) {
  if (problem.steps.size() > most_chain_steps || !chain_fits(problem, most_chain_width)) {
    return nullptr;
  }
  const OnDevice current(problem.options.device);
  const int most_shared = allow_chains(problem.lists);
  std::vector<ChainPart> parts;
  for (std::size_t first = 0; first < problem.steps.size();) {
    const std::size_t end = end_of_part(problem, first);
    ChainLaunch launch;
    ChainImage image;
    launch.num_steps = static_cast<int>(end - first);
    launch.num_parts = static_cast<int>(problem.vertices / chain_rows);
    for (std::size_t i = first; i < end; ++i) {
      const bool next_sums = i + 1 < end && problem.steps[i + 1].aggregates;
      launch.steps[i - first] = make_step(problem.steps[i], next_sums, image);
    }
    const std::vector<std::uint8_t>& bytes = image.finished();
    launch.image_bytes = static_cast<int>(bytes.size());
    if (chain_shared_bytes(launch.image_bytes) > most_shared) return nullptr;
    parts.push_back(
        {launch, cuda::to_device(std::span<const std::uint8_t>(bytes), problem.options.place())});
    first = end;
  }
  return std::make_unique<CudaBitChain>(problem, std::move(parts));
}

}  // namespace tessera::ops
