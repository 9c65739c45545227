from os import PathLike
from typing import Any, Literal, Mapping, NamedTuple, Sequence

from pandas import DataFrame

__version__: str

PassName = Literal["forward", "backward", "both", "recompute"]

class InputError(ValueError):
    """Bad input: what it is, the value, what is expected, in one line."""

class Infeasible(ValueError):
    """A request that cannot be met; names the nearest feasible ones, in one line."""

class Cluster:
    """Devices in nodes and the network that joins them, from a cluster file."""

    def __init__(self, name: str | PathLike[str], *, nodes: int | None = None, device: str | None = None,
                 host: str | None = None, set: Mapping[str, object] | None = None) -> None: ...
    @staticmethod
    def from_yaml(text: str, *, nodes: int | None = None, device: str | None = None,
                  host: str | None = None, set: Mapping[str, object] | None = None) -> Cluster: ...
    @property
    def name(self) -> str: ...
    @property
    def nodes(self) -> int: ...
    @property
    def devices_per_node(self) -> int: ...
    @property
    def devices(self) -> int:
        """How many there are."""
    @property
    def device(self) -> str: ...
    @property
    def host(self) -> str:
        """Empty without one."""
    @property
    def memory_bytes(self) -> int:
        """Of one device."""
    @property
    def peak_tflops(self) -> float:
        """Of one device in bf16, dense."""

class Attention:
    """One attention layer: Q of shape [batch, seq, heads, head_dim], K of [batch, seq, kv_heads, head_dim], V of [batch, seq, kv_heads, v_head_dim]."""

    def __init__(self, seq: int | str, *, heads: int | None = None, kv_heads: int | None = None,
                 head_dim: int | None = None, model: str | None = None, batch: int = 1,
                 mask: Literal["full", "causal"] | None = None, window: int | str | None = None,
                 layer: Literal["full", "window"] | None = None,
                 documents: Sequence[int] | str | None = None, dtype: Literal["bf16", "fp16", "fp32", "fp8"] = "bf16",
                 pad_to: int = 1, prefix: int | str = 0, kv_seq: int | str = 0,
                 v_head_dim: int | None = None, sinks: bool | None = None,
                 latent: bool = False, wire_dtype: Literal["bf16", "fp16", "fp8"] | None = None,
                 keep_first: int | str = 0, cache_lengths: Sequence[int] | str | None = None) -> None: ...
    @property
    def seq(self) -> int:
        """tokens, including the padding"""
    @property
    def padding(self) -> int:
        """trailing tokens without data"""
    @property
    def prefix(self) -> int:
        """cached tokens before the sequence"""
    @property
    def cache_lengths(self) -> list[int]:
        """cached tokens of each request of a batch; empty: all alike"""
    @property
    def kv_seq(self) -> int:
        """tokens of another sequence that is attended to; 0: none"""
    @property
    def batch(self) -> int:
        """sequences"""
    @property
    def heads(self) -> int:
        """query heads"""
    @property
    def kv_heads(self) -> int:
        """key and value heads"""
    @property
    def head_dim(self) -> int:
        """elements of a head, of queries and keys"""
    @property
    def v_head_dim(self) -> int:
        """of values and outputs"""
    @property
    def mask(self) -> str:
        """full or causal"""
    @property
    def window(self) -> int:
        """sliding window in tokens; 0: none"""
    @property
    def keep_first(self) -> int:
        """first tokens that the window keeps visible"""
    @property
    def latent(self) -> bool:
        """values are in the keys, as in absorbed latent attention"""
    @property
    def sinks(self) -> bool:
        """a logit a head in the softmax's denominator"""
    @property
    def documents(self) -> list[int]:
        """tokens of each packed document; empty: one"""
    @property
    def dtype(self) -> str:
        """bf16, fp16, fp32 or fp8"""
    @property
    def wire_dtype(self) -> str:
        """of queries, keys and values between ranks"""

class Strategy:
    """How attention is distributed; what is not given is the schedule's choice."""

    def __init__(self, schedule: str = "ring", *, grid: tuple[int, int] | str | None = None,
                 ulysses: int | None = None, tp: int = 1, tokens: str | None = None, placement: str | None = None,
                 kernel: str | None = None, kv_order: str | None = None, reduction: str | None = None, merges: str | None = None,
                 launch_order: str | None = None, partials: str | None = None,
                 gradients: str | None = None, framework: str | None = None, levels: str | None = None,
                 parts: int | None = None, shares: str | None = None, schedule_file: str | None = None,
                 keys_sent: Literal["expanded", "latent"] | None = None) -> None: ...
    @property
    def schedule(self) -> str: ...

class Pass:
    """One pass of a prediction."""

    @property
    def name(self) -> str:
        """forward or backward"""
    @property
    def time_s(self) -> float:
        """on the slowest rank, in s"""
    @property
    def compute_s(self) -> float:
        """the device computes, in s"""
    @property
    def exposed_communication_s(self) -> float:
        """the device waits for data, in s"""
    @property
    def host_s(self) -> float:
        """what the host takes to launch it, in s"""

