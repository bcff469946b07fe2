// SPDX-License-Identifier: Apache-2.0
#include "tessera/quant/bit_tensor.hpp"

#include <sstream>

#include <gtest/gtest.h>

#include "tessera/io/bit_tensor.hpp"
#include "tessera/io/container.hpp"

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/odd_graphs.hpp"
#include "support/sections.hpp"

namespace tessera::quant {
namespace {

using testing::expect_error;

Matrix<std::uint16_t> drawn_codes(std::int64_t rows, std::int64_t cols, int bits,
                                  std::uint32_t seed) {
  Matrix<std::uint16_t> codes(rows, cols);
  for (std::uint16_t& code : codes.span()) {
    seed = seed * 1664525u + 1013904223u;
    code = static_cast<std::uint16_t>((seed >> 12) & ((1u << bits) - 1));
  }
  return codes;
}

MatrixView<const std::uint16_t> view(const Matrix<std::uint16_t>& codes) {
  return {codes.data(), codes.rows(), codes.cols()};
}

TEST(BitTensor, GivesBackWhatWasPacked) {
  for (const std::int64_t rows : {0, 1, 7, 8, 9, 33}) {
    for (const std::int64_t cols : {0, 1, 31, 32, 33, 127, 128, 129}) {
      for (const int bits : {1, 2, 3, 7, 8, 9, 16}) {
        const Matrix<std::uint16_t> codes = drawn_codes(rows, cols, bits, 9);
        const BitTensor by_rows = pack_rows(view(codes), bits);
        by_rows.validate();
        EXPECT_EQ(by_rows.rows, rows);
        EXPECT_EQ(by_rows.depth, cols);
        const Matrix<std::uint16_t> back = unpack(by_rows);
        EXPECT_TRUE(std::equal(back.span().begin(), back.span().end(), codes.span().begin()));
        const BitTensor by_columns = pack_columns(view(codes), bits);
        by_columns.validate();
        EXPECT_EQ(by_columns.rows, cols);
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < cols; ++j) {
            ASSERT_EQ(by_columns.view().code(j, i), codes(i, j));
          }
        }
      }
    }
  }
}

TEST(BitTensor, PrintsItsShape) {
  std::ostringstream text;
  text << pack_rows(view(drawn_codes(9, 130, 3, 1)), 3);
  EXPECT_EQ(text.str(), "3 bits, 9 x 130 in planes of 16 x 8 words");
}

TEST(BitTensor, PacksThePatternOfAGraph) {
  for (const testing::NamedGraph& named : testing::odd_patterns()) {
    SCOPED_TRACE(named.name);
    const BitTensor tensor = pack_pattern(named.graph);
    tensor.validate();
    EdgeOffset edges = 0;
    for (std::int64_t i = 0; i < tensor.rows; ++i) {
      for (std::int64_t k = 0; k < tensor.depth; ++k) edges += tensor.view().code(i, k);
      for (const VertexId source : named.graph.neighbours(static_cast<VertexId>(i))) {
        ASSERT_EQ(tensor.view().code(i, source), 1u);
      }
    }
    EXPECT_EQ(edges, named.graph.num_edges());
  }
}

TEST(BitTensor, RefusesCodesOfMoreBits) {
  const Matrix<std::uint16_t> codes = drawn_codes(4, 4, 8, 3);
  expect_error(ErrorCode::invalid_argument, {"more than 2 bits"},
               [&] { pack_rows(view(codes), 2); });
  expect_error(ErrorCode::invalid_argument, {"17 bits", "1 to 16"},
               [&] { pack_rows(view(codes), 17); });
}

