// What is selected, searched and shown; the controls; the test hook.
class App {
  constructor(plans) {
    this.plans = plans;
    this.colourBy = 'kind';
    this.query = '';
    this.hover_ = {view: null, buffer: null};
    this.selection = {view: null, buffer: null};
    this.views = [];
    this.isComparison = plans.length > 1;
    document.body.classList.toggle('compare', this.isComparison);
    this.table = new BlameTable(this.$('blame'), this.$('more'), this);
    this.describe();
    this.makeArenaChoice();
    this.listen();
    this.showArena(0);
  }

  $(id) { return document.getElementById(id); }

  // --- What is drawn ---

  showArena(number) {
    const arenas = this.plans.map(plan => plan.arenas[Math.min(number, plan.arenas.length - 1)]);
    this.commonHeight = Math.max(...arenas.map(a => Math.max(a.bytes, a.bound)));
    this.pairs = this.isComparison ? Compare.match(arenas[0], arenas[1]) : new Map();
    this.selection = {view: null, buffer: null};
    this.hover_ = {view: null, buffer: null};
    const sections = arenas.map((arena, i) => this.makeSection(arena, i));
    this.$('views').replaceChildren(...sections);
    this.views = sections.map((section, i) => new MapView(section, arenas[i], this));
    this.views.forEach(view => this.listenToView(view));
    if (this.isComparison) {
      this.$('comparison').hidden = false;
      Compare.fillTable(this.$('comparison-table'), arenas[0], arenas[1], this.pairs, this, this.views);
    }
    this.describeArenas(arenas);
    this.table.setView(this.views[this.views.length - 1]);
    this.showLegend();
    this.showDetails();
    this.search(this.query);
  }

  makeSection(arena, i) {
    const section = Details.element('div', undefined, 'view');
    if (this.isComparison) {
      const heading = Details.element('h2');
      heading.append(`${i === 0 ? 'Left' : 'Right'}: `, Details.name(this.plans[i].model || 'plan'));
      section.append(heading, Details.element('div', `arena ${Plan.bytes(arena.bytes)}, ${arena.buffers.length} buffers, ${arena.points} operations`, 'sub'));
    }
    const stage = Details.element('div', undefined, 'stage');
    const [base, overlay] = [Details.element('canvas'), Details.element('canvas', undefined, 'overlay')];
    base.setAttribute('aria-hidden', 'true');
    overlay.tabIndex = 0;
    overlay.setAttribute('role', 'application');
    overlay.setAttribute('aria-roledescription', 'memory map');
    overlay.setAttribute('aria-label', `Memory map${this.isComparison ? ` ${i + 1} of 2` : ''}: ${arena.buffers.length} buffers over ${arena.points} operations, arena ${Plan.bytes(arena.bytes)}, peak ${Plan.bytes(arena.peak.bytes)} at ${arena.peak.point}. Arrow keys move between buffers; the same buffers are in the table below.`);
    stage.append(base, overlay);
    section.append(stage);
    return section;
  }

  readStyle() {
    if (!this.style) {
      const computed = getComputedStyle(document.documentElement);
      const get = name => computed.getPropertyValue(`--${name}`).trim();
      this.style = {dark: document.documentElement.dataset.theme === 'dark', font: getComputedStyle(document.body).fontFamily};
      for (const name of ['plot', 'surface', 'ink', 'soft', 'line', 'grid', 'accent', 'peak']) this.style[name] = get(name);
    }
    return this.style;
  }

  redraw() { this.views.forEach(view => view.draw()); }

  // --- What is said above the map ---

  describe() {
    const names = this.plans.map(plan => Plan.visible(plan.model || 'plan'));
    const title = this.isComparison ? `${names[0]} – ${names[1]}` : names[0];
    document.title = `${title} – memory map`;
    this.$('title').replaceChildren(Details.element('bdi', title));
  }

