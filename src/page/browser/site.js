// Parts with `data-live` are taken from the page as it is now. A timer that runs out while a laptop
// sleeps fires when it wakes, so nothing has to be connected again.
const connection = document.getElementById('connection');
async function refresh(wanted = () => true) {
  const fresh = await fetch(location.href, {headers: {Accept: 'text/html'}});
  if (!fresh.ok) throw new Error(fresh.status);
  const now = new DOMParser().parseFromString(await fresh.text(), 'text/html');
  if (!wanted()) return;
  for (const part of document.querySelectorAll('[data-live]')) {
    const other = now.getElementById(part.id);
    // A chart that somebody looks at closely waits, and so does what is being pressed: a press and its
    // release are a click only on the same element.
    if (!other || other.outerHTML === part.before || part.querySelector('.plot:hover,:active')) continue;
    part.replaceChildren(...document.importNode(other, true).childNodes);
    part.querySelectorAll('.plot>svg').forEach(chart);
    part.dispatchEvent(new CustomEvent('fresh', {bubbles: true}));
    part.before = other.outerHTML;
  }
}
const view = document.getElementById('view');
if (view) {
  document.body.classList.add('scripted');
  const ticked = () => [...view.querySelectorAll('[name=run]:checked')].map(box => box.value);
  let chosen = new Set(ticked());
  const count = () => { for (const button of view.querySelectorAll('[data-least]'))
    button.disabled = chosen.size < +button.dataset.least || chosen.size > +(button.dataset.most || Infinity); };
  let asked = 0;
  // What the form says is put into the address, and the table of that address is fetched.
  const show = async () => {
    const fields = new URLSearchParams(new FormData(view)), mine = ++asked;
    for (const name of ['q', 'status', 'tag']) if (!fields.get(name)) fields.delete(name);
    const boxes = [...view.querySelectorAll('[name=column]')];
    if (boxes.every(box => box.checked === box.defaultChecked) && !new URLSearchParams(location.search).has('column')) fields.delete('column');
    fields.delete('run'); fields.delete('page');
    history.replaceState(null, '', fields.size || [...fields].length ? '?' + fields : location.pathname);
    try { await refresh(() => mine === asked); } catch { /* the next look says it */ }
  };
  view.addEventListener('change', event => {
    if (event.target.name === 'run') { event.target.checked ? chosen.add(event.target.value) : chosen.delete(event.target.value); count(); }
    else show();
  });
  view.addEventListener('input', event => { if (event.target.type === 'search') show(); });
  view.addEventListener('submit', event => { if (!event.submitter || !event.submitter.dataset.least) { event.preventDefault(); show(); } });
  // Rows that come anew keep their ticks. Another page gets the ticked runs, those that the filter
  // hides as well, in the order of the ticks, and nothing of the view.
  view.addEventListener('fresh', () => { for (const box of view.querySelectorAll('[name=run]')) box.checked = chosen.has(box.value); });
  view.addEventListener('formdata', event => {
    if (!leaving) return;
    for (const name of new Set([...event.formData.keys()])) event.formData.delete(name);
    for (const run of chosen) event.formData.append('run', run);
  });
  let leaving = false;
  for (const button of view.querySelectorAll('[data-least]')) button.addEventListener('click', () => { leaving = true; setTimeout(() => { leaving = false; }, 0); });
  addEventListener('pageshow', () => { chosen = new Set(ticked()); count(); });
  count();
}
if (document.body.dataset.refresh) {
  const seconds = +document.body.dataset.refresh; let failed = 0, busy = false;
  const look = async () => {
    if (document.hidden || busy) return;
    busy = true;
    try { await refresh(); failed = 0; connection.textContent = ''; }
    catch { if (++failed > 1) connection.textContent = 'olmo-harness serve does not answer; this page is old'; }
    busy = false;
  };
  setInterval(look, 1000 * seconds);
  document.addEventListener('visibilitychange', look);
}
