#include "kernels/cuda/products.hpp"

#include <cublasLt.h>
#include <dlfcn.h>

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

/// cuBLASLt, loaded when a product is first asked for: that takes 0.4 s, which a program that only predicts should not spend.
/// Throws std::runtime_error: not found.
class cublaslt_library {
  template <typename Function>
  Function* find(const char* name) const {
    if (auto* function = dlsym(loaded_, name)) return reinterpret_cast<Function*>(function);
    throw std::runtime_error(std::string("cuBLASLt: no function ") + name);
  }
  static void* load() {
    const auto name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
    if (auto* loaded = dlopen(name.c_str(), RTLD_NOW)) return loaded;
    if (auto* loaded = dlopen(ATTNSIM_CUBLASLT, RTLD_NOW)) return loaded;  // where it was built
    throw std::runtime_error("cuBLASLt: neither " + name + " nor " + ATTNSIM_CUBLASLT +
                             " can be loaded: " + dlerror());
  }
  void* loaded_ = load();

 public:
#define ATTNSIM_FUNCTION(name) \
  decltype(::cublasLt##name)* name = find<decltype(::cublasLt##name)>("cublasLt" #name)
  ATTNSIM_FUNCTION(Create);
  ATTNSIM_FUNCTION(Destroy);
  ATTNSIM_FUNCTION(GetVersion);
  ATTNSIM_FUNCTION(Matmul);
  ATTNSIM_FUNCTION(MatmulAlgoGetHeuristic);
  ATTNSIM_FUNCTION(MatmulDescCreate);
  ATTNSIM_FUNCTION(MatmulDescDestroy);
  ATTNSIM_FUNCTION(MatmulDescSetAttribute);
  ATTNSIM_FUNCTION(MatmulPreferenceCreate);
  ATTNSIM_FUNCTION(MatmulPreferenceDestroy);
  ATTNSIM_FUNCTION(MatmulPreferenceSetAttribute);
  ATTNSIM_FUNCTION(MatrixLayoutCreate);
  ATTNSIM_FUNCTION(MatrixLayoutDestroy);
#undef ATTNSIM_FUNCTION
};

const cublaslt_library& cublaslt() {
  static const cublaslt_library library;
  return library;
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
      if (layout) cublaslt().MatrixLayoutDestroy(layout);
    }
    if (product) cublaslt().MatmulDescDestroy(product);
  }
};

/// `stride` from row to row as it lies; 0: without gaps.
cublasLtMatrixLayout_t layout(data_type type, bool transposed, std::int64_t rows, std::int64_t cols,
                              std::int64_t stride = 0) {
  cublasLtMatrixLayout_t made = nullptr;
  const auto height = transposed ? rows : cols, width = transposed ? cols : rows;
  require(cublaslt().MatrixLayoutCreate(&made, type_of(type), static_cast<std::uint64_t>(height),
                                        static_cast<std::uint64_t>(width),
                                        stride > 0 ? stride : height),
          "layout");
  return made;
}

void set_transposed(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t which,
                    bool transposed) {
  const cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  require(cublaslt().MatmulDescSetAttribute(product, which, &operation, sizeof operation),
          "operation");
}

}  // namespace

struct products::state {
  using key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, data_type, bool,
                         bool, data_type, bool>;

  state() {
    require(cublaslt().Create(&handle), "handle");
    if (cudaMalloc(&workspace, workspace_bytes) != cudaSuccess)
      throw std::runtime_error("cuBLASLt: no memory for its workspace");
  }
  ~state() {
    known.clear();
    cudaFree(workspace);
    cublaslt().Destroy(handle);
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
    require(cublaslt().MatmulDescCreate(&p.product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "product");
    set_transposed(p.product, CUBLASLT_MATMUL_DESC_TRANSA, a.right_transposed);
    set_transposed(p.product, CUBLASLT_MATMUL_DESC_TRANSB, a.left_transposed);
    p.first = layout(a.type, a.right_transposed, a.inner, a.cols);
    p.second = layout(a.type, a.left_transposed, a.rows, a.inner);
    p.result = layout(a.result_type, false, a.rows, a.cols, a.stride());
    cublasLtMatmulPreference_t preference = nullptr;
    require(cublaslt().MatmulPreferenceCreate(&preference), "preference");
    cublaslt().MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                            &workspace_bytes, sizeof workspace_bytes);
    cublasLtMatmulHeuristicResult_t choice{};
    int count = 0;
    const auto status = cublaslt().MatmulAlgoGetHeuristic(
        handle, p.product, p.first, p.second, p.result, p.result, preference, 1, &choice, &count);
    cublaslt().MatmulPreferenceDestroy(preference);
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
  require(cublaslt().Matmul(state_->handle, p.product, &one, a.right, p.first, a.left, p.second,
                            &before, a.result, p.result, a.result, p.result, &p.algorithm,
                            state_->workspace, workspace_bytes, queue),
          "product");
}

const char* cublas_version() {
  static const std::string version = [] {
    const auto v = cublaslt().GetVersion();
    return std::to_string(v / 10000) + '.' + std::to_string(v / 100 % 100) + '.' +
           std::to_string(v % 100);
  }();
  return version.c_str();
}

}  // namespace attnsim::kernels::cuda
