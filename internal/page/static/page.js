// Live updates and keys. Every page works without this file, but stays as it was when it was loaded.
"use strict";
(() => {
  const main = document.getElementById("main"), bar = document.getElementById("bar"), said = document.getElementById("said");
  const view = document.body.dataset.view;
  let source = null, wait = 1, timer = 0, lost = "", pending = null, changed = 0, announced = 0, announcing = 0;

  // Messages.
  const show = (text, label, act) => {
    bar.replaceChildren(text);
    bar.hidden = !text;
    if (!label) return;
    const button = document.createElement("button");
    button.textContent = label;
    button.onclick = act;
    bar.append(" ", button);
  };
  const since = () => lost ||= new Date().toISOString().slice(0, 19).replace("T", " ") + "Z";
  const announce = () => {
    if (!changed || announcing) return;
    announcing = setTimeout(() => {
      said.textContent = changed === 1 ? "1 run changed" : changed + " runs changed";
      changed = announcing = 0;
      announced = Date.now();
    }, Math.max(0, announced + 5000 - Date.now()));
  };

  // Morphing. Forms are the reader's while they are there: filters, and those that send something. Details stay open or closed.
  const sends = node => node instanceof HTMLFormElement && node.method === "post";
  const key = form => form.getAttribute("action");
  const finish = form => { // its question has ended
    if (form.dataset.ended) return;
    form.dataset.ended = "yes";
    for (const field of form.elements) field.disabled = true;
    const note = document.createElement("p");
    note.setAttribute("role", "alert");
    note.textContent = "This question has ended. What you typed was not sent; it stays here until you leave the page.";
    form.prepend(note);
  };
  const callbacks = {
    beforeNodeMorphed: (old, now) => !old.isEqualNode(now) && !(old instanceof HTMLFormElement && old.method === "get") && !(sends(old) && sends(now) && key(old) === key(now)) && !old.dataset?.ended,
    beforeNodeRemoved: old => {
      if (!(old instanceof Element)) return true;
      if (old.dataset.ended || old.dataset.added) return false;
      if (sends(old) && key(old).includes("questions")) {
        finish(old);
        return false;
      }
      return true;
    },
    beforeAttributeUpdated: (name, node) => !(name === "open" && (node instanceof HTMLDetailsElement || node instanceof HTMLDialogElement)),
  };

  // A list keeps its rows: those that stay are updated in place, others are counted.
  const keepRows = now => {
    if (location.pathname === "/") return;
    const lists = [...now.querySelectorAll("tbody")].filter(body => body.querySelector("tr[data-run]"));
    const olds = [...main.querySelectorAll("tbody")].filter(body => body.querySelector("tr[data-run]"));
    lists.forEach((list, i) => {
      const old = olds[i];
      if (!old) return;
      const rows = new Map([...list.children].map(row => [row.dataset.run, row]));
      const kept = [...old.children].map(row => {
        const same = rows.get(row.dataset.run);
        rows.delete(row.dataset.run);
        if (same) return same;
        const gone = row.cloneNode(true);
        gone.classList.add("gone");
        return gone;
      });
      list.replaceChildren(...kept);
      const table = list.closest(".table") || list.closest("table");
      if (!rows.size) return;
      const link = document.createElement("p");
      link.className = "newer";
      link.dataset.list = i;
      const a = document.createElement("a");
      a.href = location.href;
      a.textContent = rows.size === 1 ? "1 newer run" : rows.size + " newer runs";
      link.append(a);
      table.before(link);
    });
  };
  const busy = () => location.pathname === "/" && [...main.querySelectorAll("tbody, ul, ol")].some(list => list.matches(":hover, :focus-within"));
  const update = event => {
    if (busy()) { // short lists do not move under a pointer or a focused link
      pending = event;
      return;
    }
    pending = null;
    const now = document.createElement("main");
    now.innerHTML = event.html;
    // Rows are matched by id, and so are forms.
    for (const root of [now, main]) for (const row of root.querySelectorAll("tr[data-run]")) row.id = "row-" + row.dataset.run;
    keepRows(now);
    Idiomorph.morph(main, now.childNodes, {morphStyle: "innerHTML", ignoreActiveValue: true, callbacks});
    showNow(main);
    if (event.title) document.title = event.title + " · workflows-engine";
  };
  for (const name of ["pointerout", "focusout"]) main.addEventListener(name, () => setTimeout(() => pending && update(pending), 300));

  showNow(main);

  // The stream. It is open only while the page is visible: a browser opens few connections to a server.
  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  let typed = false, gone = false;
  main.addEventListener("input", e => typed ||= sends(e.target.form));
  const retry = otherwise => fetch(location.href, {method: "HEAD"}).then(res => {
    if (res.status === 401) return otherwise();
    gone = false;
    show("");
    open();
  }, () => {});
  const ended = () => { // also in another tab, or with the process: nothing stays in sight but what was typed
    gone = true;
    close();
    if (typed) show("You are no longer signed in. What you typed was not sent, and stays here. " + document.body.dataset.wayIn, "Sign in", () => retry(() => window.open("/in")));
    else location.reload();
  };
  const open = () => {
    close();
    if (gone || !view || document.hidden) return;
    source = new EventSource("/events?view=" + encodeURIComponent(view));
    source.onopen = () => {
      wait = 1;
      lost = "";
      show("");
    };
    source.onerror = () => {
      const refused = source.readyState === EventSource.CLOSED;
      close();
      if (refused) fetch(location.href, {method: "HEAD"}).then(res => res.status === 401 && ended(), () => {});
      show("No connection since " + since() + ". Trying again.", "Try now", open);
      timer = setTimeout(open, wait * 1000);
      wait = Math.min(2 * wait, 30);
    };
    source.addEventListener("view", e => {
      const event = JSON.parse(e.data);
      changed += event.changed;
      announce();
      update(event);
    });
    source.addEventListener("trouble", e => { // a page that is an error says so already
      if (!main.firstElementChild?.matches(".failure")) show(JSON.parse(e.data).text + " Not up to date since " + since() + ".");
    });
    source.addEventListener("well", () => {
      lost = "";
      show("");
    });
    source.addEventListener("paused", () => {
      close();
      paused = true;
      show("Paused, because other tabs are open.", "Go on", () => {
        paused = false;
        show("");
        open();
      });
    });
  };
  let paused = false;
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else if (gone) retry(() => {});
    else if (!paused) open();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", e => e.persisted && !paused && open());
  open();

  // No key sends a form that has a hidden first button: browsers press it for Enter in a field.
  document.addEventListener("click", e => e.target.name === "key" && e.preventDefault());

  // A form is sent once.
  document.addEventListener("submit", e => {
    if (!sends(e.target)) return;
    if (e.target.dataset.sent) e.preventDefault();
    e.target.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach(form => delete form.dataset.sent));

  // Keys: none while a field has the focus, and none answers a question.
  let went = 0;
  const rows = () => [...main.querySelectorAll("tr[data-run] a, li[data-run] a")].filter((a, i, all) => !i || a.closest("[data-run]") !== all[i - 1].closest("[data-run]"));
  const move = step => {
    const all = rows(), at = all.findIndex(a => a.closest("[data-run]").contains(document.activeElement));
    all[Math.min(Math.max(at + step, 0), all.length - 1)]?.focus();
  };
  const filter = () => document.querySelector("[role=search] input, input[type=search]");
  if (location.hash === "#filter") filter()?.focus();
  const help = () => {
    let dialog = document.getElementById("keys");
    if (!dialog) {
      dialog = document.createElement("dialog");
      dialog.id = "keys";
      dialog.setAttribute("aria-label", "Keys");
      const list = document.createElement("dl");
      for (const [name, what] of [["/", "filter"], ["j k", "next and previous row"], ["Enter", "open"], ["g q", "questions"], ["g r", "runs"], ["?", "this list"]]) {
        list.append(Object.assign(document.createElement("dt"), {textContent: name}), Object.assign(document.createElement("dd"), {textContent: what}));
      }
      const button = Object.assign(document.createElement("button"), {textContent: "Close", onclick: () => dialog.close()});
      dialog.append(list, button);
      document.body.append(dialog);
    }
    if (!dialog.open) dialog.showModal();
  };
  document.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || e.target.matches("input, textarea, select, [contenteditable]")) return;
    const second = Date.now() - went < 1000;
    went = 0;
    if (second && e.key === "q") location.href = "/runs?phase=interrupted";
    else if (second && e.key === "r") location.href = "/runs";
    else if (e.key === "g") went = Date.now();
    else if (e.key === "j" || e.key === "k") move(e.key === "j" ? 1 : -1);
    else if (e.key === "?") help();
    else if (e.key === "/") {
      const field = filter();
      if (!field) location.href = "/runs#filter"; // which focuses it
      else field.focus();
    } else return;
    e.preventDefault();
  });
})();
