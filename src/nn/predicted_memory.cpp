// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "tessera/nn/config.hpp"

namespace tessera::nn {
namespace {

/// One layer of a stack, as the count sees it.
struct LayerShape {
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool first = false;   ///< has no gradient of its input
  bool last = false;    ///< has neither activation nor dropout
  bool sparse = false;  ///< reads sparse features
};

struct Count {
  std::int64_t parameters = 0;
  std::int64_t per_vertex = 0;  ///< elements kept for each vertex
};

bool attends(const ModelConfig& config) {
  return config.kind == ModelKind::gat || config.kind == ModelKind::gatv2;
}

/// Numbers for each vertex beside the output and the gradient of the input.
std::int64_t inner_width(const ModelConfig& config, const LayerShape& layer) {
  const std::int64_t narrow = layer.sparse ? layer.out : std::min(layer.in, layer.out);
  const std::int64_t heads = layer.last ? config.output_heads : config.heads;
  const std::int64_t attended = layer.last ? heads * layer.out : layer.out;
  switch (config.kind) {
    case ModelKind::gcn:
    case ModelKind::sage: return layer.out + 2 * narrow;
    case ModelKind::gin: return 2 * layer.out + 8 * config.hidden;
    case ModelKind::gat: return 3 * attended + 5 * heads + (heads > 1 && layer.last ? attended : 0);
    case ModelKind::gatv2: return 6 * attended + heads;
    case ModelKind::agnn: return 5 * layer.out + 1;
    case ModelKind::sgc: return 3 * layer.out;
    case ModelKind::cheb: return std::min<std::int64_t>(config.hops + 1, 4) * layer.out;
  }
  return 0;
}

std::int64_t parameter_count(const ModelConfig& config, const LayerShape& layer) {
  const std::int64_t heads = layer.last ? config.output_heads : config.heads;
  const std::int64_t attended = layer.last ? heads * layer.out : layer.out;
  switch (config.kind) {
    case ModelKind::gcn:
    case ModelKind::sgc: return layer.in * layer.out + layer.out;
    case ModelKind::sage: return 2 * layer.in * layer.out + layer.out;
    case ModelKind::gin: return (layer.in + layer.out + 4) * config.hidden + layer.out;
    case ModelKind::gat: return layer.in * attended + 3 * attended;
    case ModelKind::gatv2: return 2 * layer.in * attended + 4 * attended;
    case ModelKind::agnn: return 1;
    case ModelKind::cheb: return config.hops * layer.in * layer.out + layer.out;
  }
  return 0;
}

void add_layer(const ModelConfig& config, const LayerShape& layer, Count& count) {
  count.parameters += parameter_count(config, layer);
  count.per_vertex +=
      inner_width(config, layer) + (layer.last ? 0 : layer.out) + (layer.first ? 0 : layer.in);
  if (config.batch_norm && !layer.last) {
    count.parameters += 4 * layer.out;
    count.per_vertex += 3 * layer.out;
  }
  if (config.residual && layer.in == layer.out && !layer.last) count.per_vertex += 3 * layer.out;
}

void add_linear(std::int64_t in, std::int64_t out, bool first, Count& count) {
  count.parameters += in * out + out;
  count.per_vertex += 2 * out + (first ? 0 : in);
}

Count count_layers(const ModelConfig& config, const DataShape& shape) {
  Count count;
  const bool sparse = shape.feature_entries > 0;
  const std::int64_t hidden = config.hidden * (attends(config) ? config.heads : 1);
  if (config.kind == ModelKind::agnn) {
    add_linear(shape.features, hidden, true, count);
    for (std::int64_t i = 0; i < config.layers; ++i) {
      add_layer(config, {hidden, hidden, false, false, false}, count);
    }
    if (!config.readout) add_linear(hidden, shape.outputs, false, count);
    return count;
  }
  std::int64_t in = shape.features;
  for (std::int64_t i = 0; i < config.layers; ++i, in = hidden) {
    const bool last = i + 1 == config.layers && !config.readout;
    add_layer(config, {in, last ? shape.outputs : hidden, i == 0, last, i == 0 && sparse}, count);
  }
  return count;
}

/// A compressed matrix by rows and by columns, with the map between the two.
std::int64_t matrix_bytes(std::int64_t rows, std::int64_t cols, std::int64_t entries) {
  return 8 * (rows + cols + 2) + (4 + 4 + 8) * entries;
}

}  // namespace

PredictedMemory predicted_memory(const ModelConfig& config, const DataShape& shape,
                                 Precision precision) {
  const auto element = static_cast<std::int64_t>(bytes_per_element(precision));
  Count count = count_layers(config, shape);
  std::int64_t per_graph = 0;
  if (config.readout) {
    const std::int64_t hidden = config.hidden * (attends(config) ? config.heads : 1);
    Count head;
    add_linear(hidden, hidden, false, head);
    add_linear(hidden, shape.outputs, false, head);
    count.parameters += head.parameters;
    count.per_vertex += hidden;
    per_graph = head.per_vertex + hidden;
  }
  PredictedMemory memory;
  memory.parameters = 4 * element * count.parameters;
  // The gradient of the loss is one more matrix of logits.
  memory.activations = element * (count.per_vertex * shape.vertices + per_graph * shape.graphs +
                                  shape.outputs * (config.readout ? shape.graphs : shape.vertices));
  memory.graph = matrix_bytes(shape.vertices, shape.vertices, shape.edges) +
                 matrix_bytes(shape.vertices, shape.vertices, shape.edges + shape.vertices);
  const std::int64_t dropped_copies = config.input_dropout > 0 ? 2 : 1;
  if (shape.feature_entries > 0) {
    memory.features = matrix_bytes(shape.vertices, shape.features, shape.feature_entries) +
                      (4 + dropped_copies * element) * shape.feature_entries;
  } else {
    memory.features = dropped_copies * element * shape.vertices * shape.features;
  }
  return memory;
}

}  // namespace tessera::nn
