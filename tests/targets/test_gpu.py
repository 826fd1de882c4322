"""Names of GPUs, and what is known of them."""

import pytest

from tensorlang.errors import CompileError
from tensorlang.targets.gpu import parse_gpu_target

KNOWN = (
    '"cuda:sm_75", "cuda:sm_80", "cuda:sm_86", "cuda:sm_87", "cuda:sm_89", "cuda:sm_90", '
    '"cuda:sm_100", "cuda:sm_120"'
)


def test_limits_of_architectures() -> None:
    ampere, hopper = parse_gpu_target("cuda:sm_80"), parse_gpu_target("cuda:sm_90")
    assert (ampere.architecture, ampere.ptx, ampere.shared_bytes) == ("sm_80", 70, 163 * 1024)
    assert (hopper.architecture, hopper.ptx, hopper.shared_bytes) == ("sm_90", 78, 227 * 1024)


@pytest.mark.parametrize("text", ["cuda", "cuda:90", "cuda:sm_90 -O3"])
def test_a_target_without_an_architecture(text: str) -> None:
    with pytest.raises(CompileError) as error:
        parse_gpu_target(text)
    assert str(error.value) == (
        f'target "{text}": which GPU is not said.\nThe targets known here are {KNOWN}.'
    )


def test_an_unknown_architecture() -> None:
    with pytest.raises(CompileError, match="the architecture sm_42 is not known"):
        parse_gpu_target("cuda:sm_42")
