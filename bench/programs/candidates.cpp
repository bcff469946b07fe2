// SPDX-License-Identifier: Apache-2.0
// Times every kernel that could run each of many cases, as records that say which kernels are
// needed (tools/report.py candidates) and what their costs are.
//   bench_candidates [--default | --expected PROFILE] FILE SECONDS SOURCE...
// appends a line of JSON per case to FILE and leaves out what the file has already: interrupted,
// it goes on where it stopped. With --default the kernels of default plans alone are timed; with
// --expected nothing is, and needs no GPU: times are those that are expected on a built-in profile
// (tools/judge_costs.py). After SECONDS no further graph is begun. Graphs are data sets as
// `tessera` takes them. TESSERA_GPU_LIMITS makes the GPU a smaller one (docs/design/measuring.md).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/device_rates.hpp"
#include "core/gpu_limits.hpp"
#include "core/side_stream.hpp"
#include "ops/plan/cost_fit.hpp"
#include "ops/plan/tune.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/graph/normalise.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/io/open.hpp"
#include "tessera/ops/aggregate_update.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/bits.hpp"
#include "tessera/ops/edge_softmax.hpp"
#include "tessera/ops/expected.hpp"
#include "tessera/ops/sddmm.hpp"
#include "tessera/ops/spmm.hpp"
#include "tessera/quant/bit_tensor.hpp"

namespace {

using namespace tessera;

constexpr Device gpu{DeviceKind::cuda, 0};

struct Case {
  std::string op, details;
  std::function<ops::Explanation()> plan;
};

/// The GPU whose times are expected; null where they are taken.
const DeviceProfile* expected_on = nullptr;

ops::Explanation explained(const Graph& graph, const ops::SpmmOptions& options) {
  return expected_on ? expected(graph, options, *expected_on) : plan_spmm(graph, options).explain();
}
ops::Explanation explained(const Graph& graph, const ops::SddmmOptions& options) {
  return expected_on ? expected(graph, options, *expected_on)
                     : plan_sddmm(graph, options).explain();
}
ops::Explanation explained(const Graph& graph, const ops::AttentionOptions& options) {
  return expected_on ? expected(graph, options, *expected_on)
                     : plan_attention(graph, options).explain();
}
ops::Explanation explained(const Graph& graph, const ops::AggregateUpdateOptions& options) {
  return expected_on ? expected(graph, options, *expected_on)
                     : plan_aggregate_update(graph, options).explain();
}
ops::Explanation explained(const Graph& graph, const ops::EdgeSoftmaxOptions& options) {
  return expected_on ? expected(graph, options, *expected_on)
                     : plan_edge_softmax(graph, options).explain();
}
ops::Explanation explained(const Graph& graph, const ops::BitOptions& options) {
  return expected_on ? expected_bit_aggregate(graph, options, *expected_on)
                     : plan_bit_aggregate(graph, options).explain();
}
ops::Explanation explained(const ops::BitOptions& options) {
  return expected_on ? expected_bit_gemm(options, *expected_on) : plan_bit_gemm(options).explain();
}

/// The graph in the forms that cases are about.
struct Input {
  Graph pattern, scaled, weighted, reversed;
};

class Cases {
 public:
  Cases(const Input& input, Stream stream) : input_(input), stream_(stream) {
    const EdgeOffset edges = input.pattern.num_edges();
    // What a small graph does at most widths takes less time than a launch.
    const bool small = 60'000 > edges;
    const bool huge = 40'000'000 < edges;
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      const bool wide = precision == Precision::fp32;
      for (const std::int64_t width : widths(wide, small, huge)) {
        add_spmm("pattern", input.pattern, precision, width);
      }
      add_spmm("scales", input.scaled, precision, 64);
      if (input.weighted.num_rows() > 0) {
        add_spmm("values", input.weighted, precision, 128);
        if (!small) add_spmm_of_runs(precision, 64);
      }
      if (input.reversed.num_rows() > 0) add_spmm("transposed", input.reversed, precision, 128);
      if (!small) add_best(precision);
      for (const std::int64_t width :
           small || huge ? std::vector<std::int64_t>{64} : std::vector<std::int64_t>{16, 64, 200}) {
        add_sddmm(precision, width, 1);
      }
      if (!small && !huge) add_sddmm(precision, 64, 8);
      if (!huge) add_attentions(precision, small);
      for (const std::int64_t width : {32, 128}) add_update(precision, width);
    }
    add_softmax();
    if (!small && !huge) add_bits();
  }

