// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/core/catalogue.hpp"
#include "tessera/core/dtype.hpp"
#include "tessera/nn/sage.hpp"
#include "tessera/ops/activation.hpp"
#include "tessera/ops/spmm.hpp"

namespace tessera::nn {

enum class ModelKind { gcn, sage, gin, gat, gatv2, agnn, sgc, cheb, lightgcn, gine };

const char* to_string(ModelKind kind) noexcept;
/// An unknown name is an `invalid_argument` error that lists those there are.
ModelKind parse_model_kind(const std::string& text);
/// Every kind that learns from features of vertices alone, with a line about it: all but gine,
/// which needs those of edges, too, and lightgcn, which has an embedding of each vertex instead,
/// and learns links alone.
std::vector<CatalogueEntry> model_kinds();

/// Everything that shapes a model, except the widths of its input and output. Plain values: it is
/// what a checkpoint stores. Fields a kind has no use for are ignored.
struct ModelConfig {
  ModelKind kind = ModelKind::gcn;
  std::int64_t layers = 2;   ///< convolutions; for AGNN, propagation layers between two linear ones
  std::int64_t hidden = 16;  ///< width between layers; per head for GAT and GATv2
  std::int64_t heads = 1;    ///< GAT, GATv2: of all layers but the last
  std::int64_t output_heads = 1;  ///< GAT, GATv2: of the last, averaged
  double input_dropout = 0;       ///< on the features
  double dropout = 0;             ///< on what each layer but the last puts out
  double head_dropout = 0;        ///< graph classification: inside the perceptron at the end
  double attention_dropout = 0;   ///< GAT, GATv2
  double negative_slope = 0.2;    ///< GAT, GATv2
  bool share_weights = false;     ///< GATv2
  SageAggregation aggregation = SageAggregation::mean;  ///< SAGE
  std::int64_t hops = 2;                                ///< SGC's K, Cheb's K
  bool train_eps = false;                               ///< GIN, GINE
  std::int64_t edge_features = 0;  ///< GINE: how many an edge has; training takes it from the data
  bool fix_first_beta = false;     ///< AGNN: beta of the first propagation stays 1
  ops::Activation activation = ops::Activation::relu;
  bool batch_norm = false;  ///< between layers
  bool residual = false;    ///< around layers whose input and output have the same width
  /// Graph classification: how vertices become a graph; the model then ends in a perceptron.
  std::optional<ops::Reduction> readout;
  /// SGC, or a GCN without input dropout: the features given have been propagated beforehand
  /// (`precomputed_hops`).
  bool precomputed = false;
  /// Only the first layer's parameters have weight decay, as in the GCN paper.
  bool decay_first_layer_only = false;
  /// GCN, GIN: bits of weights, features and activations, one number for all layers or one for
  /// each. Empty: all of them.
  std::vector<std::int64_t> bits = {};

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

/// What the model's paper used. `dataset` matters where a paper chose differently for one: GAT and
/// AGNN on "pubmed". With `graph_task` the readout is set, too.
ModelConfig paper_defaults(ModelKind kind, const std::string& dataset = {},
                           bool graph_task = false);

/// Throws `invalid_argument` naming the field that makes no sense, and what would.
void validate(const ModelConfig& config);

/// How often features must be propagated for a `precomputed` model: K for SGC, 1 for GCN. Throws
/// `unsupported` for models that cannot have it.
std::int64_t precomputed_hops(const ModelConfig& config);

/// Whether a model reads features of edges, and needs them.
bool reads_edges(const ModelConfig& config) noexcept;

/// How many edges away lies what a vertex's result depends on.
std::int64_t num_hops(const ModelConfig& config);

/// Bits of a layer, 0 where it has all of them.
int layer_bits(const ModelConfig& config, std::int64_t layer);

/// "4" or "8,4,8"; an `invalid_argument` error for anything else. And back.
std::vector<std::int64_t> parse_bits(const std::string& text);
std::string bits_text(const std::vector<std::int64_t>& bits);

/// One line: "gcn, 2 layers, 16 hidden, …".
std::string describe(const ModelConfig& config);

/// The size of what a model is trained on.
struct DataShape {
  std::int64_t vertices = 0;
  std::int64_t edges = 0;
  std::int64_t features = 0;
  std::int64_t feature_entries = 0;  ///< stored entries of sparse features; 0: dense
  std::int64_t outputs = 0;          ///< classes
  std::int64_t graphs = 1;
};

struct PredictedMemory {
  std::int64_t parameters = 0;   ///< bytes: values, gradients and two moments
  std::int64_t activations = 0;  ///< what forward keeps and backward writes
  std::int64_t graph = 0;        ///< the adjacency, its transpose, and what layers derive
  std::int64_t features = 0;
  std::int64_t total() const { return parameters + activations + graph + features; }
};

/// About how many numbers a model's tensors have, without building it: never less than a half or
/// more than twice as many.
std::int64_t predicted_parameters(const ModelConfig& config, const DataShape& shape);

/// What training such a model on such data takes, without building either.
PredictedMemory predicted_memory(const ModelConfig& config, const DataShape& shape,
                                 Precision precision = Precision::fp32);

}  // namespace tessera::nn
