// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "io/npz_arrays.hpp"
#include "support/datasets.hpp"
#include "support/files.hpp"
#include "tessera/core/error.hpp"
#include "tessera/io/open.hpp"
#include "tessera/reorder/permutation.hpp"

/// Arrays of .npz files that can be written in several ways: masks of splits, labels, edges.
namespace tessera {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Arrays = std::map<std::string, ExtraArray>;

template <class T>
ExtraArray array_of(const char* type, std::vector<std::int64_t> shape,
                    const std::vector<T>& values) {
  return test::extra_array<T>(type, std::move(shape), values);
}
ExtraArray ids(const std::vector<std::int64_t>& values) {
  return array_of("<i8", {std::ssize(values)}, values);
}
ExtraArray mask(std::vector<std::int64_t> shape, const std::vector<std::uint8_t>& values) {
  return array_of("|b1", std::move(shape), values);
}

class NpzReading : public testing::Test {
 protected:
  /// A path of four vertices with these arrays as well.
  Dataset read(const Arrays& more, const io::ReadOptions& options = {}) {
    Arrays arrays{{"edge_index", array_of<std::int64_t>("<i8", {2, 3}, {2, 0, 1, 3, 1, 2})},
                  {"num_nodes", array_of<std::int64_t>("<i8", {}, {4})}};
    for (const auto& [name, array] : more) arrays[name] = array;
    return read_only(arrays, options);
  }
  Dataset read_only(const Arrays& arrays, const io::ReadOptions& options = {}) {
    io::write_npz_arrays(folder_ / "a.npz", {arrays.begin(), arrays.end()}, {});
    return io::open(folder_ / "a.npz", options);
  }
  std::string error_of(const Arrays& more) {
    try {
      read(more);
    } catch (const Error& error) {
      EXPECT_FALSE(error.fix().empty()) << error.what();
      return error.what();
    }
    return "no error";
  }

