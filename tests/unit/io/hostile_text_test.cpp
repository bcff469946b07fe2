// SPDX-License-Identifier: Apache-2.0
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "tessera/io/edge_list.hpp"
#include "tessera/io/graphml.hpp"
#include "tessera/io/index_file.hpp"
#include "tessera/io/metis.hpp"
#include "tessera/io/ogb.hpp"

#include "io/npz_arrays.hpp"
#include "support/gzipped.hpp"
#include "support/hostile.hpp"
#include "support/slow_text.hpp"

/// Every text format: cut short, with numbers that no graph has, packed or not, with the line ends
/// and marks that other programs write.
namespace tessera {
namespace {

using test::gzipped;
using test::Read;
using testing::AnyOf;
using testing::HasSubstr;

/// A table of the vertices beside three edges.
Dataset read_nodes(const std::string& path) {
  const test::TemporaryFolder folder;
  const std::string edges = folder / "edges";
  test::write_file(edges, "a,b\nb,c\nc,d\n");
  io::ReadOptions options;
  options.nodes.path = path;
  options.nodes.unknown = io::UnknownIds::drop;
  return io::read_edge_list(edges, options);
}

/// One class per vertex of a graph without edges.
Dataset read_indices(const std::string& path) {
  const std::vector<std::int64_t> indices = io::read_index_file(path);
  Dataset dataset;
  dataset.name = "indices";
  dataset.graph =
      test::random_graph({static_cast<VertexId>(indices.size()), 1, 0, false, false}, 1);
  dataset.labels = ClassLabels(indices);
  return dataset;
}

struct TextFormat {
  const char* name;
  std::string text;
  Read read;
  bool knows_its_end;  ///< every cut of the plain text shows
};

const std::vector<TextFormat>& formats() {
  static const std::vector<TextFormat> all = {
      {"edge_list", "source,target,weight\n10,11,0.5\n12,10,2\n11,12,3",
       [](const std::string& path) { return io::read_edge_list(path); }, false},
      {"names", "ann;bob\n\"bob, jr\";ann\nbob;cyd",
       [](const std::string& path) { return io::read_edge_list(path); }, false},
      {"node_table", "id,age,colour,label\na,3,red,x\nb,,blue,y\nc,5,red,x\nd,7,blue,y", read_nodes,
       false},
      {"matrix_market",
       "%%MatrixMarket matrix coordinate integer symmetric\n%\n3 3 2\n2 1 5\n3 2 6", test::read_mtx,
       true},
      {"metis", "% a path\n4 3\n2\n1 3\n2 4\n3",
       [](const std::string& path) { return io::read_metis(path); }, true},
      {"graphml",
       "<?xml version=\"1.0\"?>\n<graphml><key id=\"w\" for=\"edge\" "
       "attr.name=\"weight\"/>\n<graph "
       "edgedefault=\"undirected\">\n<node id=\"a\"/><!-- two -->\n<node id=\"b\"></node>\n<edge "
       "source=\"a\" target=\"b\"><data key=\"w\">2.5</data></edge>\n</graph>\n</graphml>",
       [](const std::string& path) { return io::read_graphml(path); }, true},
      {"index_file", "% parts\n0\n1\n1\n0", read_indices, false}};
  return all;
}

class HostileText : public test::HostileFile {
 protected:
  Dataset read(const std::string& bytes, const Read& read) {
    test::write_file(file_, bytes);
    return read(file_);
  }
};

TEST_F(HostileText, CutAnywhere) {
  for (const TextFormat& format : formats()) {
    SCOPED_TRACE(format.name);
    ASSERT_EQ(outcome(format.text, format.read), "no error");
    for (std::size_t length = 0; length < format.text.size(); ++length) {
      const std::string cut = format.text.substr(0, length);
      const std::string said = outcome(cut, format.read);
      ASSERT_TRUE(!format.knows_its_end || said != "no error") << "cut at byte " << length;
      EXPECT_EQ(said.find('\n'), std::string::npos) << said;
    }
  }
}

TEST_F(HostileText, RowsThatAreCutAreNamed) {
  const Read& edges = formats()[0].read;
  EXPECT_THAT(outcome("1,2\n3,4\n5", edges), HasSubstr("line 3"));
  EXPECT_THAT(outcome("1,2\n3,4\n5,", edges), HasSubstr("line 3"));
  EXPECT_THAT(outcome("source,target,weight\n1,2,1\n3,4", edges), HasSubstr("line 3"));
  EXPECT_THAT(outcome("source,target,weight\n1,2,1\n3,4,", edges), HasSubstr("line 3"));
  EXPECT_THAT(outcome("id,x,label\na,1,u\nb,2,v\nc,3", read_nodes), HasSubstr("line 4"));
  EXPECT_THAT(outcome("id,x,label\na,1,u\nb,2,v\n\"c", read_nodes), HasSubstr("line 4"));
}

TEST_F(HostileText, PackedAndCutAnywhere) {
  for (const TextFormat& format : formats()) {
    SCOPED_TRACE(format.name);
    const std::string bytes = gzipped(format.text);
    ASSERT_EQ(outcome(bytes, format.read), "no error");
    for (std::size_t length = 1; length < bytes.size(); ++length) {
      ASSERT_NE(outcome(bytes.substr(0, length), format.read), "no error") << "cut at " << length;
    }
  }
}

TEST_F(HostileText, PackedAndChanged) {
  for (const TextFormat& format : formats()) {
    SCOPED_TRACE(format.name);
    const std::string bytes = gzipped(format.text);
    // Behind the header, which has a time and the name of a system that nobody reads.
    for (std::size_t position = 10; position < bytes.size(); ++position) {
      std::string changed = bytes;
      changed[position] = static_cast<char>(changed[position] ^ 0xFF);
      ASSERT_NE(outcome(changed, format.read), "no error") << "byte " << position;
    }
    EXPECT_THAT(outcome(bytes + "more", format.read), HasSubstr("cannot be unpacked"));
    EXPECT_NE(outcome(gzipped(bytes), format.read), "no error") << "packed twice";
  }
}

TEST_F(HostileText, LineEndsMarksAndALastNewlineDoNotCount) {
  for (const TextFormat& format : formats()) {
    SCOPED_TRACE(format.name);
    Dataset expected = read(format.text, format.read);
    std::string returns;
    for (const char c : format.text) returns += c == '\n' ? "\r\n" : std::string(1, c);
    const bool has_mark = std::string(format.name) != "matrix_market";
    std::vector<std::string> texts = {format.text + "\n", format.text + "\r\n", returns,
                                      returns + "\r\n", gzipped(format.text + "\n")};
    if (has_mark) texts.push_back("\xEF\xBB\xBF" + returns + "\r\n");
    for (const std::string& text : texts) EXPECT_EQ(read(text, format.read), expected) << text;
    EXPECT_THAT(outcome(std::string("\xFF\xFE"
                                    "1\0 \0",
                                    6),
                        format.read),
                HasSubstr("UTF-16"));
  }
}

TEST_F(HostileText, NumbersThatNoVertexHas) {
  const std::string numbers[] = {"-1",
                                 "2147483648",
                                 "4294967296",
                                 "9223372036854775807",
                                 "9223372036854775808",
                                 "18446744073709551616",
                                 "-9223372036854775809",
                                 "1000000000000000000000000000000"};
  const Read& edges = formats()[0].read;
  for (const std::string& number : numbers) {
    SCOPED_TRACE(number);
    const auto expect_refused = [&](const std::string& text, const Read& read) {
      const std::string said = outcome(text, read);
      EXPECT_NE(said, "no error") << text;
      EXPECT_LT(said.size(), 300u) << said;
    };
    // Lines enough for the ids to be taken as numbers.
    std::string list;
    for (int i = 0; i < 100; ++i) list += fmt::format("{} {}\n", i, i + 1);
    expect_refused(list + "5 " + number + "\n", edges);
    expect_refused(list + number + " 5\n", edges);
    const std::string head = "%%MatrixMarket matrix coordinate pattern general\n";
    expect_refused(head + "3 3 1\n1 " + number + "\n", test::read_mtx);
    expect_refused(head + "3 3 1\n" + number + " 1\n", test::read_mtx);
    expect_refused(head + number + " 3 1\n1 1\n", test::read_mtx);
    expect_refused(head + "3 " + number + " 1\n1 1\n", test::read_mtx);
    expect_refused(head + "3 3 " + number + "\n1 1\n", test::read_mtx);
    const Read metis = [](const std::string& path) { return io::read_metis(path); };
    expect_refused("2 1\n2\n" + number + "\n", metis);
    expect_refused(number + " 1\n2\n1\n", metis);
    expect_refused("2 " + number + "\n2\n1\n", metis);
    expect_refused("2 1 " + number + "\n2\n1\n", metis);
    expect_refused("2 1 010 " + number + "\n1 2\n1 1\n", metis);
  }
  EXPECT_NE(outcome("0\n9223372036854775808\n", read_indices), "no error");
  EXPECT_NE(outcome("0\n1.5\n", read_indices), "no error");
}

TEST_F(HostileText, NotANumberAndInfinity) {
  for (const char* const value : {"nan", "inf", "-inf", "1e39", "-1e39", "1e999"}) {
    SCOPED_TRACE(value);
    const std::string v = value;
    EXPECT_NE(outcome("source,target,weight\n1,2,1\n3,4," + v + "\n", formats()[0].read),
              "no error");
    EXPECT_NE(outcome("2 1 1\n2 " + v + "\n1 " + v + "\n",
                      [](const std::string& path) { return io::read_metis(path); }),
              "no error");
    EXPECT_NE(outcome("<graphml><key id='w' for='edge' attr.name='weight'/><graph><node id='a'/>"
                      "<edge source='a' target='a'><data key='w'>" +
                          v + "</data></edge></graph></graphml>",
                      [](const std::string& path) { return io::read_graphml(path); }),
              "no error");
  }
  EXPECT_NE(outcome("id,x\na,1\nb,inf\nc,2\n", read_nodes), "no error");
  EXPECT_NE(outcome("id,x\na,1\nb,1e39\nc,2\n", read_nodes), "no error");
}

/// Ids of the table that no edge names are vertices without edges.
TEST_F(HostileText, IdsThatOccurInOneTableOnly) {
  test::write_file(file_, "id,x\na,1\nb,2\nlonely,3\n");
  test::write_file(file_ + ".edges", "a,b\n");
  io::ReadOptions options;
  options.nodes.path = file_;
  const Dataset dataset = io::read_edge_list(file_ + ".edges", options);
  EXPECT_EQ(dataset.graph.num_rows(), 3);
  EXPECT_EQ(dataset.graph.num_edges(), 1);
  EXPECT_EQ(dataset.vertex_names[2], "lonely");
  test::write_file(file_ + ".edges", "a,b\nb,stranger\n");
  EXPECT_THROW(io::read_edge_list(file_ + ".edges", options), Error);
  test::write_file(file_ + ".edges", "x,y\ny,z\n");
  EXPECT_THROW(io::read_edge_list(file_ + ".edges", options), Error);
}

class HostilePlace : public testing::Test {
 protected:
  std::string said_of(const std::string& path, const Read& read) {
    try {
      read(path);
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::internal);
      EXPECT_THAT(std::string(error.what()), HasSubstr(path));
      return error.what();
    }
    return "no error";
  }

