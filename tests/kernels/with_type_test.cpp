#include "kernels/with_type.hpp"

#include <gmock/gmock.h>

namespace attnsim::kernels {
namespace with_type_test {

TEST(with_type, calls_with_the_type_of_that_name) {
  for (const auto type : {data_type::fp32, data_type::bf16, data_type::fp16, data_type::fp8}) {
    const auto called_with =
        with_type(type, []<typename T>(std::type_identity<T>) { return type_of<T>; });
    EXPECT_EQ(called_with, type);
  }
}

}  // namespace with_type_test
}  // namespace attnsim::kernels