  test::TemporaryFolder folder_;
};

TEST_F(NpzReading, MasksInTwoDimensionsAreSeveralSplits) {
  const Dataset by_column = read({{"train_mask", mask({4, 2}, {1, 0, 0, 1, 0, 0, 0, 0})},
                                  {"val_mask", mask({4, 2}, {0, 1, 1, 0, 0, 0, 0, 0})},
                                  {"test_mask", mask({4, 2}, {0, 0, 0, 0, 1, 1, 1, 0})}});
  ASSERT_EQ(by_column.splits.size(), 2u);
  EXPECT_THAT(by_column.train.span(), ElementsAre(0));
  EXPECT_THAT(by_column.splits[1].train.span(), ElementsAre(1));
  EXPECT_THAT(by_column.splits[0].test.span(), ElementsAre(2, 3));
  EXPECT_THAT(by_column.splits[1].test.span(), ElementsAre(2));
  EXPECT_THAT(by_column.extras, IsEmpty());
  EXPECT_THAT(by_column.notes, IsEmpty());

  const Dataset by_row = read({{"train_masks", mask({2, 4}, {1, 0, 0, 0, 0, 1, 0, 0})},
                               {"val_masks", mask({2, 4}, {0, 1, 0, 0, 1, 0, 0, 0})},
                               {"test_masks", mask({2, 4}, {0, 0, 1, 1, 0, 0, 1, 0})}});
  EXPECT_EQ(by_row.splits, by_column.splits);
}

TEST_F(NpzReading, ASingleMaskOrIndicesAreTheSameInAllSplits) {
  const Dataset dataset = read({{"train_mask", mask({4, 2}, {1, 0, 0, 1, 0, 0, 0, 0})},
                                {"train_idx", ids({0})},
                                {"val_mask", mask({4}, {0, 0, 1, 0})},
                                {"test_idx", ids({3})}});
  ASSERT_EQ(dataset.splits.size(), 2u);
  for (const VertexSplit& split : dataset.splits) {
    EXPECT_THAT(split.validation.span(), ElementsAre(2));
    EXPECT_THAT(split.test.span(), ElementsAre(3));
  }
  // One split is one, whatever its shape.
  EXPECT_THAT(read({{"train_mask", mask({4, 1}, {1, 0, 1, 0})}}).splits, IsEmpty());
  EXPECT_THAT(read({{"train_mask", mask({1, 4}, {1, 0, 1, 0})}}).train.span(), ElementsAre(0, 2));
}

TEST_F(NpzReading, MasksThatSayNothingAreErrors) {
  EXPECT_THAT(error_of({{"train_mask", mask({4, 4}, std::vector<std::uint8_t>(16))}}),
              AllOf(HasSubstr("train_mask"), HasSubstr("vertex or a split")));
  EXPECT_THAT(error_of({{"val_masks", mask({2, 3}, std::vector<std::uint8_t>(6))}}),
              HasSubstr("2 x 3 for 4 vertices"));
  EXPECT_THAT(error_of({{"val_mask", mask({4, 0}, {})}}), HasSubstr("has no split"));
  EXPECT_THAT(error_of({{"val_mask", mask({4, 1, 1}, {0, 0, 0, 0})}}), HasSubstr("truth value"));
  EXPECT_THAT(error_of({{"train_mask", mask({4, 2}, std::vector<std::uint8_t>(8))},
                        {"test_mask", mask({4, 3}, std::vector<std::uint8_t>(12))}}),
              HasSubstr("another mask"));
  EXPECT_THAT(
      error_of({{"train_mask", mask({4}, {1, 0, 0, 0})}, {"train_masks", mask({4}, {1, 0, 0, 0})}}),
      HasSubstr("too"));
  EXPECT_THAT(
      error_of({{"train_mask", mask({4, 2}, {1, 0, 0, 1, 0, 0, 0, 0})}, {"train_idx", ids({1})}}),
      HasSubstr("first split differs from train_idx"));
}

TEST_F(NpzReading, SeveralSplitsSurviveFormatsAndOrders) {
  const Dataset dataset = read({{"train_mask", mask({4, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0})},
                                {"val_mask", mask({4}, {0, 0, 0, 1})}});
  ASSERT_EQ(dataset.splits.size(), 3u);
  for (const char* name : {"b.npz", "b.tsr"}) {
    io::save(dataset, folder_ / name);
    EXPECT_EQ(io::open(folder_ / name), dataset) << name;
  }
  const Dataset turned = permuted(dataset, Permutation(std::vector<VertexId>{3, 2, 1, 0}));
  EXPECT_THAT(turned.splits[1].train.span(), ElementsAre(2));
  EXPECT_THAT(turned.splits[2].validation.span(), ElementsAre(0));
  EXPECT_EQ(turned.train, turned.splits[0].train);
  Dataset extra = dataset;
  extra.extras["train_masks"] = ids({1});
  EXPECT_THROW(io::save(extra, folder_ / "c.npz"), Error);
  EXPECT_THROW(io::save(extra, folder_ / "c.tsr"), Error);
  Dataset contradicts = dataset;
  contradicts.train = SharedArray<std::int64_t>(std::vector<std::int64_t>{2});
  EXPECT_THROW(contradicts.validate(), Error);
}

TEST_F(NpzReading, OneColumnOfLabelsIsClasses) {
  for (const Dataset& dataset : {read({{"y", array_of<std::int64_t>("<i8", {4, 1}, {0, 1, 1, 0})}}),
                                 read({{"y", array_of<float>("<f4", {4, 1}, {0, 1, 1, 0})}})}) {
    EXPECT_FALSE(dataset.is_multi_label());
    EXPECT_THAT(std::get<ClassLabels>(dataset.labels).span(), ElementsAre(0, 1, 1, 0));
  }
  EXPECT_TRUE(
      read({{"y", array_of<float>("<f4", {4, 2}, {0, 1, 1, 0, 0, 1, 1, 1})}}).is_multi_label());
}

TEST_F(NpzReading, LabelsThatAreNoClassesAreNumbersToPredict) {
  for (const Dataset& dataset :
       {read({{"y", array_of<float>("<f4", {4, 1}, {0, 0.5, -7, 0})}}),
        read({{"y", array_of<float>("<f4", {4}, {0, 0.5, -7, 0})}}),
        read({{"targets", array_of<float>("<f4", {4}, {0, 0.5, -7, 0})}})}) {
    EXPECT_TRUE(std::holds_alternative<std::monostate>(dataset.labels));
    EXPECT_THAT(dataset.targets.matrix->span(), ElementsAre(0, 0.5f, -7, 0));
  }
  const Dataset several = read({{"y", array_of<float>("<f4", {4, 2}, {0, 1, NAN, 0, 0, 2, 1, 1})}});
  EXPECT_EQ(several.targets.count(), 2);
  EXPECT_TRUE(several.targets.has_any(1));
  EXPECT_THAT(error_of({{"targets", array_of<float>("<f4", {4}, {0, INFINITY, 1, 0})}}),
              HasSubstr("targets: number 0 of row 1 is inf"));
  EXPECT_THAT(error_of({{"targets", array_of<float>("<f4", {3}, {0, 1, 0})}}),
              HasSubstr("3 x 1 numbers for 4 vertices"));
  Dataset named = several;
  named.targets.names = Names({"price", "area"});
  for (const char* const name : {"a.npz", "a.tsr"}) {
    io::save(named, folder_ / name);
    EXPECT_EQ(io::open(folder_ / name), named) << name;
  }
  const Dataset turned = permuted(named, Permutation(std::vector<VertexId>{3, 2, 1, 0}));
  EXPECT_THAT(turned.targets.matrix->span().first(2), ElementsAre(1, 1));
  EXPECT_NE(turned, named);
}

TEST_F(NpzReading, NotesSayWhatIsOdd) {
  EXPECT_THAT(read({{"y", ids({0, 1, -1, 0})}}).notes, ElementsAre("1 of 4 vertices has no label"));
  EXPECT_THAT(read({{"y", ids({-1, 1, -1, 1})}}).notes,
              ElementsAre(HasSubstr("labels of vertices are -1 or 1: two classes")));
  EXPECT_THAT(read({{"graph_id", ids({0, 0, 0, 0})}, {"graph_label", ids({-1})}}).notes, IsEmpty());
  EXPECT_THAT(read({{"colour", ids({1})}, {"age", ids({1})}}).notes,
              ElementsAre("nothing uses the arrays age, colour"));
  const Arrays loops{
      {"edge_index", array_of<std::int64_t>("<i8", {2, 4}, {0, 1, 1, 0, 0, 2, 2, 1})}};
  EXPECT_THAT(read(loops, {.duplicates = Duplicates::first}).notes,
              ElementsAre("1 edge is listed again: the first one was kept",
                          "1 edge leads from a vertex to itself"));
  EXPECT_THAT(read({}).notes, IsEmpty());
}

TEST_F(NpzReading, EdgesMayBeNone) {
  const ExtraArray x = array_of<float>("<f4", {3, 1}, {1, 2, 3});
  for (const ExtraArray& none :
       {array_of<std::int64_t>("<i8", {2, 0}, {}), array_of<std::int64_t>("<i8", {0, 2}, {}),
        array_of<double>("<f8", {2, 0}, {})}) {
    const Dataset dataset = read_only({{"edge_index", none}, {"x", x}});
    EXPECT_EQ(dataset.graph.num_rows(), 3);
    EXPECT_EQ(dataset.graph.num_edges(), 0);
  }
  EXPECT_THROW(read_only({{"edge_index", array_of<std::int64_t>("<i8", {2, 0}, {})}}), Error);
}

TEST_F(NpzReading, ArraysOfEdgesFollowTheEdges) {
  // Edges 2 -> 3, 0 -> 1, 1 -> 2, which the graph has by target.
  const Dataset dataset =
      read({{"edge_time", array_of<float>("<f4", {3, 2}, {23, 1, 1, 2, 12, 3})}});
  EXPECT_EQ(dataset.extras.at("edge_time"),
            (test::extra_array<float>("<f4", {3, 2}, {1, 2, 12, 3, 23, 1})));
  EXPECT_FALSE(dataset.graph.has_edge_ids());
  EXPECT_THAT(dataset.notes, ElementsAre("nothing uses the array edge_time"));
  io::save(dataset, folder_ / "b.npz");
  EXPECT_EQ(io::open(folder_ / "b.npz"), dataset);
  // Of merged edges the first one's row stays.
  const Dataset merged =
      read({{"edge_index", array_of<std::int64_t>("<i8", {2, 3}, {1, 1, 0, 2, 2, 1})},
            {"edge_type", ids({7, 8, 9})}},
           {.duplicates = Duplicates::sum});
  EXPECT_EQ(merged.extras.at("edge_type"), ids({9, 7}));
}

}  // namespace
}  // namespace tessera
