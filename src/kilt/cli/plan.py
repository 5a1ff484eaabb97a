"""``kilt estimate`` predicts the cost of a run, and ``kilt new`` writes a configuration."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kilt.cli import options
from kilt.cli.show import AsJson, count, out, print_json, print_table, say, waiting
from kilt.cost import in_bytes, in_time

if TYPE_CHECKING:
    from kilt.cost import Cost
    from kilt.runs.plan import RunPlan
    from kilt.runs.spec import Spec
    from kilt.solve.distributed.forecast import ClusterForecast
    from kilt.solve.distributed.memory import PartsMemory
    from kilt.solve.external import Pace

ON_DISK = "cfr+disk", "cfr+disk:average"  # its subgames can be shared by several machines
MEASURED = 3.0  # seconds of measuring the cost of a batch


def estimate(
    what: Annotated[str, options.WHAT],
    probe: Annotated[
        bool,
        typer.Option("--probe", help="Measure the speed of this machine for some seconds. Default: a usual speed."),
    ] = False,
    blades: Annotated[str | None, options.BLADES] = None,
    simulate: Annotated[
        bool,
        typer.Option(
            "--simulate", help="Predict the time of a run on the blades, from the cost of its parts on this machine."
        ),
    ] = False,
    cores: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="C", help="Cores of each blade, or machine. Default: the threads of CONFIG, or all."
        ),
    ] = None,
    latency: Annotated[
        str, typer.Option(metavar="L", help="What a message takes: one or several, such as 1us,60us,1ms.")
    ] = "1us,60us,1ms",
    bandwidth: Annotated[
        float | None, typer.Option(metavar="G", help="Bandwidth of the head in Gbit/s. Default: unlimited.")
    ] = None,
    machine_cores: Annotated[
        int | None, typer.Option(min=1, metavar="C", help="Cores of one machine that all blades are on, and the head.")
    ] = None,
    algorithm: Annotated[str | None, options.ALGORITHM] = None,
    machines: Annotated[
        int, typer.Option("--machines", min=1, metavar="N", help="For a game: that share its subgames.")
    ] = 1,
    iterations: Annotated[int | None, options.ITERATIONS] = None,
    target: Annotated[str | None, options.TARGET] = None,
    device: Annotated[str | None, options.DEVICE] = None,
    keys: Annotated[list[str] | None, options.SET] = None,
    as_json: AsJson = False,
) -> None:
    """Estimate the memory, disk space and time for solving, without building anything.

    A game is solved in memory. If it does not fit, or with --machines, the estimate is for CFR+ with tables on disk; -a
    names another algorithm. Abstract games are counted round by round. With --blades, the cost of each worker process
    is listed; --simulate predicts the speed of a cluster that is larger than this machine.

    --set can change every key of a configuration.
    """
    from kilt import machine
    from kilt.errors import RunError
    from kilt.games import ready_made_games
    from kilt.gpu import has_room
    from kilt.runs.budget import parse_exploitability
    from kilt.runs.plan import RunPlan
    from kilt.solve.distributed.forecast import blades_of, latency_of
    from kilt.spots.specs import spec_for

    named = what in ready_made_games() or not (what.endswith(".toml") or Path(what).is_dir())
    plan: Spec | None = None
    values = options.settings(keys) | {"solver.algorithm": algorithm, "solver.device": device}
    with waiting("counting …"):
        if not named or algorithm not in (None, *ON_DISK):
            plan = spec_for(what, values)
        elif algorithm is None and machines == 1 and (cores, iterations, target) == (None, None, None):
            spec = spec_for(what, values)
            with suppress(RunError):  # its tables may fit on disk
                plan = spec if spec.cost().fits else None
    if plan is None:
        chips = None if target is None else parse_exploitability(target, what)
        _plan_disk(
            what, algorithm or ON_DISK[0], machines, cores, bandwidth, iterations, chips, probe=probe, as_json=as_json
        )
        return
    if not isinstance(plan, RunPlan):
        _print_cost(what, plan, as_json=as_json)
        return
    config, said = Path(what), plan.config
    shares = blades_of(blades) if blades is not None else said.engine.levels if said.engine.name else ()
    network = [(text.strip(), latency_of(text)) for text in latency.split(",")]
    if simulate and not shares:
        raise RunError("there are no blades to simulate: give --blades N, or `blades` in [engine] of CONFIG")
    if bandwidth is not None and not bandwidth > 0:
        raise RunError(f"--bandwidth is {bandwidth:g}: give more than 0 Gbit/s, or leave it out")
    with waiting("counting …"):
        cost = plan.cost()
    parts = _Parts(plan.process_memory(shares), cost.mapped) if shares else None
    there, fits = machine.available_memory(), cost.fits
    walked = None
    there_too = plan.device == "cpu" or has_room(cost.device)
    if probe and fits and there_too and not simulate and cost.iteration is None:
        with waiting("walking the game for some seconds …"):
            walked = plan.pace()
    simulated = None
    if simulate:
        with waiting("measuring what a batch costs here …"):
            simulated = _Simulated.of(plan, shares, cores or said.solver.threads, network, bandwidth, machine_cores)
    if as_json:
        print_json(
            plan.size._asdict()
            | {"algorithm": said.solver.algorithm, "fits": fits}
            | run_cost_data(cost)
            | ({} if walked is None else {f"{name}_per_second": value for name, value in walked._asdict().items()})
            | ({} if parts is None else parts.data())
            | ({} if simulated is None else simulated.data())
        )
        _end(fits=fits or bool(shares))
        return
    size, rounds = plan.size, range(len(plan.size.slots))
    buckets = [" and ".join(map(count, dict.fromkeys(both))) for both in zip(*size.buckets, strict=True)]
    titles = ["round", "decisions", "buckets", "information sets", "infoset-actions"]
    rows = [
        [str(r + 1), count(size.decisions[r]), buckets[r], count(size.infosets[r]), count(size.slots[r])]
        for r in rounds
    ]
    total = ["all", count(sum(size.decisions)), "", count(sum(size.infosets)), count(sum(size.slots))]
    print_table(f"{config}: {count(size.nodes)} nodes of betting", titles, [*rows, total], numbers=True)
    say(f"{plan.description}, {count(sum(size.slots))} infoset-actions: {cost}")
    if not fits:
        say(
            f"that is more memory than the {in_bytes(there)} that are available, and `kilt solve` would refuse it: use "
            "fewer buckets or bets, or blades on other machines"
        )
    if parts:
        say(parts.words())
    if fits and cost.iteration is None and not simulate:
        _say_speed(plan, walked)
    if simulated:
        simulated.show()
    _end(fits=fits or bool(shares))


def _say_speed(plan: RunPlan, walked: Pace | None) -> None:
    """Print how long external sampling takes, from a measured speed or, on the CPU, a usual one."""
    from kilt.paces import pace

    threads, often = plan.config.solver.threads, "a good strategy has seen each of them a hundred times"
    if walked:
        walkers = f"{threads} threads walk" if plan.device == "cpu" else "the GPU walks"
        say(
            f"{walkers} {walked.visits / 1e6:,.1f} million nodes and {walked.iterations:,.0f} iterations a second: "
            f"{in_time(plan.infosets / walked.decisions)} for as many decisions as there are information sets; {often}"
        )
    elif plan.device == "cpu":
        usual = in_time(plan.infosets * pace("external", "decision") / threads)
        who = "1 thread usually takes" if threads == 1 else f"{threads} threads usually take"
        say(f"{who} {usual} for as many decisions as there are information sets; {often} (--probe measures it)")


def new(
    file: Annotated[Path | None, options.FILE] = None,
    like: Annotated[
        str, typer.Option("--like", metavar="NAME", help="A ready-made configuration, such as `tartanian7`.")
    ] = "",
) -> None:
    """Write a configuration to start from. Edit it, then run `kilt estimate` and `kilt solve`.

    Without FILE, print it.
    """
    from kilt import artifact
    from kilt.errors import RunError
    from kilt.runs.examples import example_named

    text = example_named(like)
    if file is None:
        out.print(text, end="", markup=False, highlight=False, soft_wrap=True)
        return
    if file.exists():
        raise RunError(f"{file} is there already: choose another name")
    with artifact.os_errors(f"{file} cannot be written"):
        artifact.write_text(file, text)
    say(f"{file} is written; estimate its cost with: kilt estimate {file}")


def _end(*, fits: bool) -> None:
    """End with exit code 1 if the run does not fit into memory."""
    if not fits:
        raise typer.Exit(1)


def _print_cost(what: str, spec: Spec, *, as_json: bool) -> None:
    """Print the cost of solving an unabstracted game or a spot."""
    with waiting("counting …"):
        cost, called = spec.cost(), spec.description
    if as_json:
        print_json({"what": what, "solves": called, "fits": cost.fits} | cost.data())
    else:
        say(f"{called}: {cost}")
        if lack := cost.lack():
            say(f"this machine cannot do that: it takes {lack}: {cost.remedy}")
    _end(fits=cost.fits)


def _plan_disk(
    game: str,
    algorithm: str,
    machines: int,
    cores: int | None,
    bandwidth: float | None,
    iterations: int | None,
    target: float | None,
    *,
    probe: bool,
    as_json: bool,
) -> None:
    """Print the cost of solving an unabstracted game by CFR+ with tables on disk."""
    from kilt.errors import RunError
    from kilt.jit import cores as available
    from kilt.solve.forms import disk_problem
    from kilt.solve.tables.disk_plan import DiskPlan

    if iterations is not None and target is not None:
        raise RunError("--iterations and --target are given: use one of them")
    with waiting(f"counting {game} …"):
        plan = DiskPlan(disk_problem(game, cores or available()), algorithm.endswith(":average"))
        goals = plan.iterations_for(target) if target is not None else (iterations,) if iterations else ()
        count_of, fits = plan.numbers, plan.fits
    measured = probe and fits
    if measured:
        with waiting("working on some subgames for some seconds …"):
            plan = replace(plan, pace=plan.measured(MEASURED))
    line = bandwidth * 1e9 / 8 if bandwidth else inf
    found = [plan.on(number, line) for number in dict.fromkeys((1, machines))]
    if as_json:
        each = [
            one.data() | ({"total_seconds": [goal * one.seconds for goal in goals]} if goals else {}) for one in found
        ]
        counts = {"game": game, "algorithm": algorithm, "subgames": plan.cut.count, "numbers": count_of}
        speeds = {"measured": measured} | {f"{what}_seconds": value for what, value in plan.pace._asdict().items()}
        print_json(counts | {"fits": fits, "iterations": list(goals)} | speeds | {"machines": each})
    else:
        titles = ["machines", "cores of each", "subgames of each", "memory of each", "disk of each", "an iteration"]
        titles += [f"{goal:,} iterations" for goal in goals]
        rows = [
            [
                *map(count, (one.machines, one.cores, one.subgames)),
                *(in_bytes(size) for size in (one.cost.memory, one.cost.disk)),
                *(in_time(seconds * one.seconds) for seconds in (1, *goals)),
            ]
            for one in found
        ]
        print_table(
            f"{game}, {algorithm}: {plan.cut.count:,} subgames, {count_of:,} numbers", titles, rows, numbers=True
        )
        pace, where = plan.pace, "measured here" if measured else "as on the machine of docs/guides/disk.md"
        say(
            f"{where}: a core takes {pace.walk * 1e9:.1f} ns to walk a number of the tables, {pace.read * 1e9:.1f} to "
            f"read and {pace.write * 1e9:.1f} to write it; a disk moves {in_bytes(found[-1].disk_pace)} a second at "
            "most"
        )
        if len(goals) > 1:
            say(
                "iterations are those that [2-4] hold'em took; in smaller games it may be the second number, in limit "
                "hold'em it was the third"
            )
        say(
            f"where memory is less, fewer subgames are worked on at a time: {in_bytes(found[-1].least_memory)} hold one"
            + ("" if fits else ", which is more than is available here")
        )
    _end(fits=fits or machines > 1)


@dataclass(frozen=True)
class _Parts:
    """The cost of the head and of each worker of a distributed run."""

    held: PartsMemory
    tables: int  # bytes of the cards, on disk

    def data(self) -> dict[str, Any]:
        from kilt.solve.distributed.partition import TARTANIAN7, TARTANIAN7_MEMORY

        head, blades = self.held.head, self.held.blades
        return {
            "head_bytes": head.resident,
            "head_tables_bytes": _tables(head),
            "blades": [level.blades for level in self.held.levels[1:]],  # of each level
            "blade_bytes": [blade.resident for blade in blades],
            "blade_tables_bytes": [_tables(blade) for blade in blades],
            "card_tables_bytes": self.tables,
            "tartanian7_slots": TARTANIAN7.blades * TARTANIAN7.slots,
            "tartanian7_blades": TARTANIAN7.blades,
            "tartanian7_blade_bytes": TARTANIAN7.memory(words=2),
            "tartanian7_blade_memory_bytes": TARTANIAN7_MEMORY,
        }

    def words(self) -> str:
        from kilt import machine

        said, held = self.data(), self.held
        kinds = ["blades", "blades below them", *(f"blades of level {n}" for n in range(3, len(said["blades"]) + 1))]
        each = [
            f"each of {count(n)} {kind} {in_bytes(blade.resident)} ({in_bytes(_tables(blade))} of tables)"
            for n, blade, kind in zip(said["blades"], held.blades, kinds, strict=False)
        ]
        most, there = max(said["blade_bytes"]) + self.tables, machine.available_memory()
        fits = "a blade fits" if most < there else "a blade does not fit"
        there_blade, there_memory = in_bytes(said["tartanian7_blade_bytes"]), said["tartanian7_blade_memory_bytes"]
        return (
            f"the head takes up to {in_bytes(held.head.resident)} of memory ({in_bytes(_tables(held.head))} of "
            f"tables), {', '.join(each)}, and each maps {in_bytes(self.tables)} of cards from disk: {fits} into the "
            f"{in_bytes(there)} that are available here\n"
            f"for comparison, Tartanian7 ([Brown15 §5]; 60 classes of 500 buckets): "
            f"{count(said['tartanian7_slots'])} infoset-actions on {said['tartanian7_blades']} blades, {there_blade} "
            f"each, of the {in_bytes(there_memory)} that each had"
        )


def _tables(part: Cost) -> int:
    """Return the size in bytes of a process's tables."""
    return dict(part.parts)["tables"].memory


