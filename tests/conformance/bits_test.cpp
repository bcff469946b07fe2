// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/core/parallel.hpp"
#include "tessera/ops/bits.hpp"

#include "ops/bits/finish.hpp"
#include "ops/bits/kernel.hpp"
#include "ops/bits/reference.hpp"
#include "ops/bits/store.hpp"
#include "ops/simd/isa.hpp"
#include "support/bits.hpp"
#include "support/expect_error.hpp"
#include "support/kernel_names.hpp"
#include "support/odd_graphs.hpp"

namespace tessera::ops {
namespace {

using testing::drawn_bits;
using testing::OnDeviceArray;
using testing::PlacedBits;

struct Shape {
  std::int64_t rows, cols, depth;
};

std::string text(const Shape& shape, int s, int t) {
  return std::to_string(shape.rows) + "x" + std::to_string(shape.cols) + "x" +
         std::to_string(shape.depth) + ", " + std::to_string(s) + " by " + std::to_string(t);
}

/// Runs a plan of 32-bit sums and brings them back.
std::vector<std::int32_t> run_sums(const BitPlan& plan, const BitInputs& inputs) {
  const BitOptions& options = plan.options();
  std::vector<std::int32_t> sums(static_cast<std::size_t>(options.rows * options.cols), -77);
  OnDeviceArray<std::int32_t> there(sums.data(), options.rows * options.cols, options.device);
  BitOutputs outputs;
  outputs.sums32 = {there.data(), options.rows, options.cols, options.device};
  run(plan, inputs, outputs);
  there.fetch(sums.data());
  return sums;
}

std::vector<std::int32_t> narrow(const Matrix<std::int64_t>& sums) {
  return {sums.span().begin(), sums.span().end()};
}

class BitGemmKernels : public ::testing::TestWithParam<std::string> {
 protected:
  Device device_ = testing::device_of(GetParam());

  BitOptions options(const Shape& shape, int s, int t) const {
    BitOptions options;
    options.device = device_;
    options.kernel = GetParam();
    options.rows = shape.rows;
    options.cols = shape.cols;
    options.depth = shape.depth;
    options.a_bits = s;
    options.b_bits = t;
    return options;
  }

  bool takes(const BitOptions& options) const {
    return testing::kernel_named(bit_gemm_kernels(), GetParam())
        .why_not({Graph(), options, nullptr, false})
        .empty();
  }

  void expect_exact(const Shape& shape, int s, int t) const {
    const BitOptions wanted = options(shape, s, t);
    if (!takes(wanted)) return;
    SCOPED_TRACE(text(shape, s, t));
    const quant::BitTensor a = drawn_bits(shape.rows, shape.depth, s, 1);
    const quant::BitTensor b = drawn_bits(shape.cols, shape.depth, t, 2);
    Matrix<std::int64_t> expected(shape.rows, shape.cols);
    reference::bit_gemm(a, b, {expected.data(), shape.rows, shape.cols});
    PlacedBits a_there(a, device_), b_there(b, device_);
    EXPECT_EQ(run_sums(plan_bit_gemm(wanted), {a_there.view(), b_there.view(), {}}),
              narrow(expected));
    EXPECT_EQ(run_sums(plan_bit_gemm(a, wanted), {{}, b_there.view(), {}}), narrow(expected))
        << "A stays";
  }
};

TEST_P(BitGemmKernels, AreExactForAllBits) {
  for (int s = 1; s <= quant::max_bits; ++s) {
    for (int t = 1; t <= quant::max_bits; ++t) {
      if (s + t + 7 <= 31) expect_exact({9, 5, 100}, s, t);
    }
  }
}

TEST_P(BitGemmKernels, AreExactAroundTileEdges) {
  const std::vector<std::int64_t> edges = {0, 1, 7, 8, 9, 15, 17, 31, 32, 33, 63, 64, 65};
  for (const std::int64_t n : edges) {
    expect_exact({n, 33, 130}, 1, 3);
    expect_exact({17, n, 130}, 2, 2);
    expect_exact({17, 9, n}, 3, 4);
  }
  for (const std::int64_t depth :
       {127, 128, 129, 255, 256, 257, 511, 513, 1023, 1024, 1025, 5000}) {
    expect_exact({5, 6, depth}, 1, 1);
    expect_exact({5, 6, depth}, 1, 8);
    expect_exact({5, 6, depth}, 3, 2);
  }
  for (const std::int64_t size : {127, 128, 129, 255, 257}) {
    expect_exact({size, 3, 300}, 1, 1);
    expect_exact({size, 3, 300}, 1, 4);
    expect_exact({2, size, 300}, 1, 1);
    expect_exact({2, size, 300}, 1, 8);
  }
  expect_exact({300, 130, 4100}, 1, 1);
  expect_exact({300, 130, 4100}, 1, 5);
}

TEST_P(BitGemmKernels, SkipTilesWithoutBits) {
  // Blocks on the diagonal, as the parts of a batch stand.
  const std::int64_t n = 2300;
  Matrix<std::uint16_t> codes(n, n, std::uint16_t{0});
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t k = i / 100 * 100; k < std::min(n, i / 100 * 100 + 100); ++k) {
      codes(i, k) = static_cast<std::uint16_t>((i * 7 + k * 3) % 5 == 0);
    }
  }
  const quant::BitTensor a = quant::pack_rows(testing::codes_view(codes), 1);
  for (const int t : {1, 4, 8}) {
    const BitOptions wanted = options({n, 20, n}, 1, t);
    if (!takes(wanted)) continue;
    const quant::BitTensor b = drawn_bits(20, n, t, 3);
    Matrix<std::int64_t> expected(n, 20);
    reference::bit_gemm(a, b, {expected.data(), n, 20});
    PlacedBits there(b, device_);
    EXPECT_EQ(run_sums(plan_bit_gemm(a, wanted), {{}, there.view(), {}}), narrow(expected)) << t;
  }
}

