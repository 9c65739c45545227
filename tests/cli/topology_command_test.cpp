// attnsim topology import, export, show: from files to plans, and every mistake told in one line.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "formats/importer.hpp"
#include "model/cluster/cluster.hpp"
#include "tests/cli/program.hpp"
#include "tests/shared_files.hpp"

namespace attnsim {
namespace topology_command_test {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

const std::string data = "tests/formats/data/";

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

class own_files : public testing::TestWithParam<std::string> {};

TEST_P(own_files, import_to_clusters_that_check) {
  const temporary_folder folder;
  const auto out = folder.file("c.yaml");
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data + GetParam())) {
    ++files;
    const auto import = run_program("topology import " + entry.path().string() + " --out " + out);
    EXPECT_EQ(import.exit_code, 0) << import.messages;
    EXPECT_EQ(import.output, "");
    EXPECT_THAT(read_all(out), StartsWith("# Read: "));
    EXPECT_EQ(run_program("topology check " + out).exit_code, 0) << entry.path();
  }
  EXPECT_GT(files, 0u);
}

std::vector<std::string> names_of_importers() {
  std::vector<std::string> names;
  for (const auto& i : formats::known_importers()) names.emplace_back(i.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(formats, own_files, testing::ValuesIn(names_of_importers()));

TEST(import, help_and_documentation_are_made_of_the_importers) {
  const auto help = run_program("topology import --help").output;
  for (const auto& i : formats::known_importers())
    EXPECT_THAT(help, HasSubstr(fmt::format("{}: {}", i.name, i.what)));
  const auto table = run_program("topology formats").output;
  EXPECT_THAT(table, StartsWith("| format | files | read | assumed | refused |\n"));
  EXPECT_THAT(read_all("docs/inputs.md"), HasSubstr(table))
      << "to renew it: the output of attnsim topology formats";
}

TEST(import, reads_standard_input) {
  const temporary_folder folder;
  const auto out = folder.file("out");
  const auto command = std::string(ATTNSIM_PROGRAM) + " topology import - --name mine <" + data +
                       "slurm/blocks.txt >" + out;
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(read_all(out), HasSubstr("\nname: mine\n"));
}

TEST(import, reads_what_a_driver_prints_into_a_pipe) {
  const temporary_folder folder;
  const auto out = folder.file("out");
  const auto command =
      "printf '\\t\\033[4mGPU0\\tGPU1\\tCPU Affinity\\tNUMA Affinity\\tGPU NUMA ID\\033[0m\\n"
      "GPU0\\t X \\tNV18\\t0-31\\t0\\t\\tN/A\\nGPU1\\tNV18\\t X \\t0-31\\t0\\t\\tN/A\\n' | " +
      std::string(ATTNSIM_PROGRAM) + " topology import - --quiet >" + out;
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(read_all(out), HasSubstr("# Read: <stdin>: 2 GPUs, 0 NICs\n"));
  EXPECT_THAT(
      read_all(out),
      HasSubstr("{from: gpu0, to: gpu1, bandwidth: 450 GB/s, latency: 1 us, kind: nvlink}"));
}

TEST(import, reads_gzip) {
  const temporary_folder folder;
  const auto packed = folder.file("two-levels.conf.gz");
  ASSERT_EQ(std::system(("gzip -c " + data + "slurm/two-levels.conf >" + packed).c_str()), 0);
  const auto plain = run_program("topology import --name c " + data + "slurm/two-levels.conf");
  EXPECT_EQ(run_program("topology import --name c " + packed).output,
            replaced(plain.output, "two-levels.conf", "two-levels.conf.gz"));
}

/// The warnings of a prediction on an imported file.
json warnings_of(const std::string& file, const std::string& flags) {
  const temporary_folder folder;
  const auto cluster = folder.file("c.yaml");
  EXPECT_EQ(run_program("topology import " + data + file + " --out " + cluster).exit_code, 0);
  const auto r = run_program("predict " + cluster +
                             " --seq 12K --heads 8 --pass forward --format json " + flags);
  return json::parse(r.output)["warnings"];
}

TEST(import, what_it_guessed_is_a_warning_of_every_prediction) {
  const auto guessed = warnings_of("nvidia-smi/smi_trimmed.txt", "");
  ASSERT_FALSE(guessed.empty());
  EXPECT_THAT(
      guessed[0].get<std::string>(),
      StartsWith(
          "assumed in the cluster's file: device: 18 NVLinks a GPU, no NUMA node a GPU fit H100 "
          "SXM5, H200 SXM5, H20, "));
  EXPECT_EQ(warnings_of("nvidia-smi/smi_trimmed.txt", "--device h200-sxm5"), json::array());
  EXPECT_EQ(warnings_of("nvidia-smi/ansi.txt", "")[0],
            "device ideal: no real device computes at its peak; device names one");
}

TEST(import, nvlink_in_pairs_is_planned_with_inner_groups_of_two) {
  const temporary_folder folder;
  const auto cluster = folder.file("c.yaml");
  ASSERT_EQ(run_program("topology import " + data +
                        "nvidia-smi/nvlink-pairs.txt --device "
                        "a100-pcie-80gb --out " +
                        cluster)
                .exit_code,
            0);
  const auto r = run_program(
      "plan " + cluster + " --seq 8K --heads 32 --kv-heads 8 --pass forward --format json --quiet");
  const auto best = json::parse(r.output)["candidates"][0];
  // The innermost groups are of two consecutive devices, which are the pairs.
  const int heads_exchanged = best["ulysses"];
  EXPECT_EQ(heads_exchanged > 1 ? json(heads_exchanged) : best["grid"][1], json(2));
  EXPECT_EQ(best["placement"], "node-major");
}

void expect_plan(const std::string& node_file) {
  const std::string file = "../shared/inputs/nccl_topo_xml/" + node_file;
  NEEDS_SHARED(file);
  const temporary_folder folder;
  const auto cluster = folder.file("c.yaml");
  ASSERT_EQ(run_program("topology import " + file +
                        " --nodes 4 --fabric "
                        "'{kind: rail-optimized, nodes_per_leaf: 32}' --out " +
                        cluster)
                .exit_code,
            0);
  const auto r = run_program("plan " + cluster +
                             " --seq 128K --heads 32 --kv-heads 8 --top 1 --format json --quiet");
  ASSERT_EQ(r.exit_code, 0) << r.messages;
  EXPECT_EQ(json::parse(r.output)["candidates"][0]["ranks"], 32);
}

TEST(import, azure_nd_h100_v5_and_a_fabric_line_are_planned) {
  expect_plan("azure_ndv5-topo.xml");
}
TEST(import, oci_h100_and_a_fabric_line_are_planned) {
  expect_plan("oci_H100-topology.xml");
}

TEST(import, a_node_file_and_a_fabric_file_become_one_cluster) {
  const temporary_folder folder;
  const auto cluster = folder.file("c.yaml");
  const auto import =
      run_program("topology import p5 " + data + "slurm/two-levels.conf --out " + cluster);
  ASSERT_EQ(import.exit_code, 0) << import.messages;
  EXPECT_THAT(read_all(cluster), HasSubstr("\nnodes: 7\n"));
  EXPECT_THAT(run_program("topology check " + cluster).output, HasSubstr(": 56 devices, "));
}

TEST(import, says_what_was_read_assumed_and_missing) {
  const auto r = run_program("topology import " + data + "nccl-topology/two-a100.xml");
  EXPECT_THAT(r.output,
              HasSubstr("# Read: two-a100.xml: 2 GPUs, 1 NIC, 1 PCIe switch, 2 CPU domains\n"));
  EXPECT_THAT(r.output, HasSubstr("# Assumed: "));
  EXPECT_THAT(r.output, HasSubstr("# Missing: "));
  EXPECT_THAT(r.output, HasSubstr("# Warning: NUMA hidden"));
  EXPECT_THAT(r.messages, HasSubstr("warning: NUMA hidden"));
  const auto quiet = run_program("topology import --quiet " + data + "nccl-topology/two-a100.xml");
  EXPECT_EQ(quiet.output, r.output);
  EXPECT_EQ(quiet.messages, "");
}

/// In TACCL's file of 1 KB chunks the way over the NIC has less latency than NVLink.
TEST(import, of_eight_v100_keeps_messages_on_nvlink) {
  const std::string file = "../shared/inputs/taccl/topo-ndv2-1KB.json";
  NEEDS_SHARED(file);
  const temporary_folder folder;
  const auto cluster = folder.file("c.yaml");
  ASSERT_EQ(run_program("topology import " + file + " --quiet --out " + cluster).exit_code, 0);
  const auto shown = run_program("topology show " + cluster).output;
  EXPECT_THAT(shown, HasSubstr("8 x v100-sxm2-32gb in 1 node of 8"));
  std::istringstream lines(shown);
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("gpu") || line.starts_with("gpu ")) continue;
    ++rows;
    const auto to_gpus = line.substr(0, line.rfind("  "));
    EXPECT_EQ(to_gpus.find("PCI"), std::string::npos) << line;
  }
  EXPECT_EQ(rows, 8);
}