class Prediction:
    """Time of a strategy for one attention layer over all its heads, on the slowest rank."""

    class BytesSentPerRank(NamedTuple):
        max: int
        mean: float

    class Bottleneck(NamedTuple):
        kind: str
        name: str
        share: float

    @property
    def schema(self) -> str:
        """of these figures"""
    @property
    def cluster(self) -> str:
        """its name"""
    @property
    def ranks(self) -> int:
        """devices that take part"""
    @property
    def schedule(self) -> str:
        """algorithm"""
    @property
    def grid(self) -> tuple[int, int]:
        """rows and columns of ranks"""
    @property
    def ulysses(self) -> int:
        """ranks of a group that exchanges tokens for heads"""
    @property
    def tp(self) -> int:
        """tensor-parallel ranks"""
    @property
    def dp(self) -> int:
        """groups of ranks, each with its part of the batch"""
    @property
    def tokens(self) -> str:
        """contiguous, zigzag or striped"""
    @property
    def placement(self) -> str:
        """which ranks share a node"""
    @property
    def kv_order(self) -> str:
        """direct or transposed"""
    @property
    def levels(self) -> str:
        """of a composed schedule: what the ranks along each axis do"""
    @property
    def keys_sent(self) -> str:
        """expanded or latent: what travels of keys and values"""
    @property
    def parts(self) -> int:
        """of the heads, one after the other"""
    @property
    def shares(self) -> list[int]:
        """of the tokens, by chunk; empty: equal"""
    @property
    def by(self) -> str:
        """simulation or analytic"""
    @property
    def time_s(self) -> float:
        """of all passes, on the slowest rank, in s"""
    @property
    def time_interval_s(self) -> tuple[float, float]:
        """low and high, by the profile's stated uncertainties, in s"""
    @property
    def compute_s(self) -> float:
        """the device computes, in s"""
    @property
    def exposed_communication_s(self) -> float:
        """the device waits for data, in s"""
    @property
    def host_s(self) -> float:
        """what the host takes to launch it all; 0 without a host, in s"""
    @property
    def bytes_sent_per_rank(self) -> BytesSentPerRank:
        """by the rank that sends most, and on average, in bytes"""
    @property
    def peak_memory_bytes(self) -> int:
        """on the rank that takes most, in bytes"""
    @property
    def cache_bytes(self) -> int:
        """of them K and V, as a cache keeps them for later tokens, in bytes"""
    @property
    def tokens_per_second(self) -> float:
        """of all sequences, without cached ones, through this layer, in tokens/s"""
    @property
    def time_per_token_s(self) -> float:
        """time over the tokens of a sequence, without cached ones: this layer's, in s"""
    @property
    def tflops_per_device(self) -> float:
        """useful operations by ranks and time, in TFLOP/s"""
    @property
    def tflop_per_device(self) -> float:
        """useful operations by ranks, in TFLOP"""
    @property
    def bottleneck(self) -> Bottleneck:
        """what bounds the longest pass, and the share of the time it is busy"""
    @property
    def limit_s(self) -> float:
        """what no schedule can beat, each rank home to as many tokens, in s"""
    @property
    def times_limit(self) -> float:
        """time over the limit"""
    @property
    def limit_bound_by(self) -> str:
        """work, latency, or the links that all bytes between two parts cross"""
    @property
    def feasible(self) -> bool:
        """it fits the device's memory"""
    @property
    def warnings(self) -> list[str]:
        """in words"""
    @property
    def strategy(self) -> Strategy:
        """for predict and simulate"""
    @property
    def problem(self) -> Attention:
        """what was asked"""
    @property
    def pass_(self) -> str:
        """what was asked: forward, backward, both or recompute"""
    @property
    def passes(self) -> list[Pass]:
        """in the order in which they run"""
    def to_dict(self) -> dict[str, Any]: ...

class Rejection:
    """A strategy that cannot run, and why."""

    @property
    def schedule(self) -> str: ...
    @property
    def grid(self) -> tuple[int, int]:
        """(rows, columns)"""
    @property
    def reason(self) -> str: ...

class Plan:
    """Strategies ranked by their simulated time."""

    @property
    def problem(self) -> Attention:
        """what was asked"""
    @property
    def pass_(self) -> str:
        """what was asked: forward, backward, both or recompute"""
    @property
    def candidates(self) -> list[Prediction]:
        """Predictions, best first."""
    @property
    def rejected(self) -> list[Rejection]: ...
    @property
    def on_fewer(self) -> list[Prediction]:
        """The best on one rank, one node, half of all."""
    @property
    def considered(self) -> int:
        """Strategies estimated."""
    @property
    def simulated(self) -> int: ...
    @property
    def best(self) -> Prediction: ...
    def frame(self) -> DataFrame: ...

