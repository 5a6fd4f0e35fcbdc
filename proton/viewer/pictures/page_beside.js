// What stands beside the timeline: findings, and the source of kernels.
const made = (tag, text = "", name = "") => { const it = document.createElement(tag); it.textContent = text; it.className = name; return it; };

// Findings below it: a click on one shows the next of its slices.
function showFindings() {
  const list = made("ol");
  for (const [title, below, slices] of data.findings) {
    const entry = made("li");
    entry.append(made("b", title), ...below.map(text => made("div", text, "faint")));
    let next = 0;
    entry.onclick = () => { if (slices.length) { const i = openedBy(slices[next++ % slices.length]); if (i !== NONE) { select(i, true, false); fit(); reveal(i); } } };
    list.append(entry);
  }
  byId("details").replaceChildren(data.findings.length ? list : made("span", "Click a slice for its details.", "faint"));
}
// The slice that a finding names, or its launch.
function openedBy([launch, start, length, isLaunch]) {
  for (let i = 0; i < count; i++)
    if (col.launch[i] === launch + 1 && (isLaunch ? col.kind[i] === 2 : col.start[i] === start && col.dur[i] === length && SCOPES.has(col.kind[i]))) return i;
  return NONE;
}

// The source of kernels beside the timeline: a click on a line goes to its slices, and to its code.
const source = { data: null, listing: 0, level: 0, lines: [], slices: [], rows: new Map(), code: [] };

const levelsOf = listing => source.data.levels[listing.kernel] || [];

// A line is [number, text, last line of the block that it opens], and where it has time or samples
// [..., visits, self, wait, share, scope, parts, percent of samples, what they wait for].
const isTimed = line => line && line.length > 3;
const blockOf = (listing, number) => {
  const first = listing.lines.find(line => line && line[0] === number);
  return first ? listing.lines.filter(line => line && line[0] >= number && line[0] <= first[2]).map(line => line[0]) : [];
};
// The slices of lines of a listing's kernel, the longest first.
function slicesAt(listing, lines) {
  const own = new Set(lines.map(line => `${listing.file}:${line}`)), isOf = data.names.map(([, , where]) => own.has(where)), found = [];
  for (let i = 0; i < count; i++)
    if (isOf[col.name[i]] && SCOPES.has(col.kind[i]) && data.launches[col.launch[i] - 1].kernel === listing.kernel) found.push(i);
  return found.sort((a, b) => col.dur[b] - col.dur[a]);
}
// The numbers of the lines of code that lines of the source became.
function codeOf(listing, level, lines) {
  const own = new Set(lines), at = source.data.places.map(([file, line]) => file === listing.file && own.has(line));
  return level[2].flatMap((places, number) => places.some(place => at[place]) ? [number] : []);
}

