#include "report/page/html.h"

namespace olmo::report::page {

// Colours of the sides are Okabe and Ito's blue and vermillion (sky blue and orange on dark), which
// are told apart with every kind of colour vision; side B is dashed as well.
const char* style_sheet() {
  return R"css(
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--mute:#626b76;--line:#dfe3e8;--soft:#f5f7f9;
--a:#0072b2;--b:#d55e00;--good:#00795a;--warn:#a35f00;--bad:#b42318;--band:#009e7326;--late:#56b4e91f;--d:#1b1f24}
@media (prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e9ec;--mute:#9aa4ae;--line:#2d333a;--soft:#1c2024;
--a:#56b4e9;--b:#f0a13a;--good:#3fc79a;--warn:#e8b04a;--bad:#ff8a7a;--band:#009e7340;--late:#56b4e926;--d:#e6e9ec}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--fg);font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
main{max-width:62rem;margin:0 auto;padding:2.5rem 1.5rem 4rem}
h1,h2,h3{line-height:1.2;letter-spacing:-.01em}
h2{font-size:1.3rem;margin:0 0 .7rem}h3{font-size:1rem;margin:1.6rem 0 .4rem}
section{margin-top:2.6rem;padding-top:1.6rem;border-top:1px solid var(--line)}
section.empty{display:flex;flex-wrap:wrap;gap:.2rem .8rem;align-items:baseline;margin-top:1rem;padding-top:.6rem}.empty h2{font-size:1rem;margin:0}.empty p{margin:0}
p{margin:.5rem 0;max-width:46rem}ul{margin:.5rem 0;padding-left:1.2rem;max-width:46rem}li{margin:.15rem 0}
code,pre{font:.86em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
pre{background:var(--soft);padding:.8rem 1rem;border-radius:6px;white-space:pre-wrap}
a{color:inherit}
.note,.unit,.xl,.absent{color:var(--mute)}.note,.xl{font-size:.88rem}.absent{font-style:italic}
.kicker{color:var(--mute);font-size:.88rem;margin:0}
.verdict{font-size:clamp(1.9rem,7vw,3.4rem);font-weight:700;letter-spacing:-.025em;margin:.1rem 0 .5rem;overflow-wrap:normal}
.verdict span{font-weight:400;margin-right:.18em}
.good{color:var(--good)}.warn{color:var(--warn)}.bad{color:var(--bad)}.ok{color:var(--good)}
.reason{font-size:1.2rem;line-height:1.45;margin:0 0 1rem}
blockquote{margin:0 0 1rem;padding:.1rem 0 .1rem 1rem;border-left:3px solid var(--good);max-width:46rem;font-size:1.05rem}
.caveats{border-left:3px solid var(--warn);padding:.1rem 0 .1rem 1rem;margin:1rem 0}
.caveats ul{margin:0;padding-left:1.1rem}
.sides{display:grid;grid-template-columns:1fr 1fr;gap:1rem;margin:1.5rem 0}
.sides>div{border:1px solid var(--line);border-radius:8px;padding:.8rem 1rem}
.sides .name{font-weight:600;font-size:1.05rem}.sides p{margin:.1rem 0;font-size:.9rem}
.side{display:inline-block;min-width:1.45em;text-align:center;border-radius:4px;color:var(--bg);font-size:.85em;line-height:1.5;margin-right:.35em}
.side-a{background:var(--a)}.side-b{background:var(--b)}
.glance{list-style:none;padding:0;margin:1.5rem 0 0;max-width:none;border-top:1px solid var(--line)}
.glance li{display:grid;grid-template-columns:1.6rem 9rem 1fr;gap:.2rem .6rem;padding:.45rem 0;border-bottom:1px solid var(--line);margin:0}
.glance a{font-weight:600;text-decoration:none}.glance a:hover{text-decoration:underline}
.glance .m{text-align:center;font-weight:700}
.scroll{overflow-x:auto;margin:.8rem 0}
table{border-collapse:collapse;width:100%;font-size:.88rem}
th,td{text-align:left;vertical-align:top;padding:.38rem .7rem .38rem 0;border-bottom:1px solid var(--line);overflow-wrap:break-word}
td:last-child,th:last-child{padding-right:0}
thead th{color:var(--mute);font-weight:500;border-bottom-color:var(--mute);vertical-align:bottom}
tbody th{font-weight:500;min-width:7.5rem}.n{text-align:right}.n+:not(.n){padding-left:.6rem}td.n{white-space:nowrap}td.n .absent{white-space:normal}
table .note{font-size:.92em}.i{white-space:nowrap}td code.long{overflow-wrap:anywhere}
tr.sum th,tr.sum td{font-weight:650}tr.differs td,tr.differs th{background:var(--soft)}
.tag{display:inline-block;border:1px solid currentColor;border-radius:3px;padding:0 .35em;font-size:.82em;white-space:nowrap}
details{margin:.7rem 0}td details{margin:0;min-width:13rem}td ol{margin:.3rem 0}td pre{margin:.3rem 0;padding:.4rem .6rem}summary{cursor:pointer;font-weight:500}
figure{margin:1.4rem 0}
figcaption{display:flex;flex-wrap:wrap;gap:.1rem .9rem;align-items:baseline;margin-bottom:.5rem;font-size:.92rem}
.legend{display:flex;flex-wrap:wrap;gap:.1rem .9rem;margin-left:auto;color:var(--mute);font-size:.85rem}
.key{display:inline-flex;align-items:center;gap:.35rem}
.plot{display:grid;grid-template-columns:4.4rem 1fr;grid-template-rows:15rem 1.4rem;position:relative;font-size:.76rem;color:var(--mute)}
.plot>svg{width:100%;height:100%;border-bottom:1px solid var(--mute);overflow:visible}
.plot>svg.part{overflow:hidden}.ys,.xs{position:relative}.xs{grid-column:2}
.ys span{position:absolute;right:.6rem;transform:translateY(-50%);white-space:nowrap}
.xs span{position:absolute;top:.25rem;transform:translateX(-50%);white-space:nowrap}
.xs .first{transform:none}.xs .last{transform:translateX(-100%)}
.xl{text-align:center;margin:.1rem 0 0 4.4rem;max-width:none;font-size:.8rem}
svg path{fill:none;vector-effect:non-scaling-stroke;stroke-linejoin:round}
.grid{stroke:var(--line);stroke-width:1}
.a{stroke:var(--a);stroke-width:1.6;stroke-linecap:round}.b{stroke:var(--b);stroke-width:1.6;stroke-dasharray:5 3}
.diff{stroke:var(--d);stroke-width:1.5;stroke-linecap:round}
svg .area{stroke:none;opacity:.17}svg .area.a{fill:var(--a)}svg .area.b{fill:var(--b)}svg .area.diff{fill:var(--d)}svg .bars{stroke-dasharray:none;opacity:.6}
.tools{display:flex;gap:.3rem;flex-basis:100%;justify-content:flex-end}
.tools button,.filter{font:inherit;font-size:.78rem;color:var(--mute);background:none;border:1px solid var(--line);border-radius:4px;padding:.05rem .45rem;cursor:pointer}
.tools button:hover{color:var(--fg);border-color:var(--mute)}.filter{cursor:text;margin-top:.6rem;width:min(16rem,100%)}
.sort{font:inherit;color:inherit;background:none;border:0;padding:0;margin:0;cursor:pointer;text-align:inherit}
[aria-sort=ascending] .sort::after{content:" ↑"}[aria-sort=descending] .sort::after{content:" ↓"}
.fit{stroke:var(--b);stroke-width:2;stroke-dasharray:8 4}.noise{stroke:var(--a);stroke-width:1.6;stroke-dasharray:2 3}
svg .band{fill:var(--band)}svg .late{fill:var(--late)}
.edge{stroke:var(--good);stroke-width:1;stroke-dasharray:4 3}.zero{stroke:var(--mute);stroke-width:1}
.event-a{stroke:var(--a);stroke-width:1;stroke-dasharray:1 3}.event-b{stroke:var(--b);stroke-width:1;stroke-dasharray:3 3}
.mean{stroke:var(--good);stroke-width:4}
.forest .row{display:grid;grid-template-columns:10.5rem 1fr 6.2rem 12.5rem;column-gap:.9rem;align-items:center;font-size:.88rem}
.forest .row>svg{width:100%;height:1.75rem;display:block}
.forest .value{text-align:right}.forest .remark{color:var(--mute);font-size:.82rem}
.forest .sum{font-weight:650;border-top:1px solid var(--line)}
.forest .axis{height:1.5rem}.ticks{grid-column:2;position:relative;height:100%;border-top:1px solid var(--mute);font-size:.76rem;color:var(--mute)}
.ticks span{position:absolute;top:.2rem;transform:translateX(-50%);white-space:nowrap}
.forest .xl{margin:.2rem 0 0;text-align:left}
.margin-mark{stroke:var(--good);stroke-width:1.6}svg .margin-area{fill:var(--band)}
.i95{stroke:var(--fg);stroke-width:1.3}.i90{stroke:var(--fg);stroke-width:4}
.dot{stroke:var(--fg);stroke-width:10;stroke-linecap:round}.dot-sum{stroke-linecap:square}
.k95,.k90{display:inline-block;width:1.3rem;background:var(--fg);height:1.3px}.k90{height:4px}
.km{display:inline-block;width:1.3rem;height:.7rem;background:var(--band);border:solid var(--good);border-width:0 2px}
.grid2{display:grid;grid-template-columns:repeat(auto-fill,minmax(19rem,1fr));gap:0 1.5rem}.grid2 .plot{grid-template-rows:9rem 1.4rem}.grid2 .cursor{height:9rem}
.cursor{position:absolute;top:0;width:1px;height:15rem;background:var(--fg);opacity:.3;pointer-events:none}
.readout{display:block;min-height:1.3em;font-size:.8rem;color:var(--mute);text-align:center}
footer{margin-top:2.6rem;padding-top:1rem;border-top:1px solid var(--line);color:var(--mute);font-size:.85rem}
@media (max-width:44rem){
main{padding:1.4rem 1rem 3rem}.sides{grid-template-columns:1fr}
.glance li{grid-template-columns:1.4rem 1fr}.glance li>:last-child{grid-column:2}
.legend{margin-left:0}.plot{grid-template-columns:3.6rem 1fr;grid-template-rows:12rem 1.4rem}.cursor{height:12rem}.xl{margin-left:3.6rem}
.xs span:nth-child(even){display:none}
.forest .row{grid-template-columns:1fr auto;row-gap:0;padding:.3rem 0}
.forest .row>svg{grid-column:1/-1;grid-row:2}.forest .remark{grid-column:1/-1}
.forest .axis{padding:0}.ticks{grid-column:1/-1}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
table,tbody,tr,th,td{display:block}tbody tr{padding:.5rem 0;border-bottom:1px solid var(--line)}
tbody th,tbody td{border:0;padding:.1rem 0;text-align:left}tbody th{font-weight:650}
tbody td,.n+td:not(.n){position:relative;padding-left:9rem;min-height:1.6em}tbody td.n{white-space:normal;text-align:left;padding-left:9rem}
tbody td::before{content:attr(data-h);color:var(--mute);position:absolute;left:0;width:8.5rem}tbody td[data-h=""]{padding-left:0}tr.differs td,tr.differs th{background:none}}
@page{size:A4;margin:16mm}
@media print{:root{--bg:#fff;--fg:#000;--mute:#555;--line:#ccc;--soft:#f4f4f4;--a:#0072b2;--b:#d55e00;--good:#00674c;--warn:#8a5000;--bad:#a01010;--d:#000}
html{font-size:10pt}body{print-color-adjust:exact;-webkit-print-color-adjust:exact}main{max-width:none;padding:0}
section{margin-top:1.4rem;padding-top:1rem}figure,tr,.sides,.glance li{break-inside:avoid}h2,h3{break-after:avoid}
.scroll{overflow:visible}table{font-size:7.6pt}th,td{padding:.25rem .4rem .25rem 0}
.forest .row{grid-template-columns:8rem 1fr 5.2rem 10rem;font-size:9pt}.ticks span:nth-child(even){display:none}
.plot{grid-template-rows:11rem 1.4rem}.readout,.cursor,.tools,.filter{display:none}details:not(td details)::details-content{content-visibility:visible;block-size:auto}}
)css";
}

// Charts: each `g` holds a curve (data-v: x after the one before, mean, lowest, highest; an empty
// entry breaks the line; data-steps: the step at some x), each path of its own a rectangle
// (data-r).
const char* script() {
  return R"js(
'use strict';
const make = (tag, parent, text, set = {}) => { const e = Object.assign(document.createElement(tag), set); e.textContent = text; parent.append(e); return e; };
const scales = {linear: [v => v, v => v], log: [Math.log10, v => 10 ** v]};
const scaled = (scale, knee) => scale === 'signed' ? [v => Math.asinh(v / knee), v => Math.sinh(v) * knee] : scales[scale];
const axisOf = text => { const [scale, low, high, knee, counts, ...label] = text.split(',');
  return {scale, low: +low, high: +high, knee: +knee, counts: counts === '1', label: label.join(',')}; };
const place = (axis, v) => { const [to] = scaled(axis.scale, axis.knee), low = to(axis.low), at = axis.scale === 'log' && v <= 0 ? low : to(v);
  return Math.min(2, Math.max(-1, (at - low) / (to(axis.high) - low))); };
const valueAt = (axis, share) => { const [to, back] = scaled(axis.scale, axis.knee);
  return back(to(axis.low) + share * (to(axis.high) - to(axis.low))); };
const short = v => { for (const [unit, name] of [[1e12, 'T'], [1e9, 'B'], [1e6, 'M'], [1e3, 'k']])
  if (Math.abs(v) >= unit) return +(v / unit).toPrecision(4) + name; return String(+v.toPrecision(4)); };
const label = (axis, v) => axis.counts ? short(v) : (v !== 0 && (Math.abs(v) < 1e-4 || Math.abs(v) >= 1e6) ? v.toExponential() : String(+v.toPrecision(6))).replace('-', '−');
function ticksOf(axis) {
  const found = [];
  if (axis.scale === 'linear') {
    const rough = (axis.high - axis.low) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5].find(f => f * power >= rough * .999) || 10);
    for (let i = Math.ceil(axis.low / step - 1e-9); i * step <= axis.high + 1e-9 * step && found.length < 12; ++i) found.push(+(i * step).toPrecision(12));
  } else {
    const most = Math.max(-axis.low, axis.high), signed = axis.scale === 'signed';
    const first = signed ? 0 : Math.floor(Math.log10(axis.low)), last = Math.ceil(Math.log10(signed ? most / axis.knee : most));
    if (signed) found.push(0);
    for (let p = first; p <= last; p += Math.max(1, Math.floor((last - first + 5) / 6)))
      for (const f of signed || last - first > 2 ? [1] : [1, 2, 5]) {
        const v = f * 10 ** p * (signed ? axis.knee : 1);
        for (const s of signed ? [v, -v] : [v]) if (s >= axis.low && s <= axis.high) found.push(s);
      }
  }
  return found;
}
function chart(svg) {
  const plot = svg.parentNode, figure = svg.closest('figure'), [left, below] = [plot.querySelector('.ys'), plot.querySelector('.xs')];
  const baseX = axisOf(svg.dataset.x), baseY = axisOf(svg.dataset.y), last = baseY.label.split(', ').pop(), unit = baseY.label.startsWith('nats') ? 'nats' : last.includes(' ') ? '' : last;
  const curves = [...svg.querySelectorAll('g')].map(g => {
    let x = 0, broken = false; const points = [];
    for (const entry of g.dataset.v.split(';')) {
      if (!entry) { broken = true; continue; }
      const [dx, mean, low = mean, high = mean] = entry.split(',').map(Number);
      points.push({base: x += dx, mean, low, high, broken}); broken = false;
    }
    const knots = (g.dataset.steps || '').split(';').filter(Boolean).map(k => k.split(',').map(Number));
    const spread = g.querySelector('.area,.bars');
    return {name: g.dataset.name, points, knots, spread, bars: spread && spread.classList.contains('bars'), line: g.lastElementChild};
  });
  const knots = (curves.find(c => c.knots.length > 1) || {knots: []}).knots;
  const between = (k, v, from, to) => { if (k.length < 2) return v;
    let i = k.findIndex(p => p[from] >= v); i = Math.max(1, i < 0 ? k.length - 1 : i);
    const a = k[i - 1], b = k[i]; return a[to] + (b[to] - a[to]) * (v - a[from]) / (b[from] - a[from]); };
  const stepOf = (v, k) => between(k.length > 1 ? k : knots, v, 0, 1);
  const rectangles = [...svg.querySelectorAll('path[data-r]')].map(e => [e, e.dataset.r.split(',').map(t => t === '' ? null : +t)]);
  let steps = false, log = baseX.scale === 'log', zoom = null;
  const xOf = (base, k = []) => steps ? stepOf(base, k) : base;
  let x, y;
  function draw() {
    for (const c of curves) for (const p of c.points) p.x = xOf(p.base, c.knots);
    const all = curves.flatMap(c => c.points.map(p => p.x)), positive = all.filter(v => v > 0);
    const [low, high] = zoom || [Math.min(...(log ? positive : all)), Math.max(...all)];
    x = {...baseX, scale: log ? 'log' : 'linear', low, high: high > low ? high : low + 1};
    y = {...baseY};
    if (zoom) {
      const seen = curves.flatMap(c => c.points.filter(p => p.x >= low && p.x <= high).flatMap(p => [p.low, p.high, p.mean])).filter(v => y.scale !== 'log' || v > 0);
      if (seen.length) {
        const [least, most] = [Math.min(...seen), Math.max(...seen)], room = .05 * (most - least) || Math.abs(most) * .01 || 1;
        [y.low, y.high] = y.scale === 'log' ? [least / 1.2, most * 1.2] : [least - room, most + room];
      }
    }
    const X = v => (1000 * place(x, v)).toFixed(1), Y = v => (1000 - 1000 * place(y, v)).toFixed(1);
    for (const c of curves) {
      const parts = []; let line = '';
      c.points.forEach((p, i) => { const next = c.points[i + 1], starts = !i || p.broken;
        if (starts) parts.push([]);
        parts[parts.length - 1].push(p);
        line += (starts ? 'M' : 'L') + X(p.x) + ' ' + Y(p.mean) + (starts && (!next || next.broken) ? 'h0' : ''); });
      c.line.setAttribute('d', line);
      if (c.spread) c.spread.setAttribute('d', c.bars ? c.points.map(p => 'M' + X(p.x) + ' ' + Y(p.low) + 'V' + Y(p.high)).join('') :
        parts.map(part => 'M' + part.map(p => X(p.x) + ' ' + Y(p.high)).join('L') + 'L' + part.slice().reverse().map(p => X(p.x) + ' ' + Y(p.low)).join('L') + 'Z').join(''));
    }
    for (const [e, [x0, x1, y0, y1]] of rectangles)
      e.setAttribute('d', `M${x0 === null ? 0 : X(xOf(x0))} ${y1 === null ? 0 : Y(y1)}H${x1 === null ? 1000 : X(xOf(x1))}V${y0 === null ? 1000 : Y(y0)}H${x0 === null ? 0 : X(xOf(x0))}Z`);
    left.textContent = below.textContent = ''; let grid = '';
    for (const v of ticksOf(y)) { grid += 'M0 ' + Y(v) + 'H1000'; make('span', left, label(y, v)).style.top = 100 - 100 * place(y, v) + '%'; }
    for (const v of ticksOf(x)) { const at = place(x, v); grid += 'M' + X(v) + ' 0V1000';
      make('span', below, label(x, v), {className: at < .04 ? 'first' : at > .96 ? 'last' : ''}).style.left = 100 * at + '%'; }
    svg.querySelector('.grid').setAttribute('d', grid);
    figure.querySelector('.xl').textContent = (steps ? 'steps' : baseX.label) + (log ? ', logarithmic' : '') + (zoom ? ', part of the run' : '');
  }
  const tools = make('span', figure.querySelector('figcaption'), '', {className: 'tools'});
  const button = (text, press, title) => { const b = make('button', tools, text, {type: 'button', title});
    b.onclick = () => { if (!x) draw(); press(b); draw(); svg.classList.toggle('part', zoom !== null); }; };
  if (knots.length > 1) button('by steps', b => { steps = !steps; zoom = null; b.textContent = steps ? 'by tokens' : 'by steps'; }, 'Tokens or steps on the axis');
  button(log ? 'linear' : 'log', b => { log = !log; zoom = null; b.textContent = log ? 'linear' : 'log'; }, 'Scale of the horizontal axis');
  const by = factor => { const [a, b] = factor < 1 ? [.5 - factor / 2, .5 + factor / 2] : [-.5, 1.5]; zoom = [valueAt(x, a), valueAt(x, b)]; };
  button('+', () => by(.5), 'Zoom in; or drag over a stretch');
  button('−', () => by(2), 'Zoom out');
  button('whole', () => { zoom = null; }, 'The whole run');
  const cursor = make('div', plot, '', {className: 'cursor', hidden: true}), readout = make('output', figure, '', {className: 'readout'});
  let from = null;
  const shareOf = event => { const box = svg.getBoundingClientRect(); return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)); };
  svg.addEventListener('pointerdown', event => { if (event.pointerType === 'mouse') { from = shareOf(event); event.preventDefault(); } });
  addEventListener('pointerup', event => { if (from === null) return; const to = shareOf(event), ends = [Math.min(from, to), Math.max(from, to)]; from = null;
    if (ends[1] - ends[0] > .02) { zoom = ends.map(s => valueAt(x, s)); draw(); svg.classList.add('part'); } });
  svg.addEventListener('dblclick', () => { zoom = null; draw(); svg.classList.remove('part'); });
  svg.addEventListener('pointermove', event => {
    if (!x) draw();
    const share = shareOf(event), start = from === null ? share : from, offset = svg.getBoundingClientRect().left - plot.getBoundingClientRect().left, width = svg.getBoundingClientRect().width;
    cursor.hidden = false; cursor.style.left = offset + Math.min(share, start) * width + 'px'; cursor.style.width = Math.max(1, Math.abs(share - start) * width) + 'px';
    const at = valueAt(x, share), near = curves.map(c => c.points.reduce((best, p) => Math.abs(p.x - at) < Math.abs(best.x - at) ? p : best));
    const i = near.findIndex(p => Math.abs(p.x - at) === Math.min(...near.map(q => Math.abs(q.x - at)))), p = near[i];
    const named = baseX.label.startsWith('tokens'), n = v => Math.round(v).toLocaleString('en');
    const where = named ? (knots.length > 1 ? 'step ' + n(stepOf(p.base, curves[i].knots)) + ', ' : '') + short(p.base) + ' tokens' : 'step ' + n(p.base);
    const said = v => +v.toPrecision(5);
    readout.textContent = [where, ...curves.map((c, j) => c.name + ' ' + said(near[j].mean) + (unit ? ' ' + unit : '') +
      (near[j].low < near[j].high ? ' (' + said(near[j].low) + ' to ' + said(near[j].high) + ')' : ''))].join('  ·  ').replaceAll('-', '−');
  });
  svg.addEventListener('pointerleave', () => { if (from === null) { cursor.hidden = true; readout.textContent = ''; } });
}
document.querySelectorAll('.plot>svg').forEach(chart);
// 1.2×10⁻³, −4,567, 45.31 %: as numbers.
function numberOf(text) {
  const t = text.trim().replace(/−/g, '-').replace(/,/g, '').replace(/^[<±] ?/, '');
  const power = t.match(/^(-?\+?[\d.]+)×10([⁻⁰¹²³⁴-⁹]+)/);
  return power ? power[1] * 10 ** [...power[2]].map(c => c === '⁻' ? '-' : '⁰¹²³⁴⁵⁶⁷⁸⁹'.indexOf(c)).join('') : parseFloat(t);
}
for (const table of document.querySelectorAll('table')) {
  const body = table.tBodies[0], rows = [...body.rows];
  if (rows.length < 3 || [...table.tHead.rows[0].cells].some(head => !head.textContent)) continue;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const title = head.textContent; head.textContent = '';
    const sort = make('button', head, title, {type: 'button', className: 'sort', title: 'Sort'});
    sort.onclick = () => {
      const up = head.getAttribute('aria-sort') !== 'ascending', key = row => row.cells[column].textContent;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      body.append(...[...rows].sort((r, s) => { const [a, b] = [numberOf(key(r)), numberOf(key(s))];
        const sums = r.classList.contains('sum') - s.classList.contains('sum');
        return sums || (up ? 1 : -1) * (isNaN(a) || isNaN(b) ? key(r).localeCompare(key(s), 'en') : a - b); }));
    };
  });
  if (rows.length < 9) continue;
  const field = document.createElement('input'); field.type = 'search'; field.className = 'filter'; field.placeholder = 'filter ' + rows.length + ' rows';
  field.setAttribute('aria-label', 'Filter the rows'); table.parentNode.before(field);
  field.oninput = () => { const words = field.value.toLowerCase().split(/\s+/); for (const row of rows) row.hidden = !words.every(w => row.textContent.toLowerCase().includes(w)); };
}
let shut = [];
addEventListener('beforeprint', () => { shut = [...document.querySelectorAll('details:not([open])')].filter(d => !d.closest('td')); for (const d of shut) d.open = true; });
addEventListener('afterprint', () => { for (const d of shut) d.open = false; });
)js";
}

}  // namespace olmo::report::page
