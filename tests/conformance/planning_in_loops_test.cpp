// SPDX-License-Identifier: Apache-2.0
// Any op can be planned by any thread at any time: by all tasks of a parallel loop, for one graph
// or several, on directed and rectangular graphs, with an order of rows that is looked for.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "support/random_coo.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/ops/aggregate_update.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/bits.hpp"
#include "tessera/ops/edge_softmax.hpp"
#include "tessera/ops/messages.hpp"
#include "tessera/ops/sddmm.hpp"
#include "tessera/ops/spmm.hpp"

namespace tessera::ops {
namespace {

using testing::ThreadScope;

/// So many that plans look for an order of rows, if they may.
constexpr std::int64_t very_many_epochs = std::int64_t{1} << 40;

struct PlannedOp {
  std::string name;
  std::function<void(const Graph&, Device)> plan;
};

template <class Options>
Options planned_for(Device device) {
  Options options;
  options.device = device;
  options.epochs = very_many_epochs;
  options.backward = true;
  return options;
}

template <class Options>
Options of_width(Device device, Precision precision) {
  auto options = planned_for<Options>(device);
  options.features = 64;
  options.precision = precision;
  return options;
}

void plan_sums(const Graph& graph, Device device, Precision precision) {
  plan_spmm(graph, of_width<SpmmOptions>(device, precision));
}

void plan_form(const Graph& graph, Device device, AttentionForm form) {
  auto options = of_width<AttentionOptions>(device, Precision::fp32);
  options.form = form;
  options.heads = 4;
  plan_attention(graph, options);
}

std::vector<PlannedOp> planned_ops() {
  return {
      {"spmm_fp32",
       [](const Graph& graph, Device device) { plan_sums(graph, device, Precision::fp32); }},
      {"spmm_bf16",
       [](const Graph& graph, Device device) { plan_sums(graph, device, Precision::bf16); }},
      {"sddmm",
       [](const Graph& graph, Device device) {
         plan_sddmm(graph, of_width<SddmmOptions>(device, Precision::fp32));
       }},
      {"messages",
       [](const Graph& graph, Device device) {
         plan_messages(graph, of_width<MessagesOptions>(device, Precision::fp32));
       }},
      {"edge_softmax",
       [](const Graph& graph, Device device) {
         auto options = planned_for<EdgeSoftmaxOptions>(device);
         options.heads = 4;
         plan_edge_softmax(graph, options);
       }},
      {"attention_dot",
       [](const Graph& graph, Device device) { plan_form(graph, device, AttentionForm::dot); }},
      {"attention_gat",
       [](const Graph& graph, Device device) { plan_form(graph, device, AttentionForm::gat); }},
      {"aggregate_update",
       [](const Graph& graph, Device device) {
         auto options = planned_for<AggregateUpdateOptions>(device);
         options.in = 64;
         options.out = 32;
         plan_aggregate_update(graph, options);
       }},
      {"bit_aggregate",
       [](const Graph& graph, Device device) {
         auto options = planned_for<BitOptions>(device);
         options.backward = false;
         options.cols = 64;
         plan_bit_aggregate(graph, options);
       }},
  };
}

struct Case {
  DeviceKind device;
  PlannedOp op;
};

void PrintTo(const Case& each, std::ostream* out) { *out << each.op.name; }

class PlanningInLoops : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (device().kind == DeviceKind::cuda && num_gpus() == 0) {
      GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
    }
  }
  Device device() const { return {GetParam().device, 0}; }

  static std::vector<Graph> graphs() {
    const Graph directed = testing::random_graph(400, 400, 3000, 1, false);
    return {directed, symmetrised(directed), testing::random_graph(400, 300, 2000, 2, false),
            testing::random_graph(300, 400, 2000, 3, false)};
  }
};

TEST_P(PlanningInLoops, OneGraphForAllTasks) {
  for (const int threads : {1, 2, 16}) {
    const ThreadScope scope(threads);
    for (const Graph& graph : graphs()) {
      SCOPED_TRACE(::testing::Message()
                   << threads << " threads, " << graph.num_rows() << " x " << graph.num_cols());
      parallel_tasks(2 * threads, [&](std::int64_t) { GetParam().op.plan(graph, device()); });
    }
  }
}

TEST_P(PlanningInLoops, SeveralGraphsInNestedLoops) {
  for (const int threads : {1, 2, 16}) {
    const ThreadScope scope(threads);
    const std::vector<Graph> all = graphs();
    parallel_tasks(8, [&](std::int64_t task) {
      parallel_tasks(4, [&](std::int64_t inner) {
        GetParam().op.plan(all[static_cast<std::size_t>(task + inner) % all.size()], device());
      });
    });
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda}) {
    for (const PlannedOp& op : planned_ops()) cases.push_back({device, op});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(AllOps, PlanningInLoops, ::testing::ValuesIn(all_cases()),
                         [](const auto& each) {
                           return each.param.op.name + "_on_" +
                                  (each.param.device == DeviceKind::cuda ? "cuda_0" : "cpu");
                         });

}  // namespace
}  // namespace tessera::ops
