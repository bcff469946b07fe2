// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/relational_model.hpp"

#include <array>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/nn/relational_gat.hpp"
#include "tessera/nn/relational_sage.hpp"
#include "tessera/nn/rgcn.hpp"
#include "tessera/step/relation_nodes.hpp"

#include "core/names.hpp"

namespace tessera::nn {
namespace {

constexpr std::array<Named<RelationalKind>, 3> kind_names = {
    {{RelationalKind::rgcn, "rgcn"}, {RelationalKind::sage, "sage"}, {RelationalKind::gat, "gat"}}};

[[noreturn]] void reject(const std::string& what, const char* fix) {
  throw Error(ErrorCode::invalid_argument, what, "model of relations", fix);
}

const RelationalModelOptions& checked(const RelationalModelOptions& options) {
  if (options.layers < 1) reject(fmt::format("{} layers", options.layers), "give at least one");
  if (options.hidden < 1) reject(fmt::format("a width of {}", options.hidden), "give more");
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    reject(fmt::format("a dropout of {}", options.dropout), "give at least 0 and less than 1");
  }
  const bool is_rgcn = options.kind == RelationalKind::rgcn;
  if (!is_rgcn && (options.blocks > 1 || options.bases > 0)) {
    reject(fmt::format("blocks or bases of {}", to_string(options.kind)), "use rgcn");
  }
  return options;
}

step::Value sum(step::Program& program, step::Value x, int graph) {
  return step::aggregate(program, x, {pattern, ops::Reduction::sum, graph});
}

/// Graphs of a `KindEncoder`.
enum GraphOf : int { groups, featured, embedded };
constexpr std::int64_t encoder_graph_count = 3;

std::unique_ptr<Layer> layer_of(const RelationalModelOptions& options, std::int64_t relations,
                                std::int64_t out, bool is_last, Placement placement) {
  EpilogueOptions output;
  if (!is_last) {
    output.activation =
        options.kind == RelationalKind::gat ? ops::Activation::elu : ops::Activation::relu;
    output.dropout = options.dropout;
  }
  switch (options.kind) {
    case RelationalKind::sage:
      return std::make_unique<RelationalSage>(
          RelationalSageOptions{options.hidden, out, relations, output}, placement);
    case RelationalKind::gat: {
      RelationalGatOptions gat{.in = options.hidden, .out = out, .relations = relations};
      gat.heads = is_last ? 1 : options.heads;
      gat.output = output;
      return std::make_unique<RelationalGat>(gat, placement);
    }
    case RelationalKind::rgcn: break;
  }
  RgcnOptions rgcn{.in = options.hidden, .out = out, .relations = relations};
  rgcn.blocks = is_last ? 1 : options.blocks;
  rgcn.bases = options.bases;
  rgcn.output = output;
  return std::make_unique<Rgcn>(rgcn, placement);
}

}  // namespace

const char* to_string(RelationalKind kind) noexcept { return name_of(kind_names, kind); }
RelationalKind parse_relational_kind(const std::string& text) {
  return parse_name(kind_names, "model of relations", text);
}

KindEncoder::KindEncoder(const RelationalShape& shape, std::int64_t width, Placement placement)
    : Layer(placement), shape_(shape), width_(width) {
  if (shape.features < 1 && shape.embedded < 1) {
    reject("there are neither features nor vertices without them", "give some vertices");
  }
  if (shape.features > 0) {
    weight_ = std::make_unique<Parameter>("weight", shape.featured_kinds, shape.features * width,
                                          Initial::linear(shape.features), placement);
    bias_ = std::make_unique<Parameter>("bias", shape.featured_kinds, width,
                                        Initial::linear(shape.features), placement);
    register_parameter(*weight_);
    register_parameter(*bias_);
  }
  if (shape.embedded > 0) {
    embedding_ = std::make_unique<Parameter>("embedding.weight", shape.embedded, width,
                                             Initial::glorot(width, width), placement);
    register_parameter(*embedding_);
  }
}

std::int64_t KindEncoder::num_graphs() const {
  return shape_.features > 0 ? encoder_graph_count : 0;
}

std::int64_t KindEncoder::input_width() const { return shape_.features > 0 ? shape_.features : 1; }

step::Value KindEncoder::build(const StepInputs& in) {
  step::Program& program = in.program;
  if (!weight_) return in.parameter(*embedding_);
  const step::Value mapped = step::add(
      program, step::grouped_linear(program, in.sources, in.parameter(*weight_), {groups}),
      sum(program, in.parameter(*bias_), groups));
  if (!embedding_) return mapped;
  return step::add(program, sum(program, mapped, featured),
                   sum(program, in.parameter(*embedding_), embedded));
}

std::string KindEncoder::describe() const {
  std::string text = "Kinds(";
  if (weight_) {
    text += fmt::format("{} with up to {} features, ", shape_.featured_kinds, shape_.features);
  }
  if (embedding_) text += fmt::format("{} vertices embedded, ", shape_.embedded);
  return text + fmt::format("{})", width_);
}

RelationalModel::RelationalModel(const RelationalModelOptions& options,
                                 const RelationalShape& shape, Placement placement)
    : Layer(placement),
      encoder_(shape, checked(options).hidden, placement),
      outputs_(shape.outputs) {
  register_layer("encoder", encoder_);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const bool is_last = i + 1 == options.layers;
    layers_.push_back(layer_of(options, shape.relations, is_last ? outputs_ : options.hidden,
                               is_last, placement));
    register_layer(fmt::format("convs.{}", i), *layers_.back());
  }
  assign_numbers(0);
  set_needs_input_gradient(false);
}

std::int64_t RelationalModel::num_graphs() const {
  std::int64_t count = encoder_.num_graphs() + 1;
  for (const auto& layer : layers_) count += layer->num_graphs();
  return count;
}

step::Value RelationalModel::build(const StepInputs& in) {
  const int outer = in.program.first_graph();
  step::Value x = encoder_.append(StepInputs(in, in.sources, encoder_));
  int first = outer + static_cast<int>(encoder_.num_graphs());
  for (const auto& layer : layers_) {
    in.program.set_first_graph(first);
    x = layer->append(StepInputs(in, x, *layer));
    first += static_cast<int>(layer->num_graphs());
  }
  in.program.set_first_graph(first);
  x = sum(in.program, x, 0);
  in.program.set_first_graph(outer);
  return x;
}

std::string RelationalModel::describe() const {
  std::string text = encoder_.describe();
  for (const auto& layer : layers_) text += " > " + layer->describe();
  return text;
}

}  // namespace tessera::nn
