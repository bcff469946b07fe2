// SPDX-License-Identifier: Apache-2.0
#include "support/hostile.hpp"

/// Files cut short or changed anywhere.
namespace tessera {
namespace {

using test::map_container;
using test::Read;
using test::read_container;
using test::read_mtx;
using test::read_npz;

class HostileBytes : public test::HostileFile {
 protected:
  void expect_every_cut_is_noticed(const std::string& bytes, const Read& read) {
    ASSERT_EQ(outcome(bytes, read), "no error");
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      ASSERT_NE(outcome(bytes.substr(0, length), read), "no error") << "cut at byte " << length;
    }
  }

  /// Changed bytes may go unnoticed where the format has no checksum, but must do no harm.
  void expect_flips_do_no_harm(const std::string& bytes, const Read& read, std::uint64_t seed) {
    SCOPED_TRACE(seed);
    const Random random(seed);
    for (std::uint64_t round = 0; round < 2000; ++round) {
      std::string changed = bytes;
      for (std::uint64_t flip = 0; flip <= round % 4; ++flip) {
        const std::uint64_t element = 8 * round + 2 * flip;
        changed[random.below(element, changed.size())] =
            static_cast<char>(random.below(element + 1, 256));
      }
      outcome(changed, read);
    }
  }

  std::string npz_of(const Dataset& dataset) {
    io::write_npz(dataset, file_);
    return test::read_file(file_);
  }
  std::string container_of(const Dataset& dataset) {
    io::write_container(dataset, file_);
    return test::read_file(file_);
  }
};

TEST_F(HostileBytes, NpzCutAnywhere) {
  expect_every_cut_is_noticed(npz_of(test::with_everything()), read_npz);
}

TEST_F(HostileBytes, ContainerCutAnywhere) {
  const std::string bytes = container_of(test::with_everything());
  expect_every_cut_is_noticed(bytes, read_container);
  expect_every_cut_is_noticed(bytes, map_container);
}

TEST_F(HostileBytes, MatrixMarketCutAnywhere) {
  // The last newline is not needed, and a shorter last number is another number.
  const std::string text =
      "%%MatrixMarket matrix coordinate integer symmetric\n%\n3 3 2\n2 1 5\n3 2 6";
  expect_every_cut_is_noticed(text, read_mtx);
  io::write_matrix_market(test::with_everything().graph, file_ + ".gz");
  expect_every_cut_is_noticed(test::read_file(file_ + ".gz"), read_mtx);
}

TEST_F(HostileBytes, ContainerNoticesEveryChangedByte) {
  const std::string bytes = container_of(test::with_everything());
  for (std::size_t position = 0; position < bytes.size(); ++position) {
    for (const int mask : {0x01, 0x80, 0xFF}) {
      std::string changed = bytes;
      changed[position] = static_cast<char>(changed[position] ^ mask);
      ASSERT_NE(outcome(changed, read_container), "no error") << "byte " << position;
    }
    std::string changed = bytes;
    changed[position] = static_cast<char>(changed[position] ^ 0x10);
    ASSERT_NE(outcome(changed, map_container), "no error") << "mapped, byte " << position;
  }
  ASSERT_NE(outcome(bytes + '\0', read_container), "no error");
}

TEST_F(HostileBytes, FlipsDoNoHarm) {
  expect_flips_do_no_harm(npz_of(test::with_everything()), read_npz, 101);
  expect_flips_do_no_harm(npz_of(test::with_sparse_features_and_multi_labels()), read_npz, 102);
  io::write_matrix_market(test::with_everything().graph, file_);
  expect_flips_do_no_harm(test::read_file(file_), read_mtx, 103);
  io::write_matrix_market(test::with_everything().graph, file_ + ".gz");
  expect_flips_do_no_harm(test::read_file(file_ + ".gz"), read_mtx, 104);
}

}  // namespace
}  // namespace tessera