/// Two GPUs with NVLink of 1.5 us and a NIC of 0.6 us to each: what is predicted does not depend on the NIC.
TEST(import, no_message_inside_a_node_takes_a_nic) {
  const auto time = [](const std::string& nic_latency) {
    const temporary_folder folder;
    const auto to_nic = [&](const std::string& gpu) {
      return "  - {from: " + gpu + ", to: n, bandwidth: 50 GB/s, latency: " + nic_latency +
             ", kind: pcie}\n";
    };
    const auto file =
        folder.write("c.yaml",
                     "name: c\ndevice: h100-sxm5\ngraph:\n  vertices:\n"
                     "  - {name: a, kind: device, node: 0}\n  - {name: b, kind: device, node: 0}\n"
                     "  - {name: n, kind: nic, node: 0}\n  links:\n"
                     "  - {from: a, to: b, bandwidth: 450 GB/s, latency: 1.5 us, kind: nvlink}\n" +
                         to_nic("a") + to_nic("b"));
    const auto r = run_program("predict " + file + " --seq 64K --format json");
    EXPECT_EQ(r.exit_code, 0) << r.messages;
    return json::parse(r.output)["time_s"].get<double>();
  };
  EXPECT_EQ(time("0.6 us"), time("60 us"));
}

TEST(export_command, writes_every_format) {
  const temporary_folder folder;
  for (const std::string format : {"graphml", "dot", "simgrid", "astra-sim"}) {
    const auto out = folder.file(format);
    const auto r = run_program("topology export p5 --nodes 2 --to " + format + " --out " + out);
    EXPECT_EQ(r.exit_code, 0) << r.messages;
    EXPECT_EQ(run_program("topology export p5 --nodes 2 --to " + format).output, read_all(out));
  }
}

