'use strict';
(() => {
const byId = id => document.getElementById(id);
const data = JSON.parse(byId('data').textContent), said = data.said;
const board = byId('board'), axis = byId('axis'), sheet = byId('lanes'), tip = byId('tip'), told = byId('told');
const GUTTER = 148, ROW = 19, HEAD = 22, AXIS = 26, LEAST_NS = 20, MOST_ARROWS = 300;

// --- the model: every lane with its spans in order of time; times are ns from the beginning of the first step

const lanes = [];
data.groups.forEach((group, g) => group.lanes.forEach((lane, l) => {
  const count = lane.spans.length / 3;
  const starts = new Float64Array(count), ends = new Float64Array(count), kind = new Uint32Array(count);
  let before = 0;
  for (let i = 0; i < count; i++) {
    starts[i] = before + lane.spans[3 * i];
    before = ends[i] = starts[i] + lane.spans[3 * i + 1];
    kind[i] = lane.spans[3 * i + 2];
  }
  lane.spans = null;
  lanes.push({group: g, number: l, type: lane.kind, title: lane.title, kinds: lane.kinds, starts, ends, kind, count, y: 0});
}));
const laneOf = new Map(lanes.map(lane => [lane.group + ':' + lane.number, lane]));
const waits = data.waits.map(w => ({from: laneOf.get(w[0] + ':' + w[1]), at: w[3], to: laneOf.get(w[4] + ':' + w[5]), end: w[7], ns: w[8]}));
let height = 0;
data.groups.forEach((group, g) => {
  group.y = height;
  height += HEAD;
  for (const lane of lanes) if (lane.group === g) { lane.y = height; height += ROW; }
  height += 6;
});

// The number of the first span that ends after a moment.
const firstAfter = (lane, time) => {
  let low = 0, high = lane.count;
  while (low < high) { const middle = (low + high) >> 1; if (lane.ends[middle] > time) high = middle; else low = middle + 1; }
  return low;
};

// --- state

let width = 600, view = [0, Math.max(1, data.length)], selected = null, finding = '', places = [], words = '', matches = [];
const span = lane => i => ({lane, i, start: lane.starts[i], end: lane.ends[i], name: lane.kinds[lane.kind[i]][0], key: lane.kinds[lane.kind[i]][1]});
const where = test => {
  const found = [];
  for (const lane of lanes) {
    const wanted = lane.kinds.map(kind => test(kind, lane));
    if (wanted.some(Boolean)) for (let i = 0; i < lane.count; i++) if (wanted[lane.kind[i]]) found.push(span(lane)(i));
  }
  return found.sort((a, b) => a.start - b.start || a.lane.y - b.lane.y);
};
const chosen = () => finding ? places : matches;

// --- times as people read them

const UNITS = [['s', 1e9], ['ms', 1e6], ['µs', 1e3], ['ns', 1]];
const time = (ns, least = 0) => {
  const size = Math.abs(ns), [unit, factor] = UNITS.find(([, f]) => size >= f) || UNITS[3];
  const digits = least > 0 ? Math.max(0, Math.ceil(Math.log10(factor / least) - 1e-9)) : factor === 1 ? 0 : size / factor >= 100 ? 1 : 3;
  return (ns / factor).toFixed(Math.min(digits, 9)) + ' ' + unit;
};
const recorded = found => {
  const ns = BigInt(data.origin) + BigInt(data.groups[found.lane.group].ahead) + BigInt(Math.round(found.start));
  return (ns / 1000n) + '.' + String(ns % 1000n).padStart(3, '0') + ' µs';
};
const about = found => {
  const waiting = waits.find(w => w.to === found.lane && w.end > found.start && w.end < found.end + 1);
  return [found.name, data.groups[found.lane.group].title + ' · ' + found.lane.title,
    said.takes + ' ' + time(found.end - found.start) + ' · ' + said.starts + ' ' + time(found.start, (view[1] - view[0]) / 1000) + ' (' + said.recorded + ' ' + recorded(found) + ')',
    ...(waiting ? [said.waited + ' ' + data.groups[waiting.from.group].title + ': ' + time(waiting.ns)] : [])];
};

// --- colours: those of the page, with patterns that differ in grey too

let colour = {}, fills = {};
const pattern = (ground, ink, draw) => {
  const tile = document.createElement('canvas'), brush = tile.getContext('2d');
  tile.width = tile.height = 8;
  brush.fillStyle = ground;
  brush.fillRect(0, 0, 8, 8);
  brush.strokeStyle = brush.fillStyle = ink;
  brush.lineWidth = 1.2;
  brush.beginPath();
  draw(brush);
  brush.stroke();
  return brush.createPattern(tile, 'repeat');
};
const paint = () => {
  const style = getComputedStyle(document.documentElement), get = name => style.getPropertyValue('--' + name).trim();
  for (const name of ['paper', 'ink', 'soft', 'line', 'wash', 'accent', 'compute', 'communication', 'communication-ink', 'wait', 'idle', 'idle-ink', 'finding', 'on-compute', 'on-light', 'arrow']) colour[name] = get(name);
  const hatch = b => { b.moveTo(-1, 9); b.lineTo(9, -1); b.moveTo(-1, 1); b.lineTo(1, -1); b.moveTo(7, 9); b.lineTo(9, 7); };
  fills = {
    compute: colour.compute,
    communication: pattern(colour.communication, colour['communication-ink'], hatch),
    'communication/wait': pattern(colour.wait, colour['communication-ink'], b => { b.moveTo(-1, -1); b.lineTo(9, 9); }),
    idle: pattern(colour.idle, colour['idle-ink'], b => { b.rect(1, 1, .6, .6); b.rect(5, 5, .6, .6); }),
    'idle/host': pattern(colour.idle, colour['idle-ink'], b => { b.moveTo(0, 2); b.lineTo(8, 2); }),
    'idle/sync': pattern(colour.idle, colour['idle-ink'], b => { b.moveTo(2, 0); b.lineTo(2, 8); }),
    findings: colour.finding, steps: colour.wash,
  };
};
const fillOf = (lane, key) => {
  if (lane && (lane.type === 'findings' || lane.type === 'steps')) return fills[lane.type];
  const parts = key.split('/');
  return fills[parts.slice(0, 2).join('/')] || fills[parts[0]] || colour.soft;
};

// --- drawing

const font = () => '12px ' + getComputedStyle(document.body).fontFamily;
const prepare = (canvas, tall) => {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(tall * ratio)];
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; canvas.style.height = tall + 'px'; }
  const brush = canvas.getContext('2d');
  brush.setTransform(ratio, 0, 0, ratio, 0, 0);
  brush.font = font();
  brush.textBaseline = 'middle';
  return brush;
};
const xOf = t => GUTTER + (t - view[0]) / (view[1] - view[0]) * (width - GUTTER);
const timeAt = x => view[0] + (x - GUTTER) / (width - GUTTER) * (view[1] - view[0]);
const fitted = (brush, text, room) => {
  if (brush.measureText(text).width <= room) return text;
  let low = 0, high = text.length;
  while (low < high) { const middle = (low + high + 1) >> 1; if (brush.measureText(text.slice(0, middle) + '…').width <= room) low = middle; else high = middle - 1; }
  return low ? text.slice(0, low) + '…' : '';
};