TEST_P(BitGemmKernels, TakeBlocksOfTheDiagonal) {
  // Parts of 128, 256 and 384 vertices; the last has fewer.
  const std::vector<std::int32_t> starts = {0, 0, 128, 128, 128, 128, 384, 384, 384, 384, 384};
  const std::int64_t block = 384;
  const std::int64_t rows = 700;
  const quant::BitTensor whole_b = drawn_bits(37, rows, 3, 7);
  for (const int s : {1, 2}) {
    BitOptions wanted = options({rows, 37, rows}, s, 3);
    wanted.block = block;
    if (!takes(wanted)) continue;
    Matrix<std::uint16_t> whole(rows, rows, std::uint16_t{0});
    Matrix<std::uint16_t> blocks(rows, block, std::uint16_t{0});
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int32_t start = starts[static_cast<std::size_t>(i / 64)];
      const std::int64_t width = start == 0 ? 128 : start == 128 ? 256 : rows - 384;
      for (std::int64_t k = 0; k < width; ++k) {
        const auto code = static_cast<std::uint16_t>((i * 5 + k * 11) % 7 % (1 << s));
        blocks(i, k) = whole(i, start + k) = code;
      }
    }
    const quant::BitTensor a = quant::pack_rows(testing::codes_view(blocks), s);
    Matrix<std::int64_t> expected(rows, 37);
    reference::bit_gemm(quant::pack_rows(testing::codes_view(whole), s), whole_b,
                        {expected.data(), rows, 37});
    PlacedBits a_there(a, device_), b_there(whole_b, device_);
    OnDeviceArray<std::int32_t> starts_there(starts.data(), std::ssize(starts), device_);
    BitInputs inputs{a_there.view(), b_there.view(), {}};
    inputs.block_starts = {starts_there.data(), std::ssize(starts), 1, device_};
    EXPECT_EQ(run_sums(plan_bit_gemm(wanted), inputs), narrow(expected)) << s;
  }
}

/// Everything that an epilogue can have, against its formula.
struct EpilogueCase {
  explicit EpilogueCase(std::int64_t rows, std::int64_t cols, Device device)
      : rows_(rows), cols_(cols), device_(device), numbers_(2 * (4 * rows + 7 * cols)) {
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      numbers_[i] = static_cast<float>(static_cast<double>(i * 37 % 101) / 40.0 - 1.1);
    }
    there_.emplace_back(numbers_.data(), static_cast<std::int64_t>(numbers_.size()), device);
  }

  BitEpilogue parts() { return parts_at(there_.front().data(), device_); }
  BitEpilogue host_parts() { return parts_at(numbers_.data(), {}); }

 private:
  BitEpilogue parts_at(float* at, Device device) const {
    const auto take = [&](std::int64_t rows, std::int64_t cols) {
      const MatrixView<const float> part(at, rows, cols, device);
      at += rows * cols;
      return part;
    };
    BitEpilogue parts;
    parts.row_scale = take(rows_, 1);
    parts.row_terms = take(rows_, 2);
    parts.col_scale = take(1, cols_);
    parts.col_terms = take(2, cols_);
    parts.bias = take(1, cols_);
    parts.norm_scale = take(1, cols_);
    parts.norm_shift = take(1, cols_);
    parts.result_scale = take(rows_, 1);
    return parts;
  }

  std::int64_t rows_, cols_;
  Device device_;
  std::vector<float> numbers_;
  std::vector<OnDeviceArray<float>> there_;
};

