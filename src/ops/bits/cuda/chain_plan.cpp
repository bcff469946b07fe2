// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "core/on_device.hpp"
#include "cuda/array.hpp"
#include "ops/bits/chain.hpp"
#include "ops/bits/check_run.hpp"
#include "ops/bits/cuda/chain.hpp"
#include "ops/bits/finish_many.hpp"
#include "ops/plan_only.hpp"

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

bool fits(const BitChainProblem& problem) {
  if (problem.steps.empty() || problem.steps.size() > most_chain_steps) return false;
  if (problem.block > chain_rows || problem.vertices % chain_rows != 0) return false;
  for (const BitChainStep& step : problem.steps) {
    if (step.in > most_chain_width || step.out > most_chain_width || step.bits > 8) return false;
    if (!step.aggregates && step.weights.bits > 8) return false;
    // Terms of a sum are one column.
    if (step.terms > (step.aggregates ? 1 : 2)) return false;
  }
  return !problem.steps.back().requantise;
}

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
    std::vector<float> inverses;
    for (const float scale : affine.scale) inverses.push_back(inverse_of(scale));
    if (std::find(inverses.begin(), inverses.end(), 0.0f) == inverses.end()) {
      step.inverse = image.add(std::span<const float>(inverses));
    }
    step.range_stride = affine.granularity == quant::Granularity::columns ? 1 : 0;
    step.floors = affine.rounding == quant::Rounding::floor;
    step.last_code = static_cast<float>(affine.max_code());
  }
  return step;
}

class CudaBitChain final : public BitChain {
 public:
  CudaBitChain(const BitChainProblem& problem, const ChainLaunch& launch,
               std::span<const std::uint8_t> image)
      : device_(problem.options.device),
        vertices_(problem.vertices),
        block_(problem.block),
        bits_(problem.steps.front().bits),
        launch_(launch),
        image_(cuda::to_device(image, problem.options.place())) {
    launch_.image = image_.data();
  }

  void run(const BitChainInputs& inputs, MatrixView<float> values, Stream stream) const override {
    check(inputs, values);
    if (plans_only()) return;
    const OnDevice current(device_);
    ChainLaunch launch = launch_;
    const auto& features = inputs.features;
    launch.features = {features.words, features.plane_words(), features.words_per_row,
                       features.rows, features.bits};
    launch.adjacency = inputs.adjacency.words;
    launch.row_scale = inputs.row_scale;
    launch.col_scale = inputs.col_scale;
    launch.row_weights = inputs.row_weights;
    launch.values = values.data;
    launch.stride = values.stride;
    launch_chain(launch, stream);
  }

  std::string name() const override { return "bit_chain/cuda/parts"; }
  std::int64_t weight_bytes() const override { return image_.size(); }

 private:
  void check(const BitChainInputs& inputs, const MatrixView<float>& values) const {
    const Checker check("bit_chain", device_);
    const ChainStep& first = launch_.steps[0];
    const bool by_columns = first.weights < 0;
    check_tensor(check, inputs.features, "features", device_, bits_,
                 by_columns ? first.in : vertices_, by_columns ? vertices_ : first.in,
                 by_columns ? 0 : (first.in + 31) / 32);
    check_tensor(check, inputs.adjacency, "adjacency", device_, 1, vertices_, block_);
    check.matrix(values, "values",
                 {ElementType::fp32, vertices_, launch_.steps[launch_.num_steps - 1].out});
  }

  Device device_;
  std::int64_t vertices_;
  std::int64_t block_;
  int bits_;  ///< of the features
  ChainLaunch launch_;
  Buffer<std::uint8_t> image_;
};

}  // namespace

std::unique_ptr<const BitChain> make_cuda_bit_chain(const BitChainProblem& problem) {
  if (!fits(problem)) return nullptr;
  ChainLaunch launch;
  ChainImage image;
  launch.num_steps = static_cast<int>(problem.steps.size());
  launch.num_parts = static_cast<int>(problem.vertices / chain_rows);
  for (std::size_t i = 0; i < problem.steps.size(); ++i) {
    const bool next_sums = i + 1 < problem.steps.size() && problem.steps[i + 1].aggregates;
    launch.steps[i] = make_step(problem.steps[i], next_sums, image);
  }
  const std::vector<std::uint8_t>& bytes = image.finished();
  launch.image_bytes = static_cast<int>(bytes.size());
  const OnDevice current(problem.options.device);
  if (chain_shared_bytes(launch.image_bytes) > allow_chains()) return nullptr;
  return std::make_unique<CudaBitChain>(problem, launch, bytes);
}

}  // namespace tessera::ops