const drawAxis = () => {
  const brush = prepare(axis, AXIS), length = view[1] - view[0];
  brush.fillStyle = colour.paper;
  brush.fillRect(0, 0, width, AXIS);
  const power = 10 ** Math.floor(Math.log10(length / 6));
  const pace = Math.max(1, [1, 2, 5, 10].map(n => n * power).find(n => length / n <= Math.max(2, (width - GUTTER) / 90)) || power * 10);
  brush.strokeStyle = colour.line;
  brush.fillStyle = colour.soft;
  brush.textAlign = 'left';
  const ticks = [];
  for (let t = Math.ceil(view[0] / pace) * pace; t <= view[1]; t += pace) {
    const x = xOf(t);
    ticks.push(x);
    const label = time(t, pace);
    if (x + 3 + brush.measureText(label).width <= width) brush.fillText(label, x + 3, AXIS / 2);
    brush.beginPath(); brush.moveTo(x, 4); brush.lineTo(x, AXIS); brush.stroke();
  }
  brush.fillText(fitted(brush, time(length) + ' ', GUTTER - 12), 6, AXIS / 2);
  brush.beginPath(); brush.moveTo(0, AXIS - .5); brush.lineTo(width, AXIS - .5); brush.stroke();
  return ticks;
};

const drawLane = (brush, lane, lit) => {
  const scale = (width - GUTTER) / (view[1] - view[0]), dim = finding || words;
  let done = GUTTER;
  for (let i = firstAfter(lane, view[0]); i < lane.count && lane.starts[i] < view[1]; i++) {
    const marked = lit[lane.kind[i]];
    const x = Math.max(GUTTER, xOf(lane.starts[i])), w = Math.max(xOf(lane.ends[i]) - x, marked || lane.type === 'findings' ? 2 : .5);
    if (x + w < done + .4 && !marked) {  // within a pixel that is painted: on to the next one, unless some are looked for
      if (!dim) i = Math.max(i, firstAfter(lane, timeAt(done + .4)) - 1);
      continue;
    }
    const [name, key] = lane.kinds[lane.kind[i]];
    brush.globalAlpha = dim && !marked && lane.type !== 'steps' ? .28 : 1;
    brush.fillStyle = fillOf(lane, key);
    const edge = w > 4 ? .6 : 0;
    brush.fillRect(x, lane.y + 1, Math.min(w, width - x) - edge, ROW - 3);
    if (marked) { brush.strokeStyle = colour.accent; brush.lineWidth = 2; brush.strokeRect(x, lane.y + 1, Math.max(2, Math.min(w, width - x) - 1), ROW - 3); }
    const room = Math.min(xOf(lane.ends[i]), width) - x - 8;
    if (room > 22) {
      const text = fitted(brush, name, room), patterned = typeof brush.fillStyle !== 'string';
      if (patterned && text) { brush.fillStyle = colour.paper; brush.globalAlpha *= .78; brush.fillRect(x + 3, lane.y + 3, brush.measureText(text).width + 3, ROW - 7); brush.globalAlpha = dim && !marked ? .5 : 1; }
      const faint = dim && !marked && lane.type !== 'steps';
      if (faint) brush.globalAlpha = .6;
      brush.fillStyle = faint || lane.type === 'steps' || patterned ? colour.ink : lane.type === 'findings' ? colour.paper : colour['on-compute'];
      brush.fillText(text, x + 4, lane.y + ROW / 2);
    }
    done = x + w;
  }
  brush.globalAlpha = 1;
};

