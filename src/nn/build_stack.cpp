// SPDX-License-Identifier: Apache-2.0
#include "nn/build_stack.hpp"

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/nn/agnn.hpp"
#include "tessera/nn/dense.hpp"
#include "tessera/nn/gat.hpp"
#include "tessera/nn/gcn.hpp"
#include "tessera/nn/gin.hpp"
#include "tessera/nn/powers.hpp"
#include "tessera/nn/sage.hpp"
#include "tessera/nn/sequential.hpp"

namespace tessera::nn {
namespace {

/// One convolution of a stack.
struct Place {
  std::int64_t index = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;  ///< of the whole layer, all heads together
  bool last = false;     ///< puts out logits
};

GatOptions attention_options(const ModelConfig& config, const Place& place,
                             const EpilogueOptions& output) {
  return {.in = place.in,
          .out = place.last ? place.out : config.hidden,
          .heads = place.last ? config.output_heads : config.heads,
          .concat = !place.last,
          .negative_slope = config.negative_slope,
          .dropout = config.attention_dropout,
          .share_weights = config.share_weights,
          .output = output};
}

std::unique_ptr<Layer> convolution(const ModelConfig& config, const Place& place,
                                   const EpilogueOptions& output, Placement placement) {
  const std::int64_t in = place.in, out = place.out;
  const int bits = layer_bits(config, place.index);
  const bool rounds_input = place.index > 0;
  switch (config.kind) {
    case ModelKind::gcn:
      return std::make_unique<Gcn>(GcnOptions{.in = in,
                                              .out = out,
                                              .precomputed = config.precomputed && place.index == 0,
                                              .bits = bits,
                                              .rounds_input = rounds_input,
                                              .output = output},
                                   placement);
    case ModelKind::sage:
      return std::make_unique<Sage>(
          SageOptions{.in = in, .out = out, .aggregation = config.aggregation, .output = output},
          placement);
    case ModelKind::gin:
    case ModelKind::gine:
      return std::make_unique<Gin>(
          GinOptions{.in = in,
                     .hidden = config.hidden,
                     .out = out,
                     .train_eps = config.train_eps,
                     .output = output,
                     .bits = bits,
                     .rounds_input = rounds_input,
                     .edge_features = reads_edges(config) ? config.edge_features : 0},
          placement);
    case ModelKind::gat:
      return std::make_unique<Gat>(attention_options(config, place, output), placement);
    case ModelKind::gatv2:
      return std::make_unique<Gatv2>(attention_options(config, place, output), placement);
    case ModelKind::cheb:
      return std::make_unique<Cheb>(
          ChebOptions{.in = in, .out = out, .order = config.hops, .output = output}, placement);
    case ModelKind::sgc:
      return std::make_unique<Sgc>(SgcOptions{.in = in,
                                              .out = out,
                                              .hops = config.hops,
                                              .precomputed = config.precomputed,
                                              .output = output},
                                   placement);
    case ModelKind::agnn:
    case ModelKind::lightgcn: break;
  }
  throw Error(ErrorCode::internal, "the model is not a stack of convolutions", "model");
}

EpilogueOptions hidden_epilogue(const ModelConfig& config, bool activates, bool drops) {
  EpilogueOptions output;
  if (activates) output.activation = config.activation;
  if (drops) output.dropout = config.dropout;
  return output;
}

/// Convolution, batch norm, activation, residual, dropout: what is not asked for is left out, and
/// activation and dropout go into the layer before them where nothing stands between.
void add_block(const ModelConfig& config, const Place& place, Sequential& stack) {
  const Placement placement = stack.placement();
  const std::string name = fmt::format("convs.{}", place.index);
  if (place.last) {
    stack.add(name, convolution(config, place, {}, placement));
    return;
  }
  const bool residual = config.residual && place.in == place.out;
  const bool normed = config.batch_norm;
  auto conv =
      convolution(config, place, hidden_epilogue(config, !normed, !normed && !residual), placement);
  BatchNormLayerOptions norm;
  norm.width = place.out;
  norm.output = hidden_epilogue(config, true, !residual);
  norm.output.bias = false;
  const auto add_to = [&](Sequential& layers) {
    layers.add(name, std::move(conv));
    if (!normed) return;
    layers.add(fmt::format("norms.{}", place.index), std::make_unique<BatchNorm>(norm, placement));
  };
  if (!residual) return add_to(stack);
  auto inner = std::make_unique<Sequential>(placement);
  add_to(*inner);
  stack.add("", std::make_unique<Residual>(std::move(inner), placement));
  if (config.dropout > 0) {
    ActivationLayerOptions dropout;
    dropout.width = place.out;
    dropout.output.dropout = config.dropout;
    stack.add("", std::make_unique<ActivationLayer>(dropout, placement));
  }
}

void add_linear(const char* name, std::int64_t in, std::int64_t out, const EpilogueOptions& output,
                Sequential& stack) {
  stack.add(name, std::make_unique<Linear>(LinearOptions{in, out, output}, stack.placement()));
}

/// Propagations by attention, between two linear layers.
void build_agnn(const ModelConfig& config, std::int64_t features, std::int64_t outputs,
                Sequential& stack) {
  add_linear("lin1", features, config.hidden, hidden_epilogue(config, true, false), stack);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    AgnnOptions options;
    options.width = config.hidden;
    options.requires_grad = i > 0 || !config.fix_first_beta;
    if (i + 1 == config.layers) options.output.dropout = config.dropout;
    stack.add(fmt::format("prop{}", i + 1), std::make_unique<Agnn>(options, stack.placement()));
  }
  if (!config.readout) add_linear("lin2", config.hidden, outputs, {}, stack);
}

void build_convolutions(const ModelConfig& config, std::int64_t features, std::int64_t outputs,
                        Sequential& stack) {
  const bool attends = config.kind == ModelKind::gat || config.kind == ModelKind::gatv2;
  const std::int64_t hidden = attends ? config.hidden * config.heads : config.hidden;
  Place place{0, features, hidden, false};
  for (; place.index < config.layers; ++place.index, place.in = hidden) {
    place.last = place.index + 1 == config.layers && !config.readout;
    if (place.last) place.out = outputs;
    add_block(config, place, stack);
  }
}

}  // namespace

void build_stack(const ModelConfig& config, std::int64_t features, std::int64_t outputs,
                 Sequential& stack) {
  if (config.kind == ModelKind::agnn) {
    build_agnn(config, features, outputs, stack);
  } else if (config.kind == ModelKind::lightgcn) {
    stack.add("", std::make_unique<LightGcn>(LightGcnOptions{features, outputs, config.layers},
                                             stack.placement()));
  } else {
    build_convolutions(config, features, outputs, stack);
  }
  if (!config.readout) return;
  const std::int64_t width = stack.output_width();
  stack.add("",
            std::make_unique<Readout>(ReadoutOptions{width, *config.readout}, stack.placement()));
  EpilogueOptions hidden;
  hidden.activation = ops::Activation::relu;
  hidden.dropout = config.head_dropout;
  add_linear("mlp.lins.0", width, width, hidden, stack);
  add_linear("mlp.lins.1", width, outputs, {}, stack);
}

}  // namespace tessera::nn