function showListing(number) {
  source.listing = number; source.lines = []; source.slices = []; source.rows.clear();
  const listing = source.data.listings[number], table = made("table"), isSampled = listing.lines.some(line => isTimed(line) && line[9]);
  for (const line of listing.lines) {
    const row = made("tr"), times = isTimed(line);
    if (line) {
      const told = times && line[3] ? [duration(line[4]), line[5] ? duration(line[5]) : "", line[3].toLocaleString("en")] : ["", "", ""];
      if (isSampled) told.push(times && line[9] ? `${line[9].toFixed(1)} %` : "");
      row.append(made("td", String(line[0])), ...told.map(text => made("td", text)), made("td", line[1]));
      if (times && line[9]) row.title = line[10];
      row.onclick = () => choose(line[0]);
      source.rows.set(line[0], row);
    } else row.append(made("td", "..."));
    if (times) { row.className = "timed"; row.style.backgroundSize = `${line[6]}% 100%`; }
    table.append(row);
  }
  const head = made("tr");
  head.append(...["line", "self", "wait", "visits", ...(isSampled ? ["samples"] : []), "source"].map(text => made("th", text)));
  table.prepend(head);
  byId("lines").replaceChildren(table);
  const timed = listing.lines.filter(isTimed).sort((a, b) => b[4] - a[4]);
  if (timed.length) source.rows.get(timed[0][0]).scrollIntoView?.({ block: "center" });
  byId("levels").replaceChildren(...levelsOf(listing).map(([name], level) => { const tab = made("button", name); tab.onclick = () => showLevel(level); return tab; }));
  showLevel(Math.min(source.level, Math.max(levelsOf(listing).length - 1, 0)));
}
function showLevel(number) {
  source.level = number;
  const listing = source.data.listings[source.listing], level = levelsOf(listing)[number];
  source.code = level ? level[1].map((text, at) => {
    const row = made("div", text || " ");
    row.onclick = () => {
      const place = level[2][at].map(p => source.data.places[p]).find(([file]) => file === listing.file);
      if (place) choose(place[1], false);
    };
    return row;
  }) : [made("p", "The run has no code of this kernel: it has that of kernels that left records, of those with most time.")];
  byId("code").replaceChildren(...source.code);
  [...byId("levels").children].forEach((tab, at) => { tab.className = at === number ? "on" : ""; });
  mark(true);
}
// Shows what was chosen, and scrolls the code there.
function mark(scrolls) {
  const listing = source.data.listings[source.listing], level = levelsOf(listing)[source.level], own = new Set(source.lines);
  for (const [number, row] of source.rows) row.className = row.className.replace(" on", "") + (own.has(number) ? " on" : "");
  const code = level ? codeOf(listing, level, source.lines) : [], found = new Set(code);
  source.code.forEach((row, at) => { row.className = found.has(at) ? "on" : ""; });
  if (scrolls && code.length) source.code[code[0]].scrollIntoView?.({ block: "center" });
}
// A line of the source: its block, its slices, its code.
function choose(number, scrolls = true) {
  const listing = source.data.listings[source.listing], line = listing.lines.find(line => line && line[0] === number);
  if (!line) return;
  source.lines = blockOf(listing, number);
  source.slices = slicesAt(listing, source.lines);
  source.rows.get(number).scrollIntoView?.({ block: "nearest" });
  mark(scrolls);
  const about = [];
  if (isTimed(line) && line[3]) about.push(`${line[7]}: ${duration(line[4])}`, ...line[8].map(([name, ns]) => `${name} ${duration(ns)}`));
  if (isTimed(line) && line[9]) about.push(`samples ${line[9].toFixed(1)} %: ${line[10]}`);
  const note = made("span", about.join(" \u00b7 "), "faint"), buttons = [];
  if (source.slices.length) {
    let at = -1;
    const label = () => `${(at + 1) || ""}${at < 0 ? "" : " of "}${source.slices.length.toLocaleString("en")} slices, the longest first`, go = made("button", label());
    go.onclick = () => { at = (at + 1) % source.slices.length; go.textContent = label(); select(source.slices[at], false); reveal(source.slices[at]); };
    buttons.push(go);
    hits = new Uint8Array(count); for (const i of source.slices) hits[i] = 1;
    hitCount = source.slices.length; byId("search").value = ""; byId("found").textContent = `${hitCount.toLocaleString("en")} of line ${number}`;
    redraw();
  }
  byId("chosen").replaceChildren(...buttons, note);
}
// A slice that was chosen in the timeline: its line.
function showSourceOf(i) {
  const where = data.names[col.name[i]][2], kernel = col.launch[i] ? data.launches[col.launch[i] - 1].kernel : "";
  const at = source.data ? source.data.listings.findIndex(one => one.kernel === kernel && where.startsWith(`${one.file}:`)) : -1;
  if (at < 0 || !SCOPES.has(col.kind[i])) return;
  if (at !== source.listing) { byId("kernels").value = String(at); showListing(at); }
  const number = +where.slice(source.data.listings[at].file.length + 1);
  source.lines = blockOf(source.data.listings[at], number);
  source.rows.get(number)?.scrollIntoView?.({ block: "nearest" });
  byId("chosen").replaceChildren();
  mark(true);
}
function toggleSource(shown = byId("source").hidden) {
  byId("source").hidden = !shown;
  byId("beside").className = shown ? "on" : "";
  redraw();
}
async function startSource() {
  source.data = JSON.parse(new TextDecoder().decode(await unpacked(data.source)));
  byId("beside").hidden = !source.data.listings.length;
  if (!source.data.listings.length) return;
  byId("kernels").append(...source.data.listings.map((one, at) => { const entry = made("option", `${one.kernel}, ${one.file.split("/").pop() || "no source is known"}`); entry.title = one.file; entry.value = String(at); return entry; }));
  byId("kernels").onchange = e => showListing(+e.target.value);
  byId("beside").onclick = () => toggleSource();
  toggleSource(data.isSourceFirst || (innerWidth >= 1100 && source.data.listings.some(one => levelsOf(one).length)));
  showListing(0);
}