const drawWaits = brush => {
  const inside = waits.filter(w => Math.min(w.at, w.end) < view[1] && Math.max(w.at, w.end) > view[0]);
  brush.strokeStyle = brush.fillStyle = colour.arrow;
  brush.lineWidth = 1.2;
  const most = Math.max(...inside.slice(0, 1).map(w => w.ns), 1);
  for (const w of inside.slice(0, MOST_ARROWS)) {  // the longest come first
    const x0 = xOf(w.at), x1 = xOf(w.end), y0 = w.from.y + ROW / 2, y1 = w.to.y + ROW / 2, side = y1 > y0 ? 1 : -1;
    brush.globalAlpha = .25 + .65 * Math.sqrt(w.ns / most);
    brush.beginPath();
    brush.moveTo(x0, y0);
    brush.bezierCurveTo(x0 + 14, y0 + 14 * side, x1 + 14, y1 - 30 * side, x1, y1 - 5 * side);
    brush.stroke();
    brush.beginPath();
    brush.moveTo(x1, y1 - 3 * side); brush.lineTo(x1 - 3.5, y1 - 10 * side); brush.lineTo(x1 + 3.5, y1 - 10 * side);
    brush.fill();
  }
  brush.globalAlpha = 1;
};

const draw = () => {
  const ticks = drawAxis(), brush = prepare(sheet, height);
  brush.fillStyle = colour.paper;
  brush.fillRect(0, 0, width, height);
  brush.strokeStyle = colour.line;
  brush.lineWidth = 1;
  for (const x of ticks) { brush.beginPath(); brush.moveTo(x, 0); brush.lineTo(x, height); brush.stroke(); }
  const low = words.toLowerCase();
  for (const lane of lanes) {
    const lit = lane.kinds.map(([name, key]) => finding ? lane.type === 'findings' && key === finding : low !== '' && name.toLowerCase().includes(low));
    drawLane(brush, lane, lit);
  }
  brush.save();
  brush.beginPath(); brush.rect(GUTTER, 0, width - GUTTER, height); brush.clip();
  drawWaits(brush);
  brush.restore();
  if (selected) {
    const x = Math.max(GUTTER, xOf(selected.start)), w = Math.min(xOf(selected.end), width) - x;
    brush.strokeStyle = colour.ink;
    brush.lineWidth = 2;
    if (w > -2) brush.strokeRect(x - 1, selected.lane.y, Math.max(3, w + 2), ROW - 1);
  }
  brush.fillStyle = colour.paper;
  brush.fillRect(0, 0, GUTTER - 1, height);
  for (const group of data.groups) {
    brush.fillStyle = colour.wash;
    brush.fillRect(0, group.y, width, HEAD - 3);
    brush.fillStyle = colour.ink;
    brush.font = '600 ' + font();
    brush.fillText(fitted(brush, group.title + (group.notes ? ' – ' + group.notes : ''), width - 12), 6, group.y + HEAD / 2 - 1);
    brush.font = font();
  }
  brush.fillStyle = colour.soft;
  for (const lane of lanes) brush.fillText(fitted(brush, lane.title, GUTTER - 20), 14, lane.y + ROW / 2);
};
let waiting = false;
const redraw = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; draw(); }); } };

