"""Horizontal bars with a line at 1, as SVG.

Input:  ``{"256x256x256": {"1 thread(s)": 1.04, "2 thread(s)": 0.97}}``
Output: ``<svg ...>``, a group of bars for each name, a colour for each series
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape

_COLOURS = ("#3b6ea5", "#e0a030", "#5a9a5a", "#9a5a8a")
_LABELS, _WIDTH, _BAR, _GAP, _TOP = 260, 420, 11, 8, 44
_MOST = 4.0


def bar_chart(bars: Mapping[str, Mapping[str, float]], title: str) -> str:
    """Return a chart of ratios; bars beyond four times are cut and carry their number."""
    series = list(dict.fromkeys(name for group in bars.values() for name in group))
    longest = min(_MOST, max(1.2, *(v for group in bars.values() for v in group.values())))
    scale = _WIDTH / longest
    parts = [_text(8, 16, title, "bold")]
    for place, name in enumerate(series):
        x = _LABELS + 110 * place
        parts.append(_bar(x, 24, 11, _COLOURS[place % len(_COLOURS)]))
        parts.append(_text(x + 16, 33, name))
    y = _TOP
    for name, group in bars.items():
        middle = y + (_BAR * len(series)) / 2 + 4
        parts.append(_text(_LABELS - 8, middle, name, anchor="end"))
        for place, each in enumerate(series):
            if each in group:
                length = min(group[each], longest) * scale
                parts.append(_bar(_LABELS, y, length, _COLOURS[place % len(_COLOURS)]))
                parts.append(_text(_LABELS + length + 4, y + 9, f"{group[each]:.2f}"))
            y += _BAR
        y += _GAP
    one = _LABELS + scale
    parts.append(f'<path d="M{one:.1f} {_TOP - 4}V{y}" stroke="#333" stroke-dasharray="3 3"/>')
    width = _LABELS + _WIDTH + 50
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y + 6}" '
        f'viewBox="0 0 {width} {y + 6}" font-family="sans-serif" font-size="11">\n'
        f'<rect width="{width}" height="{y + 6}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _bar(x: float, y: float, length: float, colour: str) -> str:
    height = _BAR - 1
    return f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{height}" fill="{colour}"/>'


def _text(x: float, y: float, text: str, weight: str = "normal", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-weight="{weight}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )
