#include "page/site.h"

namespace olmo::page {

const char* site_style_sheet() {
  return R"css(
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(12rem,1fr));gap:.5rem 1.5rem;margin:1rem 0}
.facts>:has(p.note){grid-column:1/-1}.facts dt{color:var(--mute);font-size:.82rem}.facts dd{margin:0}.progress progress{width:min(24rem,100%);accent-color:var(--a)}
tr.usual td,tr.usual th,tr.gone td,tr.gone th{color:var(--mute)}tr.gone code{text-decoration:line-through}
.bar{display:flex;gap:1rem;align-items:baseline;padding:.6rem 1.5rem;border-bottom:1px solid var(--line);font-size:.9rem}
.bar a{text-decoration:none;font-weight:600}.bar a:hover,.tabs a:hover{text-decoration:underline}
#connection{margin-left:auto;color:var(--warn)}
main{padding-top:1.6rem}main.wide{max-width:none}h1{font-size:1.7rem;margin:.1rem 0 .6rem}
.tabs{display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;margin:.6rem 0 0;padding-bottom:.5rem;border-bottom:1px solid var(--line)}
.tabs a{text-decoration:none;color:var(--mute)}.tabs a[aria-current]{color:var(--fg);font-weight:600}
.view,.actions{display:flex;flex-wrap:wrap;gap:.4rem 1rem;align-items:baseline;font-size:.88rem;margin:.6rem 0}
.view label,.actions{color:var(--mute)}input,select,.view button,.actions button{font:inherit;color:var(--fg);background:var(--bg);border:1px solid var(--line);border-radius:4px;padding:.15rem .4rem;max-width:100%}
input[type=search]{width:16rem}.view details{margin:0}.columns{display:flex;flex-wrap:wrap;gap:.2rem 1rem;padding:.4rem 0}
.view button,.actions button{cursor:pointer}.actions button:disabled{color:var(--mute);opacity:.6;cursor:default}
.scripted .apply{display:none}
.every a{text-decoration:none}.every a:hover{text-decoration:underline}.every tbody a{color:var(--a)}.every td,.every tbody th{white-space:nowrap}.every td.wrap{white-space:normal}.every tbody th{white-space:normal;min-width:9rem;max-width:22rem}
.every .pick{width:1.8rem}.every tr:has(:checked){background:var(--soft)}
@media (max-width:44rem){.every td{white-space:normal}.every tbody tr{position:relative;padding-left:2rem}.every tbody .pick{position:absolute;left:0;top:.6rem;padding:0;min-height:0}}
.controls{display:flex;flex-wrap:wrap;gap:.35rem 1.2rem;align-items:center;margin:.6rem 0;font-size:.85rem;color:var(--mute)}
.controls select,.controls button,.controls input[type=search]{font:inherit;color:var(--fg);background:var(--bg);border:1px solid var(--line);border-radius:4px;padding:.1rem .3rem;max-width:14rem}
.runs{display:flex;flex-wrap:wrap;gap:.15rem 1.4rem;max-height:11rem;overflow:auto;margin:1rem 0 .3rem;font-size:.88rem}
.run{display:inline-flex;align-items:center;gap:.4rem;max-width:100%}.run a{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.run svg,.value svg{width:28px;height:10px;flex:none}
.state{color:var(--mute);font-size:.9em;white-space:nowrap}p.tools{justify-content:flex-start;max-width:none}
.curves{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(30rem,100%),1fr));gap:0 2rem}.curves>:only-child{grid-column:1/-1}#curves section{margin-top:1rem;padding-top:.8rem}
[data-source] .tools{flex-basis:auto;margin-left:auto}[data-source]{position:relative;min-width:0;margin:.8rem 0}[data-source] .readout{position:absolute;z-index:2;left:0;right:0;top:100%;padding:.4rem .7rem;background:var(--bg);color:var(--fg);border:1px solid var(--line);border-radius:6px;box-shadow:0 3px 12px #0003;pointer-events:none;text-align:left}
[data-source] .readout:empty{display:none}.values{display:block;columns:15rem}.value{display:flex;gap:.4rem;align-items:center;break-inside:avoid}.name{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.value span:last-child{margin-left:auto;white-space:nowrap}
@media (max-width:44rem){.bar{padding:.6rem 1rem}main{padding-top:1rem}}
@media (pointer:coarse){input[type=checkbox]{width:1.4rem;height:1.4rem}}
@media print{.bar,.tabs,.view,.actions,.every .pick,.controls,.run input{display:none}.runs{max-height:none}}
)css";
}

// Parts with `data-live` are taken from the page as it is now. A timer that runs out while a laptop
// sleeps fires when it wakes, so nothing has to be connected again.
const char* site_script() {
  return R"js(
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
)js";
}

}  // namespace olmo::page
