// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/edge_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/core/parallel.hpp"

#include "support/files.hpp"
#include "support/gzipped.hpp"

namespace tessera {
namespace {

using test::gzipped;
using testing::_;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class EdgeList : public testing::Test {
 protected:
  Dataset read(const std::string& text, const io::ReadOptions& options = {}) {
    test::write_file(folder_ / "a.csv", text);
    return io::read_edge_list(folder_ / "a.csv", options);
  }
  std::string error_of(const std::string& text, const io::ReadOptions& options = {}) {
    try {
      read(text, options);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), StartsWith(folder_ / "a.csv"));
      EXPECT_FALSE(error.fix().empty()) << error.what();
      return error.what();
    }
    return "no error";
  }

  test::TemporaryFolder folder_;
};

/// 0 -> 1 and 0 -> 2, 2 -> 1.
void expect_three_edges(const Dataset& dataset) {
  EXPECT_EQ(dataset.name, "a");
  EXPECT_EQ(dataset.edges_stored, 3);
  EXPECT_EQ(dataset.graph.num_cols(), 3);
  EXPECT_THAT(dataset.graph.row_offsets().span(), ElementsAre(0, 0, 2, 3));
  EXPECT_THAT(dataset.graph.col_indices().span(), ElementsAre(0, 2, 0));
}

TEST_F(EdgeList, AnySeparatorAndAnyLineEnd) {
  for (const char* text :
       {"0,1\n0,2\n2,1\n", "0,1\n0,2\n2,1", "0;1\r\n0;2\r\n2;1\r\n", "0\t1\n0\t2\n2\t1\n",
        "0 1\n 0   2 \n2\t1\n", "0|1\n0|2\n2|1\n",
        "\xEF\xBB\xBF"
        "0,1\n0,2\n2,1\n",
        "0 , 1\n0, 2\n2 ,1\n", "\n\n0,1\n\n0,2\n2,1\n\n\n", "\"0\",\"1\"\n\"0\",2\n2,\"1\"\n",
        "source,target\n0,1\n0,2\n2,1\n", "\xEF\xBB\xBFsrc\tdst\r\n0\t1\r\n0\t2\r\n2\t1",
        "# Nodes: 3 Edges: 3\n# FromNodeId\tToNodeId\n0\t1\n0\t2\n2\t1\n",
        "% sym unweighted\n0 1\n0 2\n2 1\n", "// made by hand\n0 1\n#\n0 2\n2 1\n",
        "a,b\n0,1\n0,2\n2,1\n", "0,1,\n0,2,\n2,1,\n", "+0 1\n0 +2\n2 1\n"}) {
    SCOPED_TRACE(text);
    const Dataset dataset = read(text);
    expect_three_edges(dataset);
    EXPECT_FALSE(dataset.graph.has_values());
    EXPECT_TRUE(dataset.vertex_names.empty());
  }
}

TEST_F(EdgeList, GzipOfSeveralMembers) {
  expect_three_edges(read(gzipped("0,1\n0,") + gzipped("2\n2,1\n") + std::string(9, '\0')));
  EXPECT_THAT(error_of(gzipped("0,1\n0,2\n").substr(0, 20)), HasSubstr("ends early"));
  EXPECT_THAT(error_of(gzipped("0,1\n0,2\n") + "more"), HasSubstr("unpacked"));
}

TEST_F(EdgeList, CountsFromOneWhereToldTo) {
  io::ReadOptions from_one;
  from_one.edges.base = 1;
  expect_three_edges(read("1,2\n1,3\n3,2\n", from_one));
  EXPECT_THAT(error_of("1,2\n0,3\n", from_one), AllOf(HasSubstr("line 2"), HasSubstr("--base 0")));
}

