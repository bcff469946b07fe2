// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/open.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <limits>

#include "tessera/core/error.hpp"
#include "tessera/io/index_file.hpp"

#include "support/datasets.hpp"
#include "support/files.hpp"

namespace tessera {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <class Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Open, RecognisesFilesByTheirFirstBytes) {
  const test::TemporaryFolder folder;
  const Dataset dataset = test::graph_alone("g", test::random_graph({17, 17, 50, true, false}, 1));
  for (const char* ending : {".npz", ".mtx", ".mtx.gz", ".tsr"}) {
    SCOPED_TRACE(ending);
    io::save(dataset, folder / ("g" + std::string(ending)));
    std::filesystem::rename(folder / ("g" + std::string(ending)), folder / "unnamed");
    EXPECT_EQ(io::open(folder / "unnamed"), dataset);
  }
}

TEST(Open, OptionsForTablesAreForNothingElse) {
  const test::TemporaryFolder folder;
  io::save(test::graph_alone("g", test::random_graph({17, 17, 50, true, false}, 1)),
           folder / "g.npz");
  test::write_file(folder / "nodes.csv", "id,x\na,1\n");
  io::ReadOptions nodes, separator, header, target;
  nodes.nodes.path = folder / "nodes.csv";
  separator.edges.separator = ';';
  header.edges.header = false;
  target.edges.target = "2";
  for (const std::string& source : {folder / "g.npz", std::string("embedded:karate")}) {
    SCOPED_TRACE(source);
    const auto error = [&](const io::ReadOptions& options) {
      return error_of([&] { io::open(source, options); });
    };
    EXPECT_THAT(error(nodes), HasSubstr("leave out --nodes"));
    EXPECT_THAT(error(separator),
                AllOf(HasSubstr("--separator: is for tables"), HasSubstr("leave it out")));
    EXPECT_THAT(error(header), HasSubstr("--header"));
    EXPECT_THAT(error(target), HasSubstr("--target"));
  }
}

TEST(Open, AMatrixIsNeverAListOfEdges) {
  const test::TemporaryFolder folder;
  const std::string matrix = "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2 5\n";
  test::write_file(folder / "marked", "\xEF\xBB\xBF" + matrix);
  EXPECT_EQ(io::open(folder / "marked").graph.num_edges(), 1);
  for (const auto& [name, text] :
       {std::pair<std::string, std::string>("one_sign", matrix.substr(1)),
        {"remark_first.mtx", "% remark\n" + matrix},
        {"no_banner.mtx", matrix.substr(matrix.find('\n') + 1)}}) {
    SCOPED_TRACE(name);
    test::write_file(folder / name, text);
    EXPECT_THAT(error_of([&] { io::open(folder / name); }),
                AllOf(HasSubstr("begins with %%MatrixMarket"), HasSubstr("--format edges")));
    io::ReadOptions edges;
    edges.format = "edges";
    EXPECT_EQ(io::open(folder / name, edges).graph.num_edges(), 2);
  }
}

TEST(Open, KnowsItsSchemes) {
  EXPECT_EQ(io::open("embedded:karate").graph.num_rows(), 34);
  EXPECT_EQ(io::open("generate:erdos_renyi?vertices=50&edges=100").graph.num_rows(), 50);
}

TEST(Open, SaysWhatIsMissing) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(error_of([] { io::open("karate"); }), HasSubstr("embedded:karate"));
  EXPECT_THAT(error_of([] { io::open("data/karate.npz"); }), HasSubstr("embedded:karate"));
  EXPECT_THAT(error_of([] { io::open("rmat?scale=3"); }), HasSubstr("generate:rmat?scale=3"));
  EXPECT_THAT(error_of([] { io::open("reddit"); }), HasSubstr("twin:reddit"));
  EXPECT_THAT(error_of([] { io::open("no/such/file"); }), HasSubstr("no such file"));
  EXPECT_THAT(error_of([] { io::open("-"); }), HasSubstr("pipe"));
  EXPECT_THAT(error_of([] { io::open(""); }), HasSubstr("name of a file"));
  EXPECT_THAT(error_of([&] { io::open(folder.path()); }), HasSubstr("is a folder"));
  test::write_file(folder / "empty", "");
  EXPECT_THAT(error_of([&] { io::open(folder / "empty"); }), HasSubstr("is empty"));
  test::write_file(folder / "letter", "Dear reader");
  EXPECT_THAT(error_of([&] { io::open(folder / "letter"); }), HasSubstr("--ids names"));
  test::write_file(folder / "noise", "\x01\x02\x03");
  EXPECT_THAT(error_of([&] { io::open(folder / "noise"); }), HasSubstr(".mtx.gz"));
  EXPECT_THAT(error_of([] { io::open("/dev/null"); }), HasSubstr("not a regular file"));
}