TEST(show, draws_matrix_tiers_bisection_and_svg) {
  const temporary_folder folder;
  const auto svg = folder.file("c.svg");
  const auto r = run_program("topology show nd-h100-v5 --nodes 2 --svg " + svg);
  EXPECT_THAT(r.output, HasSubstr("gpu0            X    NV450"));
  EXPECT_THAT(r.output, HasSubstr("leaf -> spine"));
  EXPECT_THAT(r.output, HasSubstr("bisection bandwidth: 400.0 GB/s, 50.00 GB/s a device\n"));
  EXPECT_THAT(r.output, ContainsRegex("nvlink +published, rings of two measured here\n"));
  EXPECT_THAT(read_all(svg), StartsWith("<svg "));
}

// --- Mistakes. FILE stands for a file with the given text, NAMES for all importers. ---------------------------------------

struct mistake {
  const char* arguments;
  const char* text;
  std::string message;
};

class topology_mistakes : public testing::TestWithParam<mistake> {};

TEST_P(topology_mistakes, are_told_in_one_line_and_nothing_is_written) {
  const temporary_folder folder;
  const auto file = folder.write("file", GetParam().text), out = folder.file("out");
  const auto r = run_program(replaced(GetParam().arguments, "FILE", file) + " --out " + out);
  EXPECT_EQ(r.exit_code, 2);
  const auto message = replaced(GetParam().message, "FILE", file);
  EXPECT_EQ(r.messages,
            "attnsim: " +
                replaced(message, "NAMES", formats::names_of(formats::known_importers())) + "\n");
  EXPECT_EQ(r.output, "");
  EXPECT_FALSE(std::filesystem::exists(out));
}

