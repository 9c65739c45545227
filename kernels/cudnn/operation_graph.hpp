// A cuDNN operation graph and the execution plan made of it, through the backend C API.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/error.hpp"

namespace attnsim::kernels::cudnn {

inline void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char message[512] = {};
  cudnnGetLastErrorString(message, sizeof(message));
  throw std::runtime_error(std::string("cuDNN: ") + what + ": " + cudnnGetErrorString(status) +
                           ": " + message);
}

/// A backend descriptor.
class descriptor {
 public:
  explicit descriptor(cudnnBackendDescriptorType_t type) {
    check(cudnnBackendCreateDescriptor(type, &raw_), "descriptor");
  }
  descriptor(descriptor&& other) noexcept : raw_(other.raw_) { other.raw_ = nullptr; }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~descriptor() {
    if (raw_ != nullptr) cudnnBackendDestroyDescriptor(raw_);
  }

  template <class T>
  descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  const T& value) {
    check(cudnnBackendSetAttribute(raw_, name, type, 1, &value), "attribute");
    return *this;
  }
  template <class T>
  descriptor& set_all(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      const std::vector<T>& values) {
    check(cudnnBackendSetAttribute(raw_, name, type, static_cast<std::int64_t>(values.size()),
                                   values.data()),
          "attribute");
    return *this;
  }
  descriptor& set(cudnnBackendAttributeName_t name, const descriptor& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.raw_);
  }
  descriptor& finalize(const char* what) {
    check(cudnnBackendFinalize(raw_), what);
    return *this;
  }
  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

using extents4 = std::array<std::int64_t, 4>;

/// A tensor of the graph: (batch, heads, rows, columns). Virtual unless it has a place in memory.
struct node {
  extents4 sizes, strides;
  cudnnDataType_t type;
  descriptor* tensor;
};

class operation_graph {
 public:
  /// A tensor in device memory, named by `id` when the plan runs.
  node memory(std::int64_t id, extents4 sizes, extents4 strides, cudnnDataType_t type) {
    return make(id, sizes, strides, type, false, false);
  }
  /// A value in host memory, given when the plan runs.
  node scalar(std::int64_t id, cudnnDataType_t type) {
    return make(id, {1, 1, 1, 1}, {1, 1, 1, 1}, type, false, true);
  }
  node temporary(extents4 sizes, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return temporary(sizes, {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1},
                     type);
  }
  node temporary(extents4 sizes, extents4 strides, cudnnDataType_t type) {
    return make(next_id_++, sizes, strides, type, true, false);
  }

