#include "kernels/argument_checks.hpp"

#include <initializer_list>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

namespace attnsim::kernels {
namespace {

struct named_tensor {
  std::string_view name;
  const device_tensor& tensor;
};

/// Refuses tensors of another type than `expected`.
void check_types(std::string_view operation, data_type expected,
                 std::initializer_list<named_tensor> tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (tensor.type != expected) {
      throw std::invalid_argument(fmt::format("{}: {} is {}, expected {}", operation, name,
                                              name_of(tensor.type), name_of(expected)));
    }
  }
}

void check_result_type(std::string_view operation, data_type inputs, const named_tensor& result) {
  const data_type type = result.tensor.type;
  const data_type own = result_type(inputs);
  if (type != own && type != data_type::fp32) {
    throw std::invalid_argument(fmt::format("{}: {} is {}, expected {} or fp32", operation,
                                            result.name, name_of(type), name_of(own)));
  }
}

}  // namespace

void check(const forward_arguments& a) {
  check(a.shape);
  check_types("forward", a.query.type, {{"key", a.key}, {"value", a.value}});
  check_result_type("forward", a.query.type, {"output", a.output});
  check_types("forward", data_type::fp32, {{"lse", a.lse}});
}

void check(const backward_arguments& a) {
  check(a.shape);
  check_types("backward", a.query.type, {{"key", a.key}, {"value", a.value}});
  check_types("backward", result_type(a.query.type), {{"output_gradient", a.output_gradient}});
  check_types("backward", data_type::fp32, {{"lse", a.lse}, {"delta", a.delta}});
  check_result_type("backward", a.query.type, {"query_gradient", a.query_gradient});
  check_types("backward", a.query_gradient.type,
              {{"key_gradient", a.key_gradient}, {"value_gradient", a.value_gradient}});
}

void check_merge(const token_shape& shape, const device_tensor& lse,
                 const device_tensor& part_lse) {
  check(shape);
  check_types("merge", data_type::fp32, {{"lse", lse}, {"part_lse", part_lse}});
}

void check_weigh(const token_shape& shape, const device_tensor& part_lse, std::int64_t parts,
                 std::int64_t own, const device_tensor& whole_lse) {
  check(shape);
  check_part(parts, own);
  check_types("weigh", data_type::fp32, {{"part_lse", part_lse}, {"whole_lse", whole_lse}});
}

void check_sink(const token_shape& shape, const device_tensor& lse, const device_tensor& sinks,
                std::int64_t parts) {
  check(shape);
  if (parts < 1)
    throw std::invalid_argument(fmt::format("sink: parts is {}, expected at least 1", parts));
  check_types("sink", data_type::fp32, {{"lse", lse}, {"sinks", sinks}});
}

void check_delta(const token_shape& shape, const device_tensor& output,
                 const device_tensor& output_gradient, const device_tensor& delta) {
  check(shape);
  check_types("delta", output.type, {{"output_gradient", output_gradient}});
  check_types("delta", data_type::fp32, {{"delta", delta}});
}

void check_interleave(const token_shape& shape, std::int64_t parts,
                      const device_tensor& destination, const device_tensor& source) {
  check(shape, parts);
  check_types("interleave", source.type, {{"destination", destination}});
}

}  // namespace attnsim::kernels
