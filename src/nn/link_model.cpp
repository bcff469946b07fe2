// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/link_model.hpp"

#include <utility>

namespace tessera::nn {

LinkModel::LinkModel(std::unique_ptr<Layer> encoder, const LinkModelOptions& options)
    : Layer(encoder->placement()),
      encoder_(std::move(encoder)),
      decoder_(options.decoder, encoder_->output_width(), encoder_->placement()),
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
  const step::Value embeddings = encoder_->append(StepInputs(in, in.sources, *encoder_));
  return decoder_.append(StepInputs(in, embeddings, decoder_));
}

std::string LinkModel::describe() const {
  return encoder_->describe() + " > " + decoder_.describe();
}

}  // namespace tessera::nn
