// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "ops/bits/finish.hpp"
#include "ops/bits/store.hpp"
#include "support/bit_kernels.hpp"
#include "support/odd_graphs.hpp"

namespace tessera::ops {
namespace {

/// What becomes of sums, against its formula.
class BitGemmFinish : public BitGemmKernels {};
class BitAggregateFinish : public BitAggregateKernels {};

TEST_P(BitGemmFinish, IsItsFormula) {
  const BitShape shape{67, 35, 200};
  const quant::BitTensor a = drawn_bits(shape.rows, shape.depth, 1, 4);
  const quant::BitTensor b = drawn_bits(shape.cols, shape.depth, 3, 5);
  Matrix<std::int64_t> sums(shape.rows, shape.cols);
  reference::bit_gemm(a, b, {sums.data(), shape.rows, shape.cols});
  EpilogueCase numbers(shape.rows, shape.cols, device_);
  PlacedBits a_there(a, device_), b_there(b, device_);
  for (const BitActivation activation :
       {BitActivation::none, BitActivation::relu, BitActivation::tanh}) {
    for (const BitOutput output :
         {BitOutput::values, BitOutput::rows, BitOutput::columns, BitOutput::bytes}) {
      // The last digit of a tanh is the device's, so that codes may differ where two meet.
      const bool inexact = activation == BitActivation::tanh;
      if (inexact && output != BitOutput::values) continue;
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
            const float expected = finish.value(i, j, static_cast<float>(sums(i, j)));
            ASSERT_NEAR(values(i, j), expected, inexact ? 1e-6 * std::abs(expected) : 0);
          }
        }
        continue;
      }
      if (output == BitOutput::bytes) {
        const Matrix<std::uint8_t> bytes = run_bytes(plan, inputs);
        for (std::int64_t i = 0; i < shape.rows; ++i) {
          for (std::int64_t j = 0; j < bytes.cols(); ++j) {
            const std::uint32_t expected =
                j >= shape.cols
                    ? 0
                    : finish.code(j, finish.value(i, j, static_cast<float>(sums(i, j))));
            ASSERT_EQ(bytes(i, j), expected) << i << ' ' << j;
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

/// Terms that a product makes of its codes on the left, whose rows may come short.
TEST_P(BitGemmFinish, MakesTermsOfTheCodesOfA) {
  const BitShape shape{67, 35, 200};
  for (const int s : {1, 3, 8}) {
    for (const std::int64_t words : {0, 7}) {
      const quant::BitTensor a = drawn_bits(shape.rows, shape.depth, s, 4);
      const quant::BitTensor b = drawn_bits(shape.cols, shape.depth, 3, 5);
      Matrix<std::int64_t> sums(shape.rows, shape.cols);
      reference::bit_gemm(a, b, {sums.data(), shape.rows, shape.cols});
      for (const int terms : {1, 2}) {
        for (const bool scales : {false, true}) {
          BitOptions wanted = options(shape, s, 3);
          wanted.output = BitOutput::values;
          wanted.terms = terms;
          wanted.terms_of_a = true;
          wanted.a_words = words;
          if (!takes(wanted)) continue;
          SCOPED_TRACE(text(shape, s, 3) + ", words " + std::to_string(words));
          EpilogueCase numbers(shape.rows, shape.cols, device_);
          const auto without = [&](BitEpilogue parts) {
            parts.row_terms = {};
            parts.col_terms.rows = terms;
            if (!scales) parts.row_scale = {};
            return parts;
          };
          quant::BitTensor given = a;
          if (words > 0) given = cut_rows(a, words);
          PlacedBits a_there(given, device_), b_there(b, device_);
          Matrix<float> values(shape.rows, shape.cols, -7.0f);
          OnDeviceArray<float> there(values.data(), values.size(), device_);
          BitOutputs outputs;
          outputs.values = {there.data(), shape.rows, shape.cols, device_};
          run(plan_bit_gemm(wanted), {a_there.view(), b_there.view(), without(numbers.parts())},
              outputs);
          there.fetch(values.data());
          // Against terms that are given.
          BitEpilogue parts = without(numbers.host_parts());
          Matrix<float> given_terms(shape.rows, terms);
          for (std::int64_t i = 0; i < shape.rows; ++i) {
            std::int64_t sum = 0;
            for (std::int64_t k = 0; k < shape.depth; ++k) sum += a.view().code(i, k);
            const float scale = scales ? parts.row_scale(i, 0) : 1.0f;
            given_terms(i, 0) = scale * static_cast<float>(sum);
            if (terms > 1) given_terms(i, 1) = scale;
          }
          parts.row_terms = given_terms.view();
          const BitFinish finish = make_finish(wanted, parts, nullptr, nullptr);
          for (std::int64_t i = 0; i < shape.rows; ++i) {
            for (std::int64_t j = 0; j < shape.cols; ++j) {
              ASSERT_EQ(values(i, j), finish.value(i, j, static_cast<float>(sums(i, j))));
            }
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, BitGemmFinish, ::testing::ValuesIn(testing::kernel_names("bit_gemm")),
                         testing::kernel_test_name);

TEST_P(BitAggregateFinish, AddsCodesOfTheTarget) {
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
      if (!takes(graph, wanted)) continue;
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

/// Rows of codes in no more words than they fill, as narrow layers have them between two products.
TEST_P(BitGemmFinish, GivesShortRowsOfCodes) {
  for (const BitShape& shape :
       {BitShape{70, 16, 40}, BitShape{65, 33, 64}, BitShape{130, 96, 20}}) {
    for (const int u : {1, 5, 8, 11}) {
      BitOptions wanted = options(shape, 1, 3);
      wanted.output = BitOutput::rows;
      quant::Affine range{.bits = u};
      range.lower = {0.0f};
      range.scale = {1.0f};
      wanted.requantise = range;
      if (!takes(wanted)) continue;
      SCOPED_TRACE(text(shape, 1, 3) + ", " + std::to_string(u) + " bits");
      const quant::BitTensor a = drawn_bits(shape.rows, shape.depth, 1, 1);
      const quant::BitTensor b = drawn_bits(shape.cols, shape.depth, 3, 2);
      PlacedBits a_there(a, device_), b_there(b, device_);
      const auto result_of = [&](std::int64_t words) {
        BitOptions how = wanted;
        how.codes_words = words;
        quant::BitTensor to = quant::bit_tensor_shape(u, shape.rows, shape.cols);
        if (words > 0) to.words_per_row = words;
        std::vector<std::uint32_t> numbers(static_cast<std::size_t>(to.num_words()), 0xA5A5A5A5u);
        OnDeviceArray<std::uint32_t> there(numbers.data(), std::ssize(numbers), device_);
        BitOutputs outputs;
        outputs.codes = to.over(there.data(), device_);
        run(plan_bit_gemm(how), {a_there.view(), b_there.view(), {}}, outputs);
        there.fetch(numbers.data());
        return numbers;
      };
      const std::int64_t few = (shape.cols + 31) / 32;
      const std::int64_t many = quant::bit_tensor_shape(u, shape.rows, shape.cols).words_per_row;
      const auto narrow = result_of(few), wide = result_of(0);
      for (std::size_t i = 0; i < narrow.size(); ++i) {
        const auto row = static_cast<std::int64_t>(i) / few;
        const auto word = static_cast<std::int64_t>(i) % few;
        ASSERT_EQ(narrow[i], wide[static_cast<std::size_t>(row * many + word)]) << i;
      }
    }
  }
}

/// Codes of sums that nothing else is done to, in one range from 0 on, of small sums and of a
/// hub's.
TEST_P(BitAggregateFinish, GivesCodesOfPlainSums) {
  std::vector<testing::NamedGraph> graphs;
  graphs.push_back({"random", testing::random_graph(200, 150, 6000, 6, false)});
  graphs.push_back({"few edges", testing::random_graph(130, 130, 90, 7, false)});
  graphs.push_back({"hub", testing::hub_graph(70, 5000, 3)});
  graphs.push_back({"hub of large sums", testing::hub_graph(70, 40000, 3)});
  for (const testing::NamedGraph& named : graphs) {
    const Graph& graph = named.graph;
    for (const std::int64_t cols : {3, 32, 50, 64, 100, 128, 200, 530}) {
      // By one product, by a quotient, and downwards.
      for (const auto& [scale, rounding] :
           {std::pair(64.0f, quant::Rounding::nearest), std::pair(20.3f, quant::Rounding::nearest),
            std::pair(20.3f, quant::Rounding::floor)}) {
        BitOptions wanted = options(cols, 8);
        wanted.output = BitOutput::bytes;
        wanted.requantise = quant::Affine{.bits = 8, .rounding = rounding};
        wanted.requantise->lower = {0.0f};
        wanted.requantise->scale = {scale};
        if (!takes(graph, wanted)) continue;
        SCOPED_TRACE(named.name + ", " + std::to_string(cols) + ", " + std::to_string(scale));
        const quant::BitTensor b = drawn_bits(graph.num_cols(), cols, 8, 8);
        Matrix<std::int64_t> sums(graph.num_rows(), cols);
        reference::bit_aggregate(graph, b, {sums.data(), graph.num_rows(), cols});
        PlacedBits there(b, device_);
        BitInputs inputs;
        inputs.b = there.view();
        const Matrix<std::uint8_t> result = run_bytes(plan_bit_aggregate(graph, wanted), inputs);
        const BitFinish finish = make_finish(wanted, {}, wanted.requantise->lower.data(),
                                             wanted.requantise->scale.data());
        for (std::int64_t i = 0; i < result.rows(); ++i) {
          for (std::int64_t j = 0; j < result.cols(); ++j) {
            const std::uint32_t code =
                j < cols ? finish.code(j, static_cast<float>(sums(i, j))) : 0u;
            ASSERT_EQ(result(i, j), code) << i << ' ' << j;
          }
        }
      }
    }
  }
}

/// Planes or bytes in, codes in every form out.
TEST_P(BitAggregateFinish, GivesCodes) {
  std::vector<testing::NamedGraph> graphs;
  graphs.push_back({"random", testing::random_graph(90, 90, 700, 9, false)});
  graphs.push_back({"hub", testing::hub_graph(300, 700, 3)});
  for (const testing::NamedGraph& named : graphs) {
    const Graph& graph = named.graph;
    const std::int64_t rows = graph.num_rows();
    // Some kernels take nothing that fits a byte.
    const int bits = takes(graph, options(16, 7)) ? 7 : 11;
    for (const std::int64_t cols : {1, 16, 21, 48, 64, 130, 300, 600}) {
      const quant::BitTensor b = drawn_bits(graph.num_cols(), cols, bits, 8);
      Matrix<std::int64_t> sums(rows, cols);
      reference::bit_aggregate(graph, b, {sums.data(), rows, cols});
      EpilogueCase numbers(rows, cols, device_);
      for (const BitOutput output :
           {BitOutput::sums32, BitOutput::rows, BitOutput::columns, BitOutput::bytes}) {
        for (const bool as_bytes : {false, true}) {
          SCOPED_TRACE(named.name + ", " + std::to_string(cols) + ", " + to_string(output) +
                       (as_bytes ? " of bytes" : ""));
          if (as_bytes && bits > 8) continue;
          BitOptions wanted = options(cols, bits);
          wanted.output = output;
          wanted.b_bytes = as_bytes;
          const bool codes_out = output != BitOutput::sums32;
          quant::Affine range{.bits = 6};
          range.lower = {-40.0f};
          range.scale = {bits == 7 ? 9.3f : 149.3f};
          if (codes_out) {
            wanted.requantise = range;
            wanted.own = rows == graph.num_cols() ? 1.25f : 0.0f;
            wanted.terms = 2;
          }
          Matrix<std::uint8_t> bytes(graph.num_cols(), (cols + 15) / 16 * 16, std::uint8_t{0xEE});
          for (std::int64_t i = 0; i < bytes.rows(); ++i) {
            for (std::int64_t j = 0; j < cols; ++j) {
              bytes(i, j) = static_cast<std::uint8_t>(b.view().code(i, j));
            }
          }
          PlacedBits planes_there(b, device_);
          OnDeviceArray<std::uint8_t> bytes_there(bytes.data(), bytes.size(), device_);
          BitInputs inputs;
          if (codes_out) inputs.epilogue = numbers.parts();
          if (as_bytes) {
            inputs.b_bytes = {bytes_there.data(), bytes.rows(), cols, bytes.cols(), device_};
          } else {
            inputs.b = planes_there.view();
          }
          const BitPlan plan = plan_bit_aggregate(graph, wanted);
          if (!codes_out) {
            EXPECT_EQ(run_sums(plan, inputs), narrow(sums));
            continue;
          }
          BitOptions plain = wanted;
          plain.own = 0;
          const BitFinish finish =
              make_finish(plain, numbers.host_parts(), range.lower.data(), range.scale.data());
          const auto expected = [&](std::int64_t i, std::int64_t j) {
            const auto own = wanted.own != 0 ? static_cast<float>(b.view().code(i, j)) : 0.0f;
            const float sum = std::fma(wanted.own, own, static_cast<float>(sums(i, j)));
            return finish.code(j, finish.value(i, j, sum));
          };
          if (output == BitOutput::bytes) {
            const Matrix<std::uint8_t> result = run_bytes(plan, inputs);
            for (std::int64_t i = 0; i < rows; ++i) {
              for (std::int64_t j = 0; j < result.cols(); ++j) {
                ASSERT_EQ(result(i, j), j < cols ? expected(i, j) : 0u) << i << ' ' << j;
              }
            }
            continue;
          }
          const bool by_rows = output == BitOutput::rows;
          PlacedBits there(6, by_rows ? rows : cols, by_rows ? cols : rows, device_);
          BitOutputs outputs;
          outputs.codes = there.view();
          run(plan, inputs, outputs);
          const quant::BitTensor result = there.fetch();
          result.validate();
          for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < cols; ++j) {
              ASSERT_EQ(by_rows ? result.view().code(i, j) : result.view().code(j, i),
                        expected(i, j))
                  << i << ' ' << j;
            }
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, BitAggregateFinish,
                         ::testing::ValuesIn(testing::kernel_names("bit_aggregate")),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::ops
