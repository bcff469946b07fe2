// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/graphml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/core/error.hpp"

#include "support/files.hpp"

namespace tessera {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Graphml : public testing::Test {
 protected:
  Dataset read(const std::string& text) {
    test::write_file(folder_ / "a.graphml", text);
    return io::open(folder_ / "a.graphml");
  }
  std::string error_of(const std::string& text) {
    try {
      read(text);
    } catch (const Error& error) {
      EXPECT_FALSE(error.fix().empty()) << error.what();
      return error.what();
    }
    return "no error";
  }
  /// A file with this inside of its graph.
  static std::string graph(const std::string& inside, const std::string& keys = "") {
    return "<graphml>" + keys + "<graph edgedefault=\"directed\">\n" + inside +
           "</graph></graphml>";
  }

  test::TemporaryFolder folder_;
};

TEST_F(Graphml, AsNetworkxWritesIt) {
  const Dataset dataset = read(
      "<?xml version='1.0' encoding='utf-8'?>\n"
      "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
      "<key id=\"d3\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\" />\n"
      "<key id=\"d2\" for=\"node\" attr.name=\"label\" attr.type=\"string\" />\n"
      "<key id=\"d1\" for=\"node\" attr.name=\"colour\" attr.type=\"string\" />\n"
      "<key id=\"d0\" for=\"node\" attr.name=\"age\" attr.type=\"long\" />\n"
      "<graph edgedefault=\"undirected\">\n"
      "<node id=\"ann\"><data key=\"d0\">3</data><data key=\"d1\">red</data><data "
      "key=\"d2\">x</data></node>\n"
      "<node id=\"b &lt; &#99;\"><data key=\"d1\">blue</data><data key=\"d2\">y</data></node>\n"
      "<node id=\"eve\"><data key=\"d0\">5</data><data key=\"d1\">red</data><data "
      "key=\"d2\">x</data></node>\n"
      "<edge source=\"ann\" target=\"b &lt; c\"><data key=\"d3\">2.5</data></edge>\n"
      "<edge source=\"eve\" target=\"eve\" />\n"
      "</graph>\n</graphml>\n");
  EXPECT_EQ(dataset.vertex_names[1], "b < c");
  EXPECT_EQ(dataset.edges_stored, 2);
  EXPECT_THAT(dataset.graph.row_offsets().span(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(dataset.graph.col_indices().span(), ElementsAre(1, 0, 2));
  EXPECT_THAT(dataset.graph.values().span(), ElementsAre(2.5, 2.5, 1));
  EXPECT_THAT(std::get<DenseFeatures>(dataset.features)->span(),
              ElementsAre(3, 0, 1, 4, 1, 0, 5, 0, 1));
  EXPECT_EQ(dataset.feature_names[1], "colour=blue");
  EXPECT_THAT(std::get<ClassLabels>(dataset.labels).span(), ElementsAre(0, 1, 0));
  EXPECT_EQ(dataset.class_names[1], "y");
}

TEST_F(Graphml, DirectionsRemarksAndNamesThatAreNoCategories) {
  const Dataset dataset =
      read(graph("<!-- > --><node id='a'><data key='n'>Ann A.</data></node><node id='b'><data "
                 "key='n'>Bob</data>"
                 "</node><node id='c'><data key='n'>Cyd</data></node><edge source='a' target='b'/>"
                 "<edge source='b' target='c' directed='false'/>",
                 "<key id='n' for='node' attr.name='name'/>"));
  EXPECT_EQ(dataset.graph.num_edges(), 3);
  EXPECT_EQ(dataset.num_features(), 0);
}

TEST_F(Graphml, ErrorsNameTheLine) {
  const std::string two = "<node id='a'/><node id='b'/>";
  EXPECT_THAT(error_of("<graphml></graphml>"), HasSubstr("no graph"));
  EXPECT_THAT(error_of(graph("<node/>")), AllOf(HasSubstr("line 2"), HasSubstr("no 'id'")));
  EXPECT_THAT(error_of(graph("<node id='a'/>\n<node id='a'/>")),
              AllOf(HasSubstr("line 3"), HasSubstr("'a'")));
  EXPECT_THAT(error_of(graph(two + "<edge source='a' target='z'/>")), HasSubstr("'z'"));
  EXPECT_THAT(error_of(graph(two + "<edge source='a' target='b'/><edge source='a' target='b'/>")),
              HasSubstr("--duplicates"));
  EXPECT_THAT(error_of(graph("<hyperedge/>")), HasSubstr("more than two"));
  EXPECT_THAT(error_of(graph("<graph/>")), HasSubstr("more than one graph"));
  EXPECT_THAT(error_of(graph("<node id='a'>")), HasSubstr("closes nothing"));
  EXPECT_THAT(error_of("<graphml><graph>"), HasSubstr("ends inside"));
  EXPECT_THAT(error_of("<graphml><graph><node id='a"), HasSubstr("does not end"));
  EXPECT_THAT(error_of("<graphml><!-- "), HasSubstr("'-->' is missing"));
  EXPECT_THAT(error_of("<!DOCTYPE a [<!ENTITY b \"c\">]><graphml/>"), HasSubstr("document types"));
  EXPECT_THAT(error_of(graph("<node id='&b;'/>")), HasSubstr("entity '&b;'"));
  EXPECT_THAT(error_of(graph("<node id='a&b'/>")), HasSubstr("&amp;"));
  EXPECT_THAT(error_of(graph("<node id='&#1114112;'/>")), HasSubstr("no character"));
  EXPECT_THAT(error_of(graph(two + "<edge source='a' target='b'><data key='w'>nan</data></edge>",
                             "<key id='w' for='edge' attr.name='weight'/>")),
              HasSubstr("not finite"));
  std::string deep = "<graphml>";
  for (int i = 0; i < 100; ++i) deep += "<a>";
  EXPECT_THAT(error_of(deep), HasSubstr("too deeply"));
}

}  // namespace
}  // namespace tessera
