// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/container.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/io/npz.hpp"

#include "support/datasets.hpp"
#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/sections.hpp"

namespace tessera {
namespace {

using ::testing::HasSubstr;

TEST(Container, RoundTripsEveryPart) {
  const test::TemporaryFolder folder;
  for (const Dataset& dataset : test::small_datasets()) {
    SCOPED_TRACE(dataset.name);
    const std::string path = folder / "a.tsr";
    io::write_container(dataset, path);
    for (const bool map : {false, true}) {
      SCOPED_TRACE(map);
      const Dataset again = io::read_container(path, {.map = map});
      EXPECT_EQ(again, dataset);
      EXPECT_EQ(again.name, dataset.name);
      EXPECT_EQ(again.edges_stored, dataset.edges_stored);
    }
  }
}

TEST(Container, NpzToContainerToNpzGivesTheSameBytes) {
  const test::TemporaryFolder folder;
  for (const Dataset& dataset : test::small_datasets()) {
    SCOPED_TRACE(dataset.name);
    io::write_npz(dataset, folder / "a.npz");
    io::write_container(io::read_npz(folder / "a.npz"), folder / "a.tsr");
    io::write_npz(io::read_container(folder / "a.tsr"), folder / "b.npz");
    EXPECT_EQ(test::read_file(folder / "a.npz"), test::read_file(folder / "b.npz"));
  }
}

TEST(Container, NamesOfArraysArePlainInBothFormats) {
  const test::TemporaryFolder folder;
  const ExtraArray array = test::extra_array<char>("|b1", {1}, {1});
  io::write_container(test::with_everything(), folder / "plain.tsr");
  for (const std::string& name :
       {std::string("../up"), std::string("/etc/passwd"), std::string("a/../../b"),
        std::string(".."), std::string("a//b"), std::string("a/"), std::string("C:x"),
        std::string("a\\b"), std::string("a\nb"), std::string("\u202eb"), std::string("\xff"),
        std::string("a\0b", 3), std::string()}) {
    SCOPED_TRACE(name);
    Dataset dataset = test::with_everything();
    dataset.extras[name] = array;
    testing::expect_error(ErrorCode::invalid_argument, {"name"},
                          [&] { io::write_npz(dataset, folder / "a.npz"); });
    testing::expect_error(ErrorCode::invalid_argument, {"name"},
                          [&] { io::write_container(dataset, folder / "a.tsr"); });
    auto sections = test::read_sections(folder / "plain.tsr");
    sections.emplace_back("extra:" + name, array);
    io::write_sections(folder / "forged.tsr", sections);
    testing::expect_error(ErrorCode::bad_data, {"forged.tsr", "name"},
                          [&] { io::read_container(folder / "forged.tsr"); });
  }
  Dataset dataset = test::with_everything();
  for (const char* const name : {"paper/x", "..a", "caf\u00e9", "a b", "x.npy"}) {
    dataset.extras[name] = array;
  }
  io::write_npz(dataset, folder / "a.npz");
  EXPECT_EQ(io::read_npz(folder / "a.npz").extras, dataset.extras);
}

TEST(Container, ChecksumsDoNotDependOnTheNumberOfThreads) {
  const test::TemporaryFolder folder;
  const Dataset dataset =
      test::graph_alone("g", test::random_graph({3000, 3000, 700000, true, true}, 11));
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    io::write_container(dataset, folder / std::to_string(threads));
  }
  EXPECT_EQ(test::read_file(folder / "1"), test::read_file(folder / "3"));
  EXPECT_EQ(io::read_container(folder / "1"), dataset);
  set_num_threads(0);
}

TEST(Container, AMappedGraphOutlivesItsFile) {
  const test::TemporaryFolder folder;
  const Dataset dataset = test::with_sparse_features_and_multi_labels();
  io::write_container(dataset, folder / "a.tsr");
  Dataset mapped = io::read_container(folder / "a.tsr", {.map = true});
  std::filesystem::remove(folder / "a.tsr");
  const Graph graph = mapped.graph;
  mapped = {};
  EXPECT_EQ(graph, dataset.graph);
}

TEST(Container, SectionsAreAlignedForMapping) {
  const test::TemporaryFolder folder;
  io::write_container(test::with_everything(), folder / "a.tsr");
  const Dataset mapped = io::read_container(folder / "a.tsr", {.map = true});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapped.graph.row_offsets().data()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapped.graph.values().data()) % 64, 0u);
}

TEST(Container, ANewerVersionSaysSo) {
  const test::TemporaryFolder folder;
  io::write_container(test::with_everything(), folder / "a.tsr");
  std::string bytes = test::read_file(folder / "a.tsr");
  bytes[8] = 2;
  test::write_file(folder / "b.tsr", bytes);
  try {
    io::read_container(folder / "b.tsr");
    FAIL() << "read a newer version";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("version 2"));
  }
}

}  // namespace
}  // namespace tessera
