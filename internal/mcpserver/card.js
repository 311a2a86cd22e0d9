// The card of a run: it reads workflow_card through the host again and again, and sends the answers of a person.
"use strict";
(() => {
  const host = window.parent, root = document.documentElement, at = id => document.getElementById(id);
  const main = at("main"), said = at("said"), go = at("go"), full = at("full"), page = at("page");
  let last = 0, run = "", seq = 0, reading = 0, busy = false, questions = [], context = {}, opensLinks = false;
  const waiting = new Map();

  // Messages of the host. Those of other windows are not taken.
  const ask = (method, params) => new Promise((ok, no) => {
    waiting.set(++last, [ok, no]);
    host.postMessage({jsonrpc: "2.0", id: last, method, params}, "*");
  });
  const tell = (method, params) => host.postMessage({jsonrpc: "2.0", method, params}, "*");
  const fills = () => context.displayMode === "fullscreen";
  const adapt = changed => {
    const filled = fills();
    context = {...context, ...changed};
    if (context.theme) root.dataset.theme = context.theme;
    const given = context.styles?.variables || {}, ours = {
      "--color-text": "--color-text-primary", "--color-background": "--color-background-primary", "--color-raised": "--color-background-secondary",
      "--color-faint": "--color-text-secondary", "--color-line": "--color-border-primary",
    };
    for (const name in ours) if (given[ours[name]]) root.style.setProperty(name, given[ours[name]]);
    full.hidden = !context.availableDisplayModes?.includes(fills() ? "inline" : "fullscreen");
    full.textContent = fills() ? "Back to the chat" : "Full screen";
    if (filled !== fills() && run) seq = 0, read();
  };
  addEventListener("message", e => {
    const m = e.data;
    if (e.source !== host || m?.jsonrpc !== "2.0") return;
    if (!m.method) {
      const [ok, no] = waiting.get(m.id) || [];
      waiting.delete(m.id);
      if (ok) m.error ? no(new Error(m.error.message)) : ok(m.result);
      return;
    }
    if (m.method === "ui/notifications/tool-result") {
      const content = m.params?.structuredContent, failed = content?.error?.code === "ENGINE_FAILURE" && content.error.details;
      const id = content?.execution_id || failed?.execution_id;
      if (id && id !== run) [run, seq] = [id, 0], read();
      if (!id && !run) said.textContent = m.params?.content?.find(c => c.type === "text")?.text.slice(0, 500) || "There is no run to show.";
    }
    if (m.method === "ui/notifications/tool-cancelled" && !run) said.textContent = "The call was cancelled.";
    if (m.method === "ui/notifications/host-context-changed") adapt(m.params);
    if (m.method === "ui/resource-teardown") reading++;
    if (m.id !== undefined) host.postMessage({jsonrpc: "2.0", id: m.id, result: {}}, "*");
  });

  // Links lead to the page, by the host. The page lets in the browsers that it knows: there is no token in them.
  const link = (text, url) => {
    if (!opensLinks) return text + ": " + url;
    const a = document.createElement("a");
    [a.textContent, a.href] = [text, url];
    a.onclick = e => {
      e.preventDefault();
      const failed = () => said.textContent = "The host has not opened the page. Its address: " + url;
      ask("ui/open-link", {url}).then(r => r?.isError && failed(), failed);
    };
    return a;
  };
  const offer = url => {
    if (page.dataset.url === (url || "")) return;
    page.dataset.url = url || "";
    page.replaceChildren(url ? link("Open the run in the browser", url) : "");
  };

  // Parts are replaced if they differ; the form of a question that stays is the person's.
  const name = part => part.dataset.part + " " + (part.dataset.key || "");
  const show = (card, answered) => {
    const now = document.createElement("template");
    now.innerHTML = card.html;
    questions = card.questions;
    const old = new Map([...main.children].map(part => [name(part), part]));
    const frame = main.querySelector("div.picture"), scrolled = [frame?.scrollLeft, frame?.scrollTop];
    main.replaceChildren(...[...now.content.children].map(part => {
      const before = old.get(name(part));
      if (!before) return part;
      if (part.dataset.part === "question" && !answered) return before;
      if (part.dataset.part === "graph") part.open = before.open;
      if (before.outerHTML === part.outerHTML) return before;
      const picture = part.querySelector("div.picture");
      if (picture && before.contains(frame)) { // the frame stays, where the person has scrolled it
        frame.innerHTML = picture.innerHTML;
        picture.replaceWith(frame);
      }
      return part;
    }));
    if (frame) [frame.scrollLeft, frame.scrollTop] = scrolled;
    showNow(main);
    offer(card.page);
  };
  const call = async (tool, args) => {
    const result = await ask("tools/call", {name: tool, arguments: args});
    if (!result.isError && result.structuredContent) return result.structuredContent;
    const e = new Error(result.content?.[0]?.text || "The call failed.");
    e.code = result.structuredContent?.error?.details?.engineCode;
    throw e;
  };

  // Reading. A newer reader ends an older one. A call that the host never answers has failed.
  const pause = ms => new Promise(done => setTimeout(done, ms));
  const lost = () => pause(60000).then(() => Promise.reject(new Error("The host does not answer.")));
  const read = async () => {
    const mine = ++reading;
    for (let failed = 0, ended = false; !ended && mine === reading;) {
      try {
        const args = {execution_id: run, ...seq && {since_seq: seq, wait_ms: 25000}, ...fills() && {visits: true}};
        const card = await Promise.race([call("workflow_card", args), lost()]);
        if (mine !== reading) return;
        failed = 0;
        if (card.seq === seq) offer(card.page);
        else if (card.html) show(card);
        ended = card.ended;
        seq = card.seq;
        if (said.dataset.lost) said.textContent = said.dataset.lost = "";
        await pause(250);
      } catch (e) {
        if (mine !== reading) return;
        if (++failed === 3) {
          said.textContent = said.dataset.lost = "Not live any more: " + e.message + " Ask for the run again to see it.";
          return;
        }
        await pause(1000 << failed);
      }
    }
  };

  // Answers. Buttons, because a frame without allow-forms submits nothing.
  const answer = async (form, button) => {
    const fields = {}, key = form.closest("[data-key]")?.dataset.key;
    for (const [name, value] of new FormData(form)) (fields[name] ||= []).push(value);
    if (button.name) fields[button.name] = [button.value];
    const ticket = fields.form?.[0], buttons = form.querySelectorAll("button:not([hidden])");
    delete fields.form;
    busy = true;
    said.textContent = "Sending the answer.";
    for (const b of buttons) b.disabled = true;
    try {
      const card = await call("workflow_card_answer", {ticket, fields});
      show(card, true);
      said.textContent = card.said;
      main.querySelector("[aria-invalid=true]")?.focus();
      if (card.taken) {
        ask("ui/update-model-context", {content: [{type: "text", text: card.context}]}).catch(() => {});
        [go.hidden, seq] = [false, card.seq];
        read();
      }
    } catch (e) {
      const url = questions.find(q => q.interrupt_id === key)?.page, command = /`(.+)`/.exec(e.message)?.[1];
      if (e.code !== "PERSON_REQUIRED") said.textContent = e.message;
      else said.replaceChildren("Nothing was recorded: this server takes no answers from this card. ",
        url ? link("Answer on the page", url) : command ? "Answer at a terminal: " + command : e.message);
    }
    for (const b of buttons) b.disabled = false;
    busy = false;
  };
  main.addEventListener("click", e => {
    const button = e.target.closest("button"), form = button?.form;
    if (e.target.closest("a[href]")) e.preventDefault();
    if (!form) return;
    e.preventDefault();
    if (button.name === "key") return; // a browser presses it for Enter: no key answers a question
    if (!busy && form.reportValidity()) answer(form, button);
  });
  main.addEventListener("submit", e => e.preventDefault());
  go.firstChild.onclick = () => {
    go.hidden = true;
    ask("ui/message", {role: "user", content: [{type: "text", text: "I answered run " + run + ". Go on with workflow_status."}]}).catch(() => {});
  };
  full.onclick = () => ask("ui/request-display-mode", {mode: fills() ? "inline" : "fullscreen"}).then(r => adapt({displayMode: r.mode}), () => {});

  new ResizeObserver(() => tell("ui/notifications/size-changed", {width: root.scrollWidth, height: Math.ceil(root.getBoundingClientRect().height)})).observe(root);
  ask("ui/initialize", {
    appInfo: {name: "workflows-engine-run", version: "1"}, appCapabilities: {availableDisplayModes: ["inline", "fullscreen"]}, protocolVersion: "2026-01-26",
  }).then(r => {
    opensLinks = !!r.hostCapabilities?.openLinks;
    adapt(r.hostContext);
    tell("ui/notifications/initialized", {});
  });
})();
