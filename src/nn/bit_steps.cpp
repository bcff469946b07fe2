// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/bit_network.hpp"

#include <utility>

#include <fmt/format.h>

#include "quant/code_steps.hpp"
#include "tessera/core/error.hpp"

namespace tessera::nn {
namespace {

using Steps = quant::CodeSteps<float>;

Steps steps_of(std::span<const float> ranges, std::size_t range, int bits) {
  return {ranges[range * 2], ranges[range * 2 + 1], bits};
}

quant::BitTensor codes_of(const Parameter& parameter, std::span<const float> ranges, int bits) {
  const auto weight = parameter.value.as<float>();
  Matrix<std::uint16_t> codes(weight.rows, weight.cols);
  for (std::int64_t j = 0; j < weight.rows; ++j) {
    const Steps steps = steps_of(ranges, static_cast<std::size_t>(j), bits);
    for (std::int64_t k = 0; k < weight.cols; ++k) {
      codes(j, k) = static_cast<std::uint16_t>(steps.code(weight(j, k)));
    }
  }
  return quant::pack_rows(codes, bits);
}

}  // namespace

quant::Affine affine_of(std::span<const float> ranges, int bits) {
  quant::Affine affine;
  affine.bits = bits;
  affine.granularity =
      ranges.size() == 2 ? quant::Granularity::tensor : quant::Granularity::columns;
  for (std::size_t i = 0; i < ranges.size() / 2; ++i) {
    const Steps steps = steps_of(ranges, i, bits);
    // A range of no width has nothing but 0.
    affine.scale.push_back(steps.step > 0 ? steps.step : 1.0f);
    affine.lower.push_back(steps.step > 0 ? -steps.zero * steps.step : 0.0f);
  }
  return affine;
}

BitStep& BitSteps::last() {
  if (!steps_.empty()) return steps_.back();
  throw Error(ErrorCode::internal, "an epilogue without a product", "bit steps");
}

void BitSteps::multiply(std::string layer, const Parameter& weight, const Rounder& weight_rounder,
                        const Rounder* input) {
  BitStep step;
  step.layer = std::move(layer);
  step.in = weight.value.cols();
  step.out = weight.value.rows();
  const int bits = weight_rounder.bits();
  if (input == nullptr) {
    takes_plain_features_ = true;
  } else {
    step.input = affine_of(input->last_ranges(), input->bits());
  }
  const std::vector<float> ranges = weight_rounder.last_ranges();
  step.weights = codes_of(weight, ranges, bits);
  step.weight_ranges = affine_of(ranges, bits);
  step.weight_ranges.granularity = quant::Granularity::columns;
  steps_.push_back(std::move(step));
}

void BitSteps::aggregate(std::string layer, std::int64_t width, Derivation adjacency, float own,
                         const Rounder& input) {
  BitStep step;
  step.layer = std::move(layer);
  step.aggregates = true;
  step.in = step.out = width;
  step.input = affine_of(input.last_ranges(), input.bits());
  step.adjacency = adjacency;
  step.own = own;
  steps_.push_back(std::move(step));
}

void BitSteps::add(const Tensor& bias) {
  const auto values = bias.as<float>();
  BitStep& step = last();
  step.bias.resize(static_cast<std::size_t>(values.cols));
  for (std::int64_t j = 0; j < values.cols; ++j) {
    step.bias[static_cast<std::size_t>(j)] += values(0, j);
  }
}

void BitSteps::normalise(std::vector<float> scale, std::vector<float> shift) {
  BitStep& step = last();
  if (!step.norm_scale.empty() || step.activation != ops::BitActivation::none) {
    throw Error(ErrorCode::unsupported, "a batch norm behind an activation in integers", step.layer,
                "predict with rounded numbers (--rounded)");
  }
  step.norm_scale = std::move(scale);
  step.norm_shift = std::move(shift);
}

void BitSteps::activate(ops::Activation activation) {
  if (activation == ops::Activation::none) return;
  BitStep& step = last();
  if (activation != ops::Activation::relu) {
    throw Error(ErrorCode::unsupported, fmt::format("{} in integers", ops::to_string(activation)),
                step.layer, "predict with rounded numbers (--rounded), or train with relu");
  }
  step.activation = ops::BitActivation::relu;
}

BitSteps BitSteps::first(std::int64_t count) const {
  BitSteps some;
  some.steps_.assign(steps_.begin(), steps_.begin() + count);
  some.takes_plain_features_ = takes_plain_features_;
  return some;
}

void BitSteps::set_feature_range(quant::Affine range) {
  if (takes_plain_features_) steps_.front().input = std::move(range);
}

}  // namespace tessera::nn
