// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/operand.hpp"

#include <array>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/errors.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/ops/activation.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/batch_norm.hpp"
#include "tessera/ops/edge_softmax.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/gemm.hpp"
#include "tessera/ops/heads.hpp"
#include "tessera/ops/loss.hpp"
#include "tessera/ops/optimiser.hpp"
#include "tessera/ops/sddmm.hpp"
#include "tessera/ops/spmm.hpp"

namespace tessera::ops {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Device gpu{DeviceKind::cuda, 0};

template <class T>
std::string text_of(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

/// Memory of this process that claims to be a GPU's: an op that touched it would not crash, but
/// must refuse it all the same.
template <class T>
MatrixView<T> elsewhere(Matrix<T>& matrix) {
  MatrixView<T> view = matrix.view();
  view.device = gpu;
  return view;
}

template <class Call>
void expect_refused(const char* name, Call&& call) {
  EXPECT_THAT(test::argument_problem(call),
              AllOf(HasSubstr(std::string(name) + " is on cuda:0"), HasSubstr("expected on cpu")));
}

TEST(Operand, TakesTypeShapeAndDeviceFromWhatItIsMadeOf) {
  Matrix<std::int8_t> bytes(3, 5);
  const Operand operand = bytes;
  EXPECT_EQ(operand.data, bytes.data());
  EXPECT_EQ(operand.type, ElementType::int8);
  EXPECT_EQ(operand.device, Device{});
  EXPECT_EQ(operand.stride, 5);
  const ConstOperand read = operand;
  EXPECT_EQ(read.type, ElementType::int8);
  EXPECT_EQ(read.as<std::int8_t>().data, bytes.data());
  EXPECT_EQ(Operand(elsewhere(bytes)).device, gpu);
  EXPECT_EQ(ConstOperand(elsewhere(bytes)).as<std::int8_t>().device, gpu);
  EXPECT_EQ(ConstOperand(MatrixView<const std::int32_t>()).type, ElementType::int32);
}

TEST(Operand, WrapsAPointer) {
  std::array<float, 12> numbers = {};
  const Operand rows(numbers.data(), ElementType::fp32, gpu, 3, 2, 4);
  EXPECT_EQ(rows.device, gpu);
  EXPECT_EQ(rows.stride, 4);
  EXPECT_EQ(ConstOperand(numbers.data(), ElementType::fp16, {}, 3, 4).stride, 4);
}

TEST(Operand, HoldsPackedBitsWithPadding) {
  std::vector<std::uint32_t> words(6, 0);
  const BitsView<std::uint32_t> bits{words.data(), 3, 33, 2, {}};
  EXPECT_EQ(bits.padding(), 31);
  bits.set(1, 32, true);
  bits.set(2, 3, true);
  bits.set(2, 3, false);
  EXPECT_TRUE(bits.get(1, 32));
  EXPECT_FALSE(bits.get(2, 3));
  EXPECT_EQ(words, (std::vector<std::uint32_t>{0, 0, 0, 1, 0, 0}));
  const Operand operand = bits;
  EXPECT_EQ(operand.type, ElementType::bits);
  EXPECT_EQ(operand.stride, 64);
  EXPECT_EQ(ConstOperand(BitsView<const std::uint32_t>(bits)).cols, 33);
}

TEST(Operand, Prints) {
  Matrix<std::int32_t> numbers(3, 5);
  std::vector<std::uint32_t> words(6, 0);
  EXPECT_EQ(text_of(numbers), "int32 3 x 5, on cpu");
  EXPECT_EQ(text_of(ConstOperand(numbers)), "int32 3 x 5, on cpu");
  EXPECT_EQ(text_of(ConstOperand(words.data(), ElementType::bf16, gpu, 2, 3, 8)),
            "bf16 2 x 3, stride 8, on cuda:0");
  EXPECT_EQ(text_of(BitsView<std::uint32_t>{words.data(), 3, 33, 2, {}}),
            "bits 3 x 33, stride 64, on cpu");
}

TEST(Operand, KnowsWhatItsElementsTake) {
  EXPECT_EQ(bits_per_element(ElementType::bits), 1);
  EXPECT_EQ(bytes_of(ElementType::bits, 33), 8);
  EXPECT_EQ(bytes_of(ElementType::int8, 33), 33);
  EXPECT_EQ(bytes_of(ElementType::fp64, 3), 24);
  EXPECT_EQ(storage_of(Precision::tf32), ElementType::fp32);
  for (const Precision precision :
       {Precision::fp64, Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
    EXPECT_EQ(bytes_of(storage_of(precision), 1),
              static_cast<std::int64_t>(bytes_per_element(precision)));
  }
}

TEST(Operand, OnAnotherDeviceIsRefusedByPlannedOps) {
  const Graph graph =
      from_edges(4, std::vector<VertexId>{0, 1, 2, 3}, std::vector<VertexId>{1, 2, 3, 0});
  Matrix<float> x(4, 2, 1.0f), y(4, 2), edges(4, 1, 1.0f), other_edges(4, 1);
  Matrix<VertexId> winners(4, 2);
  SpmmOptions sums;
  sums.features = 2;
  const SpmmPlan spmm = plan_spmm(graph, sums);
  expect_refused("x", [&] { run(spmm, {elsewhere(x)}, {y}); });
  expect_refused("y", [&] { run(spmm, {x}, {elsewhere(y)}); });
  sums.reduction = Reduction::max;
  expect_refused("winners", [&] { run(plan_spmm(graph, sums), {x}, {y, elsewhere(winners)}); });
  sums.reduction = Reduction::sum;
  sums.backward = true;
  expect_refused("grad_y", [&] { run_backward(plan_spmm(graph, sums), {elsewhere(x)}, {y}); });

  SddmmOptions dots;
  dots.features = 2;
  expect_refused("v", [&] { run(plan_sddmm(graph, dots), x, elsewhere(y), edges); });
  const EdgeSoftmaxPlan softmax = plan_edge_softmax(graph, {});
  expect_refused("scores", [&] { run(softmax, elsewhere(edges), other_edges); });
  AttentionOptions attend;
  attend.features = 2;
  attend.form = AttentionForm::dot;
  expect_refused("source", [&] {
    run(plan_attention(graph, attend), {x, elsewhere(x), x}, AttentionOutputs{y});
  });
}

TEST(Operand, OnAnotherDeviceIsRefusedByDenseOps) {
  Matrix<float> x(4, 2, 1.0f), y(4, 2), square(2, 2, 1.0f), row(1, 2), column(4, 1);
  expect_refused("y", [&] { fill(elsewhere(y), 0); });
  expect_refused("x", [&] { copy(elsewhere(x), y); });
  expect_refused("x", [&] { upload(elsewhere(x), y); });
  expect_refused("y", [&] { download(x, elsewhere(y)); });
  expect_refused("b", [&] { gemm(Transpose::no, Transpose::no, 1, x, elsewhere(square), 0, y); });
  expect_refused("bias", [&] { bias_activation_dropout(x, elsewhere(row), {}, y); });
  expect_refused("gamma", [&] { batch_norm(x, elsewhere(row), {}, {}, {}, y, {}, {}); });
  expect_refused("vector", [&] { head_dot(x, elsewhere(row), column); });
  expect_refused("gradient", [&] { optimiser_step({}, 1, elsewhere(x), y, {}, {}); });
  const std::vector<std::int64_t> labels = {0, 1, 0, 1}, rows = {0, 2};
  expect_refused("logits", [&] { cross_entropy(elsewhere(x), labels, rows, {}); });
}

TEST(Operand, OfATypeThatNoOpTakesIsRefused) {
  Matrix<std::int8_t> bytes(4, 2, std::int8_t{1});
  Matrix<float> y(4, 2);
  EXPECT_THAT(test::argument_problem([&] { fill(bytes, 0); }), HasSubstr("y is int8"));
  EXPECT_THAT(test::argument_problem([&] { copy(bytes, y); }), HasSubstr("x is int8"));
}

/// What owns memory on a GPU says so, and nobody reads it here.
TEST(OperandOnDevice, ForgettingTheDeviceIsAnError) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  Matrix<float> there(4, 2, default_memory(gpu));
  Matrix<float> here(4, 2, 1.0f);
  EXPECT_EQ(there.view().device, gpu);
  expect_refused("y", [&] { fill(there, 0); });
  EXPECT_THAT(test::argument_problem([&] { fill(here, 0, gpu); }),
              AllOf(HasSubstr("y is on cpu"), HasSubstr("expected on cuda:0")));
  upload(here, there, gpu);
  Matrix<float> back(4, 2, 0.0f);
  download(there, back, gpu);
  EXPECT_EQ(back(3, 1), 1.0f);
}

}  // namespace
}  // namespace tessera::ops
