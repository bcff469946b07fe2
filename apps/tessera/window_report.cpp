// SPDX-License-Identifier: Apache-2.0
#include "window_report.hpp"

#include <fmt/format.h>

#include "numbers.hpp"
#include "table.hpp"
#include "tessera/tiles/statistics.hpp"

namespace tessera::app {
namespace {

constexpr int block_rows = 16;
constexpr int block_columns = 8;

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

}  // namespace

WindowReport::WindowReport(const Graph& graph)
    : cores(ops::window_cores(graph)),
      blocks(tiles::window_stats(graph, block_rows, block_columns).blocks_after) {}

double WindowReport::tensor_edges() const {
  return ratio(cores.tensor.edges, cores.tensor.edges + cores.cuda.edges);
}

double WindowReport::intensity() const {
  return ratio(cores.tensor.edges + cores.cuda.edges, cores.tensor.columns + cores.cuda.columns);
}

std::string compared(const WindowReport& before, const WindowReport& after) {
  Table table("lrr");
  table.add({fmt::format("windows of {} rows", before.cores.height), "before", "after"});
  const auto add = [&](std::string name, auto&& shown) {
    table.add({std::move(name), shown(before), shown(after)});
  };
  add("on tensor cores", [](const auto& one) { return grouped(one.cores.tensor.windows); });
  add("on CUDA cores", [](const auto& one) { return grouped(one.cores.cuda.windows); });
  add("edges on tensor cores", [](const auto& one) { return percent(one.tensor_edges()); });
  add("computing intensity", [](const auto& one) { return human_real(one.intensity()); });
  add("of those on tensor cores",
      [](const auto& one) { return human_real(one.cores.tensor.intensity()); });
  add("of those on CUDA cores",
      [](const auto& one) { return human_real(one.cores.cuda.intensity()); });
  add(fmt::format("blocks of {} x {}", block_rows, block_columns),
      [](const auto& one) { return grouped(one.blocks); });
  add("expected us", [](const auto& one) { return human_real(one.predicted_us()); });
  return "\n" + table.text() + "  computing intensity: edges for each column that a window uses\n" +
         fmt::format("  cores as a plan of spmm chooses them by windows: {}, 128 features, fp32\n",
                     before.cores.gpu);
}

Json to_json(const WindowReport& report) {
  const auto share = [](const ops::WindowShare& of) {
    return Json{{"windows", of.windows},
                {"edges", of.edges},
                {"columns", of.columns},
                {"intensity", of.intensity()},
                {"predicted_us", of.predicted_us}};
  };
  return {{"height", report.cores.height},
          {"gpu", report.cores.gpu},
          {"tensor_cores", share(report.cores.tensor)},
          {"cuda_cores", share(report.cores.cuda)},
          {"intensity", report.intensity()},
          {"blocks", report.blocks}};
}

std::vector<std::string> notes(const WindowReport& report) {
  return {
      fmt::format("{} of {} windows on tensor cores (orange): {} of edges",
                  grouped(report.cores.tensor.windows), grouped(report.windows()),
                  percent(report.tensor_edges())),
      fmt::format("computing intensity: {}; blocks of {} x {}: {}", human_real(report.intensity()),
                  block_rows, block_columns, grouped(report.blocks))};
}

}  // namespace tessera::app