TEST_F(EdgeList, Weights) {
  const Dataset third = read("0,1,0.5\n0,2,-1e-3\n2,1,3\n");
  expect_three_edges(third);
  EXPECT_THAT(third.graph.values().span(), ElementsAre(0.5f, 3.0f, -1e-3f));
  const Dataset called = read("weight,src,dst\n0.5,0,1\n-1e-3,0,2\n3,2,1\n");
  EXPECT_THAT(called.graph.values().span(), ElementsAre(0.5f, 3.0f, -1e-3f));
  io::ReadOptions options;
  options.edges.weight = "none";
  EXPECT_FALSE(read("0,1,0.5\n0,2,x\n2,1,3\n", options).graph.has_values());
  options.edges.weight = "4";
  EXPECT_THAT(read("0 1 9 0.5\n0 2 9 2\n2 1 9 3\n", options).graph.values().span(),
              ElementsAre(0.5f, 3.0f, 2.0f));
  EXPECT_THAT(error_of("0 1 9 0.5\n"), HasSubstr("--weight"));
  EXPECT_THAT(error_of("0,1,0.5\n0,2,\n"), AllOf(HasSubstr("line 2"), HasSubstr("no weight")));
  EXPECT_THAT(error_of("0,1,0.5\n0,2,much\n"), AllOf(HasSubstr("line 2"), HasSubstr("'much'")));
  EXPECT_THAT(error_of("0,1,0.5\n0,2,nan\n"), AllOf(HasSubstr("line 2"), HasSubstr("not finite")));
  EXPECT_THAT(error_of("0,1,1e39\n"), HasSubstr("32-bit float"));
  // A number that is too large makes no header of its line.
  EXPECT_THAT(error_of("a,b,1e99\nb,c,1\n"), AllOf(HasSubstr("line 1"), HasSubstr("'1e99'")));
}

TEST_F(EdgeList, ColumnsByNameOrNumber) {
  io::ReadOptions options;
  options.edges.source = "paper";
  options.edges.target = "cites";
  expect_three_edges(read("year,cites,paper\n1999,1,0\n1999,2,0\n2001,1,2\n", options));
  options.edges.source = "3";
  options.edges.target = "2";
  options.edges.weight = "none";
  expect_three_edges(read("1999,1,0,x\n1999,2,0,y\n2001,1,2,z\n", options));
  options.edges.source = "7";
  EXPECT_THAT(error_of("1999,1,0,x\n", options), AllOf(HasSubstr("'7'"), HasSubstr("--source")));
  options.edges.source = "2";
  EXPECT_THAT(error_of("1999,1,0,x\n", options), HasSubstr("different columns"));
}

TEST_F(EdgeList, NamesAreNumberedAsTheyAppear) {
  const Dataset dataset = read(
      "from,to\nann,\"bob, jr\"\nann,\"the \"\"cat\"\"\"\n"
      "\"the \"\"cat\"\"\",\"bob, jr\"\n");
  expect_three_edges(dataset);
  ASSERT_EQ(dataset.vertex_names.size(), 3);
  EXPECT_EQ(dataset.vertex_names[0], "ann");
  EXPECT_EQ(dataset.vertex_names[1], "bob, jr");
  EXPECT_EQ(dataset.vertex_names[2], "the \"cat\"");
  io::ReadOptions names;
  names.edges.ids = io::IdKind::names;
  const Dataset sparse = read("900000000000000000000 5\n900000000000000000000 -7\n-7 5\n", names);
  expect_three_edges(sparse);
  EXPECT_EQ(sparse.vertex_names[2], "-7");
  EXPECT_THAT(error_of("a,b\nc,\n"), AllOf(HasSubstr("line 2"), HasSubstr("empty")));
}

TEST_F(EdgeList, WordsBetweenBlanksAreEdgesWhereSomebodySaysSo) {
  EXPECT_THAT(error_of("ann bob\nbob cy\n"), AllOf(HasSubstr("words"), HasSubstr("--ids names")));
  io::ReadOptions told;
  told.format = "edges";
  const Dataset dataset = read("ann bob\nbob cy\n", told);
  EXPECT_EQ(dataset.graph.num_edges(), 2);
  EXPECT_EQ(dataset.vertex_names.size(), 3);
  // Numbers past 64 bits are names, and no prose.
  EXPECT_EQ(read("0 9223372036854775809\n2 9223372036854775808\n").vertex_names[3],
            "9223372036854775808");
}