constexpr const char* slurm = "SwitchName=s Nodes=n[1-2]\n";

INSTANTIATE_TEST_SUITE_P(
    flags, topology_mistakes,
    testing::Values(
        mistake{"topology import FILE", "hello", "FILE: of no known format; --as one of: NAMES"},
        mistake{"topology import FILE --as visio", slurm, "--as: 'visio': expected one of: NAMES"},
        mistake{"topology import no-such-file", "",
                "no-such-file: cannot be read: No such file or directory"},
        mistake{"topology import FILE --device h9000", slurm,
                fmt::format("--device: 'h9000': expected a file or one of: {}",
                            fmt::join(shipped_devices(), ", "))},
        mistake{
            "topology import FILE --nic-bandwidth fast", slurm,
            "--nic-bandwidth: 'fast': expected a bandwidth with its unit, such as '400 Gb/s' or "
            "'50 GB/s'"},
        mistake{"topology import FILE --nic-bandwidth '0 Gb/s'", slurm,
                "--nic-bandwidth: '0 Gb/s': expected more than zero"},
        mistake{
            "topology import FILE --devices-per-host many", slurm,
            "--devices-per-host: 'many': expected a whole number of at least 1, such as 8, 128K "
            "or 1M"},
        mistake{"topology import FILE --devices-per-host 1M", slurm,
                "--devices-per-host: '1M': expected at most 1024"},
        mistake{"topology import FILE --nodes none", slurm,
                "--nodes: 'none': expected a whole number of at least 1, such as 8, 128K or 1M"},
        mistake{"topology import FILE FILE", slurm, "expected one file of a fabric at most"},
        mistake{"topology import FILE --fabric '{kind: woven}'", slurm,
                "what was read makes no cluster: file:14: fabric.kind: 'woven': expected one of: "
                "star, fat-tree, rail-optimized, dragonfly, torus, multi-plane, graph, none"},
        mistake{"topology export p5 --to visio", "",
                "--to: 'visio': expected one of: graphml, simgrid, dot, astra-sim"},
        mistake{"topology export pcie-8 --to astra-sim --set node.sockets=1 --set "
                "node.peer_access=all --set "
                "node.devices_per_switch=2 --set node.uplink_bandwidth='10 GB/s'",
                "",
                "pcie-8: an ASTRA-sim file has one rate a dimension, but node0.gpu0 reaches "
                "node0.gpu1 at 31.50 GB/s and node0.gpu2 at 10.00 GB/s"}));

