// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/io/edge_list.hpp"
#include "tessera/io/notes.hpp"

#include "support/files.hpp"

namespace tessera {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> all(const Names& names) {
  std::vector<std::string> list;
  for (std::int64_t i = 0; i < names.size(); ++i) list.emplace_back(names[i]);
  return list;
}

class NodeTable : public testing::Test {
 protected:
  Dataset read(const std::string& nodes, const std::string& edges = "from,to\na,b\nb,c\n") {
    test::write_file(folder_ / "nodes.csv", nodes);
    test::write_file(folder_ / "edges.csv", edges);
    options_.nodes.path = folder_ / "nodes.csv";
    return io::read_edge_list(folder_ / "edges.csv", options_);
  }
  std::string error_of(const std::string& nodes, const std::string& edges = "a,b\nb,c\n") {
    try {
      read(nodes, edges);
    } catch (const Error& error) {
      EXPECT_FALSE(error.fix().empty()) << error.what();
      return error.what();
    }
    return "no error";
  }

  test::TemporaryFolder folder_;
  io::ReadOptions options_;
};

TEST_F(NodeTable, ColumnsBecomeFeaturesLabelsAndSplit) {
  const Dataset dataset = read(
      "id,age,colour,label,split\r\n"
      "a,3,red,spam,train\r\nb,,blue,ham,val\r\nc,5,NA,,test\r\nlonely,-1.5,red,spam,\r\n");
  EXPECT_EQ(dataset.graph.num_rows(), 4);
  EXPECT_EQ(dataset.graph.num_edges(), 2);
  EXPECT_THAT(all(dataset.vertex_names), ElementsAre("a", "b", "c", "lonely"));
  EXPECT_THAT(all(dataset.feature_names), ElementsAre("age", "colour=blue", "colour=red"));
  EXPECT_THAT(all(dataset.class_names), ElementsAre("ham", "spam"));
  EXPECT_THAT(std::get<ClassLabels>(dataset.labels).span(), ElementsAre(1, 0, -1, 1));
  const float mean = (3 + 5 - 1.5f) / 3;
  EXPECT_THAT(std::get<DenseFeatures>(dataset.features)->span(),
              ElementsAre(3, 0, 1, mean, 1, 0, 5, 0, 0, -1.5f, 0, 1));
  EXPECT_THAT(dataset.train.span(), ElementsAre(0));
  EXPECT_THAT(dataset.validation.span(), ElementsAre(1));
  EXPECT_THAT(dataset.test.span(), ElementsAre(2));
}

TEST_F(NodeTable, OptionsChooseColumns) {
  options_.nodes.id = "key";
  options_.nodes.label = "kind";
  options_.nodes.drop = {"note"};
  const Dataset dataset =
      read("key\tx\tnote\tkind\nb\t1\tlong text\t4\na\t2\tmore\t0\nc\t3\t-\t\n");
  EXPECT_THAT(all(dataset.vertex_names), ElementsAre("b", "a", "c"));
  EXPECT_THAT(all(dataset.feature_names), ElementsAre("x"));
  EXPECT_THAT(std::get<ClassLabels>(dataset.labels).span(), ElementsAre(4, 0, -1));
  EXPECT_TRUE(dataset.class_names.empty());
  EXPECT_THAT(dataset.graph.neighbours(0), ElementsAre(1));
  options_.nodes.features = {"x", "2", "3"};
  options_.nodes.drop = {"kind"};
  options_.nodes.label = "none";
  EXPECT_EQ(read("key\tx\tnote\tkind\nb\t1\t1\t4\na\t2\t2\t0\nc\t3\t-\t\n").num_features(), 2);
}

TEST_F(NodeTable, IdsMayBeNumbersWithoutOrder) {
  const Dataset dataset = read("id\n1000000007\n5\n17\n", "5 17\n17 1000000007\n");
  EXPECT_EQ(dataset.graph.num_rows(), 3);
  EXPECT_THAT(dataset.graph.neighbours(2), ElementsAre(1));
  EXPECT_THAT(dataset.graph.neighbours(0), ElementsAre(2));
  EXPECT_EQ(dataset.num_features(), 0);
}

TEST_F(NodeTable, AHeaderOfUnknownWordsIsFoundByTheTable) {
  EXPECT_EQ(read("id,x\na,1\nb,2\nc,3\n", "mother,child\na,b\nb,c\n").graph.num_edges(), 2);
}

TEST_F(NodeTable, UnknownIdsAreNamedOrDropped) {
  const std::string nodes = "id,x\na,1\nb,2\n";
  EXPECT_THAT(error_of(nodes, "a,b\nb,stranger\n"),
              AllOf(HasSubstr("edges.csv: line 2"), HasSubstr("'stranger'"),
                    HasSubstr("--unknown-ids drop")));
  options_.nodes.unknown = io::UnknownIds::drop;
  const Dataset dataset = read(nodes, "a,b\nb,stranger\n");
  EXPECT_EQ(dataset.graph.num_edges(), 1);
}

TEST_F(NodeTable, ErrorsNameTheLineAndTheFix) {
  EXPECT_THAT(error_of("id,x\na,1\nb,2\na,3\n"),
              AllOf(HasSubstr("nodes.csv: line 4"), HasSubstr("'a'")));
  EXPECT_THAT(error_of("id,x\na,1\nb\n"), AllOf(HasSubstr("line 3"), HasSubstr("1 columns")));
  EXPECT_THAT(error_of("id,x\na,1\nb,2,3\n"), AllOf(HasSubstr("line 3"), HasSubstr("more than 2")));
  EXPECT_THAT(error_of("id,x\na,1,2\nb,3,4\n"), HasSubstr("the header has 2 columns"));
  EXPECT_THAT(error_of("id,x\na,1\n,2\n"), AllOf(HasSubstr("line 3"), HasSubstr("empty")));
  EXPECT_THAT(error_of("id,x\na,1\nb,inf\nc,2\n"), AllOf(HasSubstr("line 3"), HasSubstr("finite")));
  EXPECT_THAT(error_of("id,split\na,train\nb,often\n"),
              AllOf(HasSubstr("line 3"), HasSubstr("often")));
  EXPECT_THAT(error_of("id,label\na,-7\nb,1\n"), AllOf(HasSubstr("line 2"), HasSubstr("-7")));
  EXPECT_THAT(error_of("who,x\na,1\nb,2\n"), HasSubstr("--id"));
  options_.nodes.label = "nowhere";
  EXPECT_THAT(error_of("id,x\na,1\n"), AllOf(HasSubstr("'nowhere'"), HasSubstr("--label")));
  options_.nodes.label = "";
  std::string prose = "id,text\n";
  for (int i = 0; i < 300; ++i) prose += fmt::format("n{},remark {}\n", i, i);
  EXPECT_THAT(error_of(prose), HasSubstr("--drop 'text'"));
  test::write_file(folder_ / "empty.csv", "");
  options_.nodes.path = folder_ / "empty.csv";
  EXPECT_THROW(io::read_edge_list(folder_ / "edges.csv", options_), Error);
}

TEST_F(NodeTable, TheSameForAnyNumberOfThreads) {
  std::string nodes = "id,x,kind,label\n";
  std::string edges;
  for (int i = 0; i < 60000; ++i) {
    nodes += fmt::format("node-{},{},{},{}\n", i, i % 97 == 0 ? "" : fmt::format("{}", i * 0.37),
                         "abcdefg"[i % 7], i % 3 == 0 ? "even" : "odd");
    edges += fmt::format("node-{},node-{}\n", i, i * 7 % 60000);
  }
  set_num_threads(1);
  const Dataset alone = read(nodes, edges);
  set_num_threads(4);
  const Dataset together = read(nodes, edges);
  set_num_threads(0);
  EXPECT_EQ(alone, together);
  EXPECT_EQ(alone.num_features(), 8);
}

TEST_F(NodeTable, NumbersWithCommasAreNoCategories) {
  EXPECT_THAT(error_of("id;age\na;0,5\nb;1,5\nc;2\n"),
              AllOf(HasSubstr("'age' holds numbers with commas"), HasSubstr("0.5 for 0,5")));
  EXPECT_THAT(error_of("id;age\na;0,5\nb;1,5,2\nc;2\n"), HasSubstr("no error"));
}

TEST_F(NodeTable, MissingValuesAreOneListInAnyLetterCase) {
  const Dataset dataset = read(
      "id,x\na,1\nb,na\nc,N/A\nd,nAn\ne,NULL\nf,none\ng,?\nh,-\ni,#N/A\nj,<NA>\nk,-nan\nl,3\n");
  EXPECT_THAT(all(dataset.feature_names), ElementsAre("x"));
  EXPECT_THAT(dataset.filled_cells.span(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  for (const float x : std::get<DenseFeatures>(dataset.features)->span().subspan(1, 10)) {
    EXPECT_EQ(x, 2);
  }
  EXPECT_THAT(dataset.notes, Contains(HasSubstr("'x' (10 with 2)")));
}

TEST_F(NodeTable, TrueAndFalseAreOneColumn) {
  const Dataset dataset =
      read("id,active,mixed,label\na,TRUE,True,true\nb,false,maybe,FALSE\nc,,TRUE,True\n");
  EXPECT_THAT(all(dataset.feature_names), ElementsAre("active", "mixed=maybe", "mixed=true"));
  EXPECT_THAT(std::get<DenseFeatures>(dataset.features)->span(),
              ElementsAre(1, 0, 1, 0, 1, 0, 0.5f, 0, 1));
  EXPECT_THAT(all(dataset.class_names), ElementsAre("false", "true"));
  EXPECT_THAT(std::get<ClassLabels>(dataset.labels).span(), ElementsAre(1, 0, 1));
  EXPECT_THAT(dataset.notes, Contains("numbers: 'active' (true is 1, false 0)"));
}

TEST_F(NodeTable, WhatWasDecidedIsSaid) {
  const auto of_edges = AllOf(StartsWith("edge list: "), HasSubstr("from 'from' to 'to'"));
  options_.nodes.drop = {"note"};
  options_.nodes.split = "part";
  const Dataset dataset = read(
      "id,age,colour,income,note,part,label\na,3,red,1,x,train,no\n# a remark\nb,1O,blue,,y,val,\n"
      "c,5,NA,2,z,test,yes\n");
  EXPECT_THAT(
      dataset.notes,
      ElementsAre(
          of_edges,
          AllOf(StartsWith("node table: 3 vertices in "),
                EndsWith(", parted by commas, below a header; ids in 'id'; 1 remark left "
                         "out")),
          "labels: 'label', 2 classes: 'no' and 'yes'", "1 of 3 vertices has no label",
          "split: 'part', 1 train, 1 validation, 1 test", "numbers: 'income'",
          "categories: a feature for each different value of 'age' (3, as '1O' on line 4 is "
          "no number) and 'colour' (2; 1 missing)",
          "filled in: missing numbers, with the mean of their column: 'income' (1 with 1.5)",
          "left out: 'note'"));
  options_.nodes = {};
  EXPECT_THAT(read("a,1\nb,2\nc,3\n").notes,
              ElementsAre(of_edges, EndsWith("without a header; ids in column 1, no split"),
                          "labels: none (--label names their column)", "numbers: '2'"));
  for (const std::string& note : dataset.notes) {
    const io::Note parts = io::parted(note);
    EXPECT_EQ(parts.topic.empty(), note.starts_with("1 of 3")) << note;
    EXPECT_THAT(note, EndsWith(std::string(parts.text)));
  }
}

TEST_F(NodeTable, AColumnHasOneRole) {
  const auto error = [&](auto&& set) {
    options_.nodes = {};
    options_.nodes.id = "user";
    options_.nodes.label = "churn";
    options_.nodes.split = "part";
    set(options_.nodes);
    return error_of("user,age,churn,part\na,1,x,train\nb,2,y,val\nc,3,x,test\n");
  };
  const auto two = HasSubstr("one column cannot be two of id, label and split");
  EXPECT_THAT(error([](auto& nodes) { nodes.label = "user"; }), two);
  EXPECT_THAT(error([](auto& nodes) { nodes.split = "1"; }), two);
  EXPECT_THAT(error([](auto& nodes) { nodes.split = "churn"; }), two);
  EXPECT_THAT(error([](auto& nodes) {
                nodes.features = {"age", "churn"};
              }),
              HasSubstr("column 'churn' has two roles: --label and --features"));
  EXPECT_THAT(error([](auto& nodes) { nodes.drop = {"user"}; }), HasSubstr("--id and --drop"));
  EXPECT_THAT(error([](auto& nodes) { nodes.drop = {"4"}; }),
              HasSubstr("--split-column and --drop"));
  EXPECT_THAT(error([](auto& nodes) { nodes.features = nodes.drop = {"age"}; }),
              HasSubstr("--features and --drop"));
  EXPECT_THAT(
      error([](auto& nodes) { nodes.label = "chrn"; }),
      AllOf(HasSubstr("no column 'chrn': there are user, age, churn, part"), HasSubstr("or none")));
}

TEST_F(NodeTable, FilesThatAreSwappedOrTheSameAreSaidToBe) {
  EXPECT_THAT(error_of("source,target\na,b\n"), HasSubstr("the file of the edges first"));
  try {
    io::read_edge_list(options_.nodes.path, options_);
    FAIL() << "one file for both";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("as the edges and as the table of vertices"));
  }
}

TEST_F(NodeTable, NumbersOfVerticesAreNotAskedFor) {
  options_.edges.base = 1;
  EXPECT_THAT(error_of("id,x\na,1\nb,2\nc,3\n"),
              AllOf(HasSubstr("--base"), HasSubstr("does nothing with a table of vertices")));
  options_.edges = {};
  options_.edges.ids = io::IdKind::numbers;
  EXPECT_THAT(error_of("id,x\na,1\nb,2\nc,3\n"), HasSubstr("--ids"));
}

TEST_F(NodeTable, ColumnsOfCategoriesAreKnownAsSuch) {
  const Dataset dataset = read("id,a=b,a\na,1,b\nb,2,c\nc,3,b\n");
  EXPECT_THAT(all(dataset.feature_names), ElementsAre("a=b", "a=b", "a=c"));
  EXPECT_THAT(dataset.category_prefixes.span(), ElementsAre(-1, 1, 1));
  EXPECT_TRUE(read("id,x\na,1\nb,2\nc,3\n").category_prefixes.empty());
}

TEST_F(NodeTable, AHeaderIsRecognised) {
  EXPECT_EQ(read("id,0,1\na,5,6\nb,7,8\nc,9,9\n").num_features(), 2) << "numbers call columns";
  options_.nodes.id = "user";
  EXPECT_EQ(read("user,age\na,3\nb,\nc,\n").graph.num_rows(), 3);
  EXPECT_EQ(read("user,kind\na,x\nb,y\nc,x\n").graph.num_rows(), 3) << "texts alone";
  options_.nodes.id = "";
  options_.nodes.label = "churn";
  options_.nodes.drop = {"who"};
  EXPECT_EQ(read("id,who,churn\na,x,y\nb,y,n\nc,z,n\n").num_features(), 0);
}

TEST_F(NodeTable, AFirstRowWithoutAValueIsNoHeader) {
  EXPECT_EQ(read("a,\nb,3\nc,4\n").graph.num_rows(), 3);
  EXPECT_EQ(read("a,NA\nb,true\nc,false\n").graph.num_rows(), 3);
}

TEST_F(NodeTable, TheCallerMaySayWhetherThereIsAHeader) {
  options_.nodes.header = false;
  EXPECT_EQ(read("id,x\na,1\nb,2\nc,3\n").graph.num_rows(), 4);
  options_.nodes.header = true;
  EXPECT_THAT(error_of("a,1\nb,2\nc,3\n"), HasSubstr("no column called id"));
  options_.nodes.id = "1";
  EXPECT_EQ(read("u,v\na,red\nb,red\nc,blue\n").graph.num_rows(), 3);
}

TEST_F(NodeTable, ASecondLabelIsNotLearntFromInSilence) {
  const std::string nodes = "id,label,class,x\na,0,p,1\nb,1,q,2\nc,1,q,3\n";
  EXPECT_THAT(error_of(nodes), AllOf(HasSubstr("'label' and 'class'"), HasSubstr("--drop class")));
  options_.nodes.drop = {"class"};
  EXPECT_THAT(all(read(nodes).feature_names), ElementsAre("x"));
  options_.nodes.drop = {"label"};
  EXPECT_THAT(all(read(nodes).class_names), ElementsAre("p", "q")) << "what is dropped is no label";
  options_.nodes.drop = {};
  options_.nodes.label = "label";
  const Dataset both = read(nodes);
  EXPECT_EQ(both.num_features(), 3);
  EXPECT_THAT(both.notes, Contains(AllOf(HasSubstr("'class'"), HasSubstr("--drop"))));
  options_.nodes.label = "";
  options_.nodes.features = {"class"};
  EXPECT_THAT(read(nodes).notes, Not(Contains(HasSubstr("--drop"))));
}

TEST_F(NodeTable, ColumnsOfOneNameAreToldApartOrRefused) {
  const std::string nodes = "id,x,x\na,1,4\nb,2,5\nc,3,6\n";
  EXPECT_THAT(error_of(nodes),
              AllOf(HasSubstr("columns 2 and 3 are both called 'x'"), HasSubstr("--drop 3")));
  options_.nodes.drop = {"3"};
  EXPECT_EQ(read(nodes).num_features(), 1);
  options_.nodes.drop = {"x"};
  EXPECT_THAT(error_of(nodes),
              AllOf(HasSubstr("both called 'x'"), HasSubstr("give --drop the number")));
}

}  // namespace
}  // namespace tessera