  describeArenas(arenas) {
    const arena = arenas[arenas.length - 1];
    const space = arena.memorySpace ? ` in memory space ${Plan.visible(arena.memorySpace)}` : '';
    this.$('subtitle').textContent = this.isComparison ? 'Two plans side by side, to one scale of addresses'
      : `Memory map of @${Plan.visible(arena.functionName)}${space}: ${arena.buffers.length} buffers over ${arena.points} operations`;
    const saved = arena.noReuse ? 100 * (1 - arena.bytes / arena.noReuse) : 0;
    const proof = arena.optimal ? 'proved optimal' : `at most ${Plan.bytes(arena.bytes - arena.bound)} above the best`;
    const figures = this.isComparison ? [] : [
      [`Arena, ${proof}`, Plan.bytes(arena.bytes)], ['Lower bound', Plan.bytes(arena.bound)],
      [`Sum of the buffers, ${saved.toFixed(saved > 99 ? 1 : 0)} % saved`, Plan.bytes(arena.noReuse)], ['Weights', Plan.bytes(arena.weightsBytes)]];
    this.$('figures').replaceChildren(...figures.map(([title, value]) => {
      const group = Details.element('div');
      group.append(Details.element('dt', title), Details.element('dd', value));
      return group;
    }));
    const which = this.isComparison ? 'Of the right plan. ' : '';
    this.$('blame-note').textContent = arena.peak.bytes ? `${which}Live at the peak come first: ${Plan.bytes(arena.peak.bytes)} at ${Details.at(arena, arena.peak.point)}.` : '';
  }

  showLegend() {
    const legend = this.$('legend');
    legend.replaceChildren();
    const dark = this.readStyle().dark;
    const add = (text, canvas) => {
      const entry = Details.element('span');
      entry.append(canvas, text);
      legend.append(entry);
    };
    const arenas = this.views.map(view => view.arena);
    if (this.colourBy === 'kind') {
      for (const kind of ['activation', 'overwritten', 'assembled', 'workspace'])
        if (arenas.some(a => a.buffers.some(b => b.kind === kind)))
          add(Colours.KINDS[kind].label, Details.swatch(Colours.kind(kind, dark), Colours.KINDS[kind].pattern));
    } else if (this.colourBy === 'size') {
      add(`${Plan.bytes(arenas[0].sizes[0])} to ${Plan.bytes(arenas[0].sizes[1])}, in ratios`, this.ramp(t => Colours.ramp(t)));
    } else {
      const layers = arenas[0].layers;
      if (layers.length <= 12) layers.forEach((layer, i) => add(Plan.visible(layer), Details.swatch(Colours.layer(i, layers.length), 'plain')));
      else add(`${layers.length} layers, first to last: ${Plan.visible(layers[0])} … ${Plan.visible(layers[layers.length - 1])}`, this.ramp(t => Colours.layer(Math.round(t * 60) * 2, 121)));
    }
    for (const what of ['input', 'output', 'weight']) {
      const shown = what === 'weight' ? arenas.some(a => a.weights.length) : arenas.some(a => a.values.some(v => v.what === what));
      if (shown) add(Colours.KINDS[what].label, Details.swatch(Colours.kind(what, dark), Colours.KINDS[what].pattern));
    }
    const style = this.readStyle();
    add('live bytes', this.sample(style.ink, []));
    if (arenas.some(a => a.bound !== a.bytes)) add('lower bound', this.sample(style.accent, [5, 3]));
    add('peak', this.sample(style.peak, [2, 2]));
  }

  ramp(colour) {
    const canvas = Details.element('canvas', undefined, 'ramp');
    canvas.width = 120;
    canvas.height = 14;
    const c = canvas.getContext('2d');
    for (let x = 0; x < 120; ++x) { c.fillStyle = colour(x / 119); c.fillRect(x, 0, 1, 14); }
    return canvas;
  }

