// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/core/device.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/edge_softmax.hpp"
#include "tessera/ops/messages.hpp"
#include "tessera/ops/sddmm.hpp"
#include "tessera/ops/spmm.hpp"

/// What plans say of their candidates, on every device there is and whatever kernels there are.
namespace tessera::ops {
namespace {

template <class Options>
Options of_width(Device device, std::int64_t features) {
  Options options;
  options.device = device;
  options.features = features;
  return options;
}

struct PlannedOp {
  std::string name;
  std::function<Explanation(const Graph&, Device, std::int64_t)> explain;
};

std::vector<PlannedOp> planned_ops() {
  std::vector<PlannedOp> all = {
      {"spmm",
       [](const Graph& graph, Device device, std::int64_t features) {
         return plan_spmm(graph, of_width<SpmmOptions>(device, features)).explain();
       }},
      {"sddmm",
       [](const Graph& graph, Device device, std::int64_t features) {
         return plan_sddmm(graph, of_width<SddmmOptions>(device, features)).explain();
       }},
      {"messages",
       [](const Graph& graph, Device device, std::int64_t features) {
         return plan_messages(graph, of_width<MessagesOptions>(device, features)).explain();
       }},
      {"edge_softmax", [](const Graph& graph, Device device, std::int64_t features) {
         EdgeSoftmaxOptions options;
         options.device = device;
         options.heads = features;
         return plan_edge_softmax(graph, options).explain();
       }}};
  for (const AttentionForm form : {AttentionForm::gat, AttentionForm::gatv2, AttentionForm::dot}) {
    all.push_back({std::string("attention ") + to_string(form),
                   [form](const Graph& graph, Device device, std::int64_t features) {
                     auto options = of_width<AttentionOptions>(device, features);
                     options.form = form;
                     return plan_attention(graph, options).explain();
                   }});
  }
  return all;
}

std::vector<Device> devices() {
  std::vector<Device> all = {{}};
  if (num_gpus() > 0) all.push_back({DeviceKind::cuda, 0});
  return all;
}

Graph random_graph(VertexId vertices, EdgeOffset edges) {
  return generate::build(generate::ErdosRenyi{.vertices = vertices, .edges = edges, .seed = 3});
}

/// By name, of those that a cost model was asked about.
std::map<std::string, double> predictions(const Explanation& explanation) {
  std::map<std::string, double> all;
  for (const Candidate& candidate : explanation.candidates) {
    if (candidate.predicted_us != 0) all[candidate.kernel] = candidate.predicted_us;
  }
  return all;
}

template <class Check>
void for_all_plans(const Check& check) {
  for (const Device device : devices()) {
    for (const PlannedOp& op : planned_ops()) {
      SCOPED_TRACE(op.name + " on " + to_string(device));
      check([&](const Graph& graph, std::int64_t features) {
        return op.explain(graph, device, features);
      });
    }
  }
}

TEST(PlansOnDevice, ChooseTheLeastPredictedOfThoseThatTheyMay) {
  const Graph graph = random_graph(3'000, 60'000);
  for_all_plans([&](const auto& explain) {
    const Explanation explanation = explain(graph, 32);
    const auto chosen = std::ranges::find(explanation.candidates, "chosen", &Candidate::verdict);
    ASSERT_NE(chosen, explanation.candidates.end());
    EXPECT_GT(chosen->predicted_us, 0);
    for (const Candidate& candidate : explanation.candidates) {
      EXPECT_TRUE(std::isfinite(candidate.predicted_us)) << candidate.kernel;
      if (!candidate.verdict.starts_with("slower")) continue;
      EXPECT_GE(candidate.predicted_us, chosen->predicted_us) << candidate.kernel;
    }
    EXPECT_EQ(to_string(explain(graph, 32)), to_string(explanation)) << "the same plan again";
  });
}

TEST(PlansOnDevice, PredictMoreForMoreEdgesAndForMoreFeatures) {
  const Graph few = random_graph(4'000, 20'000), many = random_graph(4'000, 800'000);
  for_all_plans([&](const auto& explain) {
    const auto least = predictions(explain(few, 32));
    EXPECT_FALSE(least.empty());
    for (const auto& more : {explain(many, 32), explain(few, 256)}) {
      for (const auto& [kernel, us] : predictions(more)) {
        const auto before = least.find(kernel);
        if (before == least.end()) continue;
        EXPECT_GT(us, before->second) << kernel;
      }
    }
  });
}

TEST(PlansOnDevice, PredictNumbersForGraphsOfNothing) {
  for_all_plans([&](const auto& explain) {
    for (const auto& [rows, cols] : {std::pair{0, 0}, {0, 5}, {5, 0}, {5, 5}}) {
      const Graph graph(rows, cols, std::vector<EdgeOffset>(static_cast<std::size_t>(rows) + 1),
                        std::vector<VertexId>{});
      for (const auto& [kernel, us] : predictions(explain(graph, 33))) {
        EXPECT_TRUE(std::isfinite(us) && us >= 0) << kernel;
      }
    }
  });
}

}  // namespace
}  // namespace tessera::ops