  node matmul(const node& a, const node& b, const node& to) {
    descriptor& how = keep(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT).finalize("matmul");
    operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, *a.tensor)
        .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, *b.tensor)
        .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, *to.tensor)
        .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how)
        .finalize("matmul operation");
    return to;
  }
  node reduce(cudnnReduceTensorOp_t op, const node& x, const node& to) {
    descriptor& how = keep(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
        .set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, op)
        .finalize("reduction");
    operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, *x.tensor)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, *to.tensor)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how)
        .finalize("reduction operation");
    return to;
  }
  node reshape(const node& x, const node& to) {
    operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, *x.tensor)
        .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, *to.tensor)
        .finalize("reshape operation");
    return to;
  }
  node pointwise(cudnnPointwiseMode_t mode, const node& x, const node& to) {
    return apply(mode, x, nullptr, nullptr, to, {});
  }
  node pointwise(cudnnPointwiseMode_t mode, const node& x, const node& b, const node& to,
                 cudnnDataType_t compute = CUDNN_DATA_FLOAT) {
    return apply(mode, x, &b, nullptr, to, {compute, -1});
  }
  node select(const node& where, const node& x, const node& otherwise, const node& to) {
    return apply(CUDNN_POINTWISE_BINARY_SELECT, x, &otherwise, &where, to, {});
  }
  node index_along(std::int64_t axis, const node& x) {
    return apply(CUDNN_POINTWISE_GEN_INDEX, x, nullptr, nullptr,
                 temporary(x.sizes, CUDNN_DATA_INT32), {CUDNN_DATA_FLOAT, axis});
  }

  const std::vector<cudnnBackendDescriptor_t>& operations() const { return operations_; }

 private:
  struct pointwise_options {
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    std::int64_t axis = -1;
  };

  node apply(cudnnPointwiseMode_t mode, const node& x, const node* b, const node* t, const node& to,
             pointwise_options options) {
    descriptor& how = keep(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
        .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, options.compute);
    if (options.axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, options.axis);
    how.finalize("pointwise");
    descriptor& op = operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *x.tensor)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *to.tensor);
    if (b != nullptr) op.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b->tensor);
    if (t != nullptr) op.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *t->tensor);
    op.finalize("pointwise operation");
    return to;
  }
  node make(std::int64_t id, extents4 sizes, extents4 strides, cudnnDataType_t type,
            bool is_virtual, bool by_value) {
    descriptor& d = keep(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
        .set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16})
        .set_all(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64,
                 std::vector<std::int64_t>(sizes.begin(), sizes.end()))
        .set_all(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64,
                 std::vector<std::int64_t>(strides.begin(), strides.end()));
    if (is_virtual) d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
    if (by_value) d.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
    d.finalize("tensor");
    return {sizes, strides, type, &d};
  }
  descriptor& keep(cudnnBackendDescriptorType_t type) { return descriptors_.emplace_back(type); }
  descriptor& operation(cudnnBackendDescriptorType_t type) {
    descriptor& op = keep(type);
    operations_.push_back(op.raw());
    return op;
  }

  std::int64_t next_id_ = 1000;
  std::deque<descriptor> descriptors_;
  std::vector<cudnnBackendDescriptor_t> operations_;
};

/// The first of cuDNN's proposals for a graph that it can build.
class execution_plan {
 public:
  execution_plan(cudnnHandle_t handle, operation_graph graph) : graph_(std::move(graph)) {
    all_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle)
        .set_all(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph_.operations());
    std::string reason = "no engine";
    try {
      all_.finalize("operation graph");
      for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
        if (build(handle, mode, reason)) return;
      }
    } catch (const std::runtime_error& error) {
      reason = error.what();
    }
    throw infeasible("cuDNN has no kernel for this attention block: " + reason);
  }

  std::size_t workspace() const { return workspace_; }

  void run(cudnnHandle_t handle, const std::vector<std::int64_t>& ids,
           const std::vector<void*>& addresses, void* workspace) const {
    descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set_all(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids)
        .set_all(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, addresses)
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
        .finalize("variant pack");
    check(cudnnBackendExecute(handle, plan_.back().raw(), pack.raw()), "execute");
  }

 private:
  bool build(cudnnHandle_t handle, cudnnBackendHeurMode_t mode, std::string& reason) {
    descriptor& heuristics = keep_.emplace_back(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, all_)
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    if (cudnnBackendFinalize(heuristics.raw()) != CUDNN_STATUS_SUCCESS) return false;
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(heuristics.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
          "heuristics");
    std::vector<cudnnBackendDescriptor_t> found;
    for (std::int64_t i = 0; i < count; ++i) {
      found.push_back(keep_.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).raw());
    }
    check(cudnnBackendGetAttribute(heuristics.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, found.data()),
          "heuristics");
    for (std::int64_t i = 0; i < count; ++i) {
      descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle)
          .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
               found[static_cast<std::size_t>(i)]);
      const cudnnStatus_t status = cudnnBackendFinalize(plan.raw());
      if (status != CUDNN_STATUS_SUCCESS) {
        reason = cudnnGetErrorString(status);
        continue;
      }
      std::int64_t bytes = 0, one = 0;
      check(cudnnBackendGetAttribute(plan.raw(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                     CUDNN_TYPE_INT64, 1, &one, &bytes),
            "workspace size");
      workspace_ = static_cast<std::size_t>(bytes);
      plan_.push_back(std::move(plan));
      return true;
    }
    return false;
  }

  operation_graph graph_;
  descriptor all_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
  std::deque<descriptor> keep_;
  std::vector<descriptor> plan_;
  std::size_t workspace_ = 0;
};

}  // namespace attnsim::kernels::cudnn
