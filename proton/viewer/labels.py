"""What programs and the places they ran on are called, in every output."""

from proton.trace.model import Kernel, Launch


def program_name(kernel: Kernel, launch: Launch, program: int, unit: int) -> str:
    """`add 3`; with coordinates where the grid has more than one dimension, and with the unit
    where programs have several."""
    x, y, z = launch.grid
    if y == z == 1:
        place = str(program)
    else:
        place = f"({program % x}, {program // x % y}, {program // (x * y)})"
    return f"{kernel.name} {place}" + (f" unit {unit}" if kernel.units > 1 else "")


def place_name(kernel: Kernel, thread: int, core: int) -> str:
    """What ran the program: an SM of a GPU, a thread of the host."""
    return f"SM {core}" if kernel.target.startswith("cuda") else f"thread {thread}"
