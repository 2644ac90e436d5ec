"""What a training step is made of: operators, the runtime calls they make and the kernels these launch, as data.

The mixture follows a recorded data-parallel job (about 4.7 operators and 2.9 runtime calls a kernel; names of 17 and
280 characters on average); `schedule` draws the times.
"""

from __future__ import annotations

from dataclasses import dataclass

N_OCCUPANCY = "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"
CALLBACK_IDS = {  # CUPTI's numbers for runtime functions, as recorded traces carry them
    "cudaPeekAtLastError": 11,
    "cudaMemcpyAsync": 41,
    "cudaMemsetAsync": 51,
    "cudaStreamSynchronize": 131,
    "cudaEventRecord": 135,
    "cudaEventQuery": 138,
    "cudaStreamWaitEvent": 147,
    "cudaLaunchKernel": 211,
    N_OCCUPANCY: 251,
    "cudaFuncSetAttribute": 273,
    "cudaStreamIsCapturing": 317,
    "cudaStreamGetCaptureInfo": 324,
    "cudaLaunchKernelExC": 430,
}


@dataclass(frozen=True)
class Kernel:
    """A device kernel: its name, how long it may take, and the launch's shape."""

    name: str
    shortest_ns: int
    longest_ns: int
    grid: str = "[1024, 1, 1]"
    block: str = "[128, 1, 1]"
    registers: int = 32
    shared_bytes: int = 0


@dataclass(frozen=True)
class Op:
    """A host operator: its children run first, then its calls, then the launch of its kernel."""

    name: str
    children: tuple[Op, ...] = ()
    calls: tuple[str, ...] = ()
    kernel: Kernel | None = None
    zeroes_bytes: int = 0  # a cudaMemsetAsync of that many bytes before the launch
    dims: str = "[[32, 512, 1024]]"
    types: str = '["float"]'
    differentiable: bool = False  # forward: gets a sequence number; backward: answers the forward operator's


def pointwise(functor: str, arrays: int) -> Kernel:
    """Name an element-wise kernel as PyTorch's template instances are named."""
    array = f"at::detail::Array<char*, {arrays}>"
    return Kernel(
        f"void at::native::vectorized_elementwise_kernel<4, {functor}, {array} >(int, {functor}, {array})",
        shortest_ns=2_100,
        longest_ns=26_000,
    )


def gemm(tile: str, layout: str, longest_ns: int) -> Kernel:
    """Name a tensor-core matrix product."""
    inner = f"cutlass_80_tensorop_s1688gemm_{tile}_{layout}_align4"
    return Kernel(
        f"void cutlass::Kernel<{inner}>({inner}::Params)",
        shortest_ns=14_000,
        longest_ns=longest_ns,
        grid="[64, 8, 1]",
        registers=90,
        shared_bytes=49_152,
    )


_BINARY = "at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >"
_UNARY = "at::native::AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >"
_SUM = "at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)"
_REDUCTION = f"at::native::ReduceOp<float, {_SUM}::{{lambda(float, float)#1}}>, unsigned int, float, 4>"
_GELU = "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()()"