TEST_F(EdgeList, FewTextsAmongNumbersAreMistakesInWhateverLine) {
  for (const char* wrong : {"1O", "1.0", "1e3", "0x10", "9223372036854775808"}) {
    SCOPED_TRACE(wrong);
    for (const int line : {1, 2, 60, 100}) {
      std::string text;
      for (int i = 1; i <= 120; ++i) {
        text += i == line ? fmt::format("{},{}\n", wrong, i) : fmt::format("{},{}\n", i, i + 1);
      }
      EXPECT_THAT(error_of(text), AllOf(HasSubstr(fmt::format("line {}: '{}'", line, wrong)),
                                        HasSubstr("--ids names")));
    }
    EXPECT_THAT(error_of(fmt::format("from,to\n0,1\n{},1\n", wrong)), HasSubstr("line 3"));
    io::ReadOptions names;
    names.edges.ids = io::IdKind::names;
    EXPECT_EQ(read(fmt::format("0,1\n{},1\n", wrong), names).vertex_names[2], wrong);
  }
  // One column of texts is enough: readers and the books they read.
  EXPECT_EQ(read("1,ulysses\n2,emma\n").vertex_names[1], "ulysses");
}

TEST_F(EdgeList, NotesSayWhatWasFoundOut) {
  const auto notes = [&](const std::string& text, const io::ReadOptions& options = {}) {
    return read(text, options).notes;
  };
  EXPECT_THAT(notes("0 1\n1 2\n"),
              ElementsAre(AllOf(StartsWith("edge list: 2 edges in "),
                                EndsWith(", parted by blanks, without a header, from column 1 to "
                                         "column 2; ids are numbers of vertices"))));
  EXPECT_THAT(notes("to;from;w\nx1;1;2\nx2;2;3\n"),
              ElementsAre(EndsWith("parted by semicolons, below a header, from 'from' to 'to', "
                                   "weighted by 'w'; ids are names, as 'x1' is no whole number")));
  io::ReadOptions said;
  said.edges.header = true;
  said.edges.ids = io::IdKind::numbers;
  EXPECT_THAT(notes("from,to,day\n0,1,mon\n1,2,tue\n", said),
              ElementsAre(EndsWith("from 'from' to 'to'; ids are numbers of vertices; nothing uses "
                                   "'day'")));
  EXPECT_THAT(notes("a,b\n1,2\n2,3\n", said), ElementsAre(_, HasSubstr("--base 1")));
  said.edges.header = false;
  said.duplicates = Duplicates::sum;
  EXPECT_THAT(notes("0,1\n0,1\n0,1\n", said),
              ElementsAre(StartsWith("edge list: 3 edges in "),
                          "2 edges are listed again: weights were added up"));
}

TEST_F(EdgeList, ColumnsThatNothingUsesAreThereInEveryLine) {
  EXPECT_EQ(read("from,to,day\n0,1,mon\n1,2,\n").graph.num_edges(), 2);
  EXPECT_THAT(error_of("from,to,day\n0,1,mon\n1,2\n"),
              AllOf(HasSubstr("line 3"), HasSubstr("2 columns instead of 3")));
  EXPECT_THAT(error_of("from,to,day\n0,1,mon,tue\n1,2,tue\n"), HasSubstr("columns"));
  EXPECT_THAT(error_of("from,to,day\n0,1,mon\n1,2,tue,wed\n"),
              AllOf(HasSubstr("line 3"), HasSubstr("more than 3")));
  EXPECT_THAT(error_of("from,weight,to,day\n0,1,1,mon\n1,1,2\n"), HasSubstr("line 3"));
}

