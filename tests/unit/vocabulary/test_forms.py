"""Names are brought into the forms that rules are written for."""

from __future__ import annotations

import pytest

from longpole.vocabulary.forms import (
    HEAD_CHARS,
    TAIL_CHARS,
    bare_name,
    builtin_name,
    clip,
    collective_kind,
    function_name,
    split_frame,
    split_words,
)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(int)", "at::native::reduce_kernel"),
        ("void (anonymous namespace)::multimem_all_reduce_kernel<float>(float*)", "multimem_all_reduce_kernel"),
        ("std::enable_if<(8>0), void>::type vllm::fused_norm<float, 8>(float*) const", "vllm::fused_norm"),
        ("ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)", "nccldevkernel_sendrecv"),
        ("_ZN7mscclpp10collective15allreducePacketIfEEvPT_", "mscclpp::collective::allreducepacket"),
        ("_Z23ncclDevKernel_Generic_424ncclDevKernelArgsStorageILm4096EE", "nccldevkernel_generic_4"),
        ("foo_kernel.kd", "foo_kernel"),
        ("void foo(int) [clone .constprop.0]", "foo"),
        ("triton_red_fused_mean_mul_2", "triton_red_fused_mean_mul_2"),
        ("RDMA Send", "rdma send"),
        ("_Z999x", "x"),
        ("_Z", ""),
        ("void", "void"),
        ("<>", ""),
        ("", ""),
    ],
)
def test_a_kernel_is_known_by_its_function_alone(name: str, function: str) -> None:
    assert function_name(name) == function


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("enumerate(DataLoader)#_Iter.__next__", ("enumerate", "data", "loader", "iter", "next")),
        ("NCCLInit", ("nccl", "init")),
        ("save-checkpoint", ("save", "checkpoint")),
        ("iter_0", ("iter",)),
        ("##  ##", ()),
    ],
)
def test_words_are_runs_of_letters_that_begin_at_capitals(text: str, words: tuple[str, ...]) -> None:
    assert split_words(text) == words


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("torch/serialization.py(943): save", ("torch/serialization.py", "save")),
        (r"C:\lib\torch\serialization.py(943): save", ("C:/lib/torch/serialization.py", "save")),
        ("<string>(1): <lambda>", ("<string>", "<lambda>")),
        ("a(b)/c.py(7): f(): g", None),
        ("autograd::engine::evaluate_function: AddmmBackward0", None),
        ("no line number(): f", None),
        ("(3): ", ("", "")),
    ],
)
def test_a_frame_has_a_path_a_line_and_a_function(text: str, frame: tuple[str, str] | None) -> None:
    assert split_frame(text) == frame


def test_what_surrounds_a_name_is_stripped() -> None:
    assert bare_name("## forward ##") == "forward"
    assert bare_name("cuMemAlloc_v2_ptsz") == "cuMemAlloc"
    assert bare_name("AscendCL@aclrtMemcpy") == "aclrtMemcpy"
    assert bare_name("my_op_v2") == "my_op_v2"


def test_a_builtin_is_known_without_its_address() -> None:
    assert builtin_name("<built-in function print>") == "print"
    assert builtin_name("<built-in method write of _io.FileIO object at 0x7f>") == "write of _io.FileIO"
    assert builtin_name("built-in method") == ""


def test_a_long_name_keeps_its_head_and_its_tail() -> None:
    name = "a" * HEAD_CHARS + "b" * 10_000 + "c" * TAIL_CHARS

    clipped = clip(name)

    assert clipped == "a" * HEAD_CHARS + "\0" + "c" * TAIL_CHARS
    assert clip("short") == "short"


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("_reduce_scatter_base", "reduce_scatter"),
        ("allgather_into_tensor_coalesced_", "all_gather"),
        ("alltoall_base_", "all_to_all"),
        ("All2All_Pooled_Req", "all_to_all"),
        ("broadcast_", "broadcast"),
        ("reduce_", "reduce"),
        ("send 1->2", "send_recv"),
        ("barrier", "barrier"),
        ("notify_dispatch", "dispatch"),
        ("ncclDevKernel_SendRecv", ""),
        ("coalesced", ""),
    ],
)
def test_a_kind_is_read_from_an_operation(operation: str, kind: str) -> None:
    assert collective_kind(operation) == kind
