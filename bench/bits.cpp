// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/bits.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/core/error.hpp"
#include "tessera/core/random.hpp"

#include "bench/inputs.hpp"
#include "bench/ops.hpp"
#include "bench/placed.hpp"

namespace tessera::bench {
namespace {

constexpr std::int64_t checked_rows = 64;
/// A dense adjacency of more bits is no batch any more.
constexpr std::int64_t most_dense_bits = std::int64_t{1} << 33;

quant::BitTensor drawn(std::int64_t rows, std::int64_t depth, int bits, std::uint64_t seed) {
  const Random random(seed);
  Matrix<std::uint16_t> codes(rows, depth);
  parallel_for(codes.size(), 1 << 14, [&](std::int64_t i) {
    codes.data()[i] = static_cast<std::uint16_t>(random.uniform(static_cast<std::uint64_t>(i)) *
                                                 static_cast<double>(1 << bits));
  });
  return quant::pack_rows({codes.data(), rows, depth}, bits);
}

/// Codes of sums: of so many steps each, as one range from 0 on has them.
constexpr float sum_step = 64;

/// Rows of bytes as bit_aggregate takes and gives them.
std::int64_t byte_stride(std::int64_t cols) { return (cols + 15) / 16 * 16; }

Matrix<std::uint8_t> drawn_bytes(std::int64_t rows, std::int64_t cols, int bits,
                                 std::uint64_t seed) {
  const Random random(seed);
  Matrix<std::uint8_t> codes(rows, byte_stride(cols));
  parallel_for(codes.size(), 1 << 14, [&](std::int64_t i) {
    codes.data()[i] = static_cast<std::uint8_t>(random.uniform(static_cast<std::uint64_t>(i)) *
                                                static_cast<double>(1 << bits));
  });
  return codes;
}

Graph pattern_of(const Graph& graph) {
  return {graph.num_rows(), graph.num_cols(), graph.row_offsets(), graph.col_indices()};
}

/// The edges of a graph as one block of lists, as bit_lists takes them.
struct SourceLists {
  static constexpr std::int64_t most_sources = 1 << 16;

  SourceLists(const Graph& graph, Device device)
      : starts((graph.num_rows() + 63) / 64, Place(device)),
        offsets(graph.num_rows() + 1, Place(device)),
        sources(graph.num_edges(), Place(device)) {
    const std::vector<std::int32_t> zeros(static_cast<std::size_t>(starts.size()));
    const std::vector<std::int32_t> ends(graph.row_offsets().begin(), graph.row_offsets().end());
    const std::vector<std::uint16_t> ids(graph.col_indices().begin(), graph.col_indices().end());
    put(starts, zeros, device);
    put(offsets, ends, device);
    put(sources, ids, device);
    synchronise(device);
  }

  void give(ops::BitInputs& inputs, Device device) const {
    inputs.block_starts = {starts.data(), starts.size(), 1, device};
    inputs.list_offsets = {offsets.data(), offsets.size(), 1, device};
    inputs.list_sources = {sources.data(), 1, sources.size(), device};
  }

  Buffer<std::int32_t> starts, offsets;
  Buffer<std::uint16_t> sources;

 private:
  template <class T>
  static void put(Buffer<T>& to, const std::vector<T>& from, Device device) {
    copy_bytes(to.data(), from.data(), from.size() * sizeof(T), device);
  }
};

/// Every target adds its sources' codes, bytes in and codes of as many bits out: what stands
/// between two layers of a model. The graph is the plan's, or comes with the run as lists.
class ByteSums final : public Trial {
 public:
  ByteSums(const Problem& problem, int bits, bool listed)
      : graph_(pattern_of(problem.graph)),
        bits_(bits),
        features_(problem.features),
        device_(problem.device),
        codes_(drawn_bytes(graph_.num_cols(), features_, bits, problem.seed)),
        given_(codes_.size(), Place(device_)),
        result_(graph_.num_rows(), byte_stride(features_), device_),
        plan_(listed ? make_lists_plan(problem) : make_plan(problem)) {
    if (listed) lists_.emplace(graph_, device_);
    copy_bytes(given_.data(), codes_.data(), static_cast<std::size_t>(codes_.size()), device_);
    synchronise(device_);
  }

  Gate check() override {
    run({});
    const Matrix<std::uint8_t>& computed = result_.fetch();
    Gate gate{0, 0, 0, graph_.num_rows()};
    for (const std::int64_t row : spread_rows(graph_.num_rows(), checked_rows)) {
      for (std::int64_t j = 0; j < features_; ++j) {
        std::int64_t sum = 0;
        for (const VertexId source : graph_.neighbours(static_cast<VertexId>(row))) {
          sum += codes_(source, j);
        }
        const float code = std::rint(static_cast<float>(sum) / sum_step);
        const float last = static_cast<float>((1 << bits_) - 1);
        if (static_cast<float>(computed(row, j)) != std::min(code, last)) gate.max_error = 1;
      }
      ++gate.rows_checked;
    }
    return gate;
  }

  void run(Stream stream) override {
    ops::BitInputs inputs;
    inputs.b_bytes = {given_.data(), graph_.num_cols(), features_, codes_.cols(), device_};
    if (lists_) lists_->give(inputs, device_);
    ops::BitOutputs outputs;
    outputs.bytes = {result_.view().data, graph_.num_rows(), features_, codes_.cols(), device_};
    ops::run(plan_, inputs, outputs, stream);
  }

  std::int64_t bytes() const override {
    return structure_bytes(graph_, device_) + codes_.size() + result_.bytes();
  }
  std::string kernel() const override { return plan_.kernel().name; }
  std::string plan() const override { return plan_.explain().summary; }

