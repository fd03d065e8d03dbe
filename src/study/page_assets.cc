#include "study/page_assets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "study/heat_map.h"

namespace transept {
namespace {

// Relative luminance of sRGB.
double luminance(uint32_t color) {
  const auto channel = [&](int shift) {
    const double c = static_cast<double>((color >> shift) & 0xff) / 255;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * channel(16) + 0.7152 * channel(8) + 0.0722 * channel(0);
}

std::string variables(bool dark) {
  std::string out;
  for (const auto& palette : {std::span<const PageColor>(kPageColors), std::span<const PageColor>(kSeriesColors)}) {
    for (const PageColor& c : palette) out += fmt::format("--{}:#{:06x};", c.name, dark ? c.dark : c.light);
  }
  return out;
}

constexpr std::string_view kStyle = R"css(
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;background:var(--paper);color:var(--text)}
body{margin:0;font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Noto Sans","Liberation Sans",sans-serif;overflow-wrap:break-word}
header,main,footer{max-width:72rem;margin:0 auto;padding:0 clamp(1rem,4vw,3rem)}
header{padding-top:clamp(1.75rem,5vw,3.5rem)}
h1{font-size:clamp(1.6rem,1.2rem + 1.6vw,2.25rem);line-height:1.2;font-weight:650;letter-spacing:-.015em;margin:0}
h2{font-size:1.25rem;line-height:1.3;font-weight:650;letter-spacing:-.005em;margin:0 0 1.1rem;padding-top:1.5rem;border-top:1px solid var(--rule)}
h3{font-size:1rem;line-height:1.4;font-weight:600;margin:0}
p{margin:0 0 1rem;max-width:44rem}
section{margin-top:2.75rem}
.subtitle{margin:.5rem 0 0;color:var(--muted);font-size:1.0625rem}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,9.5rem),1fr));gap:1px;margin:2rem 0 0;padding:1px}
.figures>div{box-shadow:0 0 0 1px var(--rule);padding:.9rem 1.1rem}
.figures dt{color:var(--muted);font-size:.8125rem}
.figures dd{margin:0}
.figures .value{font-size:1.4rem;line-height:1.35;font-weight:600;letter-spacing:-.01em;font-variant-numeric:tabular-nums}
.figures .note{color:var(--muted);font-size:.8125rem}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,21rem),1fr));gap:2.5rem 3rem;margin:0 0 1.5rem}
.charts>.wide{grid-column:1/-1}
.charts>:not(.wide){max-width:38rem}
figure{margin:0;min-width:0}
.bar{display:flex;flex-wrap:wrap;gap:.25rem 1rem;align-items:baseline;justify-content:space-between;margin-bottom:.85rem}
.tools{display:flex;gap:.4rem}
.tools[hidden]{display:none}
button{font:inherit;color:inherit;text-align:inherit;background:none;border:0;padding:0;cursor:pointer}
.tools button{font-size:.75rem;line-height:1;color:var(--muted);border:1px solid var(--edge);border-radius:4px;padding:.35rem .5rem}
.tools button:hover{color:var(--text);border-color:var(--text)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:2px}
.caption{color:var(--muted);font-size:.8125rem;margin:.5rem 0 0}
.plot{position:relative;container-type:inline-size}
svg{display:none;width:100%;height:auto;font-family:inherit;pointer-events:none}
svg.medium{display:block}
@container (max-width:419px){svg.medium{display:none}svg.small{display:block}}
@container (min-width:640px){.all-sizes svg.medium{display:none}.all-sizes svg.broad{display:block}}
@container (min-width:900px){.all-sizes svg.broad{display:none}.all-sizes svg.large{display:block}}
svg text{font-size:12px;fill:var(--muted);font-variant-numeric:tabular-nums}
svg .legend,svg .name,svg .value{fill:var(--text)}
svg .name,svg .value{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}
.grid{stroke:var(--grid);stroke-width:1}
.axis{stroke:var(--edge);stroke-width:1}
.line{fill:none;stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}
.dashed{stroke-dasharray:6 4}
.points svg{pointer-events:auto}
.marker{stroke:var(--paper);stroke-width:.75}
.band{fill-opacity:.16}
.whisker{stroke:var(--text);stroke-width:1.25}
.empty{fill:var(--surface)}
.guide{stroke:var(--edge);stroke-width:1}
.dot{stroke:var(--paper);stroke-width:1.5}
.tip{position:absolute;top:0;left:0;z-index:1;pointer-events:none;background:var(--paper);border:1px solid var(--edge);border-radius:6px;padding:.4rem .6rem;font-size:.75rem;line-height:1.5;white-space:nowrap;max-width:100%;overflow:hidden;box-shadow:0 2px 8px rgb(0 0 0/.14);font-variant-numeric:tabular-nums}
.tip[hidden]{display:none}
.tip b{font-weight:600}
.tip i{display:inline-block;width:.6rem;height:.6rem;border-radius:50%;margin-right:.4rem}
details{margin-top:.75rem;font-size:.875rem}
summary{cursor:pointer;color:var(--muted);width:fit-content}
summary:hover{color:var(--text)}
details.code{margin:0 0 1rem}
details[open]>summary{margin-bottom:.6rem}
.maps{margin:0 0 2rem}
.stage{display:grid;gap:1.5rem 2.5rem}
@media (min-width:60rem){.stage{grid-template-columns:minmax(0,34rem) minmax(0,1fr)}}
.chosen{margin:0 0 .5rem;font-size:.875rem}
.thumbnails{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(6.5rem,20%),1fr));gap:1rem .8rem;align-content:start}
.thumbnails[hidden]{display:none}
.map svg{display:block}
.map button{display:block;width:100%;text-align:left}
.map .name{display:block;margin-top:.3rem;font-size:.75rem;line-height:1.3;color:var(--muted)}
.map [aria-pressed=true] .name{color:var(--text);font-weight:600}
.map [aria-pressed=true] svg{outline:2px solid var(--accent);outline-offset:2px}
.cells path,.swatch{fill:none;stroke:var(--series0);shape-rendering:crispEdges}
.cells path{stroke-width:1}
.swatch{stroke-width:12}
.cursor{fill:none;stroke:var(--text);stroke-width:1.5;vector-effect:non-scaling-stroke}
.scroll{overflow:auto;max-width:100%}
details .scroll{max-height:22rem}
.table{margin:0 0 1.5rem}
.table h3{margin-bottom:.6rem}
table{border-collapse:collapse;width:100%;font-size:.875rem;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.45rem 1.25rem .45rem 0;border-bottom:1px solid var(--rule);vertical-align:baseline}
th:last-child,td:last-child{padding-right:.25rem}
th.n,td.n{text-align:right;white-space:nowrap}
thead th{font-weight:600;color:var(--muted);font-size:.8125rem;white-space:nowrap;border-bottom-color:var(--edge)}
tbody th{font-weight:400;white-space:nowrap}
details thead th{position:sticky;top:0;background:var(--paper)}
th[aria-sort=ascending] button::after{content:" ↑"}
th[aria-sort=descending] button::after{content:" ↓"}
th button:hover{color:var(--text)}
th button,summary{min-height:24px;min-width:24px}
pre,code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;font-size:.8125rem;line-height:1.6}
pre{margin:0;padding:1rem 1.15rem;background:var(--surface);border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere;tab-size:2}
.samples{display:grid;gap:1.5rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr))}
.samples figcaption{color:var(--muted);font-size:.8125rem;margin-bottom:.4rem}
.samples .prompt{color:var(--accent);font-weight:600}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:.3rem 1.5rem;margin:1.25rem 0 0;font-size:.875rem}
.facts dt{color:var(--muted)}
.facts dd{margin:0;min-width:0;overflow-wrap:anywhere}
footer{margin-top:3rem;padding-bottom:3rem;color:var(--muted);font-size:.8125rem}
footer p{border-top:1px solid var(--rule);padding-top:1rem;max-width:none}
@media (max-width:30rem){table{font-size:.78rem}th,td{padding-right:.55rem}thead th{font-size:.75rem}}
@media (prefers-reduced-motion:no-preference){button,summary{transition:color .12s}}
)css";

