"""The synthesizer of circom circuits: input JSON in, witness out.

Inputs are compared with the program by name and count before it computes anything. With the
circuit's .sym file missing inputs are named and shapes compared; without it only counts are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from partita.circuits.circom_host import fnv1a_64, input_record
from partita.circuits.circom_input import read_circom_input
from partita.circuits.circom_program import never
from partita.circuits.elements import first_not_below, words_of
from partita.circuits.errors import CircuitInputError, ProgramError
from partita.circuits.symbols import main_signals
from partita.groth16.witness import Witness

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from partita.circuits.circom_input import Signal
    from partita.circuits.circom_program import CircomProgram
    from partita.circuits.circom_run import ProgramRun, RunLimits

_NAMES_SHOWN: Final = 12


class CircomSynthesizer:
    """Makes witnesses of one circuit. Thread-safe; the interpreter lock is free while it computes.

    Args:
        program: the compiled witness program.
        limits: what one run may use.
        symbols: the bytes of the .sym file, or None.
    """

    def __init__(
        self,
        program: CircomProgram,
        limits: RunLimits,
        symbols: bytes | memoryview | None = None,
    ) -> None:
        self._program = program
        self._limits = limits
        self._shapes = main_signals("sym", symbols) if symbols is not None else None

    def synthesize(
        self,
        data: bytes | memoryview,
        *,
        source: str = "input",
        stop: Callable[[], bool] = never,
    ) -> Witness:
        """The witness of an input file.

        Args:
            data: the JSON text; see `circom_input`.
            source: its name, for errors.
            stop: asked now and then from another thread; True ends the run.

        Raises:
            FormatError: not JSON.
            CircuitInputError: inputs are missing, unknown, misshapen or no field elements.
            CircuitAssertError: the circuit refuses the inputs; with its own message.
            ProgramError: the program broke down; ProgramLimitError: it used too much.
            SynthesisStoppedError: `stop` said so.
        """
        program = self._program
        signals = read_circom_input(source, data, modulus=program.curve.r)
        with program.start(self._limits, stop) as run:
            hashes = {name: fnv1a_64(name) for name in signals}
            self._compare(run, signals, hashes)
            run.call("init", 1)
            records = [
                input_record(hashes[name], index, value)
                for name, signal in signals.items()
                for index, value in enumerate(signal.values)
            ]
            run.feed(b"".join(records), len(records))
            values = memoryview(run.fetch(program.n_wires)).toreadonly()
        if values[:32] != (1).to_bytes(32, "little"):
            raise ProgramError(program.source, "computed a witness whose wire 0 is not 1")
        bad = first_not_below(words_of(values), program.curve.r)
        if bad is not None:
            raise ProgramError(program.source, f"computed no field element for wire {bad}")
        return Witness(curve=program.curve.name, values=values)

    def _compare(
        self, run: ProgramRun, signals: Mapping[str, Signal], hashes: Mapping[str, int]
    ) -> None:
        sizes = {name: _signal_size(run, hashes[name]) for name in signals}
        # A program says 0 of a name that it does not know, as it does of an empty array.
        unknown = tuple(
            name for name, size in sizes.items() if size < 0 or (size == 0 and signals[name].values)
        )
        if unknown:
            raise CircuitInputError(
                f"unknown inputs: {_listed(unknown)}{self._inputs_note(run)}", unknown
            )
        for name, signal in signals.items():
            shape = (self._shapes or {}).get(name)
            if len(signal.values) != sizes[name]:
                wanted = _dimensions(shape) if shape else f"{sizes[name]} values"
                raise CircuitInputError(
                    f"input {name} has {len(signal.values)} values, the circuit wants {wanted}",
                    (name,),
                )
            if shape is not None and len(signal.shape) > 1 and signal.shape != shape:
                raise CircuitInputError(
                    f"input {name} has the shape {_dimensions(signal.shape)}, the circuit wants "
                    f"{_dimensions(shape)}",
                    (name,),
                )
        n_given = sum(len(signal.values) for signal in signals.values())
        n_wanted = self._program.n_inputs
        if n_given == n_wanted:
            return
        missing = tuple(name for name in self._input_names(run) if name not in signals)
        if missing:
            raise CircuitInputError(f"missing inputs: {_listed(missing)}", missing)
        raise CircuitInputError(
            f"{n_wanted - n_given} of {n_wanted} input values are missing; "
            f"given: {_listed(tuple(signals)) or 'none'}"
        )

    def _input_names(self, run: ProgramRun) -> tuple[str, ...]:
        """The names of the inputs, if the circuit has a .sym file."""
        return tuple(name for name in self._shapes or () if _signal_size(run, fnv1a_64(name)) > 0)

    def _inputs_note(self, run: ProgramRun) -> str:
        names = self._input_names(run)
        return f"; the circuit's inputs: {_listed(names)}" if names else ""


def _signal_size(run: ProgramRun, name_hash: int) -> int:
    return run.call("getInputSignalSize", *_signed_halves(name_hash))


def _signed_halves(name_hash: int) -> tuple[int, int]:
    high, low = name_hash >> 32, name_hash & 0xFFFFFFFF
    return high - ((high >> 31) << 32), low - ((low >> 31) << 32)


def _listed(names: tuple[str, ...]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _dimensions(shape: tuple[int, ...]) -> str:
    return "".join(f"[{n}]" for n in shape) or "one number"
