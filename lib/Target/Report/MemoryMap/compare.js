// Two plans side by side: what is the same buffer in both, and a table of what differs.
const Compare = (() => {
  // Same node, type and shape; the first of several is the first of the others.
  function match(left, right) {
    const waiting = new Map();
    const key = b => JSON.stringify([b.node, b.type, b.shape, b.kind === 'workspace']);
    for (const b of left.buffers) {
      if (!waiting.has(key(b))) waiting.set(key(b), []);
      waiting.get(key(b)).push(b);
    }
    const pairs = new Map();
    for (const b of right.buffers) {
      const other = (waiting.get(key(b)) || []).shift();
      if (other) { pairs.set(other, b); pairs.set(b, other); }
    }
    return pairs;
  }

  const arrow = difference => difference === 0 ? 'same' : difference < 0 ? `▼ ${Plan.bytes(-difference)} less` : `▲ ${Plan.bytes(difference)} more`;

  function fillTable(table, left, right, pairs, app, views) {
    const rows = [['Arena', left.bytes, right.bytes], ['Lower bound', left.bound, right.bound],
                  ['Most live bytes', left.peak.bytes, right.peak.bytes], ['Sum of the buffers', left.noReuse, right.noReuse],
                  ['Weights', left.weightsBytes, right.weightsBytes]];
    const head = Details.element('tr');
    for (const [text, className] of [['', ''], ['Left', 'number'], ['Right', 'number'], ['Right against left', 'number']]) {
      const th = Details.element('th', text, className);
      th.scope = 'col';
      head.append(th);
    }
    const body = Details.element('tbody');
    const add = (title, a, b, difference) => {
      const tr = Details.element('tr');
      const td = Details.element('td', undefined, 'name');
      td.append(title);
      tr.append(td, ...[a, b, difference].map(text => Details.element('td', text, 'number')));
      body.append(tr);
    };
    for (const [title, a, b] of rows) add(title, Plan.bytes(a), Plan.bytes(b), arrow(b - a));
    const count = (arena, what) => `${arena.buffers.length} ${what}`;
    add('Buffers', count(left, ''), count(right, ''), `${left.buffers.filter(b => pairs.has(b)).length} in both`);
    // What changes most: by bytes × operations.
    const area = b => b ? b.byteOps : 0;
    const changes = [...left.buffers.map(b => [b, pairs.get(b) || null]),
                     ...right.buffers.filter(b => !pairs.has(b)).map(b => [null, b])]
      .filter(([a, b]) => area(a) !== area(b)).sort((x, y) => Math.abs(area(y[1]) - area(y[0])) - Math.abs(area(x[1]) - area(x[0])));
    const life = b => b ? `${Plan.bytes(b.bytes)} × [${b.lower}, ${b.upper})` : 'not there';
    for (const [a, b] of changes.slice(0, 20)) {
      const button = Details.element('button', undefined, 'link');
      button.type = 'button';
      button.append(Details.name((a || b).node));
      button.addEventListener('click', () => app.select(a ? views[0] : views[1], a || b, {reveal: true}));
      add(button, life(a), life(b), arrow(area(b) - area(a)).replace(/(less|more)$/, '× op $1'));
    }
    const thead = Details.element('thead');
    thead.append(head);
    table.replaceChildren(thead, body);
    if (changes.length > 20) add(`and ${changes.length - 20} more`, '', '', '');
  }

  return {match, fillTable};
})();
