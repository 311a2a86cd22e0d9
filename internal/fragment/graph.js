// A graph that is larger than its frame is scrolled to where the run is, until the person scrolls the frame.
"use strict";
const showNow = (() => {
  const known = new WeakMap(), input = ["wheel", "touchmove", "pointerdown", "keydown"];
  const inside = (at, seen) => at.left >= seen.left && at.right <= seen.right && at.top >= seen.top && at.bottom <= seen.bottom;
  const aim = frame => {
    const own = known.get(frame), nodes = kind => [...frame.querySelectorAll(".node" + kind)];
    if (own.theirs || !frame.clientWidth) return;
    // A block is where the run is as long as its branches are.
    const current = [".now:not(:has([stroke-dasharray]))", ".now", ".failed", ".stopped", ""].map(nodes).find(list => list.length);
    if (!current) return;
    const seen = frame.getBoundingClientRect();
    if (own.at && current.some(node => inside(node.getBoundingClientRect(), seen))) return;
    const at = current[0].getBoundingClientRect();
    frame.scrollLeft += (at.left + at.right - seen.left - seen.right) / 2;
    if (!own.at && at.bottom <= seen.bottom) frame.scrollTop = 0;
    else frame.scrollTop += (at.top + at.bottom - seen.top - seen.bottom) / 2;
    own.at = [frame.scrollLeft, frame.scrollTop];
  };
  const sized = new ResizeObserver(entries => entries.forEach(entry => aim(entry.target)));
  const meet = frame => {
    const own = {at: null, touched: false, theirs: false};
    known.set(frame, own);
    for (const name of input) frame.addEventListener(name, e => own.touched ||= e.key !== "Tab", {passive: true});
    frame.addEventListener("focusin", e => own.touched ||= e.target !== frame);
    frame.addEventListener("scroll", () => own.theirs ||= own.touched && (frame.scrollLeft !== own.at?.[0] || frame.scrollTop !== own.at?.[1]));
    sized.observe(frame);
  };
  return root => {
    for (const frame of root.querySelectorAll("div.picture")) {
      if (!known.has(frame)) meet(frame);
      aim(frame);
    }
  };
})();
