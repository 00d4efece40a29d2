// The page of curves (serve/curves.h makes it). Curves are kept by step, as the server sends them;
// each chart gets its points on the axis that the reader has chosen.
function curvesPage(main) {
  const runs = JSON.parse(document.getElementById('runs').textContent);
  const form = main.querySelector('form'), notice = document.getElementById('notice');
  const handles = charts.filter(c => c.source !== undefined), of = main.dataset.of;
  const budget = Math.max(130, Math.min(1000, Math.round(20000 / runs.length)));  // points of a run
  const state = {x: 'step', smooth: 0, logx: false, logy: false, base: '', hidden: new Set(), zoom: null};
  for (const run of runs) run.path = 'run=' + encodeURIComponent(run.key);

  // --- what the address says, and the controls show ---

  function readAddress() {
    const asked = new URLSearchParams(location.search), number = name => asked.has(name) && isFinite(asked.get(name)) ? +asked.get(name) : null;
    if (['tokens', 'time', 'date'].includes(asked.get('x'))) state.x = asked.get('x');
    state.smooth = Math.min(50, Math.max(0, number('smooth') || 0));
    state.logx = asked.has('logx'); state.logy = asked.has('logy');
    state.base = runs.some(r => r.key === asked.get('base')) ? asked.get('base') : '';
    state.hidden = new Set(asked.getAll('hide'));
    if (number('from') !== null && number('to') > number('from')) state.zoom = [number('from'), number('to')];
  }
  function writeAddress() {
    const parts = runs.map(r => r.path);
    const add = (name, value) => parts.push(name + '=' + encodeURIComponent(value));
    if (of !== 'steps') add('of', of);
    if (state.x !== 'step') add('x', state.x);
    if (state.smooth) add('smooth', state.smooth);
    if (state.logx) add('logx', 1);
    if (state.logy) add('logy', 1);
    if (state.base) add('base', state.base);
    for (const key of state.hidden) add('hide', key);
    if (state.zoom) { add('from', +state.zoom[0].toPrecision(9)); add('to', +state.zoom[1].toPrecision(9)); }
    history.replaceState(null, '', '?' + parts.join('&'));
  }
  function showControls() {
    for (const name of ['x', 'smooth', 'base']) form.elements[name].value = String(state[name]);
    for (const name of ['logx', 'logy']) form.elements[name].checked = state[name];
    form.elements.logx.disabled = state.x === 'date';
    form.elements.logy.disabled = state.base !== '';
    for (const box of main.querySelectorAll('.run input')) box.checked = !state.hidden.has(box.value);
  }

  // --- from steps to places on the axis ---

  // The value at `at` of a curve through ascending xs; a straight line between two of them.
  function interpolated(xs, ys, at) {
    let from = 0, to = xs.length - 1;
    if (to < 0) return NaN;
    while (from < to) { const middle = from + to >> 1; if (xs[middle] < at) from = middle + 1; else to = middle; }
    if (from === 0 || xs[from] === at) return ys[from];
    const share = (at - xs[from - 1]) / (xs[from] - xs[from - 1]);
    return ys[from - 1] + Math.min(1, share) * (ys[from] - ys[from - 1]);
  }
  const secondsAt = (run, step) => interpolated(run.whole.step, run.whole.seconds, step);
  function placeOf(run, step) {
    if (state.x === 'tokens') return interpolated(run.whole.step, run.whole.tokens, step);
    if (state.x === 'time') return secondsAt(run, step) / 3600;
    if (state.x === 'step') return step;
    const start = run.whole.starts.filter(s => s.step <= step).pop() || run.whole.starts[0];
    return start ? Date.parse(start.utc) / 1000 + secondsAt(run, step) - secondsAt(run, start.step) : NaN;
  }
  const axes = {step: {label: 'step', counts: true}, tokens: {label: 'tokens', counts: true},
    time: {label: 'hours of training', counts: false}, date: {label: 'date (UTC), without pauses between steps', moments: true}};
  // The steps whose places are within the range, with a window of smoothing at both ends.
  function stepsWithin(run, range) {
    const steps = run.whole.step, inside = steps.filter(s => { const at = placeOf(run, s); return at >= range[0] && at <= range[1]; });
    const before = steps.filter(s => placeOf(run, s) < range[0]).pop(), after = steps.find(s => placeOf(run, s) > range[1]);
    if (!inside.length && before === undefined) return null;
    const room = Math.ceil(windowOf(run) / 2);
    return [(before === undefined ? inside[0] : before) - room, (after === undefined ? steps[steps.length - 1] : after) + room].map(s => Math.max(0, Math.round(s)));
  }

  // --- points of a curve ---

  const windowOf = run => { const s = run.whole.step; return s.length ? state.smooth / 100 * (s[s.length - 1] - s[0]) : 0; };
  // Means over a window of steps around each point, at most a fifth of the steps before it, so that a steep start is not flattened.
  function smoothed(run, steps, means, weights) {
    const width = windowOf(run), n = steps.length, first = run.whole.step[0], last = run.whole.step[run.whole.step.length - 1];
    if (!width) return means;
    const sums = [0], counts = [0];
    for (let i = 0; i < n; ++i) { sums.push(sums[i] + means[i] * weights[i]); counts.push(counts[i] + weights[i]); }
    return means.map((mean, i) => {
      const half = Math.min(width / 2, (steps[i] - first) / 10, last - steps[i]);
      let low = 0, high = i;
      while (low < high) { const m = low + high >> 1; if (steps[m] < steps[i] - half) low = m + 1; else high = m; }
      const from = low; low = i; high = n - 1;
      while (low < high) { const m = low + high + 1 >> 1; if (steps[m] > steps[i] + half) high = m - 1; else low = m; }
      const to = low + 1;
      return (sums[to] - sums[from]) / (counts[to] - counts[from]);
    });
  }
  function pointsOf(run, source) {
    const data = state.zoom && run.part || run.whole, series = data.of[source];
    if (!series) return [];
    const steps = series.step || data.step, kept = [];
    let broken = false;
    series.mean.forEach((mean, i) => { if (mean === null) { broken = kept.length > 0; return; } kept.push([i, broken]); broken = false; });
    const means = smoothed(run, kept.map(([i]) => steps[i]), kept.map(([i]) => series.mean[i]), kept.map(([i]) => series.step ? 1 : data.rows[i]));
    const low = series.low || series.mean, high = series.high || series.mean;
    return kept.map(([i, gap], k) => ({step: steps[i], base: placeOf(run, steps[i]), mean: means[k], low: low[i], high: high[i], broken: gap})).filter(p => isFinite(p.base));
  }
  // Where the loss is not finite.
  function marksOf(run, source) {
    const data = state.zoom && run.part || run.whole, counts = source === 'ce_loss' && (data.of[source] || {}).not_finite || [];
    return data.step.filter((_, i) => counts[i] > 0).map(step => ({base: placeOf(run, step)})).filter(p => isFinite(p.base));
  }
  // Less what the base has at the same place.
  function lessBase(points, base) {
    if (!base.length) return [];
    const xs = base.map(p => p.base), ys = base.map(p => p.mean);
    return points.filter(p => p.base >= xs[0] && p.base <= xs[xs.length - 1]).map(p => { const under = interpolated(xs, ys, p.base);
      return {...p, mean: p.mean - under, low: p.low - under, high: p.high - under}; });
  }

  // --- drawing ---

  const base = () => runs.find(r => r.key === state.base && r.whole);
  function show(handle) {
    const under = base(), y = axisOf(handle.svg.dataset.y);
    for (const run of runs) {
      let curve = handle.curves.find(c => c.key === run.key);
      if (!run.whole) { if (curve && state.hidden.has(run.key)) curve.hidden = true; continue; }
      if (!curve) { if (!run.whole.of[handle.source]) continue; curve = handle.add(run.key, run.name, run.look); }
      curve.hidden = state.hidden.has(run.key);
      if (curve.hidden) continue;
      curve.points = pointsOf(run, handle.source);
      curve.marks = marksOf(run, handle.source);
      if (under) curve.points = lessBase(curve.points, pointsOf(under, handle.source));
    }
    Object.assign(handle.view, {zoom: state.zoom, x: {...axes[state.x], scale: state.logx && state.x !== 'date' ? 'log' : 'linear', knee: 1},
      y: {...y, scale: under ? 'linear' : state.logy ? 'log' : y.scale, counts: y.counts && !under, label: [y.label, under && 'less that of ' + under.name].filter(Boolean).join(', ')}});
    handle.svg.classList.toggle('many', runs.length - state.hidden.size > 6);
    handle.draw();
    handle.old = false;
  }
  // Only charts that are seen are drawn, at most once a frame. What the server brings waits a few
  // times as long as drawing takes, so that a page of many runs stays one that can be used meanwhile.
  const seen = new Set();
  let due = false, later = null, free = 0;
  function drawSoon() {
    for (const handle of handles) handle.old = true;
    clearTimeout(later);
    later = null;
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      const begun = performance.now();
      due = false;
      if (runs.some(r => r.whole)) for (const handle of seen) if (handle.old) show(handle);
      free = 5 * performance.now() - 4 * begun;
    });
  }
  function drawNews() {
    if (!due && later === null) later = setTimeout(drawSoon, Math.max(0, free - performance.now()));
  }
  const watcher = new IntersectionObserver(entries => { for (const entry of entries) {
    const handle = handles.find(h => h.figure === entry.target);
    if (entry.isIntersecting) { seen.add(handle); if (handle.old) drawSoon(); } else seen.delete(handle); } }, {rootMargin: '300px'});
  for (const handle of handles) {
    watcher.observe(handle.figure);
    handle.zoomed = range => { state.zoom = range; changed(true); };
    // Points that the page came with have no step of their own.
    handle.where = (c, p) => p.step === undefined ? (state.x === 'step' ? 'step ' + whole(p.base) : '') : 'step ' + whole(p.step) + (state.x === 'step' ? '' :
      ', ' + (state.x === 'date' ? moment(p.base) : state.x === 'time' ? said(p.base) + ' h' : short(p.base) + ' tokens'));
  }

  // --- asking the server ---

  async function ask(address, signal) {
    const answer = await fetch(address, {signal, headers: {Accept: 'application/json'}});
    const json = await answer.json();
    if (!answer.ok) throw new Error(json.error || 'status ' + answer.status);
    return json;
  }
  const problems = new Map(notice.textContent ? [['reading', notice.textContent]] : []);
  function say(key, sentence) {
    if (sentence) problems.set(key, sentence); else problems.delete(key);
    const text = [...new Set(problems.values())].join(' ');
    if (notice.textContent !== text) notice.textContent = text;
  }
  const failed = (run, error) => { if (error.name === 'AbortError') return;
    say(run.key, error instanceof TypeError ? 'olmo-harness serve does not answer; the curves are as they were.' : run.name + ': ' + error.message); };
  // A few at a time.
  async function forEach(list, work) {
    const waiting = [...list];
    await Promise.all([0, 1, 2, 3].map(async () => { for (let run = waiting.shift(); run; run = waiting.shift()) await work(run); }));
  }
  async function loadWhole(run) {
    try {
      for (let complete = false; !complete;) {
        const data = await ask(`/api/curves?${run.path}&of=${of}&points=${budget}`);
        complete = data.complete;
        Object.assign(run, {whole: data, active: data.active, fresh: 0});
        label(run);
        drawNews();
      }
      say(run.key, '');
    } catch (error) { failed(run, error); }
  }
  let zooming = null;
  function loadParts() {
    if (zooming) zooming.abort();
    zooming = null;
    for (const run of runs) run.part = null;
    if (!state.zoom || of !== 'steps') return;
    zooming = new AbortController();
    const {signal} = zooming;
    forEach(runs.filter(r => r.whole && !state.hidden.has(r.key)), async run => {
      const range = stepsWithin(run, state.zoom);
      if (!range) return;
      try {
        for (let complete = false; !complete;) {
          const data = await ask(`/api/curves?${run.path}&of=${of}&points=${budget}&from=${range[0]}&to=${range[1]}`, signal);
          complete = data.complete;
          if (complete) { run.part = data; drawNews(); }
        }
      } catch (error) { failed(run, error); }
    });
  }

  // --- new steps ---

  function label(run) {
    const place = main.querySelector(`.run[data-key="${CSS.escape(run.key)}"] .state`);
    const last = run.whole && run.whole.last;
    if (place) place.textContent = (run.active ? 'running' : '') + (last === null || last === undefined ? '' : (run.active ? ', ' : '') + 'step ' + whole(last));
  }
  function append(run, rows) {
    const whole = run.whole;
    let seconds = whole.seconds.length ? whole.seconds[whole.seconds.length - 1] : 0;
    rows.step.forEach((step, i) => {
      whole.step.push(step); whole.rows.push(1); whole.tokens.push(rows.tokens[i]); whole.seconds.push(seconds += rows.seconds[i]);
    });
    for (const [source, values] of Object.entries(rows.of)) {
      const series = whole.of[source] || (whole.of[source] = Object.fromEntries(['low', 'mean', 'high'].map(k => [k, Array(whole.step.length - rows.step.length).fill(null)])));
      for (const kind of ['low', 'mean', 'high']) series[kind].push(...values);
    }
    for (const series of Object.values(whole.of)) for (const kind of ['low', 'mean', 'high']) while (series[kind].length < whole.step.length) series[kind].push(null);
    const loss = whole.of.ce_loss, count = rows.step.length;
    if (loss) {
      loss.not_finite = loss.not_finite || Array(whole.step.length - count).fill(0);
      loss.not_finite.push(...loss.mean.slice(-count).map(mean => mean === null ? 1 : 0));
    }
    run.fresh += count;
  }
  async function follow() {
    const live = runs.filter(r => r.active && r.whole);
    const asked = live.map(r => r.path + '&after=' + (r.whole.last === null ? -1 : r.whole.last)).join('&');
    const answer = await ask('/api/curves/new?of=' + of + '&' + asked);
    for (const news of answer.runs) {
      const run = live.find(r => r.key === news.key);
      if (!run) continue;
      say(run.key, news.error ? run.name + ': ' + news.error : '');
      if (news.error) continue;
      const ended = !news.active;
      if (news.line !== run.whole.line || news.behind || run.fresh > budget || ended || of !== 'steps' && news.last !== run.whole.last) { await loadWhole(run); run.active = news.active; label(run); continue; }
      if (!news.step.length) continue;
      append(run, news);
      run.whole.last = news.last;
      label(run);
      drawNews();
    }
  }
  let timer = null, busy = false;
  async function tick() {
    clearTimeout(timer);
    if (document.hidden || busy) return;  // asked again when somebody looks
    busy = true;
    let wait = 2000;
    try {
      for (const run of runs.filter(r => !r.whole)) await loadWhole(run);  // what could not be read may be there now
      if (runs.some(r => r.active && r.whole)) await follow();
      // A page of runs that had no step came without a chart.
      if (!handles.length && runs.some(r => r.whole && r.whole.step.length) && (await (await fetch(location.href)).text()).includes('data-source=')) location.reload();
      say('', '');
    }
    catch (error) { wait = 5000; say('', error instanceof TypeError ? 'olmo-harness serve does not answer; the curves are as they were.' : error.message); }
    busy = false;
    main.dataset.live = runs.some(r => r.active || !r.whole) ? 'on' : 'off';
    if (main.dataset.live === 'on') timer = setTimeout(tick, problems.size ? 5000 : wait);
  }
  document.addEventListener('visibilitychange', () => { if (!document.hidden && main.dataset.live === 'on') tick(); });

  // --- the reader's hands ---

  function changed(other) { writeAddress(); showControls(); if (other) loadParts(); drawSoon(); }
  form.addEventListener('submit', event => event.preventDefault());
  form.addEventListener('change', event => {
    const {name, value, checked} = event.target;
    if (name === 'hide') return;
    const before = state.x;
    if (name === 'logx' || name === 'logy') state[name] = checked; else state[name] = name === 'smooth' ? +value : value;
    if (state.x !== before) state.zoom = null;
    changed(name === 'smooth' || state.x !== before);
  });
  main.addEventListener('change', event => {
    if (event.target.closest('.run')) { if (event.target.checked) state.hidden.delete(event.target.value); else state.hidden.add(event.target.value); changed(state.zoom !== null); }
  });
  for (const [id, hide] of [['show-all', false], ['show-none', true]]) {
    const button = document.getElementById(id);
    if (button) button.onclick = () => { state.hidden = new Set(hide ? runs.map(r => r.key) : []); changed(state.zoom !== null); };
  }

  readAddress();
  showControls();
  for (const handle of handles) for (const curve of handle.curves) {
    if (state.hidden.has(curve.key)) { curve.hidden = true; curve.g.style.display = 'none'; }
  }
  // After the charts that the page came with have been painted: reading for others would slow that.
  const painted = new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))));
  // Runs that were not drawn for want of time go first.
  const drawn = new Set(handles.flatMap(handle => handle.curves.map(curve => curve.key)));
  painted.then(() => forEach([...runs].sort((a, b) => drawn.has(a.key) - drawn.has(b.key)), loadWhole)).then(() => { say('reading', ''); main.dataset.loaded = 'all'; if (state.zoom) loadParts(); drawSoon(); tick(); });
}
if (document.getElementById('curves')) curvesPage(document.getElementById('curves'));
