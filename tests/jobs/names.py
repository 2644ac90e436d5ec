"""What the same things are called by different generations, vendors and frameworks.

The names are taken from public traces and sources of the projects named in the comments, not from Longpole's rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

GEMMS = [
    "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn",  # cuBLAS on A100
    "ampere_fp16_s16816gemm_fp16_256x128_ldg8_f2f_stages_32x3_nn",
    "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nt",  # cuBLAS on V100
    "volta_sgemm_128x64_tn",
    "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize256x128x32_stage3_warpsize4x2x1_tensor16x8x16_kernel",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k"
    "_off_kernel__5x_cublas",
    "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT",  # cuBLAS 12.8 on H100
    "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>(Params)",
    "void cutlass::device_kernel<flash::enable_sm90_or_later<cutlass::gemm::kernel::GemmUniversal>>(Params)",
]
AMD_GEMMS = [
    "Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT256x256x64_MI16x16x1_SN_LDSB0",  # hipBLASLt
    "Cijk_Ailk_Bljk_SB_MT128x64x8_SE_K1",  # rocBLAS
]
ATTENTION = [
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<128, 128, 64, 4>>(Flash_fwd_params)",
    "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t"
    ">>(Flash_fwd_params)",
    "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)",
    "void softmax_warp_forward<c10::Half, c10::Half, float, 10, false, false>(c10::Half*, c10::Half c"
    "onst*, int, int, int)",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x64x64_4x1x1_kernel0_0",
]
ATTENTION_BACKWARD = [
    "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<pytorch_flash::Flash_bwd_kernel"
    "_traits<128>>(Flash_bwd_params)",
    "fmha_cutlassB_bf16_aligned_128x128_k128_sm80(PyTorchMemEffAttention::AttentionBackwardKernel)",
    "void softmax_warp_backward<float, c10::Half, c10::Half, 10, false, false>(c10::Half*, float cons"
    "t*, int, int, int)",
]
ELEMENTWISE = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorItera"
    "torBase&)::{lambda()#2}>(int)",
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::CUDAF"
    "unctor_add<float>>>(int)",
    "triton_poi_fused_add_mul_silu_3",
    "triton_per_fused_add_native_layer_norm_5",
    "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>(int)",
]
NORMS = [
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float)",
    "void cuApplyLayerNorm<c10::Half, float, c10::Half>(c10::Half*, float*, float*)",  # apex
    "triton_red_fused_rms_norm_0",
    "void rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16 const*)",  # vLLM
]
OPTIMIZER_KERNELS = [
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>, FusedAd"
    "amMathFunctor<float, 4>>(int)",
    "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float, float, int>>(long, int "  # apex
    "volatile*)",
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2>, Pointwi"
    "seOpListFunctor>(int)",
]
NVIDIA_DEVICES = ["NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-32GB"]
AMD_DEVICES = ["AMD Instinct MI300X", "AMD Instinct MI250X"]
OPTIMIZERS = ["AdamW", "Adam", "SGD", "FusedAdam", "Lamb", "DistributedFusedAdam", "Adafactor"]

# (all-reduce, all-gather, reduce-scatter, broadcast, all-to-all/send/receive) by generation; the suffix names the
# kernel that was compiled, which is the LL one whatever the protocol that runs in it.
NCCL = {
    "2.4": (
        "ncclAllReduceRingLLKernel_sum_f32(ncclColl)",
        "ncclAllGatherRingLLKernel_copy_i8(ncclColl)",
        "ncclReduceScatterRingLLKernel_sum_f16(ncclColl)",
        "ncclBroadcastRingLLKernel_copy_i8(ncclColl)",
        "ncclSendRecvKernel_copy_i8(ncclColl)",
    ),
    "2.10": (
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)",
        "ncclKernel_ReduceScatter_RING_LL_Sum_half(ncclWorkElem)",
        "ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
    ),
    "2.14": (
        "ncclKernel_AllReduce_TREE_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclKernel_ReduceScatter_RING_LL_Sum___nv_bfloat16(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
    ),
    "2.19": (
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_AllGather_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_Broadcast_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)",
    ),
    "2.27": (
        "ncclDevKernel_AllReduce_Sum_f32_TREE_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    ),
    "rccl": ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",) * 5,
    "rccl-old": ("ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)",) * 5,
}

KINDS = {  # record_param_comms' name, c10d's operator, the annotation that ProcessGroupNCCL makes, place in NCCL
    "all_reduce": ("allreduce", "c10d::allreduce_", "nccl:all_reduce", 0),
    "all_gather": ("_allgather_base", "c10d::_allgather_base_", "nccl:_all_gather_base", 1),
    "reduce_scatter": ("_reduce_scatter_base", "c10d::_reduce_scatter_base_", "nccl:_reduce_scatter_base", 2),
    "broadcast": ("broadcast", "c10d::broadcast_", "nccl:broadcast", 3),
    "all_to_all": ("all_to_allv", "c10d::alltoall_base_", "nccl:all_to_all", 4),
    "send": ("send", "c10d::send", "nccl:send", 4),
    "recv": ("recv", "c10d::recv_", "nccl:recv", 4),
}

CUDA = {
    "launch": ["cudaLaunchKernel", "cuLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernelEx"],
    "launch_nccl": ["cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernelEx"],
    "copy": ["cudaMemcpyAsync"],
    "memset": ["cudaMemsetAsync"],
    "stream_sync": ["cudaStreamSynchronize"],
    "device_sync": ["cudaDeviceSynchronize"],
    "event_sync": ["cudaEventSynchronize"],
    "record": ["cudaEventRecord", "cudaEventRecordWithFlags"],
    "wait": ["cudaStreamWaitEvent"],
    "malloc": ["cudaMalloc"],
    "free": ["cudaFree"],
    "graph": ["cudaGraphLaunch"],
}
HIP = {
    "launch": ["hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel"],
    "launch_nccl": ["hipExtLaunchKernel", "hipLaunchKernel"],
    "copy": ["hipMemcpyAsync", "hipMemcpyWithStream"],
    "memset": ["hipMemsetAsync"],
    "stream_sync": ["hipStreamSynchronize"],
    "device_sync": ["hipDeviceSynchronize"],
    "event_sync": ["hipEventSynchronize"],
    "record": ["hipEventRecord"],
    "wait": ["hipStreamWaitEvent"],
    "malloc": ["hipMalloc"],
    "free": ["hipFree"],
    "graph": ["hipGraphLaunch"],
}

# An activity's names: (category, name) from the outermost to the innermost span.
Chain = tuple[tuple[str, str], ...]
LOADERS: list[Chain] = [
    (("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),),
    (("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),),
    (
        ("python_function", "torch/utils/data/dataloader.py(701): __next__"),
        ("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
        ("python_function", "torch/utils/data/dataloader.py(1448): _next_data"),
        ("python_function", "torch/utils/data/dataloader.py(1402): _get_data"),
    ),
    (("user_annotation", "[pl][profile][_TrainingEpochLoop].train_dataloader_next"),),  # Lightning
    (("python_function", "accelerate/data_loader.py(563): __iter__"),),  # Accelerate, HF Trainer
    (("python_function", "transformers/trainer.py(5230): get_batch_samples"),),
    (("user_annotation", "batch-generator"),),  # Megatron-LM timers
    (("python_function", "pretrain_gpt.py(98): get_batch"),),
    (("python_function", "deepspeed/runtime/dataloader.py(92): __next__"),),
    (("user_annotation", "## dataloader ##"),),
    (("python_function", "torchtitan/train.py(310): next_batch"),),
    (("python_function", "streaming/base/dataset.py(1465): __iter__"),),  # MosaicML Streaming
    (("python_function", "webdataset/pipeline.py(64): iterator"),),
    (("user_annotation", "data_loading"),),
    (("user_annotation", "fetch_next_batch"),),
    (("python_function", "nvidia/dali/plugin/pytorch/__init__.py(205): __next__"),),
    (("user_annotation", "IteratorGetNext"),),  # tf.data
]
PREPARATIONS: list[Chain] = [
    (("python_function", "transformers/tokenization_utils_base.py(3018): __call__"),),
    (("python_function", "torchvision/transforms/transforms.py(95): __call__"),),
    (("user_annotation", "preprocess_batch"),),
    (
        ("python_function", "train.py(132): preprocess_batch"),
        ("cpu_op", "aten::index_select"),
    ),
    (("user_annotation", "tokenize"),),
    (("python_function", "albumentations/core/composition.py(493): __call__"),),
    (("user_annotation", "data_augmentation"),),
]
CHECKPOINTS: list[Chain] = [
    (("user_annotation", "save_checkpoint"),),
    (
        ("python_function", "torch/serialization.py(921): save"),
        ("python_function", "torch/serialization.py(1183): _save"),
    ),
    (("python_function", "transformers/trainer.py(3201): _save_checkpoint"),),
    (("python_function", "megatron/training/checkpointing.py(421): save_checkpoint"),),
    (("python_function", "deepspeed/runtime/engine.py(3135): save_checkpoint"),),
    (("python_function", "torch/distributed/checkpoint/state_dict_saver.py(170): save"),),
    (("python_function", "safetensors/torch.py(286): save_file"),),
    (("user_annotation", "[pl][profile][Callback]ModelCheckpoint{'monitor': None}.on_train_batch_end"),),
    (("user_annotation", "checkpoint.save"),),
    (("python_function", "composer/checkpoint/save.py(120): save_checkpoint_to_disk"),),
]
LOGGERS: list[Chain] = [
    (("python_function", "wandb/sdk/wandb_run.py(1924): log"),),
    (("python_function", "torch/utils/tensorboard/writer.py(363): add_scalar"),),
    (("python_function", "transformers/trainer.py(3640): log"),),
    (("python_function", "mlflow/tracking/fluent.py(912): log_metrics"),),
    (("python_function", "logging/__init__.py(1519): info"),),
    (("user_annotation", "log_metrics"),),
    (("python_function", "megatron/training/training.py(1180): training_log"),),
    (("python_function", "lightning/pytorch/loggers/logger.py(100): log_metrics"),),
    (("python_function", "<built-in function print>"),),
    (("python_function", "tqdm/std.py(1325): refresh"),),
]
COLLECTORS: list[Chain] = [
    (("python_function", "<built-in function collect>"),),
    (("python_function", "torchtitan/tools/utils.py(53): collect"), ("python_function", "<built-in function collect>")),
    (("user_annotation", "gc.collect"),),
    (("user_annotation", "garbage_collection"),),
    (("user_annotation", "## gc ##"),),
]
EMPTY_CACHE: list[Chain] = [
    (("python_function", "torch/cuda/memory.py(170): empty_cache"),),
    (
        ("python_function", "torch/cuda/memory.py(224): empty_cache"),
        ("python_function", "<built-in function _cuda_emptyCache>"),
    ),
    (
        ("python_function", "accelerate/utils/memory.py(44): clear_device_cache"),
        ("python_function", "torch/cuda/memory.py(192): empty_cache"),
    ),
]
OTHER_THREADS: list[tuple[str, Chain]] = [
    ("pin_memory", (("python_function", "torch/utils/data/_utils/pin_memory.py(43): do_one_step"),)),
    ("metrics", (("python_function", "wandb/sdk/interface/interface_queue.py(55): _publish"),)),
    ("prefetch", (("python_function", "mylib/buffers.py(88): _fill_loop"),)),
    ("batch_filler", (("user_annotation", "fill_replay_buffer"),)),
    ("pin_memory", (("cpu_op", "aten::pin_memory"), ("cpu_op", "aten::_pin_memory"))),
    (
        "heartbeat",
        (("python_function", "agent/monitor.py(40): _poll"), ("python_function", "json/encoder.py(183): encode")),
    ),
]
WRITERS: list[Chain] = [
    (("python_function", "queue.py(122): put"),),
    (("user_annotation", "output_queue.put"),),
    (("user_annotation", "wait_for_writer"),),
    (("python_function", "multiprocessing/queues.py(82): put"),),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The names that one job uses."""

    vendor: str
    nccl: str
    gemms: tuple[str, ...]
    attention: str
    attention_backward: str
    elementwise: tuple[str, ...]
    norm: str
    optimizer: str
    optimizer_kernel: str
    runtime: dict[str, str]
    stacks: bool
    annotated: bool
    device_name: str
    torch_minor: int
    loader: Chain
    preparation: Chain
    checkpoint: Chain
    logger: Chain
    collector: Chain
    empty_cache: Chain
    other_thread: tuple[str, Chain]
    writer: Chain

    def copy_name(self, direction: str, *, pinned: bool = True) -> str:
        """Return what a copy's row is called; AMD's do not tell pageable memory from pinned."""
        host = "Pinned" if pinned else "Pageable"
        if self.vendor == "amd":
            return "Memcpy HtoD (Host -> Device)" if direction == "htod" else "Memcpy DtoH (Device -> Host)"
        return f"Memcpy HtoD ({host} -> Device)" if direction == "htod" else f"Memcpy DtoH (Device -> {host})"