K_ADD = pointwise("at::native::CUDAFunctor_add<float>", 3)
K_MUL = pointwise(_BINARY, 3)
K_SCALE = pointwise(_UNARY, 2)
K_FILL = pointwise("at::native::FillFunctor<float>", 1)
K_GELU = pointwise(f"{_GELU} const::{{lambda()#2}}::operator()() const::{{lambda(float)#1}}", 2)
K_SUM = Kernel(
    f"void at::native::reduce_kernel<128, 4, {_REDUCTION}>({_REDUCTION})", 4_000, 38_000, block="[32, 16, 1]"
)
K_NORM = Kernel(
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float, float const*, "
    "float const*, float const*, float*, float*, float*)",
    6_000,
    30_000,
)
K_NORM_INPUT = Kernel(
    "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel<float, float>(float const*, float const*, "
    "float const*, float const*, float const*, float*, int)",
    8_000,
    42_000,
)
K_NORM_WEIGHT = Kernel(
    "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<float, float>(long, long, float const*, "
    "float const*, float const*, float const*, float*, float*)",
    9_000,
    48_000,
)
K_SOFTMAX = Kernel(
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false, false>(float*, float const*, int, "
    "int, int, bool const*, int, bool)",
    9_000,
    40_000,
)
K_SOFTMAX_BACK = Kernel(
    "void (anonymous namespace)::softmax_warp_backward<float, float, float, 9, false, false>(float*, float const*, "
    "float const*, int, int, int, bool const*)",
    9_000,
    44_000,
)
K_DROPOUT = Kernel(
    "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>("
    "at::cuda::detail::TensorInfo<float const, unsigned int>, at::cuda::detail::TensorInfo<float, unsigned int>, "
    "at::cuda::detail::TensorInfo<bool, unsigned int>, unsigned int, float, at::PhiloxCudaState)",
    8_000,
    30_000,
)
K_EMBEDDING = Kernel(
    "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>("
    "at::cuda::detail::TensorInfo<float, unsigned int>, at::cuda::detail::TensorInfo<float const, unsigned int>, "
    "at::cuda::detail::TensorInfo<long const, unsigned int>, int, int, unsigned int, unsigned int, long)",
    9_000,
    21_000,
)
K_LOSS = Kernel(
    "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*, "
    "float*, float const*, long const*, float const*, bool, long, long, long, long)",
    5_000,
    9_000,
)
K_GEMM = gemm("128x128_32x3", "tn", 120_000)
K_GEMM_DATA = gemm("128x64_16x6", "nn", 110_000)
K_GEMM_WEIGHT = gemm("64x64_16x6", "nt", 120_000)
K_GEMM_BATCHED = gemm("64x64_32x6", "tn", 40_000)

BLAS_CALLS = (N_OCCUPANCY, "cudaFuncSetAttribute", "cudaFuncSetAttribute")
QUERY = ("cudaEventQuery",)
PEEK = ("cudaPeekAtLastError",)
CAPTURE = ("cudaStreamGetCaptureInfo", "cudaStreamIsCapturing")

AS_STRIDED = Op(
    "aten::as_strided", types='["float", "ScalarList", "ScalarList", "Scalar"]', dims="[[1024, 1024], [], [], []]"
)
TRANSPOSE = Op("aten::t", (Op("aten::transpose", (AS_STRIDED,), dims="[[1024, 1024], [], []]"),), dims="[[1024, 1024]]")
VIEW = Op("aten::view", dims="[[32, 512, 1024], []]", types='["float", "ScalarList"]')
EMPTY = Op("aten::empty", dims="[[], [], [], [], [], []]", types='["", "Scalar", "", "", "Scalar", ""]')
EMPTY_STRIDED = Op("aten::empty_strided", dims="[[], [], [], [], [], []]", types='["", "", "Scalar", "", "", "Scalar"]')
EXPAND = Op("aten::expand", (AS_STRIDED,), dims="[[32, 16, 512, 64], [], []]")
DETACH = Op("aten::detach", (Op("detach"),), dims="[[1024, 1024]]")
THREE = "[[16384, 1024], [1024, 1024], [], []]"


def linear(longest: Kernel) -> Op:
    """Build a linear layer's forward operators."""
    product = Op("aten::addmm", (EXPAND,), BLAS_CALLS, longest, dims=THREE, differentiable=True)
    return Op("aten::linear", (TRANSPOSE, VIEW, product, VIEW), dims=THREE)


def batched(kernel: Kernel) -> Op:
    """Build a batched matrix product's forward operators."""
    product = Op("aten::bmm", (), BLAS_CALLS, kernel, dims="[[512, 512, 64], [512, 64, 512]]", differentiable=True)
    return Op(
        "aten::matmul", (EXPAND, VIEW, EXPAND, VIEW, product, VIEW), dims="[[32, 16, 512, 64], [32, 16, 64, 512]]"
    )


LAYER_NORM = Op(
    "aten::layer_norm", (Op("aten::native_layer_norm", (EMPTY, EMPTY, EMPTY, VIEW), (), K_NORM, differentiable=True),)
)
RESIDUAL = Op("aten::add", (), QUERY, K_ADD, dims="[[32, 512, 1024], [32, 512, 1024], []]", differentiable=True)
DROPOUT = Op("aten::dropout", (Op("aten::native_dropout", (EMPTY,), CAPTURE, K_DROPOUT, differentiable=True),))
SOFTMAX = Op("aten::softmax", (Op("aten::_softmax", (EMPTY,), PEEK, K_SOFTMAX, differentiable=True),))
GELU = Op("aten::gelu", (), QUERY, K_GELU, differentiable=True)
SCALE = Op("aten::mul", (), QUERY, K_SCALE, dims="[[32, 16, 512, 512], []]", differentiable=True)

EMBEDDING = Op(
    "aten::embedding", (Op("aten::index_select", (EMPTY,), QUERY, K_EMBEDDING, dims="[[50257, 1024], [], [16384]]"),)
)
FORWARD_BLOCK = (
    LAYER_NORM,
    linear(K_GEMM),
    Op("aten::split", (Op("aten::narrow", (Op("aten::slice", (AS_STRIDED,)),)),) * 3, differentiable=True),
    batched(K_GEMM_BATCHED),
    SCALE,
    SOFTMAX,
    DROPOUT,
    batched(K_GEMM_BATCHED),
    linear(K_GEMM),
    DROPOUT,
    RESIDUAL,
    LAYER_NORM,
    linear(K_GEMM),
    GELU,
    linear(K_GEMM),
    DROPOUT,
    RESIDUAL,
)
LOSS = Op(
    "aten::cross_entropy_loss",
    (
        Op("aten::log_softmax", (Op("aten::_log_softmax", (EMPTY,), PEEK, K_SOFTMAX, differentiable=True),)),
        Op("aten::nll_loss_nd", (Op("aten::nll_loss_forward", (EMPTY, EMPTY), QUERY, K_LOSS, differentiable=True),)),
    ),
)


def backward(node: str, *parts: Op) -> Op:
    """Wrap the parts of a backward node as the autograd engine records them."""
    inner = Op(node, parts, types="[]", dims="[]", differentiable=True)
    return Op(f"autograd::engine::evaluate_function: {node}", (inner,), types="[]", dims="[]")


def product(kernel: Kernel, *, zeroes_bytes: int = 0) -> Op:
    """Build one matrix product of a backward node."""
    return Op("aten::mm", (), BLAS_CALLS, kernel, zeroes_bytes=zeroes_bytes, dims="[[16384, 1024], [1024, 1024]]")


ACCUMULATE = Op(
    "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
    (Op("torch::autograd::AccumulateGrad", (DETACH, Op("aten::add_", (), QUERY, K_ADD)), types="[]", dims="[]"),),
    types="[]",
    dims="[]",
)
BIAS_SUM = Op("aten::sum", (EMPTY, AS_STRIDED), CAPTURE, K_SUM, zeroes_bytes=16_384)
ADDMM_BACK = backward(
    "AddmmBackward0", TRANSPOSE, product(K_GEMM_DATA), TRANSPOSE, product(K_GEMM_WEIGHT), TRANSPOSE, BIAS_SUM, VIEW
)
T_BACK = backward("TBackward0", TRANSPOSE)
VIEW_BACK = backward("ViewBackward0", Op("aten::reshape", (VIEW,)))
NORM_PARTS = Op("aten::native_layer_norm_backward", (EMPTY, EMPTY, EMPTY), QUERY, K_NORM_INPUT)
NORM_WEIGHT = Op("aten::native_layer_norm_backward", (), (), K_NORM_WEIGHT)
NORM_BACK = backward("NativeLayerNormBackward0", NORM_PARTS, NORM_WEIGHT)
BMM_BACK = backward("BmmBackward0", TRANSPOSE, product(K_GEMM_BATCHED), TRANSPOSE, product(K_GEMM_BATCHED))
DROP_BACK = backward("NativeDropoutBackward0", Op("aten::native_dropout_backward", (EMPTY_STRIDED,), QUERY, K_MUL))
SOFT_BACK = backward("SoftmaxBackward0", Op("aten::_softmax_backward_data", (EMPTY,), PEEK, K_SOFTMAX_BACK))
GELU_BACK = backward("GeluBackward0", Op("aten::gelu_backward", (EMPTY_STRIDED,), QUERY, K_GELU))
ADD_BACK = backward("AddBackward0")
MUL_BACK = backward("MulBackward0", Op("aten::mul", (), QUERY, K_MUL))
LINEAR_BACK = (VIEW_BACK, ADDMM_BACK, ACCUMULATE, T_BACK, ACCUMULATE)

SPLIT_BACK = backward("SplitBackward0", Op("aten::cat", (EMPTY,), QUERY, K_ADD))
ATTENTION_BACK = (BMM_BACK, DROP_BACK, SOFT_BACK, MUL_BACK, BMM_BACK, SPLIT_BACK)
BACKWARD_BLOCK = (
    *(ADD_BACK, DROP_BACK, *LINEAR_BACK, GELU_BACK, *LINEAR_BACK, NORM_BACK, ACCUMULATE),
    *(ADD_BACK, DROP_BACK, *LINEAR_BACK, *ATTENTION_BACK, *LINEAR_BACK, NORM_BACK, ACCUMULATE),
)
LOSS_BACK = (
    backward("NllLossBackward0", Op("aten::nll_loss_backward", (EMPTY,), QUERY, K_LOSS, zeroes_bytes=4_096)),
    backward("LogSoftmaxBackward0", Op("aten::_log_softmax_backward_data", (EMPTY,), PEEK, K_SOFTMAX_BACK)),
)
OPTIMIZER_PARAMETER = (
    Op("aten::mul_", (), QUERY, K_SCALE),
    Op("aten::add_", (), QUERY, K_ADD),
    Op("aten::addcmul_", (), QUERY, K_MUL),
    Op("aten::sqrt", (EMPTY_STRIDED,), QUERY, K_SCALE),
    Op("aten::addcdiv_", (), QUERY, K_ADD),
)
ZERO_GRAD = Op("aten::zero_", (Op("aten::fill_", (), QUERY, K_FILL),), dims="[[1024, 1024]]")
PARAMETERS_PER_BLOCK = 4