TEST(Open, KeepsWeightsThatAreNotFiniteOnlyWhereTheyAreAllowed) {
  const test::TemporaryFolder folder;
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<VertexId> ends{0, 1, 2};
  BuildOptions build;
  build.nonfinite = Nonfinite::allow;
  const Graph graph = from_coo(3, 3, ends, ends, std::vector<float>{1, infinity, -infinity}, build);
  for (const char* name : {"a.npz", "a.mtx", "a.tsr"}) {
    SCOPED_TRACE(name);
    io::save(test::graph_alone("a", graph), folder / name);
    EXPECT_THAT(error_of([&] { io::open(folder / name); }), HasSubstr("--nonfinite allow"));
    io::ReadOptions read;
    read.nonfinite = Nonfinite::allow;
    EXPECT_EQ(io::open(folder / name, read).graph, graph);
  }
  const Dataset scaled = test::graph_alone(
      "a", graph.with_values({}).with_scales(std::vector<float>{1, infinity, 1}, {}));
  io::save(scaled, folder / "scaled.tsr");
  EXPECT_THAT(error_of([&] { io::open(folder / "scaled.tsr"); }), HasSubstr("row_scale[1] is inf"));
}

TEST(Save, LosesNothingUnlessTold) {
  const test::TemporaryFolder folder;
  const Dataset dataset = test::with_sparse_features_and_multi_labels();
  EXPECT_THAT(error_of([&] { io::save(dataset, folder / "a.mtx"); }), HasSubstr("graph only"));
  EXPECT_THAT(error_of([&] { io::save(dataset, folder / "a.txt"); }), HasSubstr(".tsr"));
  EXPECT_EQ(folder.num_files(), 0u);
  for (const char* name : {"a.mtx", "a.npz", "a.tsr"}) {
    io::save(dataset, folder / name, true);
    EXPECT_EQ(io::open(folder / name), test::graph_alone("a", dataset.graph)) << name;
  }
}

TEST(Save, ReplacesAFileAndKeepsItsPermissions) {
  const test::TemporaryFolder folder;
  const Dataset dataset = test::with_everything();
  test::write_file(folder / "a.tsr", "old");
  std::filesystem::permissions(folder / "a.tsr", std::filesystem::perms(0640));
  std::filesystem::create_symlink("a.tsr", folder / "link.tsr");
  io::save(dataset, folder / "link.tsr");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.tsr"));
  EXPECT_EQ(io::open(folder / "a.tsr"), dataset);
  EXPECT_EQ(std::filesystem::status(folder / "a.tsr").permissions(), std::filesystem::perms(0640));
  EXPECT_EQ(folder.num_files(), 2u);
}

/// Lets files grow no larger than so many bytes, as a full disk does.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST(Save, AFullDiskLeavesTheOldFile) {
  const test::TemporaryFolder folder;
  const Dataset dataset = test::with_everything();
  for (const char* name : {"a.npz", "a.tsr"}) {
    test::write_file(folder / name, "old");
    const FullDisk full(1000);
    EXPECT_THAT(error_of([&] { io::save(dataset, folder / name); }), HasSubstr("File too large"));
    EXPECT_EQ(test::read_file(folder / name), "old");
  }
  EXPECT_EQ(folder.num_files(), 2u);
}

TEST(Save, RefusesWhatIsNoFile) {
  const test::TemporaryFolder folder;
  const Dataset dataset = test::with_everything();
  std::filesystem::create_directory(folder / "folder.tsr");
  EXPECT_THAT(error_of([&] { io::save(dataset, folder / "folder.tsr"); }),
              HasSubstr("not a regular file"));
  EXPECT_THAT(error_of([&] { io::save(dataset, folder / "none/a.tsr"); }),
              HasSubstr("No such file or directory"));
  EXPECT_EQ(folder.num_files(), 1u);
}

TEST(IndexFile, RoundTripsAndCounts) {
  const test::TemporaryFolder folder;
  const std::vector<std::int64_t> values{3, 0, -1, 1LL << 40};
  io::write_index_file(folder / "p", values);
  EXPECT_EQ(test::read_file(folder / "p"), "3\n0\n-1\n1099511627776\n");
  EXPECT_EQ(io::read_index_file(folder / "p", 4), values);
  test::write_file(folder / "q", "% a comment\r\n 7 \r\n\n8");
  EXPECT_THAT(io::read_index_file(folder / "q"), ElementsAre(7, 8));
  EXPECT_THAT(error_of([&] { io::read_index_file(folder / "q", 3); }), HasSubstr("2 integers"));
  for (const char* text :
       {"1\n2 3\n", "1\nx\n", "1\n2.5\n", "1\n99999999999999999999\n", "1\n-\n"}) {
    test::write_file(folder / "r", text);
    EXPECT_THAT(error_of([&] { io::read_index_file(folder / "r"); }), HasSubstr("line 2")) << text;
  }
}

}  // namespace
}  // namespace tessera
