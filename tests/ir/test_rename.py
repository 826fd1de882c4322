from tensorlang.ir.affine import Var, affine
from tensorlang.ir.printer import format_stmt
from tensorlang.ir.program import For, Fused, If, Run, Seq
from tensorlang.ir.rename import distinct_names


def text(stmt):
    return "\n".join(format_stmt(stmt))


def test_inner_loops_of_the_same_name_are_primed():
    outer, inner, innermost = Var("j.o"), Var("j.o"), Var("j.o")
    condition = If((affine(outer) + inner * affine(1) - innermost,), Seq(()))
    nest = For(innermost, affine(3), "serial", condition)
    nest = For(outer, affine(5), "serial", For(inner, affine(2), "serial", nest))
    assert text(distinct_names(nest)) == (
        "for j.o in 5:\n"
        "    for j.o' in 2:\n"
        "        for j.o'' in 3:\n"
        "            if j.o'' < j.o + j.o' + 1:\n"
        "                pass"
    )


def test_loops_side_by_side_keep_their_names():
    body = Seq(tuple(For(Var("i"), affine(2), "serial", Seq(())) for _ in range(2)))
    assert text(distinct_names(body)) == text(body)


def test_a_piece_of_a_fused_loop_follows_its_chunk():
    around, chunk, offset, i, j = (Var(name) for name in ("f.o", "f.o", "f.i", "i", "j"))
    extents = (affine(Var("M")), affine(Var("N")))
    piece = Fused(offset, (i, j), extents, "serial", Seq(()), Run(chunk, offset, 8))
    nest = For(around, affine(2), "serial", For(chunk, affine(4), "serial", piece))
    assert "for f.i = (i, j) in (M, N)[8 * f.o' : + 8]:" in text(distinct_names(nest))
