// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "tessera/core/random.hpp"
#include "tessera/graph/relational.hpp"

namespace tessera {
namespace {

using Edge = std::tuple<std::int32_t, VertexId, VertexId>;  // relation, target, source

/// How often each edge is there.
std::map<Edge, int> edges_of(const RelationSegments& segments) {
  std::map<Edge, int> edges;
  std::vector<VertexId> target_of(static_cast<std::size_t>(segments.edges.num_rows()), -1);
  for (VertexId target = 0; target < segments.targets.num_rows(); ++target) {
    for (const VertexId segment : segments.targets.neighbours(target)) {
      EXPECT_EQ(target_of[static_cast<std::size_t>(segment)], -1);
      target_of[static_cast<std::size_t>(segment)] = target;
    }
  }
  for (VertexId segment = 0; segment < segments.edges.num_rows(); ++segment) {
    EXPECT_EQ(segments.relations.degree(segment), 1);
    EXPECT_GT(segments.edges.degree(segment), 0);
    const std::int32_t relation = segments.relations.neighbours(segment)[0];
    for (const VertexId source : segments.edges.neighbours(segment)) {
      ++edges[{relation, target_of[static_cast<std::size_t>(segment)], source}];
    }
  }
  return edges;
}

Triples random_triples(std::int64_t count, VertexId vertices, std::int32_t relations,
                       std::uint64_t seed) {
  const Random random(seed);
  Triples triples;
  for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(count); ++k) {
    triples.heads.push_back(
        static_cast<VertexId>(random.below(3 * k, static_cast<std::uint64_t>(vertices))));
    triples.relations.push_back(
        static_cast<std::int32_t>(random.below(3 * k + 1, static_cast<std::uint64_t>(relations))));
    triples.tails.push_back(
        static_cast<VertexId>(random.below(3 * k + 2, static_cast<std::uint64_t>(vertices))));
  }
  return triples;
}

std::vector<std::string> names(std::int32_t count) {
  std::vector<std::string> all;
  for (std::int32_t r = 0; r < count; ++r) all.push_back("r" + std::to_string(r));
  return all;
}

void expect_valid(const RelationSegments& segments) {
  segments.edges.validate();
  segments.relations.validate();
  segments.targets.validate();
}

TEST(Relational, SegmentsHoldEveryTripleAsOftenAsItIsListed) {
  for (const std::int32_t relations : {1, 3, 500}) {
    for (const VertexId vertices : {1, 16, 40}) {
      for (const std::int64_t count : {0, 1, 700}) {
        SCOPED_TRACE(::testing::Message() << relations << " relations, " << vertices
                                          << " vertices, " << count << " triples, seed 4");
        const Triples triples = random_triples(count, vertices, relations, 4);
        std::map<Edge, int> expected;
        for (std::size_t k = 0; k < triples.heads.size(); ++k) {
          ++expected[{triples.relations[k], triples.tails[k], triples.heads[k]}];
        }
        const RelationSegments direct = segments_of(triples, vertices, relations);
        const RelationalGraph graph =
            from_triples(triples, {"entity", vertices}, names(relations), Duplicates::keep);
        const RelationSegments through = segments_of(graph);
        expect_valid(direct);
        EXPECT_EQ(edges_of(direct), expected);
        EXPECT_EQ(through.edges, direct.edges);
        EXPECT_EQ(through.relations, direct.relations);
        EXPECT_EQ(through.targets, direct.targets);
        EXPECT_EQ(graph.num_edges(), count);
      }
    }
  }
}

TEST(Relational, KindsStandBehindOneAnother) {
  // Three users, two items, no shop.
  const RelationalGraph graph(
      {{"user", 3}, {"item", 2}, {"shop", 0}},
      {{"buys", 0, 1}, {"knows", 0, 0}, {"sells", 2, 1}, {"buys", 0, 2}},
      {from_coo(2, 3, std::vector<VertexId>{1, 0, 1}, std::vector<VertexId>{2, 0, 0}),
       from_coo(3, 3, std::vector<VertexId>{}, std::vector<VertexId>{}),
       from_coo(2, 0, std::vector<VertexId>{}, std::vector<VertexId>{}),
       from_coo(0, 3, std::vector<VertexId>{}, std::vector<VertexId>{})});
  EXPECT_EQ(graph.num_vertices(), 5);
  EXPECT_EQ(graph.first_vertex(1), 3);
  EXPECT_EQ(graph.num_edges(), 3);
  const std::map<Edge, int> expected = {{{0, 3, 0}, 1}, {{0, 4, 0}, 1}, {{0, 4, 2}, 1}};
  EXPECT_EQ(edges_of(segments_of(graph)), expected);
  std::ostringstream text;
  text << graph;
  EXPECT_NE(text.str().find("3 kinds, 4 relations, 5 vertices, 3 edges"), std::string::npos);
  EXPECT_NE(text.str().find("'sells' from 'shop' to 'item': 0 edges"), std::string::npos)
      << text.str();
}

TEST(Relational, InversesTurnEveryEdgeRound) {
  const Triples triples = random_triples(60, 9, 2, 8);
  const RelationalGraph graph = from_triples(triples, {"entity", 9}, names(2), Duplicates::first);
  const RelationalGraph both = with_inverses(graph);
  ASSERT_EQ(both.num_relations(), 4);
  EXPECT_EQ(both.relations()[3].name, "rev_r1");
  for (std::int32_t r = 0; r < 2; ++r) {
    for (VertexId target = 0; target < 9; ++target) {
      for (const VertexId source : graph.graph(r).neighbours(target)) {
        const auto turned = both.graph(r + 2).neighbours(source);
        EXPECT_TRUE(std::find(turned.begin(), turned.end(), target) != turned.end());
      }
    }
    EXPECT_EQ(both.graph(r + 2).num_edges(), graph.graph(r).num_edges());
  }
}

TEST(Relational, NothingAtAllIsAGraph) {
  const RelationalGraph none;
  none.validate();
  EXPECT_EQ(none.num_edges(), 0);
  EXPECT_EQ(segments_of(none).edges.num_rows(), 0);
  EXPECT_EQ(with_inverses(from_triples({}, {"entity", 0}, {})).num_relations(), 0);
}

TEST(Relational, WhatDoesNotFitIsAnError) {
  const auto build = [](std::vector<VertexKind> kinds, std::vector<Relation> relations) {
    std::vector<Graph> graphs(relations.size());
    RelationalGraph(std::move(kinds), std::move(relations), std::move(graphs));
  };
  using testing::expect_error;
  expect_error(ErrorCode::bad_data, {"the kind 'a' is there twice"}, [&] {
    build({{"a", 0}, {"a", 0}}, {});
  });
  expect_error(ErrorCode::bad_data, {"names kind 1 of 1"}, [&] {
    build({{"a", 0}}, {{"r", 0, 1}});
  });
  expect_error(ErrorCode::bad_data, {"is there twice"}, [&] {
    build({{"a", 0}}, {{"r", 0, 0}, {"r", 0, 0}});
  });
  expect_error(ErrorCode::bad_data, {"has 0 targets x 0 sources, its kinds 2 x 2"}, [&] {
    build({{"a", 2}}, {{"r", 0, 0}});
  });
  expect_error(ErrorCode::bad_data, {"together"}, [&] {
    build({{"a", 2000000000}, {"b", 2000000000}}, {});
  });
  const Triples outside{{0, 5}, {0, 0}, {1, 1}};
  expect_error(ErrorCode::bad_data, {"triple 1 has head 5, but there are 2"},
               [&] { segments_of(outside, 2, 1); });
  expect_error(ErrorCode::bad_data, {"triple 0 has relation 0, but there are 0"}, [&] {
    from_triples(outside, {"entity", 9}, {});
  });
  expect_error(ErrorCode::invalid_argument, {"1 heads, 0 relations and 1 tails"}, [&] {
    segments_of({{0}, {}, {0}}, 2, 1);
  });
  const Triples twice{{0, 0}, {0, 0}, {1, 1}};
  expect_error(ErrorCode::bad_data, {}, [&] { from_triples(twice, {"entity", 2}, {"r"}); });
  EXPECT_EQ(from_triples(twice, {"entity", 2}, {"r"}, Duplicates::first).num_edges(), 1);
  EXPECT_EQ(from_triples(twice, {"entity", 2}, {"r"}, Duplicates::keep).num_edges(), 2);
}

}  // namespace
}  // namespace tessera
