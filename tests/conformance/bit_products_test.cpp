// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "tessera/core/parallel.hpp"

#include "ops/simd/isa.hpp"
#include "support/bit_kernels.hpp"
#include "support/expect_error.hpp"
#include "support/odd_graphs.hpp"
#include "support/random_coo.hpp"

namespace tessera::ops {
namespace {

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

TEST(BitProducts, TakeTheUnitThatCostsLess) {
  BitOptions options;
  options.rows = 1000;
  options.cols = 64;
  options.depth = 1000;
  for (const auto& [bits, kernel] :
       {std::pair{1, "bit_gemm/cpu/planes"}, std::pair{8, "bit_gemm/cpu/bytes"}}) {
    options.a_bits = options.b_bits = bits;
    EXPECT_EQ(plan_bit_gemm(options).kernel().name, kernel) << bits;
  }
}

/// A hub whose sums of 16 bits are the last that 31 bits hold, and one of a source more.
TEST(BitProducts, OverAGraphCountTheLongestRow) {
  constexpr VertexId most = 1 << 15;
  for (const VertexId leaves : {most, most + 1}) {
    SCOPED_TRACE(leaves);
    const Graph star = testing::star_graph(leaves);
    const Matrix<std::uint16_t> codes(star.num_cols(), 1, std::uint16_t{65535});
    const quant::BitTensor b = quant::pack_rows(testing::codes_view(codes), 16);
    Matrix<std::int64_t> expected(star.num_rows(), 1), sums(star.num_rows(), 1);
    reference::bit_aggregate(star, b, {expected.data(), star.num_rows(), 1});
    BitOptions options;
    options.cols = 1;
    options.b_bits = 16;
    if (leaves == most) {
      EXPECT_EQ(run_sums(plan_bit_aggregate(star, options), {{}, b, {}}), narrow(expected));
      continue;
    }
    testing::expect_error(ErrorCode::invalid_argument, {"may take 32 bits", "sums64"},
                          [&] { plan_bit_aggregate(star, options); });
    options.output = BitOutput::sums64;
    BitOutputs outputs;
    outputs.sums64 = {sums.data(), star.num_rows(), 1};
    run(plan_bit_aggregate(star, options), {{}, b, {}}, outputs);
    EXPECT_TRUE(std::equal(sums.span().begin(), sums.span().end(), expected.span().begin()));
    EXPECT_GT(*std::max_element(sums.span().begin(), sums.span().end()),
              std::numeric_limits<std::int32_t>::max());
    options.device = {DeviceKind::cuda, 0};
    testing::expect_error(ErrorCode::unsupported, {"32 bits, and a GPU sums in 31"},
                          [&] { plan_bit_aggregate(star, options); });
  }
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

TEST(BitProducts, SayWhatIsWrongWithBytesAndRowsThatComeShort) {
  const auto invalid = ErrorCode::invalid_argument;
  BitOptions options;
  options.rows = options.cols = options.depth = 40;
  options.b_bytes = true;
  testing::expect_error(invalid, {"bytes in a product of two matrices"},
                        [&] { plan_bit_gemm(options); });
  const Graph graph = testing::random_graph(40, 40, 90, 1, false);
  const BitPlan plan = plan_bit_aggregate(graph, options);
  Matrix<std::uint8_t> bytes(40, 48, std::uint8_t{1});
  Matrix<std::int32_t> sums(40, 40);
  BitInputs inputs;
  BitOutputs outputs;
  outputs.sums32 = sums.view();
  inputs.b_bytes = {bytes.data(), 40, 40, 40};
  testing::expect_error(invalid, {"multiples of 16 bytes"}, [&] { run(plan, inputs, outputs); });
  inputs.b_bytes = {bytes.data(), 39, 40, 48};
  testing::expect_error(invalid, {"b_bytes is 39 x 40"}, [&] { run(plan, inputs, outputs); });
  options.b_bits = 9;
  testing::expect_error(invalid, {"more than 8 bits"}, [&] { plan_bit_aggregate(graph, options); });
  options.b_bits = 8;
  options.b_words = 2;
  testing::expect_error(invalid, {"b_words"}, [&] { plan_bit_aggregate(graph, options); });
  options.b_bytes = false;
  options.b_words = 1;
  testing::expect_error(invalid, {"rows of 1 words for 40 codes"},
                        [&] { plan_bit_aggregate(graph, options); });
  options.b_bytes = true;
  options.b_words = 0;
  options.output = BitOutput::bytes;
  options.requantise = quant::Affine{.bits = 9, .lower = {0}, .scale = {1}};
  testing::expect_error(invalid, {"codes of 9 bits as bytes"},
                        [&] { plan_bit_aggregate(graph, options); });
  BitOptions product;
  product.rows = product.cols = product.depth = 40;
  product.a_words = 1;
  testing::expect_error(invalid, {"rows of 1 words for 40 codes"}, [&] { plan_bit_gemm(product); });
  product.a_words = 2;
  product.terms_of_a = true;
  testing::expect_error(invalid, {"terms_of_a"}, [&] { plan_bit_gemm(product); });
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
  BitOptions wide = options;
  wide.a_bits = 16;
  wide.b_bits = 16;
  wide.output = BitOutput::values;
  EXPECT_NO_THROW(plan_bit_gemm(wide));
  wide.device = {DeviceKind::cuda, 0};
  testing::expect_error(ErrorCode::unsupported, {"35 bits, and a GPU sums in 31", "fewer bits"},
                        [&] { plan_bit_gemm(wide); });
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