TEST_F(EdgeList, TheSameForAnyNumberOfThreads) {
  std::string text = "source,target,weight\n";
  for (std::int64_t i = 0; i < 90000; ++i) {
    text += fmt::format("v{},v{},{}\n", i * 7919 % 60000, i * 104729 % 60000, i % 100);
    if (i % 1000 == 0) text += "# remark\n\n";
  }
  io::ReadOptions sum;
  sum.duplicates = Duplicates::sum;
  set_num_threads(1);
  const Dataset alone = read(text, sum);
  set_num_threads(4);
  const Dataset together = read(text, sum);
  const Dataset packed = read(gzipped(text), sum);
  set_num_threads(0);
  EXPECT_EQ(alone, together);
  EXPECT_EQ(alone, packed);
  EXPECT_EQ(alone.vertex_names[0], "v0");
  EXPECT_EQ(alone.edges_stored, 90000);
}

TEST_F(EdgeList, DuplicatesFollowTheOption) {
  const std::string text = "0 1 2.5\n2 1 1\n0 1 4\n";
  EXPECT_THAT(error_of(text), AllOf(HasSubstr("more than once"), HasSubstr("--duplicates")));
  EXPECT_THAT(error_of("ann,bob\nbob,ann\nann,bob\n"),
              HasSubstr("target 'bob' and source 'ann' occurs more than once"));
  io::ReadOptions from_one;
  from_one.edges.base = 1;
  EXPECT_THAT(error_of("1 2\n3 2\n1 2\n", from_one), HasSubstr("target 2 and source 1 occurs"));
  io::ReadOptions options;
  options.duplicates = Duplicates::sum;
  EXPECT_THAT(read(text, options).graph.values().span(), ElementsAre(6.5f, 1.0f));
  options.duplicates = Duplicates::first;
  EXPECT_THAT(read(text, options).graph.values().span(), ElementsAre(2.5f, 1.0f));
  EXPECT_FALSE(read("0 1\n0 1\n", options).graph.has_values());
  options.duplicates = Duplicates::sum;
  EXPECT_THAT(read("0 1\n0 1\n", options).graph.values().span(), ElementsAre(2.0f));
}