  std::vector<Read> readers() {
    std::vector<Read> all = {test::read_npz, test::read_container, test::map_container,
                             test::read_mtx,
                             [](const std::string& path) { return io::open(path); }};
    for (const TextFormat& format : formats()) all.push_back(format.read);
    return all;
  }

  test::TemporaryFolder folder_;
};

TEST_F(HostilePlace, FoldersPipesEmptyFilesAndFilesThatAreNotThere) {
  const std::string below = folder_ / "folder";
  std::filesystem::create_directory(below);
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string empty = folder_ / "empty";
  test::write_file(empty, "");
  const std::string newlines = folder_ / "newlines";
  test::write_file(newlines, "\n\n");
  for (const Read& read : readers()) {
    EXPECT_THAT(said_of(below, read), HasSubstr("is a folder"));
    EXPECT_THAT(said_of(pipe, read), HasSubstr("not a regular file"));
    EXPECT_THAT(said_of(folder_ / "nowhere", read),
                AnyOf(HasSubstr("No such file"), HasSubstr("no such file")));
  }
  std::vector<Read> graphs = readers();
  graphs.pop_back();  // of index files, where no line is a list of none
  for (const Read& read : graphs) EXPECT_THAT(said_of(empty, read), HasSubstr("is empty"));
  for (const TextFormat& format : formats()) {
    if (std::string(format.name) == "index_file") continue;
    EXPECT_NE(said_of(newlines, format.read), "no error") << format.name;
  }
}

/// As somebody who may not read everything.
class AsNobody {
 public:
  AsNobody() { change(65534); }
  ~AsNobody() { change(static_cast<int>(::geteuid())); }

