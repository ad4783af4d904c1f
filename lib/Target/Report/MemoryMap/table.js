// The buffers as a table, worst first: those that live at the peak, by how much lower it would be without them.
class BlameTable {
  constructor(table, more, app) {
    this.table = table;
    this.more = more;
    this.app = app;
    this.sort = null;
    this.shown = 100;
    this.columns = [
      {key: 'node', title: 'Node', get: b => b.node, cell: (td, b) => this.nameCell(td, b), name: true},
      {key: 'kind', title: 'Kind', get: b => b.kind, cell: (td, b) => td.append(Colours.KINDS[b.kind].label)},
      {key: 'type', title: 'Type', get: b => Plan.shapeText(b), cell: (td, b) => td.append(Plan.shapeText(b))},
      {key: 'bytes', title: 'Bytes', get: b => b.bytes, cell: (td, b) => td.append(b.bytes.toLocaleString('en')), number: true},
      {key: 'peak', title: 'Share of peak', get: b => b.atPeak, cell: (td, b) => this.shareCell(td, b), number: true},
      {key: 'without', title: 'Peak without it', get: b => b.liveWithout === null ? Infinity : b.liveWithout, ascending: true,
       cell: (td, b) => td.append(b.liveWithout === null ? '–' : Plan.bytes(b.liveWithout)), number: true},
      {key: 'life', title: 'Lives', get: b => b.upper - b.lower, cell: (td, b) => td.append(`[${b.lower}, ${b.upper})`), number: true},
      {key: 'area', title: 'Bytes × operations', get: b => b.byteOps, cell: (td, b) => td.append(Plan.bytes(b.byteOps)), number: true},
    ];
    more.addEventListener('click', () => { this.shown *= 4; this.fill(); });
  }

  setView(view) {
    this.view = view;
    this.head();
    this.fill();
  }

  head() {
    const row = Details.element('tr');
    for (const column of this.columns) {
      const th = Details.element('th', undefined, column.number ? 'number' : '');
      th.scope = 'col';
      const button = Details.element('button', column.title);
      button.type = 'button';
      if (this.sort && this.sort.column === column) {
        th.setAttribute('aria-sort', this.sort.up ? 'ascending' : 'descending');
        button.append(this.sort.up ? ' ▲' : ' ▼');
      }
      button.addEventListener('click', () => this.sortBy(column));
      th.append(button);
      row.append(th);
    }
    const head = Details.element('thead');
    head.append(row);
    this.body = Details.element('tbody');
    this.table.replaceChildren(head, this.body);
  }

  sortBy(column) {
    const same = this.sort && this.sort.column === column;
    this.sort = {column, up: same ? !this.sort.up : Boolean(column.ascending) || !column.number};
    const focused = this.columns.indexOf(column);
    this.head();
    this.fill();
    this.table.querySelectorAll('th button')[focused].focus();
  }

  list() {
    const found = this.view.arena.buffers.filter(b => this.app.matches(b));
    const without = b => b.liveWithout === null ? Infinity : b.liveWithout;
    if (!this.sort)
      return found.sort((a, b) => (b.atPeak > 0) - (a.atPeak > 0) || (without(a) < without(b) ? -1 : without(a) > without(b) ? 1 : 0)
        || b.atPeak - a.atPeak || b.byteOps - a.byteOps || a.index - b.index);
    const {column, up} = this.sort;
    const order = (a, b) => a < b ? -1 : a > b ? 1 : 0;
    return found.sort((a, b) => (up ? 1 : -1) * order(column.get(a), column.get(b)) || a.index - b.index);
  }

  fill() {
    const list = this.list();
    const rows = list.slice(0, this.shown).map(buffer => this.row(buffer));
    this.body.replaceChildren(...rows);
    this.more.hidden = list.length <= this.shown;
    this.more.textContent = `Show more (${list.length - this.shown} left)`;
    this.mark();
  }

  row(buffer) {
    const tr = Details.element('tr');
    tr.dataset.buffer = buffer.name;
    for (const column of this.columns) {
      const td = Details.element('td', undefined, column.number ? 'number' : column.name ? 'name' : '');
      column.cell(td, buffer);
      tr.append(td);
    }
    tr.addEventListener('pointerenter', () => this.app.hover(this.view, buffer));
    tr.addEventListener('pointerleave', () => this.app.hover(this.view, null));
    return tr;
  }

  nameCell(td, buffer) {
    const button = Details.element('button', undefined, 'link');
    button.type = 'button';
    button.append(Details.name(buffer.node), ` (${buffer.name})`);
    button.addEventListener('click', () => this.app.select(this.view, buffer, {reveal: true}));
    td.append(button);
  }

  shareCell(td, buffer) {
    if (!buffer.atPeak) return td.append('–');
    const share = buffer.atPeak / this.view.arena.peak.bytes;
    const bar = Details.element('span', undefined, 'bar');
    const fill = Details.element('i');
    fill.style.width = `${100 * share}%`;
    bar.append(fill);
    return td.append(`${(100 * share).toFixed(1)} %`, bar);
  }

  mark() {
    const selected = this.app.selected(this.view);
    for (const tr of this.body.children) {
      const is = selected !== null && tr.dataset.buffer === selected.name;
      tr.classList.toggle('selected', is);
      tr.querySelector('button').setAttribute('aria-pressed', String(is));
    }
  }
}
