// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/graphml.hpp"

#include "support.hpp"
#include "target.hpp"

namespace tessera::fuzz {

std::vector<std::string> seeds() {
  return {
      "<?xml version=\"1.0\"?>\n<graphml xmlns=\"x\"><key id=\"w\" for=\"edge\" "
      "attr.name=\"weight\" attr.type=\"double\"/><key id='a' for='node' attr.name='age'/>"
      "<key id='l' for='node' attr.name='label'/>\n<graph edgedefault=\"undirected\">"
      "<node id=\"n0\"><data key='a'>3.5</data><data key='l'>x&amp;y</data></node>"
      "<node id='n&#x31;'><data key='l'><![CDATA[<z>]]></data></node><!-- end -->\n"
      "<edge source=\"n0\" target=\"n1\"><data key=\"w\"> 2 </data></edge></graph></graphml>",
      "<graphml><graph edgedefault='directed'><node id='a'/><node id='b'/>"
      "<edge source='a' target='b'/><edge source='b' target='a' directed='true'/>"
      "</graph></graphml>"};
}

std::string mutated(const std::string& input, std::uint64_t number) {
  return mutated_bytes(input, number);
}

bool run(const std::string& input) {
  const MemoryFile file(input);
  return expect_words([&] { io::read_graphml(file.path()).validate(); });
}

}  // namespace tessera::fuzz