  sample(colour, dash) {
    const canvas = Details.element('canvas');
    canvas.width = 44;
    canvas.height = 28;
    const c = canvas.getContext('2d');
    c.scale(2, 2);
    c.strokeStyle = colour;
    c.lineWidth = 2;
    c.setLineDash(dash);
    c.beginPath();
    c.moveTo(0, 7);
    c.lineTo(22, 7);
    c.stroke();
    return canvas;
  }

  // --- Search, hover, selection ---

  matches(buffer) { return !this.words || this.words.every(word => buffer.searchText.includes(word)); }

  search(query) {
    this.query = query;
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    this.words = words.length ? words : null;
    this.found = this.words ? this.views.flatMap(view => view.arena.buffers.filter(b => this.matches(b)).map(buffer => ({view, buffer}))) : [];
    const all = this.views.reduce((sum, view) => sum + view.arena.buffers.length, 0);
    this.$('matches').textContent = this.words ? `${this.found.length} of ${all}` : '';
    this.table.fill();
    this.redraw();
  }

  nextMatch(step) {
    if (!this.found.length) return;
    const current = this.found.findIndex(m => m.buffer === this.selection.buffer && m.view === this.selection.view);
    const {view, buffer} = this.found[(current + step + this.found.length) % this.found.length];
    this.select(view, buffer, {reveal: true});
  }

  // Of a view: what the pointer is over, and in the other view of a comparison its match.
  hovered(view) { return this.inView(this.hover_, view); }
  selected(view) { return this.inView(this.selection, view); }
  inView({view: of, buffer}, view) {
    if (!buffer) return null;
    return of === view ? buffer : this.pairs.get(buffer) || null;
  }

  hover(view, buffer) {
    if (this.hover_.buffer === buffer && this.hover_.view === view) return;
    this.hover_ = {view, buffer};
    this.views.forEach(v => v.drawOverlay());
    if (!this.selection.buffer) this.showDetails();
  }

  select(view, buffer, {reveal = false} = {}) {
    this.selection = {view, buffer};
    if (reveal && buffer) view.reveal(buffer);
    this.views.forEach(v => v.drawOverlay());
    this.table.mark();
    this.showDetails();
    this.$('announcer').textContent = buffer ? Details.spoken(view.arena, buffer) : 'Nothing selected';
  }

  showDetails() {
    const shown = this.selection.buffer ? this.selection : this.hover_;
    Details.show(this.$('details'), shown.view ? [shown.view] : this.views, shown.buffer, this);
  }

  // The selected buffer's neighbour in time, or in address among those that live with it.
  neighbour(view, direction) {
    const current = this.selected(view);
    const list = view.arena.buffers.filter(b => this.matches(b));
    if (!list.length) return null;
    const order = direction === 'left' || direction === 'right' ? (a, b) => a.lower - b.lower || a.index - b.index
      : (a, b) => a.offset - b.offset || a.index - b.index;
    if (!current) return list.sort((a, b) => b.atPeak - a.atPeak || a.index - b.index)[0];
    const peers = direction === 'left' || direction === 'right' ? list
      : list.filter(b => b === current || (b.lower < current.upper && current.lower < b.upper));
    if (!peers.includes(current)) peers.push(current);
    peers.sort(order);
    const next = peers.indexOf(current) + (direction === 'right' || direction === 'up' ? 1 : -1);
    return peers[Math.max(0, Math.min(peers.length - 1, next))];
  }

  // --- Controls ---

  makeArenaChoice() {
    const most = Math.max(...this.plans.map(plan => plan.arenas.length));
    this.$('arena-choice').hidden = most < 2;
    const [plan] = this.plans.filter(p => p.arenas.length === most);
    plan.arenas.forEach((arena, i) => this.$('arena').append(Details.element('option', `@${Plan.visible(arena.functionName)}${arena.memorySpace ? ` in ${Plan.visible(arena.memorySpace)}` : ''}, ${Plan.bytes(arena.bytes)}`)));
    this.$('arena').addEventListener('change', () => this.showArena(this.$('arena').selectedIndex));
  }