// --- moving

const bounds = [0, Math.max(1, data.length)];
for (const lane of lanes) if (lane.count) { bounds[0] = Math.min(bounds[0], lane.starts[0]); bounds[1] = Math.max(bounds[1], lane.ends[lane.count - 1]); }
const look = (from, to) => {
  const length = Math.min(Math.max(to - from, LEAST_NS), bounds[1] - bounds[0]);
  from = Math.min(Math.max((from + to - length) / 2, bounds[0]), bounds[1] - length);
  view = [from, from + length];
  redraw();
};
const zoom = (factor, at = (view[0] + view[1]) / 2) => look(at - (at - view[0]) * factor, at + (view[1] - at) * factor);
const pan = share => { const by = share * (view[1] - view[0]); look(view[0] + by, view[1] + by); };
const show = (from, to) => { const edge = Math.max((to - from) * .15, 200); look(from - edge, to + edge); };
const reveal = lane => {
  const box = sheet.getBoundingClientRect(), y = box.top + lane.y;
  if (y < AXIS + 10 || y > window.innerHeight - 40) window.scrollBy(0, y - window.innerHeight / 2);
};

// --- what is chosen

const tell = lines => { told.textContent = lines.join('  ·  '); };
const select = found => { selected = found; tell(found ? about(found) : []); redraw(); };
let turn = 0;
const counted = () => {
  const all = chosen();
  byId('count').textContent = !finding && !words ? '' : !all.length ? said.no_match
    : said.place.replace('{n}', selected && all[turn] && all[turn].start === selected.start ? turn + 1 : '–').replace('{all}', all.length);
};
const step = by => {
  const all = chosen();
  if (!all.length) {
    if (!selected) return;
    const i = selected.i + by;
    if (i < 0 || i >= selected.lane.count) return;
    go(span(selected.lane)(i), false);
    return;
  }
  turn = (turn + by + all.length) % all.length;
  go(all[turn], true);
};
const go = (found, near) => {
  if (near || found.start < view[0] || found.end > view[1]) {
    const length = near ? Math.max((found.end - found.start) * 6, 2000) : view[1] - view[0], middle = (found.start + found.end) / 2;
    look(middle - length / 2, middle + length / 2);
  }
  select(found);
  reveal(found.lane);
  counted();
};
const open = () => {
  const number = location.hash.slice(1);
  for (const link of document.querySelectorAll('#found a[data-number]')) {
    if (link.dataset.number === number) link.setAttribute('aria-current', 'true'); else link.removeAttribute('aria-current');
  }
  places = where((kind, lane) => lane.type === 'findings' && kind[1] === number);
  finding = places.length ? number : '';
  if (!finding) { counted(); redraw(); return; }
  words = byId('search').value = '';
  matches = [];
  const group = places.map(place => place.lane.group).sort((a, b) => a - b)[0], own = places.filter(place => place.lane.group === group);
  show(own[0].start, Math.max(...own.map(place => place.end)));
  turn = places.indexOf(own[0]);
  select(own[0]);
  reveal(own[0].lane);
  counted();
};
const search = () => {
  words = byId('search').value.trim();
  finding = '';
  const low = words.toLowerCase();
  matches = words ? where(kind => kind[0].toLowerCase().includes(low)) : [];
  turn = Math.max(0, matches.findIndex(match => match.start >= view[0])) - 1;
  selected = null;
  tell([]);
  counted();
  redraw();
};
const clear = () => { words = byId('search').value = ''; matches = []; finding = ''; select(null); counted(); if (location.hash) history.replaceState(null, '', location.pathname + location.search); open(); };

// --- what lies under the pointer

