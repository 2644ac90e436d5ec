"""What names mean: our rules' own examples, generations of libraries, look-alikes, a user's rules, hostile names."""

from __future__ import annotations

import pickle
import time
from typing import TYPE_CHECKING

import pytest

from longpole.vocabulary.matcher import Vocabulary
from longpole.vocabulary.meanings import CopyMeaning, HostMeaning, KernelMeaning, StepMeaning
from longpole.vocabulary.rules import THEMES

if TYPE_CHECKING:
    from pathlib import Path

OURS = Vocabulary.load()
EXAMPLES = [(theme, rule.name, name) for theme in THEMES for rule in OURS.rules(theme) for name in rule.examples]
LOOK_ALIKES = [(theme, rule.name, name) for theme in THEMES for rule in OURS.rules(theme) for name in rule.look_alikes]


@pytest.fixture
def vocabulary() -> Vocabulary:
    return Vocabulary.load()


@pytest.mark.parametrize(("theme", "rule", "name"), EXAMPLES)
def test_a_rule_wins_its_own_examples(theme: str, rule: str, name: str) -> None:
    found = OURS.rule(theme, name)

    assert found is not None
    assert found.name == rule


@pytest.mark.parametrize(("theme", "rule", "name"), LOOK_ALIKES)
def test_a_rule_leaves_its_look_alikes_alone(theme: str, rule: str, name: str) -> None:
    found = OURS.rule(theme, name)

    assert found is None or found.name != rule


