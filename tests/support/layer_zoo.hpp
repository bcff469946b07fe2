// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/nn/agnn.hpp"
#include "tessera/nn/dense.hpp"
#include "tessera/nn/gat.hpp"
#include "tessera/nn/gcn.hpp"
#include "tessera/nn/gin.hpp"
#include "tessera/nn/powers.hpp"
#include "tessera/nn/sage.hpp"
#include "tessera/nn/sequential.hpp"

/// Every layer in every variant that takes another path through the code.
namespace tessera::test {

struct ZooEntry {
  std::string name;
  std::function<std::unique_ptr<nn::Layer>(std::int64_t in, step::Placement)> make;
};

inline nn::EpilogueOptions busy_epilogue(bool bias = true) {
  nn::EpilogueOptions output;
  output.bias = bias;
  output.activation = ops::Activation::elu;
  output.dropout = 0.3;
  return output;
}

template <class L, class Options>
ZooEntry entry(std::string name, Options options, std::int64_t Options::*width = &Options::in) {
  return {std::move(name), [=](std::int64_t in, step::Placement placement) {
            Options sized = options;
            sized.*width = in;
            return std::make_unique<L>(sized, placement);
          }};
}

/// `narrow` is below the input's width, `wide` above, so that both orders of product are taken.
inline std::vector<ZooEntry> layer_zoo(std::int64_t narrow = 3, std::int64_t wide = 9) {
  using namespace nn;
  const EpilogueOptions busy = busy_epilogue();
  std::vector<ZooEntry> zoo;
  zoo.push_back(entry<Linear>("linear", LinearOptions{0, narrow, busy}));
  zoo.push_back(entry<Gcn>("gcn narrow", GcnOptions{.out = narrow, .output = busy}));
  zoo.push_back(entry<Gcn>("gcn wide", GcnOptions{.out = wide, .output = busy}));
  zoo.push_back(entry<Gcn>("gcn no loops", GcnOptions{.out = narrow, .add_self_loops = false}));
  zoo.push_back(entry<Gcn>("gcn as given", GcnOptions{.out = narrow, .normalise = false}));
  zoo.push_back(entry<Gcn>("gcn precomputed", GcnOptions{.out = narrow, .precomputed = true}));
  zoo.push_back(entry<Sage>("sage narrow", SageOptions{.out = narrow, .output = busy}));
  zoo.push_back(entry<Sage>("sage wide", SageOptions{.out = wide, .output = busy}));
  zoo.push_back(entry<Sage>("sage no root", SageOptions{.out = narrow, .root_weight = false}));
  zoo.push_back(
      entry<Sage>("sage unit", SageOptions{.out = narrow, .normalise = true, .output = busy}));
  zoo.push_back(
      entry<Sage>("sage gcn", SageOptions{.out = narrow, .aggregation = SageAggregation::gcn}));
  zoo.push_back(entry<Sage>(
      "sage max", SageOptions{.out = narrow, .aggregation = SageAggregation::max, .output = busy}));
  zoo.push_back(entry<Gin>(
      "gin narrow", GinOptions{.out = narrow, .eps = 0.4, .train_eps = true, .output = busy}));
  zoo.push_back(entry<Gin>(
      "gin wide", GinOptions{.hidden = wide, .out = narrow, .eps = 0.4, .train_eps = true}));
  zoo.push_back(entry<Gin>("gin plain", GinOptions{.out = wide, .batch_norm = false}));
  const GatOptions gat{.out = narrow, .heads = 2, .dropout = 0.4, .output = busy};
  zoo.push_back(entry<Gat>("gat", gat));
  zoo.push_back(entry<Gatv2>("gatv2", gat));
  const GatOptions mean{.out = narrow,
                        .heads = 3,
                        .concat = false,
                        .dropout = 0.4,
                        .add_self_loops = false,
                        .residual = true};
  zoo.push_back(entry<Gat>("gat mean residual", mean));
  zoo.push_back(entry<Gatv2>("gatv2 mean residual", mean));
  const GatOptions residual{
      .out = narrow, .heads = 2, .residual = true, .share_weights = true, .output = busy};
  zoo.push_back(entry<Gat>("gat concat residual", residual));
  zoo.push_back(entry<Gatv2>("gatv2 shared", residual));
  zoo.push_back(
      entry<Agnn>("agnn", AgnnOptions{.output = busy_epilogue(false)}, &AgnnOptions::width));
  zoo.push_back(
      entry<Agnn>("agnn fixed", AgnnOptions{.requires_grad = false}, &AgnnOptions::width));
  zoo.push_back(entry<Sgc>("sgc 1", SgcOptions{.out = narrow, .hops = 1, .output = busy}));
  zoo.push_back(entry<Sgc>("sgc 2", SgcOptions{.out = narrow, .hops = 2}));
  zoo.push_back(entry<Cheb>("cheb 1", ChebOptions{.out = narrow, .order = 1}));
  zoo.push_back(entry<Cheb>("cheb 2", ChebOptions{.out = narrow, .order = 2, .output = busy}));
  zoo.push_back(entry<Cheb>("cheb 5", ChebOptions{.out = narrow, .order = 5, .lambda_max = 1.7}));
  zoo.push_back(entry<BatchNorm>("batch norm",
                                 BatchNormLayerOptions{.output = busy_epilogue(false)},
                                 &BatchNormLayerOptions::width));
  zoo.push_back(entry<ActivationLayer>("activation",
                                       ActivationLayerOptions{.output = busy_epilogue(false)},
                                       &ActivationLayerOptions::width));
  zoo.push_back({"residual", [](std::int64_t in, Placement placement) {
                   GcnOptions options{.in = in, .out = in};
                   return std::make_unique<Residual>(std::make_unique<Gcn>(options, placement),
                                                     placement);
                 }});
  return zoo;
}

/// Those that take sources and targets, with the width of the targets' own features.
inline std::vector<std::pair<std::string, std::unique_ptr<nn::PairLayer>>> pair_zoo(
    std::int64_t in, std::int64_t in_target, step::Placement placement) {
  using namespace nn;
  std::vector<std::pair<std::string, std::unique_ptr<PairLayer>>> zoo;
  const auto add = [&](const char* name, auto layer) { zoo.emplace_back(name, std::move(layer)); };
  add("sage",
      std::make_unique<Sage>(SageOptions{.in = in, .in_target = in_target, .out = 3}, placement));
  add("sage max",
      std::make_unique<Sage>(
          SageOptions{
              .in = in, .in_target = in_target, .out = 3, .aggregation = SageAggregation::max},
          placement));
  const GatOptions gat{
      .in = in, .in_target = in_target, .out = 2, .heads = 2, .dropout = 0.3, .residual = true};
  add("gat", std::make_unique<Gat>(gat, placement));
  add("gatv2", std::make_unique<Gatv2>(gat, placement));
  return zoo;
}

/// Those that take targets of the same width with the same weights.
inline std::vector<std::pair<std::string, std::unique_ptr<nn::PairLayer>>> shared_pair_zoo(
    std::int64_t in, step::Placement placement) {
  using namespace nn;
  std::vector<std::pair<std::string, std::unique_ptr<PairLayer>>> zoo;
  const auto add = [&](const char* name, auto layer) { zoo.emplace_back(name, std::move(layer)); };
  const GatOptions gat{.in = in, .out = 2, .heads = 2, .share_weights = true};
  add("gat", std::make_unique<Gat>(gat, placement));
  add("gatv2", std::make_unique<Gatv2>(gat, placement));
  add("gin narrow", std::make_unique<Gin>(
                        GinOptions{.in = in, .out = 3, .eps = 0.2, .train_eps = true}, placement));
  add("gin wide", std::make_unique<Gin>(
                      GinOptions{.in = in, .hidden = 9, .out = 3, .train_eps = true}, placement));
  return zoo;
}

}  // namespace tessera::test