INSTANTIATE_TEST_SUITE_P(
    files, topology_mistakes,
    testing::Values(
        mistake{"topology import FILE", "<system>\n<cpu>",
                "FILE:2: not well-formed XML: Start-end tags mismatch; is the file cut short?"},
        mistake{"topology import FILE", "<!DOCTYPE s [<!ENTITY a \"b\">]>\n<system/>",
                "FILE:1: expected XML without declarations of its own (<!DOCTYPE ... [...]>)"},
        mistake{"topology import FILE", "<system>\n</system>",
                "FILE:1: expected at least one <cpu>"},
        mistake{"topology import FILE",
                "<system><cpu>\n<pci class=\"0x030200\" link_speed=\"warp 9\"/></cpu></system>",
                "FILE:2: <pci> link_speed: 'warp 9': expected a PCIe speed, such as 16 GT/s"},
        mistake{"topology import FILE", "<graphs>\n</graphs>",
                "FILE:1: expected at least one <graph>"},
        mistake{"topology import FILE", "GPU0 GPU1\nGPU0 X NV1\n",
                "FILE:2: the matrix ends after 1 of 2 rows: row GPU1 is missing"},
        mistake{"topology import FILE", "GPU0 GPU1\nGPU0 X NV1\nGPU1 PIX X\n",
                "FILE: GPU0 to GPU1 and back differ: expected a symmetric matrix"},
        mistake{"topology import FILE", "GPU0 GPU1\nGPU0 X ?\nGPU1 PIX X\n",
                "FILE:2: GPU0: '?': expected X, NV#, PIX, PXB, PHB, NODE or SYS"},
        mistake{"topology import FILE", "SwitchName=a Switches=b\n",
                "FILE:1: Switches: 'b': expected names of switches of this file; b is none"},
        mistake{"topology import FILE", "SwitchName=a Nodes=n[3-1]\n",
                "FILE:1: Nodes: 'n[3-1]': expected a host list, such as node[01-08,10]"},
        mistake{"topology import FILE", "SwitchName=a Nodes=n[0-9999999]\n",
                "FILE: describes more than 131072 hosts"},
        mistake{"topology import FILE", "blocks:\n- {nodes: [a]}\n",
                "FILE:2: blocks[0].switch: missing"},
        mistake{"topology import FILE", "Switch 2 \"S\"\n[1] \"H\"[1]\n",
                "FILE:2: port: 'H': expected the name of a record of this file"},
        mistake{"topology import FILE",
                "topology: [Ring]\nnpus_count: [tbd]\nbandwidth: [1]\nlatency: [1]\n",
                "FILE:2: npus_count[0]: 'tbd': expected a whole number"},
        mistake{"topology import FILE",
                "topology: [Ring]\nnpus_count: [4]\nbandwidth: [tbd]\nlatency: [1]\n",
                "FILE:3: bandwidth[0]: 'tbd': expected a number"},
        mistake{"topology import FILE",
                "Nodes 3\nTiers 1\nTier 0\nRadix_Down 2\nDownlink_speed_Gbps 1\n",
                "FILE:1: Nodes: '3': expected 2, as the tiers' ports make"},
        mistake{"topology import FILE", "<platform>\n<storage/></platform>",
                "FILE:2: <storage>: expected zone, cluster, host, router, link or route"},
        mistake{"topology import FILE", "<platform><host id='a'/><host id='b'/></platform>",
                "what was read makes no cluster: file:4: graph.links: '': no path from a to b"},
        mistake{"topology import FILE", "{\"gpus_per_node\": 8,\n", "FILE:2: not valid JSON"},
        mistake{"topology import FILE", "{\"gpus_per_node\": 8}", "FILE:1: name: missing"},
        mistake{"topology import FILE", "<graphml><graph><node/></graph></graphml>",
                "FILE:1: <node> id: missing"},
        mistake{"topology import FILE --as attnsim", "name: x\nnodes: 1\ndevices_per_node: 1\n",
                "FILE:1: device: missing"},
        mistake{"topology import FILE", "device: &a {b: *a}\n",
                "FILE:1: expected no aliases that multiply its values"}));

TEST(show_mistakes, svg_of_too_much_or_to_nowhere) {
  EXPECT_EQ(run_program("topology show nd-h100-v5 --nodes 1024 --svg x.svg").messages,
            "attnsim: nd-h100-v5: 17696 parts are too many to draw, at most 4096; fewer with "
            "--nodes\n");
  EXPECT_EQ(
      run_program("topology show p5 --nodes 1 --svg /no/such/folder/x.svg").messages,
      "attnsim: --svg: '/no/such/folder/x.svg': expected a file in a folder that can be written "
      "(/no/such/folder: No such file or directory)\n");
}

}  // namespace topology_command_test
}  // namespace attnsim