def draw_dialect(rng: random.Random) -> Dialect:
    """Draw one consistent set of names: without stacks, no name is a Python frame's."""
    amd = rng.random() < 0.15
    nccl = rng.choice(["rccl", "rccl-old"]) if amd else rng.choice(["2.4", "2.10", "2.14", "2.19", "2.27"])
    runtime = {key: rng.choice(names) for key, names in (HIP if amd else CUDA).items()}
    if nccl in ("2.4", "2.10", "2.14"):
        runtime["launch_nccl"] = "cudaLaunchKernel"
    stacks = rng.random() < 0.5

    def chain(chains: list[Chain]) -> Chain:
        return rng.choice([one for one in chains if stacks or one[0][0] != "python_function"] or chains)

    return Dialect(
        vendor="amd" if amd else "nvidia",
        nccl=nccl,
        gemms=tuple(rng.sample(AMD_GEMMS if amd else GEMMS, 2)),
        attention=rng.choice(ATTENTION),
        attention_backward=rng.choice(ATTENTION_BACKWARD),
        elementwise=tuple(rng.sample(ELEMENTWISE, 2)),
        norm=rng.choice(NORMS),
        optimizer=rng.choice(OPTIMIZERS),
        optimizer_kernel=rng.choice(OPTIMIZER_KERNELS),
        runtime=runtime,
        stacks=stacks,
        annotated=rng.random() < 0.4,
        device_name=rng.choice(AMD_DEVICES if amd else NVIDIA_DEVICES),
        torch_minor=rng.choice([1, 4, 6, 9, 12]),
        loader=chain(LOADERS),
        preparation=chain(PREPARATIONS),
        checkpoint=chain(CHECKPOINTS),
        logger=chain(LOGGERS),
        collector=chain(COLLECTORS),
        empty_cache=chain(EMPTY_CACHE),
        other_thread=rng.choice([one for one in OTHER_THREADS if stacks or one[1][0][0] != "python_function"]),
        writer=chain(WRITERS),
    )