TEST_P(BitGemmKernels, FinishTheirSums) {
  const Shape shape{67, 35, 200};
  const quant::BitTensor a = drawn_bits(shape.rows, shape.depth, 1, 4);
  const quant::BitTensor b = drawn_bits(shape.cols, shape.depth, 3, 5);
  Matrix<std::int64_t> sums(shape.rows, shape.cols);
  reference::bit_gemm(a, b, {sums.data(), shape.rows, shape.cols});
  EpilogueCase numbers(shape.rows, shape.cols, device_);
  PlacedBits a_there(a, device_), b_there(b, device_);
  for (const BitActivation activation : {BitActivation::none, BitActivation::relu}) {
    for (const BitOutput output : {BitOutput::values, BitOutput::rows, BitOutput::columns}) {
      SCOPED_TRACE(std::string(to_string(activation)) + ", " + to_string(output));
      BitOptions wanted = options(shape, 1, 3);
      wanted.output = output;
      wanted.activation = activation;
      wanted.terms = 2;
      quant::Affine ranges{.bits = 5,
                           .rounding = activation == BitActivation::none ? quant::Rounding::nearest
                                                                         : quant::Rounding::floor,
                           .granularity = quant::Granularity::columns};
      for (std::int64_t j = 0; j < shape.cols; ++j) {
        ranges.lower.push_back(-40.0f - static_cast<float>(j));
        ranges.scale.push_back(3.7f);
      }
      if (output != BitOutput::values) wanted.requantise = ranges;
      const BitFinish finish =
          make_finish(wanted, numbers.host_parts(), ranges.lower.data(), ranges.scale.data());
      const BitPlan plan = plan_bit_gemm(wanted);
      const BitInputs inputs{a_there.view(), b_there.view(), numbers.parts()};
      if (output == BitOutput::values) {
        Matrix<float> values(shape.rows, shape.cols, -7.0f);
        OnDeviceArray<float> there(values.data(), values.size(), device_);
        BitOutputs outputs;
        outputs.values = {there.data(), shape.rows, shape.cols, device_};
        run(plan, inputs, outputs);
        there.fetch(values.data());
        for (std::int64_t i = 0; i < shape.rows; ++i) {
          for (std::int64_t j = 0; j < shape.cols; ++j) {
            ASSERT_EQ(values(i, j), finish.value(i, j, static_cast<float>(sums(i, j))));
          }
        }
        continue;
      }
      const bool by_rows = output == BitOutput::rows;
      PlacedBits codes(5, by_rows ? shape.rows : shape.cols, by_rows ? shape.cols : shape.rows,
                       device_);
      BitOutputs outputs;
      outputs.codes = codes.view();
      run(plan, inputs, outputs);
      const quant::BitTensor result = codes.fetch();
      result.validate();
      bool varied = false;
      for (std::int64_t i = 0; i < shape.rows; ++i) {
        for (std::int64_t j = 0; j < shape.cols; ++j) {
          const float value = finish.value(i, j, static_cast<float>(sums(i, j)));
          const std::uint32_t code = by_rows ? result.view().code(i, j) : result.view().code(j, i);
          ASSERT_EQ(code, finish.code(j, value)) << i << ' ' << j;
          varied = varied || (code != 0 && code != 31);
        }
      }
      EXPECT_TRUE(varied);
    }
  }
}

