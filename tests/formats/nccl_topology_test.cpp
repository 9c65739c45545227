#include <gmock/gmock.h>

#include "tests/expect_error.hpp"
#include "tests/formats/import.hpp"
#include "tests/shared_files.hpp"

namespace attnsim::formats {
namespace nccl_topology_test {

using testing::AllOf;
using testing::Contains;
using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// x16 at 8, 16 and 32 GT/s with 128b/130b: GT/s x 16 / 8 x 128 / 130 GB/s.
constexpr double gen3 = 15.7538, gen4 = 31.5077, gen5 = 63.0154;

auto all_near(double rate) {
  return Each(DoubleNear(rate, 1e-3));
}

/// Two GPUs with a bridge of 4 NVLinks, each on its own socket; a NIC of two ports beside the first.
const std::string two_gpus = R"(<system version="1">
  <cpu numaid="0">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="16 GT/s" link_width="16">
      <pci busid="0000:11:00.0" class="0x030200" device="0x20b5" link_speed="16 GT/s" link_width="8">
        <gpu dev="0" sm="80"><nvlink target="0000:21:00.0" count="4" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:12:00.0" class="0x020000" link_speed="8 GT/s" link_width="16">
        <nic><net speed="25000"/><net speed="25000"/></nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1">
    <pci busid="0000:21:00.0" class="0x030200" device="0x20b5" link_speed="16 GT/s" link_width="16">
      <gpu dev="1" sm="80"><nvlink target="0000:11:00.0" count="4" tclass="0x030200"/></gpu>
    </pci>
  </cpu>
</system>)";

TEST(nccl_topology, reads_gpus_nics_and_their_links) {
  const auto t = read_text(two_gpus);
  EXPECT_EQ(t.what, scope::node);
  EXPECT_EQ(t.device, "a100-pcie-80gb");
  // Switches: one on PCIe, two CPU domains. Cables: switch, GPU, GPU, NIC, CPU to CPU, NVLink.
  EXPECT_EQ(counts_of(t), (counts{2, 1, 3, 0, 6}));
  EXPECT_THAT(rates(t, "gpu0", "gpu1"), ElementsAre(4 * 25));
  EXPECT_THAT(rates(t, "gpu0", "pcie0"), ElementsAre(DoubleNear(gen4 / 2, 1e-3)));
  EXPECT_THAT(rates(t, "gpu1", "cpu1"), ElementsAre(DoubleNear(gen4, 1e-3)));
  EXPECT_THAT(rates(t, "nic0", "pcie0"), ElementsAre(DoubleNear(gen3, 1e-3)));
  EXPECT_DOUBLE_EQ(t.nic_rate.value(), 2 * 25e9 / 8);
  EXPECT_THAT(t.said.read, ElementsAre("f: 2 GPUs, 1 NIC, 1 PCIe switch, 2 CPU domains"));
}

TEST(nccl_topology, nodes_are_told_apart_by_their_hash) {
  const auto node = [](int hash) {
    return "<cpu host_hash=\"" + std::to_string(hash) +
           "\" numaid=\"0\"><pci busid=\"a\" class=\"0x030200\"/>"
           "<pci busid=\"b\" class=\"0x020000\"/></cpu>";
  };
  const auto t = read_text("<system>" + node(7) + node(9) + node(7) + "</system>");
  EXPECT_EQ(t.nodes(), 2);
  EXPECT_EQ(counts_of(t.node(0)), (counts{2, 2, 2, 0, 5}));  // two CPUs, joined
  EXPECT_EQ(counts_of(t.node(1)), (counts{1, 1, 1, 0, 2}));
}

TEST(nccl_topology, warns_of_a_gpu_without_nvlink_and_of_hidden_numa) {
  auto text = two_gpus;
  text.replace(text.find("numaid=\"1\""), 10, "numaid=\"-1\"");
  const auto begin = text.rfind("<nvlink");
  text.erase(begin, text.find("/>", begin) + 2 - begin);
  const auto t = read_text(text);
  EXPECT_THAT(t.said.warnings,
              ElementsAre("NUMA hidden: numaid -1, as in a virtual machine; which socket a NIC or "
                          "GPU is on is not known",
                          "gpu1 (0000:21:00.0) has no NVLink, others 4: its traffic takes another "
                          "way or is slower"));
}

TEST(nccl_topology, nvlinks_to_what_is_no_gpu_lead_to_an_nvswitch) {
  auto text = two_gpus;
  for (const std::string target : {"0000:21:00.0\" count=\"4\" tclass=\"0x030200",
                                   "0000:11:00.0\" count=\"4\" tclass=\"0x030200"}) {
    text.replace(text.find(target), target.size(), "fffffff:ff:ff.0\" count=\"12");
  }
  const auto t = read_text(text);
  EXPECT_THAT(neighbours(t, "nvswitch0"), ElementsAre("gpu0", "gpu1"));
  EXPECT_THAT(rates(t, link_kind::nvlink), ElementsAre(300, 300));
}

TEST(nccl_topology, refuses_bad_files) {
  EXPECT_ERROR(read_text("<system>"), input_error,
               "f:1: not well-formed XML: Start-end tags mismatch; is the file cut short?");
  EXPECT_ERROR(read_text("<system></system>"), input_error, "f:1: expected at least one <cpu>");
  EXPECT_ERROR(read_text("<system>\n<cpu numaid=\"0\"/></system>"), input_error,
               "f:1: expected at least one GPU or PCIe switch of NICs");
  EXPECT_ERROR(read_text("<system>\n<cpu numaid=\"zero\"/></system>"), input_error,
               "f:2: <cpu> numaid: 'zero': expected a whole number from -1 to 1048576");
  const auto gpu = [](const std::string& attributes, const std::string& inside) {
    return read_text("<system><cpu>\n<pci busid=\"a\" class=\"0x030200\" " + attributes + ">\n" +
                     inside + "</pci></cpu></system>");
  };
  EXPECT_ERROR(gpu("link_speed=\"fast\"", ""), input_error,
               "f:2: <pci> link_speed: 'fast': expected a PCIe speed, such as 16 GT/s");
  EXPECT_ERROR(gpu("link_speed=\"16 GT/s\" link_width=\"99\"", ""), input_error,
               "f:2: <pci> link_width: '99': expected a whole number from 0 to 32");
  EXPECT_ERROR(gpu("", "<gpu><nvlink count=\"0\" target=\"b\"/></gpu>"), input_error,
               "f:3: <nvlink> count: '0': expected a whole number from 1 to 64");
  EXPECT_ERROR(gpu("", "<gpu><nvlink count=\"1\"/></gpu>"), input_error,
               "f:3: <nvlink> target: missing");
  EXPECT_ERROR(gpu("", "<gpu><nvlink count=\"1\" target=\"b\" tclass=\"0x030200\"/></gpu>"),
               input_error, "f:3: <nvlink> target: 'b': expected the busid of a GPU of this file");
  EXPECT_ERROR(read_text("<system><cpu><nic>\n<net speed=\"quick\"/></nic></cpu></system>"),
               input_error, "f:2: <net> speed: 'quick': expected a number from 0 to 1e+08");
}

TEST(nccl_topology, xgmi_joins_gpus_of_amd) {
  const auto t = read_topology(read_source("tests/formats/data/nccl-topology/two-mi300x.xml"), {});
  EXPECT_EQ(counts_of(t), (counts{2, 0, 1, 0, 2 + 1}));
  EXPECT_THAT(rates(t, "gpu0", "gpu1"), ElementsAre(64));
  EXPECT_THAT(rates(t, "gpu0", "cpu0"), ElementsAre(DoubleNear(gen5, 1e-3)));
  EXPECT_THAT(t.said.assumed,
              Contains("two-mi300x.xml: each XGMI link of MI300X carries 64.00 GB/s each way"));
}

std::string one_gpu(const std::string& inside) {
  return "<system><cpu numaid=\"0\"><pci busid=\"a\" class=\"0x030200\" device=\"0x2941\">\n<gpu "
         "dev=\"0\" sm=\"100\">" +
         inside + "</gpu></pci></cpu></system>";
}

TEST(nccl_topology, c2c_joins_a_gpu_to_its_cpu) {
  const auto t = read_text(one_gpu("<c2c bw=\"40000\" count=\"10\"/>"));
  EXPECT_THAT(rates(t, "gpu0", "cpu0"), ElementsAre(DoubleNear(gen5, 1e-3), 400));
}

TEST(nccl_topology, never_leaves_out_a_link_in_silence) {
  EXPECT_ERROR(read_text(one_gpu("<ualink target=\"b\" count=\"4\"/>")), input_error,
               "f:2: <ualink> target: a link of a kind that is not known here; expected nvlink, "
               "xgmi, c2c, pci or net");
  EXPECT_THAT(read_text(one_gpu("<note/><note/><pcilink target=\"b\"/>")).said.warnings,
              ElementsAre("2 elements <note>: not known, left out",
                          "1 element <pcilink>: not known, left out"));
}

/// Eight GPUs by class alone, as clouds ship them.
std::string eight_gpus(const std::string& speed) {
  std::string text = "<system><cpu numaid=\"0\">";
  for (int g = 0; g < 8; ++g)
    text += "<pci busid=\"" + std::to_string(g) + "\" class=\"0x030200\" link_speed=\"" + speed +
            " GT/s\" link_width=\"16\"/>";
  return text + "</cpu></system>";
}

TEST(nccl_topology, eight_v100_are_a_hybrid_cube_mesh) {
  // As Azure ships NDv2: nothing but the file's name tells the card.
  const auto t = read_topology({"azure_ndv2-topo.xml", eight_gpus("16")}, {});
  EXPECT_EQ(counts_of(t), (counts{8, 0, 1, 0, 8 + 16}));
  EXPECT_THAT(rates(t, "gpu0", "gpu1"), ElementsAre(50));
  EXPECT_THAT(rates(t, "gpu0", "gpu2"), ElementsAre(25));
  EXPECT_THAT(rates(t, "gpu0", "gpu5"), IsEmpty());
  EXPECT_THAT(
      t.said.assumed,
      Contains("azure_ndv2-topo.xml: 6 NVLinks of 25.00 GB/s a GPU, in a hybrid cube mesh"));
}

TEST(nccl_topology, cards_that_are_not_told_are_a_doubt) {
  const auto t = read_text(eight_gpus("32"));
  EXPECT_EQ(t.device, "h100-sxm5");
  EXPECT_EQ(t.device_doubt.substr(0, 45), "PCIe at 32 GT/s fit H100 SXM5, H200 SXM5, H20");
  EXPECT_THAT(t.said.warnings,
              ElementsAre(HasSubstr("the GPUs are taken for H100 SXM5, but PCIe at 32 GT/s fit ")));
}

TEST(nccl_topology, cards_without_a_switch_are_not_given_one) {
  const auto t = read_topology({"ncv4.xml", eight_gpus("16")}, {});
  EXPECT_THAT(rates(t, link_kind::nvlink), IsEmpty());
  EXPECT_THAT(t.said.warnings, ElementsAre("A100 PCIe 80 GB has 12 NVLinks of 25.00 GB/s, the file "
                                           "does not tell which GPUs they join: PCIe "
                                           "alone joins them here"));
}

// --- Files of others. -------------------------------------------------------------------------

TEST(nccl_topology_of_azure, nd_h100_v5) {
  READ_SHARED_OR_SKIP(t, "nccl_topo_xml/azure_ndv5-topo.xml", {});
  // 8 PCIe switches of a GPU and a NIC, two sockets; the NVSwitch is assumed. Cables: 8 switches to
  // sockets, 8 GPUs, 8 NICs, socket to socket, 8 to the NVSwitch.
  EXPECT_EQ(counts_of(t), (counts{8, 8, 8 + 2 + 1, 0, 8 + 8 + 8 + 1 + 8}));
  EXPECT_EQ(t.device, "h100-sxm5");
  EXPECT_THAT(rates(t, link_kind::nvlink), AllOf(SizeIs(8), all_near(450)));
  EXPECT_THAT(rates(t, "gpu3", "pcie3"), AllOf(SizeIs(1), all_near(gen5)));
  EXPECT_DOUBLE_EQ(t.nic_rate.value(), 50e9);
  EXPECT_THAT(neighbours(t, "pcie7"), ElementsAre("cpu1", "gpu7", "nic7"));
  EXPECT_THAT(t.said.warnings, IsEmpty());
}

TEST(nccl_topology_of_azure, nd_a100_v4) {
  READ_SHARED_OR_SKIP(t, "nccl_topo_xml/azure_ndv4-topo.xml", {});
  // Four switches of two GPUs and two NICs, each in a NUMA domain of its own; 6 pairs of domains.
  EXPECT_EQ(counts_of(t), (counts{8, 8, 4 + 4 + 1, 0, 4 + 8 + 8 + 6 + 8}));
  EXPECT_EQ(t.device, "a100-sxm4-40gb");
  EXPECT_THAT(rates(t, link_kind::nvlink), AllOf(SizeIs(8), all_near(300)));
  EXPECT_THAT(rates(t, "gpu0", "pcie1"), AllOf(SizeIs(1), all_near(gen4)));  // 0001:00:00.0
  EXPECT_THAT(rates(t, "gpu2", "pcie0"), SizeIs(1));                         // 0003:00:00.0
  EXPECT_THAT(rates(t, "gpu6", "pcie2"), SizeIs(1));                         // 000d:00:00.0
  EXPECT_DOUBLE_EQ(t.nic_rate.value(), 25e9);
}

TEST(nccl_topology_of_azure, nc96_a100_v4_whose_nvlinks_lead_to_themselves) {
  READ_SHARED_OR_SKIP(t, "nccl_topo_xml/azure_ncv4-topo.xml", {});
  // A GPU in each of four NUMA domains, eth0 in the first: 4 + 1 cables, 6 pairs of domains.
  EXPECT_EQ(counts_of(t), (counts{4, 1, 4, 0, 4 + 1 + 6}));
  EXPECT_EQ(t.device, "a100-pcie-80gb");
  EXPECT_THAT(rates(t, "gpu0", "cpu0"), all_near(gen4));  // link_speed is empty: assumed
  EXPECT_DOUBLE_EQ(t.nic_rate.value(), 12.5e9);
  EXPECT_THAT(t.said.warnings, Contains("4 GPUs, the first 0001:00:00.0: NVLinks to itself; left "
                                        "out, which GPU they lead to is not in the file"));
}

TEST(nccl_topology_of_azure, nc48_a100_v4) {
  READ_SHARED_OR_SKIP(t, "nccl_topo_xml/azure_nc48v4-topo.xml", {});
  EXPECT_EQ(counts_of(t), (counts{2, 1, 2, 0, 2 + 1 + 1 + 1}));
  EXPECT_THAT(rates(t, "gpu0", "gpu1"), ElementsAre(300));
  EXPECT_DOUBLE_EQ(t.nic_rate.value(), 12.5e9);
}

TEST(nccl_topology_of_aws, p4d_and_p4de) {
  READ_SHARED_OR_SKIP(t, "nccl_topo_xml/aws_p4d-24xl-topo.xml", {});
  // Four switches of two GPUs and a NIC, two sockets.
  EXPECT_EQ(counts_of(t), (counts{8, 4, 4 + 2 + 1, 0, 4 + 8 + 4 + 1 + 8}));
  EXPECT_EQ(t.device, "a100-sxm4-40gb");
  EXPECT_THAT(rates(t, "nic3", "pcie3"), AllOf(SizeIs(1), all_near(gen3)));
  EXPECT_DOUBLE_EQ(t.nic_rate.value(), 12.5e9);  // EFA of 100 Gb/s
  READ_SHARED_OR_SKIP(e, "nccl_topo_xml/aws_p4de-24xl-topo.xml", {});
  EXPECT_EQ(counts_of(e), counts_of(t));
  EXPECT_EQ(e.device, "a100-sxm4-80gb");
}

TEST(nccl_topology_of_aws, p5_lists_nics_alone) {
  READ_SHARED_OR_SKIP(t, "nccl_topo_xml/aws_p5.48xl-topo.xml", {});
  // Eight switches of four NICs; a GPU each is assumed and its NICs are one of 4 x 100 Gb/s.
  EXPECT_EQ(counts_of(t), (counts{8, 8, 8 + 2 + 1, 0, 8 + 8 + 8 + 1 + 8}));
  EXPECT_EQ(t.device, "h100-sxm5");
  EXPECT_DOUBLE_EQ(t.nic_rate.value(), 50e9);
  EXPECT_THAT(t.said.read, ElementsAre("aws_p5.48xl-topo.xml: 0 GPUs, 32 NICs, 8 PCIe switches, 2 "
                                       "CPU domains"));
  EXPECT_THAT(t.said.missing, Contains(HasSubstr("GPUs: the file lists none")));
}

TEST(nccl_topology_of_oci, h100_with_nvswitches_and_two_ports_a_nic) {
  READ_SHARED_OR_SKIP(t, "nccl_topo_xml/oci_H100-topology.xml", {});
  // Three PCIe switches a GPU, two sockets, the four NVSwitches as one.
  EXPECT_EQ(counts_of(t), (counts{8, 8, 24 + 2 + 1, 0, 24 + 8 + 8 + 1 + 8}));
  EXPECT_EQ(t.device, "h100-sxm5");
  EXPECT_THAT(rates(t, link_kind::nvlink), AllOf(SizeIs(8), all_near((5 + 5 + 4 + 4) * 25)));
  EXPECT_DOUBLE_EQ(t.nic_rate.value(), 2 * 180e9 / 8);
  EXPECT_THAT(rates(t, "pcie0", "cpu0"), ElementsAre(8));  // 5 GT/s x 16 / 8 x 8 / 10
  EXPECT_THAT(t.said.warnings, ElementsAre("8 PCIe switches, the first 0000:08:00.0: linked at 5 "
                                           "GT/s, the devices behind at 32; taken as written, but "
                                           "idle links are often dumped too slow"));
}

TEST(nccl_topology_of_others, a_truncated_paste_is_refused) {
  const std::string file = "../shared/inputs/nccl_topo_xml/h200_baremetal_truncated_paste.xml";
  NEEDS_SHARED(file);
  EXPECT_ERROR(read_topology(read_source(file), {}), input_error,
               file + ":20: not well-formed XML: Start-end tags mismatch; is the file cut short?");
}

}  // namespace nccl_topology_test
}  // namespace attnsim::formats