@dataclass(frozen=True)
class _Simulated:
    """Simulated speeds of a run with more and more workers, for each network latency."""

    curves: dict[str, list[ClusterForecast]]  # [latency as given] the last forecast has all blades
    costs: dict[str, float]
    cores: str  # in words

    @classmethod
    def of(
        cls,
        plan: RunPlan,
        blades: tuple[int, ...],
        cores: int,
        network: list[tuple[str, float]],
        bandwidth: float | None,
        machine: int | None,
    ) -> _Simulated:
        from kilt.jit import cores as available
        from kilt.solve.distributed.costs import measure_costs, shared_game
        from kilt.solve.distributed.forecast import curve

        costs = measure_costs(
            shared_game(plan.game, plan.menu, plan.cards, plan.options),
            min(cores * blades[0], machine or cores, available()),
            MEASURED,
        )
        asked = {"machine_cores": machine or 0, "bandwidth": bandwidth * 1e9 / 8 if bandwidth else inf}
        asked |= {"batch": plan.config.engine.batch, "samples": plan.config.engine.samples}
        curves = {text: curve(costs, blades, cores, seconds, **asked) for text, seconds in network}
        each = {
            "class_deal_seconds": float(costs.work.mean()),
            "class_batch_seconds": costs.fixed,
            "head_deal_seconds": costs.down.deal + costs.up.deal,
            "head_batch_seconds": costs.down.fixed + costs.up.fixed,
            "deal_visits": costs.visits,
            "deal_bytes": costs.request_bytes + costs.answer_bytes,
            "made_up_buckets": costs.synthetic,
        }
        return cls(curves, each, f"{machine} cores for all" if machine else f"{cores} cores each")

    def data(self) -> dict[str, Any]:
        rows = [
            {"latency": latency, "blades": one.blades[0], "blades_under_each": list(one.blades[1:])}
            | {"batch": one.chosen.batch, "samples": one.samples, "iteration_seconds": one.iteration_seconds}
            | {"communication_share": one.communication_share, "idle_share": one.idle_share}
            | {"visits_per_second": one.visits_per_second}
            | {"speed_up": one.visits_per_second / outcomes[0].visits_per_second}
            for latency, outcomes in self.curves.items()
            for one in outcomes
        ]
        return {"costs": self.costs, "simulated": rows}

    def show(self) -> None:
        costs, last = self.costs, next(iter(self.curves.values()))[-1]
        under = "".join(f" × {n}" for n in last.blades[1:])
        made_up = " (made-up buckets, since the cards are not built)" if costs["made_up_buckets"] else ""
        say(
            f"measured here{made_up}: a deal takes {costs['class_deal_seconds'] * 1e6:,.1f} µs in each class and "
            f"{costs['head_deal_seconds'] * 1e6:,.1f} µs on the head, a batch "
            f"{costs['class_batch_seconds'] * 1e6:,.0f} µs more in each class; a deal comes to "
            f"{costs['deal_visits']:,.0f} nodes"
        )
        titles = [
            "a message takes",
            "deals in a batch",
            "boards per class",
            "µs a deal",
            "messages and head",
            "waiting",
        ]
        rows = [
            [
                text,
                count(one.chosen.batch),
                str(one.samples),
                f"{one.iteration_seconds * 1e6:,.1f}",
                f"{one.communication_share:.1%}",
                f"{one.idle_share:.1%}",
            ]
            for text, (*_, one) in self.curves.items()
        ]
        print_table(f"simulated: {last.blades[0]}{under} blades, {self.cores}", titles, rows, numbers=True)
        titles = ["blades", *(f"{what} at {text}" for text in self.curves for what in ("million nodes/s", "speed-up"))]
        rows = []
        for outcomes in zip(*self.curves.values(), strict=True):
            row = [f"{outcomes[0].blades[0]}{under}"]
            for one, (first, *_) in zip(outcomes, self.curves.values(), strict=True):
                pace = one.visits_per_second
                row += [f"{pace / 1e6:,.1f}", f"{pace / first.visits_per_second:.2f}"]
            rows.append(row)
        print_table("simulated: more and more blades", titles, rows, numbers=True)


def run_cost_data(cost: Cost) -> dict[str, Any]:
    """Return the cost of a run on an abstract game, for JSON output.

    Its keys are the same as in kilt 0.1.
    """
    solving, cards = cost.part("solving") or cost, cost.part("cards")
    tables, built = solving.part("tables"), {}
    if cards:
        sizes = {"memory": cards.resident, "mapped": cards.mapped, "tables": cards.disk, "features": cards.cache}
        built = {f"cards_{name}": value for name, value in ({"seconds": cards.seconds} | sizes).items()}
    return solving.data() | {"tables_bytes": tables.memory if tables else 0, "peak_bytes": cost.resident} | built
