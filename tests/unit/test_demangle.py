"""Names of kernels: read as c++filt reads them, or left as they are."""

import random
import shutil
import subprocess

import pytest

from app.domain.coredump.demangle import demangled

# Made with nvcc 13.0 and g++ 12; the right side is what c++filt says.
KNOWN = {
    "_Z5plainPf": "plain(float*)",
    "_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE": (
        "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    ),
    "_Z29ncclDevFunc_AllGather_RING_LLv": "ncclDevFunc_AllGather_RING_LL()",
    "_Z4kernIfLi4EEvN2ns1PIT_XT0_EEEPS2_": None,  # an expression
    "_Z4nestI2OpEvRK1SIT_S1_IS0_fEEPFS2_ifEPKf": (
        "void nest<Op>(S<Op, S<Op, float> > const&, Op (*)(int, float), float const*)"
    ),
    "_Z2enIL1E1ELb1EEvPi": "void en<(E)1, true>(int*)",
    "_Z4packIJifcEEvDpT_": "void pack<int, float, char>(int, float, char)",
    "_Z4packIJEEvDpT_": "void pack<>()",
    "_ZN35_GLOBAL__N__4943d01b_5_k2_cu__Z1hPi4anonEPi": "(anonymous namespace)::anon(int*)",
    "_ZN35_GLOBAL__N__4943d01b_5_k2_cu__Z1hPi3lamIZ1hPiEUliE_EEvT_S1_": (
        "void (anonymous namespace)::lam<h(int*)::{lambda(int)#1}>(h(int*)::{lambda(int)#1}, int*)"
    ),
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_"
    "T1_": (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>,"
        " std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"
    ),
    "_Z1fRA4_i": "f(int (&) [4])",
    "_Z1fIOiEvOT_": None,  # no such name: a template argument is a type, here of a reference
}


@pytest.mark.parametrize(("mangled", "text"), KNOWN.items(), ids=str)
def test_a_name_is_read_as_cxxfilt_reads_it(mangled: str, text: str | None) -> None:
    found = demangled(mangled)
    if text is None:
        assert found is None or found.full == cxxfilt([mangled])[0]
    else:
        assert found is not None
        assert found.full == text


def test_the_short_name_has_no_parameters_and_no_result() -> None:
    found = demangled("_Z4packIJifcEEvDpT_")
    assert found is not None
    assert found.short == "pack<int, float, char>"


@pytest.mark.parametrize(
    "name",
    [
        "triton_poi_fused_add_0",
        "_Z22ncclDevKernel_AllGather4ringv",  # a length that is off by one
        "_Z",
        "_Z999999f",
        "_Z1f",
        "_Z1fS_",
        "_Z1fT_",
        "_ZTV3Foo",
        "_Z1fvv",
        "_ZN1fE_",
        "_Z" + "N" * 5000,
        "_Z1f" + "P" * 5000 + "i",
        "_Z1f" + "1aIS_" * 400,
        "_Z1fI" + "i" * 100 + "EvT_" + "PS1_" * 3000 + "é",
    ],
    ids=lambda name: name[:24],
)
def test_what_is_not_certain_stays_as_it_is(name: str) -> None:
    found = demangled(name)
    assert found is None or (name == "_Z1f" and found.full == "f")


def test_names_that_grow_without_end_are_given_up() -> None:
    # Each parameter is a template of the one before, twice: 2^30 words from 300 characters.
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    backs = [f"S{digits[at]}_" for at in range(30)]
    name = "_Z1f1tIiiE" + "".join(f"S_I{back}{back}E" for back in backs)

    assert demangled(name[:40].rsplit("S_I", 1)[0]) is not None
    assert demangled(name) is None


def cxxfilt(names: list[str]) -> list[str]:
    if shutil.which("c++filt") is None:
        pytest.skip("c++filt is not installed")
    done = subprocess.run(
        ["c++filt"], input="\n".join(names), text=True, capture_output=True, check=True
    )
    return done.stdout.splitlines()


def test_damaged_names_are_never_read_otherwise_than_by_cxxfilt() -> None:
    dice = random.Random(4)
    names = []
    for mangled in KNOWN:
        for _ in range(150):
            letters = list(mangled)
            for _ in range(dice.randint(1, 2)):
                letters[dice.randrange(2, len(letters))] = dice.choice("0123456789SETIPKRviflLJNZ_")
            names.append("".join(letters))
    read = [(name, found.full) for name in names if (found := demangled(name))]
    right = cxxfilt([name for name, _ in read])

    assert len(read) > 100
    # c++filt gives some valid names up; what both read is the same.
    assert [
        ours for (name, ours), theirs in zip(read, right, strict=True) if theirs not in (ours, name)
    ] == []
