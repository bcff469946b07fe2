// SPDX-License-Identifier: Apache-2.0
#include "partition_report.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "numbers.hpp"
#include "table.hpp"

namespace tessera::app {
namespace {

constexpr std::size_t parts_shown = 16;

/// All of them, or those that take the longest.
std::vector<std::size_t> shown(const PartitionReport& report) {
  std::vector<std::size_t> parts(report.costs.size());
  std::iota(parts.begin(), parts.end(), std::size_t{0});
  if (parts.size() <= parts_shown) return parts;
  std::stable_sort(parts.begin(), parts.end(), [&](std::size_t a, std::size_t b) {
    return report.costs[a].seconds > report.costs[b].seconds;
  });
  parts.resize(parts_shown);
  return parts;
}

std::string table_of_parts(const PartitionReport& report) {
  Table table("rrrrrrrr");
  table.add({"part", "vertices", "edges", "boundary", "sends", "a layer", "memory", "step"});
  for (const std::size_t part : shown(report)) {
    const PartLoad& load = report.loads[part];
    const PartCost& cost = report.costs[part];
    table.add({grouped(static_cast<std::int64_t>(part)), grouped(load.vertices),
               grouped(load.edges), grouped(load.boundary), grouped(load.sent),
               human_bytes(cost.layer_bytes), human_bytes(cost.memory_bytes),
               human_microseconds(cost.seconds * 1e6)});
  }
  return table.text();
}

}  // namespace

PartitionReport report_on(const Graph& graph, const Partition& partition,
                          const ClusterModel& model) {
  PartitionReport report;
  report.model = model;
  report.loads = loads_of(graph, partition);
  for (const PartLoad& load : report.loads) {
    const PartCost cost = cost_of(load, model);
    report.costs.push_back(cost);
    report.sent_bytes += cost.step_bytes;
    report.memory_bytes = std::max(report.memory_bytes, cost.memory_bytes);
    report.seconds = std::max(report.seconds, cost.seconds);
  }
  report.seconds += gradient_seconds(std::max<std::int64_t>(1, partition.parts), model);
  report.one_gpu = cost_of({graph.num_rows(), graph.num_edges(), graph.num_edges(), 0, 0}, model);
  return report;
}

std::string to_text(const PartitionReport& report) {
  const ClusterModel& model = report.model;
  std::string text = fmt::format(
      "\nEach part on a GPU of its own, {} layers of width {} in fp32, by a model, not measured:\n"
      "links {} GB/s (--link), memory {} GB/s (--memory-bandwidth), products {} TFLOP/s "
      "(--tflops)\n",
      grouped(model.layers), grouped(model.width), model.link, model.memory, model.operations);
  if (report.costs.size() > parts_shown) {
    text += fmt::format("The {} parts that take the longest:\n", parts_shown);
  }
  text += table_of_parts(report);
  Table table("ll");
  table.add({"sent for a step", fmt::format("{} by all parts", human_bytes(report.sent_bytes))});
  table.add({"memory", fmt::format("{} at most; {} on one GPU", human_bytes(report.memory_bytes),
                                   human_bytes(report.one_gpu.memory_bytes))});
  table.add({"step", fmt::format("{}; {} on one GPU", human_microseconds(report.seconds * 1e6),
                                 human_microseconds(report.one_gpu.seconds * 1e6))});
  return text + table.text();
}

Json to_json(const PartitionReport& report) {
  const ClusterModel& model = report.model;
  Json json{{"width", model.width},
            {"layers", model.layers},
            {"link_bytes_per_second", model.link * 1e9},
            {"memory_bytes_per_second", model.memory * 1e9},
            {"operations_per_second", model.operations * 1e12},
            {"sent_bytes", report.sent_bytes},
            {"memory_bytes", report.memory_bytes},
            {"step_seconds", report.seconds},
            {"one_gpu_memory_bytes", report.one_gpu.memory_bytes},
            {"one_gpu_step_seconds", report.one_gpu.seconds}};
  Json parts = Json::array();
  for (std::size_t part = 0; part < report.loads.size(); ++part) {
    const PartLoad& load = report.loads[part];
    const PartCost& cost = report.costs[part];
    parts.push_back({{"vertices", load.vertices},
                     {"edges", load.edges},
                     {"inner_edges", load.inner_edges},
                     {"boundary", load.boundary},
                     {"sent", load.sent},
                     {"layer_bytes", cost.layer_bytes},
                     {"step_bytes", cost.step_bytes},
                     {"memory_bytes", cost.memory_bytes},
                     {"step_seconds", cost.seconds}});
  }
  json["parts"] = std::move(parts);
  return json;
}

}  // namespace tessera::app