class TestKernel:
    @pytest.mark.parametrize(
        ("name", "kind", "family", "protocol"),
        [
            ("ncclAllReduceRingLLKernel_sum_f16(ncclColl)", "all_reduce", "nccl", "LL"),
            ("ncclAllReduceTreeLL128Kernel_sum_f32(ncclColl)", "all_reduce", "nccl", "LL128"),
            ("ncclReduceScatterRingKernel_sum_f32(ncclColl)", "reduce_scatter", "nccl", ""),
            ("ncclSendRecvKernel_copy_i8(ncclColl)", "", "nccl", ""),
            ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "all_reduce", "nccl", "LL"),
            ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "", "nccl", "SIMPLE"),
            ("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long)", "all_gather", "nccl", "LL"),
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long)", "all_reduce", "nccl", "LL"),
            ("ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "broadcast", "nccl", "LL"),
            ("ncclDevKernel_Reduce_Sum_u8_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reduce", "nccl", "LL"),
            ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "", "nccl", ""),
            ("nccldevkernel_sendrecv(nccldevkernelargsstorage<4096ul>)", "", "nccl", ""),
            ("ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)", "", "nccl", ""),
            ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "", "rccl", ""),
            ("ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymDevArgs)", "all_reduce", "nccl", ""),
            ("ncclSymkDevKernel_AllGather_LL(ncclSymkDevWorkArgs4K)", "all_gather", "nccl", "LL"),
            ("ncclSymkDevKernel_ReduceScatter_RailA2A_LsaLD_sum_f32(x)", "reduce_scatter", "nccl", ""),
            ("hcom_allReduce__628_0_1", "all_reduce", "hccl", ""),
            ("hcom_reduceScatter__628_0_1", "reduce_scatter", "hccl", ""),
            ("hcom_batchSendRecv__628_0_1", "", "hccl", ""),
            ("oneccl_allreduce_pcie", "all_reduce", "oneccl", ""),
            ("void mscclpp::collective::allgatherFullmesh2<true>(void*)", "all_gather", "mscclpp", ""),
            ("void dpsk::ep::internode::dispatch<false, 8, false, 8>(int4*)", "dispatch", "deepep", ""),
            ("void deep_ep::internode_ll::combine<true, 7168, 9, 3>(void*)", "combine", "deepep", ""),
            ("nvshmemi_barrier_on_stream_kernel(int, int)", "barrier", "nvshmem", ""),
            ("void vllm::cross_device_reduce_1stage<__half, 8>(vllm::RankData*)", "all_reduce", "custom", ""),
            ("void userbuffers_fp16_sum_inplace_gpu_rr<8>(int)", "all_reduce", "userbuffers", ""),
            ("void userbuffers_fp16_sum_inplace_gpu_rr_rs_oop<8>(int)", "reduce_scatter", "userbuffers", ""),
            ("void (anonymous namespace)::multimem_all_reduce_kernel<float>(int)", "all_reduce", "symm_mem", ""),
            ("void flashinfer::fusion::allreduce_fusion_kernel_oneshot_lamport<1>(P)", "all_reduce", "custom", ""),
            ("void quickreduce::allreduce_prototype_twoshot<T, __half>(__half const*)", "all_reduce", "custom", ""),
        ],
    )
    def test_a_collective_is_known_in_every_generation(
        self, vocabulary: Vocabulary, name: str, kind: str, family: str, protocol: str
    ) -> None:
        """NCCL's names as in its releases 2.3, 2.8, 2.19, 2.22, 2.27 and 2.28; and those of the other libraries."""
        expected = KernelMeaning(is_collective=True, kind=kind, family=family, protocol=protocol)

        assert vocabulary.kernel(name) == expected

    @pytest.mark.parametrize(
        "name",
        [
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(at::native::ReduceOp<float>)",
            "triton_red_fused_mean_mul_2",
            "triton_poi_fused_all_gather_into_tensor_wait_tensor_3",
            "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*)",
            "void at::native::_scatter_gather_elementwise_kernel<128, 4, at::native::ReduceAdd>(int)",
            "moe_topk_dispatch_mask_kernel",
            "_combined_routing_compute",
            "batched_reduce",
            "splitKreduce_kernel<32, 16, int, float>(float)",
            "void ns::scale_kernel<AllReduce<int>, ncclDevKernel_AllReduce>(float*)",
            "_ZN2ns12scale_kernelI9AllReduceIiEEEvPf",
            "void fastertransformer::softmax_blockAllReduceSum<float>(float*)",
            "void dpsk::ep::cuda::get_dispatch_layout<256, 32, 8>(long const*)",
            "void at::native::type_specialized_broadcast_kernel_launcher<1>(int)",
            "aclnnReduceSum_ReduceSumOpAiCore_ReduceSum",
            "gather-dtype_Float",
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16>(Params)",
            "",
        ],
    )
    def test_a_look_alike_is_computation(self, vocabulary: Vocabulary, name: str) -> None:
        assert vocabulary.kernel(name) == KernelMeaning(is_collective=False)

    def test_a_task_belongs_to_its_collective(self, vocabulary: Vocabulary) -> None:
        meaning = vocabulary.kernel("Notify_Wait")

        assert (meaning.is_collective, meaning.is_task, meaning.family) == (True, True, "hccl")

    def test_a_fused_kernel_is_compute_that_communicates(self, vocabulary: Vocabulary) -> None:
        meaning = vocabulary.kernel("MatmulAllReduce")

        assert (meaning.is_collective, meaning.is_fused, meaning.kind) == (False, True, "all_reduce")

    def test_case_b049_is_split_as_its_authors_say(self, vocabulary: Vocabulary) -> None:
        """Six communication kernels and four that only sound like it."""
        names = [
            "moe_topk_dispatch_mask_kernel",
            "nvshmemi_barrier_on_stream_kernel(int, int)",
            "triton_red_fused_mean_mul_2",
            "two_shot_all_reduce_kernel<c10::BFloat16, 16, 8, true>(c10::BFloat16*)",
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(at::native::ReduceOp<float>)",
            "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*)",
            "void deep_ep::internode::dispatch<false, 8, false, 32768, 7, 8>(int4*)",
            "void deep_ep::internode_ll::combine<true, 7168, 9, 3>(void*)",
            "void sglang::cross_device_reduce_2stage<__half, 4>(RankData*)",
            "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)",
        ]

        communicating = [name for name in names if vocabulary.kernel(name).is_collective]

        assert len(communicating) == 6


