// SPDX-License-Identifier: Apache-2.0
// Links between two kinds of vertices: users and items.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "tessera/io/open.hpp"
#include "tessera/io/vertex_list.hpp"
#include "tessera/train/fit.hpp"
#include "tessera/train/link_predictor.hpp"

#include "train/link_lists.hpp"
#include "train/link_sampler.hpp"

namespace tessera::train {
namespace {

using testing::expect_error;

constexpr int users = 40, items = 30, tastes = 2;

/// Users like items of their taste. Both go by numbers, which coincide.
std::string liked() {
  std::string text = "day,user,item\n";
  const Random random(5);
  std::set<std::pair<int, int>> listed;
  for (std::uint64_t k = 0; k < 600; ++k) {
    const auto user = static_cast<int>(random.below(2 * k, users));
    const auto item =
        static_cast<int>(random.below(2 * k + 1, items / tastes)) * tastes + user % tastes;
    if (!listed.emplace(user, item).second) continue;
    text += fmt::format("{},{},{}\n", k, user, item);
  }
  return text;
}

struct Liked {
  Liked() { test::write_file(path, liked()); }

  Dataset read() const {
    io::ReadOptions options;
    options.edges.kinds = kinds;
    options.edges.features = {"day"};
    return io::open(path, options);
  }
  TrainOptions options(std::int64_t epochs) const {
    TrainOptions options = link_training(nn::ModelKind::lightgcn);
    options.epochs = epochs;
    options.links.kinds = kinds;
    options.links.embedding = 8;
    options.links.top = 5;
    return options;
  }

