"""Writes a chart of a report as a picture of its own (SVG), in light and dark: picture.py REPORT.html HEADING > OUT.svg"""
import html
import re
import sys

page = open(sys.argv[1], encoding="utf-8").read()
style = re.search(r"<style>(.*?)</style>", page, re.S).group(1)
figure = next(f for f in re.findall(r"<figure>.*?</figure>", page, re.S) if f"<h3>{sys.argv[2]}</h3>" in f)
chart = re.search(r"<svg(.*?)>(.*)</svg>", figure, re.S)
legend = ""  # the page has it beside the chart, the picture above it
for i, (colour, name) in enumerate(re.findall(r'<span class="key (s\d)[^"]*"></span>([^<]*)', figure)):
    x = 90 + 130 * i
    legend += f'<path class="line {colour}" d="M{x} -16h24"/><text class="name" x="{x + 30}" y="-12">{html.escape(name)}</text>\n'
box = re.search(r'viewBox="0 0 (\d+) (\d+)"', chart.group(1))
width, height = box.group(1), int(box.group(2)) + 30
attributes = chart.group(1).replace(box.group(0), f'viewBox="0 -30 {width} {height}"')
print(
    f'<svg xmlns="http://www.w3.org/2000/svg"{attributes} width="{width}" height="{height}">\n'
    f"<style>{style}\nsvg {{ background: var(--paper); font-family: system-ui, sans-serif; }}\n.chart .name {{ font-size: 14px; }}</style>"
    f"{chart.group(2)}{legend}</svg>"
)