class TestCopy:
    @pytest.mark.parametrize(
        ("name", "meaning"),
        [
            ("Memcpy HtoD (Pageable -> Device)", CopyMeaning("htod", pageable=True, pinned=False)),
            ("Memcpy HtoD (Pinned -> Device)", CopyMeaning("htod", pageable=False, pinned=True)),
            ("Memcpy HtoD (Host -> Device)", CopyMeaning("htod")),
            ("Memcpy DtoH (Device -> Pageable)", CopyMeaning("dtoh", pageable=True, pinned=False)),
            ("Memcpy DtoD (Device -> Device)", CopyMeaning("dtod")),
            ("Memcpy PtoP (Device -> Device)", CopyMeaning("ptop")),
            ("Memset (Device)", CopyMeaning("memset")),
            ("Memset (Unknown)", CopyMeaning("memset")),
            ("CopyHostToDevice", CopyMeaning("htod")),
            ("CopyDeviceToHost", CopyMeaning("dtoh")),
            ("FillBuffer", CopyMeaning("memset")),
            ("hipMemcpyDtoHAsync", CopyMeaning("dtoh")),
            ("zeCommandListAppendMemoryCopy(M2D)", CopyMeaning("htod", pageable=True, pinned=False)),
            ("zeCommandListAppendMemoryCopy(D2H)", CopyMeaning("dtoh", pageable=False, pinned=True)),
            ("zeCommandListAppendMemoryCopy(S2S)", CopyMeaning("unknown")),
            ("[CUDA memcpy Host-to-Device]", CopyMeaning("htod")),
            ("MEMCPY_ASYNC", CopyMeaning("unknown")),
            ("dma_request", CopyMeaning("unknown")),
        ],
    )
    def test_a_copy_has_a_direction(self, vocabulary: Vocabulary, name: str, meaning: CopyMeaning) -> None:
        assert vocabulary.copy(name) == meaning

    @pytest.mark.parametrize(
        "name",
        ["void recat_copy_async_kernel<float>(long const*)", "aclnnMm_MatMulCommon_MemSet", "_copy_tensor_kernel", ""],
    )
    def test_a_kernel_that_copies_is_a_kernel(self, vocabulary: Vocabulary, name: str) -> None:
        assert not vocabulary.copy(name).is_copy


