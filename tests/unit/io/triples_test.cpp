// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "support/gzipped.hpp"
#include "tessera/io/triples.hpp"

namespace tessera {
namespace {

using test::TemporaryFolder;
using test::write_file;
using testing::expect_error;

std::vector<std::string> texts(const Names& names) {
  std::vector<std::string> all;
  for (std::int64_t i = 0; i < names.size(); ++i) all.emplace_back(names[i]);
  return all;
}

TEST(TripleFiles, NamesAreNumberedInTheOrderOfTheirComing) {
  const TemporaryFolder folder;
  write_file(folder / "train.txt",
             "\xEF\xBB\xBF"
             "bob\tknows\tann b\r\n\nann b\tlikes\tbob\n");
  write_file(folder / "valid.tsv.gz", test::gzipped("carl\tknows\tbob"));
  write_file(folder / "test", "bob\tknows\tann b\nann b\thates\tbob\n");
  const KnowledgeGraph graph = io::read_triples(folder.path() + "/");
  EXPECT_EQ(texts(graph.entities), (std::vector<std::string>{"bob", "ann b", "carl"}));
  EXPECT_EQ(texts(graph.relations), (std::vector<std::string>{"knows", "likes", "hates"}));
  EXPECT_EQ(graph.train, (Triples{{0, 1}, {0, 1}, {1, 0}}));
  EXPECT_EQ(graph.validation, (Triples{{2}, {0}, {0}}));
  EXPECT_EQ(graph.test, (Triples{{0, 1}, {0, 2}, {1, 0}}));
  EXPECT_EQ(graph.name, std::filesystem::path(folder.path()).filename().string());
  graph.validate();
  ASSERT_EQ(graph.notes.size(), 3u);
  EXPECT_EQ(graph.notes[0], "validation: 1 entities that train does not have, in 1 triples");
  EXPECT_EQ(graph.notes[1], "test: 1 of 2 triples are in train, too");
  EXPECT_EQ(graph.notes[2], "test: 1 triples of relations that train does not have");
}

TEST(TripleFiles, AFileAloneIsTrain) {
  const TemporaryFolder folder;
  write_file(folder / "facts.tsv", "a\tr\tb\na\tr\tb\nb\tr\ta\n");
  const KnowledgeGraph graph = io::read_triples(folder / "facts.tsv");
  EXPECT_EQ(graph.name, "facts");
  EXPECT_EQ(graph.train.size(), 2);
  EXPECT_EQ(graph.validation.size() + graph.test.size(), 0);
  EXPECT_EQ(graph.notes,
            (std::vector<std::string>{"train: 1 triples that are listed again are kept once"}));
}

TEST(TripleFiles, AFolderHasOneFileOfEachPart) {
  const TemporaryFolder folder;
  EXPECT_FALSE(io::holds_triples(folder.path()));
  expect_error(ErrorCode::bad_data, {folder.path(), "no file train.tsv"},
               [&] { io::read_triples(folder.path()); });
  write_file(folder / "train.tsv", "a\tr\tb\n");
  EXPECT_TRUE(io::holds_triples(folder.path()));
  EXPECT_FALSE(io::holds_triples(folder / "train.tsv"));
  write_file(folder / "dev.tsv", "a\tr\tb\n");
  write_file(folder / "valid.txt", "a\tr\tb\n");
  expect_error(ErrorCode::bad_data, {"dev.tsv", "valid.txt", "leave one of them"},
               [&] { io::read_triples(folder.path()); });
}

TEST(TripleFiles, ALineThatIsNoTripleIsNamed) {
  const TemporaryFolder folder;
  const std::string path = folder / "facts.tsv";
  const auto expect_line = [&](const std::string& text, const std::string& line,
                               const std::string& problem) {
    write_file(path, text);
    expect_error(ErrorCode::bad_data, {path + ": line " + line, problem},
                 [&] { io::read_triples(path); });
  };
  expect_line("a\tr\tb\n\na\tr\n", "3", "has 2 columns");
  expect_line("a r b\n", "1", "has 1 columns");
  expect_line("a\tr\tb\tc\n", "1", "has 4 columns");
  expect_line("a\tr\tb\na\t\tb\n", "2", "has an empty column");
  write_file(path, "\n \n");
  expect_error(ErrorCode::bad_data, {path, "there is no triple in it"},
               [&] { io::read_triples(path); });
  expect_error(ErrorCode::io, {"missing.tsv"}, [&] { io::read_triples(folder / "missing.tsv"); });
}

TEST(TripleFiles, QuestionsAreAskedByKnownNames) {
  const TemporaryFolder folder;
  const Names entities({"a", "b"}), relations({"r"});
  const std::string path = folder / "questions.tsv";
  write_file(path, "b\tr\na\tr\tb\n");
  const io::NamedQuestions questions = io::read_questions(path, entities, relations);
  EXPECT_EQ(questions.heads, (std::vector<VertexId>{1, 0}));
  EXPECT_EQ(questions.relations, (std::vector<std::int32_t>{0, 0}));
  write_file(path, "a\tr\nb\tlikes\n");
  expect_error(ErrorCode::bad_data, {path + ": line 2", "there is no relation 'likes'"},
               [&] { io::read_questions(path, entities, relations); });
}

}  // namespace
}  // namespace tessera
