// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/calibration.hpp"

#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "ops/plan/calibrate/calibrate.hpp"
#include "ops/plan/calibration.hpp"
#include "support/expect_error.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/random.hpp"
#include "tessera/core/version.hpp"

namespace tessera::ops {
namespace {

TEST(Calibration, WindowsHaveTheColumnsAndEntriesOfTheirKind) {
  for (const WindowKind& kind : window_kinds(false)) {
    SCOPED_TRACE(::testing::Message() << kind.columns << " columns, " << kind.entries_per_column);
    constexpr std::int64_t windows = 60;
    const Graph graph = draw_windows(kind, windows, 7);
    ASSERT_EQ(graph.num_rows(), 16 * windows);
    for (std::int64_t window = 0; window < windows; ++window) {
      std::set<VertexId> columns;
      const EdgeOffset begin = graph.row_offsets()[16 * window];
      const EdgeOffset end = graph.row_offsets()[16 * (window + 1)];
      for (EdgeOffset edge = begin; edge < end; ++edge) columns.insert(graph.col_indices()[edge]);
      ASSERT_EQ(static_cast<VertexId>(columns.size()), kind.columns);
      // Entries that fall on another are dropped.
      ASSERT_LE(end - begin, EdgeOffset{kind.columns} * kind.entries_per_column);
      ASSERT_GE(end - begin, kind.columns);
    }
  }
}

TEST(Calibration, TheSameSeedDrawsTheSameWindows) {
  const WindowKind kind{30, 3, false};
  const Graph once = draw_windows(kind, 40, 5), again = draw_windows(kind, 40, 5);
  ASSERT_EQ(once.num_edges(), again.num_edges());
  for (EdgeOffset edge = 0; edge < once.num_edges(); ++edge) {
    ASSERT_EQ(once.col_indices()[edge], again.col_indices()[edge]);
  }
}

/// Two kernels whose models are wrong in a way that a regression can see: the first takes twice
/// what its model says on wide rows, the second half of it on long ones.
std::vector<TimedCase> cases(std::uint64_t seed, int count) {
  const Random random(seed);
  std::vector<TimedCase> all;
  std::uint64_t drawn = 0;
  for (int i = 0; i < count; ++i) {
    TimedCase timed;
    timed.shape.mean_degree = std::exp2(6 * random.uniform(drawn++));
    timed.shape.row_bytes = std::exp2(6 + 4 * random.uniform(drawn++));
    const auto add = [&](const char* name, double predicted, double logarithm) {
      timed.kernels.push_back({name, predicted, predicted * std::exp2(logarithm)});
    };
    const double us = std::exp2(3 + 6 * random.uniform(drawn++));
    add("a", us, 0.5 * (std::log2(timed.shape.row_bytes) - 8));
    add("b", us * std::exp2(random.uniform(drawn++) - 0.5),
        -0.3 * (std::log2(timed.shape.mean_degree) - 3));
    all.push_back(std::move(timed));
  }
  return all;
}

TEST(Calibration, FindsWhatModelsLackAndChoosesBetterForIt) {
  Calibration calibration;
  fit_corrections(cases(1, 200), cases(2, 60), calibration);
  ASSERT_EQ(calibration.kernels.size(), 2u);
  const KernelCorrection* const a = calibration.find("a", 4);
  ASSERT_NE(a, nullptr);
  EXPECT_NEAR(a->coefficients[2], 0.5, 0.03);
  EXPECT_NEAR(a->coefficients[1], 0, 0.03);
  EXPECT_NEAR(calibration.find("b", 4)->coefficients[1], -0.3, 0.03);
  EXPECT_EQ(calibration.find("a", 2), nullptr);
  EXPECT_LT(a->error_after, 0.1 * a->error_before);
  EXPECT_GT(calibration.built_in.mean_regret, 1.05);
  EXPECT_LT(calibration.fitted.mean_regret, 1.01);
  EXPECT_GT(calibration.fitted.right, 0.95);
  EXPECT_LT(calibration.built_in.right, calibration.fitted.right);
  EXPECT_GT(calibration.majority.mean_regret, calibration.fitted.mean_regret);
}

TEST(Calibration, LeavesCostsAloneWhereItWouldChooseWorse) {
  // What is held out is the opposite of what was fitted.
  std::vector<TimedCase> opposite = cases(3, 60);
  for (TimedCase& timed : opposite) {
    for (TimedKernel& kernel : timed.kernels) {
      kernel.measured_us = kernel.predicted_us * kernel.predicted_us / kernel.measured_us;
    }
  }
  Calibration calibration;
  fit_corrections(cases(1, 200), opposite, calibration);
  EXPECT_TRUE(calibration.kernels.empty());
  EXPECT_EQ(calibration.fitted.mean_regret, calibration.built_in.mean_regret);
}

/// Each op is judged by itself: what one gains does not pay for what another loses.
TEST(Calibration, KeepsTheCorrectionsOfOneOpAndNotOfAnother) {
  const auto renamed = [](std::vector<TimedCase> all, const std::string& op) {
    for (TimedCase& timed : all) {
      for (TimedKernel& kernel : timed.kernels) kernel.kernel = op + "/" + kernel.kernel;
    }
    return all;
  };
  std::vector<TimedCase> fitted = renamed(cases(1, 200), "spmm");
  std::vector<TimedCase> held_out = renamed(cases(2, 60), "spmm");
  for (TimedCase& timed : renamed(cases(4, 200), "sddmm")) fitted.push_back(std::move(timed));
  for (TimedCase& timed : renamed(cases(5, 60), "sddmm")) {
    for (TimedKernel& kernel : timed.kernels) {
      kernel.measured_us = kernel.predicted_us * kernel.predicted_us / kernel.measured_us;
    }
    held_out.push_back(std::move(timed));
  }
  Calibration calibration;
  fit_corrections(fitted, held_out, calibration);
  EXPECT_NE(calibration.find("spmm/a", 4), nullptr);
  EXPECT_EQ(calibration.find("sddmm/a", 4), nullptr);
  EXPECT_LT(calibration.fitted.mean_regret, calibration.built_in.mean_regret);
}

TEST(Calibration, ReadsWhatItWrites) {
  Calibration calibration;
  calibration.device = "NVIDIA H200";
  calibration.date = "2026-11-16";
  calibration.commit = "1a2b3c";
  calibration.windows = 10000;
  fit_corrections(cases(1, 50), cases(2, 20), calibration);
  const Calibration again = Calibration::parse(calibration.to_text(), "here");
  EXPECT_EQ(again.to_text(), calibration.to_text());
  EXPECT_EQ(again.device, "NVIDIA H200");
  ASSERT_EQ(again.kernels.size(), 2u);
  const CostShape shape{12, 256, 4};
  EXPECT_NEAR(again.kernels[0].factor(shape, 30), calibration.kernels[0].factor(shape, 30), 1e-4);
}

TEST(Calibration, NoticesWhereAFileBreaksOff) {
  Calibration calibration;
  calibration.device = "X";
  calibration.kernels.push_back({"spmm/cpu/rows", 4, {0.125, -0.25, 1, 2}, 18, 0.5, 0.25});
  const std::string whole = calibration.to_text();
  // The end of the last line alone may be missing.
  for (std::size_t size = 0; size + 1 < whole.size(); ++size) {
    EXPECT_THROW(Calibration::parse(whole.substr(0, size), "costs.tsv"), Error) << size;
  }
  EXPECT_EQ(Calibration::parse(whole, "costs.tsv").to_text(), whole);
  EXPECT_THROW(Calibration::parse(whole + "device\tY\n", "costs.tsv"), Error);
}

TEST(Calibration, SaysWhatIsWrongWithAFile) {
  const auto problem = [](const std::string& text) {
    try {
      Calibration::parse(text, "costs.tsv");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data) << error.what();
      return std::string(error.what());
    }
    return std::string("none");
  };
  const std::string head = "tessera calibration\t2\ndevice\tX\n";
  EXPECT_EQ(problem(head + "kernels\t0\n"), "none");
  EXPECT_NE(problem("tessera plans\t1\n").find("not a calibration"), std::string::npos);
  EXPECT_NE(problem("tessera calibration\t2\nkernels\t0\n").find("of which device"),
            std::string::npos);
  EXPECT_NE(problem(head + "kernel\ta\t4\tx\t0\t0\t0\t1\t0\t0\n").find("line 3"),
            std::string::npos);
  EXPECT_NE(problem(head + "nonsense\n").find("no meaning"), std::string::npos);
  EXPECT_NE(problem(head + "drawn\t-1\t1\t1\n").find("no count"), std::string::npos);
}

TEST(Calibration, SaysOfAnotherFormatThatItIs) {
  testing::expect_error(ErrorCode::unsupported, {"format 9", "reads format 2"},
                        [] { Calibration::parse("tessera calibration\t9\n", "costs.tsv"); });
}

TEST(Calibration, CountsTheCasesThatAreClear) {
  const auto timed = [](double first, double second) {
    return TimedCase{{}, {{"a", 1, first}, {"b", 2, second}}};
  };
  const std::vector<TimedCase> cases = {timed(10, 10.5), timed(10, 20), timed(30, 10)};
  const ChoiceQuality quality = quality_of(cases, nullptr);
  EXPECT_EQ(quality.cases, 3);
  EXPECT_EQ(quality.clear, 2);
  EXPECT_DOUBLE_EQ(quality.right, 0.5);
  EXPECT_DOUBLE_EQ(quality.worst_regret, 3);
  EXPECT_EQ(quality_of({cases.data(), 1}, nullptr).clear, 0);
  // One of two that are as good as each other is right where a third is not.
  const std::vector<TimedCase> three = {{{}, {{"a", 1, 10.5}, {"b", 2, 10}, {"c", 3, 20}}}};
  EXPECT_EQ(quality_of(three, nullptr).clear, 1);
  EXPECT_EQ(quality_of(three, nullptr).right, 1);
}

TEST(Calibration, CorrectsAPredictionWithinBounds) {
  KernelCorrection correction;
  correction.kernel = "spmm/cpu/rows";
  correction.coefficients = {1, 0, 0, 0};
  Calibration calibration;
  calibration.kernels = {correction};
  const std::string kernel = "spmm/cpu/rows";
  EXPECT_DOUBLE_EQ(corrected_us(&calibration, kernel, {8, 256, 4}, 10), 20);
  EXPECT_DOUBLE_EQ(corrected_us(&calibration, kernel, {8, 256, 2}, 10), 10);
  EXPECT_DOUBLE_EQ(corrected_us(nullptr, kernel, {8, 256, 4}, 10), 10);
  calibration.kernels[0].coefficients[0] = 50;
  EXPECT_DOUBLE_EQ(corrected_us(&calibration, kernel, {8, 256, 4}, 10), 40);
}

TEST(Calibration, TimesTheKernelsOfThisMachine) {
  CalibrationOptions options;
  options.windows = 3;
  options.quick = true;
  options.features = {4};
  options.precisions = {Precision::fp32};
  const Calibration found = calibrate(options);
  EXPECT_EQ(found.batches, 10);
  EXPECT_EQ(found.held_out, 7);  // of which four are graphs of kinds that no batch is
  EXPECT_EQ(found.version, version());
  EXPECT_GE(found.built_in.mean_regret, 1);
  EXPECT_LE(found.fitted.mean_regret, found.built_in.mean_regret);
  EXPECT_NE(found.device.find("CPU"), std::string::npos);
}

}  // namespace
}  // namespace tessera::ops
