// SPDX-License-Identifier: Apache-2.0
#include "bench/suite.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/core/error.hpp"
#include "tessera/data/embedded.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/ops/kernels.hpp"

#include "support/errors.hpp"
#include "support/training_data.hpp"

namespace tessera::bench {
namespace {

Graph directed_graph() {
  const std::vector<VertexId> rows = {0, 0, 1, 3, 3, 3, 3}, cols = {1, 4, 0, 0, 1, 2, 3};
  const std::vector<float> values = {1, -2, 0.5f, 3, 1, 1, 2};
  return from_coo(4, 5, rows, cols, values);
}

MeasureOptions shortest() {
  MeasureOptions options;
  options.warmups = 0;
  options.repeats = 1;
  options.min_seconds = 0;
  return options;
}

TEST(Suites, HaveNamesOfTheirOwn) {
  for (const Suite& suite : suites()) EXPECT_EQ(&find_suite(suite.op), &suite);
  EXPECT_THAT(test::argument_problem([] { find_suite("spmmm"); }), testing::HasSubstr("use spmm,"));
}

TEST(Suites, PassTheirOwnChecksOnOddGraphs) {
  const Graph graphs[] = {Graph(), from_coo(1, 1, {}, {}), directed_graph()};
  for (const Suite& suite : suites()) {
    if (suite.on_request) continue;
    for (const Graph& graph : graphs) {
      for (const Precision precision : suite.precisions) {
        for (const std::int64_t features : {1, 16, 33}) {
          SCOPED_TRACE(testing::Message() << suite.op << " " << graph.num_rows() << " rows "
                                          << to_string(precision) << " " << features);
          Problem problem{graph, "odd", features, precision, default_heads(suite, features), "", 1};
          const Gate gate = suite.prepare(problem)->check();
          EXPECT_TRUE(gate.passed()) << gate.max_error << " above " << gate.bound;
          EXPECT_LE(gate.rows_checked, gate.rows_total);
        }
      }
    }
  }
}

/// Ops that the GPU does not have yet are passed over.
TEST(Suites, CudaKernelsPassTheirChecksOnOddGraphs) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  int passed = 0;
  for (const Suite& suite : suites()) {
    if (suite.on_request) continue;
    for (const Precision precision : precisions_on(suite, DeviceKind::cuda)) {
      for (const std::int64_t features : {1, 16, 33}) {
        SCOPED_TRACE(testing::Message()
                     << suite.op << " " << to_string(precision) << " " << features);
        Problem problem{
            directed_graph(), "odd", features, precision, default_heads(suite, features), "", 1};
        problem.device = {DeviceKind::cuda, 0};
        try {
          const Result result = run_suite(suite, problem, shortest());
          EXPECT_TRUE(result.gate.passed())
              << result.gate.max_error << " above " << result.gate.bound;
          EXPECT_EQ(result.record.device, "cuda:0");
          ++passed;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
        }
      }
    }
  }
  EXPECT_GT(passed, 0);
}

TEST(Suites, ThoseOnRequestPassTheirChecks) {
  const auto karate = std::make_shared<const Dataset>(embedded_dataset("karate"));
  const auto graphs = std::make_shared<const Dataset>(test::learnable_graphs());
  for (const Suite& suite : suites()) {
    if (!suite.on_request) continue;
    const auto& dataset = suite.op.starts_with("graphs_") ? graphs : karate;
    std::vector<std::int64_t> widths = suite.features;
    widths.push_back(16);
    for (const std::int64_t features : widths) {
      SCOPED_TRACE(testing::Message() << suite.op << " " << features);
      const Problem problem{dataset->graph,
                            dataset->name,
                            features,
                            Precision::fp32,
                            default_heads(suite, features),
                            "",
                            1,
                            dataset};
      const Result result = run_suite(suite, problem, shortest());
      EXPECT_TRUE(result.gate.passed()) << result.gate.max_error;
      EXPECT_GT(result.record.features, 0);
      EXPECT_GT(result.record.median_us, 0);
    }
  }
  const Suite& epoch = find_suite("epoch_gcn");
  const Problem rectangular{directed_graph(), "odd", 0, Precision::fp32, 1, "", 1, {}};
  EXPECT_THROW(epoch.prepare(rectangular), Error);
  const Problem one{karate->graph, "karate", 0, Precision::fp32, 1, "", 1, karate};
  EXPECT_THROW(find_suite("graphs_gin").prepare(one), Error);
}

TEST(Suites, AreFoundByTheBeginningOfTheirNames) {
  EXPECT_EQ(find_suites("spmm").size(), 1u);
  EXPECT_EQ(find_suites("epoch").size(), 8u);
  EXPECT_EQ(find_suites("epoch_gat").front(), &find_suite("epoch_gat"));
  EXPECT_THROW(find_suites("epo"), Error);
}

TEST(Suites, CoverEveryRegisteredOp) {
  for (const ops::KernelInfo& info : ops::kernels()) {
    bool covered = false;
    for (const Suite& suite : suites()) {
      const std::vector<std::string> names = kernel_names(suite, info.device);
      covered = covered || std::find(names.begin(), names.end(), info.name) != names.end();
    }
    EXPECT_TRUE(covered) << info.name << " is in no suite";
  }
}

TEST(Suites, MakeWholeRecords) {
  const Suite& suite = find_suite("spmm");
  const Problem problem{directed_graph(), "odd", 16, Precision::fp32, 1, "", 1};
  const Result result = run_suite(suite, problem, shortest());
  EXPECT_EQ(result.record.op, "spmm");
  EXPECT_EQ(result.record.graph, "odd");
  EXPECT_EQ(result.record.precision, "fp32");
  EXPECT_EQ(result.record.device, "cpu");
  EXPECT_GT(result.record.threads, 0);
  EXPECT_THAT(result.record.kernel, testing::StartsWith("spmm/cpu/"));
  EXPECT_GT(result.record.median_us, 0);
  EXPECT_GT(result.record.floor_us, 0);
  EXPECT_EQ(result.repeats, 1);
  // Offsets, columns, values, X and Y.
  EXPECT_EQ(result.bytes, 5 * 8 + 7 * 4 + 7 * 4 + 5 * 16 * 4 + 4 * 16 * 4);
}

/// A kernel that is wrong.
class Wrong : public Trial {
 public:
  Gate check() override { return {1, 1e-6, 1, 1}; }
  void run(Stream) override { FAIL() << "measured although it is wrong"; }
  std::int64_t bytes() const override { return 1; }
  std::string kernel() const override { return "wrong"; }
};

TEST(Suites, DoNotMeasureWhatIsWrong) {
  const Suite suite{"wrong", "",
                    {},      {Precision::fp32},
                    false,   [](const Problem&) { return std::make_unique<Wrong>(); }};
  const Result result = run_suite(suite, {Graph(), "none"}, shortest());
  EXPECT_FALSE(result.gate.passed());
  EXPECT_EQ(result.record.median_us, 0);
  EXPECT_EQ(result.repeats, 0);
}

}  // namespace
}  // namespace tessera::bench