class TestHost:
    @pytest.mark.parametrize(
        ("name", "obj", "activity"),
        [
            ("dataloader", "input", "data_loader"),
            ("## data_load ##", "input", "data_loader"),
            ("torch/utils/data/dataloader.py(631): __next__", "input", "data_loader"),
            ("/venv/lib/python3.12/site-packages/torch/utils/data/dataloader.py(1): __next__", "input", "data_loader"),
            ("## copy_batch_to_gpu 3 ##", "input", "copy_input"),
            ("save_checkpoint", "output", "checkpoint_save"),
            ("checkpoint_save", "output", "checkpoint_save"),
            ("torch/serialization.py(943): save", "output", "checkpoint_save"),
            ("logging/__init__.py(1529): info", "output", "logging"),
            ("<built-in function print>", "output", "logging"),
            ("torch/serialization.py(1300): load", "artifact", "checkpoint_load"),
            ("safetensors/torch.py(340): load_file", "artifact", "weights_load"),
            ("deserialize_engine", "artifact", "engine_build"),
            ("cpu_offload", "state", "offload"),
            ("kv_transfer", "state", "offload"),
            ("onload_weights", "state", "onload"),
            ("ncclCommInitRankConfig", "collective", "communicator_setup"),
            ("torch/distributed/distributed_c10d.py(1600): init_process_group", "collective", "communicator_setup"),
        ],
    )
    def test_an_activity_is_for_an_object(self, vocabulary: Vocabulary, name: str, obj: str, activity: str) -> None:
        meaning = vocabulary.host(name)

        assert (meaning.object, meaning.activity) == (obj, activity)

    @pytest.mark.parametrize(
        "name",
        [
            "aten::copy_",
            "aten::_to_copy",
            "aten::save",
            "aten::logsumexp",
            "aten::log_softmax",
            "aten::batch_norm",
            "nn.Module: InputEmbedding_0",
            "nn.Module: GCBlock_0",
            "nn.Module: SaveBlock_0",
            "input_layernorm",
            "Optimizer.step#AdamW.step",
            "_NoopSaveInputs",
            "CheckpointFunctionBackward",
            "torch/utils/checkpoint.py(495): checkpoint",
            "torch/autograd/function.py(30): save_for_backward",
            "vllm/model_executor/layers/logits_processor.py(50): forward",
            "logging/__init__.py(1751): isEnabledFor",
            "<built-in method log of type object at 0x7faf8498c940>",
            "ProfilerStep#3",
            "train_step",
            "DistributedDataParallel.forward",
            "## sparse_data_dist ##",
        ],
    )
    def test_a_look_alike_is_no_activity(self, vocabulary: Vocabulary, name: str) -> None:
        """A name that encloses a step must not turn all that is under it into input or output."""
        meaning = vocabulary.host(name)

        assert (meaning.object, meaning.activity) == ("", "")

    @pytest.mark.parametrize(
        ("name", "call"),
        [
            ("cudaLaunchKernel", "launch"),
            ("cudaLaunchKernel_v7000", "launch"),
            ("cuLaunchKernelEx", "launch"),
            ("hipExtModuleLaunchKernel", "launch"),
            ("urEnqueueKernelLaunchWithArgsExp", "launch"),
            ("Node@launch", "launch"),
            ("AscendCL@aclnnMm", "launch"),
            ("AscendCL@aclnnAddGetWorkspaceSize", ""),
            ("Dequeue@aclnnAddmm", ""),
            ("cudaGraphLaunch", "graph_launch"),
            ("cudaGraphInstantiateWithFlags", "compile"),
            ("cudaStreamBeginCapture", "compile"),
            ("hipModuleLoadData", "compile"),
            ("compile_fx_inner (dynamo_timed)", "compile"),
            ("torch/_dynamo/convert_frame.py(1500): __call__", "compile"),
            ("torch/_dynamo/eval_frame.py(745): compile_wrapper", ""),
            ("Torch-Compiled Region: 0/0", ""),
            ("cudaDeviceSynchronize", "sync"),
            ("cudaStreamSynchronize_v3020", "sync"),
            ("hipEventSynchronize", "sync"),
            ("AscendCL@aclrtSynchronizeStreamWithTimeout", "sync"),
            ("urQueueFinish", "sync"),
            ("synchronizeStream", "sync"),
            ("cudaMalloc", "alloc"),
            ("cudaMallocAsync", "alloc"),
            ("cudaHostAlloc", "alloc"),
            ("hipFree", "free"),
            ("cudaFreeAsync", "free"),
            ("torch/cuda/memory.py(162): empty_cache", "free"),
            ("cudaMemcpyAsync", "copy"),
            ("hipMemcpyWithStream", "copy"),
            ("enqueueCommand memcpyHtoDAsync", "copy"),
            ("cudaMemsetAsync", "memset"),
            ("cudaEventRecord", "event_record"),
            ("cudaStreamWaitEvent", "stream_wait"),
            ("cudaEventQuery", "query"),
            ("cudaStreamIsCapturing", "query"),
            ("<built-in function collect>", "gc"),
            ("gc", "gc"),
            ("Python GC", "gc"),
            ("aten::empty", ""),
            ("aten::collect", ""),
        ],
    )
    def test_a_call_is_known(self, vocabulary: Vocabulary, name: str, call: str) -> None:
        assert vocabulary.host(name).call == call

    @pytest.mark.parametrize(
        ("name", "stage"),
        [
            ("Optimizer.step#AdamW.step", "optimizer"),
            ("Optimizer.zero_grad#SGD.zero_grad", "optimizer"),
            ("torch/optim/sgd.py(80): step", "optimizer"),
            ("optimizer-clip-main-grad", "optimizer"),
            ("autograd::engine::evaluate_function: AddmmBackward0", "backward"),
            ("AddmmBackward0", "backward"),
            ("## backward ##", "backward"),
            ("FSDP::post_backward_reduce (0)", "backward"),
            ("attn(B)", "backward"),
            ("BackwardWithAuxiliaryLoss", ""),
            ("## forward ##", "forward"),
            ("DistributedDataParallel.forward", "forward"),
            ("nn.Module: Linear_3", "forward"),
            ("dataloader", "input"),
            ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "input"),
            ("aten::add", ""),
            ("save_checkpoint", ""),
        ],
    )
    def test_a_stage_is_named(self, vocabulary: Vocabulary, name: str, stage: str) -> None:
        assert vocabulary.host(name).stage == stage

    @pytest.mark.parametrize(
        ("name", "kind", "backend"),
        [
            ("gloo:all_reduce", "all_reduce", "gloo"),
            ("nccl:_allgather_base", "all_gather", "nccl"),
            ("nccl2:reduce_scatter_tensor_coalesced", "reduce_scatter", "nccl"),
            ("mpi:broadcast", "broadcast", "mpi"),
            ("hccl:all_to_all", "all_to_all", "hccl"),
            ("nccl:send 1->2", "send_recv", "nccl"),
            ("ncclGroupEnd", "", "nccl"),
            ("c10d::allreduce_", "all_reduce", ""),
            ("c10d_functional::wait_tensor", "", ""),
            ("record_param_comms", "", ""),
            ("vllm::all_reduce", "all_reduce", ""),
            ("## KJTAllToAllTensorsAwaitable wait() ##", "", ""),
        ],
    )
    def test_a_collective_operation_is_no_operator(
        self, vocabulary: Vocabulary, name: str, kind: str, backend: str
    ) -> None:
        meaning = vocabulary.host(name)

        assert (meaning.is_collective_op, meaning.kind, meaning.backend) == (True, kind, backend)

    @pytest.mark.parametrize(
        "name", ["aten::all", "fsdp::all_gather_copy_in", "nccl::init", "vllm::moe_forward", "aten::gather"]
    )
    def test_an_operator_that_sounds_collective_is_an_operator(self, vocabulary: Vocabulary, name: str) -> None:
        assert vocabulary.host(name) == HostMeaning()

    @pytest.mark.parametrize(
        ("name", "workers"),
        [
            ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", True),
            ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", False),
            ("dataloader", None),
            ("aten::add", None),
        ],
    )
    def test_a_loader_says_whether_it_has_workers(
        self, vocabulary: Vocabulary, name: str, workers: bool | None
    ) -> None:
        assert vocabulary.host(name).loader_workers is workers


