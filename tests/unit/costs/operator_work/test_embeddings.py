"""FBGEMM's tables and sparse features, from arguments as traces of 2022 and 2023 hold them, by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from longpole.costs.operator_work.call import parse_call
from longpole.costs.operator_work.count import count_work

if TYPE_CHECKING:
    from longpole.costs.operator_work.call import Call
    from longpole.costs.operator_work.work import Work

FLOAT, HALF, LONG, INT, NUMBER = "float", "c10::Half", "long", "int", "Scalar"
LOOK_UP = "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function"
GRADIENT = "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>"


def call(name: str, dims: list[object], types: list[str], values: list[str] | None = None) -> Call:
    found = parse_call(name, json.dumps(dims), json.dumps(types), json.dumps(values or []))
    assert found is not None
    return found


def figures(found: Work | None) -> tuple[int | None, int | None, bool]:
    """Return FLOPs, bytes, and whether these are a lower bound."""
    assert found is not None
    return found.flops, found.moved_bytes, found.at_least


def look_up(
    *,
    features: int,
    batch: int,
    n: int,
    elements: int,
    rows: int,
    table: str = FLOAT,
    weighted: bool = False,
    host: int = 0,
    widths: tuple[int, int] | None = None,
) -> Call:
    """Return a look-up with the arguments of `rowwise_adagrad`: tables, places, widths, indices, state."""
    t: list[object] = [features]
    dims: list[object] = [[0], [elements], [host], [0, 0], t, t, [features + 1], [], [], [features + 1], []]
    dims += [[n], [features * batch + 1], [], [n] if weighted else [], [], [0], [], [], [], [rows], [0], t, t, []]
    types = [FLOAT, table, table, table, INT, LONG, INT, NUMBER, NUMBER, LONG, NUMBER, LONG, LONG, NUMBER]
    types += [FLOAT if weighted else "", "", INT, NUMBER, NUMBER, NUMBER, FLOAT, FLOAT, INT, LONG, NUMBER]
    values = ["", "", "", "", "", "", "", *(str(one) for one in widths or ())]
    return call(LOOK_UP, dims, types, values if widths else None)


def gradient(rows: int, width: int, dtype: str = FLOAT) -> Call:
    return call(GRADIENT, [[rows, width]], [dtype])


class TestLookUps:
    def test_one_tables_width_is_its_elements_by_its_states_rows(self) -> None:
        # 1000 rows of 96; 300 indices of 8 bytes, 65 offsets; the result is not known yet: a bound.
        found = count_work(look_up(features=1, batch=64, n=300, elements=96_000, rows=1000))
        assert figures(found) == (None, 300 * 96 * 4 + 300 * 8 + 65 * 8, True)

    def test_the_gradient_that_comes_back_has_the_results_shape(self) -> None:
        one = look_up(features=1, batch=64, n=300, elements=96_000, rows=1000)
        found = count_work(one, gradient(64, 96))
        assert figures(found) == (300 * 96, 300 * 96 * 4 + 300 * 8 + 65 * 8 + 64 * 96 * 4, False)

    def test_weights_of_indices_are_read_and_multiplied(self) -> None:
        one = look_up(features=1, batch=64, n=300, elements=96_000, rows=1000, weighted=True)
        found = count_work(one, gradient(64, 96))
        assert figures(found) == (2 * 300 * 96, 300 * 96 * 4 + 300 * (8 + 4) + 65 * 8 + 64 * 96 * 4, False)

    def test_of_tables_of_unknown_widths_rows_count_as_the_narrowest(self) -> None:
        # Three tables, 240 wide together: which table an index is of is not recorded. 2 bytes an element.
        one = look_up(features=3, batch=8, n=100, elements=80_000, rows=1000, table=HALF)
        found = count_work(one, gradient(8, 240))
        assert figures(found) == (None, 100 * 4 * 2 + 100 * 8 + 25 * 8 + 8 * 240 * 4, True)

    def test_widths_are_equal_where_their_sum_is_that_many_times_the_largest(self) -> None:
        one = look_up(features=3, batch=8, n=100, elements=80_000, rows=1000, widths=(240, 80))
        found = count_work(one, gradient(8, 240))
        assert figures(found) == (100 * 80, 100 * 80 * 4 + 100 * 8 + 25 * 8 + 8 * 240 * 4, False)

    def test_a_row_for_each_index_shows_the_width_and_adds_nothing(self) -> None:
        one = look_up(features=3, batch=8, n=100, elements=80_000, rows=1000)
        found = count_work(one, gradient(100, 64))
        assert figures(found) == (0, 100 * 64 * 4 + 100 * 8 + 25 * 8 + 100 * 64 * 4, False)

    def test_rows_of_tables_in_the_hosts_memory_are_left_out(self) -> None:
        one = look_up(features=1, batch=64, n=300, elements=0, rows=1000, host=96_000)
        found = count_work(one, gradient(64, 96))
        assert figures(found) == (300 * 96, 300 * 8 + 65 * 8 + 64 * 96 * 4, True)

    def test_a_result_of_other_rows_tells_nothing(self) -> None:
        one = look_up(features=1, batch=64, n=300, elements=96_000, rows=1000)
        assert count_work(one, gradient(63, 128)) == count_work(one)

    def test_a_dense_table_is_handed_otherwise(self) -> None:
        dims: list[object] = [[112], [2], [3], [], [], [3], [], [32], [33], [], [], [], []]
        types = [FLOAT, LONG, INT, NUMBER, NUMBER, LONG, NUMBER, LONG, LONG, NUMBER, "", "", NUMBER]
        found = count_work(call("fbgemm::dense_embedding_codegen_lookup_function", dims, types), gradient(16, 32))
        assert figures(found) == (None, 32 * 4 * 4 + 32 * 8 + 33 * 8 + 16 * 32 * 4, True)


class TestGradients:
    def test_a_gradient_reads_a_row_for_each_index(self) -> None:
        one = look_up(features=1, batch=64, n=300, elements=96_000, rows=1000)
        found = count_work(gradient(64, 96), one)
        assert figures(found) == (None, 300 * 96 * 4 + 300 * 8 + 65 * 8, True)

    def test_without_indices_nothing_must_be_read(self) -> None:
        one = look_up(features=1, batch=64, n=0, elements=64, rows=1)
        assert count_work(gradient(64, 64), one) is None

    def test_alone_it_tells_nothing(self) -> None:
        assert count_work(gradient(64, 96)) is None


class TestSparseFeatures:
    def test_a_permutation_moves_lengths_and_indices(self) -> None:
        dims: list[object] = [[24], [24, 16], [768], [], []]
        found = count_work(call("fbgemm::permute_2D_sparse_data", dims, [INT, INT, INT, "", NUMBER]))
        assert figures(found) == (0, 24 * 4 + 2 * 24 * 16 * 4 + 2 * 768 * 4, False)

    def test_how_many_indices_come_out_of_another_selection_is_an_argument(self) -> None:
        dims: list[object] = [[30], [24, 16], [768], [768], []]
        types = [INT, INT, LONG, FLOAT, NUMBER]
        told = count_work(call("fbgemm::permute_2D_sparse_data", dims, types, ["", "", "", "", "900"]))
        silent = count_work(call("fbgemm::permute_2D_sparse_data", dims, types))
        lengths = 30 * 4 + 2 * 30 * 16 * 4
        assert figures(told) == (0, lengths + 2 * 900 * (8 + 4), False)
        assert figures(silent) == (0, lengths, True)

    def test_buckets_without_the_number_of_ranks_are_one_at_least(self) -> None:
        name = "fbgemm::block_bucketize_sparse_features"
        dims: list[object] = [[44], [700], [], [], [11], [], []]
        types = [INT, INT, NUMBER, NUMBER, INT, NUMBER, ""]
        silent = count_work(call(name, dims, types))
        told = count_work(call(name, dims, types, ["", "", "False", "True", "", "8", ""]))
        assert figures(silent) == (0, 4 * (44 + 700 + 11 + 44 + 700), True)
        assert figures(told) == (0, 4 * (44 + 700 + 11 + 8 * 44 + 700 + 700), False)

    def test_checks_read_and_sums_begin_with_nothing(self) -> None:
        dims: list[object] = [[5], [100], [21], [], [1]]
        found = count_work(call("fbgemm::bounds_check_indices", dims, [LONG, LONG, LONG, NUMBER, LONG]))
        assert figures(found) == (0, 8 * (5 + 100 + 21), False)
        sums = count_work(call("fbgemm::asynchronous_complete_cumsum", [[384]], [INT]))
        assert figures(sums) == (0, 4 * (384 + 385), False)

    def test_pooled_embeddings_are_written_to_other_places(self) -> None:
        dims: list[object] = [[4096, 768], [13], [12], [13], [12]]
        found = count_work(call("fbgemm::permute_pooled_embs_auto_grad", dims, [FLOAT] + [LONG] * 4))
        assert figures(found) == (0, 2 * 4096 * 768 * 4, False)

    @pytest.mark.parametrize(
        ("name", "dims", "dtype", "moved_bytes"),
        [
            # 255 numbers are padded to 256 bytes, a scale and an offset follow.
            ("fbgemm::FloatToFP8RowwiseQuantized", [100, 255], FLOAT, 100 * (255 * 4 + 256 + 8)),
            ("fbgemm::FP8RowwiseQuantizedToFloat", [100, 264], "unsigned char", 100 * (264 + 256 * 4)),
            ("fbgemm::FloatToHFP8Quantized", [1000], FLOAT, 5000),
            ("fbgemm::HFP8QuantizedToFloat", [1000], "unsigned char", 5000),
        ],
    )
    def test_rows_of_8_bits(self, name: str, dims: list[int], dtype: str, moved_bytes: int) -> None:
        found = count_work(call(name, [dims, []], [dtype, NUMBER]))
        assert found is not None
        assert (found.moved_bytes, found.at_least) == (moved_bytes, False)