  listen() {
    this.$('controls').addEventListener('submit', event => event.preventDefault());
    this.$('search').addEventListener('input', () => this.search(this.$('search').value));
    this.$('search').addEventListener('keydown', event => {
      if (event.key === 'Enter') this.nextMatch(event.shiftKey ? -1 : 1);
    });
    for (const radio of document.querySelectorAll('input[name=colour]'))
      radio.addEventListener('change', () => { this.colourBy = radio.value; this.showLegend(); this.redraw(); });
    const each = action => () => this.views.forEach(action);
    const buttons = {'zoom-in': view => view.zoom(0.6), 'zoom-out': view => view.zoom(1 / 0.6), 'zoom-peak': view => view.showPeak(),
                     'zoom-all': view => { view.showAll(); view.draw(); }};
    for (const [id, action] of Object.entries(buttons)) this.$(id).addEventListener('click', each(action));
    this.$('keys-button').addEventListener('click', () => {
      this.$('keys').hidden = !this.$('keys').hidden;
      this.$('keys-button').setAttribute('aria-expanded', String(!this.$('keys').hidden));
    });
    this.listenToTheme();
    document.addEventListener('keydown', event => this.onKey(event));
  }

  listenToTheme() {
    const system = window.matchMedia('(prefers-color-scheme: dark)');
    let choice = 'system';
    const apply = () => {
      const dark = choice === 'dark' || (choice === 'system' && system.matches);
      document.documentElement.dataset.theme = dark ? 'dark' : 'light';
      this.$('theme').textContent = `Theme: ${choice}`;
      this.style = null;
      if (this.views.length) { this.showLegend(); this.showDetails(); this.redraw(); }
    };
    system.addEventListener('change', apply);
    this.$('theme').addEventListener('click', () => {
      choice = {system: 'light', light: 'dark', dark: 'system'}[choice];
      apply();
    });
    apply();
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // What is under the pointer changes.
    this.$('tooltip').hidden = true;
    this.views.forEach(view => { view.pointer = null; });
    const inField = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== 'radio';
    if (event.key === 'Escape') {
      if (this.selection.buffer) this.select(null, null);
      else if (this.query) { this.$('search').value = ''; this.search(''); }
      return;
    }
    if (inField || event.target.type === 'radio') return;
    const keys = {'/': () => this.$('search').focus(), '+': () => this.$('zoom-in').click(), '=': () => this.$('zoom-in').click(),
                  '-': () => this.$('zoom-out').click(), '0': () => this.$('zoom-all').click(), p: () => this.$('zoom-peak').click(),
                  P: () => this.$('zoom-peak').click()};
    const arrow = {ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: 'up', ArrowDown: 'down'}[event.key];
    if (keys[event.key]) { keys[event.key](); event.preventDefault(); return; }
    const view = this.views.find(v => v.overlay === event.target);
    if (!arrow || !view) return;
    event.preventDefault();
    if (event.shiftKey) {
      const [dx, dy] = {left: [60, 0], right: [-60, 0], up: [0, 60], down: [0, -60]}[arrow];
      view.pan(dx, dy);
    } else {
      const next = this.neighbour(view, arrow);
      if (next) this.select(view, next, {reveal: true});
    }
  }

