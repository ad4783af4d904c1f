// Colours, and patterns beside them so that nothing depends on colour alone.
const Colours = (() => {
  // After Okabe and Ito, "Color Universal Design" (2008): told apart with any kind of colour vision.
  const KINDS = {
    activation: {label: 'activation', light: '#56b4e9', dark: '#4ba3d6', pattern: 'plain'},
    overwritten: {label: 'overwritten in place', light: '#e69f00', dark: '#d99a1c', pattern: 'dots'},
    assembled: {label: 'put together by several operations', light: '#2bb38a', dark: '#1fa67c', pattern: 'lines'},
    workspace: {label: 'workspace', light: '#f0e442', dark: '#cfc53c', pattern: 'hatch'},
    weight: {label: 'weights', light: '#cc79a7', dark: '#c77fa8', pattern: 'plain'},
    input: {label: 'inputs', light: '#7a8fb8', dark: '#7f95bf', pattern: 'plain'},
    output: {label: 'outputs', light: '#d55e00', dark: '#e0702a', pattern: 'lines'},
  };

  // OKLCH to sRGB (Ottosson 2020), so that equal steps look equal.
  function oklch(l, c, h) {
    const a = c * Math.cos(h * Math.PI / 180);
    const b = c * Math.sin(h * Math.PI / 180);
    const [x, y, z] = [l + 0.3963377774 * a + 0.2158037573 * b, l - 0.1055613458 * a - 0.0638541728 * b,
                       l - 0.0894841775 * a - 1.291485548 * b].map(v => v ** 3);
    const linear = [4.0767416621 * x - 3.3077115913 * y + 0.2309699292 * z,
                    -1.2684380046 * x + 2.6097574011 * y - 0.3413193965 * z,
                    -0.0041960863 * x - 0.7034186147 * y + 1.707614701 * z];
    return linear.map(v => {
      const clamped = Math.min(1, Math.max(0, v));
      return Math.round(255 * (clamped <= 0.0031308 ? 12.92 * clamped : 1.055 * clamped ** (1 / 2.4) - 0.055));
    });
  }
  const hex = rgb => `#${rgb.map(v => v.toString(16).padStart(2, '0')).join('')}`;

  // Violet and dark to yellow and light: lightness alone carries the order.
  function ramp(x) {
    const t = Math.min(1, Math.max(0, x));
    return hex(oklch(0.42 + 0.48 * t, 0.13 + 0.02 * Math.sin(Math.PI * t), 300 - 200 * t));
  }
  // Neighbours in a long list differ in lightness too.
  function layer(index, count) {
    const t = count > 1 ? index / (count - 1) : 0.5;
    return hex(oklch(0.48 + 0.36 * t + (index % 2 ? 0.05 : -0.02), 0.12, 300 - 200 * t));
  }

  function luminance(colour) {
    const [r, g, b] = [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16) / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  // Of black and white that with the higher contrast; the worse of both is at least 4.58.
  const inkOn = colour => luminance(colour) > 0.179 ? '#10151b' : '#ffffff';

  const patterns = new Map();
  function pattern(context, colour, name) {
    if (name === 'plain') return colour;
    const key = `${colour} ${name}`;
    if (!patterns.has(key)) {
      const tile = document.createElement('canvas');
      tile.width = tile.height = 12;
      const c = tile.getContext('2d');
      c.fillStyle = colour;
      c.fillRect(0, 0, 12, 12);
      c.fillStyle = c.strokeStyle = luminance(colour) > 0.179 ? 'rgb(0 0 0 / 26%)' : 'rgb(255 255 255 / 38%)';
      c.lineWidth = 2;
      c.beginPath();
      if (name === 'dots') for (const [x, y] of [[3, 3], [9, 9]]) { c.moveTo(x, y); c.arc(x, y, 1.5, 0, 7); }
      if (name === 'lines') { c.moveTo(0, 6); c.lineTo(12, 6); }
      if (name === 'hatch') for (const x of [-12, -6, 0, 6, 12]) { c.moveTo(x, 12); c.lineTo(x + 12, 0); }
      if (name === 'dots') c.fill(); else c.stroke();
      patterns.set(key, tile);
    }
    return context.createPattern(patterns.get(key), 'repeat');
  }

  const kind = (name, dark) => KINDS[name][dark ? 'dark' : 'light'];

  // [colour, pattern] of a buffer.
  function of(buffer, by, arena, dark) {
    if (by === 'size') return [ramp(arena.sizeRank(buffer.bytes)), 'plain'];
    if (by === 'layer') return [layer(buffer.layerIndex, arena.layers.length), 'plain'];
    return [kind(buffer.kind, dark), KINDS[buffer.kind].pattern];
  }

  return {KINDS, kind, of, ramp, layer, inkOn, pattern};
})();