// After the schemes, so that its colours win on paper.
constexpr std::string_view kPrintStyle = R"css(
@page{margin:16mm}
body{font-size:10pt}
header,main,footer{max-width:none;padding:0}
header{padding-top:0}
.tools,.tip,.charts details,.maps details{display:none}
section,figure,.table tr{break-inside:avoid}
section{break-inside:auto;margin-top:1.5rem}
h2,h3{break-after:avoid}
.charts{gap:1.25rem 1.5rem;grid-template-columns:1fr 1fr}
.scroll{overflow:visible}
table,thead th{font-size:8pt}
th,td,th.n,td.n,thead th,tbody th{white-space:normal;overflow-wrap:break-word;padding:.25rem .5rem .25rem 0}
.cards table,.cards tbody{display:block}
.cards thead{display:none}
.cards tr{display:grid;grid-template-columns:repeat(3,1fr);gap:0 1rem;padding:.4rem 0;border-bottom:1px solid var(--rule)}
.cards th,.cards td,.cards th.n,.cards td.n{border:0;padding:0;text-align:left}
.cards tbody th{grid-column:1/-1;font-weight:600}
.cards td:empty{display:none}
.cards [data-name]::before{content:attr(data-name) ": ";font-weight:400;color:var(--muted)}
pre{border:1px solid var(--rule)}
)css";

