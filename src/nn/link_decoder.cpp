// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/link_model.hpp"

#include <array>
#include <numeric>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/graph/build.hpp"

#include "core/names.hpp"

namespace tessera::nn {
namespace {

constexpr std::array<Named<LinkDecoderKind>, 3> decoder_names = {
    {{LinkDecoderKind::dot, "dot"},
     {LinkDecoderKind::distmult, "distmult"},
     {LinkDecoderKind::mlp, "mlp"}}};

constexpr int of_sources = 0, of_targets = 1;  ///< graphs of the perceptron

BuildOptions options_in(const Place& place) {
  BuildOptions options;
  options.duplicates = Duplicates::keep;
  options.device = place.device;
  options.memory = place.memory;
  options.stream = place.stream;
  return options;
}

/// One edge in each row: from an end of the pair.
Graph ends_of(const std::vector<VertexId>& ends, VertexId num_vertices, const Place& place) {
  std::vector<VertexId> rows(ends.size());
  std::iota(rows.begin(), rows.end(), VertexId{0});
  return from_coo(static_cast<VertexId>(rows.size()), num_vertices, rows, ends, {},
                  options_in(place));
}

}  // namespace

const char* to_string(LinkDecoderKind kind) noexcept { return name_of(decoder_names, kind); }
LinkDecoderKind parse_link_decoder(const std::string& text) {
  return parse_name(decoder_names, "decoder", text);
}

PairGraphs::PairGraphs(LinkDecoderKind kind, const links::Pairs& pairs, VertexId num_vertices,
                       const Place& place, const ops::PlanOptions& plans)
    : size_(pairs.size()) {
  if (kind == LinkDecoderKind::mlp) {
    graphs_.emplace_back(ends_of(pairs.sources, num_vertices, place), place, plans);
    graphs_.emplace_back(ends_of(pairs.targets, num_vertices, place), place, plans);
    return;
  }
  BuildOptions options = options_in(place);
  options.keep_edge_ids = true;
  Graph graph = from_coo(num_vertices, num_vertices, pairs.targets, pairs.sources, {}, options);
  rows_ = graph.edge_ids();
  graphs_.emplace_back(std::move(graph), place, plans);
}

void PairGraphs::append_to(std::vector<Topology*>& graphs) {
  for (Topology& graph : graphs_) graphs.push_back(&graph);
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
  if (!relation_) return step::edge_dot(in.program, in.sources, in.sources);
  // Heads of one number each are the products that the relation weighs.
  const step::Value products = step::edge_dot(in.program, in.sources, in.sources, width_);
  return step::linear(in.program, products, in.parameter(*relation_));
}

/// The products come first: vertices are fewer than pairs.
step::Value LinkDecoder::perceive(const StepInputs& in, Perceptron& learned) const {
  const auto ends = [&](Parameter& weight, int graph) {
    const step::Value x = step::linear(in.program, in.sources, in.parameter(weight));
    return step::gather_rows(in.program, x, graph);
  };
  step::Value x = step::add(in.program, ends(learned.of_source, of_sources),
                            ends(learned.of_target, of_targets));
  x = step::add_bias(in.program, x, in.parameter(learned.bias));
  x = step::activate(in.program, x, {.activation = ops::Activation::relu});
  x = step::linear(in.program, x, in.parameter(learned.weight));
  return step::add_bias(in.program, x, in.parameter(learned.constant));
}

std::string LinkDecoder::describe() const {
  return fmt::format("LinkDecoder({}, {})", to_string(kind_), width_);
}

}  // namespace tessera::nn
