// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/bit_tensor.hpp"

#include "support.hpp"
#include "target.hpp"

namespace tessera::fuzz {
namespace {

std::string stored(int bits, quant::Granularity granularity) {
  Matrix<float> x(5, 3);
  for (std::int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i * i % 11);
  const quant::Affine affine = quant::calibrate(
      x, {.bits = bits, .granularity = granularity, .classes = {{0, 1, 0, 1, 1}, 2}});
  const Matrix<std::uint16_t> codes = quant::quantise(x, affine);
  const MatrixView<const std::uint16_t> view(codes.data(), codes.rows(), codes.cols());
  return written(".tsr", [&](const std::string& path) {
    io::write_bit_tensor({quant::pack_rows(view, bits), affine}, path);
  });
}

}  // namespace

std::vector<std::string> seeds() {
  return {stored(5, quant::Granularity::tensor), stored(1, quant::Granularity::columns),
          stored(2, quant::Granularity::classes)};
}

std::string mutated(const std::string& input, std::uint64_t number) {
  static const std::vector<std::string> all = seeds();
  return mutated_container(input, number, all);
}

bool run(const std::string& input) {
  const MemoryFile file(input);
  return expect_words([&] {
    const io::StoredBits bits = io::read_bit_tensor(file.path());
    bits.tensor.validate();
    if (bits.affine) bits.affine->validate();
  });
}

}  // namespace tessera::fuzz