  const std::vector<Case>& all() const { return cases_; }

 private:
  static std::vector<std::int64_t> widths(bool wide, bool small, bool huge) {
    if (huge) return {64, 128};
    if (small) return {32, 128};
    if (wide) return {16, 41, 64, 128};
    return {32, 64, 100, 256};
  }

  template <class Options>
  Options common() const {
    Options options;
    options.device = gpu;
    options.stream = stream_;
    options.tune = ops::Tune::measured;
    return options;
  }
  void add(std::string op, std::string details, std::function<ops::Explanation()> plan) {
    cases_.push_back({std::move(op), std::move(details), std::move(plan)});
  }

  void add_spmm(const char* kind, const Graph& graph, Precision precision, std::int64_t width) {
    auto options = common<ops::SpmmOptions>();
    options.precision = precision;
    options.features = width;
    options.edge_values_at_run = false;
    add("spmm", fmt::format("{}, {}, {}", width, to_string(precision), kind),
        [=] { return explained(graph, options); });
  }
  void add_spmm_of_runs(Precision precision, std::int64_t width) {
    auto options = common<ops::SpmmOptions>();
    options.precision = precision;
    options.features = width;
    options.edge_values_expected = true;
    const Graph graph = input_.pattern;
    add("spmm", fmt::format("{}, {}, values of runs", width, to_string(precision)),
        [=] { return explained(graph, options); });
    if (width % 8 == 0) {
      options.heads = 8;
      add("spmm", fmt::format("{}, {}, values of runs, heads 8", width, to_string(precision)),
          [=] { return explained(graph, options); });
    }
  }
  void add_best(Precision precision) {
    auto options = common<ops::SpmmOptions>();
    options.precision = precision;
    options.features = 64;
    options.reduction = ops::Reduction::max;
    const Graph graph = input_.pattern;
    add("spmm", fmt::format("64, {}, max", to_string(precision)),
        [=] { return explained(graph, options); });
  }
  void add_sddmm(Precision precision, std::int64_t width, std::int64_t heads) {
    auto options = common<ops::SddmmOptions>();
    options.precision = precision;
    options.features = width;
    options.heads = heads;
    const Graph graph = input_.pattern;
    add("sddmm", fmt::format("{}, {}, heads {}", width, to_string(precision), heads),
        [=] { return explained(graph, options); });
  }
  void add_attention(ops::AttentionForm form, Precision precision, std::int64_t heads,
                     std::int64_t width, bool backward) {
    auto options = common<ops::AttentionOptions>();
    options.form = form;
    options.precision = precision;
    options.heads = heads;
    options.features = heads * width;
    options.backward = backward;
    const Graph graph = input_.pattern;
    add("attention",
        fmt::format("{}, {}, heads {}, {}{}", options.features, to_string(precision), heads,
                    to_string(form), backward ? ", step" : ""),
        [=] { return explained(graph, options); });
  }
  void add_attentions(Precision precision, bool small) {
    using enum ops::AttentionForm;
    for (const bool backward : {false, true}) {
      add_attention(gat, precision, 8, 8, backward);
      add_attention(gat, precision, 1, 64, backward);
      add_attention(dot, precision, 1, 64, backward);
      add_attention(gatv2, precision, 8, 8, backward);
      if (small) continue;
      add_attention(gat, precision, 4, 32, backward);
      add_attention(dot, precision, 8, 16, backward);
      if (backward) continue;
      add_attention(dot, precision, 1, 128, backward);
      add_attention(gatv2, precision, 1, 64, backward);
      if (input_.pattern.num_rows() == input_.pattern.num_cols()) {
        add_attention(cosine, precision, 1, 64, backward);
      }
    }
  }
  void add_update(Precision precision, std::int64_t width) {
    auto options = common<ops::AggregateUpdateOptions>();
    options.precision = precision;
    options.in = options.out = width;
    for (const auto& [kind, graph] :
         {std::pair{"pattern", input_.pattern}, std::pair{"scales", input_.scaled}}) {
      add("aggregate_update", fmt::format("{}, {}, {}", width, to_string(precision), kind),
          [=, graph = graph] { return explained(graph, options); });
    }
  }
  void add_softmax() {
    for (const std::int64_t heads : {1, 8}) {
      auto options = common<ops::EdgeSoftmaxOptions>();
      options.heads = heads;
      const Graph graph = input_.pattern;
      add("edge_softmax", fmt::format("fp32, heads {}", heads),
          [=] { return explained(graph, options); });
    }
  }
  void add_bits() {
    const Graph graph = input_.pattern;
    for (const int bits : {2, 8}) {
      for (const std::int64_t width : {32, 128}) {
        auto options = common<ops::BitOptions>();
        options.cols = width;
        options.b_bits = bits;
        options.b_bytes = true;
        options.output = ops::BitOutput::bytes;
        options.requantise = quant::Affine{.bits = bits, .lower = {0}, .scale = {64}};
        add("bit_aggregate", fmt::format("{}, {} bits, bytes", width, bits),
            [=] { return explained(graph, options); });
        options.b_bytes = false;
        options.output = ops::BitOutput::sums32;
        options.requantise.reset();
        add("bit_aggregate", fmt::format("{}, {} bits, planes", width, bits),
            [=] { return explained(graph, options); });
        constexpr std::int64_t most_dense_bits = std::int64_t{1} << 31;
        if (std::int64_t{graph.num_rows()} * graph.num_cols() > most_dense_bits) continue;
        add("bit_gemm", fmt::format("{}, {} bits, adjacency", width, bits), [=] {
          if (expected_on == nullptr) {
            return plan_bit_gemm(quant::pack_pattern(graph), options).explain();
          }
          ops::BitOptions product = options;
          product.rows = graph.num_rows();
          product.depth = graph.num_cols();
          return explained(product);
        });
      }
    }
  }

