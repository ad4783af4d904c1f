// One plan's map: time to the right, addresses upward. It draws and knows where things are; app.js decides what is
// selected. A canvas for the map, one above it for what follows the pointer.
class MapView {
  constructor(section, arena, app) {
    this.arena = arena;
    this.app = app;
    this.stage = section.querySelector('.stage');
    [this.base, this.overlay] = this.stage.querySelectorAll('canvas');
    this.index = new RectangleIndex(arena.rectangles, arena.points, arena.bytes);
    this.limit = Math.max(arena.bytes, arena.bound, 1);
    this.showAll();
    new ResizeObserver(() => this.resize()).observe(this.stage);
  }

  // The whole plan, with room for the arena's line.
  showAll() { this.range = {t0: 0, t1: this.arena.points, a0: 0, a1: this.fullHeight()}; }
  fullHeight() { return Math.max(this.limit, this.app.commonHeight || 0) * 1.06; }

  resize() {
    const {width, height} = this.stage.getBoundingClientRect();
    if (!width || !height) return;
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.base, this.overlay]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    this.ratio = ratio;
    const values = this.arena.values.length ? 24 : 0;
    const weights = this.arena.weights.length ? 34 : 0;
    this.box = {left: 74, right: width - 14, top: 12 + (values ? values + 6 : 0), bottom: height - 46 - (weights ? weights + 8 : 0)};
    this.valuesBox = values ? {top: 12, bottom: 12 + values} : null;
    this.weightsBox = weights ? {top: this.box.bottom + 8, bottom: this.box.bottom + 8 + weights} : null;
    this.axisTop = (this.weightsBox || this.box).bottom;
    this.width = width;
    this.height = height;
    this.draw();
  }

  x(time) { return this.box.left + (time - this.range.t0) / (this.range.t1 - this.range.t0) * (this.box.right - this.box.left); }
  y(address) { return this.box.bottom - (address - this.range.a0) / (this.range.a1 - this.range.a0) * (this.box.bottom - this.box.top); }
  time(x) { return this.range.t0 + (x - this.box.left) / (this.box.right - this.box.left) * (this.range.t1 - this.range.t0); }
  address(y) { return this.range.a0 + (this.box.bottom - y) / (this.box.bottom - this.box.top) * (this.range.a1 - this.range.a0); }
  inPlot(x, y) { return x >= this.box.left && x <= this.box.right && y >= this.box.top && y <= this.box.bottom; }

  // What is at a place of the canvas: {rectangle}, {band} or nothing.
  find(x, y) {
    if (x < this.box.left || x > this.box.right) return {};
    if (this.inPlot(x, y)) return {rectangle: this.index.find(this.time(x), this.address(y))};
    for (const [box, list] of [[this.valuesBox, this.arena.values], [this.weightsBox, this.arena.weights]])
      if (box && y >= box.top && y <= box.bottom) {
        const all = list.map((value, i) => [value, this.bandRectangle(value, i)]);
        // Narrow ones may be a pixel wide: take what is near, the nearest last.
        const near = all.filter(([, r]) => r && x >= r.x - 2 && x <= r.x + r.width + 2 && y >= r.y - 1 && y <= r.y + r.height + 1);
        return {band: near.length ? near[near.length - 1][0] : null};
      }
    return {};
  }

  zoom(factor, x = (this.box.left + this.box.right) / 2, y = (this.box.top + this.box.bottom) / 2) {
    const [time, address] = [this.time(x), this.address(y)];
    const {t0, t1, a0, a1} = this.range;
    // No closer than two points, or 64 bytes.
    const ft = Math.max(factor, Math.min(1, 2 / (t1 - t0)));
    const fa = Math.max(factor, Math.min(1, 64 / (a1 - a0)));
    this.setRange({t0: time - (time - t0) * ft, t1: time + (t1 - time) * ft, a0: address - (address - a0) * fa,
                   a1: address + (a1 - address) * fa});
  }

  // Kept inside the plan.
  setRange({t0, t1, a0, a1}) {
    const full = this.fullHeight();
    const span = Math.min(this.arena.points, t1 - t0);
    const height = Math.min(full, a1 - a0);
    const left = Math.max(0, Math.min(this.arena.points - span, t0));
    const low = Math.max(0, Math.min(full - height, a0));
    this.range = {t0: left, t1: left + span, a0: low, a1: low + height};
    this.draw();
  }

  pan(dx, dy) {
    const time = dx / (this.box.right - this.box.left) * (this.range.t1 - this.range.t0);
    const address = dy / (this.box.bottom - this.box.top) * (this.range.a1 - this.range.a0);
    this.setRange({t0: this.range.t0 - time, t1: this.range.t1 - time, a0: this.range.a0 + address, a1: this.range.a1 + address});
  }

  showBuffer(buffer) {
    const bytes = Math.max(64, buffer.bytes);
    const life = buffer.upper - buffer.lower;
    this.setRange({t0: buffer.lower - 1.5 * life - 2, t1: buffer.upper + 1.5 * life + 2, a0: buffer.offset - bytes,
                   a1: buffer.offset + 2 * bytes});
  }

  showPeak() {
    const span = Math.max(8, Math.min(this.arena.points, this.arena.points / 8));
    const middle = this.arena.peak.point + 0.5;
    this.setRange({t0: middle - span / 2, t1: middle + span / 2, a0: 0, a1: this.fullHeight()});
  }

  // Makes what is selected by keyboard visible, without a zoom.
  reveal(buffer) {
    const {t0, t1, a0, a1} = this.range;
    if (buffer.lower < t1 && buffer.upper > t0 && buffer.offset < a1 && buffer.offset + buffer.bytes > a0) return;
    const [time, address] = [(buffer.lower + buffer.upper) / 2, buffer.offset + buffer.bytes / 2];
    this.setRange({t0: time - (t1 - t0) / 2, t1: time + (t1 - t0) / 2, a0: address - (a1 - a0) / 2, a1: address + (a1 - a0) / 2});
  }

  draw() {
    if (!this.box) return;
    const c = this.base.getContext('2d');
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    this.style = this.app.readStyle();
    c.fillStyle = this.style.plot;
    c.fillRect(this.box.left, this.box.top, this.box.right - this.box.left, this.box.bottom - this.box.top);
    this.drawAxes(c);
    this.clip(c, this.box, () => {
      const named = this.arena.rectangles.filter(rectangle => this.drawRectangle(c, rectangle));
      this.drawLines(c);
      named.forEach(rectangle => this.drawName(c, rectangle));
    });
    this.drawBands(c);
    this.drawLabels(c);
    this.drawOverlay();
  }

  clip(c, {top, bottom}, body) {
    c.save();
    c.beginPath();
    c.rect(this.box.left, top, this.box.right - this.box.left, bottom - top);
    c.clip();
    body();
    c.restore();
  }

  // In pixels of the page, or null if it is outside of the view. Never thinner than it can be seen.
  place(r) {
    if (r.t1 <= this.range.t0 || r.t0 >= this.range.t1 || r.a1 <= this.range.a0 || r.a0 >= this.range.a1) return null;
    const [x0, x1, y0, y1] = [this.x(r.t0), this.x(r.t1), this.y(r.a1), this.y(r.a0)];
    return {x: x0, y: y0, width: Math.max(0.6, x1 - x0), height: Math.max(0.6, y1 - y0)};
  }

  // Whether there is room for a name.
  drawRectangle(c, r) {
    const at = this.place(r);
    if (!at) return false;
    const [colour, pattern] = Colours.of(r.buffer, this.app.colourBy, this.arena, this.style.dark);
    c.globalAlpha = this.app.matches(r.buffer) ? 1 : 0.14;
    c.fillStyle = at.width > 3 && at.height > 3 ? Colours.pattern(c, colour, pattern) : colour;
    // A hairline of the background keeps neighbours apart.
    const [gx, gy] = [at.width > 4 ? 0.5 : 0, at.height > 4 ? 0.5 : 0];
    c.fillRect(at.x + gx, at.y + gy, at.width - 2 * gx, at.height - 2 * gy);
    c.globalAlpha = 1;
    return at.width > 30 && at.height > 15 && this.app.matches(r.buffer);
  }

  drawName(c, r) {
    const at = this.place(r);
    const [colour] = Colours.of(r.buffer, this.app.colourBy, this.arena, this.style.dark);
    const [left, right] = [Math.max(at.x, this.box.left), Math.min(at.x + at.width, this.box.right)];
    const [top, bottom] = [Math.max(at.y, this.box.top), Math.min(at.y + at.height, this.box.bottom)];
    if (bottom - top < 15) return;
    c.font = `11.5px ${this.style.font}`;
    c.textAlign = 'left';
    c.textBaseline = 'middle';
    const text = this.fit(c, Plan.visible(r.buffer.node), right - left - 12);
    if (!text) return;
    const middle = (top + bottom) / 2;
    const width = c.measureText(text).width;
    // Patterns would run through the letters.
    c.fillStyle = colour;
    c.fillRect(left + 4, middle - 7.5, width + 4, 15);
    c.fillStyle = Colours.inkOn(colour);
    const second = bottom - top > 34 ? this.secondLine(c, r, right - left - 12) : '';
    c.fillText(text, left + 6, second ? middle - 7.5 : middle);
    if (second) {
      c.fillStyle = colour;
      c.fillRect(left + 4, middle, c.measureText(second).width + 4, 15);
      c.fillStyle = Colours.inkOn(colour);
      c.fillText(second, left + 6, middle + 7.5);
    }
  }

  // Shape and bytes, or bytes alone, or nothing.
  secondLine(c, r, width) {
    const size = Plan.bytes(r.a1 - r.a0);
    return [`${Plan.shapeText(r.buffer)}  ${size}`, size].find(text => c.measureText(text).width <= width) || '';
  }

  // As much of a text as there is room for; names differ at their ends.
  fit(c, text, width) {
    if (width < 16) return '';
    const size = c.measureText('n').width;
    const room = Math.floor(width / size * 1.15);
    if (text.length > 2 * room) text = `…${text.slice(-2 * room)}`;
    if (c.measureText(text).width <= width) return text;
    // Less than ten characters tell nothing.
    for (let n = Math.min(text.length - 1, room); n >= 10; --n) {
      const shorter = `…${text.slice(text.length - n)}`;
      if (c.measureText(shorter).width <= width) return shorter;
    }
    return '';
  }

  drawAxes(c) {
    const {left, right, top, bottom} = this.box;
    c.font = `12px ${this.style.font}`;
    c.lineWidth = 1;
    c.textAlign = 'right';
    c.textBaseline = 'middle';
    const step = this.addressStep();
    for (let a = Math.ceil(this.range.a0 / step) * step; a <= this.range.a1; a += step) {
      const y = Math.round(this.y(a)) + 0.5;
      c.strokeStyle = this.style.grid;
      this.line(c, left, y, right, y);
      c.fillStyle = this.style.soft;
      if (y > top + 4) c.fillText(this.addressLabel(a, step), left - 8, y);
    }
    c.textAlign = 'center';
    c.textBaseline = 'top';
    const times = this.timeStep();
    for (let t = Math.ceil(this.range.t0 / times) * times; t <= this.range.t1; t += times) {
      const x = Math.round(this.x(t)) + 0.5;
      c.strokeStyle = this.style.line;
      this.line(c, x, this.axisTop, x, this.axisTop + 5);
      c.fillStyle = this.style.soft;
      const half = c.measureText(String(t)).width / 2;
      c.fillText(String(t), Math.max(left + half, Math.min(this.width - half - 4, x)), this.axisTop + 8);
    }
    c.fillText('operation', (left + right) / 2, this.axisTop + 25);
    c.strokeStyle = this.style.line;
    c.strokeRect(left + 0.5, top + 0.5, right - left - 1, bottom - top - 1);
  }

  line(c, x0, y0, x1, y1) {
    c.beginPath();
    c.moveTo(x0, y0);
    c.lineTo(x1, y1);
    c.stroke();
  }

  // A power of two, at least 44 pixels apart.
  addressStep() {
    const least = (this.range.a1 - this.range.a0) / ((this.box.bottom - this.box.top) / 44);
    return Math.max(1, 2 ** Math.ceil(Math.log2(least)));
  }

  // In the largest unit of which the step is no less than an eighth.
  addressLabel(address, step) {
    let unit = Math.max(0, Math.floor(Math.log2(Math.max(step, 1) * 8) / 10));
    unit = Math.min(unit, 4);
    const value = address / 1024 ** unit;
    return `${address === 0 ? '0' : +value.toFixed(3)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit]}`;
  }

  timeStep() {
    const least = Math.max(1, (this.range.t1 - this.range.t0) / ((this.box.right - this.box.left) / 64));
    const power = 10 ** Math.floor(Math.log10(least));
    return [1, 2, 5, 10].map(f => f * power).find(s => s >= least) || 1;
  }

  drawLines(c) {
    const {live, points, bytes, bound} = this.arena;
    c.beginPath();
    c.moveTo(this.x(0), this.y(0));
    // Where several operations share a pixel it shows the most of them: the skyline, not a scribble.
    const dense = (this.range.t1 - this.range.t0) / (this.box.right - this.box.left) > 0.5;
    let last = 0;
    for (let i = 0; i < live.length; ++i) {
      const x = this.x(live[i][0]);
      let size = live[i][1];
      if (dense) {
        while (i + 1 < live.length && this.x(live[i + 1][0]) < x + 2) size = Math.max(size, live[++i][1]);
      }
      c.lineTo(x, this.y(last));
      c.lineTo(x, this.y(size));
      last = size;
    }
    c.lineTo(this.x(points), this.y(last));
    c.lineJoin = 'round';
    this.halo(c, this.style.ink, dense ? 1.2 : 1.8, []);
    const level = (value, colour, dash) => {
      c.beginPath();
      c.moveTo(this.box.left, this.y(value));
      c.lineTo(this.box.right, this.y(value));
      this.halo(c, colour, 1.6, dash);
    };
    level(bytes, this.style.ink, []);
    if (bound !== bytes) level(bound, this.style.accent, [7, 5]);
    const x = this.x(this.arena.peak.point + 0.5);
    c.beginPath();
    c.moveTo(x, this.box.bottom);
    c.lineTo(x, this.y(this.arena.peak.bytes));
    this.halo(c, this.style.peak, 1.6, [3, 3]);
  }

  halo(c, colour, width, dash) {
    c.setLineDash([]);
    c.strokeStyle = this.style.surface;
    c.globalAlpha = 0.75;
    c.lineWidth = width + 2.5;
    c.stroke();
    c.globalAlpha = 1;
    c.setLineDash(dash);
    c.strokeStyle = colour;
    c.lineWidth = width;
    c.stroke();
    c.setLineDash([]);
  }

  // Of the lines; the peak's where it hides the others least.
  drawLabels(c) {
    const {bytes, bound, peak} = this.arena;
    const inView = value => value >= this.range.a0 && value <= this.range.a1;
    const boundText = `lower bound ${Plan.bytes(bound)}`;
    c.font = `12px ${this.style.font}`;
    if (bound === bytes) {
      if (inView(bytes)) this.tag(c, `arena = lower bound ${Plan.bytes(bytes)}`, this.box.right - 6, this.y(bytes) - 3, 'right', this.style.ink);
    } else {
      if (inView(bytes)) this.tag(c, `arena ${Plan.bytes(bytes)}`, this.box.right - 6, this.y(bytes) - 3, 'right', this.style.ink);
      if (inView(bound)) this.tag(c, boundText, this.box.right - 6, this.y(bound) + 19, 'right', this.style.accent);
    }
    const x = this.x(peak.point + 0.5);
    if (x < this.box.left || x > this.box.right || !peak.bytes) return;
    const brief = `peak ${Plan.bytes(peak.bytes)} at ${peak.point}`;
    const text = peak.node ? `${brief}, ${Plan.visible(peak.node)}` : brief;
    // To the right if there is room, else to the left, else less of it.
    const room = [this.box.right - x, x - this.box.left].map(width => width - 14);
    const fits = label => room.findIndex(width => c.measureText(label).width <= width);
    const short = c.measureText(text).width < 420 && fits(text) >= 0 ? text : brief;
    const goesLeft = fits(short) === 1;
    const y = Math.min(this.box.bottom - 8, Math.max(this.box.top + 40, this.y(peak.bytes) + 40));
    this.tag(c, short, goesLeft ? x - 6 : x + 6, y, goesLeft ? 'right' : 'left', this.style.peak);
  }

  tag(c, text, x, y, align, colour) {
    c.textAlign = align;
    c.textBaseline = 'bottom';
    const width = c.measureText(text).width;
    const left = align === 'right' ? x - width : x;
    c.globalAlpha = 0.9;
    c.fillStyle = this.style.surface;
    c.beginPath();
    c.roundRect(left - 5, y - 16, width + 10, 18, 4);
    c.fill();
    c.globalAlpha = 1;
    c.fillStyle = colour;
    c.fillText(text, x, y);
  }

  // Inputs and outputs a row each, as long as they are used; weights by their place, from first to last use.
  bandRectangle(value, i) {
    if (value.last < value.first) return null;
    const isWeight = value.what === 'weight';
    const box = isWeight ? this.weightsBox : this.valuesBox;
    const x0 = Math.max(this.x(value.first), this.box.left);
    const x1 = Math.min(this.x(value.last + 1), this.box.right);
    if (x1 < this.box.left || x0 > this.box.right) return null;
    const height = box.bottom - box.top;
    const rows = this.arena.values.length;
    const total = Math.max(1, this.arena.weightsBytes);
    const y = isWeight ? box.bottom - (value.offset + value.bytes) / total * height : box.top + i / rows * height;
    const tall = isWeight ? value.bytes / total * height : height / rows - (rows > 1 && height / rows > 3 ? 1 : 0);
    return {x: x0, y, width: Math.max(1.2, x1 - x0), height: Math.max(1.2, tall)};
  }

  drawBands(c) {
    c.font = `12px ${this.style.font}`;
    for (const [box, list, label] of [[this.valuesBox, this.arena.values, 'in, out'], [this.weightsBox, this.arena.weights, 'weights']]) {
      if (!box) continue;
      c.fillStyle = this.style.plot;
      c.fillRect(this.box.left, box.top, this.box.right - this.box.left, box.bottom - box.top);
      this.clip(c, box, () => list.forEach((value, i) => {
        const r = this.bandRectangle(value, i);
        if (!r) return;
        const colour = Colours.kind(value.what, this.style.dark);
        c.fillStyle = r.height > 4 && r.width > 4 ? Colours.pattern(c, colour, Colours.KINDS[value.what].pattern) : colour;
        c.fillRect(r.x, r.y, r.width, r.height);
        if (value.what !== 'weight' && r.height > 14 && r.width > 40) {
          const text = this.fit(c, Plan.visible(value.name), r.width - 12);
          c.textAlign = 'left';
          c.textBaseline = 'middle';
          c.fillStyle = colour;
          c.fillRect(r.x + 3, r.y, c.measureText(text).width + 6, r.height);
          c.fillStyle = Colours.inkOn(colour);
          c.fillText(text, r.x + 6, r.y + r.height / 2);
        }
      }));
      c.strokeStyle = this.style.line;
      c.strokeRect(this.box.left + 0.5, box.top + 0.5, this.box.right - this.box.left - 1, box.bottom - box.top - 1);
      c.textAlign = 'right';
      c.textBaseline = 'middle';
      c.fillStyle = this.style.soft;
      const middle = (box.top + box.bottom) / 2;
      const isWeights = label === 'weights';
      c.fillText(label, this.box.left - 8, isWeights ? middle - 7 : middle);
      if (isWeights) c.fillText(Plan.bytes(this.arena.weightsBytes), this.box.left - 8, middle + 8);
    }
  }

  drawOverlay() {
    if (!this.box) return;
    const c = this.overlay.getContext('2d');
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    this.clip(c, this.box, () => {
      for (const [buffer, width] of [[this.app.hovered(this), 2], [this.app.selected(this), 3]]) {
        if (!buffer) continue;
        for (const r of buffer.rectangles) {
          const at = this.place(r);
          if (!at) continue;
          c.lineWidth = width + 2;
          c.strokeStyle = this.style.surface;
          c.strokeRect(at.x, at.y, at.width, at.height);
          c.lineWidth = width;
          c.strokeStyle = this.style.ink;
          c.strokeRect(at.x, at.y, at.width, at.height);
        }
      }
    });
    if (this.pointer && this.inPlot(...this.pointer)) this.drawCrosshair(c, ...this.pointer);
  }

  drawCrosshair(c, x, y) {
    c.strokeStyle = this.style.soft;
    c.lineWidth = 1;
    c.setLineDash([2, 3]);
    this.line(c, Math.round(x) + 0.5, this.box.top, Math.round(x) + 0.5, this.axisTop);
    this.line(c, this.box.left, Math.round(y) + 0.5, this.box.right, Math.round(y) + 0.5);
    c.setLineDash([]);
    c.font = `12px ${this.style.font}`;
    const point = Math.floor(this.time(x));
    const text = this.fit(c, `${point}  ${Plan.opTitle(this.arena.operationAt(point))}`, 420);
    const half = c.measureText(text).width / 2;
    const middle = Math.max(this.box.left + half, Math.min(this.box.right - half, x));
    this.tag(c, text, middle - half, this.axisTop + 42, 'left', this.style.ink);
    this.tag(c, Plan.bytes(Math.max(0, Math.round(this.address(y)))), this.box.left - 6, y + 8, 'right', this.style.ink);
  }
}