class Step:
    """A predicted training step or prefill, as `attnsim step` prints it."""

    class Degrees(NamedTuple):
        tp: int
        cp: int
        pp: int
        vp: int
        dp: int
        ep: int

    class Parts(NamedTuple):
        matmul_s: float
        attention_s: float
        elementwise_s: float
        exposed_communication_s: float
        tensor_exchange_s: float
        expert_exchange_s: float
        data_exchange_s: float
        bubble_s: float
        optimizer_s: float

    class StepSpeedupByAttention(NamedTuple):
        twice: float
        four_times: float
        free: float

    class Bottleneck(NamedTuple):
        kind: str
        name: str
        share: float

    class Memory(NamedTuple):
        parameters: int
        gradients: int
        optimizer: int
        activations: int
        buffers: int
        workspace: int

    @property
    def schema(self) -> str:
        """of these figures"""
    @property
    def cluster(self) -> str:
        """its name"""
    @property
    def model(self) -> str:
        """its name"""
    @property
    def task(self) -> str:
        """train or prefill"""
    @property
    def dtype(self) -> str:
        """bf16 or fp8-linear"""
    @property
    def ranks(self) -> int:
        """devices that take part"""
    @property
    def degrees(self) -> Degrees:
        """ranks of each kind of parallelism; vp: chunks of layers a pipeline rank"""
    @property
    def shard(self) -> str:
        """what ranks with the same parameters keep once"""
    @property
    def recompute(self) -> str:
        """none, selective or full"""
    @property
    def schedule(self) -> str:
        """attention's algorithm"""
    @property
    def grid(self) -> tuple[int, int]:
        """rows and columns of attention's ranks"""
    @property
    def ulysses(self) -> int:
        """ranks of a group that exchanges tokens for heads"""
    @property
    def seq(self) -> int:
        """tokens of a sequence"""
    @property
    def prefix(self) -> int:
        """cached tokens before each sequence"""
    @property
    def global_batch(self) -> int:
        """sequences of a step"""
    @property
    def micro_batch(self) -> int:
        """sequences that pass the layers together"""
    @property
    def micro_batches(self) -> int:
        """that pass a pipeline in a step"""
    @property
    def step_time_s(self) -> float:
        """of a step; of a prefill, to the first token, in s"""
    @property
    def step_time_interval_s(self) -> tuple[float, float]:
        """low and high, by the profile's stated uncertainties, in s"""
    @property
    def tokens_per_s_per_device(self) -> float:
        """of all devices, by their number, in tokens/s"""
    @property
    def model_tflops_per_device(self) -> float:
        """6 for each active parameter and token, 12 for each visible pair and element of a head, nothing computed again; a prefill a third, in TFLOP/s"""
    @property
    def model_flops_utilisation(self) -> float:
        """the same over the device's bf16 peak"""
    @property
    def parts(self) -> Parts:
        """what the pipeline rank that is busy longest spends its time on: they add up to the step (exposed_communication_s has the three exchanges together), in s"""
    @property
    def attention_share(self) -> float:
        """of the step's time, its exchanges included"""
    @property
    def step_speedup_by_attention(self) -> StepSpeedupByAttention:
        """of the step if attention were 2 or 4 times as fast, or took no time"""
    @property
    def attention_layer_s(self) -> float:
        """one layer's attention of one micro-batch, forward and backward, in s"""
    @property
    def bottleneck(self) -> Bottleneck:
        """the part that takes most, what holds it up, its share of the time"""
    @property
    def peak_memory_bytes(self) -> int:
        """on the pipeline rank that holds most, in bytes"""
    @property
    def memory(self) -> Memory:
        """of them by kind, in bytes"""
    @property
    def peak_memory_by_pipeline_rank_bytes(self) -> list[int]:
        """of each, in bytes"""
    @property
    def feasible(self) -> bool:
        """it fits the device's memory"""
    @property
    def warnings(self) -> list[str]:
        """in words"""

class Timeline:
    """What happened when; of ranks and links that behave alike one is listed."""

    @property
    def duration_s(self) -> float: ...
    def operations(self) -> DataFrame: ...
    def ranks(self) -> DataFrame: ...
    def links(self) -> DataFrame: ...
    def loads(self) -> DataFrame: ...

class Calibration:
    """A device profile fitted to measurements."""

    @property
    def fitted(self) -> list[str]:
        """A line a parameter: value, points, residuals."""
    @property
    def kept(self) -> list[str]:
        """Parameters that keep their prior, and why."""
    @property
    def outliers(self) -> list[str]:
        """Points far off, and by how much."""
    @property
    def warnings(self) -> list[str]: ...
    def to_yaml(self) -> str: ...

def calibrate(device: str, measurements: Sequence[tuple[str | PathLike[str], Cluster]]) -> Calibration: ...
def predict(cluster: Cluster, attention: Attention, strategy: Strategy = ..., *, ranks: int | None = None,
            pass_: PassName = "both", by: Literal["simulation", "analytic"] = "simulation") -> Prediction: ...
def plan(cluster: Cluster, attention: Attention, strategy: Strategy = ..., *, schedules: Sequence[str] | str | None = None,
         ranks: int | None = None, pass_: PassName = "both") -> Plan: ...
def simulate(cluster: Cluster, attention: Attention, strategy: Strategy = ..., *, ranks: int | None = None,
             pass_: PassName = "both") -> Timeline: ...
def step(cluster: Cluster, **fields: Any) -> Step: ...
def clusters() -> list[str]: ...
def devices() -> list[str]: ...
def hosts() -> list[str]: ...
def schedules() -> list[str]: ...
