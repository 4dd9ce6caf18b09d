"""What a CUDA coredump shows: which kernels ran on which SMs, where their threads stood, faults."""

from dataclasses import dataclass

from app.domain.coredump.collectives import Collective
from app.domain.coredump.demangle import demangled
from app.domain.coredump.exceptions import ExceptionCode
from app.domain.coredump.tables import Context, Device, Dim, Origin


@dataclass(frozen=True, slots=True)
class Place:
    """Threads that stood at one address. *function* is mangled; None: in no known code."""

    at: int
    function: str | None
    offset: int | None
    lanes: int
    warps: int


@dataclass(frozen=True, slots=True)
class KernelOnDevice:
    """One kernel on one GPU: its *grids* of one shape, and the SMs that hold blocks of it."""

    device: int
    mangled: str | None  # None: the entry address is in no code of the dump
    entry: int
    size: Dim
    block: Dim
    cluster: Dim | None
    status: str
    grids: int
    blocks: int
    warps: int
    lanes: int
    sms: tuple[int, ...]
    places: tuple[Place, ...]  # most lanes first
    collective: Collective | None

    @property
    def name(self) -> str:
        """As a person reads it; what has no certain reading is shown as it is."""
        return readable(self.mangled) or f"code at {self.entry:#x}"

    @property
    def short_name(self) -> str:
        known = demangled(self.mangled) if self.mangled else None
        return known.short if known else self.name


@dataclass(frozen=True, slots=True)
class GpuException:
    """One exception of one SM. *kernel* and *function* are mangled; None: not known."""

    code: ExceptionCode
    device: int
    sm: int
    at: int | None
    exact: bool  # *at* is the address of the error, not only where the thread stood
    kernel: str | None
    function: str | None
    offset: int | None
    block: Dim | None
    thread: Dim | None
    lanes: int  # 0: reported for the SM as a whole
    detail: str | None

    @property
    def where(self) -> str | None:
        """The kernel, or the function where the kernel is not known; mangled."""
        return self.kernel or self.function


@dataclass(frozen=True, slots=True)
class GpuState:
    """Everything that was read. *problems* are sentences about what was not as it should be."""

    origin: Origin | None
    devices: tuple[Device, ...]
    contexts: tuple[Context, ...]
    kernels: tuple[KernelOnDevice, ...]
    exceptions: tuple[GpuException, ...]
    sections: int
    problems: tuple[str, ...]

    def busy_sms(self, device: int) -> set[int]:
        """SMs of *device* that hold a block of any kernel."""
        return {sm for kernel in self.kernels if kernel.device == device for sm in kernel.sms}

    def arch(self, device: int) -> str | None:
        return next((one.arch for one in self.devices if one.index == device), None)


def readable(mangled: str | None) -> str | None:
    """The demangled name; where that is not certain, the name as it is."""
    known = demangled(mangled) if mangled else None
    return known.full if known else mangled
