// A click on a column's head sorts a table, and one of many rows has a filter.
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
