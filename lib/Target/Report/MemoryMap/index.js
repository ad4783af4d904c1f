// Which rectangle is at a point: a grid over time and address. Rectangles of a plan share no bytes at one time, so
// that the cells hold little more than one each.
class RectangleIndex {
  constructor(rectangles, points, height) {
    this.cells = Math.max(1, Math.min(256, Math.ceil(Math.sqrt(rectangles.length))));
    this.points = points;
    this.height = Math.max(1, height);
    this.grid = new Map();
    for (const rectangle of rectangles) {
      const [x0, x1] = [this.column(rectangle.t0), this.column(rectangle.t1)];
      const [y0, y1] = [this.row(rectangle.a0), this.row(rectangle.a1)];
      for (let x = x0; x <= x1; ++x)
        for (let y = y0; y <= y1; ++y) {
          const key = x * this.cells + y;
          if (!this.grid.has(key)) this.grid.set(key, []);
          this.grid.get(key).push(rectangle);
        }
    }
  }

  column(time) { return this.clamp(Math.floor(time / this.points * this.cells)); }
  row(address) { return this.clamp(Math.floor(address / this.height * this.cells)); }
  clamp(cell) { return Math.max(0, Math.min(this.cells - 1, cell)); }

  find(time, address) {
    const cell = this.grid.get(this.column(time) * this.cells + this.row(address)) || [];
    return cell.find(r => r.t0 <= time && time < r.t1 && r.a0 <= address && address < r.a1) || null;
  }
}
