"""When two results count as the same: |got - want| <= absolute + relative * |want|, element by element."""

from dataclasses import dataclass

import numpy as np

RELATIVE, ABSOLUTE = 1e-3, 1e-5


@dataclass(frozen=True)
class Difference:
    """The worst element; `excess` is its error over its tolerance, so that 1 is the limit."""

    excess: float
    index: tuple[int, ...]
    got: float
    want: float

    @property
    def accepted(self) -> bool:
        return self.excess <= 1.0

    def __str__(self) -> str:
        return f"worst at {list(self.index)}: got {self.got:.9g}, want {self.want:.9g}, {self.excess:.3g} of the tolerance"


def difference(got: np.ndarray, want: np.ndarray, relative: float = RELATIVE, absolute: float = ABSOLUTE) -> Difference:
    if got.shape != want.shape or got.dtype != want.dtype:
        raise ValueError(f"got {got.dtype}{list(got.shape)}, want {want.dtype}{list(want.shape)}")
    if got.size == 0:
        return Difference(0.0, (), 0.0, 0.0)
    g, w = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore"):
        excess = np.abs(g - w) / (absolute + relative * np.abs(w))
    # Equal infinities and NaN where NaN is wanted agree; any other non-number does not.
    excess = np.where((g == w) | (np.isnan(g) & np.isnan(w)), 0.0, excess)
    excess = np.where(np.isnan(excess), np.inf, excess)
    index = np.unravel_index(int(np.argmax(excess)), excess.shape)
    return Difference(float(excess[index]), tuple(int(i) for i in index), float(g[index]), float(w[index]))


def assert_close(got: dict[str, np.ndarray], want: dict[str, np.ndarray], **tolerance) -> None:
    assert list(got) == list(want), f"outputs are {list(got)}, want {list(want)}"
    for name in want:
        worst = difference(got[name], want[name], **tolerance)
        assert worst.accepted, f"output {name!r}: {worst}"