TEST_P(BitGemmKernels, SumInMoreBitsOrSayThatTheyCannot) {
  const Shape shape{3, 4, 300};
  const BitOptions narrow_sums = options(shape, 12, 12);
  testing::expect_error(ErrorCode::invalid_argument, {"may take 33 bits", "sums64"},
                        [&] { plan_bit_gemm(narrow_sums); });
  BitOptions wanted = narrow_sums;
  wanted.a_bits = wanted.b_bits = 16;
  wanted.output = BitOutput::sums64;
  if (!takes(wanted)) return;
  const quant::BitTensor a = drawn_bits(shape.rows, shape.depth, 16, 6);
  const quant::BitTensor b = drawn_bits(shape.cols, shape.depth, 16, 7);
  Matrix<std::int64_t> expected(shape.rows, shape.cols);
  Matrix<std::int64_t> sums(shape.rows, shape.cols);
  reference::bit_gemm(a, b, {expected.data(), shape.rows, shape.cols});
  BitOutputs outputs;
  outputs.sums64 = {sums.data(), shape.rows, shape.cols};
  run(plan_bit_gemm(wanted), {a, b, {}}, outputs);
  EXPECT_TRUE(std::equal(sums.span().begin(), sums.span().end(), expected.span().begin()));
  EXPECT_GT(expected(0, 0), std::int64_t{1} << 31);
}

INSTANTIATE_TEST_SUITE_P(All, BitGemmKernels,
                         ::testing::ValuesIn(testing::kernel_names("bit_gemm")),
                         testing::kernel_test_name);

class BitAggregateKernels : public ::testing::TestWithParam<std::string> {
 protected:
  Device device_ = testing::device_of(GetParam());

  BitOptions options(std::int64_t cols, int bits) const {
    BitOptions options;
    options.device = device_;
    options.kernel = GetParam();
    options.cols = cols;
    options.b_bits = bits;
    return options;
  }

  void expect_exact(const Graph& graph, std::int64_t cols, int bits) const {
    SCOPED_TRACE(std::to_string(cols) + " columns of " + std::to_string(bits) + " bits");
    BitOptions wanted = options(cols, bits);
    BitProblem problem{graph, wanted, nullptr, true};
    problem.options.rows = graph.num_rows();
    problem.options.depth = graph.num_cols();
    if (!testing::kernel_named(bit_aggregate_kernels(), GetParam()).why_not(problem).empty()) {
      return;
    }
    const quant::BitTensor b = drawn_bits(graph.num_cols(), cols, bits, 8);
    Matrix<std::int64_t> expected(graph.num_rows(), cols);
    reference::bit_aggregate(graph, b, {expected.data(), expected.rows(), cols});
    PlacedBits there(b, device_);
    EXPECT_EQ(run_sums(plan_bit_aggregate(graph, wanted), {{}, there.view(), {}}),
              narrow(expected));
  }
};

TEST_P(BitAggregateKernels, AreExactOnOddGraphs) {
  std::vector<testing::NamedGraph> graphs = testing::odd_patterns();
  graphs.push_back({"hub", testing::hub_graph(300, 5000, 3)});
  for (const testing::NamedGraph& named : graphs) {
    SCOPED_TRACE(named.name);
    for (const int bits : {1, 2, 4, 7, 8, 9, 16}) expect_exact(named.graph, 17, bits);
    for (const std::int64_t cols : {0, 1, 15, 16, 31, 32, 33, 64, 127, 128, 129, 257, 300}) {
      expect_exact(named.graph, cols, 8);
    }
  }
}

TEST_P(BitAggregateKernels, AreExactForAllBits) {
  const Graph graph = testing::random_graph(200, 150, 3000, 6, false);
  for (int bits = 1; bits <= quant::max_bits; ++bits) expect_exact(graph, 40, bits);
}

