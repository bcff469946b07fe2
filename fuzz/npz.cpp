// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/npz.hpp"

#include "io/npz_arrays.hpp"
#include "support.hpp"
#include "support/datasets.hpp"
#include "target.hpp"

namespace tessera::fuzz {

std::vector<std::string> seeds() {
  return {written(".npz", [](const auto& path) { io::write_npz(test::with_everything(), path); }),
          written(".npz",
                  [](const auto& path) {
                    io::write_npz(test::with_sparse_features_and_multi_labels(), path);
                  }),
          written(".npz",
                  [](const auto& path) {
                    io::write_npz_arrays(
                        path, {{"edge_index",
                                test::extra_array<std::int64_t>("<i8", {2, 3}, {0, 0, 2, 1, 2, 1})},
                               {"edge_weight", test::extra_array<float>("<f4", {3}, {1, 2, 3})}});
                  }),
          written(".npz", [](const auto& path) {
            io::write_npz_arrays(
                path, {{"format", test::extra_array<char>("|S3", {}, {'c', 's', 'c'})},
                       {"shape", test::extra_array<std::int64_t>("<i8", {2}, {3, 3})},
                       {"data", test::extra_array<double>("<f8", {3}, {5, 6, 7})},
                       {"indptr", test::extra_array<std::int32_t>("<i4", {4}, {0, 2, 2, 3})},
                       {"indices", test::extra_array<std::int32_t>("<i4", {3}, {1, 2, 1})}});
          })};
}

std::string mutated(const std::string& input, std::uint64_t number) {
  static const std::vector<std::string> all = seeds();
  return mutated_archive(input, number, all);
}

bool run(const std::string& input) {
  const MemoryFile file(input);
  return expect_words([&] { io::read_npz(file.path()).validate(); });
}

}  // namespace tessera::fuzz
