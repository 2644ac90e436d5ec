"""Write the tables of `docs/reference/devices.md` from the device table, the fits and the sources of collective times.

`python -m tools.render_devices` rewrites what lies between the marks on the page; a test checks that the page is
current.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.costs.cluster import EFFICIENCY
from longpole.hardware.devices import ALIASES, all_devices
from longpole.hardware.nccl_fits import all_fits, system_of
from tools.generated_part import replace_part

if TYPE_CHECKING:
    from longpole.hardware.devices import Device

PAGE: Final = Path("docs/reference/devices.md")
_KINDS: Final = {"scale_up": "scale-up link", "pcie": "PCIe", "network": "network"}


def render_devices() -> str:
    """Return a row for each device: peaks, memory and links."""
    head = (
        "| name | also | BF16 | FP16 | FP8 | INT8 | memory | GB/s | link | one way | both ways | a pair | devices |"
        " PCIe, one way | W |\n"
        "| --- | --- | --: | --: | --: | --: | --: | --: | --- | --: | --: | --: | --: | --: | --: |"
    )
    return "\n".join([head, *(_render_device(device) for device in all_devices())])


def render_sources() -> str:
    """Return where each row is from, and what to know about it."""
    lines = []
    for device in all_devices():
        notes = f" *{_sentence(device.notes)}*" if device.notes else ""
        lines.append(f"- `{device.name}` ({device.confidence} confidence): {_sentence(device.source)}{notes}")
    return "\n".join(lines)


def render_fits() -> str:
    """Return a row for each shipped fit."""
    head = (
        "| system | devices of the table | collective | ranks | alpha, µs | gamma, ns/√B | rate, GB/s | error, median |"
        " largest |\n| --- | --- | --- | --: | --: | --: | --: | --: | --: |"
    )
    rows = [head]
    for (system, kind, ranks), fit in all_fits().items():
        names = ", ".join(f"`{device.name}`" for device in all_devices() if system_of(device.name) == system)
        rows.append(
            f"| {system} | {names} | {kind} | {ranks} | {fit.alpha_s * 1e6:.2f} | {fit.gamma_s * 1e9:.3g} |"
            f" {fit.bytes_per_s / 1e9:.1f} | {fit.error_share or 0:.1%} | {fit.error_max_share or 0:.0%} |"
        )
    return "\n".join(rows)


def render_efficiencies() -> str:
    """Return what large messages reach of each kind of link."""
    return "\n".join(
        [
            "| link | share |",
            "| --- | --: |",
            *(f"| {_KINDS[kind]} | {share:.0%} |" for kind, share in EFFICIENCY.items()),
        ]
    )


def render_page(page: str) -> str:
    """Return the page with the current tables."""
    page = replace_part(page, "devices", render_devices())
    page = replace_part(page, "sources", render_sources())
    page = replace_part(page, "efficiencies", render_efficiencies())
    return replace_part(page, "fits", render_fits())


def _render_device(device: Device) -> str:
    also = ", ".join(f"`{alias}`" for alias, name in ALIASES.items() if name == device.name)
    peaks = " | ".join(_number(device.peak_flops.get(dtype), 1e12) for dtype in ("bf16", "fp16", "fp8", "int8"))
    links = " | ".join(
        _number(rate, 1e9)
        for rate in (device.scaleup_bytes_per_s, device.scaleup_both_bytes_per_s, device.pair_bytes_per_s)
    )
    reported = device.reported_memory_bytes
    gib = "" if reported is None else f" ({reported / 2**30:.1f} GiB)"
    memory = f"{_number(device.memory_bytes, 1e9)} GB{gib} | {_number(device.memory_bytes_per_s, 1e9)}"
    domain, pcie, power = device.scaleup_domain, device.pcie_bytes_per_s, device.power_w
    rest = f"{_number(domain, 1)} | {_number(pcie, 1e9)} | {_number(power, 1)}"
    return f"| `{device.name}` | {also} | {peaks} | {memory} | {device.fabric} | {links} | {rest} |"


def _number(value: float | None, unit: float) -> str:
    return "–" if value is None else f"{value / unit:,.2f}".rstrip("0").rstrip(".")


def _sentence(text: str) -> str:
    return text.strip().rstrip(".").replace("<", "&lt;").replace("*", "\\*") + "."


if __name__ == "__main__":
    PAGE.write_text(render_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
