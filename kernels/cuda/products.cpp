#include "kernels/cuda/products.hpp"

#include <cublasLt.h>

#include <map>
#include <stdexcept>
#include <string>
#include <tuple>

namespace attnsim::kernels::cuda {
namespace {

/// What cuBLAS advises for Hopper.
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

void require(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string("cuBLASLt: ") + what + ": status " +
                             std::to_string(static_cast<int>(status)));
}

cudaDataType_t type_of(data_type type) {
  return type == data_type::bf16 ? CUDA_R_16BF : type == data_type::fp16 ? CUDA_R_16F : CUDA_R_32F;
}

/// A matrix that lies row by row is its transpose to cuBLAS, so C^T = B^T A^T is what it is asked for.
struct prepared {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t algorithm{};

  prepared() = default;
  prepared(const prepared&) = delete;
  ~prepared() {
    for (auto* layout : {first, second, result}) {
      if (layout) cublasLtMatrixLayoutDestroy(layout);
    }
    if (product) cublasLtMatmulDescDestroy(product);
  }
};

/// `stride` from row to row as it lies; 0: without gaps.
cublasLtMatrixLayout_t layout(data_type type, bool transposed, std::int64_t rows, std::int64_t cols,
                              std::int64_t stride = 0) {
  cublasLtMatrixLayout_t made = nullptr;
  const auto height = transposed ? rows : cols, width = transposed ? cols : rows;
  require(
      cublasLtMatrixLayoutCreate(&made, type_of(type), static_cast<std::uint64_t>(height),
                                 static_cast<std::uint64_t>(width), stride > 0 ? stride : height),
      "layout");
  return made;
}

void set_transposed(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t which,
                    bool transposed) {
  const cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  require(cublasLtMatmulDescSetAttribute(product, which, &operation, sizeof operation),
          "operation");
}

}  // namespace

struct products::state {
  using key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, data_type, bool,
                         bool, data_type, bool>;

  state() {
    require(cublasLtCreate(&handle), "handle");
    if (cudaMalloc(&workspace, workspace_bytes) != cudaSuccess)
      throw std::runtime_error("cuBLASLt: no memory for its workspace");
  }
  ~state() {
    known.clear();
    cudaFree(workspace);
    cublasLtDestroy(handle);
  }
  state(const state&) = delete;

  const prepared& prepare(const product_arguments& a) {
    const auto [found, is_new] =
        known.try_emplace(key{a.rows, a.cols, a.inner, a.stride(), a.type, a.left_transposed,
                              a.right_transposed, a.result_type, a.adds});
    if (is_new) fill(found->second, a);
    return found->second;
  }

  void fill(prepared& p, const product_arguments& a) {
    require(cublasLtMatmulDescCreate(&p.product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "product");
    set_transposed(p.product, CUBLASLT_MATMUL_DESC_TRANSA, a.right_transposed);
    set_transposed(p.product, CUBLASLT_MATMUL_DESC_TRANSB, a.left_transposed);
    p.first = layout(a.type, a.right_transposed, a.inner, a.cols);
    p.second = layout(a.type, a.left_transposed, a.rows, a.inner);
    p.result = layout(a.result_type, false, a.rows, a.cols, a.stride());
    cublasLtMatmulPreference_t preference = nullptr;
    require(cublasLtMatmulPreferenceCreate(&preference), "preference");
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &workspace_bytes, sizeof workspace_bytes);
    cublasLtMatmulHeuristicResult_t choice{};
    int count = 0;
    const auto status = cublasLtMatmulAlgoGetHeuristic(
        handle, p.product, p.first, p.second, p.result, p.result, preference, 1, &choice, &count);
    cublasLtMatmulPreferenceDestroy(preference);
    require(status, "choice");
    if (count == 0) throw std::runtime_error("cuBLASLt: no algorithm for a product");
    p.algorithm = choice.algo;
  }

  cublasLtHandle_t handle = nullptr;
  void* workspace = nullptr;
  std::map<key, prepared> known;
};

products::products() : state_(std::make_unique<state>()) {}
products::~products() = default;

void products::run(const product_arguments& a, cudaStream_t queue) {
  const auto& p = state_->prepare(a);
  const float one = 1, before = a.adds ? 1 : 0;
  require(cublasLtMatmul(state_->handle, p.product, &one, a.right, p.first, a.left, p.second,
                         &before, a.result, p.result, a.result, p.result, &p.algorithm,
                         state_->workspace, workspace_bytes, queue),
          "product");
}

const char* cublas_version() {
  static const std::string version = [] {
    const auto v = cublasLtGetVersion();
    return std::to_string(v / 10000) + '.' + std::to_string(v / 100 % 100) + '.' +
           std::to_string(v % 100);
  }();
  return version.c_str();
}

}  // namespace attnsim::kernels::cuda