TEST_F(EdgeList, ErrorsNameTheLineAndTheFix) {
  EXPECT_THAT(error_of("1 2\n3 -4\n"), AllOf(HasSubstr("line 2"), HasSubstr("negative")));
  EXPECT_THAT(error_of("1 2\n\n# \n3\n"), HasSubstr("line 4"));
  EXPECT_THAT(error_of("1,2\n3,\n"), AllOf(HasSubstr("line 2"), HasSubstr("fewer than two")));
  EXPECT_THAT(error_of("1,2\n3,4,5\n"), AllOf(HasSubstr("line 2"), HasSubstr("more than 2")));
  EXPECT_THAT(error_of("1 2\n2147483648 4\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("--ids names")));
  EXPECT_THAT(error_of("1 2\n3000000000 4\n"), HasSubstr("may name"));
  EXPECT_THAT(error_of("1,2\n3,\"4\n"), AllOf(HasSubstr("line 2"), HasSubstr("not closed")));
  EXPECT_THAT(error_of("1,2\n3,\"4\" 5\n"), HasSubstr("line 2"));
  EXPECT_THAT(error_of("# nothing\n\n"), HasSubstr("holds no rows"));
  EXPECT_THAT(error_of("hello\nworld\n"), HasSubstr("one column"));
  EXPECT_THAT(error_of("\xFF\xFE"
                       "1\0,\0"),
              HasSubstr("UTF-16"));
  // Beyond the lines that the layout is found from, so that ids are taken for numbers.
  std::string text;
  for (int i = 0; i < 100; ++i) text += fmt::format("{} {}\n", i, i + 1);
  EXPECT_THAT(error_of(text + "7 x\n"),
              AllOf(HasSubstr("line 101: 'x'"), HasSubstr("--ids names")));
  EXPECT_THAT(error_of(text + "7 9223372036854775808\n"), HasSubstr("line 101"));
  EXPECT_THAT(error_of(text + "7 1.5\n"), HasSubstr("line 101"));
}

TEST_F(EdgeList, DecimalCommasAreNoSeparators) {
  EXPECT_THAT(error_of("0;1;0,5\n1;2;1,5\n"),
              AllOf(HasSubstr("line 1: weight '0,5'"), HasSubstr("decimal point")));
  EXPECT_THAT(error_of("0 1 0,5\n1 2 1,5\n"),
              AllOf(HasSubstr("'0 1 0' is several numbers"), HasSubstr("--separator")));
  EXPECT_THAT(error_of("0,1;2\n1,2;3\n"), HasSubstr("'1;2' is several numbers"));
  io::ReadOptions names;
  names.edges.ids = io::IdKind::names;
  EXPECT_EQ(read("0 1,2 3\n2 3,4 5\n", names).vertex_names[2], "4 5");
}

TEST_F(EdgeList, SeparatorsInQuotesAreNone) {
  const Dataset dataset = read("\"a, b\";\"c, d\"\n\"c, d\";\"e, f, g\"\n");
  ASSERT_EQ(dataset.vertex_names.size(), 3);
  EXPECT_EQ(dataset.vertex_names[2], "e, f, g");
}

TEST_F(EdgeList, LinesKeepTheirNumbersAcrossBlocks) {
  // More than one block of text, with the fault near its end.
  std::string text;
  text.reserve(10 << 20);
  for (int i = 0; i < 700000; ++i) text += fmt::format("{} {}\n", i, 700000 - i);
  EXPECT_EQ(read(text).graph.num_edges(), 700000);
  const std::string wrong = text + "1 -1\n";
  EXPECT_THAT(error_of(wrong), HasSubstr("line 700001:"));
  EXPECT_THAT(error_of(gzipped(wrong)), HasSubstr("line 700001:"));
}

TEST_F(EdgeList, TakesLittleMoreMemoryThanTheGraph) {
  // As large as 32 edges a vertex make it: the text is twice as large as the graph.
  constexpr int vertices = 40000;
  std::string text;
  for (int i = 0; i < vertices; ++i) {
    for (int k = 1; k <= 64; ++k) text += fmt::format("{} {}\n", i, (i + k * k) % vertices);
  }
  test::write_file(folder_ / "a.csv", text);
  text.clear();
  text.shrink_to_fit();
  const std::int64_t before = host_memory_use().current_bytes;
  reset_host_memory_peak();
  const Dataset dataset = io::read_edge_list(folder_ / "a.csv");
  const std::int64_t peak = host_memory_use().peak_bytes - before;
  const std::int64_t graph = dataset.graph.num_edges() * 4 + (vertices + 1) * std::int64_t{8};
  EXPECT_EQ(dataset.graph.num_edges(), vertices * std::int64_t{64});
  EXPECT_LE(peak, graph + graph / 2 + (8 << 20)) << "a block of text has 8 MiB";
}

TEST_F(EdgeList, DuplicatesAreMergedInTheMemoryOfTheGraph) {
  constexpr int vertices = 40000;
  std::string text;
  for (int i = 0; i < vertices; ++i) {
    for (int k = 0; k < 64; ++k) text += fmt::format("{} {}\n", i, (i + k - k / 60) % vertices);
  }
  test::write_file(folder_ / "a.csv", text);
  text.clear();
  text.shrink_to_fit();
  const std::int64_t before = host_memory_use().current_bytes;
  reset_host_memory_peak();
  const Dataset dataset = io::read_edge_list(folder_ / "a.csv", {.duplicates = Duplicates::first});
  const std::int64_t peak = host_memory_use().peak_bytes - before;
  EXPECT_EQ(dataset.graph.num_edges(), vertices * std::int64_t{63});
  const std::int64_t graph = dataset.graph.num_edges() * 4 + (vertices + 1) * std::int64_t{8};
  EXPECT_LE(peak, graph + graph / 2 + (8 << 20));
}

}  // namespace
}  // namespace tessera
