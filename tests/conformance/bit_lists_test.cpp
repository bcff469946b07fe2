// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>

#include "ops/bits/finish.hpp"
#include "ops/bits/store.hpp"
#include "support/bit_kernels.hpp"
#include "support/expect_error.hpp"
#include "tessera/core/random.hpp"
#include "tessera/graph/build.hpp"

namespace tessera::ops {
namespace {

using testing::expect_error;

/// Blocks of different lengths one after another, rows of different lengths in them, and their
/// lists.
struct Lists {
  Lists(const std::vector<std::int32_t>& blocks, double density, std::uint64_t seed) {
    const Random random(seed);
    std::vector<VertexId> rows, cols;
    std::int32_t start = 0;
    std::uint64_t draw = 0;
    offsets.push_back(0);
    for (const std::int32_t length : blocks) {
      block = std::max<std::int64_t>(block, length);
      for (std::int32_t r = 0; r < length; ++r) {
        if (r % 64 == 0) starts.push_back(start);
        // Every seventh row has all sources, every fifth none.
        const double share = r % 7 == 3 ? 1 : r % 5 == 2 ? 0 : density;
        for (std::int32_t c = 0; c < length; ++c) {
          if (random.uniform(draw++) >= share) continue;
          rows.push_back(start + r);
          cols.push_back(start + c);
          sources.push_back(static_cast<std::uint16_t>(c));
        }
        offsets.push_back(static_cast<std::int32_t>(sources.size()));
      }
      start += length;
    }
    graph = from_coo(start, start, rows, cols);
  }

  Graph graph;
  std::int64_t block = 0;
  std::vector<std::int32_t> starts, offsets;
  std::vector<std::uint16_t> sources;
};

class BitListsKernels : public ::testing::TestWithParam<std::string> {
 protected:
  Device device_ = testing::device_of(GetParam());

  BitOptions options(const Lists& lists, std::int64_t cols, int bits) const {
    BitOptions options;
    options.device = device_;
    options.kernel = GetParam();
    options.rows = options.depth = lists.graph.num_rows();
    options.cols = cols;
    options.block = lists.block;
    options.b_bits = bits;
    return options;
  }
};

/// Lists where a kernel finds them.
struct PlacedLists {
  PlacedLists(const Lists& lists, Device device)
      : starts(lists.starts.data(), std::ssize(lists.starts), device),
        offsets(lists.offsets.data(), std::ssize(lists.offsets), device),
        sources(lists.sources.data(), std::ssize(lists.sources), device) {
    inputs.block_starts = {starts.data(), std::ssize(lists.starts), 1, device};
    inputs.list_offsets = {offsets.data(), std::ssize(lists.offsets), 1, device};
    inputs.list_sources = {sources.data(), 1, std::ssize(lists.sources), device};
  }