  const Input& input_;
  Stream stream_;
  std::vector<Case> cases_;
};

/// Dense products of few bits are about no graph.
std::vector<Case> products_of_bits(Stream stream) {
  std::vector<Case> cases;
  for (const std::int64_t rows : {256, 2048, 8192, 100'000}) {
    for (const std::int64_t depth : {64, 256, 1024, 4096}) {
      if (rows * depth > (1 << 28)) continue;
      for (const std::int64_t cols : {16, 64, 256, 1024}) {
        for (const auto& [a_bits, b_bits] : {std::pair{1, 1}, std::pair{1, 4}, std::pair{2, 2},
                                             std::pair{4, 4}, std::pair{8, 8}}) {
          ops::BitOptions options;
          options.device = gpu;
          options.stream = stream;
          options.tune = ops::Tune::measured;
          options.rows = rows;
          options.cols = cols;
          options.depth = depth;
          options.a_bits = a_bits;
          options.b_bits = b_bits;
          cases.push_back(
              {"bit_gemm",
               fmt::format("{} x {} x {}, {} by {} bits", rows, cols, depth, a_bits, b_bits),
               [=] { return explained(options); }});
        }
      }
    }
  }
  return cases;
}

std::string name_of(const std::string& source) {
  if (source.find(':') != std::string::npos) return source;
  std::filesystem::path path(source);
  while (path.has_extension()) path = path.stem();
  return path.filename().string();
}

Input input_of(const std::string& source) {
  Input input;
  io::ReadOptions options;
  options.duplicates = Duplicates::first;
  const Graph read = io::open(source, options).graph;
  input.pattern = {read.num_rows(), read.num_cols(), read.row_offsets(), read.col_indices()};
  const bool square = read.num_rows() == read.num_cols();
  input.scaled = square ? gcn_normalised(input.pattern) : input.pattern;
  if (read.num_edges() < 40'000'000) {
    Buffer<float> values(read.num_edges());
    for (EdgeOffset e = 0; e < read.num_edges(); ++e) {
      values[e] = 0.5f + static_cast<float>(e % 97) / 97;
    }
    input.weighted = input.pattern.with_values(std::move(values));
  }
  Graph other_way = transposed(input.pattern);
  if (!(other_way == input.pattern)) input.reversed = std::move(other_way);
  return input;
}

/// What the file has of earlier runs: everything before the candidates of each line.
std::set<std::string> keys_of(const std::string& path) {
  std::set<std::string> keys;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    keys.insert(line.substr(0, line.find(", \"candidates\"")));
  }
  return keys;
}

std::string candidates_of(const ops::Explanation& explanation) {
  std::string text;
  for (const ops::Candidate& one : explanation.candidates) {
    const double us = expected_on ? one.predicted_us : one.measured_us;
    if (one.predicted_us <= 0 || us <= 0) continue;
    text += fmt::format("{}[\"{}\", {:.4g}, {:.4g}]", text.empty() ? "" : ", ", one.kernel,
                        one.predicted_us, us);
  }
  return text;
}