 private:
  static void change(int user) {
    if (::geteuid() == 0) ::setfsuid(static_cast<uid_t>(user));
  }
};

TEST_F(HostilePlace, UnreadableFilesAndFolders) {
  const std::string file = folder_ / "secret";
  test::write_file(file, "0 1\n");
  std::filesystem::permissions(file, std::filesystem::perms::none);
  const std::string locked = folder_ / "locked";
  std::filesystem::create_directory(locked);
  test::write_file(locked + "/a.mtx", "0 1\n");
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
  std::filesystem::permissions(locked, std::filesystem::perms::none);
  {
    const AsNobody nobody;
    for (const Read& read : readers()) {
      EXPECT_THAT(said_of(file, read), HasSubstr("ermission"));
      EXPECT_THAT(said_of(locked + "/a.mtx", read), HasSubstr("ermission"));
    }
    EXPECT_NE(said_of(locked, [](const std::string& path) { return io::open(path); }), "no error");
    EXPECT_NE(said_of(locked, [](const std::string& path) { return io::read_ogb(path); }),
              "no error");
  }
  std::filesystem::permissions(locked, std::filesystem::perms::owner_all);
}

// npz --------------------------------------------------------------------------------------------

TEST_F(HostileText, ArchivesInArchives) {
  io::write_npz(test::with_everything(), file_);
  const std::string inner = test::read_file(file_);
  io::write_npz_arrays(
      file_,
      {{"inner.npz", test::extra_array<char>("|u1", {static_cast<std::int64_t>(inner.size())},
                                             {inner.begin(), inner.end()})}});
  EXPECT_THAT(outcome(test::read_file(file_), test::read_npz), HasSubstr("no edges"));
  EXPECT_NE(outcome(gzipped(inner), test::read_npz), "no error");
}

TEST_F(HostileText, OtherArchivesCutAnywhere) {
  const auto integers = [](const char* name, std::vector<std::int64_t> shape,
                           const std::vector<std::int64_t>& values) {
    return io::NamedArray{name, test::extra_array<std::int64_t>("<i8", std::move(shape), values)};
  };
  const std::vector<std::vector<io::NamedArray>> archives = {
      {integers("edge_index", {2, 3}, {0, 0, 2, 1, 2, 1})},
      {{"format", test::extra_array<char>("|S3", {}, {'c', 's', 'r'})},
       integers("shape", {2}, {3, 3}),
       integers("indptr", {4}, {0, 0, 2, 3}),
       integers("indices", {3}, {2, 0, 0}),
       {"data", test::extra_array<float>("<f4", {3}, {1, 2, 3})}}};
  for (const auto& arrays : archives) {
    io::write_npz_arrays(file_, arrays);
    const std::string bytes = test::read_file(file_);
    ASSERT_EQ(outcome(bytes, test::read_npz), "no error");
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      ASSERT_NE(outcome(bytes.substr(0, length), test::read_npz), "no error") << length;
    }
    // Without any one of them there is no graph.
    for (std::size_t left_out = 0; left_out < arrays.size(); ++left_out) {
      auto fewer = arrays;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(left_out));
      if (fewer.empty()) continue;
      io::write_npz_arrays(file_, fewer);
      ASSERT_NE(outcome(test::read_file(file_), test::read_npz), "no error")
          << "without " << arrays[left_out].first;
    }
  }
}