// No network, no storage. Tables hold the data; the script reads charts' values from them. Everything it writes goes in
// as text.
constexpr std::string_view kScript = R"js(
'use strict';
(() => {
  const number = (cell) => cell.dataset.v === undefined ? NaN : Number(cell.dataset.v);
  const element = (tag, text) => { const e = document.createElement(tag); if (text !== undefined) e.textContent = text; return e; };

  // Sorting: a header becomes a button; numbers sort as numbers, missing ones last.
  for (const table of document.querySelectorAll('table')) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = element('button', head.textContent);
      button.type = 'button';
      head.textContent = '';
      head.append(button);
      head.setAttribute('aria-sort', 'none');
      button.addEventListener('click', () => {
        const down = head.getAttribute('aria-sort') === 'ascending';
        heads.forEach((h) => h.setAttribute('aria-sort', 'none'));
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        const numeric = head.classList.contains('n'), sign = down ? -1 : 1;
        const missing = (cell) => numeric && !Number.isFinite(number(cell));
        const compare = (a, b) => {
          const p = a.cells[column], q = b.cells[column];
          if (missing(p) || missing(q)) return missing(p) - missing(q);
          return sign * (numeric ? number(p) - number(q) : p.textContent.localeCompare(q.textContent, undefined, { numeric: true }));
        };
        table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
      });
    });
  }

  const save = (name, type, text) => {
    const link = element('a');
    link.href = URL.createObjectURL(new Blob([text], { type: type + ';charset=utf-8' }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };
  const lines = (rows) => rows.map((row) => row.map(String).map((text) =>
    /[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text).join(',')).join('\n') + '\n';
  const csv = (table) => lines([...table.rows].map((row) => [...row.cells].map((cell) =>
    cell.dataset.v ?? (cell.classList.contains('n') && cell.tagName === 'TD' ? '' : cell.textContent))));

  // A file of its own has no style sheet: what the sheet said is written onto each element.
  const standalone = (svg) => {
    const copy = svg.cloneNode(true), keep = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-opacity', 'stroke-dasharray', 'stroke-linejoin',
      'stroke-linecap', 'shape-rendering', 'vector-effect', 'paint-order', 'font-family', 'font-size'];
    const from = svg.querySelectorAll('*'), to = copy.querySelectorAll('*');
    from.forEach((e, i) => keep.forEach((name) => to[i].style.setProperty(name, getComputedStyle(e).getPropertyValue(name))));
    const [, , width, height] = svg.getAttribute('viewBox').split(' ');
    copy.setAttribute('width', width);
    copy.setAttribute('height', height);
    copy.style.background = getComputedStyle(document.documentElement).backgroundColor;
    return new XMLSerializer().serializeToString(copy);
  };

  const shown = (figure) => [...figure.querySelectorAll('.plot svg')].find((svg) => getComputedStyle(svg).display !== 'none');
  const offer = (figure, table) => {
    const tools = figure.querySelector('.tools');
    const name = figure.querySelector('h3').textContent.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '') || 'chart';
    tools.hidden = false;
    tools.querySelector('.csv').addEventListener('click', () => save(name + '.csv', 'text/csv', table()));
    tools.querySelector('.svg').addEventListener('click', () => save(name + '.svg', 'image/svg+xml', standalone(shown(figure))));
  };
  // Values under the pointer, beside the place (left, top) of a picture.
  const tipOf = (plot) => {
    const tip = element('div');
    tip.className = 'tip';
    tip.hidden = true;
    plot.append(tip);
    return { hide: () => { tip.hidden = true; }, show: (content, left, top) => {
      tip.replaceChildren(...content);
      tip.hidden = false;
      const after = left + 12;
      tip.style.left = Math.max(0, after + tip.offsetWidth > plot.clientWidth ? left - 12 - tip.offsetWidth : after) + 'px';
      tip.style.top = top + 'px';
    } };
  };

  for (const figure of document.querySelectorAll('figure.maps')) {
    const plot = figure.querySelector('.plot'), details = figure.querySelector('details'), title = figure.querySelector('h3').textContent;
    const [rows, columns, words] = ['rows', 'columns', 'words'].map((key) => JSON.parse(figure.dataset[key]));
    const maps = [...figure.querySelectorAll('.map')].map((box) => {
      const button = element('button');
      button.type = 'button';
      button.append(...box.childNodes);
      box.append(button);
      const name = button.querySelector('.name').textContent;
      button.setAttribute('aria-label', name);
      return { button, name, svg: button.querySelector('svg'), weights: box.dataset.weights.split(' ').map((w) => w === '-' ? NaN : w / 1e4) };
    });
    let large = maps[0];
    const weight = (map, row, column) => map.weights[row * columns.length + column];
    const text = (w) => Number.isNaN(w) ? '' : String(w);
    offer(figure, () => lines([['map', 'row', words[0], 'column', words[1], words[2]], ...maps.flatMap((map) =>
      rows.flatMap((row, r) => columns.map((column, c) => [map.name, r + 1, row, c + 1, column, text(weight(map, r, c))])))]));

    const fill = () => {
      const table = element('table'), head = element('tr');
      head.append(...[words[0] + ' ↓  ' + words[1] + ' →', ...columns].map((label, i) => {
        const cell = element('th', label);
        cell.scope = 'col';
        if (i > 0) cell.className = 'n';
        return cell;
      }));
      table.createTHead().append(head);
      table.createTBody().append(...rows.map((label, r) => {
        const row = element('tr'), first = element('th', label);
        first.scope = 'row';
        row.append(first, ...columns.map((_, c) => {
          const cell = element('td', text(weight(large, r, c)));
          cell.className = 'n';
          return cell;
        }));
        return row;
      }));
      details.querySelector('.scroll').replaceChildren(table);
    };
    const enlarge = (map) => {
      large = map;
      for (const svg of plot.querySelectorAll('svg')) {
        svg.querySelector('.cells > g').replaceChildren(...map.svg.querySelector('.cells > g').cloneNode(true).childNodes);
        svg.querySelector('title').textContent = title + ': ' + map.name;
        svg.querySelector('desc').textContent = map.svg.querySelector('desc').textContent;
      }
      figure.querySelector('.chosen').textContent = map.name;
      for (const other of maps) other.button.setAttribute('aria-pressed', other === map);
      if (details.open) fill();
    };
    for (const map of maps) {
      map.button.setAttribute('aria-pressed', map === large);
      map.button.addEventListener('click', () => enlarge(map));
    }
    details.hidden = false;
    details.addEventListener('toggle', () => { if (details.open) fill(); });

    const tip = tipOf(plot);
    const hide = () => {
      tip.hide();
      plot.querySelectorAll('.cursor').forEach((e) => e.setAttribute('visibility', 'hidden'));
    };
    const show = (event) => {
      hide();
      const svg = shown(figure), cells = svg.querySelector('.cells'), frame = svg.getBoundingClientRect();
      const [left, top, cell] = cells.dataset.grid.split(' ').map(Number), zoom = svg.viewBox.baseVal.width / frame.width;
      const column = Math.floor(((event.clientX - frame.left) * zoom - left) / cell), row = Math.floor(((event.clientY - frame.top) * zoom - top) / cell);
      if (!(row in rows) || !(column in columns) || Number.isNaN(weight(large, row, column))) return;
      const cursor = cells.querySelector('.cursor');
      cursor.setAttribute('x', column);
      cursor.setAttribute('y', row);
      cursor.setAttribute('visibility', 'visible');
      const place = (label, names, i) => element('div', label + ' ' + (i + 1) + '  ' + names[i]);
      tip.show([element('b', large.name), place(words[0], rows, row), place(words[1], columns, column),
        element('div', words[2] + '  ' + text(weight(large, row, column)))], (left + (column + 1) * cell) / zoom, (top + row * cell) / zoom);
    };
    plot.addEventListener('pointermove', show);
    plot.addEventListener('pointerdown', show);
    plot.addEventListener('pointerleave', hide);
  }

  for (const figure of document.querySelectorAll('figure.chart')) {
    const table = figure.querySelector('table'), plot = figure.querySelector('.plot');
    if (!table) continue;
    offer(figure, () => csv(table));

    if (!figure.classList.contains('lines')) continue;
    const heads = [...table.tHead.rows[0].cells];
    const series = heads.flatMap((head, column) => head.dataset.series === undefined ? [] : [{
      name: head.textContent,
      points: [...table.tBodies[0].rows].map((row) => ({ x: number(row.cells[0]), y: number(row.cells[column]), label: row.cells[column].textContent,
        at: row.cells[0].textContent })).filter((p) => Number.isFinite(p.x) && Number.isFinite(p.y)),
    }]);
    const tip = tipOf(plot);
    const hide = () => {
      tip.hide();
      plot.querySelectorAll('.guide,.dot').forEach((e) => e.setAttribute('visibility', 'hidden'));
    };
    const show = (event) => {
      const svg = shown(figure);
      hide();
      if (!svg || !svg.dataset.box) return;
      const box = svg.dataset.box.split(' ').map(Number);
      const scale = ([low, high, log], from, to) => (v) => {
        const f = log ? Math.log : (t) => t;
        return from + (f(v) - f(low)) / (f(high) - f(low)) * (to - from);
      };
      const toX = scale(svg.dataset.x.split(' ').map(Number), box[0], box[2]), toY = scale(svg.dataset.y.split(' ').map(Number), box[3], box[1]);
      const frame = svg.getBoundingClientRect(), zoom = svg.viewBox.baseVal.width / frame.width;
      const px = (event.clientX - frame.left) * zoom;
      const drawn = (p) => Number.isFinite(toX(p.x)) && Number.isFinite(toY(p.y));
      const near = series.map((s) => s.points.filter(drawn).reduce((best, p) => {
        const gap = Math.abs(toX(p.x) - px);
        return !best || gap < best.gap ? { ...p, gap } : best;
      }, null));
      const best = near.reduce((a, p) => p && (!a || p.gap < a.gap) ? p : a, null);
      if (!best) return;
      const x = toX(best.x), guide = svg.querySelector('.guide'), dots = svg.querySelectorAll('.dot');
      guide.setAttribute('x1', x);
      guide.setAttribute('x2', x);
      guide.setAttribute('visibility', 'visible');
      const content = [element('b', heads[0].textContent + ' ' + best.at)];
      near.forEach((p, i) => {
        if (!p || Math.abs(toX(p.x) - x) > 0.04 * (box[2] - box[0])) return;
        dots[i].setAttribute('cx', toX(p.x));
        dots[i].setAttribute('cy', toY(p.y));
        dots[i].setAttribute('visibility', 'visible');
        const line = element('div'), swatch = element('i');
        swatch.style.background = getComputedStyle(dots[i]).fill;
        line.append(swatch, series[i].name + '  ' + p.label + (p.x === best.x ? '' : '  (at ' + p.at + ')'));
        content.push(line);
      });
      tip.show(content, x / zoom, box[1] / zoom);
    };
    plot.addEventListener('pointermove', show);
    plot.addEventListener('pointerdown', show);
    plot.addEventListener('pointerleave', hide);
  }
})();
)js";

}  // namespace

double contrast_ratio(uint32_t a, uint32_t b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

std::string page_style() {
  std::string fills;
  for (size_t i = 0; i < kSeriesColors.size(); ++i) {
    fills += fmt::format(".fill{}{{fill:var(--series{})}}.stroke{}{{stroke:var(--series{})}}", i, i, i, i);
  }
  for (int shade = 1; shade <= kHeatShades; ++shade) {
    fills += fmt::format(".shade{}{{stroke-opacity:{:.4g}}}", shade, static_cast<double>(shade) / kHeatShades);
  }
  for (size_t n = 1; n <= kMaxMapsPerRow; ++n) {
    fills += fmt::format("@media (min-width:60rem){{.per{}{{grid-template-columns:repeat({},minmax(0,1fr))}}}}", n, n);
  }
  return fmt::format(
      ":root{{color-scheme:light dark;{}}}\n@media (prefers-color-scheme:dark){{:root{{{}}}}}{}{}\n@media "
      "print{{:root{{color-scheme:light;{}}}{}}}\n",
      variables(false), variables(true), kStyle, fills, variables(false), kPrintStyle);
}

std::string_view page_script() { return kScript; }

}  // namespace transept
