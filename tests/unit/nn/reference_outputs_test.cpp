// SPDX-License-Identifier: Apache-2.0
// Every layer against PyG's layer of the same name with the same weights, from committed outputs.
#include <cmath>
#include <memory>
#include <set>

#include <gtest/gtest.h>

#include "tessera/nn/agnn.hpp"
#include "tessera/nn/gat.hpp"
#include "tessera/nn/gcn.hpp"
#include "tessera/nn/gin.hpp"
#include "tessera/nn/powers.hpp"
#include "tessera/nn/sage.hpp"
#include "tessera/nn/sequential.hpp"

#include "support/reference_cases.hpp"

namespace tessera {
namespace {

using test::ReferenceCase;

nn::GatOptions attention_options(const ReferenceCase& of) {
  nn::GatOptions options;
  options.in = of.count("in");
  options.in_target = of.count("in_target");
  options.out = of.count("out");
  options.heads = of.count("heads", 1);
  options.concat = of.flag("concat", true);
  options.negative_slope = of.option("negative_slope", options.negative_slope);
  options.add_self_loops = of.flag("add_self_loops", true);
  options.residual = of.flag("residual", false);
  options.share_weights = of.flag("share_weights", false);
  options.output.bias = of.flag("bias", true);
  return options;
}

std::unique_ptr<nn::Layer> make_sage(const ReferenceCase& of, step::Placement placement) {
  nn::SageOptions options;
  options.in = of.count("in");
  options.in_target = of.count("in_target");
  options.out = of.count("out");
  if (of.flag("max", false)) options.aggregation = nn::SageAggregation::max;
  if (of.flag("gcn", false)) options.aggregation = nn::SageAggregation::gcn;
  options.root_weight = of.flag("root_weight", true);
  options.normalise = of.flag("normalise", false);
  return std::make_unique<nn::Sage>(options, placement);
}

std::unique_ptr<nn::Layer> make_gin(const ReferenceCase& of, step::Placement placement) {
  nn::GinOptions options;
  options.in = of.count("in");
  options.hidden = of.count("hidden");
  options.out = of.count("out");
  options.train_eps = of.flag("train_eps", false);
  options.batch_norm = of.flag("batch_norm", true);
  return std::make_unique<nn::Gin>(options, placement);
}

std::unique_ptr<nn::Layer> make_spectral(const ReferenceCase& of, step::Placement placement) {
  if (of.layer == "gcn") {
    nn::GcnOptions options;
    options.in = of.count("in");
    options.out = of.count("out");
    options.normalise = of.flag("normalise", true);
    options.add_self_loops = of.flag("add_self_loops", true);
    return std::make_unique<nn::Gcn>(options, placement);
  }
  if (of.layer == "sgc") {
    nn::SgcOptions options;
    options.in = of.count("in");
    options.out = of.count("out");
    options.hops = of.count("hops");
    return std::make_unique<nn::Sgc>(options, placement);
  }
  nn::ChebOptions options;
  options.in = of.count("in");
  options.out = of.count("out");
  options.order = of.count("order");
  options.lambda_max = of.option("lambda_max", options.lambda_max);
  return std::make_unique<nn::Cheb>(options, placement);
}

std::unique_ptr<nn::Layer> make_layer(const ReferenceCase& of, step::Placement placement) {
  if (of.layer == "sage") return make_sage(of, placement);
  if (of.layer == "gin") return make_gin(of, placement);
  if (of.layer == "gat") return std::make_unique<nn::Gat>(attention_options(of), placement);
  if (of.layer == "gatv2") return std::make_unique<nn::Gatv2>(attention_options(of), placement);
  if (of.layer == "agnn") {
    nn::AgnnOptions options;
    options.width = of.count("width");
    options.add_self_loops = of.flag("add_self_loops", true);
    return std::make_unique<nn::Agnn>(options, placement);
  }
  if (of.layer.starts_with("readout_")) {
    const auto reduction = ops::parse_reduction(of.layer.substr(8));
    return std::make_unique<nn::Readout>(nn::ReadoutOptions{of.count("width"), reduction},
                                         placement);
  }
  return make_spectral(of, placement);
}

step::Tensor tensor_of(const Matrix<double>& matrix, step::Placement placement) {
  step::Tensor tensor(placement);
  tensor.copy_from(matrix);
  return tensor;
}

/// Puts PyG's state in. Attention vectors are heads x width there and one row here.
void load_state(const ReferenceCase& from, nn::Layer& layer) {
  for (const auto& [path, tensor] : layer.state()) {
    ASSERT_TRUE(from.has(path)) << path << " is no entry of PyG's state_dict";
    const Matrix<double>& value = from.tensors.at(path);
    ASSERT_EQ(tensor->size(), value.size()) << path;
    ASSERT_TRUE(tensor->rows() == 1 || tensor->rows() == value.rows()) << path;
    tensor->copy_from(MatrixView<const double>(value.data(), tensor->rows(), tensor->cols()));
  }
}

void expect_close(const step::Tensor& actual, const Matrix<double>& expected) {
  ASSERT_EQ(actual.rows(), expected.rows());
  ASSERT_EQ(actual.cols(), expected.cols());
  step::Tensor wide(step::Placement{Precision::fp64, &host_memory()});
  wide.copy_from(actual);
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    const double value = expected.data()[i];
    ASSERT_NEAR(wide.as<double>().data[i], value, 1e-5 * (1 + std::abs(value))) << "element " << i;
  }
}

void expect_reference(const ReferenceCase& of, step::Placement placement) {
  const auto layer = make_layer(of, placement);
  load_state(of, *layer);
  step::Topology graph(of.graph());
  step::Topology pooling(Graph{});
  step::Context context;
  context.graph = &graph;
  context.training = of.training;
  if (of.has("graph_ids")) {
    std::vector<std::int32_t> ids;
    for (const double id : of.tensors.at("graph_ids").span()) {
      ids.push_back(static_cast<std::int32_t>(id));
    }
    pooling = step::Topology(step::pooling_graph(ids, of.tensors.at("output").rows()));
    context.pooling = &pooling;
  }
  const step::Tensor x = tensor_of(of.tensors.at("x"), placement);
  const Matrix<double>& expected = of.tensors.at("output");
  if (graph.graph().is_square()) return expect_close(layer->forward(x, context), expected);
  auto& pair = dynamic_cast<nn::PairLayer&>(*layer);
  if (!of.has("x_target")) return expect_close(pair.forward(x, step::Input(), context), expected);
  const step::Tensor x_target = tensor_of(of.tensors.at("x_target"), placement);
  expect_close(pair.forward(x, x_target, context), expected);
}

const std::vector<ReferenceCase>& cases() {
  static const auto all =
      test::read_reference_cases(TESSERA_TEST_FOLDER "/data/layer_references.txt");
  return all;
}

TEST(LayerReferences, cover_every_layer) {
  std::set<std::string> layers;
  for (const ReferenceCase& each : cases()) layers.insert(each.layer);
  for (const char* layer : {"gcn", "sage", "gin", "gat", "gatv2", "agnn", "sgc", "cheb"}) {
    EXPECT_TRUE(layers.count(layer)) << layer;
  }
}

TEST(LayerReferences, fp32) {
  for (const ReferenceCase& each : cases()) {
    SCOPED_TRACE(each.name);
    expect_reference(each, {});
  }
}

TEST(LayerReferences, fp64) {
  for (const ReferenceCase& each : cases()) {
    SCOPED_TRACE(each.name);
    expect_reference(each, {Precision::fp64, &host_memory()});
  }
}

}  // namespace
}  // namespace tessera
