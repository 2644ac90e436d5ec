"""Peaks of 32-bit arithmetic."""

from __future__ import annotations

import re

import pytest

from longpole.hardware.devices import all_devices
from longpole.hardware.vector_peaks import vector_peaks


def test_every_row_names_a_device_of_the_table_and_a_source() -> None:
    names = {device.name for device in all_devices()}

    assert vector_peaks().keys() <= names
    assert all(peak.source for peak in vector_peaks().values())


@pytest.mark.parametrize("name", sorted(vector_peaks()))
def test_a_stated_product_of_units_and_clock_gives_the_peak(name: str) -> None:
    """Processors · units · 2 FLOPs · clock, or processors · FLOPs · clock, as the source column says."""
    peak = vector_peaks()[name]
    said = re.match(r"(\d+) \S+ \* (\d+) \S+(?: \* (2))? \* ([\d.]+) GHz", peak.source)
    if said is None:
        assert "processors" in peak.source, "the row says whose processors it has"
        return
    processors, units, flops, clock_ghz = said.groups()

    assert int(processors) * int(units) * int(flops or 1) * float(clock_ghz) * 1e9 == pytest.approx(
        peak.fp32_flops_per_s, rel=0.01
    )


def test_tf32_is_half_of_bf16_where_a_device_has_it() -> None:
    by_name = {device.name: device for device in all_devices()}

    for name, peak in vector_peaks().items():
        if peak.tf32_flops_per_s is not None:
            assert peak.tf32_flops_per_s == pytest.approx(by_name[name].peak_flops["bf16"] / 2, rel=0.001)
