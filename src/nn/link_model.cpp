// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/link_model.hpp"

#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera::nn {
namespace {

std::int64_t embedding_width(const Layer& encoder, bool is_variational) {
  const std::int64_t width = encoder.output_width();
  if (!is_variational) return width;
  if (width % 2 == 0) return width / 2;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} puts out {} numbers, which are no means and deviations",
                          encoder.describe(), width),
              "variational encoder", "make it twice as wide as embeddings");
}

}  // namespace

LinkModel::LinkModel(std::unique_ptr<Layer> encoder, const LinkModelOptions& options)
    : Layer(encoder->placement()),
      encoder_(std::move(encoder)),
      decoder_(options.decoder, embedding_width(*encoder_, options.variational),
               encoder_->placement()),
      is_variational_(options.variational),
      input_dropout_(options.input_dropout, encoder_->placement()) {
  register_layer("encoder", *encoder_);
  register_layer("decoder", decoder_);
  assign_numbers(0);
  set_needs_input_gradient(false);
}

void LinkModel::learn(const Input& input, const Context& context) {
  Layer::learn(input_dropout_.forward(input, number(), context), context);
}

step::Value LinkModel::build(const StepInputs& in) {
  step::Value embeddings = encoder_->append(StepInputs(in, in.sources, *encoder_));
  if (is_variational_ && in.training) {
    embeddings = step::gaussian(in.program, embeddings, number() + 1);
  } else if (is_variational_) {
    embeddings = step::gaussian_mean(in.program, embeddings);
  }
  return decoder_.append(StepInputs(in, embeddings, decoder_));
}

std::string LinkModel::describe() const {
  return encoder_->describe() + (is_variational_ ? " > drawn > " : " > ") + decoder_.describe();
}

}  // namespace tessera::nn
