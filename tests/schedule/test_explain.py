"""explain: counts against counting, footprints, strides, traffic, the bound; text and HTML."""

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.ir.affine import Affine, affine, evaluate
from tensorlang.ir.html import program_html, table_html
from tensorlang.lower.check import instances
from tensorlang.schedule.place_inits import place_inits
from tensorlang.targets.cpu import parse_cpu_target
from tensorlang.targets.roofline import roofline
from tests.schedule.checks import start
from tests.schedule.operators import CASES


def tiled(**sizes):
    s = start("matmul", **sizes)
    s.tile(["i", "j"], [6, 16])
    s.reorder("i.o", "j.o", "k", "i.i", "j.i")
    s.vectorize("j.i")
    return s


def loop(explanation, path):
    return next(loop for loop in explanation.loops if loop.path == path)


def test_symbolic_counts():
    found = tiled().explain()
    assert [(cost.path, str(cost.trips), cost.depth) for cost in found.loops] == [
        ("i.o", "(M + 5) // 6", 0),
        ("j.o", "(N + 15) // 16", 1),
        ("k", "K", 2),
        ("i.i", "6", 3),
        ("j.i", "16", 4),
    ]
    assert dict(loop(found, "j.o").parts) == {
        "matmul": affine(4 * 6 * 16),
        "A": found_k(found) * 24,
        "B": found_k(found) * 64,
    }
    assert loop(found, "j.o").level == ""
    assert found.seconds is None
    assert found.limit is None
    assert str(found.bytes) == "4 * M * N + 4 * M * K + 4 * N * K"


def found_k(explanation) -> Affine:
    return loop(explanation, "k").trips


def test_numbers():
    found = tiled().explain(M=1000, N=1000, K=64)
    (stage,) = found.stages
    assert stage.instances == affine(1000 * 1000 * 64)
    assert found.flops == affine(2 * 1000 * 1000 * 64)
    assert stage.recompute == 1
    assert loop(found, "k").footprint == affine(4 * (6 * 16 + 6 + 16))
    assert loop(found, "k").level == "L1"
    assert found.limit in ("arithmetic", "memory")
    assert found.seconds >= found.flops.constant / (found.peak_gflops * 1e9)
    assert found.seconds >= found.bytes.constant / (found.peak_gigabytes * 1e9)


def test_fixed_sizes_need_no_more():
    assert str(tiled(M=8, N=8, K=8).explain()) == str(tiled().explain(M=8, N=8, K=8)).replace(
        "(M + 5) // 6", "2"
    )


def test_strides():
    found = tiled().explain()
    assert [str(access) for access in loop(found, "j.i").accesses] == [
        "matmul: 1",
        "A: 0",
        "B: 1",
    ]
    assert [str(access) for access in loop(found, "i.i").accesses] == [
        "matmul: N",
        "A: K",
        "B: 0",
    ]
    s = tiled()
    s.cache_read("B")
    s.layout("B.local", lambda k, n: (n // 16, k, n % 16))
    found = s.explain()
    assert "B.local: 16" in map(str, loop(found, "k").accesses)
    assert "B.local: irregular" in map(str, loop(found, "j.i").accesses)


def test_recomputation():
    s = start("blur", H=64, W=10)
    outer, _ = s.split("blur/i", 8)
    s.compute_at("rows", outer)
    rows, blur = s.explain().stages
    assert rows.recompute == pytest.approx(8 * 10 / 66)
    assert blur.recompute == 1


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_instances_are_those_that_run(data):
    s = start("matmul")
    for name in ("i", "j", "k"):
        if data.draw(st.booleans()):
            s.split(name, data.draw(st.integers(1, 5)))
    sizes = {name: data.draw(st.integers(0, 7)) for name in ("M", "N", "K")}
    values = {size: sizes[size.name] for size in s.definition.sizes}
    ran = [i for i in instances(place_inits(s.program), values) if i.part != "init"]
    (stage,) = s.explain(**sizes).stages
    assert stage.instances == affine(len(ran))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_kind_of_operator(case):
    s = case.schedule()
    assert str(s.explain())
    found = s.explain(**{size.name: 9 for size in s.definition.sizes})
    assert found.seconds >= 0
    assert all(cost.footprint.is_constant for cost in found.loops if cost.depth == 0)
    assert evaluate(found.bytes, {}) > 0


def test_traffic_follows_the_caches():
    s = start("matmul", M=2048, N=2048, K=2048)
    naive = s.explain("cpu -mcpu=haswell")
    s = tiled(M=2048, N=2048, K=2048)
    blocked = s.explain("cpu -mcpu=haswell")
    assert naive.traffic[0].bytes > 4 * blocked.traffic[0].bytes
    sizes = [item.bytes for item in blocked.traffic]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] >= blocked.bytes.constant // 2


def test_a_parallel_loop_has_all_cores():
    s = tiled(M=64, N=64, K=64)
    alone = s.explain()
    s.parallel("i.o")
    target = parse_cpu_target("cpu")
    assert alone.peak_gflops == roofline(target, 32).gflops
    assert s.explain().peak_gflops == roofline(target, 32, target.cores).gflops


def test_a_name_that_is_no_size():
    with pytest.raises(tl.ScheduleError, match="Q is no size of matmul") as caught:
        start("matmul").explain(Q=3)
    assert "its sizes: M, N, K" in str(caught.value).replace("K, N", "N, K")


# --- how it shows -----------------------------------------------------------------------------


class Page(HTMLParser):
    """Collects the text, and checks that tags are closed."""

    def __init__(self, source):
        super().__init__()
        self.text, self.open = "", []
        self.feed(source)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_a_program_keeps_its_text_and_gets_colours():
    s = tiled()
    s.parallel("i.o")
    source = s._repr_html_()
    assert Page(source).text == str(s)
    assert '<span style="color:#b3541e;font-weight:bold">parallel for </span>i.o in' in source
    assert '<span style="color:#7a3fa0;font-weight:bold">vectorized for </span>' in source
    assert "&lt; M" in source


@given(st.text())
def test_any_text_is_escaped(text):
    # a line end before all is none in <pre>, and no program ends with an empty line
    lines = "\n".join(["program", *text.splitlines(), "end"])
    assert Page(program_html(lines)).text == lines
    assert Page(table_html(text, [((), [(text,)])])).text == 2 * text


def test_explanations_in_notebooks_and_terminals():
    from rich.console import Console

    found = tiled().explain(M=64, N=64, K=64)
    page = Page(found._repr_html_()).text
    console = Console(width=200, no_color=True, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(found)
    for text in ("matmul on cpu", "i.o", "524,288", "bytes into L1", "limited by", "B: 64"):
        assert text in page
        assert text in str(found)
    assert "524,288" in console.export_text()


def test_everything_shows_itself():
    s = tiled()
    operator = tl.schedule(tl.nn.relu, tl.f32[4]).definition
    assert operator
    assert "matmul" in Page(tl.compile(s)._repr_html_()).text

    @tl.graph
    def layer(x: tl.f32[4, 4]):
        return tl.nn.relu(x)

    for shown in (tl.nn.relu, layer, layer.graph(), tl.compile(layer.graph())):
        assert Page(shown._repr_html_()).text == str(shown)