TEST_P(BitAggregateKernels, FinishTheirSumsWithCodesOfTheTarget) {
  const Graph graph = testing::random_graph(90, 90, 700, 9, false);
  const std::int64_t cols = 21;
  for (const int bits : {3, 8, 12}) {
    for (const float own : {0.0f, 1.0f, 1.37f}) {
      SCOPED_TRACE(std::to_string(bits) + " bits, own " + std::to_string(own));
      BitOptions wanted = options(cols, bits);
      wanted.output = BitOutput::values;
      wanted.activation = BitActivation::relu;
      wanted.terms = 2;
      wanted.own = own;
      BitProblem problem{graph, wanted, nullptr, true};
      problem.options.rows = problem.options.depth = 90;
      if (!testing::kernel_named(bit_aggregate_kernels(), GetParam()).why_not(problem).empty()) {
        continue;
      }
      const quant::BitTensor b = drawn_bits(90, cols, bits, 8);
      Matrix<std::int64_t> sums(90, cols);
      reference::bit_aggregate(graph, b, {sums.data(), 90, cols});
      EpilogueCase numbers(90, cols, device_);
      PlacedBits there(b, device_);
      Matrix<float> values(90, cols, -7.0f);
      OnDeviceArray<float> result(values.data(), values.size(), device_);
      BitOutputs outputs;
      outputs.values = {result.data(), 90, cols, device_};
      run(plan_bit_aggregate(graph, wanted), {{}, there.view(), numbers.parts()}, outputs);
      result.fetch(values.data());
      BitOptions without = wanted;
      without.own = 0;
      const BitFinish finish = make_finish(without, numbers.host_parts(), nullptr, nullptr);
      for (std::int64_t i = 0; i < 90; ++i) {
        for (std::int64_t j = 0; j < cols; ++j) {
          const auto code = static_cast<float>(b.view().code(i, j));
          const float sum = std::fma(own, code, static_cast<float>(sums(i, j)));
          ASSERT_EQ(values(i, j), finish.value(i, j, sum)) << i << ' ' << j;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, BitAggregateKernels,
                         ::testing::ValuesIn(testing::kernel_names("bit_aggregate")),
                         testing::kernel_test_name);

TEST(BitProducts, AreTheSameForAnyNumberOfThreadsAndInstructionSet) {
  const quant::BitTensor a = drawn_bits(100, 700, 3, 1);
  const quant::BitTensor b = drawn_bits(37, 700, 5, 2);
  Matrix<std::int64_t> expected(100, 37);
  reference::bit_gemm(a, b, {expected.data(), 100, 37});
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    for (const int threads : {1, 2, 3}) {
      set_num_threads(threads);
      for (const char* kernel : {"bit_gemm/cpu/planes", "bit_gemm/cpu/bytes"}) {
        BitOptions options;
        options.kernel = kernel;
        options.rows = 100;
        options.cols = 37;
        options.depth = 700;
        options.a_bits = 3;
        options.b_bits = 5;
        EXPECT_EQ(run_sums(plan_bit_gemm(options), {a, b, {}}), narrow(expected)) << kernel;
      }
    }
  }
  set_num_threads(0);
}

void expect_row_terms(Device device) {
  for (const std::int64_t depth : {1, 100, 128, 129, 5000}) {
    for (const int bits : {1, 3, 16}) {
      const quant::BitTensor codes = drawn_bits(37, depth, bits, 5);
      Matrix<std::int64_t> sums(37, 1);
      bit_row_sums(codes, sums);
      std::vector<float> scale(37), terms(74, -1.0f);
      for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = 0.3f * static_cast<float>(i) - 2;
      PlacedBits there(codes, device);
      OnDeviceArray<float> scale_there(scale.data(), 37, device);
      OnDeviceArray<float> terms_there(terms.data(), 74, device);
      const MatrixView<float> pairs(terms_there.data(), 37, 2, device);
      bit_row_terms(there.view(), {scale_there.data(), 37, 1, device}, pairs);
      terms_there.fetch(terms.data());
      for (std::size_t i = 0; i < 37; ++i) {
        const auto sum = static_cast<float>(sums(static_cast<std::int64_t>(i), 0));
        ASSERT_EQ(terms[i * 2], scale[i] * sum) << depth << ' ' << bits;
        ASSERT_EQ(terms[i * 2 + 1], scale[i]);
      }
      bit_row_terms(there.view(), {}, {terms_there.data(), 37, 1, device});
      terms_there.fetch(terms.data());
      for (std::size_t i = 0; i < 37; ++i) {
        ASSERT_EQ(terms[i], static_cast<float>(sums(static_cast<std::int64_t>(i), 0)));
      }
    }
  }
}

TEST(BitRowTerms, AreSumsOfCodesTimesTheScaleOfTheirRow) { expect_row_terms({}); }

TEST(BitRowTerms, OnDeviceAreTheSame) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  expect_row_terms({DeviceKind::cuda, 0});
}

TEST(BitProducts, AddCodesOfTheTargetOnlyWhereThatMakesSense) {
  const auto invalid = ErrorCode::invalid_argument;
  BitOptions options;
  options.rows = options.cols = options.depth = 4;
  options.own = 1;
  options.output = BitOutput::values;
  testing::expect_error(invalid, {"diagonal of A"}, [&] { plan_bit_gemm(options); });
  const Graph graph = testing::random_graph(5, 5, 9, 1, false);
  EXPECT_NO_THROW(plan_bit_aggregate(graph, options));
  const Graph wide = testing::random_graph(5, 7, 9, 1, false);
  testing::expect_error(invalid, {"square"}, [&] { plan_bit_aggregate(wide, options); });
  options.own = std::numeric_limits<float>::infinity();
  testing::expect_error(invalid, {"finite"}, [&] { plan_bit_aggregate(graph, options); });
  options.own = 1;
  options.output = BitOutput::sums32;
  testing::expect_error(invalid, {"values or for codes"},
                        [&] { plan_bit_aggregate(graph, options); });
  // A plan by measuring runs without operands of an epilogue.
  options.output = BitOutput::values;
  options.terms = 2;
  options.tune = Tune::measured;
  EXPECT_NO_THROW(plan_bit_aggregate(graph, options));
}

TEST(BitProducts, SayWhatIsWrongWithBlocks) {
  const auto invalid = ErrorCode::invalid_argument;
  BitOptions options;
  options.rows = options.depth = 200;
  options.cols = 5;
  options.b_bits = 3;
  options.block = 201;
  testing::expect_error(invalid, {"blocks of 201 columns in 200"}, [&] { plan_bit_gemm(options); });
  options.block = 128;
  testing::expect_error(invalid, {"a matrix that stays"},
                        [&] { plan_bit_gemm(drawn_bits(200, 200, 1, 1), options); });
  const BitPlan plan = plan_bit_gemm(options);
  const quant::BitTensor a = drawn_bits(200, 128, 1, 1), b = drawn_bits(5, 200, 3, 1);
  Matrix<std::int32_t> sums(200, 5);
  BitOutputs outputs;
  outputs.sums32 = sums.view();
  testing::expect_error(invalid, {"block_starts"}, [&] { run(plan, {a, b, {}}, outputs); });
  const std::int32_t wrong[] = {0, 0, 64, 128};
  BitInputs inputs{a, b, {}};
  inputs.block_starts = {wrong, 4, 1};
  testing::expect_error(invalid, {"block_starts has 64", "multiples of 128"},
                        [&] { run(plan, inputs, outputs); });
}

TEST(BitProducts, SayWhatIsWrong) {
  const auto invalid = ErrorCode::invalid_argument;
  BitOptions options;
  options.rows = 4;
  options.cols = 5;
  options.depth = 6;
  options.b_bits = 17;
  testing::expect_error(invalid, {"17 bits", "b_bits"}, [&] { plan_bit_gemm(options); });
  options.b_bits = 3;
  options.output = BitOutput::rows;
  testing::expect_error(invalid, {"no ranges"}, [&] { plan_bit_gemm(options); });
  options.output = BitOutput::sums32;
  options.terms = 3;
  testing::expect_error(invalid, {"3 terms"}, [&] { plan_bit_gemm(options); });
  options.terms = 0;
  options.backward = true;
  testing::expect_error(invalid, {"no gradient"}, [&] { plan_bit_gemm(options); });
  options.backward = false;
  const BitPlan plan = plan_bit_gemm(options);
  const quant::BitTensor a = drawn_bits(4, 6, 1, 1);
  const quant::BitTensor b = drawn_bits(5, 6, 3, 1);
  Matrix<std::int32_t> sums(4, 5);
  BitOutputs outputs;
  outputs.sums32 = sums.view();
  testing::expect_error(invalid, {"b has 1 bits"}, [&] { run(plan, {a, a, {}}, outputs); });
  testing::expect_error(invalid, {"a has no memory"}, [&] {
    auto nowhere = a.view();
    nowhere.words = nullptr;
    run(plan, {nowhere, b, {}}, outputs);
  });
  testing::expect_error(invalid, {"sums32 is 0 x 0"}, [&] { run(plan, {a, b, {}}, {}); });
  testing::expect_error(ErrorCode::unsupported, {"values of their own", "epilogue"}, [&] {
    const Graph pattern = testing::random_graph(5, 5, 9, 1, false);
    const std::vector<float> ones(static_cast<std::size_t>(pattern.num_edges()), 2.0f);
    plan_bit_aggregate(
        Graph(5, 5, pattern.row_offsets(), pattern.col_indices(), SharedArray<float>(ones)), {});
  });
}

}  // namespace
}  // namespace tessera::ops