// OGB --------------------------------------------------------------------------------------------

class HostileFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(set_ + "/raw");
    std::filesystem::create_directories(set_ + "/split/time");
    for (const auto& [name, text] : files_) put(name, text);
  }
  void put(const std::string& name, const std::string& text) {
    test::write_file(set_ + "/" + name + ".csv.gz", gzipped(text));
  }
  std::string outcome() {
    const std::int64_t before = host_memory_use().current_bytes;
    reset_host_memory_peak();
    std::string said = "no error";
    try {
      io::read_ogb(set_).validate();
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
      said = error.what();
      EXPECT_THAT(said, testing::StartsWith(set_));
    }
    EXPECT_LT(host_memory_use().peak_bytes - before, test::few_bytes) << said;
    return said;
  }

  const std::vector<std::pair<std::string, std::string>> files_ = {
      {"raw/edge", "0,1\n0,2\n2,1\n"},
      {"raw/num-node-list", "4\n"},
      {"raw/node-feat", "1,2\n3,4\n5,6\n7,8.5\n"},
      {"raw/node-label", "0\n1\nnan\n1\n"},
      {"split/time/train", "0\n"},
      {"split/time/valid", "1\n"},
      {"split/time/test", "3\n"}};
  test::TemporaryFolder folder_;
  std::string set_ = folder_ / "ogbn_tiny";
};

