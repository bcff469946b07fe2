// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "tessera/nn/config.hpp"

namespace tessera::nn {
namespace {

/// Counted in doubles, which are exact for any model that can be and never overflow for the rest.
struct LayerShape {
  double in = 0;
  double out = 0;
  bool first = false;   ///< has no gradient of its input
  bool last = false;    ///< has neither activation nor dropout
  bool sparse = false;  ///< reads sparse features
};

struct Count {
  double parameters = 0;
  double per_vertex = 0;  ///< elements kept for each vertex
  double per_edge = 0;
};

double real(std::int64_t count) { return static_cast<double>(count); }

/// Sums of several of these still fit 64 bits.
std::int64_t limited(double bytes) {
  constexpr double most = 0x1p60;
  return static_cast<std::int64_t>(std::min(bytes, most));
}

bool attends(const ModelConfig& config) {
  return config.kind == ModelKind::gat || config.kind == ModelKind::gatv2;
}

/// Numbers for each vertex beside the output and the gradient of the input.
double inner_width(const ModelConfig& config, const LayerShape& layer) {
  const double narrow = layer.sparse ? layer.out : std::min(layer.in, layer.out);
  const double heads = real(layer.last ? config.output_heads : config.heads);
  const double attended = layer.last ? heads * layer.out : layer.out;
  switch (config.kind) {
    case ModelKind::gcn:
    case ModelKind::sage: return layer.out + 2 * narrow;
    case ModelKind::gin:
    case ModelKind::gine: return 2 * layer.out + 4 * real(config.hidden);
    case ModelKind::gat: return 3 * attended + 5 * heads + (heads > 1 && layer.last ? attended : 0);
    case ModelKind::gatv2: return 6 * attended + heads;
    case ModelKind::agnn: return 5 * layer.out + 1;
    case ModelKind::sgc: return 3 * layer.out;
    case ModelKind::cheb: return std::min(real(config.hops) + 1, 4.0) * layer.out;
    case ModelKind::lightgcn: return 3 * layer.out;
  }
  return 0;
}

double parameter_count(const ModelConfig& config, const LayerShape& layer) {
  const double heads = real(layer.last ? config.output_heads : config.heads);
  const double attended = layer.last ? heads * layer.out : layer.out;
  switch (config.kind) {
    case ModelKind::gcn:
    case ModelKind::sgc: return layer.in * layer.out + layer.out;
    case ModelKind::sage: return 2 * layer.in * layer.out + layer.out;
    case ModelKind::gin: return (layer.in + layer.out + 4) * real(config.hidden) + layer.out;
    case ModelKind::gine:
      return (layer.in + layer.out + 4) * real(config.hidden) + layer.out +
             (real(config.edge_features) + 1) * layer.in;
    case ModelKind::gat: return layer.in * attended + 3 * attended;
    case ModelKind::gatv2: return 2 * layer.in * attended + 4 * attended;
    case ModelKind::agnn: return 1;
    case ModelKind::cheb: return real(config.hops) * layer.in * layer.out + layer.out;
    case ModelKind::lightgcn: return layer.in * layer.out;
  }
  return 0;
}

/// `times` layers of one shape.
void add_layers(const ModelConfig& config, const LayerShape& layer, double times, Count& count) {
  double parameters = parameter_count(config, layer);
  double per_vertex =
      inner_width(config, layer) + (layer.last ? 0 : layer.out) + (layer.first ? 0 : layer.in);
  if (config.batch_norm && !layer.last) {
    parameters += 4 * layer.out;
    per_vertex += 3 * layer.out;
  }
  if (config.residual && layer.in == layer.out && !layer.last) per_vertex += 3 * layer.out;
  // What edges say, and its gradient.
  if (reads_edges(config)) count.per_edge += 2 * times * layer.in;
  count.parameters += times * parameters;
  count.per_vertex += times * per_vertex;
}

void add_linear(double in, double out, bool first, Count& count) {
  count.parameters += in * out + out;
  count.per_vertex += 2 * out + (first ? 0 : in);
}

double hidden_width(const ModelConfig& config) {
  return real(config.hidden) * (attends(config) ? real(config.heads) : 1);
}

Count count_layers(const ModelConfig& config, const DataShape& shape) {
  Count count;
  const bool sparse = shape.feature_entries > 0;
  const double hidden = hidden_width(config);
  const double layers = real(config.layers);
  const double features = real(shape.features);
  const double outputs = real(shape.outputs);
  if (config.kind == ModelKind::agnn) {
    add_linear(features, hidden, true, count);
    add_layers(config, {hidden, hidden, false, false, false}, layers, count);
    if (!config.readout) add_linear(hidden, outputs, false, count);
    return count;
  }
  const bool only_one =
      (config.layers == 1 && !config.readout) || config.kind == ModelKind::lightgcn;
  add_layers(config, {features, only_one ? outputs : hidden, true, only_one, sparse}, 1, count);
  if (only_one) return count;
  const double inner = layers - (config.readout ? 1 : 2);
  add_layers(config, {hidden, hidden, false, false, false}, inner, count);
  if (!config.readout) add_layers(config, {hidden, outputs, false, true, false}, 1, count);
  return count;
}

/// The perceptron at the end of a model of graphs.
Count count_head(const ModelConfig& config, const DataShape& shape) {
  Count head;
  if (!config.readout) return head;
  const double hidden = hidden_width(config);
  add_linear(hidden, hidden, false, head);
  add_linear(hidden, real(shape.outputs), false, head);
  return head;
}

/// A compressed matrix by rows and by columns, with the map between the two.
std::int64_t matrix_bytes(std::int64_t rows, std::int64_t cols, std::int64_t entries) {
  return 8 * (rows + cols + 2) + (4 + 4 + 8) * entries;
}

}  // namespace

std::int64_t predicted_parameters(const ModelConfig& config, const DataShape& shape) {
  return limited(count_layers(config, shape).parameters + count_head(config, shape).parameters);
}

PredictedMemory predicted_memory(const ModelConfig& config, const DataShape& shape,
                                 Precision precision) {
  const auto element = static_cast<double>(bytes_per_element(precision));
  const Count layers = count_layers(config, shape);
  const Count head = count_head(config, shape);
  const double hidden = config.readout ? hidden_width(config) : 0;
  const double vertices = real(shape.vertices);
  const double graphs = real(shape.graphs);
  PredictedMemory memory;
  // Value and two moments are never of 16 bits, the gradient and a copy may be.
  const double learned = element < 4 ? 3 * 4 + 2 * element : 4 * element;
  memory.parameters = limited(learned * (layers.parameters + head.parameters));
  // The gradient of the loss is one more matrix of logits.
  memory.activations = limited(
      element * ((layers.per_vertex + hidden) * vertices + (head.per_vertex + hidden) * graphs +
                 real(shape.outputs) * (config.readout ? graphs : vertices) +
                 layers.per_edge * real(shape.edges)));
  memory.graph = matrix_bytes(shape.vertices, shape.vertices, shape.edges) +
                 matrix_bytes(shape.vertices, shape.vertices, shape.edges + shape.vertices);
  const double dropped_copies = config.input_dropout > 0 ? 2 : 1;
  if (shape.feature_entries > 0) {
    memory.features = matrix_bytes(shape.vertices, shape.features, shape.feature_entries) +
                      limited((4 + dropped_copies * element) * real(shape.feature_entries));
  } else {
    memory.features = limited(dropped_copies * element * vertices * real(shape.features));
  }
  if (reads_edges(config)) {
    memory.features += limited(element * real(shape.edges) * real(config.edge_features));
  }
  return memory;
}

}  // namespace tessera::nn
