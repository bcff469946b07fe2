// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/triple_model.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/step/relation_nodes.hpp"

namespace tessera::nn {
namespace {

const TripleModelOptions& checked(const TripleModelOptions& options) {
  const auto reject = [](const std::string& what, const char* fix) {
    throw Error(ErrorCode::invalid_argument, what, "model of triples", fix);
  };
  if (options.entities < 1 || options.relations < 1) {
    reject(fmt::format("{} entities and {} relations", options.entities, options.relations),
           "give at least one of each");
  }
  if (options.width < 1)
    reject(fmt::format("embeddings of {} numbers", options.width), "give more");
  if (options.layers < 0) reject("a negative number of layers", "give 0 for DistMult alone");
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    reject(fmt::format("a dropout of {}", options.dropout), "give at least 0 and less than 1");
  }
  if (!(options.penalty >= 0)) {
    reject(fmt::format("a penalty of {}", options.penalty), "give at least 0");
  }
  return options;
}

RgcnOptions layer_of(const TripleModelOptions& options, bool is_last) {
  RgcnOptions layer{.in = options.width,
                    .out = options.width,
                    .relations = 2 * options.relations,
                    .blocks = options.blocks,
                    .bases = options.bases};
  if (is_last) return layer;
  layer.output.activation = ops::Activation::relu;
  layer.output.dropout = options.dropout;
  return layer;
}

}  // namespace

EntityEncoder::EntityEncoder(const TripleModelOptions& options, Placement placement)
    : Layer(placement),
      embedding_("embedding.weight", options.entities, options.width,
                 Initial::glorot(options.entities, options.width), placement) {
  register_parameter(embedding_);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    layers_.push_back(
        std::make_unique<Rgcn>(layer_of(options, i + 1 == options.layers), placement));
    register_layer(fmt::format("convs.{}", i), *layers_.back());
  }
  set_needs_input_gradient(false);
}

std::int64_t EntityEncoder::num_graphs() const {
  return 3 * static_cast<std::int64_t>(layers_.size());
}

step::Value EntityEncoder::build(const StepInputs& in) {
  const int outer = in.program.first_graph();
  step::Value x = in.parameter(embedding_);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    in.program.set_first_graph(outer + 3 * static_cast<int>(i));
    x = layers_[i]->append(StepInputs(in, x, *layers_[i]));
  }
  in.program.set_first_graph(outer);
  return x;
}

std::string EntityEncoder::describe() const {
  std::string text =
      fmt::format("Embedding({}, {})", embedding_.value.rows(), embedding_.value.cols());
  for (const auto& layer : layers_) text += " > " + layer->describe();
  return text;
}

DistMult::DistMult(std::int64_t relations, std::int64_t width, double penalty, Placement placement)
    : Layer(placement),
      relations_("relation.weight", relations, width, Initial::glorot(relations, width), placement),
      penalty_(penalty) {
  register_parameter(relations_);
}

step::Value DistMult::build(const StepInputs& in) {
  const step::Value x = step::penalised(in.program, in.sources, penalty_);
  const step::Value relations = step::penalised(in.program, in.parameter(relations_), penalty_);
  // Heads of one number each are the products that the relation weighs.
  const step::Value products = step::pair_dot(in.program, x, relations_.value.cols());
  return step::grouped_linear(in.program, products, relations, {});
}

std::string DistMult::describe() const {
  return fmt::format("DistMult({} relations, {})", relations_.value.rows(),
                     relations_.value.cols());
}

TripleModel::TripleModel(const TripleModelOptions& options, Placement placement)
    : Layer(placement),
      encoder_(checked(options), placement),
      decoder_(options.relations, options.width, options.penalty, placement) {
  register_layer("encoder", encoder_);
  register_layer("decoder", decoder_);
  assign_numbers(0);
  set_needs_input_gradient(false);
}

step::Value TripleModel::build(const StepInputs& in) {
  const step::Value entities = encoder_.append(StepInputs(in, in.sources, encoder_));
  const int outer = in.program.first_graph();
  in.program.set_first_graph(outer + static_cast<int>(encoder_.num_graphs()));
  const step::Value scores = decoder_.append(StepInputs(in, entities, decoder_));
  in.program.set_first_graph(outer);
  return scores;
}

std::string TripleModel::describe() const {
  return encoder_.describe() + " > " + decoder_.describe();
}

}  // namespace tessera::nn