  test::TemporaryFolder folder;
  std::string path = folder / "liked.csv";
  Kinds kinds{"user", "item"};
};

const nn::ModelConfig lightgcn = link_encoder(nn::ModelKind::lightgcn);

int number_of(std::string_view name) {
  return std::stoi(std::string(name.substr(name.find(':') + 1)));
}

TEST(Interactions, are_edges_both_ways_between_vertices_that_say_their_kinds) {
  const Liked liked;
  const Dataset data = liked.read();
  const VertexId first = num_of_first_kind(data.vertex_names, liked.kinds);
  EXPECT_EQ(first, users);
  EXPECT_EQ(data.graph.num_rows(), users + items);
  EXPECT_EQ(data.edge_features.count(), 1);
  for (VertexId v = 0; v < data.graph.num_rows(); ++v) {
    EXPECT_TRUE(data.vertex_names[v].starts_with(v < first ? "user:" : "item:"));
    for (EdgeOffset k = data.graph.row_offsets()[v]; k < data.graph.row_offsets()[v + 1]; ++k) {
      const VertexId other = data.graph.col_indices()[k];
      EXPECT_NE(v < first, other < first);
      EXPECT_EQ(number_of(data.vertex_names[v]) % tastes,
                number_of(data.vertex_names[other]) % tastes);
      const auto back = data.graph.neighbours(other);
      const auto place = std::lower_bound(back.begin(), back.end(), v);
      ASSERT_TRUE(place != back.end() && *place == v);
      const EdgeOffset reverse = data.graph.row_offsets()[other] + (place - back.begin());
      EXPECT_EQ((*data.edge_features.matrix)(k, 0), (*data.edge_features.matrix)(reverse, 0));
    }
  }
}

TEST(Interactions, are_refused_where_they_are_none) {
  const Liked liked;
  expect_error(ErrorCode::invalid_argument, {"two kinds", "user,item"},
               [] { parse_kinds("user"); });
  expect_error(ErrorCode::invalid_argument, {"two kinds"}, [] { parse_kinds("user,user"); });
  Dataset plain = io::open("embedded:karate");
  TrainOptions options = liked.options(1);
  expect_error(ErrorCode::bad_data, {"no vertices of two kinds"},
               [&] { prepare(plain, lightgcn, options); });
  test::write_file(liked.path, "user\n1\n2\n");
  expect_error(ErrorCode::bad_data, {"one column"}, [&] { liked.read(); });
}

TEST(Recommendation, draws_items_alone_that_are_no_edges) {
  const Liked liked;
  const Dataset data = liked.read();
  const LinkSampler sampler(data.graph, users);
  const links::Pairs positives{{0, 7, users - 1}, {users, users, users}};
  for (const auto kind : {links::NegativeKind::uniform, links::NegativeKind::by_source,
                          links::NegativeKind::by_degree}) {
    const links::Pairs drawn =
        sampler.draw(positives, {.kind = kind, .per_positive = 50, .seed = 3});
    ASSERT_EQ(drawn.size(), 150);
    for (std::size_t k = 0; k < 150; ++k) {
      EXPECT_LT(drawn.sources[k], users);
      EXPECT_GE(drawn.targets[k], users);
      const auto row = data.graph.neighbours(drawn.targets[k]);
      EXPECT_FALSE(std::binary_search(row.begin(), row.end(), drawn.sources[k]));
      if (kind == links::NegativeKind::uniform) continue;
      EXPECT_EQ(drawn.sources[k], positives.sources[k / 50]);
    }
  }
}

TEST(Recommendation, finds_items_of_a_users_taste_by_recall) {
  const Liked liked;
  const Dataset data = liked.read();
  TrainOptions options = liked.options(150);
  options.metric = Metric::recall;
  options.checkpoint.kept = std::make_shared<Checkpoint>();
  const TrainReport report = fit(data, lightgcn, options);
  EXPECT_EQ(report.metric, Metric::recall);
  ASSERT_TRUE(report.links && report.links->recall);
  EXPECT_EQ(*report.links->recall, report.test.mean);
  EXPECT_EQ(*report.links->ndcg, report.test_other.mean);
  EXPECT_GT(report.test.mean, 0.25);  // of all items without those known, by chance a sixth
  const Checkpoint& checkpoint = *options.checkpoint.kept;
  EXPECT_EQ(checkpoint.kinds, liked.kinds);

  LinkPredictor predictor(checkpoint, data);
  std::vector<VertexId> sources(users);
  std::iota(sources.begin(), sources.end(), VertexId{0});
  const links::TopLists lists = predictor.top(sources, 4);
  int of_taste = 0;
  for (std::int64_t i = 0; i < users; ++i) {
    const VertexId user = sources[static_cast<std::size_t>(i)];
    for (std::int64_t k = 0; k < 4; ++k) {
      const VertexId item = lists.candidates(i, k);
      ASSERT_GE(item, users);
      const auto known = data.graph.neighbours(item);
      EXPECT_FALSE(std::binary_search(known.begin(), known.end(), user));
      of_taste += number_of(data.vertex_names[item]) % tastes ==
                  number_of(data.vertex_names[user]) % tastes;
      EXPECT_FLOAT_EQ(predictor.scores({{user}, {item}})[0], lists.scores(i, k));
    }
  }
  EXPECT_GT(of_taste, 4 * users / 2);  // by chance little more than a quarter
}

TEST(Recommendation, judges_lists_as_counting_by_hand_does) {
  const Liked liked;
  const Dataset data = liked.read();
  TrainOptions options = liked.options(1);
  const Problem problem = prepare(data, lightgcn, options);
  EXPECT_EQ(problem.num_sources, users);
  const links::LinkSplit split = links::split_links(problem.graph, problem.link_parts);
  const Candidates candidates{users, data.graph.num_rows()};
  Matrix<float> rows(data.graph.num_rows(), 3);
  const Random random(8);
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    rows.data()[i] = static_cast<float>(random.normal(static_cast<std::uint64_t>(i)));
  }
  const nn::LinkDecoder decoder(nn::LinkDecoderKind::dot, 3);
  const links::ListQuality quality =
      ListJudge(split.test, false, &split.test_graph, candidates).quality(rows, decoder, 5);
  double recall = 0;
  std::int64_t judged = 0;
  for (VertexId user = 0; user < users; ++user) {
    std::set<VertexId> wanted;
    for (std::size_t k = 0; k < split.test.sources.size(); ++k) {
      EXPECT_LT(split.test.sources[k], users);
      if (split.test.sources[k] == user) wanted.insert(split.test.targets[k]);
    }
    if (wanted.empty()) continue;
    std::vector<std::pair<float, VertexId>> scores;
    for (VertexId item = users; item < data.graph.num_rows(); ++item) {
      const auto known = split.test_graph.neighbours(item);
      if (std::binary_search(known.begin(), known.end(), user)) continue;
      float score = 0;
      for (int j = 0; j < 3; ++j) score += rows(user, j) * rows(item, j);
      scores.emplace_back(-score, item);
    }
    std::sort(scores.begin(), scores.end());
    int hits = 0;
    for (std::size_t k = 0; k < 5; ++k) hits += wanted.count(scores[k].second) > 0 ? 1 : 0;
    recall += hits / static_cast<double>(wanted.size());
    ++judged;
  }
  EXPECT_EQ(quality.rows, judged);
  EXPECT_NEAR(quality.recall, recall / static_cast<double>(judged), 1e-12);
}

TEST(Recommendation, of_a_variational_encoder_resumes_and_predicts_by_its_means) {
  const Liked liked;
  const Dataset data = liked.read();
  for (const auto kind : {nn::ModelKind::gcn, nn::ModelKind::lightgcn}) {
    TrainOptions options = liked.options(8);
    options.links.variational = true;
    options.links.loss = LinkLoss::bce;
    options.checkpoint.path = liked.folder / std::string(nn::to_string(kind)) + ".tsr";
    const TrainReport whole = fit(data, link_encoder(kind), options);
    options.checkpoint.path += "2";
    options.pause_at = 3;
    fit(data, link_encoder(kind), options);
    options.pause_at = 0;
    options.checkpoint.resume = true;
    const TrainReport resumed = fit(data, link_encoder(kind), options);
    EXPECT_EQ(resumed.test.mean, whole.test.mean);
    EXPECT_EQ(resumed.runs[0].curve.back().loss, whole.runs[0].curve.back().loss);
    const Checkpoint checkpoint = load_checkpoint(options.checkpoint.path);
    EXPECT_TRUE(checkpoint.variational);
    EXPECT_EQ(embedding_width(checkpoint), 8);
    LinkPredictor predictor(checkpoint, data);
    EXPECT_EQ(predictor.embeddings().cols(), 8);
  }
}

TEST(Recommendation, finds_vertices_by_their_names_within_their_kinds) {
  const Liked liked;
  const Dataset data = liked.read();
  const std::string path = liked.folder / "asked.csv";
  test::write_file(path, "user\n7\nuser:3\n");
  const std::vector<VertexId> found = io::read_vertices(path, data, {0, liked.kinds});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(data.vertex_names[found[0]], "user:7");
  EXPECT_EQ(data.vertex_names[found[1]], "user:3");
  test::write_file(path, "item,user\n7,7\n");
  const io::VertexPairs pairs = io::read_vertex_pairs(path, data, {0, liked.kinds});
  ASSERT_EQ(pairs.sources.size(), 1u);
  EXPECT_EQ(data.vertex_names[pairs.sources[0]], "user:7");
  EXPECT_EQ(data.vertex_names[pairs.targets[0]], "item:7");
}

TEST(LightGcn, learns_links_alone) {
  TrainOptions options;
  expect_error(ErrorCode::invalid_argument, {"predicts links"},
               [&] { prepare(io::open("embedded:karate"), lightgcn, options); });
  options.metric = Metric::recall;
  expect_error(ErrorCode::invalid_argument, {"recall of classes"},
               [&] { prepare(io::open("embedded:karate"), nn::ModelConfig(), options); });
}

}  // namespace
}  // namespace tessera::train
