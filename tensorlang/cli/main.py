"""The command's entry point: its sub-commands, their options, and errors as one friendly line.

Input:  ``tensorlang demo --output sharp.png``
Output: a call of ``tensorlang.cli.demo.run``, imported only then, so that ``--help`` is quick.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if sys.stdout.isatty() else None,
    help="A tensor language in which no schedule can produce a wrong result.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"tensorlang {version('tensorlang')}")
        except PackageNotFoundError:  # run from a source tree
            print("tensorlang (not installed)")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options that come before any sub-command."""


@app.command()
def demo(
    picture: Annotated[
        Path | None,
        typer.Option(
            "--input", help="A picture to sharpen instead of the one that comes with scikit-image."
        ),
    ] = None,
    output: Annotated[Path, typer.Option(help="Where the sharpened picture goes.")] = Path(
        "unsharp.png"
    ),
    amount: Annotated[float, typer.Option(min=0.0, help="How much to sharpen.")] = 1.5,
    rounds: Annotated[int, typer.Option(min=1, help="Times that each program is measured.")] = 15,
) -> None:
    """Sharpen a photograph: two schedules of one definition, checked and timed beside SciPy."""
    from tensorlang.cli.demo import run

    raise typer.Exit(run(picture, output, amount, rounds))


@app.command()
def doctor() -> None:
    """Tell what this machine has, what is missing, and what to do about it."""
    from tensorlang.cli.doctor import run

    raise typer.Exit(run())


@app.command()
def roofline(
    again: Annotated[
        bool, typer.Option("--again", help="Measure anew, on a quiet machine.")
    ] = False,
) -> None:
    """Show the most that this machine can compute and read, measured with generated code."""
    from tensorlang.cli.roofline import run

    raise typer.Exit(run(again=again))


cache_app = typer.Typer(
    no_args_is_help=False,
    invoke_without_command=True,
    help="Show, prune or clear the compiled code that is kept on disk.",
)
app.add_typer(cache_app, name="cache")


@cache_app.callback()
def cache(context: typer.Context) -> None:
    """Show, prune or clear the compiled code that is kept on disk."""
    if context.invoked_subcommand is None:
        from tensorlang.cli.cache import show

        raise typer.Exit(show())


@cache_app.command("show")
def cache_show() -> None:
    """Show the folder, how full it is, and what was used last."""
    from tensorlang.cli.cache import show

    raise typer.Exit(show())


@cache_app.command("prune")
def cache_prune(
    keep: Annotated[
        str | None,
        typer.Option(help="How much to keep, such as 500M; by default TENSORLANG_CACHE_SIZE."),
    ] = None,
) -> None:
    """Remove the least recently used code."""
    from tensorlang.cli.cache import prune

    try:
        raise typer.Exit(prune(keep))
    except ValueError as error:
        raise typer.BadParameter(f"--keep: {error}") from None


@cache_app.command("clear")
def cache_clear() -> None:
    """Remove all compiled code."""
    from tensorlang.cli.cache import clear

    raise typer.Exit(clear())


@app.command()
def show(
    program: Annotated[str, typer.Argument(metavar="FILE[:OPERATOR]")],
    kind: Annotated[str, typer.Option(help="schedule, loops, llvm or asm.")] = "loops",
    size: Annotated[list[str] | None, typer.Option(help="A size to fix, such as M=64.")] = None,
    target: Annotated[str, typer.Option(help="For which processor.")] = "cpu",
) -> None:
    """Print the loops, LLVM IR or assembly of the operators in a file, beside its lines."""
    from tensorlang.cli.show import run

    raise typer.Exit(run(program, kind, size or [], target))


@app.command()
def explain(
    program: Annotated[str, typer.Argument(metavar="FILE[:OPERATOR]")],
    size: Annotated[list[str] | None, typer.Option(help="A size to fix, such as M=64.")] = None,
    target: Annotated[str, typer.Option(help="For which processor.")] = "cpu",
) -> None:
    """Tell what the schedules of the operators in a file cost."""
    from tensorlang.cli.explain import run

    raise typer.Exit(run(program, size or [], target))


def main() -> None:
    """Run the command; a known error is printed without a traceback and ends it with status 1."""
    from tensorlang.errors import TensorlangError

    try:
        app(prog_name="tensorlang")
    except TensorlangError as error:
        _fail(str(error))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("tensorlang"):
            raise
        _fail(f"the package {error.name!r} is missing; `tensorlang doctor` tells what to install")
    except OSError as error:
        _fail(str(error))


def _fail(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(1)