const under = (x, y) => {
  if (x < GUTTER) return null;
  const lane = lanes.find(one => y >= one.y && y < one.y + ROW);
  if (!lane) return null;
  const slack = (view[1] - view[0]) / (width - GUTTER) * 2, t = timeAt(x);
  for (let i = firstAfter(lane, t - slack); i < lane.count && lane.starts[i] <= t + slack; i++) if (lane.starts[i] <= t + slack) return span(lane)(i);
  return null;
};
const place = event => { const box = sheet.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
let held = null;
board.addEventListener('pointerdown', event => { if (event.button === 0) { held = {x: event.clientX, view, moved: false}; board.setPointerCapture(event.pointerId); } });
board.addEventListener('pointermove', event => {
  if (held) {
    const by = (held.x - event.clientX) / (width - GUTTER) * (held.view[1] - held.view[0]);
    held.moved = held.moved || Math.abs(event.clientX - held.x) > 3;
    if (held.moved) { board.classList.add('moving'); tip.hidden = true; look(held.view[0] + by, held.view[1] + by); }
    return;
  }
  const found = under(...place(event));
  tip.hidden = !found;
  if (found) {
    tip.textContent = about(found).join('\n');
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8)) + 'px';
    tip.style.top = (event.clientY + 18 + tip.offsetHeight > window.innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18) + 'px';
  }
});
const release = event => {
  if (held && !held.moved && event.type === 'pointerup') { select(under(...place(event))); counted(); }
  held = null;
  board.classList.remove('moving');
};
board.addEventListener('pointerup', release);
board.addEventListener('pointercancel', release);
board.addEventListener('pointerleave', () => { tip.hidden = true; });
board.addEventListener('dblclick', event => { const found = under(...place(event)); if (found) show(found.start, found.end); });
board.addEventListener('wheel', event => {
  if (event.ctrlKey || event.metaKey) zoom(event.deltaY > 0 ? 1.25 : .8, timeAt(Math.max(place(event)[0], GUTTER)));
  else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) / 800);
  else return;
  event.preventDefault();
}, {passive: false});

// --- keys

const across = by => {  // to the lane above or below, at the same moment
  const middle = selected ? (selected.start + selected.end) / 2 : (view[0] + view[1]) / 2;
  for (let n = selected ? lanes.indexOf(selected.lane) + by : 0; n >= 0 && n < lanes.length; n += by || 1) {
    const lane = lanes[n], i = Math.min(firstAfter(lane, middle), lane.count - 1);
    if (i >= 0) { go(span(lane)(i), false); return; }
  }
};
const KEYS = {
  '+': () => zoom(.6), '=': () => zoom(.6), w: () => zoom(.6), '-': () => zoom(1 / .6), s: () => zoom(1 / .6),
  ArrowLeft: () => pan(-.2), a: () => pan(-.2), ArrowRight: () => pan(.2), d: () => pan(.2),
  ArrowUp: () => across(-1), ArrowDown: () => across(1), Home: () => look(...bounds), 0: () => look(...bounds),
  n: () => step(1), p: () => step(-1), f: () => selected && show(selected.start, selected.end), Escape: clear,
};
board.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});
document.addEventListener('keydown', event => {
  if (event.key === '/' && document.activeElement !== byId('search')) { event.preventDefault(); byId('search').focus(); }
});
byId('search').addEventListener('input', search);
byId('search').addEventListener('keydown', event => {
  if (event.key === 'Enter') { event.preventDefault(); step(event.shiftKey ? -1 : 1); }
  if (event.key === 'Escape') clear();
});
for (const [id, act] of Object.entries({in: () => zoom(.6), out: () => zoom(1 / .6), left: () => pan(-.2), right: () => pan(.2), all: () => look(...bounds), next: () => step(1), previous: () => step(-1)})) byId(id).addEventListener('click', act);
for (const link of document.querySelectorAll('#found a[data-number]')) link.addEventListener('click', event => {
  if (location.hash === link.getAttribute('href')) { event.preventDefault(); open(); }
});

// --- begin

const legend = () => {
  for (const swatch of document.querySelectorAll('.legend canvas')) {
    const brush = swatch.getContext('2d');
    brush.fillStyle = fillOf(null, swatch.dataset.key);
    brush.fillRect(0, 0, 28, 20);
  }
};
const dress = () => { paint(); legend(); redraw(); };
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', dress);
new ResizeObserver(() => { const now = board.clientWidth; if (now !== width) { width = Math.max(now, GUTTER + 60); redraw(); } }).observe(board);
window.addEventListener('hashchange', open);
width = Math.max(board.clientWidth, GUTTER + 60);
dress();
requestAnimationFrame(open);  // when the page has its size
})();