TEST_F(HostileFolder, EveryFileCutAnywhere) {
  ASSERT_EQ(outcome(), "no error");
  for (const auto& [name, text] : files_) {
    const std::string bytes = gzipped(text);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      test::write_file(set_ + "/" + name + ".csv.gz", bytes.substr(0, length));
      ASSERT_NE(outcome(), "no error") << name << " cut at byte " << length;
    }
    put(name, text);
  }
}

TEST_F(HostileFolder, CountsThatLieAndFilesThatAreMissing) {
  for (const char* const number :
       {"3", "5", "0", "-1", "2147483647", "2147483648", "9223372036854775808", "x", ""}) {
    put("raw/num-node-list", std::string(number) + "\n");
    EXPECT_NE(outcome(), "no error") << number;
  }
  put("raw/num-node-list", "4\n");
  for (const char* const edge :
       {"0,4", "-1,0", "0,2147483648", "0,9223372036854775808", "0", "0,1,2,3", "a,b"}) {
    put("raw/edge", std::string("0,1\n") + edge + "\n");
    EXPECT_NE(outcome(), "no error") << edge;
  }
  put("raw/edge", "0,1\n");
  for (const char* const row : {"inf,1", "1", "1,2,3", "1,x", "1,1e39"}) {
    put("raw/node-feat", std::string("1,2\n3,4\n5,6\n") + row + "\n");
    EXPECT_NE(outcome(), "no error") << row;
  }
  put("raw/node-feat", "1,2\n3,4\n5,6\n7,8\n");
  for (const char* const label : {"-2", "inf", "x", "1e30"}) {
    put("raw/node-label", std::string("0\n1\n0\n") + label + "\n");
    EXPECT_NE(outcome(), "no error") << label;
  }
  put("raw/node-label", "0\n1\n0\n1\n");
  for (const char* const vertex : {"4", "-1", "2147483648", "9223372036854775808", "x"}) {
    put("split/time/train", std::string(vertex) + "\n");
    EXPECT_NE(outcome(), "no error") << vertex;
  }
  put("split/time/train", "0\n");
  EXPECT_EQ(outcome(), "no error");
  std::filesystem::remove(set_ + "/raw/num-node-list.csv.gz");
  EXPECT_THAT(outcome(), HasSubstr("num-node-list"));
  put("raw/num-node-list", "4\n");
  std::filesystem::remove(set_ + "/raw/edge.csv.gz");
  EXPECT_THAT(outcome(), HasSubstr("edge.csv.gz"));
  std::filesystem::create_directory(set_ + "/raw/edge.csv.gz");
  EXPECT_THAT(outcome(), HasSubstr("edge.csv.gz"));
}

}  // namespace
}  // namespace tessera