TEST(BitTensor, IsCheckedThroughout) {
  const BitTensor good = pack_rows(view(drawn_codes(9, 130, 3, 1)), 3);
  const auto expect_bad = [&](const char* part, auto&& change) {
    BitTensor bad = good;
    change(bad);
    expect_error(ErrorCode::bad_data, {part}, [&] { bad.validate(); });
  };
  expect_bad("0 bits", [](BitTensor& t) { t.bits = 0; });
  expect_bad("words", [](BitTensor& t) { t.bits = 4; });
  expect_bad("rows filled up", [](BitTensor& t) { t.padded_rows = 24; });
  expect_bad("rows filled up", [](BitTensor& t) { t.rows = 17; });
  expect_bad("negative", [](BitTensor& t) { t.rows = -1; });
  expect_bad("words for rows", [](BitTensor& t) { t.depth = 300; });
  expect_bad("words for rows", [](BitTensor& t) { t.depth = std::int64_t{1} << 62; });
  expect_bad("padding", [](BitTensor& t) { t.depth = 129; });
  expect_bad("padding of row 9", [](BitTensor& t) {
    t = pack_rows(view(drawn_codes(10, 130, 3, 1)), 3);
    t.rows = 9;
  });
}

TEST(BitTensor, TravelsThroughAFile) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "bits.tsr";
  Matrix<float> x(5, 3);
  for (std::int64_t i = 0; i < 15; ++i) x.data()[i] = static_cast<float>(i * i % 11);
  for (const Granularity granularity :
       {Granularity::tensor, Granularity::columns, Granularity::classes}) {
    const Affine affine =
        calibrate(x, {.bits = 5, .granularity = granularity, .classes = {{0, 1, 0, 1, 1}, 2}});
    const Matrix<std::uint16_t> codes = quantise(x, affine);
    const io::StoredBits stored{pack_rows(view(codes), 5), affine};
    io::write_bit_tensor(stored, path);
    const io::StoredBits read = io::read_bit_tensor(path);
    EXPECT_EQ(read.tensor, stored.tensor);
    EXPECT_EQ(read.affine, stored.affine);
  }
  io::write_bit_tensor({pack_rows(view(drawn_codes(0, 0, 1, 1)), 1)}, path);
  EXPECT_FALSE(io::read_bit_tensor(path).affine.has_value());
  expect_error(ErrorCode::bad_data, {"is a bit tensor, not a data set"},
               [&] { io::read_container(path); });
}

TEST(BitTensor, OfAHostileFileIsRefused) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "bits.tsr";
  Matrix<float> x(5, 3, 0.0f);
  x(1, 1) = 1;
  const Affine affine = calibrate(x, {.bits = 2, .granularity = Granularity::tensor});
  const Matrix<std::uint16_t> codes = quantise(x, affine);
  io::write_bit_tensor({pack_rows(view(codes), 2), affine}, path);
  const auto expect_refused = [&](const char* section, auto value) {
    auto arrays = test::read_sections(path);
    using T = typename decltype(value)::value_type;
    test::find_section(arrays, section) = io::stored(SharedArray<T>(value));
    const std::string changed = folder / "changed.tsr";
    io::write_sections(changed, arrays);
    expect_error(ErrorCode::bad_data, {changed.c_str()}, [&] { io::read_bit_tensor(changed); });
  };
  using Integers = std::vector<std::int64_t>;
  expect_refused("bit_tensor", Integers{2, 5, 3, 8});
  expect_refused("bit_tensor", Integers{99, 5, 3, 8, 4});
  expect_refused("bit_tensor", Integers{2, std::int64_t{1} << 61, 3, std::int64_t{1} << 61, 4});
  expect_refused("bit_tensor", Integers{2, 5, std::int64_t{1} << 61, 8, std::int64_t{1} << 56});
  expect_refused("bit_words", std::vector<std::uint32_t>(3));
  expect_refused("bit_words", std::vector<std::uint32_t>(64, 0x10u));
  expect_refused("bit_words", std::vector<float>(64));
  expect_refused("quant_form", Integers{0, 0, 0, 0});
  expect_refused("quant_form", Integers{2, 5, 0, 0});
  expect_refused("quant_form", Integers{2, 0, 7, 0});
  expect_refused("quant_form", Integers{2, 0, 2, 1});
  expect_refused("quant_scale", std::vector<float>{0});
  expect_refused("quant_scale", std::vector<float>{1, 1});
  expect_refused("quant_lower", std::vector<float>{});
}

}  // namespace
}  // namespace tessera::quant
