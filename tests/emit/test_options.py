"""What generated code uses of numba that is private to numba: it must be there, and mean what it did."""

from __future__ import annotations

import inspect
import math
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import codegen, cpu, typed_passes, types
from numba.core.compiler import DefaultPassBuilder, Flags

from symdual.runtime.loading import LoadedPackage

ADVICE = (
    f"numba {numba.__version__} has changed what templates/options.py.jinja relies on; "
    "mend it there, and raise the bound on numba in pyproject.toml only then"
)


PRIVATE = ("no_cpython_wrapper", "no_cfunc_wrapper", "_nrt", "numba.core", "pipeline_class")


def test_they_stand_in_one_place() -> None:
    templates = sorted((Path(__file__).parents[2] / "templates").glob("*.py.jinja"))
    assert [file.name for file in templates if any(word in file.read_text() for word in PRIVATE)] == [
        "options.py.jinja"
    ]


def test_options_of_kernels(toy_package: LoadedPackage) -> None:
    kernel = toy_package.kernels.dynamics.targetoptions
    fast = {"contract", "reassoc"}
    assert {key: kernel[key] for key in ("fastmath", "error_model", "_nrt")} == {
        "fastmath": fast,
        "error_model": "numpy",
        "_nrt": False,
    }
    assert {**toy_package.options.KERNEL, "fastmath": {"contract"}} == toy_package.options.EXACT


@pytest.mark.parametrize("option", ["no_cpython_wrapper", "no_cfunc_wrapper", "_nrt"])
def test_options_of_functions_exist(option: str) -> None:
    assert hasattr(cpu.CPUTargetOptions, option), ADVICE


@pytest.mark.parametrize("method", ["_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals"])
def test_libraries_are_finished_by_methods_that_can_be_replaced(method: str) -> None:
    body = inspect.getsource(codegen.CPUCodeLibrary.finalize)
    assert hasattr(codegen.CPUCodeLibrary, method), ADVICE
    assert method == "_finalize_dynamic_globals" or f"self.{method}()" in body, ADVICE


def test_lowering_without_machine_code_is_a_flag() -> None:
    assert "no_compile" in Flags.options, ADVICE
    assert "flags.no_compile" in inspect.getsource(typed_passes.BaseNativeLowering.run_pass), ADVICE
    assert "NativeLowering" in inspect.getsource(DefaultPassBuilder.define_nopython_lowering_pipeline), ADVICE


def test_arguments_that_do_not_overlap_are_a_flag() -> None:
    assert "noalias" in Flags.options, ADVICE
    assert "noalias=flags.noalias" in inspect.getsource(typed_passes.BaseNativeLowering.run_pass), ADVICE


def test_operations_are_typed_by_a_method_that_can_be_replaced() -> None:
    """`_ask_once` stands in for it, and tells operations from implementations in Python by `_impl_keys`."""
    assert list(inspect.signature(types.BaseFunction.get_call_type).parameters) == ["self", "context", "args", "kws"]
    assert "self._impl_keys[sig.args] = temp.get_impl_key(sig)" in inspect.getsource(
        types.BaseFunction.get_call_type
    ), ADVICE
    assert "NopythonTypeInference" in inspect.getsource(DefaultPassBuilder.define_typed_pipeline), ADVICE


def test_numba_types_as_ever_when_a_package_has_been_compiled(toy_package: LoadedPackage) -> None:
    own = types.BaseFunction.get_call_type
    toy_package.filter.tray(np.zeros(1, toy_package.records.TASK))
    assert own is not toy_package.options._ask_once and types.BaseFunction.get_call_type is own


def test_an_inner_function_that_is_called_from_python_says_so(toy_package: LoadedPackage) -> None:
    weights = toy_package.records.make_weights(np.eye(1)[None], np.eye(1)[None], np.zeros((1, 1)))
    with pytest.raises(KeyError, match="state_cost is called by compiled code only"):
        toy_package.trajectory.state_cost(weights[0], np.zeros(1))


def test_what_is_not_finite_stays_visible_however_sums_are_reordered(toy_package: LoadedPackage) -> None:
    """numba asks by x - x whether x is finite; where x is a sum, nsz beside reassoc makes that zero."""

    @numba.njit(**toy_package.options.FAST)
    def finite(values: np.ndarray) -> bool:
        return math.isfinite(values[0] + values[1])

    assert [finite(np.array([value, 1.0])) for value in (1.0, math.nan, math.inf)] == [True, False, False]