class TestStep:
    @pytest.mark.parametrize(
        ("name", "meaning"),
        [
            ("ProfilerStep#12", StepMeaning("step", 12, 1)),
            ("ProfilerStep*", StepMeaning("step", None, 1)),
            ("execute_context_1(888_788544)_generation_0(0)", StepMeaning("engine", None, 3)),
            ("execute_32_context_0(sq0)_generation_32(sq32sk32785)", StepMeaning("engine", None, 3)),
            ("step[DECODE bs=32]", StepMeaning("engine", None, 3)),
            ("[Executor] _forward_step 12: 0 ctx reqs, 32 gen reqs", StepMeaning("engine", 12, 3)),
            ("iter_3", StepMeaning("iteration", 3, 3)),
            ("iteration 7", StepMeaning("iteration", 7, 3)),
            ("train_step_12", StepMeaning("iteration", 12, 3)),
            ("## step 5 ##", StepMeaning("iteration", 5, 3)),
            ("[pl][profile]run_training_batch", StepMeaning("iteration", None, 3)),
            ("Optimizer.step#AdamW.step", StepMeaning("step", None, 4)),
            ("step " + "9" * 400, StepMeaning("iteration", None, 3)),
        ],
    )
    def test_a_marker_counts_units_of_work(self, vocabulary: Vocabulary, name: str, meaning: StepMeaning) -> None:
        assert vocabulary.step(name) == meaning

    @pytest.mark.parametrize(
        "name",
        [
            "step",
            "load_batch 3",
            "Optimizer.zero_grad#SGD.zero_grad",
            "sweep_allreduce_1024B",
            "train.py(3): train_step",
            "",
        ],
    )
    def test_anything_else_is_no_marker(self, vocabulary: Vocabulary, name: str) -> None:
        assert vocabulary.step(name) is None


class TestUsersRules:
    RULES = """
        [[kernel]]
        name = "tree_sum"
        kind = "all_reduce"
        family = "acme"
        match = ['^acme::TreeSum']
        example = ["void acme::TreeSumKernel<8>(int)"]

        [[kernel]]
        name = "not_nccl"
        collective = false
        exact = ["ncclDevKernel_SendRecv"]

        [[activity]]
        name = "shards"
        object = "input"
        frame = ["acme/io/: *"]
        phrase = ["read shard"]

        [[activity]]
        name = "no_dataloader"
        object = ""
        exact = ["dataloader"]

        [[operator]]
        name = "acme_comm"
        backend = "acme"
        prefix = ["acme::"]

        [[step]]
        name = "tick"
        kind = "request"
        priority = 1
        match = ['^tick (?P<ordinal>[0-9]+)$']
    """

    @pytest.fixture
    def vocabulary(self, tmp_path: Path) -> Vocabulary:
        path = tmp_path / "mine.toml"
        path.write_text(self.RULES, encoding="utf-8")
        return Vocabulary.load(path)

    def test_they_teach_new_names(self, vocabulary: Vocabulary) -> None:
        assert vocabulary.kernel("void acme::TreeSumKernel<8>(int)") == KernelMeaning(
            is_collective=True, kind="all_reduce", family="acme"
        )
        assert vocabulary.host("acme/io/shards.py(3): pull").activity == "shards"
        assert vocabulary.host("read_shard 7").object == "input"
        assert vocabulary.host("acme::all_reduce").backend == "acme"
        assert vocabulary.step("tick 4") == StepMeaning("request", 4, 1)

    def test_they_go_before_ours(self, vocabulary: Vocabulary) -> None:
        assert not vocabulary.kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)").is_collective
        assert vocabulary.host("dataloader") == HostMeaning()

    def test_ours_still_hold(self, vocabulary: Vocabulary) -> None:
        assert vocabulary.kernel("ncclDevKernel_Generic(x)").is_collective
        assert vocabulary.host("data_loader").object == "input"

    def test_the_digest_changes_with_any_rule(self, vocabulary: Vocabulary, tmp_path: Path) -> None:
        other = tmp_path / "other.toml"
        other.write_text(self.RULES.replace("tick", "tock"), encoding="utf-8")

        digests = {vocabulary.digest, Vocabulary.load().digest, Vocabulary.load(other).digest}

        assert len(digests) == 3
        assert Vocabulary.load().digest == Vocabulary.load().digest


