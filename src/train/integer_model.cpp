// SPDX-License-Identifier: Apache-2.0
#include "train/integer_model.hpp"

#include <algorithm>
#include <span>

#include "tessera/core/error.hpp"

namespace tessera::train {
namespace {

nn::BitSteps steps_of(nn::Model& model, const quant::Affine& feature_range) {
  nn::BitSteps steps = model.bit_steps();
  steps.set_feature_range(feature_range);
  return steps;
}

/// All layers of a model sum over the same; without any, there is nothing to sum over.
nn::BitAdjacency adjacency_of(const nn::BitSteps& steps, const Graph& graph) {
  const auto first = std::find_if(steps.steps().begin(), steps.steps().end(),
                                  [](const nn::BitStep& step) { return step.aggregates; });
  if (first == steps.steps().end()) return nn::bit_adjacency(step::pattern(graph));
  return nn::bit_adjacency(first->adjacency(graph));
}

step::Placement in_fp32(step::Placement placement) {
  placement.precision = Precision::fp32;
  return placement;
}

void upload(std::span<const float> numbers, step::Tensor& to) {
  to.upload(MatrixView<const float>(numbers.data(), std::ssize(numbers), 1), to.placement().stream);
}

MatrixView<const float> column(const step::Tensor& numbers) {
  return numbers.size() == 0 ? MatrixView<const float>() : numbers.as<float>();
}

}  // namespace

IntegerModel::IntegerModel(nn::Model& model, const Graph& graph, const quant::Affine& feature_range,
                           bool row_normalised, const PredictOptions& options)
    : steps_(steps_of(model, feature_range)),
      row_normalised_(row_normalised && steps_.takes_plain_features()),
      placement_(in_fp32(options.placement)),
      adjacency_(adjacency_of(steps_, graph)),
      feature_scale_(placement_),
      row_scale_(placement_),
      col_scale_(placement_),
      row_weights_(placement_),
      values_(placement_),
      embeddings_(placement_) {
  const nn::BitStep& first = steps_.steps().front();
  features_.emplace(graph.num_rows(), first.input, first.in);
  words_ = Buffer<std::uint32_t>(features_->codes().num_words(), placement_.place());
  nn::BitNetworkOptions how;
  how.plans = options.plans;
  how.plans.device = placement_.device();
  how.plans.memory = placement_.memory;
  how.plans.stream = placement_.stream;
  how.scales_features = row_normalised_;
  how.keeps_last_input = options.embeddings;
  network_.emplace(steps_, adjacency_.pattern, how);
  upload(adjacency_.row_scale, row_scale_);
  upload(adjacency_.col_scale, col_scale_);
  upload(adjacency_.row_weights, row_weights_);
}

void IntegerModel::take(MatrixView<const float> features) {
  features_->take(features, row_normalised_);
}

void IntegerModel::take(const Graph& sparse) { features_->take(sparse, row_normalised_); }

void IntegerModel::take_treated(MatrixView<const float> features) {
  const bool is_summed = steps_.steps().front().aggregates;
  features_->take_scaled(features, is_summed ? std::span<const float>(adjacency_.col_scale)
                                             : std::span<const float>());
}

const step::Tensor& IntegerModel::run() {
  const Stream stream = placement_.stream;
  auto codes = features_->codes();
  copy_bytes(words_.data(), codes.words, static_cast<std::size_t>(words_.size()) * 4,
             placement_.device(), stream);
  codes.words = words_.data();
  codes.device = placement_.device();
  if (row_normalised_) upload(features_->row_scale(), feature_scale_);
  nn::BitVertices vertices;
  vertices.features = codes;
  vertices.feature_scale = column(feature_scale_);
  vertices.row_scale = column(row_scale_);
  vertices.col_scale = column(col_scale_);
  vertices.row_weights = column(row_weights_);
  values_.resize(codes.rows, network_->output_width());
  network_->run(vertices, values_.as<float>(), stream);
  return values_;
}

CodeMemory IntegerModel::memory() const {
  const auto codes = features_->codes();
  return {words_.size() * 4, network_->activation_bytes(),
          checked_area(codes.rows, codes.depth) * static_cast<std::int64_t>(sizeof(float)),
          network_->full_activation_bytes()};
}

const step::Tensor& IntegerModel::embeddings() {
  const auto there = network_->last_input();
  Buffer<std::uint32_t> words(there.num_words());
  copy_bytes(words.data(), there.words, static_cast<std::size_t>(words.size()) * 4,
             placement_.device(), placement_.stream);
  synchronise(placement_.device(), placement_.stream);
  auto here = there;
  here.words = words.data();
  here.device = {};
  const nn::BitStep& reader = steps_.steps()[static_cast<std::size_t>(steps_.last_layer())];
  Matrix<float> values = quant::dequantise(quant::unpack(here), reader.input);
  if (reader.aggregates && !adjacency_.col_scale.empty()) {
    for (std::int64_t row = 0; row < values.rows(); ++row) {
      const float scale = adjacency_.col_scale[static_cast<std::size_t>(row)];
      if (scale == 0) continue;
      for (std::int64_t j = 0; j < values.cols(); ++j) values(row, j) /= scale;
    }
  }
  embeddings_.upload(values, placement_.stream);
  return embeddings_;
}

}  // namespace tessera::train
