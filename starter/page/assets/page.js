"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Output shows its end.
  function prepare(root) {
    for (const lines of all("[data-end]", root)) lines.scrollTop = lines.scrollHeight;
  }

  // News for screen readers.
  const said = document.getElementById("said");
  function say(text) { if (said) said.textContent = text; }

  // Squares lead to the output of their rank.
  function squareOf(event) {
    const square = event.target.closest?.("[data-ranks] > i");
    return square ? [...square.parentNode.children].indexOf(square) : -1;
  }
  document.addEventListener("mouseover", (event) => {
    const rank = squareOf(event);
    if (rank >= 0) event.target.title = "rank " + (event.target.dataset.rank ?? rank);
  });
  document.addEventListener("click", (event) => {
    const rank = squareOf(event);
    if (rank < 0) return;
    const ranks = document.querySelector("#output [name=ranks]");
    if (!ranks) return;
    ranks.value = rank;
    if (ranks.form) ranks.form.requestSubmit(); else ranks.dispatchEvent(new Event("input", { bubbles: true }));
    document.getElementById("output").scrollIntoView();
  });

  // In a file, the lines of the output are selected here.
  const filter = document.querySelector("[data-filter]");
  if (filter) {
    const [ranks, search, stderr] = ["ranks", "search", "stderr"].map((name) => filter.querySelector(`[name=${name}]`));
    const parse = (text) => text.split(",").filter(Boolean).map((part) => { const [from, to = from] = part.split("-").map(Number); return [from, to]; });
    const select = () => {
      const wanted = parse(ranks.value), text = search.value.toLowerCase();
      for (const line of all(".l")) {
        const some = !wanted.length || parse(line.dataset.r).some(([a, b]) => wanted.some(([c, d]) => a <= d && c <= b));
        line.hidden = !some || stderr.checked && !line.classList.contains("err") || text && !line.textContent.toLowerCase().includes(text);
      }
      say(all(".l").filter((line) => !line.hidden).length + " lines");
    };
    filter.hidden = false;
    filter.addEventListener("input", select);
  }

  // An open question closes by Escape, and by a click elsewhere.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const open of all("details.action[open]")) { open.open = false; open.querySelector("summary").focus(); }
  });
  document.addEventListener("click", (event) => {
    for (const open of all("details.action[open]")) if (!open.contains(event.target)) open.open = false;
  });

  // A live page replaces its parts that have changed.
  const known = new Map(all("[data-live]").map((part) => [part.id, part.innerHTML]));
  prepare(document);
  const live = document.getElementById("live");
  let every = Number(document.body.dataset.refresh || 0);
  let timer = 0, state = document.querySelector("[data-said]")?.dataset.said;

  function replace(part, next) {
    if (part.querySelector("details.action[open]") || part.contains(document.activeElement) && document.activeElement.matches("input, select")) return;
    const path = (element) => { const steps = []; for (; element !== part; element = element.parentNode) steps.unshift([...element.parentNode.children].indexOf(element)); return steps; };
    const find = (steps) => steps.reduce((element, i) => element?.children[i], part);
    const focused = part.contains(document.activeElement) && document.activeElement !== part ? path(document.activeElement) : null;
    const scrolled = all(".scroll, .lines, pre", part).map((box) => [path(box), box.scrollTop, box.scrollLeft, box.scrollTop + box.clientHeight >= box.scrollHeight - 8]);
    const opened = all("details[open]", part).map(path);
    part.innerHTML = next.innerHTML;
    for (const name of ["class", "data-said"]) if (next.hasAttribute(name)) part.setAttribute(name, next.getAttribute(name));
    for (const steps of opened) { const d = find(steps); if (d?.matches("details")) d.open = true; }
    prepare(part);
    for (const [steps, top, left, atEnd] of scrolled) {
      const box = find(steps);
      if (!box) continue;
      box.scrollLeft = left;
      box.scrollTop = atEnd && box.matches("[data-end]") ? box.scrollHeight : top;
    }
    if (focused) find(focused)?.focus({ preventScroll: true });
  }

  async function refresh() {
    timer = 0;
    try {
      const answer = await fetch(location.href, { headers: { "X-Refresh": "1" }, cache: "no-cache" });
      if (!answer.ok) throw new Error(answer.status);
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of all("[data-live]")) {
        const other = next.getElementById(part.id);
        if (!other || known.get(part.id) === other.innerHTML) continue;
        const text = other.innerHTML;
        replace(part, other);
        known.set(part.id, text);
      }
      document.title = next.title;
      every = Number(next.body.dataset.refresh || 0);
      live?.classList.remove("late");
      if (live) live.textContent = every ? "live" : "ended";
      const news = next.querySelector("[data-said]")?.dataset.said;
      if (news !== state) { state = news; say(news); }
    } catch {
      live?.classList.add("late");
      if (live) live.textContent = "no answer";
    }
    schedule();
  }
  function schedule() {
    if (every && !timer && !document.hidden) timer = setTimeout(refresh, every);
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { clearTimeout(timer); timer = 0; } else if (every) refresh();
  });
  schedule();
})();
