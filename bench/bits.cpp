// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/bits.hpp"

#include <algorithm>
#include <string>

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

/// The sums of a graph's pattern and drawn codes: on its edges, or as a dense matrix of bits.
class BitSums final : public Trial {
 public:
  BitSums(const Problem& problem, int bits, bool dense)
      : graph_(problem.graph),
        dense_(dense),
        device_(problem.device),
        codes_(dense ? drawn(problem.features, graph_.num_cols(), bits, problem.seed)
                     : drawn(graph_.num_cols(), problem.features, bits, problem.seed)),
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
          expected += dense_ ? codes_.view().code(j, source) : codes_.view().code(source, j);
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
    const std::int64_t pattern = dense_ ? std::int64_t{graph_.num_rows()} * graph_.num_cols() / 8
                                        : structure_bytes(graph_, device_);
    return pattern + codes_.num_bytes() + sums_.bytes();
  }
  std::string kernel() const override { return plan_.kernel().name; }
  std::string plan() const override { return plan_.explain().summary; }

 private:
  ops::BitPlan make_plan(const Problem& problem, int bits) const {
    ops::BitOptions options;
    set_plan_options(problem, options);
    options.cols = problem.features;
    options.b_bits = bits;
    if (!dense_) return ops::plan_bit_aggregate(pattern_of(graph_), options);
    if (std::int64_t{graph_.num_rows()} * graph_.num_cols() > most_dense_bits) {
      throw Error(ErrorCode::unsupported, "a dense matrix of more than 2^33 bits", "bit_gemm",
                  "use a smaller graph");
    }
    return ops::plan_bit_gemm(quant::pack_pattern(graph_), options);
  }

  static Graph pattern_of(const Graph& graph) {
    return {graph.num_rows(), graph.num_cols(), graph.row_offsets(), graph.col_indices()};
  }

  Graph graph_;
  bool dense_;
  Device device_;
  quant::BitTensor codes_;
  Buffer<std::uint32_t> words_;
  Placed<std::int32_t> sums_;
  ops::BitPlan plan_;
};

Suite suite_of(int bits, bool dense) {
  const std::string name = dense ? "bit_gemm" : "bit_aggregate";
  return {name + "_" + std::to_string(bits),
          dense ? "the adjacency as a dense matrix of bits times codes of so many bits"
                : "every target adds its sources' codes of so many bits",
          {name},
          {Precision::fp32},
          0,
          [bits, dense](const Problem& problem) {
            return std::make_unique<BitSums>(problem, bits, dense);
          },
          {32, 64, 128},
          true};
}

}  // namespace

std::vector<Suite> bit_suites() {
  std::vector<Suite> suites;
  for (const bool dense : {false, true}) {
    for (const int bits : {1, 2, 4, 8}) suites.push_back(suite_of(bits, dense));
  }
  return suites;
}

}  // namespace tessera::bench
