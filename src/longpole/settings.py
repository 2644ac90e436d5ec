"""Every threshold by name, with where it comes from; a user's TOML file may override any of them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from longpole.errors import UsageError
from longpole.units import NS_PER_S, NS_PER_US

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Thresholds of the analyses.

    Attributes:
        readout_max_bytes: A device-to-host copy of at most this size that a blocking call follows is a
            read-out, charged to the host (DESIGN 3.3).
        blocking_copy_min_ns: A copy call longer than this that returns after its copy has ended blocks on it
            (DESIGN 3.6).
        lost_lead_after_ns: The device ran dry "within" a blocking call if it did so at most this long after the
            call's return (DESIGN 3.4).
        kernel_gap_max_ns: Upper bound of the back-to-back gap that the device's own 99th percentile sets; a
            constant above it is not a constant (DESIGN 3.7 refuses above 100 µs).
        kernel_gap_default_ns: The back-to-back gap where the record holds too few of them.
        launch_latency_max_ns: A device that starts this long after the launching call has waited for something
            that the record does not show (the longest clean launch latency of the corpus, on Ascend, is 0.87 ms).
        one_off_min_share: A one-off takes at least this share of its unit to mark it (DESIGN 3.2).
        one_off_factor: A first call this many times longer than the later ones' median is a one-off (our choice:
            warm calls vary by less than three on the corpus).
        one_off_min_ns: A shorter first call is never looked at (our choice: what matters is a share of a unit).
        start_spread_max_share: Leading units that overlap the spread of the ranks' recording starts by more than
            this share of the median unit move into the head (DESIGN 3.2).
        p95_min_count: A 95th percentile is given from this many samples on (DESIGN 3.12).
        overlong_factor: A span in whose time its stream went on is impossible from this many times the stream's
            longest other span on (case B020; the corpus has overlapping graph nodes, none of them so long).
        overrun_min_ns: A span may end this long after everything else ended.
        host_overrun_min_ns: The same for spans of the host: a step annotation may rightly stay open for long.
        overrun_factor: Beyond that, a span that ends this many record lengths after everything else is impossible
            (a fixed limit lets a wrong hour pass, case B019).
        span_max_ns: No span is longer (our choice: 30 days; sums of longer ones would leave 64 bits).
        stray_max_share: Rows that lie as far away from the record as an overrun, in time, are strays where they are
            no more than this share of all rows (our choice: more of them are a second recording).
        job_gap_min_ns: Files whose recordings lie further apart than this are distinct jobs.
        parallel_min_bytes: From this much text on, other processes are started to read it (starting them costs about
            as long as reading 20 MB).
        expansion_max_ratio: An archive may not grow by more than this, beyond `expansion_free_bytes`
            (the largest ratio of a real trace in the corpus is 28; deflate's limit is 1032).
        expansion_free_bytes: An archive may always grow to this size.
    """

    readout_max_bytes: int = 4096
    blocking_copy_min_ns: int = 20 * NS_PER_US
    lost_lead_after_ns: int = 20 * NS_PER_US
    kernel_gap_max_ns: int = 100 * NS_PER_US
    kernel_gap_default_ns: int = 20 * NS_PER_US
    launch_latency_max_ns: int = 1000 * NS_PER_US
    one_off_min_share: float = 0.01
    one_off_factor: float = 10.0
    one_off_min_ns: int = 100 * NS_PER_US
    start_spread_max_share: float = 0.01
    p95_min_count: int = 20
    overlong_factor: float = 10.0
    overrun_min_ns: int = NS_PER_S
    host_overrun_min_ns: int = 3600 * NS_PER_S
    overrun_factor: float = 100.0
    span_max_ns: int = 30 * 24 * 3600 * NS_PER_S
    stray_max_share: float = 0.1
    job_gap_min_ns: int = 3600 * NS_PER_S
    parallel_min_bytes: int = 60 << 20
    expansion_max_ratio: int = 200
    expansion_free_bytes: int = 1 << 30


def read_settings(path: Path | None) -> Settings:
    """Return the defaults, overridden by the `[settings]` table of a TOML file.

    Raises:
        UsageError: The file cannot be read, is not TOML, or names a setting that does not exist or has
            another type.
    """
    default = Settings()
    if path is None:
        return default
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("settings", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        msg = f"{path}: expected a TOML file with settings, found: {error}"
        raise UsageError(msg) from None
    known = {field.name: type(getattr(default, field.name)) for field in fields(default)}
    for name, value in table.items():
        if name not in known:
            msg = f"{path}: no setting is called {name!r}; there are {', '.join(sorted(known))}"
            raise UsageError(msg)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            msg = f"{path}: setting {name} takes a number of at least 0, found {value!r}"
            raise UsageError(msg)
    return replace(default, **{name: known[name](value) for name, value in table.items()})
