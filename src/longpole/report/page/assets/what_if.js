// What if: asks the `longpole serve` that handed this page out. Opened as a file, or from elsewhere, it does nothing.
"use strict";
(() => {
  const panel = document.getElementById("whatif");
  const token = new URLSearchParams(location.search).get("token");
  if (!panel || !token || location.protocol !== "http:") return;
  panel.hidden = false;
  const link = document.getElementById("whatif-link");
  if (link) link.hidden = false;

  const part = (name) => document.getElementById(`whatif-${name}`);
  const sliders = [...panel.querySelectorAll("input[type=range]")], toggles = [...panel.querySelectorAll("input[type=checkbox]")];
  const rank = part("rank");

  const time = (ns) => {
    const a = Math.abs(ns);
    for (const [from, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
      if (a < from) continue;
      const value = ns / from;
      return `${value.toFixed(Math.max(2 - Math.floor(Math.log10(Math.abs(value))), 0))} ${unit}`;
    }
    return `${ns.toFixed(0)} ns`;
  };
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const known = (value) => value !== null && !(typeof value === "object" && "unknown" in value);
  const why = (value) => value.unknown + (value.missing && value.missing.length ? ` (record ${value.missing.join("; ")})` : "");

  const changes = () => {
    const found = [];
    const where = rank && rank.value !== "" ? `&rank:${rank.value}` : "";
    for (const one of sliders) if (Number(one.value) !== 1) found.push(`--set ${one.dataset.object}${where}=${Number(one.value) === 0 ? "0" : `${one.value}x`}`);
    // Several candidates may stand for one and the same change: it is made once.
    for (const one of toggles) if (one.checked) for (const text of JSON.parse(one.dataset.changes)) if (!found.includes(text)) found.push(text);
    return found;
  };

  // Candidates that do not go together are not asked together; those that stand for one change say so.
  const compare = () => {
    const ticked = toggles.filter((one) => one.checked);
    for (const one of toggles) {
      const id = one.dataset.id, note = document.getElementById(one.getAttribute("aria-describedby"));
      const against = ticked.find((other) => other !== one && (JSON.parse(other.dataset.excludes).includes(id) || JSON.parse(one.dataset.excludes).includes(other.dataset.id)));
      const same = ticked.find((other) => other !== one && other.dataset.changes === one.dataset.changes);
      one.disabled = !one.checked && Boolean(against);
      one.closest("li").classList.toggle("off", one.disabled);
      note.textContent = one.disabled ? `excludes ${against.dataset.id}, which is ticked: only one of the two can be made` : same ? `the same change as ${same.dataset.id} to the replay: made once` : "";
    }
  };

  const clear = () => {
    for (const name of ["says", "error", "next", "belief", "asked"]) part(name).textContent = "";
    part("path").hidden = true;
    delete panel.dataset.predictedNs;
  };
  const quoted = (text) => {
    const at = text.indexOf(" ");
    if (at < 0) return text;
    const value = text.slice(at + 1);
    return /^[\w@%+=:,./-]+$/.test(value) ? text : `${text.slice(0, at)} '${value.replaceAll("'", `'"'"'`)}'`;
  };

  const showPath = (answer) => {
    const body = part("path").tBodies[0], before = answer.path_before_ns, after = answer.path_after_ns;
    body.replaceChildren();
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((name) => before[name] || after[name]);
    names.sort((a, b) => (before[b] || 0) - (before[a] || 0));
    for (const name of names) {
      const was = before[name] || 0, becomes = after[name] || 0, row = body.insertRow();
      for (const [place, text] of [name, time(was), time(becomes), time(was - becomes).replace("-", "−")].entries()) {
        const cell = row.insertCell();
        cell.textContent = text;
        if (place) cell.className = "num";
      }
    }
    part("path").hidden = !names.length;
  };

  const show = (answer, asked) => {
    clear();
    part("asked").textContent = `longpole whatif … ${asked.map(quoted).join(" ")}`;
    if (answer.refused) {
      part("says").textContent = "No prediction";
      part("error").textContent = answer.refused.why + (answer.refused.missing.length ? `. To get one: ${answer.refused.missing.join("; ")}` : "");
      return;
    }
    const was = answer.replayed_period_ns, becomes = answer.predicted_period_ns;
    if (!known(becomes) || !known(was)) { part("says").textContent = `Not known: ${why(known(was) ? becomes : was)}`; return; }
    panel.dataset.predictedNs = String(becomes);
    const saved = was - becomes;
    const differs = saved === 0 ? "no difference" : `${time(Math.abs(saved))} ${saved > 0 ? "less" : "MORE"} (${percent(Math.abs(saved) / was)})`;
    const title = answer.replay.verdict === "not tested" ? "Prediction, not tested" : "Prediction";
    part("says").textContent = `${title}: a ${answer.unit_kind} every ${time(becomes)} instead of ${time(was)}: ${differs}`;
    const error = answer.what_if_error;
    part("error").textContent = known(error)
      ? `Predictions of ${error.kind_of_change} were off by ${percent(error.median_share)} of the period in the median and ${percent(error.p90_share)} at most in nine of ten (${error.pairs} pairs of recordings; ${error.source}).`
      : `How far off it may be is not known: ${why(error)}.`;
    const next = answer.next_long_pole;
    part("next").textContent = known(next) ? `Then the long pole is ${next.says}.` : `What is the long pole then is not known: ${why(next)}.`;
    showPath(answer);
    const replay = answer.replay.error_of_median;
    const believed = answer.replay.verdict === "not tested" ? "Not tested: so much of the path is kept as recorded that any graph would replay it as well. " : "";
    part("belief").textContent = `${answer.changes.map((one) => one.says).join("; ")}. ${believed}` + (known(replay) ? `The unchanged run replays to within ${percent(Math.abs(replay))} of its measured median.` : "");
  };

  // One question at a time: while one is out, only the newest of those that follow is kept.
  let out = false, waiting = false;
  const ask = async () => {
    if (out) { waiting = true; return; }
    const asked = changes();
    if (!asked.length) { clear(); part("says").textContent = "As recorded: move a slider, or tick a candidate."; return; }
    out = true;
    panel.setAttribute("aria-busy", "true");
    try {
      const reply = await fetch("/whatif", { method: "POST", cache: "no-store", headers: { "Content-Type": "application/json", "X-Longpole-Token": token }, body: JSON.stringify({ changes: asked }) });
      const answer = await reply.json();
      if (reply.ok) show(answer, asked);
      else { clear(); part("says").textContent = "No answer"; part("error").textContent = answer.error; }
    } catch {
      clear();
      part("says").textContent = "No answer: longpole serve has ended, or cannot be reached.";
    }
    panel.setAttribute("aria-busy", "false");
    out = false;
    if (waiting) { waiting = false; ask(); }
  };

  let soon = 0;
  const later = () => { clearTimeout(soon); soon = setTimeout(ask, 120); };
  for (const one of sliders) one.addEventListener("input", () => { one.nextElementSibling.textContent = `× ${Number(one.value)}`; later(); });
  for (const one of toggles) one.addEventListener("change", () => { compare(); later(); });
  if (rank) rank.addEventListener("input", later);
  part("reset").addEventListener("click", () => {
    for (const one of sliders) { one.value = "1"; one.nextElementSibling.textContent = "× 1"; }
    for (const one of toggles) one.checked = false;
    compare();
    if (rank) rank.value = "";
    ask();
  });
  compare(); // a browser may remember ticks over a reload
  ask();
})();