/// What costs are shares of (tools/fit_costs.py).
std::string text_of(const std::vector<ops::Counted>& counts) {
  std::string text;
  for (const ops::Counted& one : counts) {
    text += fmt::format("{}[\"{}\", {}, {:.5g}]", text.empty() ? "" : ", ", one.kernel,
                        one.launches, fmt::join(one.counts_us, ", "));
  }
  return text;
}

class Recorder {
 public:
  explicit Recorder(const std::string& path) : keys_(keys_of(path)), file_(path, std::ios::app) {
    if (!file_)
      throw Error(ErrorCode::io, "cannot write", path, "name a file in a folder that exists");
  }

  void record(const std::string& graph, EdgeOffset edges, const std::vector<Case>& cases) {
    const Stopwatch watch;
    int made = 0;
    for (const Case& one : cases) {
      const std::string key =
          fmt::format("{{\"graph\": \"{}\", \"edges\": {}, \"op\": \"{}\", \"case\": \"{}\"", graph,
                      edges, one.op, one.details);
      if (keys_.contains(key)) continue;
      try {
        std::vector<ops::Counted> counts;
        ops::counted_notes = expected_on ? &counts : nullptr;
        const std::string candidates = candidates_of(one.plan());
        ops::counted_notes = nullptr;
        file_ << key << ", \"candidates\": [" << candidates << "]";
        if (!counts.empty()) file_ << ", \"counts\": [" << text_of(counts) << "]";
        file_ << "}" << std::endl;
        ++made;
      } catch (const Error& error) {
        if (error.code() == ErrorCode::internal) throw;
        std::fprintf(stderr, "left out: %s %s %s: %s\n", graph.c_str(), one.op.c_str(),
                     one.details.c_str(), error.what());
      }
    }
    std::fprintf(stderr, "%s: %d cases in %.1f s\n", graph.c_str(), made, watch.seconds());
  }

 private:
  std::set<std::string> keys_;
  std::ofstream file_;
};

int record_all(int count, char** arguments, bool defaults) {
  ops::TuneEffort& effort = ops::tune_effort();
  effort = {.hopeless = 12,
            .timing_seconds = 20,
            .budget_seconds = 30,
            .warm_seconds = 0.0015,
            .wanted_us = 600,
            .chain_below_us = 30};
  if (defaults) effort.hopeless = 0;
  // A captured chain need not keep to the processors of its stream.
  if (gpu_limits().processors > 0) effort.chain_below_us = 0;
  std::optional<SideStream> side;
  if (expected_on == nullptr) side.emplace(gpu);
  const Stream stream = side ? Stream(*side) : Stream();
  Recorder recorder(arguments[1]);
  const double seconds = std::atof(arguments[2]);
  const Stopwatch watch;
  for (int i = 3; i < count && watch.seconds() < seconds; ++i) {
    const std::string source = arguments[i];
    if (source == "products") {
      recorder.record(source, 0, products_of_bits(stream));
      continue;
    }
    try {
      const Input input = input_of(source);
      recorder.record(name_of(source), input.pattern.num_edges(), Cases(input, stream).all());
    } catch (const Error& error) {
      std::fprintf(stderr, "left out: %s: %s\n", source.c_str(), error.what());
      if (error.code() == ErrorCode::internal) return 1;
    }
  }
  return 0;
}

}  // namespace

/// A built-in profile, within the limits of TESSERA_GPU_LIMITS.
DeviceProfile limited_profile(const std::string& name) {
  const DeviceProfile& known = built_in_profile(name);
  DeviceTraits traits = traits_of(known);
  if (gpu_limits().processors > 0) traits.processors = gpu_limits().processors;
  DeviceProfile profile = scaled_profile(known, traits);
  if (gpu_limits().no_wgmma) profile.wgmma_tf32_per_us = profile.wgmma_bf16_per_us = 0;
  return profile;
}

int main(int count, char** arguments) {
  const bool defaults = count > 1 && std::string(arguments[1]) == "--default";
  const bool expects = count > 2 && std::string(arguments[1]) == "--expected";
  const std::string name = expects ? arguments[2] : "";
  const int options = defaults ? 1 : expects ? 2 : 0;
  count -= options;
  arguments += options;
  if (count < 4) {
    std::fprintf(
        stderr,
        "usage: bench_candidates [--default | --expected PROFILE] FILE SECONDS SOURCE...\n");
    return 2;
  }
  try {
    std::optional<DeviceProfile> profile;
    if (expects) expected_on = &profile.emplace(limited_profile(name));
    return record_all(count, arguments, defaults);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_candidates: error: %s\n", error.what());
    return 1;
  }
}
