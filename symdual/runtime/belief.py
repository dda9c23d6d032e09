"""The Gaussian belief on z = (x, theta), and what it says of each state and unknown by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array
from symdual.common.display import first_few, shown, with_deviation
from symdual.common.errors import SymdualError
from symdual.common.named_arrays import place_of
from symdual.common.numbers import require_semidefinite, root
from symdual.common.transforms import Moments, Transform, moments_of, quantiles_of, values_of
from symdual.runtime.evaluate import argument, whole_number
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.outliers import counts_outliers

if TYPE_CHECKING:
    import pandas

SHARE = 0.95  #: of the usual interval


class Belief(NamedTuple):
    """The Gaussian belief on z = (x, theta): mean (NZ,) and covariance (NZ, NZ).

    With a Gaussian process in the model, `memory` (DATA,) holds its points, and its rows of mean and covariance are
    relative to its prior: `symdual.runtime.posterior` converts them to the function. `names` are the names of the
    entries of z, if known. The name of a family stands for all of its weights.

    If the model has `outliers`, `rejected` (NY,) counts the consecutive outliers of each measured number.

    An unknown with bounds is stored in z as its logarithm or logit, which is normal; `transforms` convert it to your
    units. Everything by name is in your units: means and deviations are those of the log-normal or logistic-normal
    distribution, intervals its quantiles.

    >>> problem.prior
    <Belief x = 1 +- 0, b = 1 +- 3.2>
    >>> problem.prior["b"].mean, round(problem.prior["b"].deviation, 2)
    (1.0, 3.16)
    >>> print(problem.prior.to_pandas().round(2))
       mean  deviation  lower  upper
    x   1.0       0.00    1.0    1.0
    b   1.0       3.16   -5.2    7.2
    """

    mean: Array
    covariance: Array
    memory: Array | None = None
    names: tuple[str, ...] = ()
    transforms: tuple[Transform, ...] = ()
    rejected: Array | None = None

    def __getitem__(self, key: Any) -> Any:
        """What is believed of a state or an unknown by its name or symbol (`Marginal`), or a field by its number."""
        if isinstance(key, slice) or hasattr(key, "__index__"):
            return tuple.__getitem__(self, key)
        return self.of(str(key))

    def of(self, name: str) -> Marginal:
        """What is believed of a state or an unknown by its name."""
        return Marginal(self, name, place_of(self.labels, name, "the belief says"))

    def samples(self, count: int = 1000, seed: int = 0) -> Array:
        """Draws of states and unknowns, (count, NZ), in your units; the same seed gives the same draws."""
        number, seed = whole_number(count, "the number of samples"), whole_number(seed, "the seed", least=0)
        if self.memory is not None:
            raise SymdualError(
                "a belief on a Gaussian process is one on a function and has no samples; symdual.posterior tells it"
            )
        drawn = np.random.default_rng(seed).standard_normal((number, len(self.mean)))
        return values_of(self.transforms, self.mean + drawn @ root(self.covariance).T)

    @property
    def moments(self) -> Moments:
        """Mean and variance of each entry, (NZ,), in your units."""
        return moments_of(self.transforms, self.mean, np.diagonal(self.covariance))

    def to_pandas(self) -> pandas.DataFrame:
        """A table with a row for each entry of z: mean, standard deviation, and the interval that holds 95 %."""
        try:
            import pandas
        except ImportError as missing:
            raise SymdualError("labelled tables need pandas: pip install 'symdual[pandas]'") from missing
        own = self.everything
        lower, upper = own.interval()
        columns = {"mean": own.mean, "deviation": own.deviation, "lower": lower, "upper": upper}
        return pandas.DataFrame(columns, index=self.labels)

    @property
    def everything(self) -> Marginal:
        """All entries of z at once."""
        return Marginal(self, "z", list(range(len(self.mean))))

    @property
    def labels(self) -> list[str]:
        """The names of the entries of z, or numbers where they have none."""
        return list(self.names) or [f"z[{i}]" for i in range(len(self.mean))]

    def __repr__(self) -> str:
        own = self.everything
        rows = zip(self.labels, np.ravel(own.mean), np.ravel(own.deviation), strict=True)
        return f"<Belief {first_few([with_deviation(*one) for one in rows])}>"

    def __str__(self) -> str:
        """Mean and standard deviation by name, as a table."""
        return str(shown("a belief in a terminal", self))

    def _repr_html_(self) -> str:
        """Mean and standard deviation by name, for notebooks."""
        return str(shown("a belief in a notebook", self))


@dataclass(frozen=True, eq=False)
class Marginal:
    """What a belief says of one number, or of all weights of a family, which then are arrays.

    >>> strength = problem.prior["b"]
    >>> strength
    <b = 1 +- 3.2>
    >>> strength.samples(3).shape
    (3,)
    """

    belief: Belief
    name: str
    place: int | list[int]

    @property
    def mean(self) -> float | Array:
        """The expected value."""
        return _number(self.belief.moments.mean[self.place])

    @property
    def deviation(self) -> float | Array:
        """The standard deviation."""
        return _number(np.sqrt(np.maximum(self.belief.moments.variance[self.place], 0.0)))

    def interval(self, share: float = SHARE) -> tuple[float | Array, float | Array]:
        """Lower and upper end of what holds the number with this probability; as much lies below as above."""
        if not 0.0 < share < 1.0:
            raise SymdualError(f"the probability of an interval must be between 0 and 1, not {share!r}")
        mean, variance = self.belief.mean, np.diagonal(self.belief.covariance)
        ends = (quantiles_of(self.belief.transforms, p, mean, variance) for p in (0.5 - 0.5 * share, 0.5 + 0.5 * share))
        lower, upper = (_number(end[self.place]) for end in ends)
        return lower, upper

    def samples(self, count: int = 1000, seed: int = 0) -> Array:
        """Draws, (count,) or (count, weights): the columns of `Belief.samples`, so that two names belong together."""
        return self.belief.samples(count, seed)[:, self.place]

    def __repr__(self) -> str:
        if isinstance(self.place, list):
            return f"<{self.name}: {np.size(self.mean)} numbers>"
        return f"<{with_deviation(self.name, float(self.mean), float(self.deviation))}>"


def _number(value: Any) -> float | Array:
    return value if np.ndim(value) else float(value)


def checked_belief(package: LoadedPackage, belief: Belief) -> Belief:
    """A belief of the right shapes, finite and positive semidefinite, or a sentence that says what is wrong."""
    mean = argument(belief.mean, (package.NZ,), "the mean of the belief")
    covariance = argument(belief.covariance, (package.NZ, package.NZ), "the covariance of the belief")
    if not (np.all(np.isfinite(mean)) and np.all(np.isfinite(covariance))):
        raise SymdualError("the belief contains a value that is NaN or infinite")
    own = np.flatnonzero(~processes_of(package))
    # that of a filter after an exact measurement is rounded: variances of 1e-12 of what they were
    require_semidefinite(covariance[None][:, own][:, :, own], "the covariance of the belief", 1e-6)
    return Belief(
        mean,
        np.ascontiguousarray(0.5 * (covariance + covariance.T)),
        _checked_memory(package, belief.memory),
        package.belief_names,
        package.transforms,
        _checked_counts(package, belief.rejected),
    )


def _checked_counts(package: LoadedPackage, rejected: Array | None) -> Array | None:
    """How often in a row each measured number was too far off; a belief that says nothing has met none."""
    if not counts_outliers(package):
        return None
    if rejected is None:
        return np.zeros(package.NY)
    counts = argument(rejected, (package.NY,), "what the belief says of outliers")
    if not np.all((counts >= 0.0) & np.isfinite(counts)):
        raise SymdualError("what the belief says of outliers is no count")
    return counts


def processes_of(package: LoadedPackage) -> NDArray[np.bool_]:
    """Which entries of z belong to Gaussian processes."""
    found = np.zeros(package.NZ, dtype=bool)
    for arrays in package.PROCESSES.values():
        for name in arrays:
            start, count = package.UNKNOWNS[name]
            found[package.NX + start : package.NX + start + count] = True
    return found


def _checked_memory(package: LoadedPackage, memory: Array | None) -> Array | None:
    if not package.PROCESSES:
        return None
    if memory is None:
        return package.numbers["data"]
    numbers = argument(memory, (package.DATA,), "the memory of the belief")
    if not np.all(np.isfinite(numbers)):
        raise SymdualError("the memory of the belief contains a value that is NaN or infinite")
    return numbers