 private:
  ops::BitOptions options_of(const Problem& problem) const {
    ops::BitOptions options;
    set_run_options(problem, options);
    options.cols = features_;
    options.b_bits = bits_;
    options.b_bytes = true;
    options.output = ops::BitOutput::bytes;
    options.requantise = quant::Affine{.bits = bits_, .lower = {0}, .scale = {sum_step}};
    return options;
  }
  ops::BitPlan make_plan(const Problem& problem) const {
    return ops::plan_bit_aggregate(graph_, options_of(problem));
  }
  ops::BitPlan make_lists_plan(const Problem& problem) const {
    if (graph_.num_cols() > SourceLists::most_sources) {
      throw Error(ErrorCode::unsupported, "lists of more than 65536 sources", "bit_lists",
                  "use a smaller graph");
    }
    ops::BitOptions options = options_of(problem);
    options.rows = graph_.num_rows();
    options.depth = options.block = graph_.num_cols();
    return ops::plan_bit_lists(options);
  }

  Graph graph_;
  int bits_;
  std::int64_t features_;
  Device device_;
  Matrix<std::uint8_t> codes_;
  Buffer<std::uint8_t> given_;
  Placed<std::uint8_t> result_;
  ops::BitPlan plan_;
  std::optional<SourceLists> lists_;
};

/// The adjacency as a dense matrix of bits times drawn codes.
class DenseSums final : public Trial {
 public:
  DenseSums(const Problem& problem, int bits)
      : graph_(problem.graph),
        device_(problem.device),
        codes_(drawn(problem.features, graph_.num_cols(), bits, problem.seed)),
        words_(codes_.words.size(), Place(device_)),
        sums_(graph_.num_rows(), problem.features, device_),
        plan_(make_plan(problem, bits)) {
    copy_bytes(words_.data(), codes_.words.data(), static_cast<std::size_t>(codes_.num_bytes()),
               device_);
    synchronise(device_);
  }

  Gate check() override {
    run({});
    const Matrix<std::int32_t>& computed = sums_.fetch();
    Gate gate{0, 0, 0, graph_.num_rows()};
    for (const std::int64_t row : spread_rows(graph_.num_rows(), checked_rows)) {
      for (std::int64_t j = 0; j < computed.cols(); ++j) {
        std::int64_t expected = 0;
        for (const VertexId source : graph_.neighbours(static_cast<VertexId>(row))) {
          expected += codes_.view().code(j, source);
        }
        if (computed(row, j) != expected) gate.max_error = 1;
      }
      ++gate.rows_checked;
    }
    return gate;
  }

  void run(Stream stream) override {
    ops::BitInputs inputs;
    inputs.b = codes_.view();
    inputs.b.words = words_.data();
    inputs.b.device = device_;
    ops::BitOutputs outputs;
    outputs.sums32 = sums_.view();
    ops::run(plan_, inputs, outputs, stream);
  }

  std::int64_t bytes() const override {
    return std::int64_t{graph_.num_rows()} * graph_.num_cols() / 8 + codes_.num_bytes() +
           sums_.bytes();
  }
  std::string kernel() const override { return plan_.kernel().name; }
  std::string plan() const override { return plan_.explain().summary; }

 private:
  ops::BitPlan make_plan(const Problem& problem, int bits) const {
    ops::BitOptions options;
    set_run_options(problem, options);
    options.cols = problem.features;
    options.b_bits = bits;
    if (std::int64_t{graph_.num_rows()} * graph_.num_cols() > most_dense_bits) {
      throw Error(ErrorCode::unsupported, "a dense matrix of more than 2^33 bits", "bit_gemm",
                  "use a smaller graph");
    }
    return ops::plan_bit_gemm(quant::pack_pattern(graph_), options);
  }

  Graph graph_;
  Device device_;
  quant::BitTensor codes_;
  Buffer<std::uint32_t> words_;
  Placed<std::int32_t> sums_;
  ops::BitPlan plan_;
};

using Prepare = std::unique_ptr<Trial> (*)(const Problem& problem, int bits);

Suite suite_of(const std::string& op, const std::string& what, int bits, Prepare prepare) {
  return {op + "_" + std::to_string(bits),
          what,
          {op},
          {Precision::fp32},
          0,
          [bits, prepare](const Problem& problem) { return prepare(problem, bits); },
          {32, 64, 128},
          true};
}

}  // namespace

std::vector<Suite> bit_suites() {
  std::vector<Suite> suites;
  const auto add = [&](const std::string& op, const std::string& what, Prepare prepare,
                       int most_bits = 8) {
    for (int bits = 1; bits <= most_bits; ++bits) {
      suites.push_back(suite_of(op, what, bits, prepare));
    }
  };
  add("bit_aggregate", "every target adds its sources' codes of so many bits, bytes in and out",
      [](const Problem& problem, int bits) -> std::unique_ptr<Trial> {
        return std::make_unique<ByteSums>(problem, bits, false);
      });
  add("bit_lists", "the same, and the sources come with the run as lists",
      [](const Problem& problem, int bits) -> std::unique_ptr<Trial> {
        return std::make_unique<ByteSums>(problem, bits, true);
      });
  add(
      "bit_gemm", "the adjacency as a dense matrix of bits times codes of so many bits",
      [](const Problem& problem, int bits) -> std::unique_ptr<Trial> {
        return std::make_unique<DenseSums>(problem, bits);
      },
      quant::max_bits);
  return suites;
}

}  // namespace tessera::bench