  listenToView(view) {
    const canvas = view.overlay;
    const pointers = new Map();
    let moved = false;
    const place = event => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener('pointerdown', event => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, place(event));
      moved = false;
    });
    canvas.addEventListener('pointermove', event => {
      const now = place(event);
      const before = pointers.get(event.pointerId);
      if (!before) return this.onHover(view, event, now);
      const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
      if (!moved && Math.hypot(dx, dy) < 4) return;
      moved = true;
      if (pointers.size === 1) view.pan(dx, dy);
      else {
        const other = [...pointers.entries()].find(([id]) => id !== event.pointerId)[1];
        const spread = p => Math.max(20, Math.hypot(p[0] - other[0], p[1] - other[1]));
        view.zoom(spread(before) / spread(now), ...other);
      }
      pointers.set(event.pointerId, now);
      this.$('tooltip').hidden = true;
    });
    const end = event => {
      const was = pointers.delete(event.pointerId);
      if (!was || moved || event.type === 'pointercancel') return;
      const {rectangle} = view.find(...place(event));
      this.select(rectangle ? view : null, rectangle ? rectangle.buffer : null);
      if (event.pointerType !== 'mouse') this.onHover(view, event, place(event));
    };
    canvas.addEventListener('pointerup', end);
    canvas.addEventListener('pointercancel', end);
    canvas.addEventListener('pointerleave', () => {
      view.pointer = null;
      this.$('tooltip').hidden = true;
      this.hover(null, null);
      view.drawOverlay();
    });
    canvas.addEventListener('dblclick', event => {
      const {rectangle} = view.find(...place(event));
      if (rectangle) view.showBuffer(rectangle.buffer); else view.zoom(0.5, ...place(event));
    });
    canvas.addEventListener('wheel', event => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
      event.preventDefault();
      view.zoom(Math.exp(Math.max(-0.5, Math.min(0.5, event.deltaY / 300))), ...place(event));
    }, {passive: false});
  }

  onHover(view, event, [x, y]) {
    view.pointer = [x, y];
    const found = view.find(x, y);
    this.hover(found.rectangle ? view : null, found.rectangle ? found.rectangle.buffer : null);
    view.drawOverlay();
    const box = this.$('tooltip');
    box.hidden = !found.rectangle && !found.band;
    if (box.hidden) return;
    Details.tooltip(box, view, found);
    const {width, height} = box.getBoundingClientRect();
    box.style.left = `${Math.max(4, Math.min(event.clientX + 16, window.innerWidth - width - 8))}px`;
    const below = event.clientY + 18;
    box.style.top = `${Math.max(4, below + height > window.innerHeight - 8 ? event.clientY - height - 14 : below)}px`;
  }

  // --- For tests: docs/MemoryMap.md documents it ---

  hook() {
    const buffer = (view, name) => this.views[view].arena.byName.get(name);
    return {
      rectangles: (view = 0) => this.views[view].arena.rectangles.map(r => ({
        buffer: r.buffer.name, part: r.part, lower: r.t0, upper: r.t1, begin: r.a0, end: r.a1, kind: r.buffer.kind,
        pixels: this.views[view].place(r)})),
      place: (time, address, view = 0) => {
        const box = this.views[view].base.getBoundingClientRect();
        return {x: box.left + this.views[view].x(time), y: box.top + this.views[view].y(address)};
      },
      pixel: (time, address, view = 0) => {
        const v = this.views[view];
        const data = v.base.getContext('2d').getImageData(Math.round(v.x(time) * v.ratio), Math.round(v.y(address) * v.ratio), 1, 1).data;
        return [data[0], data[1], data[2]];
      },
      colour: (name, view = 0) => Colours.of(buffer(view, name), this.colourBy, this.views[view].arena, this.readStyle().dark)[0],
      selected: (view = 0) => { const b = this.selected(this.views[view]); return b ? b.name : null; },
      matches: () => this.found.map(m => m.buffer.name),
      range: (view = 0) => ({...this.views[view].range}),
      live: (view = 0) => this.views[view].arena.live,
      redraw: () => this.redraw(),
    };
  }
}

const memplanData = JSON.parse(document.getElementById('plans').textContent).map(Plan.make);
if (memplanData.every(plan => plan.arenas.length)) window.memplanMap = new App(memplanData).hook();
else document.getElementById('subtitle').textContent = 'This plan has no arena: nothing is allocated.';