  OnDeviceArray<std::int32_t> starts, offsets;
  OnDeviceArray<std::uint16_t> sources;
  BitInputs inputs;
};

TEST_P(BitListsKernels, AreExact) {
  for (const Lists& lists :
       {Lists({128, 384, 256}, 0.05, 1), Lists({640}, 0.1, 2), Lists({128}, 0, 3)}) {
    const std::int64_t rows = lists.graph.num_rows();
    PlacedLists placed(lists, device_);
    for (const std::int64_t cols : {1, 16, 17, 64, 100, 129, 300}) {
      for (const int bits : {1, 8}) {
        SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(cols) + " columns of " +
                     std::to_string(bits) + " bits");
        const quant::BitTensor b = drawn_bits(rows, cols, bits, 8);
        Matrix<std::int64_t> sums(rows, cols);
        reference::bit_aggregate(lists.graph, b, {sums.data(), rows, cols});
        PlacedBits there(b, device_);
        placed.inputs.b = there.view();
        EXPECT_EQ(run_sums(plan_bit_lists(options(lists, cols, bits)), placed.inputs),
                  narrow(sums));
      }
    }
  }
}

/// Planes or bytes in, codes in every form out.
TEST_P(BitListsKernels, GiveCodes) {
  const Lists lists({256, 128, 384}, 0.04, 5);
  const std::int64_t rows = lists.graph.num_rows();
  PlacedLists placed(lists, device_);
  for (const std::int64_t cols : {16, 21, 64, 130}) {
    const quant::BitTensor b = drawn_bits(rows, cols, 8, 8);
    Matrix<std::int64_t> sums(rows, cols);
    reference::bit_aggregate(lists.graph, b, {sums.data(), rows, cols});
    EpilogueCase numbers(rows, cols, device_);
    Matrix<std::uint8_t> bytes(rows, padded_bytes(cols), std::uint8_t{0xEE});
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < cols; ++j) {
        bytes(i, j) = static_cast<std::uint8_t>(b.view().code(i, j));
      }
    }
    PlacedBits planes_there(b, device_);
    OnDeviceArray<std::uint8_t> bytes_there(bytes.data(), bytes.size(), device_);
    for (const BitOutput output : {BitOutput::rows, BitOutput::columns, BitOutput::bytes}) {
      for (const bool as_bytes : {false, true}) {
        SCOPED_TRACE(std::to_string(cols) + ", " + to_string(output) +
                     (as_bytes ? " of bytes" : ""));
        BitOptions wanted = options(lists, cols, 8);
        wanted.output = output;
        wanted.b_bytes = as_bytes;
        wanted.terms = 2;
        wanted.requantise = quant::Affine{.bits = 6, .lower = {-40.0f}, .scale = {90.3f}};
        BitInputs inputs = placed.inputs;
        inputs.epilogue = numbers.parts();
        if (as_bytes) {
          inputs.b_bytes = {bytes_there.data(), rows, cols, bytes.cols(), device_};
        } else {
          inputs.b = planes_there.view();
        }
        const BitPlan plan = plan_bit_lists(wanted);
        const float lower = -40.0f, step = 90.3f;
        const BitFinish finish = make_finish(wanted, numbers.host_parts(), &lower, &step);
        const auto expected = [&](std::int64_t i, std::int64_t j) {
          return finish.code(j, finish.value(i, j, static_cast<float>(sums(i, j))));
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
            ASSERT_EQ(by_rows ? result.view().code(i, j) : result.view().code(j, i), expected(i, j))
                << i << ' ' << j;
          }
        }
      }
    }
  }
}

TEST(BitLists, SayWhatIsWrong) {
  const Lists lists({128}, 0.1, 6);
  BitOptions options;
  options.rows = options.depth = 128;
  options.cols = 4;
  expect_error(ErrorCode::invalid_argument, {"blocks of 0 columns"},
               [&] { (void)plan_bit_lists(options); });
  options.block = 128;
  BitOptions wide = options;
  wide.b_bits = 9;
  expect_error(ErrorCode::invalid_argument, {"9 bits"}, [&] { (void)plan_bit_lists(wide); });
  BitOptions own = options;
  own.own = 1;
  own.output = BitOutput::values;
  expect_error(ErrorCode::invalid_argument, {"own"}, [&] { (void)plan_bit_lists(own); });
  expect_error(ErrorCode::invalid_argument, {"blocks of a graph"},
               [&] { (void)plan_bit_aggregate(lists.graph, options); });
  const BitPlan plan = plan_bit_lists(options);
  const quant::BitTensor b = drawn_bits(128, 4, 8, 8);
  Lists broken = lists;
  broken.offsets[3] = broken.offsets[2] - 1;
  PlacedLists falling(broken, {});
  falling.inputs.b = b.view();
  expect_error(ErrorCode::invalid_argument, {"list_offsets"},
               [&] { (void)run_sums(plan, falling.inputs); });
  PlacedLists apart(lists, {});
  apart.inputs.b = b.view();
  apart.inputs.list_offsets.stride = 2;
  expect_error(ErrorCode::invalid_argument, {"list_offsets has a stride of 2", "side by side"},
               [&] { (void)run_sums(plan, apart.inputs); });
  broken = lists;
  broken.sources[0] = 128;
  PlacedLists outside(broken, {});
  outside.inputs.b = b.view();
  expect_error(ErrorCode::invalid_argument, {"list_sources has 128"},
               [&] { (void)run_sums(plan, outside.inputs); });
}

INSTANTIATE_TEST_SUITE_P(All, BitListsKernels,
                         ::testing::ValuesIn(testing::kernel_names("bit_lists")),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::ops