class TestHostileNames:
    NAMES = (
        "a" * 1_000_000,
        "allreduce" * 100_000,
        "gemm" * 200 + "all_reduce",
        "ncclDevKernel_" + "AllReduce_" * 100_000,
        "<" * 500_000 + ">" * 500_000,
        "(" * 1_000_000,
        "_Z" + "9" * 1_000_000,
        "_ZN" + "1a" * 300_000,
        "load batch " * 100_000,
        "A" * 1_000_000,
        "aA" * 500_000,
        "/".join(["torch/utils/data"] * 50_000) + "(1): __next__",
        "x(1): " * 100_000,
        "## " * 300_000,
        "\0\x1b[31m\r\n\t\x7f" * 1000,
        "\ud800" * 1000,
        "ſſß" * 1000,
        "execute_context_1(" * 1000,
        "step " + "1" * 1_000_000,
        "[pl][profile]" * 1000 + ".backward",
        "<built-in method " * 1000,
        "autograd::engine::evaluate_function: " + "All2All" * 1000 + "_Req",
        "vllm::" + "all_" * 1000 + "reduce",
    )

    @pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:24]))
    def test_they_are_answered_in_bounded_time(self, vocabulary: Vocabulary, name: str) -> None:
        """A tenth of a second for four questions is a hundred times what a plain name takes."""
        for ask in (vocabulary.kernel, vocabulary.copy, vocabulary.host, vocabulary.step):
            ask("warm up: read the rules")
            ask(name)  # compiles the expressions that this name meets

        begin_s = time.perf_counter()
        for ask in (vocabulary.kernel, vocabulary.copy, vocabulary.host, vocabulary.step):
            for variant in range(5):
                ask(f"{name}{variant}")
        took_s = time.perf_counter() - begin_s

        assert took_s < 5 * 0.1

    def test_the_end_of_a_long_name_counts(self, vocabulary: Vocabulary) -> None:
        """A frame's function stands at the end of a path of any length."""
        name = "/" + "d/" * 100_000 + "train.py(3): save_checkpoint"

        assert vocabulary.host(name).object == "output"

    def test_answers_are_kept_within_a_bound(self, vocabulary: Vocabulary) -> None:
        for number in range(70_000):
            vocabulary.host(f"name {number}")
        vocabulary.host("x" * 1_000_000)

        size_bytes = len(pickle.dumps(vocabulary))

        assert size_bytes < 10_000_000


def test_a_vocabulary_can_be_sent_to_another_process(vocabulary: Vocabulary) -> None:
    vocabulary.host("dataloader")

    copy = pickle.loads(pickle.dumps(vocabulary))

    assert copy.host("dataloader") == vocabulary.host("dataloader")
    assert copy.host("save_checkpoint") == vocabulary.host("save_checkpoint")
    assert copy.kernel("ncclDevKernel_SendRecv(x)") == vocabulary.kernel("ncclDevKernel_SendRecv(x)")


def test_loading_reads_no_rule_before_it_is_needed() -> None:
    """Best of several, so that a busy machine does not decide: 15 ms is the budget of a command's start."""
    took_s = []
    for _ in range(10):
        begin_s = time.perf_counter()
        Vocabulary.load()
        took_s.append(time.perf_counter() - begin_s)

    assert min(took_s) < 0.015
