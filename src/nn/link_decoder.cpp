// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/link_model.hpp"

#include <array>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "core/names.hpp"

namespace tessera::nn {
namespace {

constexpr std::array<Named<LinkDecoderKind>, 3> decoder_names = {
    {{LinkDecoderKind::dot, "dot"},
     {LinkDecoderKind::distmult, "distmult"},
     {LinkDecoderKind::mlp, "mlp"}}};

}  // namespace

const char* to_string(LinkDecoderKind kind) noexcept { return name_of(decoder_names, kind); }
LinkDecoderKind parse_link_decoder(const std::string& text) {
  return parse_name(decoder_names, "decoder", text);
}

LinkDecoder::Perceptron::Perceptron(std::int64_t width, Placement placement)
    : of_source("source.weight", width, width, Initial::linear(2 * width), placement),
      of_target("target.weight", width, width, Initial::linear(2 * width), placement),
      bias("bias", 1, width, Initial::linear(2 * width), placement),
      weight("score.weight", 1, width, Initial::linear(width), placement),
      constant("score.bias", 1, 1, Initial::linear(width), placement) {}

LinkDecoder::LinkDecoder(LinkDecoderKind kind, std::int64_t width, Placement placement)
    : Layer(placement), kind_(kind), width_(width) {
  if (width < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("embeddings of {} numbers", width),
                "link decoder", "give at least one");
  }
  if (kind == LinkDecoderKind::distmult) {
    relation_.emplace("relation", 1, width, Initial::constant(1), placement);
    register_parameter(*relation_);
  }
  if (kind != LinkDecoderKind::mlp) return;
  perceptron_.emplace(width, placement);
  for (Parameter* parameter : {&perceptron_->of_source, &perceptron_->of_target, &perceptron_->bias,
                               &perceptron_->weight, &perceptron_->constant}) {
    register_parameter(*parameter);
  }
}

step::Value LinkDecoder::build(const StepInputs& in) {
  if (perceptron_) return perceive(in, *perceptron_);
  if (!relation_) return step::pair_dot(in.program, in.sources);
  // Heads of one number each are the products that the relation weighs.
  const step::Value products = step::pair_dot(in.program, in.sources, width_);
  return step::linear(in.program, products, in.parameter(*relation_));
}

/// The products come first: vertices are fewer than pairs.
step::Value LinkDecoder::perceive(const StepInputs& in, Perceptron& learned) const {
  const auto product = [&](Parameter& weight) {
    return step::linear(in.program, in.sources, in.parameter(weight));
  };
  step::Value x =
      step::pair_sum(in.program, product(learned.of_source), product(learned.of_target));
  x = step::add_bias(in.program, x, in.parameter(learned.bias));
  x = step::activate(in.program, x, {.activation = ops::Activation::relu});
  x = step::linear(in.program, x, in.parameter(learned.weight));
  return step::add_bias(in.program, x, in.parameter(learned.constant));
}

std::string LinkDecoder::describe() const {
  return fmt::format("LinkDecoder({}, {})", to_string(kind_), width_);
}

}  // namespace tessera::nn
