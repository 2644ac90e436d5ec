"""The page of devices is made from the table, and current."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.hardware.devices import ALIASES, all_devices, find_device
from longpole.hardware.nccl_fits import all_fits
from tools import render_devices

if TYPE_CHECKING:
    from pathlib import Path


def test_the_devices_page_is_current(root: Path) -> None:
    page = (root / render_devices.PAGE).read_text(encoding="utf-8")

    assert render_devices.render_page(page) == page, "run python -m tools.render_devices"


def test_the_devices_page_lists_every_device_name_and_fit(root: Path) -> None:
    page = (root / render_devices.PAGE).read_text(encoding="utf-8")

    for device in all_devices():
        assert f"\n| `{device.name}` | " in page
    for alias, name in ALIASES.items():
        assert f"`{alias}`" in page
        assert find_device(alias).name == name
    for system, kind, ranks in all_fits():
        assert f"\n| {system} | " in page
        assert f" | {kind} | {ranks} | " in page
