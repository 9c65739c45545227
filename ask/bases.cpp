#include "ask/bases.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace attnsim::ask {
namespace {

std::string said(basis b) {
  return b == basis::measured ? "measured here" : std::string(name_of(b));
}

stated_basis of(const kernel_profile& kernel) {
  return {"kernel " + kernel.name, said(kernel.basis)};
}

stated_basis in_fp8(const kernel_profile& kernel) {
  return {fmt::format("kernel {} in fp8", kernel.name), said(kernel.fp8.basis)};
}

stated_basis kernel_basis(const device_profile& device, const prediction& p) {
  const auto* kernel = device.kernel(p.chosen.kernel, p.problem.dtype);
  const bool fp8 = p.problem.dtype == data_type::fp8;
  if (!kernel || !kernel->has_rates(p.problem.dtype))
    return {fp8 ? "kernels in fp8" : "kernels", "assumed: a share of the peak"};
  if (!fp8) return of(*kernel);
  auto stated = in_fp8(*kernel);
  const auto& tables = kernel->fp8.tables;
  const bool has_backward = std::any_of(tables.begin(), tables.end(), [](const kernel_table& t) {
    return t.pass == pass_kind::backward;
  });
  const bool asked = std::any_of(p.passes.begin(), p.passes.end(),
                                 [](const auto& one) { return one.pass == pass_kind::backward; });
  if (asked && !has_backward)
    stated.basis += ", backward assumed: as much faster than in 16 bits as forward";
  return stated;
}

stated_basis of(link_kind kind, const transport_profile& transport) {
  auto text = said(transport.basis);
  if (transport.pair && transport.pair->basis != transport.basis)
    text += ", rings of two " + said(transport.pair->basis);
  return {std::string(name_of(kind)), text};
}

bool has_links(const cluster& c, link_kind kind) {
  const auto links = c.network.links();
  return std::any_of(links.begin(), links.end(), [&](const link& l) { return l.kind == kind; });
}

void add_transports_and_host(const cluster& c, std::vector<stated_basis>& all) {
  for (const auto kind :
       {link_kind::nvlink, link_kind::pcie, link_kind::host_memory, link_kind::network}) {
    if (has_links(c, kind)) all.push_back(of(kind, c.device.transport(kind)));
  }
  if (!c.host.name.empty()) all.push_back({"host " + c.host.name, said(c.host.basis)});
}

}  // namespace

std::vector<stated_basis> bases_of(const cluster& c) {
  std::vector<stated_basis> all;
  for (const auto& kernel : c.device.kernels) {
    if (kernel.has_rates(data_type::bf16)) all.push_back(of(kernel));
    if (kernel.has_rates(data_type::fp8)) all.push_back(in_fp8(kernel));
  }
  if (all.empty()) all.push_back({"kernels", "assumed: a share of the peak"});
  add_transports_and_host(c, all);
  return all;
}

std::vector<stated_basis> bases_of(const cluster& c, const prediction& p) {
  std::vector<stated_basis> all;
  all.push_back(kernel_basis(c.device, p));
  add_transports_and_host(c, all);
  return all;
}

std::string text_of(const std::vector<stated_basis>& all) {
  std::string text;
  for (const auto& one : all)
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", one.figures, one.basis);
  return text;
}

}  // namespace attnsim::ask
