// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/npz.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "support/datasets.hpp"
#include "support/files.hpp"
#include "support/numpy_files.hpp"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Npz, RoundTripsEveryPart) {
  const test::TemporaryFolder folder;
  for (const Dataset& dataset : test::small_datasets()) {
    SCOPED_TRACE(dataset.name);
    const std::string path = folder / (dataset.name + ".npz");
    io::write_npz(dataset, path);
    const Dataset again = io::read_npz(path);
    EXPECT_EQ(again, dataset);
    EXPECT_EQ(again.name, dataset.name);
    EXPECT_EQ(again.edges_stored, dataset.graph.num_edges());
  }
}

TEST(Npz, WritesTheSameBytesForAnyNumberOfThreads) {
  const test::TemporaryFolder folder;
  Dataset dataset = test::graph_alone("g", test::random_graph({500, 500, 200000, true, false}, 3));
  dataset.features = test::random_matrix(500, 1100, 4, false);
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    io::write_npz(dataset, folder / std::to_string(threads));
  }
  set_num_threads(0);
  EXPECT_EQ(test::read_file(folder / "1"), test::read_file(folder / "3"));
  EXPECT_EQ(io::read_npz(folder / "3"), dataset);
}

TEST(Npz, ReadsWhatNumpyCompressed) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "numpy.npz", test::from_hex(test::numpy_compressed));
  const Dataset dataset = io::read_npz(folder / "numpy.npz");
  EXPECT_EQ(dataset.name, "numpy");
  EXPECT_EQ(dataset.edges_stored, 4);
  EXPECT_THAT(dataset.graph.row_offsets().span(), ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(dataset.graph.col_indices().span(), ElementsAre(1, 2, 0, 0));
  EXPECT_THAT(std::get<ClassLabels>(dataset.labels).span(), ElementsAre(1, 0, -1));
}

TEST(Npz, ReadsStreamedFilesOtherTypesAndOrders) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "numpy.npz", test::from_hex(test::numpy_streamed));
  const Dataset dataset = io::read_npz(folder / "numpy.npz");
  EXPECT_THAT(dataset.graph.row_offsets().span(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(dataset.graph.col_indices().span(), ElementsAre(1, 0, 0));
  EXPECT_THAT(dataset.graph.values().span(), ElementsAre(2, -1, 0.5));
  EXPECT_THAT(std::get<DenseFeatures>(dataset.features)->span(), ElementsAre(0, 1, 2, 3, 4, 5));
  ASSERT_EQ(dataset.extras.count("mask"), 1u);
  EXPECT_EQ(dataset.extras.at("mask"), (test::extra_array<char>("|b1", {3}, {1, 0, 1})));
}

TEST(Npz, FailedWritesLeaveNothingBehind) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "file", "old");
  const Dataset dataset = test::with_everything();
  try {
    io::write_npz(dataset, folder / "file/below.npz");
    FAIL() << "wrote below a file";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_THAT(error.what(), HasSubstr("Not a directory"));
  }
  const Progress stop = [](std::string_view, std::int64_t, std::int64_t) {
    throw std::runtime_error("stop");
  };
  EXPECT_THROW(io::write_npz(dataset, folder / "file", stop), std::runtime_error);
  EXPECT_EQ(test::read_file(folder / "file"), "old");
  EXPECT_EQ(folder.num_files(), 1u);
}

TEST(Npz, RefusesExtrasThatWouldBeReadAsSomethingElse) {
  const test::TemporaryFolder folder;
  for (const char* name : {"row", "num_nodes", "x", "edge_id", "edge_index", "edge_weight"}) {
    Dataset dataset = test::with_everything();
    dataset.extras[name] = test::extra_array<char>("|b1", {1}, {1});
    EXPECT_THROW(io::write_npz(dataset, folder / "a.npz"), Error) << name;
  }
  Dataset dataset = test::with_everything();
  dataset.extras["short"] = test::extra_array<char>("<i4", {1}, {1});
  EXPECT_THROW(io::write_npz(dataset, folder / "a.npz"), Error);
  EXPECT_EQ(folder.num_files(), 0u);
}

}  // namespace
}  // namespace tessera
