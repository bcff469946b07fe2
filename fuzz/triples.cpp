// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/triples.hpp"

#include "folder.hpp"
#include "target.hpp"

/// Folders of triples by name.
namespace tessera::fuzz {

std::vector<std::string> seeds() {
  return {
      "=== train.tsv\nann\tknows\tbob\nbob\tknows\tcarl\r\ncarl\tlikes\tann\n"
      "=== valid.tsv\nann\tlikes\tdora\n=== test.tsv\nbob\tlikes\tann\nann\tknows\tbob\n",
      "=== train.tsv\n\n/m/1\t/a/b./c\t/m/2\n/m/1\t/a/b./c\t/m/2",
      "=== train.tsv\n\xEF\xBB\xBFx y\tr\tz\n=== test.tsv\nx y\tr\tx y"};
}

std::string mutated(const std::string& input, std::uint64_t number) {
  return mutated_bytes(input, number);
}

bool run(const std::string& input) {
  static Folder folder("triples", {"train.tsv", "valid.tsv", "test.tsv"});
  const std::string path = folder.holding(input);
  return expect_words([&] { io::read_triples(path).validate(); });
}

}  // namespace tessera::fuzz
