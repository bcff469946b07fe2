// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/nn/agnn.hpp"
#include "tessera/nn/config.hpp"
#include "tessera/nn/gat.hpp"
#include "tessera/nn/gcn.hpp"
#include "tessera/nn/gin.hpp"
#include "tessera/nn/powers.hpp"
#include "tessera/nn/sage.hpp"

#include "bench/inputs.hpp"
#include "bench/ops.hpp"
#include "bench/wide_check.hpp"
#include "train/host.hpp"

namespace tessera::bench {
namespace {

/// A layer that keeps the width.
std::unique_ptr<nn::Layer> make_layer(nn::ModelKind kind, std::int64_t width, std::int64_t heads,
                                      step::Placement placement) {
  nn::GatOptions attention;
  attention.in = width;
  attention.heads = heads;
  attention.out = width / heads;
  switch (kind) {
    case nn::ModelKind::gcn:
      return std::make_unique<nn::Gcn>(nn::GcnOptions{.in = width, .out = width}, placement);
    case nn::ModelKind::sage:
      return std::make_unique<nn::Sage>(nn::SageOptions{.in = width, .out = width}, placement);
    case nn::ModelKind::gin:
      return std::make_unique<nn::Gin>(nn::GinOptions{.in = width, .out = width}, placement);
    case nn::ModelKind::gat: return std::make_unique<nn::Gat>(attention, placement);
    case nn::ModelKind::gatv2: return std::make_unique<nn::Gatv2>(attention, placement);
    case nn::ModelKind::agnn:
      return std::make_unique<nn::Agnn>(nn::AgnnOptions{.width = width}, placement);
    case nn::ModelKind::sgc:
      return std::make_unique<nn::Sgc>(nn::SgcOptions{.in = width, .out = width, .hops = 2},
                                       placement);
    case nn::ModelKind::cheb:
      return std::make_unique<nn::Cheb>(nn::ChebOptions{.in = width, .out = width}, placement);
    case nn::ModelKind::gine:
      throw Error(ErrorCode::unsupported, "gine reads features of edges, which the graph lacks",
                  "layer", "use another layer");
    case nn::ModelKind::lightgcn:
      throw Error(ErrorCode::unsupported, "lightgcn has an embedding of each vertex, and no input",
                  "layer", "use another layer");
  }
  throw Error(ErrorCode::internal, "a layer without a kind", "bench");
}

/// One layer on dense features: forward and backward as in training, or forward alone.
class LayerTrial : public Trial {
 public:
  LayerTrial(const Problem& problem, nn::ModelKind kind, bool trains)
      : kind_(kind),
        trains_(trains),
        width_(problem.features),
        heads_(problem.heads),
        seed_(problem.seed),
        placement_{Precision::fp32, &default_memory(problem.device)},
        graph_(problem.graph, problem.device),
        x_(placement_),
        gradient_(placement_),
        spent_(placement_) {
    if (!problem.graph.is_square() || width_ < 1) {
      throw Error(ErrorCode::unsupported, "layers need a square graph and a width",
                  problem.graph_name, "use another graph");
    }
    if (width_ % heads_ != 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} features are no multiple of {} heads", width_, heads_), "layer",
                  "use heads that divide the width");
    }
    layer_ = make_layer(kind, width_, heads_, placement_);
    layer_->reset_parameters(seed_);
    x_.upload(random_matrix<float>(problem.graph.num_rows(), width_, seed_));
    gradient_.upload(random_matrix<float>(problem.graph.num_rows(), width_, seed_ + 1));
    spent_.resize(gradient_.rows(), gradient_.cols());
    context_.graph = &graph_;
    context_.training = trains_;
    context_.workspace = &workspace_;
  }

  Gate check() override {
    const step::Placement wide{Precision::fp64};
    const auto reference = make_layer(kind_, width_, heads_, wide);
    copy_state(*layer_, *reference);
    step::Tensor x(wide);
    x.copy_from(train::to_host(x_));
    step::Topology graph(graph_.graph());
    step::Context context = context_;
    context.graph = &graph;
    const step::Tensor& expected = reference->forward(x, context);
    return wide_gate(layer_->forward(x_, context_), expected);
  }

  void run(Stream stream) override {
    context_.stream = stream;
    layer_->forward(x_, context_);
    if (!trains_) return;
    spent_.copy_from(gradient_, stream);
    layer_->backward(spent_, context_);
  }

  std::int64_t bytes() const override {
    const std::int64_t of_pass =
        structure_bytes(graph_.graph(), placement_.device()) + 2 * x_.num_bytes();
    return trains_ ? 2 * of_pass : of_pass;
  }
  std::string kernel() const override {
    const bool on_host = placement_.device().kind == DeviceKind::cpu;
    return fmt::format("layer/{}/forward{}", on_host ? "cpu" : "cuda", trains_ ? "+backward" : "");
  }
  std::string plan() const override { return layer_->describe(); }

 private:
  nn::ModelKind kind_;
  bool trains_;
  std::int64_t width_;
  std::int64_t heads_;
  std::uint64_t seed_;
  step::Placement placement_;
  step::Topology graph_;
  std::unique_ptr<nn::Layer> layer_;
  step::Tensor x_;
  step::Tensor gradient_;
  step::Tensor spent_;
  ops::DenseWorkspace workspace_{placement_.place()};
  step::Context context_;
};

}  // namespace

std::vector<Suite> model_layer_suites() {
  std::vector<Suite> suites;
  for (const CatalogueEntry& entry : nn::model_kinds()) {
    const nn::ModelKind kind = nn::parse_model_kind(entry.name);
    for (const bool trains : {true, false}) {
      Suite suite;
      suite.op = "layer_" + entry.name + (trains ? "" : "_forward");
      suite.summary = trains ? "forward and backward of a layer" : "a layer without its gradients";
      suite.precisions = {Precision::fp32};
      suite.usual_heads = kind == nn::ModelKind::gat || kind == nn::ModelKind::gatv2 ? 8 : 0;
      suite.on_request = true;
      suite.prepare = [kind, trains](const Problem& problem) {
        return std::make_unique<LayerTrial>(problem, kind, trains);
      };
      suites.push_back(std::move(suite));
    }
  }
  return suites;
}

}  // namespace tessera::bench
