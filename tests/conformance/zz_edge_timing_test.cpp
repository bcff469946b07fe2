// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/core/measure.hpp"
#include "tessera/io/open.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/edge_softmax.hpp"
#include "tessera/ops/sddmm.hpp"

namespace tessera {
namespace {

const Device gpu{DeviceKind::cuda, 0};

struct Data {
  Data(std::int64_t rows, std::int64_t cols, Precision precision)
      : bytes(static_cast<std::size_t>(rows * cols) * bytes_per_element(precision)),
        memory(static_cast<std::int64_t>(bytes), default_memory(gpu)) {
    fill_zero(memory.data(), bytes, gpu);
    operand.data = memory.data();
    operand.precision = precision;
    operand.rows = rows;
    operand.cols = cols;
    operand.stride = cols;
  }
  std::size_t bytes;
  Buffer<std::byte> memory;
  ops::Operand operand;
};

template <class Run>
double time_us(Run&& run) {
  run();
  synchronise(gpu);
  Stopwatch probe;
  run();
  synchronise(gpu);
  const double once = probe.microseconds();
  const int repeats = static_cast<int>(std::clamp(6000.0 / once, 2.0, 40.0));
  double best = 1e30;
  for (int round = 0; round < 2; ++round) {
    Stopwatch watch;
    for (int i = 0; i < repeats; ++i) run();
    synchronise(gpu);
    best = std::min(best, watch.microseconds() / repeats);
  }
  return best;
}

std::vector<std::string> words(const char* name, const char* fallback) {
  const char* text = std::getenv(name);
  std::istringstream in(text != nullptr ? text : fallback);
  std::vector<std::string> all;
  for (std::string word; in >> word;) all.push_back(word);
  return all;
}

TEST(EdgeTiming, Sddmm) {
  if (num_gpus() == 0) return;
  for (const std::string& source : words("EDGE_GRAPHS", "twin:cora")) {
    const Graph graph = io::open(source).graph;
    for (const std::string& width : words("EDGE_WIDTHS", "16 32 64 128 256")) {
      const std::int64_t features = std::stoll(width);
      for (const std::string& stored : words("EDGE_PRECISIONS", "fp32 bf16")) {
        const Precision precision = parse_precision(stored);
        Data u(graph.num_rows(), features, precision), v(graph.num_cols(), features, precision);
        Data edges(graph.num_edges(), 1, precision);
        std::string line;
        double best = 1e30;
        std::string best_name;
        ops::SddmmOptions options;
        options.features = features;
        options.precision = precision;
        options.device = gpu;
        const std::string chosen = ops::plan_sddmm(graph, options).kernel().name;
        for (const ops::KernelInfo& info : ops::kernels("sddmm")) {
          if (info.device != DeviceKind::cuda) continue;
          options.kernel = info.name;
          try {
            const ops::SddmmPlan plan = ops::plan_sddmm(graph, options);
            const double us = time_us([&] { ops::run(plan, u.operand, v.operand, edges.operand); });
            line += fmt::format(" {}{}={:.1f}", info.name.substr(11),
                                info.name == chosen ? "*" : "", us);
            if (us < best) {
              best = us;
              best_name = info.name;
            }
          } catch (const std::exception&) {
          }
        }
        fmt::print("SDDMM {} {} {} best {:.1f} {} |{}\n", source, features, stored, best,
                   best_name.substr(11), line);
        std::fflush(stdout);
      }
    }
  }
}

TEST(EdgeTiming, SoftmaxAndAttention) {
  if (num_gpus() == 0) return;
  for (const std::string& source : words("ATTENTION_GRAPHS", "twin:cora")) {
    const Graph graph = io::open(source).graph;
    for (const std::string& stored : words("EDGE_PRECISIONS", "fp32 bf16")) {
      const Precision precision = parse_precision(stored);
      const std::int64_t heads = 8;
      {
        Data scores(graph.num_edges(), heads, precision),
            weights(graph.num_edges(), heads, precision);
        std::string line;
        for (const ops::KernelInfo& info : ops::kernels("edge_softmax")) {
          if (info.device != DeviceKind::cuda) continue;
          ops::EdgeSoftmaxOptions options;
          options.kernel = info.name;
          options.heads = heads;
          options.precision = precision;
          options.device = gpu;
          const auto plan = ops::plan_edge_softmax(graph, options);
          line += fmt::format(" {}={:.1f}", info.name.substr(18),
                              time_us([&] { ops::run(plan, scores.operand, weights.operand); }));
        }
        fmt::print("SOFTMAX {} {}{}\n", source, stored, line);
      }
      for (const ops::AttentionForm form :
           {ops::AttentionForm::gat, ops::AttentionForm::gatv2, ops::AttentionForm::dot}) {
        ops::AttentionOptions options;
        options.form = form;
        options.heads = heads;
        options.features = 64;
        options.precision = precision;
        options.device = gpu;
        const auto plan = ops::plan_attention(graph, options);
        const std::int64_t cols = form == ops::AttentionForm::gat ? heads : 64;
        Data target(graph.num_rows(), cols, precision),
            source_rows(graph.num_cols(), cols, precision), value(graph.num_cols(), 64, precision),
            vector(1, 64, precision), output(graph.num_rows(), 64, precision),
            grad_output(graph.num_rows(), 64, precision),
            log_sum(graph.num_rows(), heads, Precision::fp32),
            grad_target(graph.num_rows(), cols, precision),
            grad_source(graph.num_cols(), cols, precision),
            grad_value(graph.num_cols(), 64, precision);
        ops::AttentionInputs inputs{target.operand, source_rows.operand, value.operand};
        if (form == ops::AttentionForm::gatv2) inputs.vector = vector.operand;
        const double forward = time_us([&] {
          ops::run(plan, inputs, {output.operand, log_sum.operand});
        });
        ops::prepare_backward(plan);
        const double backward = time_us([&] {
          ops::run_backward(plan, inputs, output.operand, log_sum.operand, grad_output.operand,
                            {grad_target.operand, grad_source.operand, grad_value.operand});
        });
        fmt::print("ATTENTION {} {} {} forward {:.1f} backward {:.1f}\n", source, stored,
                   to_string(form), forward, backward);
        std::fflush(stdout);
      }
    }
  }
}

}  // namespace
}  // namespace tessera
