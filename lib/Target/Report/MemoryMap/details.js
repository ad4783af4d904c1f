// What is said about a buffer, in the panel, the tooltip and to screen readers. All text goes through textContent.
const Details = (() => {
  function element(tag, text, className) {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  }

  // Isolated, so that a name of another script does not turn the words around it.
  const name = text => element('bdi', Plan.visible(text));

  function swatch(colour, pattern) {
    const canvas = element('canvas');
    canvas.width = 44;
    canvas.height = 28;
    const c = canvas.getContext('2d');
    c.fillStyle = Colours.pattern(c, colour, pattern);
    c.scale(2, 2);
    c.fillRect(0, 0, 22, 14);
    canvas.setAttribute('aria-hidden', 'true');
    return canvas;
  }

  function properties(entries) {
    const list = element('dl');
    for (const [key, value] of entries) {
      const dd = element('dd');
      dd.append(value);
      list.append(element('dt', key), dd);
    }
    return list;
  }

  const at = (arena, point) => `${point}, ${Plan.opTitle(arena.operationAt(point))}`;

  // A buffer of the only one of `views`, or the peaks of all.
  function show(panel, views, buffer, app) {
    panel.replaceChildren();
    if (!buffer) {
      views.forEach(view => showPeak(panel, view, app));
      panel.append(element('p', 'Point at a rectangle to see what it is; click or tap to keep it here.', 'empty hint'));
      return;
    }
    const [view] = views;
    const {arena} = view;
    const kind = Colours.KINDS[buffer.kind];
    const title = element('h3');
    title.append(name(buffer.node));
    const line = element('div', undefined, 'kind');
    line.append(swatch(Colours.kind(buffer.kind, app.readStyle().dark), kind.pattern), kind.label);
    panel.append(title, line);
    const entries = [
      ['Buffer', buffer.name],
      ['Type', Plan.shapeText(buffer)],
      ['Bytes', buffer.bytes < 1024 ? Plan.exact(buffer.bytes) : `${Plan.exact(buffer.bytes)} (${Plan.bytes(buffer.bytes)})`],
      ['Address', `${buffer.offset.toLocaleString('en')} to ${(buffer.offset + buffer.bytes).toLocaleString('en')}`],
      ['Born', at(arena, buffer.lower)],
      ['Dies', `after ${at(arena, buffer.upper - 1)}`],
    ];
    if (buffer.hasParts) entries.push(['Parts', `${buffer.rectangles.length}, each with a life of its own`]);
    if (buffer.atPeak) {
      const share = (100 * buffer.atPeak / arena.peak.bytes).toFixed(1);
      entries.push(['At peak', buffer.liveWithout === null ? `${share} % of it`
        : `${share} % of it; without this buffer ${Plan.bytes(buffer.liveWithout)} would live at most`]);
    } else entries.push(['At peak', 'not there']);
    panel.append(properties(entries), element('h4', 'Why it is there'), element('p', Plan.reason(arena, buffer)));
    showSharers(panel, view, buffer, app);
  }

  function link(view, buffer, app, ...rest) {
    const button = element('button', undefined, 'link');
    button.type = 'button';
    button.append(name(buffer.node), ...rest);
    button.addEventListener('click', () => app.select(view, buffer, {reveal: true}));
    return button;
  }

  // With nothing selected: what the peak is made of.
  function showPeak(panel, view, app) {
    const {peak, buffers, operationAt} = view.arena;
    const live = buffers.filter(b => b.atPeak).sort((a, b) => b.atPeak - a.atPeak || a.index - b.index);
    const which = app.isComparison ? `${view === app.views[0] ? 'Left' : 'Right'}, live` : 'Live';
    panel.append(element('h3', `${which} at the peak: ${Plan.bytes(peak.bytes)}`),
                 element('p', `operation ${peak.point}, ${Plan.opTitle(operationAt(peak.point))}`, 'empty'));
    const list = element('ul', undefined, 'shares');
    for (const b of live.slice(0, 8)) {
      const item = element('li');
      const bar = element('span', undefined, 'bar');
      const fill = element('i');
      fill.style.width = `${100 * b.atPeak / peak.bytes}%`;
      bar.append(fill);
      item.append(link(view, b, app, ` ${b.name}`), element('span', `${Plan.bytes(b.atPeak)}, ${(100 * b.atPeak / peak.bytes).toFixed(1)} %`, 'empty'), bar);
      list.append(item);
    }
    if (live.length > 8) list.append(element('li', `and ${live.length - 8} more`, 'empty'));
    panel.append(list);
    const first = buffers.find(b => b.name === peak.changeFirst);
    if (first) {
      const text = element('p');
      const better = first.liveWithout !== null && first.liveWithout < peak.bytes;
      text.append('Change first: ', name(first.node), better ? `; without it ${Plan.bytes(first.liveWithout)} would live at most.` : '; another time needs as many bytes without it.');
      panel.append(text);
    }
  }

  function showSharers(panel, view, buffer, app) {
    const shared = Plan.sharers(view.arena, buffer);
    panel.append(element('h4', shared.length ? `Shares bytes with ${shared.length}, at other times` : 'Shares bytes with nobody'));
    const list = element('ul');
    for (const other of shared.slice(0, 8)) {
      const item = element('li');
      item.append(link(view, other, app, ` ${other.name}, [${other.lower}, ${other.upper})`));
      list.append(item);
    }
    if (shared.length > 8) list.append(element('li', `and ${shared.length - 8} more`));
    panel.append(list);
  }

  function tooltip(box, view, {rectangle, band}) {
    box.replaceChildren();
    const title = element('b');
    if (rectangle) {
      const b = rectangle.buffer;
      title.append(name(b.node));
      box.append(title, element('div', `${b.name}  ${Plan.shapeText(b)}  ${Plan.bytes(b.bytes)}`),
                 element('div', `lives [${b.lower}, ${b.upper}): ${b.upper - b.lower} operations`),
                 element('div', Plan.reason(view.arena, b)));
    } else {
      title.append(name(band.name));
      box.append(title, element('div', `${band.what}  ${Plan.shapeText(band)}  ${Plan.bytes(band.bytes)}`),
                 element('div', band.uses.length > 1 ? `used from ${at(view.arena, band.first)} to ${at(view.arena, band.last)}` : `used by ${at(view.arena, band.first)}`));
    }
  }

  const spoken = (arena, b) => `${Plan.visible(b.node)}, ${Colours.KINDS[b.kind].label}, ${Plan.shapeText(b)}, ${Plan.bytes(b.bytes)}, lives from ${b.lower} to ${b.upper}${b.atPeak ? ', at the peak' : ''}`;

  return {element, name, swatch, show, tooltip, spoken, at};
})();
