// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/graphml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

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
      "<key id=\"d3\" for=\"edge\" attr.name=\"weight\" "
      "attr.type=\"double\"><default>1</default></key>\n"
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

TEST_F(Graphml, DefaultsAreTheValuesOfWhatHasNone) {
  const Dataset dataset = read(
      graph("<node id='a'><data key='x'>4</data></node><node id='b'/>"
            "<node id='c'><data key='x'/><data key='l'>cat</data></node>"
            "<edge source='a' target='b'/>"
            "<edge source='b' target='c'><data key='w'>2</data></edge>",
            "<key id='x' for='node' attr.name='age' attr.type='int'><default> 6 </default></key>"
            "<key id='l' for='node' attr.name='label'><default>dog</default></key>"
            "<key id='w' for='edge' attr.name='weight'><default>0.5</default></key>"));
  EXPECT_THAT(dataset.graph.values().span(), ElementsAre(0.5, 2));
  // An empty value is missing, and has the mean.
  EXPECT_THAT(std::get<DenseFeatures>(dataset.features)->span(), ElementsAre(4, 6, 5));
  EXPECT_THAT(std::get<ClassLabels>(dataset.labels).span(), ElementsAre(1, 1, 0));
  const Dataset all =
      read(graph("<node id='a'/><node id='b'/><edge source='a' target='b'/>",
                 "<key id='w' for='edge' attr.name='weight'><default>3</default></key>"));
  EXPECT_THAT(all.graph.values().span(), ElementsAre(3));
  const Dataset declared = read(graph("<node id='a'/><node id='b'/><edge source='a' target='b'/>",
                                      "<key id='w' for='edge' attr.name='weight'/>"));
  EXPECT_FALSE(declared.graph.has_values());
}

TEST_F(Graphml, ValuesAreOfTheirTypes) {
  const auto value = [&](const char* type, const char* text) {
    return graph(std::string("<node id='a'>\n<data key='k'>") + text + "</data></node>",
                 std::string("<key id='k' for='node' attr.name='x' attr.type='") + type + "'/>");
  };
  for (const auto& [type, good, bad] : {std::tuple("int", "-3", "1.5"),
                                        {"long", "+7", "x"},
                                        {"double", "1e-3", "one"},
                                        {"float", "2", "inf"},
                                        {"boolean", "true", "yes"}}) {
    EXPECT_EQ(read(value(type, good)).num_features(), 1) << type;
    EXPECT_THAT(error_of(value(type, bad)), AllOf(HasSubstr("line 3"), HasSubstr(bad))) << type;
  }
}

TEST_F(Graphml, NotesSayHowEdgesWereRead) {
  const std::string two = "<node id='a'/><node id='b'/>";
  EXPECT_THAT(read(graph(two + "<edge source='a' target='b'/>")).notes,
              ElementsAre("edges are directed"));
  EXPECT_THAT(read(graph(two + "<edge source='a' target='b' directed='false'/>")).notes,
              ElementsAre(HasSubstr("undirected: each is read as two")));
  EXPECT_THAT(read(graph(two + "<edge source='a' target='a'/>"
                               "<edge source='a' target='b' directed='false'/>",
                         "<key id='c' for='edge' attr.name='colour'/>"))
                  .notes,
              ElementsAre("1 edge is directed, 1 undirected and read as two, one each way",
                          "1 edge leads from a vertex to itself"));
  EXPECT_THAT(read("<graphml><graph><node id='a'/></graph></graphml>").notes,
              ElementsAre(HasSubstr("no edgedefault")));
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
  const std::string weight = "<key id='w' for='edge' attr.name='weight'/>";
  EXPECT_THAT(error_of(graph(two + "<edge source='a' target='b'><data key='w'>1</data></edge>\n"
                                   "<edge source='b' target='a'/>",
                             weight)),
              AllOf(HasSubstr("line 3"), HasSubstr("no weight"), HasSubstr("<default>")));
  EXPECT_THAT(error_of(graph(two, weight + "<key id='w' for='edge'/>")),
              HasSubstr("more than once"));
  EXPECT_THAT(error_of(graph(two, weight + "<key id='v' for='edge' attr.name='weight'/>")),
              HasSubstr("called weight"));
  EXPECT_THAT(error_of(graph("<node id='a'><data key='z'>1</data></node>")), HasSubstr("'z'"));
  EXPECT_THAT(error_of(graph("<node id='a'><data key='w'>1</data></node>", weight)),
              HasSubstr("something else than vertices"));
  EXPECT_THAT(error_of(graph("<node id='a'><data key='x'>1</data><data key='x'>1</data></node>",
                             "<key id='x' for='node'/>")),
              HasSubstr("two values"));
  EXPECT_THAT(error_of(graph(two + "<edge source='a' target='b' directed='no'/>")),
              HasSubstr("use false or true"));
  EXPECT_THAT(error_of("<graphml><graph edgedefault='both'/></graphml>"),
              HasSubstr("directed or undirected"));
  std::string deep = "<graphml>";
  for (int i = 0; i < 100; ++i) deep += "<a>";
  EXPECT_THAT(error_of(deep), HasSubstr("too deeply"));
}

}  // namespace
}  // namespace tessera
