// The plans of the page as objects that can be drawn. No other file reads the plan's JSON.
const Plan = (() => {
  // Names come from strangers' files: what would not be seen, or turn the text around, is spelled out.
  const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
  const visible = text => String(text).replace(HIDDEN, c => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

  const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  function bytes(n) {
    let unit = 0;
    let value = n;
    for (; Math.abs(value) >= 1024 && unit < UNITS.length - 1; ++unit) value /= 1024;
    return `${unit === 0 ? value : value.toFixed(value >= 100 ? 1 : 2)} ${UNITS[unit]}`;
  }
  const exact = n => `${n.toLocaleString('en')} bytes`;

  // How a buffer comes to have its bytes. In place: an op that wrote it also read it. (Where parts live apart, such an
  // op has read other parts than it wrote.)
  function kindOf(raw) {
    if (raw.cause === 'workspace') return 'workspace';
    if (raw.parts) return 'assembled';
    const read = new Set(raw.read_at);
    if (raw.written_at.slice(1).some(point => read.has(point))) return 'overwritten';
    return raw.written_at.length > 1 ? 'assembled' : 'activation';
  }

  // The first components of a node's name, as deep as it takes to tell some layers apart.
  function nameLayers(buffers) {
    const pieces = buffers.map(b => b.node.split(/[/:]+/).filter(Boolean));
    const at = depth => pieces.map(p => p.slice(0, Math.max(1, Math.min(depth, p.length - 1))).join('/') || '(no name)');
    let layers = at(1);
    for (let depth = 2; depth <= 4 && new Set(layers).size < 4; ++depth) layers = at(depth);
    const order = new Map();
    const byBirth = buffers.map((b, i) => i).sort((i, j) => buffers[i].lower - buffers[j].lower || i - j);
    for (const i of byBirth) if (!order.has(layers[i])) order.set(layers[i], order.size);
    buffers.forEach((b, i) => { b.layer = layers[i]; b.layerIndex = order.get(layers[i]); });
    return [...order.keys()];
  }

  function makeBuffer(raw, index) {
    const parts = raw.parts || [{offset: 0, bytes: raw.bytes, lower: raw.lower, upper: raw.upper}];
    const buffer = {
      index, name: raw.name, node: raw.node, type: raw.type, shape: raw.shape, bytes: raw.bytes, offset: raw.offset,
      lower: raw.lower, upper: raw.upper, writtenAt: raw.written_at, readAt: raw.read_at, hasParts: Boolean(raw.parts),
      kind: kindOf(raw),
    };
    buffer.rectangles = parts.map((part, number) => ({
      buffer, part: number, t0: part.lower, t1: part.upper, a0: raw.offset + part.offset,
      a1: raw.offset + part.offset + part.bytes,
    }));
    buffer.byteOps = parts.reduce((sum, part) => sum + part.bytes * (part.upper - part.lower), 0);
    const text = `${buffer.name}\n${visible(buffer.node)}\n${shapeText(buffer)}\n${buffer.kind}`;
    buffer.searchText = text.toLowerCase();
    return buffer;
  }

  const shapeText = tensor => `${tensor.type}[${tensor.shape.join(', ')}]`;

  // The operation at each point: that which starts there, else the innermost around it.
  function listByPoint(operations) {
    return point => {
      let low = 0;
      let high = operations.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (operations[middle].point <= point) low = middle + 1; else high = middle;
      }
      for (let i = low - 1; i >= 0; --i) if (point < operations[i].end) return operations[i];
      return null;
    };
  }

  function makeBand(list, functionIndex, what) {
    return list.filter(value => value.function === functionIndex).map(value => {
      const uses = [...value.written_at, ...value.read_at].sort((a, b) => a - b);
      return {what, name: value.name, type: value.type, shape: value.shape, bytes: value.bytes, offset: value.offset,
              uses, first: uses.length ? uses[0] : 0, last: uses.length ? uses[uses.length - 1] : -1};
    });
  }

  function makeArena(raw, index) {
    const arena = raw.arenas[index];
    const owner = raw.functions[arena.function];
    const buffers = raw.buffers.filter(b => b.arena === index).map(makeBuffer);
    const peak = raw.peaks[index];
    const without = new Map(peak.buffers.map(entry => [entry.name, entry.live_bytes_without]));
    for (const buffer of buffers) {
      buffer.atPeak = buffer.rectangles.filter(r => r.t0 <= peak.point && peak.point < r.t1 && r.a1 > r.a0)
        .reduce((sum, r) => sum + r.a1 - r.a0, 0);
      buffer.liveWithout = without.has(buffer.name) ? without.get(buffer.name) : null;
    }
    const operationAt = listByPoint(owner.operations);
    const sizes = buffers.map(b => Math.max(1, b.bytes));
    const smallest = Math.log(sizes.reduce((a, b) => Math.min(a, b), Infinity));
    const largest = Math.log(sizes.reduce((a, b) => Math.max(a, b), 1));
    return {
      index, functionName: owner.name, memorySpace: arena.memory_space || '', bytes: arena.bytes,
      bound: arena.lower_bound_bytes, boundProof: arena.lower_bound_proof, optimal: arena.optimal,
      noReuse: arena.no_reuse_bytes, alignment: arena.alignment, points: Math.max(1, owner.points), live: arena.live,
      peak: {point: peak.point, bytes: peak.live_bytes, node: peak.node, changeFirst: peak.change_first || null},
      operationAt, operations: owner.operations, buffers, layers: nameLayers(buffers),
      // From 0 for the smallest buffer to 1 for the largest.
      sizeRank: size => largest > smallest ? (Math.log(Math.max(1, size)) - smallest) / (largest - smallest) : 0.5,
      sizes: [Math.round(Math.exp(smallest)), Math.round(Math.exp(largest))],
      byName: new Map(buffers.map(b => [b.name, b])),
      rectangles: buffers.flatMap(b => b.rectangles.filter(r => r.a1 > r.a0)),
      weights: makeBand(raw.weights, arena.function, 'weight'), weightsBytes: raw.weights_bytes,
      values: [...makeBand(raw.inputs, arena.function, 'input'), ...makeBand(raw.outputs, arena.function, 'output')],
    };
  }

  function make(raw) {
    const arenas = raw.arenas.map((_, index) => makeArena(raw, index));
    return {raw, model: raw.model === undefined ? null : raw.model, arenas};
  }

  const opTitle = op => op ? visible(op.nodes.length ? op.nodes.join(' + ') : op.op) : 'no operation';

  // Who has the same bytes at other times, those nearest in time first.
  function sharers(arena, buffer) {
    const found = new Set();
    for (const other of arena.rectangles) {
      if (other.buffer === buffer || found.has(other.buffer)) continue;
      if (buffer.rectangles.some(mine => mine.a0 < other.a1 && other.a0 < mine.a1)) found.add(other.buffer);
    }
    const distance = o => o.upper <= buffer.lower ? buffer.lower - o.upper : Math.max(0, o.lower - buffer.upper);
    return [...found].sort((a, b) => distance(a) - distance(b) || a.index - b.index);
  }

  // Why it takes its bytes for so long, in a sentence or two.
  function reason(arena, b) {
    const name = point => `${opTitle(arena.operationAt(point))} (${point})`;
    if (b.kind === 'workspace')
      return `Scratch memory offered to ${name(b.lower)}: bytes in which nothing lives while it runs, so it costs nothing.`;
    if (!b.writtenAt.length && !b.readAt.length) return 'No operation touches it.';
    const text = [];
    const first = b.writtenAt.length ? b.writtenAt[0] : null;
    if (first === null) text.push('Nobody writes it.');
    else text.push(`Holds the result of ${name(first)}.`);
    const inPlace = b.kind === 'overwritten' ? b.writtenAt.filter(p => p !== first && b.readAt.includes(p)) : [];
    if (inPlace.length) text.push(`Then overwritten in place by ${listOf(inPlace.map(name))}.`);
    else if (b.writtenAt.length > 1)
      text.push(`Put together by ${b.writtenAt.length} operations that write straight into it, the last ${name(b.writtenAt[b.writtenAt.length - 1])}.`);
    const last = b.readAt.length ? b.readAt[b.readAt.length - 1] : null;
    if (last !== null) text.push(`Needed until ${name(last)} has read it.`);
    else text.push('Nobody reads it.');
    const seen = Math.max(first === null ? -1 : b.writtenAt[b.writtenAt.length - 1], last === null ? -1 : last);
    if (b.upper - 1 > seen + 1) text.push(`Kept to the end of the loop that it is used in (${b.upper - 1}).`);
    return text.join(' ');
  }

  function listOf(names) {
    if (names.length > 3) return `${names.slice(0, 2).join(', ')} and ${names.length - 2} more`;
    return names.length > 1 ? `${names.slice(0, -1).join(', ')} and ${names[names.length - 1]}` : names.join('');
  }

  return {make, visible, bytes, exact, shapeText, opTitle, sharers, reason};
})();
