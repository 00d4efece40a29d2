'use strict';
// Charts in a browser: each `g` of one holds a curve (data-v: x after the one before, mean, lowest,
// highest; an empty entry breaks the line; data-steps: the step at some x; data-key: its name for
// other scripts), each path of its own a rectangle (data-r).
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
const moment = v => new Date(v * 1000).toISOString().slice(0, 16).replace('T', ' ');
const label = (axis, v) => axis.moments ? moment(v) : axis.counts ? short(v).replace('-', '−') :
  (v !== 0 && (Math.abs(v) < 1e-4 || Math.abs(v) >= 1e6) ? v.toExponential() : String(+v.toPrecision(6))).replace('-', '−');
const said = v => String(+v.toPrecision(5)).replace('-', '−');
const whole = v => Math.round(v).toLocaleString('en');

function ticksOf(axis) {
  const found = [];
  if (axis.scale === 'linear') {
    const rough = (axis.high - axis.low) / (axis.moments ? 3 : 5), power = 10 ** Math.floor(Math.log10(rough));
    const nice = axis.moments ? [60, 300, 900, 3600, 10800, 21600, 43200, 86400, 172800, 604800, 2592000].find(s => s >= rough) : 0;
    const step = nice || power * ([1, 2, 5].find(f => f * power >= rough * .999) || 10);
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
  const whole = found.filter(Number.isInteger);  // between two neighbouring steps there is none
  return axis.counts && whole.length ? whole : found;
}

// The entries of data-v.
function pointsOf(text) {
  const points = [];
  let x = 0, broken = false;
  for (const entry of text ? text.split(';') : []) {
    if (!entry) { broken = true; continue; }
    const [dx, mean, low = mean, high = mean] = entry.split(',').map(Number);
    points.push({base: x += dx, mean, low, high, broken});
    broken = false;
  }
  return points;
}

// The value at `v` of a line through knots; without any, `v`.
function between(knots, v, from, to) {
  if (knots.length < 2) return v;
  let i = knots.findIndex(p => p[from] >= v);
  i = Math.max(1, i < 0 ? knots.length - 1 : i);
  const a = knots[i - 1], b = knots[i];
  return a[to] + (b[to] - a[to]) * (v - a[from]) / (b[from] - a[from]);
}

// The point of an ascending list that is nearest to x; undefined for an empty list.
function nearest(points, x) {
  let from = 0, to = points.length - 1;
  while (from < to) { const middle = from + to >> 1; if (points[middle].x < x) from = middle + 1; else to = middle; }
  const before = points[from - 1];
  return before && Math.abs(before.x - x) <= Math.abs(points[from].x - x) ? before : points[from];
}

// A chart that can be zoomed and read. What is returned is for a script that brings other points:
// `curves` (key, name, points, marks: places without a value, hidden), `view` (x and y in place of
// the axes of the page, zoom, fit: the y axis follows what is seen), draw(), add(), and functions
// that it may set: `zoomed`, `where`.
function chart(svg) {
  const plot = svg.parentNode, figure = svg.closest('figure'), [left, below] = [plot.querySelector('.ys'), plot.querySelector('.xs')];
  const live = figure.dataset.source !== undefined;
  const baseX = axisOf(svg.dataset.x), baseY = axisOf(svg.dataset.y);
  const unitOf = text => { const last = text.split(', ').pop(); return text.startsWith('nats') ? 'nats' : last.includes(' ') ? '' : last; };
  const curveOf = g => {
    const spread = g.querySelector('.area,.bars');
    let points;  // of the page, once they are asked for: a page may have a thousand curves
    return {g, key: g.dataset.key, name: g.dataset.name, marks: [], spread, line: g.lastElementChild, hidden: false,
      get points() { return points = points || pointsOf(g.dataset.v); }, set points(list) { points = list; },
      bars: Boolean(spread) && spread.classList.contains('bars'), knots: (g.dataset.steps || '').split(';').filter(Boolean).map(k => k.split(',').map(Number))};
  };
  const curves = [...svg.querySelectorAll('g')].map(curveOf);
  const knots = (curves.find(c => c.knots.length > 1) || {knots: []}).knots;
  const rectangles = [...svg.querySelectorAll('path[data-r]')].map(e => [e, e.dataset.r.split(',').map(t => t === '' ? null : +t)]);
  const view = {x: {...baseX}, y: {...baseY}, zoom: null, steps: false, fit: live};
  const handle = {svg, figure, curves, view, source: figure.dataset.source};
  let x, y;

  const xOf = (base, k) => view.steps ? between(k && k.length > 1 ? k : knots, base, 0, 1) : base;
  const seen = () => curves.filter(c => !c.hidden);

  function axes() {
    const log = view.x.scale === 'log';
    let low = Infinity, high = -Infinity;
    if (view.zoom) [low, high] = view.zoom;
    else for (const c of seen()) for (const p of [...c.points, ...c.marks]) if (!log || p.x > 0) { if (p.x < low) low = p.x; if (p.x > high) high = p.x; }
    if (!(low <= high)) { low = log ? 1 : 0; high = low + 1; }
    x = {...view.x, low, high: high > low ? high : low + 1};
    y = {...view.y};
    if (!view.zoom && !view.fit) return;
    let least = Infinity, most = -Infinity;
    for (const c of seen()) for (const p of c.points) if (p.x >= low && p.x <= high)
      for (const v of [p.low, p.high, p.mean]) if (y.scale !== 'log' || v > 0) { if (v < least) least = v; if (v > most) most = v; }
    if (!(least <= most)) return;
    const room = .05 * (most - least) || Math.abs(most) * .01 || 1;
    [y.low, y.high] = y.scale === 'log' ? [least / 1.2, most * 1.2] : [least - room, most + room];
  }

  function draw() {
    for (const c of curves) for (const p of [...c.points, ...c.marks]) p.x = xOf(p.base, c.knots);
    axes();
    const X = v => (1000 * place(x, v)).toFixed(1), Y = v => (1000 - 1000 * place(y, v)).toFixed(1);
    for (const c of curves) {
      c.g.style.display = c.hidden ? 'none' : '';
      if (c.hidden) continue;
      const parts = []; let line = '';
      c.points.forEach((p, i) => { const next = c.points[i + 1], starts = !i || p.broken;
        if (starts) parts.push([]);
        parts[parts.length - 1].push(p);
        line += (starts ? 'M' : 'L') + X(p.x) + ' ' + Y(p.mean) + (starts && (!next || next.broken) ? 'm-3 0h6' : ''); });
      c.line.setAttribute('d', line);
      if (!c.spread && c.points.some(p => p.low !== p.mean || p.high !== p.mean)) {
        c.spread = c.line.cloneNode();
        c.spread.setAttribute('class', 'area ' + c.line.getAttribute('class'));
        c.g.prepend(c.spread);
      }
      if (c.spread) c.spread.setAttribute('d', c.bars ? c.points.map(p => 'M' + X(p.x) + ' ' + Y(p.low) + 'V' + Y(p.high)).join('') :
        parts.map(part => 'M' + part.map(p => X(p.x) + ' ' + Y(p.high)).join('L') + 'L' + part.slice().reverse().map(p => X(p.x) + ' ' + Y(p.low)).join('L') + 'Z').join(''));
    }
    for (const c of curves) if (c.marks.length || c.marked) {
      if (!c.marked) {
        c.marked = c.line.cloneNode();
        c.marked.setAttribute('class', 'event-b');
        c.g.append(c.marked);
        c.marked.append(document.createElementNS(svg.namespaceURI, 'title'));
        c.marked.lastChild.textContent = c.name + ': the loss is not finite';
      }
      c.marked.setAttribute('d', c.marks.map(p => 'M' + X(p.x) + ' 0V1000').join(''));
    }
    for (const [e, [x0, x1, y0, y1]] of rectangles)
      e.setAttribute('d', `M${x0 === null ? 0 : X(xOf(x0))} ${y1 === null ? 0 : Y(y1)}H${x1 === null ? 1000 : X(xOf(x1))}V${y0 === null ? 1000 : Y(y0)}H${x0 === null ? 0 : X(xOf(x0))}Z`);
    left.textContent = below.textContent = ''; let grid = '';
    for (const v of ticksOf(y)) { grid += 'M0 ' + Y(v) + 'H1000'; make('span', left, label(y, v)).style.top = 100 - 100 * place(y, v) + '%'; }
    for (const v of ticksOf(x)) { const at = place(x, v); grid += 'M' + X(v) + ' 0V1000';
      make('span', below, label(x, v), {className: at < .04 ? 'first' : at > .96 ? 'last' : ''}).style.left = 100 * at + '%'; }
    svg.querySelector('.grid').setAttribute('d', grid);
    figure.querySelector('.unit').textContent = view.y.label;
    figure.querySelector('.xl').textContent = (view.steps ? 'steps' : view.x.label) + (view.x.scale === 'log' ? ', logarithmic' : '') + (view.zoom ? ', part of the run' : '');
    svg.classList.toggle('part', view.zoom !== null);
  }
  handle.draw = draw;
  // Another curve, drawn with these classes.
  handle.add = (key, name, classes) => {
    const g = document.createElementNS(svg.namespaceURI, 'g');
    g.append(document.createElementNS(svg.namespaceURI, 'path'));
    g.lastChild.setAttribute('class', classes);
    Object.assign(g.dataset, {key, name});
    svg.append(g);
    curves.push(curveOf(g));
    return curves[curves.length - 1];
  };
  function zoomTo(range) {
    view.zoom = range;
    if (handle.zoomed) handle.zoomed(range); else draw();
  }

  const tools = make('span', figure.querySelector('figcaption'), '', {className: 'tools'});
  const button = (text, press, title) => { const b = make('button', tools, text, {type: 'button', title}); b.setAttribute('aria-label', title);
    b.onclick = () => { if (!x) draw(); press(b); }; };
  if (!live) {
    if (knots.length > 1) button('by steps', b => { view.steps = !view.steps; b.textContent = view.steps ? 'by tokens' : 'by steps'; zoomTo(null); }, 'Tokens or steps on the axis');
    button(view.x.scale === 'log' ? 'linear' : 'log', b => { const log = view.x.scale !== 'log'; view.x.scale = log ? 'log' : 'linear'; b.textContent = log ? 'linear' : 'log'; zoomTo(null); }, 'Scale of the horizontal axis');
  }
  const by = factor => { const [a, b] = factor < 1 ? [.5 - factor / 2, .5 + factor / 2] : [-.5, 1.5]; zoomTo([valueAt(x, a), valueAt(x, b)]); };
  button('+', () => by(.5), 'Zoom in; or drag over a stretch');
  button('−', () => by(2), 'Zoom out');
  button('whole', () => zoomTo(null), 'The whole run');

  const cursor = make('div', plot, '', {className: 'cursor', hidden: true}), readout = make('output', figure, '', {className: 'readout'});
  let from = null;
  const shareOf = event => { const box = svg.getBoundingClientRect(); return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)); };
  // In shares of the plot, so that it stays there when the window becomes narrower.
  const point = (a, b) => { cursor.hidden = false; cursor.style.left = 100 * Math.min(a, b) + '%'; cursor.style.width = 100 * Math.abs(a - b) + '%'; };
  const leave = () => { cursor.hidden = true; readout.textContent = ''; };
  svg.addEventListener('pointerdown', event => { if (event.pointerType === 'mouse') { from = shareOf(event); event.preventDefault(); } });
  addEventListener('pointerup', event => { if (from === null) return; const to = shareOf(event), ends = [Math.min(from, to), Math.max(from, to)]; from = null;
    if (ends[1] - ends[0] > .02) zoomTo(ends.map(s => valueAt(x, s))); });
  svg.addEventListener('dblclick', () => zoomTo(null));
  const stepAt = (p, k) => whole(between(k.length > 1 ? k : knots, p.base, 0, 1));
  const whereIs = (c, p) => handle.where ? handle.where(c, p) : !baseX.label.startsWith('tokens') ? 'step ' + whole(p.base) :
    (knots.length > 1 ? 'step ' + stepAt(p, c.knots) + ', ' : '') + short(p.base) + ' tokens';
  // What all curves have at one place: a text, or, of a page with a list of runs, a line each.
  function read(at) {
    const near = seen().map(c => [c, nearest(c.points, at)]).filter(([, p]) => p);
    readout.textContent = '';
    if (!near.length) return;
    const [c, p] = near.reduce((best, one) => Math.abs(one[1].x - at) < Math.abs(best[1].x - at) ? one : best);
    const unit = unitOf(view.y.label), value = p => said(p.mean) + (unit ? ' ' + unit : '') + (p.low < p.high ? ' (' + said(p.low) + ' to ' + said(p.high) + ')' : '');
    if (!live) { readout.textContent = [whereIs(c, p), ...near.map(([one, at]) => one.name + ' ' + value(at))].join('  ·  '); return; }
    make('b', readout, whereIs(c, p));
    const list = make('span', readout, '', {className: 'values'});
    for (const [one, q] of near.sort((a, b) => b[1].mean - a[1].mean)) {
      if (near.length > 1 && Math.abs(q.x - at) > .03 * (x.high - x.low) && x.scale !== 'log') continue;  // it has nothing there
      const line = make('span', list, '', {className: 'value'}), key = document.createElementNS(svg.namespaceURI, 'svg');
      key.setAttribute('viewBox', '0 0 28 10');
      key.append(one.line.cloneNode());
      key.firstChild.setAttribute('d', 'M1 5H27');
      line.append(key);
      make('span', line, one.name, {className: 'name'});
      make('span', line, value(q));
    }
  }
  svg.addEventListener('pointermove', event => {
    if (!x) draw();
    const share = shareOf(event);
    point(share, from === null ? share : from);
    read(valueAt(x, share));
  });
  svg.addEventListener('pointerleave', () => { if (from === null) leave(); });
  // By keyboard: arrows go along the curves.
  let mark = 1;
  svg.setAttribute('tabindex', '0');
  svg.addEventListener('keydown', event => {
    const move = {ArrowLeft: -.01, ArrowRight: .01}[event.key];
    if (event.key === 'Escape') zoomTo(null);
    if (!move) return;
    event.preventDefault();
    if (!x) draw();
    mark = Math.min(1, Math.max(0, mark + move * (event.shiftKey ? 10 : 1)));
    point(mark, mark);
    read(valueAt(x, mark));
  });
  svg.addEventListener('blur', leave);
  return handle;
}
const charts = [...document.querySelectorAll('.plot>svg')].map(chart);

let shut = [];
addEventListener('beforeprint', () => { shut = [...document.querySelectorAll('details:not([open])')].filter(d => !d.closest('td')); for (const d of shut) d.open = true; });
addEventListener('afterprint', () => { for (const d of shut) d.open = false; });
