// The timeline: one canvas. Spans are columns of numbers, sorted by lane, depth and start; of each row a scan line of
// pixels is filled once and copied, so that a frame costs what the screen holds, not what the unit holds.
"use strict";
(() => {
  const canvas = document.getElementById("timeline");
  const data = JSON.parse(document.getElementById("timeline-data").textContent);
  if (!canvas || !data.units.length) return;
  const context = canvas.getContext("2d");
  const tip = document.getElementById("tip");
  const told = document.getElementById("timeline-told");
  const unitPick = document.getElementById("pick-unit");
  const rankPick = document.getElementById("pick-rank");
  const estimates = new Set(data.estimates);
  const PAD = 3, LANE_GAP = 5, RANK_GAP = 10, AXIS = 24;
  const HEIGHTS = { thread: 11, stream: 20, link: 16, idle: 12 };
  const UNKNOWN = 65535, HATCHED = 128, GHOST = 0.22; // a height in pixels is below 128, hatched above it

  const bytesOf = (text) => { const raw = atob(text), b = new Uint8Array(raw.length); for (let i = 0; i < raw.length; i++) b[i] = raw.charCodeAt(i); return b; };
  const column = (text, Kind) => { const b = bytesOf(text); return new Kind(b.buffer, 0, b.length / Kind.BYTES_PER_ELEMENT); };
  const unpacked = new Map();
  const unpack = (place) => {
    if (unpacked.has(place)) return unpacked.get(place);
    const u = data.units[place];
    const spans = {
      lane: column(u.lane, Uint16Array), depth: column(u.depth, Uint8Array), object: column(u.object, Uint8Array),
      start: column(u.start, Uint32Array), length: column(u.length, Uint32Array), label: column(u.label, Uint32Array),
      count: column(u.count, Uint16Array), share: column(u.share, Uint16Array), use: column(u.use, Uint16Array),
      stack: column(u.stack, Uint32Array), rows: [], bytes: new Map(),
    };
    const moved = column(u.bytes, Float64Array);
    column(u.sized, Uint32Array).forEach((at, i) => spans.bytes.set(at, moved[i]));
    for (let i = 0; i < u.n;) {
      let j = i + 1;
      while (j < u.n && spans.lane[j] === spans.lane[i] && spans.depth[j] === spans.depth[i]) j++;
      spans.rows.push({ lane: spans.lane[i], depth: spans.depth[i], from: i, to: j });
      i = j;
    }
    unpacked.set(place, spans);
    return spans;
  };

  const state = { unit: 0, rank: "", from: 0, to: 1, top: 0, rows: [], tall: 0, chosen: -1, pointed: -1 };
  let spans, unit, width = 0, height = 0, scale = 1, left = 180, image = null, pixels = null, waiting = false;
  const rgb = data.colors.map((c) => parseInt(c.slice(1), 16));
  const native = rgb.map((c) => (255 << 24) | ((c & 255) << 16) | (c & 0xff00) | (c >> 16));
  let onPaper = false; // paper is white, whatever the screen is
  const styles = () => { if (onPaper) return { ink: "#14171c", soft: "#5b6470", paper: "#ffffff", line: "#d8dce2" }; const s = getComputedStyle(document.documentElement); return { ink: s.getPropertyValue("--ink").trim(), soft: s.getPropertyValue("--soft").trim(), paper: s.getPropertyValue("--paper").trim(), line: s.getPropertyValue("--line").trim() }; };
  const packed = (hex) => { const c = parseInt(hex.slice(1), 16); return (255 << 24) | ((c & 255) << 16) | (c & 0xff00) | (c >> 16); };
  const mixed = (color, under, part) => {
    const of = (at) => Math.round(((color >> at) & 255) * part + ((under >> at) & 255) * (1 - part)) << at;
    return (255 << 24) | of(16) | of(8) | of(0);
  };
  // A moment of a unit, as exactly as a step needs it.
  const moment = (ns, step) => {
    const [name, by] = unit.length_ns < 1e6 ? ["µs", 1e3] : unit.length_ns < 1e10 ? ["ms", 1e6] : ["s", 1e9];
    return `${(ns / by).toFixed(Math.min(Math.max(Math.ceil(-Math.log10(step / by)), 0), 6))} ${name}`;
  };
  const percent = (share) => `${share < 0.1 ? (100 * share).toPrecision(2) : Math.round(100 * share)} %`;
  const time = (ns) => {
    const a = Math.abs(ns);
    for (const [limit, unitName, by] of [[1e3, "ns", 1], [1e6, "µs", 1e3], [1e9, "ms", 1e6]]) if (a < limit) return (by === 1 ? ns.toFixed(0) : (ns / by).toPrecision(3)) + " " + unitName;
    return (ns / 1e9).toPrecision(3) + " s";
  };

  const size = (bytes) => {
    for (const [limit, name, by] of [[1e3, "B", 1], [1e6, "kB", 1e3], [1e9, "MB", 1e6]]) if (bytes < limit) return (by === 1 ? bytes.toFixed(0) : (bytes / by).toPrecision(3)) + " " + name;
    return (bytes / 1e9).toPrecision(3) + " GB";
  };

  const layOut = () => {
    // A lane has as many rows as it has depths; lanes of one rank stand together.
    state.rows = [];
    let y = AXIS, lastRank = null, lastLane = -1;
    for (const row of spans.rows) {
      const lane = data.lanes[row.lane];
      if (state.rank !== "" && String(lane.rank) !== state.rank) continue;
      const first = row.lane !== lastLane;
      if (first) {
        y += lane.rank === lastRank ? LANE_GAP : RANK_GAP;
        lastRank = lane.rank; lastLane = row.lane;
      }
      const tall = HEIGHTS[lane.kind];
      state.rows.push({ ...row, y, tall, first, used: (lane.kind === "stream" || lane.kind === "link") && data.measured });
      y += tall + 1;
    }
    state.tall = y + PAD;
    canvas.style.height = `${Math.min(Math.max(state.tall + 8, 120), Math.max(window.innerHeight * 0.7, 260))}px`;
    resize();
  };

  const resize = () => {
    scale = window.devicePixelRatio || 1;
    const box = canvas.getBoundingClientRect();
    width = Math.max(Math.round(box.width), 50); height = Math.max(Math.round(box.height), 50);
    left = width < 620 ? 84 : 190;
    canvas.width = Math.round(width * scale); canvas.height = Math.round(height * scale);
    image = context.createImageData(canvas.width, canvas.height);
    pixels = new Uint32Array(image.data.buffer);
    ask();
  };
  const ask = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; draw(); }); } };

  const after = (row, tick) => {
    // The first span of a row that ends behind a time: spans of one row do not overlap, so ends ascend too.
    let low = row.from, high = row.to;
    while (low < high) { const mid = (low + high) >> 1; if (spans.start[mid] + spans.length[mid] <= tick) low = mid + 1; else high = mid; }
    return low;
  };

  const draw = () => {
    const begun = performance.now();
    const look = styles(), paper = packed(look.paper.length === 7 ? look.paper : "#ffffff");
    pixels.fill(paper);
    const W = canvas.width, H = canvas.height, L = Math.round(left * scale);
    const ticks = (state.to - state.from) / unit.tick_ns, first = state.from / unit.tick_ns;
    const perTick = (W - L) / ticks;
    const line = new Uint32Array(W - L), pale = new Uint32Array(W - L), soft = new Uint32Array(W - L), filled = new Uint8Array(W - L);
    const ghosts = native.map((c) => mixed(c, paper, GHOST)), stripes = native.map((c) => mixed(c, paper, 0.66));
    const labels = [];
    for (const row of state.rows) {
      const y = Math.round((row.y - state.top) * scale), tall = Math.min(Math.max(Math.round(row.tall * scale), 1), 127);
      if (y + tall < 0 || y > H) continue;
      line.fill(paper);
      if (row.used) { pale.fill(paper); filled.fill(0); }
      let any = false;
      for (let i = after(row, first); i < row.to; ) {
        const x0 = (spans.start[i] - first) * perTick;
        if (x0 >= W - L) break;
        const x1 = (spans.start[i] + spans.length[i] - first) * perTick;
        const a = Math.max(Math.round(x0), 0);
        let b = Math.min(Math.max(Math.round(x1), a + 1), W - L);
        if (b - a >= 4 && b < W - L) b -= 1;
        line.fill(native[spans.object[i]], a, b);
        if (row.used) {
          const share = spans.share[i];
          const hatched = share === UNKNOWN || estimates.has(spans.use[i] - 1) ? HATCHED : 0;
          pale.fill(ghosts[spans.object[i]], a, b);
          if (hatched) soft.fill(stripes[spans.object[i]], a, b);
          filled.fill(hatched + (share === UNKNOWN ? tall : Math.min(Math.max(Math.round(share / 10000 * tall), 1), tall)), a, b);
        }
        any = true;
        if (b - a > 34 * scale) labels.push([i, a, b, y, tall, row.used]);
        if (x1 - x0 >= 1) { i++; continue; }
        // What follows in the same column of pixels would be drawn over this one.
        const next = first + (Math.floor(x0) + 1) / perTick;
        let j = i + 1;
        if (j < row.to && spans.start[j] < next) { let low = j, high = row.to; while (low < high) { const mid = (low + high) >> 1; if (spans.start[mid] < next) low = mid + 1; else high = mid; } j = low; }
        i = j;
      }
      if (!any) continue;
      for (let k = 0; k < tall; k++) {
        const at = y + k;
        if (at < AXIS * scale || at >= H) continue;
        if (row.used) raise([line, pale, soft, filled], tall - k, at * W + L); else pixels.set(line, at * W + L);
      }
    }
    context.putImageData(image, 0, 0);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    drawNames(labels, look); drawPath(); drawSides(look);
    canvas.dataset.drawn = String(Number(canvas.dataset.drawn || 0) + 1);
    canvas.dataset.frameMs = (performance.now() - begun).toFixed(2);
  };

  // One line of pixels of a row whose spans are as high as what they used: full below, pale above, hatched where unknown.
  const raise = ([full, pale, soft, filled], level, to) => {
    for (let i = 0; i < full.length; i++) {
      const high = filled[i];
      if (high < HATCHED) pixels[to + i] = level <= high ? full[i] : pale[i];
      else pixels[to + i] = level > high - HATCHED ? pale[i] : (i + level) % 7 > 1 ? full[i] : soft[i];
    }
  };

  const drawNames = (labels, look) => {
    context.font = "10px system-ui, sans-serif"; context.textBaseline = "middle"; context.fillStyle = "#fff";
    context.save(); context.beginPath(); context.rect(left, AXIS, width - left, height - AXIS); context.clip();
    for (const [i, a, b, y, tall, used] of labels.slice(0, 400)) {
      const room = Math.floor((b - a) / scale / 5.6);
      const name = data.names[spans.label[i]];
      const text = spans.count[i] > 1 ? `${spans.count[i]} × …${name.slice(0, 30)}` : name;
      const shown = text.length > room ? text.slice(0, Math.max(room - 1, 1)) + "…" : text, at = [left + a / scale + 3, (y + tall / 2) / scale];
      context.fillStyle = data.inks[spans.object[i]];
      if (used && spans.share[i] < 8000) { // the name stands partly on the pale: a rim of the paper's colour keeps it readable
        context.fillStyle = look.ink; context.strokeStyle = look.paper; context.lineWidth = 2.5; context.lineJoin = "round";
        context.globalAlpha = 0.7; context.strokeText(shown, ...at); context.globalAlpha = 1;
      }
      context.fillText(shown, ...at);
    }
    context.restore();
  };

  const x = (ns) => left + ((ns - state.from) / (state.to - state.from)) * (width - left);
  const drawPath = () => {
    if (!unit.path.length) return;
    const middle = new Map();
    for (const row of state.rows) if (row.first) middle.set(row.lane, row.y - state.top + row.tall); // below the names
    context.save(); context.beginPath(); context.rect(left, AXIS, width - left, height - AXIS); context.clip();
    context.strokeStyle = data.path_color; context.lineWidth = 2; context.beginPath();
    let before = null, lastX = -9;
    for (const [lane, start, length] of unit.path) {
      const y = middle.get(lane);
      if (y === undefined) { continue; }
      const x0 = x(start), x1 = x(start + length);
      if (x1 < left - 20 || x0 > width + 20) { before = y; continue; }
      if (x1 - lastX < 0.5 && before === y) continue;
      if (before !== null && before !== y) { context.moveTo(x0, before); context.lineTo(x0, y); }
      context.moveTo(x0, y); context.lineTo(x1, y);
      before = y; lastX = x1;
    }
    context.stroke(); context.restore();
  };

  const oneRank = new Set(data.lanes.map((l) => l.rank)).size < 2;
  const fits = new Map();
  // A label that is too long keeps its beginning and its end, where numbers stand.
  const fitted = (name, room) => {
    const key = `${room} ${name}`;
    if (!fits.has(key)) {
      let kept = name.length, text = name;
      while (kept > 4 && context.measureText(text).width > room) { kept--; text = `${name.slice(0, Math.ceil(kept / 2))}…${name.slice(-Math.floor(kept / 2))}`; }
      fits.set(key, text);
    }
    return fits.get(key);
  };
  const brief = (name) => name.replace(/ \([^)]*\)$/, "").replace("main thread", "main").replace("thread ", "t ").replace("stream ", "s ");
  const drawSides = (look) => {
    context.fillStyle = look.paper; context.fillRect(0, 0, left, height); context.fillRect(0, 0, width, AXIS);
    context.fillStyle = look.soft; context.font = "11px system-ui, sans-serif"; context.textBaseline = "middle";
    let rank = null;
    for (const row of state.rows) {
      if (!row.first) continue;
      const y = row.y - state.top + row.tall / 2;
      if (y < AXIS || y > height) { continue; }
      const lane = data.lanes[row.lane];
      const name = lane.rank === rank || oneRank ? lane.label : `r${lane.rank} ${lane.label}`;
      context.fillText(fitted(left > 100 ? name : brief(name), left - 10), 4, y);
      rank = lane.rank;
    }
    const span = state.to - state.from, rough = span / Math.max((width - left) / 110, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough);
    context.strokeStyle = look.line; context.lineWidth = 1; context.beginPath();
    for (let at = Math.ceil(state.from / step) * step; at <= state.to; at += step) {
      const px = Math.round(x(at)) + 0.5;
      context.moveTo(px, AXIS - 5); context.lineTo(px, AXIS);
      context.fillText(moment(at, step), px + 3, AXIS / 2);
    }
    context.moveTo(left + 0.5, 0); context.lineTo(left + 0.5, height); context.stroke();
    if (state.tall > height) { // there is more above or below
      context.fillStyle = look.line;
      context.fillRect(width - 5, AXIS + (state.top / state.tall) * (height - AXIS), 4, (height / state.tall) * (height - AXIS));
    }
    const row = state.rows.find((r) => state.pointed >= r.from && state.pointed < r.to);
    if (!row || row.y < state.top + AXIS - 1) return;
    const from = Math.max(x(spans.start[state.pointed] * unit.tick_ns), left), to = x((spans.start[state.pointed] + spans.length[state.pointed]) * unit.tick_ns);
    context.strokeStyle = look.ink; context.lineWidth = 2; context.strokeRect(from, row.y - state.top, Math.max(to - from, 2), row.tall);
  };

  const at = (px, py) => {
    if (px < left || py < AXIS) return -1;
    const row = state.rows.find((r) => py + state.top >= r.y && py + state.top < r.y + r.tall + 1);
    if (!row) return -1;
    const ns = state.from + ((px - left) / (width - left)) * (state.to - state.from);
    const slack = ((state.to - state.from) / (width - left)) * 1.5;
    const i = after(row, (ns - slack) / unit.tick_ns);
    return i < row.to && spans.start[i] * unit.tick_ns <= ns + slack ? i : -1;
  };
  const used = (i) => {
    if (!spans.use.length || !spans.use[i]) return "";
    const of = data.names[data.uses[spans.use[i] - 1]];
    return spans.share[i] === UNKNOWN ? `\nuse not known: ${of}` : `\n${percent(spans.share[i] / 10000)} of ${of}`;
  };
  const stackOf = (i) => {
    const frames = spans.stack.length && spans.stack[i] ? data.stacks[spans.stack[i] - 1] : [];
    return frames.map((name, place) => `\n${place ? "   " : "in "}${data.names[name]}`).join("");
  };
  const describe = (i) => {
    const lane = data.lanes[spans.lane[i]], start = spans.start[i] * unit.tick_ns, length = spans.length[i] * unit.tick_ns;
    const many = spans.count[i] > 1 ? `${spans.count[i]} spans, the longest of them: ` : "";
    const moved = spans.bytes.has(i) ? ` · ${size(spans.bytes.get(i))}, ${(spans.bytes.get(i) / length).toPrecision(3)} GB/s` : "";
    const kind = lane.kind === "idle" ? "nothing ran: " : "";
    const told = `${many}${kind}${data.names[spans.label[i]]}\n${data.objects[spans.object[i]]} · ${time(length)}${moved} · from ${moment(start, length / 10)} to ${moment(start + length, length / 10)} of ${unit.name}\nrank ${lane.rank} · ${lane.label}`;
    return told + used(i) + stackOf(i);
  };
  const show = (i, px, py) => {
    if (i < 0) { tip.hidden = true; return; }
    tip.textContent = describe(i);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.min(px + 14, window.innerWidth - box.width - 8)}px`;
    tip.style.top = `${Math.min(py + 14, window.innerHeight - box.height - 8)}px`;
  };

  const view = (from, to) => {
    const least = Math.max(unit.tick_ns * 20, 20), whole = unit.length_ns;
    let span = Math.min(Math.max(to - from, least), whole * 1.02);
    from = Math.min(Math.max(from, -0.01 * whole), whole * 1.01 - span);
    state.from = from; state.to = from + span; ask();
  };
  const zoom = (by, around = 0.5) => { const span = state.to - state.from, ns = state.from + span * around; view(ns - span * by * around, ns + span * by * (1 - around)); };
  const pan = (by) => { const span = state.to - state.from; view(state.from + by * span, state.to + by * span); };
  const scroll = (by) => { state.top = Math.min(Math.max(state.top + by, 0), Math.max(state.tall - height, 0)); ask(); };
  // The row that holds most of the path is where the eye should begin.
  const toPath = () => {
    const held = new Map();
    for (const [lane, , length] of unit.path) held.set(lane, (held.get(lane) || 0) + length);
    const best = state.rows.filter((r) => r.first && held.has(r.lane)).sort((a, b) => held.get(b.lane) - held.get(a.lane))[0];
    if (best && best.y + best.tall > height) bring(best);
  };
  const bring = (row) => { state.top = Math.min(Math.max(row.y - height / 3, 0), Math.max(state.tall - height, 0)); };
  const choose = (place) => {
    state.unit = place; unit = data.units[place]; spans = unpack(place); state.top = 0; state.pointed = -1; layOut(); toPath();
    state.from = -0.005 * unit.length_ns; state.to = 1.005 * unit.length_ns;
    told.textContent = `${unit.name}: ${time(unit.length_ns)}, ${unit.n.toLocaleString("en")} spans drawn` + (unit.path.some((p) => p[0] >= 0) ? ", the critical path is drawn through it" : unit.path.length ? "; no row that is drawn holds its critical path" : "");
    ask();
  };

  const options = (select, values) => { for (const [value, label] of values) { const o = document.createElement("option"); o.value = value; o.textContent = label; select.append(o); } };
  options(unitPick, data.units.map((u, i) => [String(i), u.name]));
  options(rankPick, [["", "all ranks"], ...[...new Set(data.lanes.map((l) => l.rank))].map((r) => [String(r), `rank ${r}`])]);
  unitPick.addEventListener("change", () => choose(Number(unitPick.value)));
  rankPick.addEventListener("change", () => { state.rank = rankPick.value; state.top = 0; state.pointed = -1; tip.hidden = true; layOut(); toPath(); ask(); });
  for (const [id, does] of [["zoom-in", () => zoom(0.5)], ["zoom-out", () => zoom(2)], ["pan-left", () => pan(-0.3)], ["pan-right", () => pan(0.3)], ["zoom-all", () => view(0, unit.length_ns)], ["next-piece", () => walk(1)], ["last-piece", () => walk(-1)]]) document.getElementById(id).addEventListener("click", does);

  const walk = (by) => {
    if (!unit.path.length) { told.textContent = "The critical path is known for another unit."; return; }
    state.chosen = Math.min(Math.max(state.chosen + by, 0), unit.path.length - 1);
    const [lane, start, length, object, text, count] = unit.path[state.chosen];
    view(start - 2 * length - 1000, start + 3 * length + 1000);
    const row = state.rows.find((r) => r.lane === lane);
    if (row) bring(row);
    told.textContent = `piece ${state.chosen + 1} of ${unit.path.length}: ${data.objects[object]}, ${time(length)}: ${count > 1 ? `${count} short pieces, the longest of them: ` : ""}${unit.path_names[text]}` + (lane >= 0 ? ` (rank ${data.lanes[lane].rank}, ${data.lanes[lane].label})` : "");
    ask();
  };

  // Without a pointer: from span to span of a row, and to the row above or below.
  const point = (i) => {
    const row = state.rows.find((r) => i >= r.from && i < r.to);
    if (!row) return;
    state.pointed = i;
    const start = spans.start[i] * unit.tick_ns, end = start + spans.length[i] * unit.tick_ns, span = state.to - state.from;
    if (end < state.from || start > state.to) view(start - span / 4, start + span * 0.75);
    if (row.y < state.top + AXIS || row.y + row.tall > state.top + height) bring(row);
    const box = canvas.getBoundingClientRect();
    show(i, box.left + Math.min(Math.max(x(start), left), width - 40), box.top + row.y - state.top + row.tall);
    ask();
  };
  const step = (by) => {
    const row = state.rows.find((r) => state.pointed >= r.from && state.pointed < r.to) || state.rows.find((r) => r.y >= state.top + AXIS - 1);
    if (row) point(state.pointed < 0 ? Math.min(after(row, state.from / unit.tick_ns), row.to - 1) : Math.min(Math.max(state.pointed + by, row.from), row.to - 1));
  };
  const change = (by) => {
    const now = state.rows.findIndex((r) => state.pointed >= r.from && state.pointed < r.to);
    const row = state.rows[now + by];
    if (now < 0) step(0);
    else if (row) point(Math.min(after(row, spans.start[state.pointed]), row.to - 1));
  };

  let held = null;
  canvas.addEventListener("pointerdown", (e) => { held = { x: e.clientX, y: e.clientY, from: state.from, to: state.to, top: state.top }; canvas.setPointerCapture(e.pointerId); tip.hidden = true; });
  canvas.addEventListener("pointermove", (e) => {
    const box = canvas.getBoundingClientRect();
    if (!held) { show(at(e.clientX - box.left, e.clientY - box.top), e.clientX, e.clientY); return; }
    const ns = ((held.x - e.clientX) / (width - left)) * (held.to - held.from);
    state.top = Math.min(Math.max(held.top + held.y - e.clientY, 0), Math.max(state.tall - height, 0));
    view(held.from + ns, held.to + ns);
  });
  canvas.addEventListener("pointerup", (e) => { // a tap points, for a finger does not hover
    const box = canvas.getBoundingClientRect();
    if (held && Math.abs(e.clientX - held.x) + Math.abs(e.clientY - held.y) < 6) { state.pointed = at(e.clientX - box.left, e.clientY - box.top); show(state.pointed, e.clientX, e.clientY); ask(); }
    held = null;
  });
  canvas.addEventListener("pointercancel", () => { held = null; });
  canvas.addEventListener("blur", () => { state.pointed = -1; tip.hidden = true; ask(); });
  canvas.addEventListener("pointerleave", (e) => { if (!held && e.pointerType !== "touch") tip.hidden = true; });
  canvas.addEventListener("wheel", (e) => {
    if (!(e.ctrlKey || e.metaKey || e.shiftKey || document.activeElement === canvas)) return; // else the page scrolls
    e.preventDefault();
    const box = canvas.getBoundingClientRect();
    if (e.shiftKey) pan(Math.sign(e.deltaY || e.deltaX) * 0.1);
    else zoom(e.deltaY > 0 ? 1.25 : 0.8, Math.min(Math.max((e.clientX - box.left - left) / (width - left), 0), 1));
  }, { passive: false });
  const keys = { ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), ArrowUp: () => scroll(-40), ArrowDown: () => scroll(40), "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1.4), 0: () => view(0, unit.length_ns), Home: () => view(0, unit.length_ns), "]": () => walk(1), "[": () => walk(-1), ".": () => step(1), ",": () => step(-1), PageDown: () => change(1), PageUp: () => change(-1), Escape: () => { state.pointed = -1; tip.hidden = true; ask(); } };
  canvas.addEventListener("keydown", (e) => { if (keys[e.key] && !e.ctrlKey && !e.metaKey) { e.preventDefault(); keys[e.key](); } });
  window.addEventListener("resize", resize);
  for (const [name, paper] of [["beforeprint", true], ["afterprint", false]]) window.addEventListener(name, () => { onPaper = paper; draw(); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", ask);

  choose(0);
  canvas.longpole = { state, view, at, describe, names: data.names, spans: () => spans, unit: () => unit, left: () => left, x };
})();
