// The card of a run: it reads workflow_card through the host again and again, and sends the answers of a person.
"use strict";
(() => {
  const host = window.parent, root = document.documentElement;
  const main = document.getElementById("main"), said = document.getElementById("said"), go = document.getElementById("go");
  let last = 0, run = "", seq = 0, reading = 0, busy = false, waiting = new Map();

  // Messages of the host. Those of other windows are not taken.
  const ask = (method, params) => new Promise((ok, no) => {
    waiting.set(++last, [ok, no]);
    host.postMessage({jsonrpc: "2.0", id: last, method, params}, "*");
  });
  const tell = (method, params) => host.postMessage({jsonrpc: "2.0", method, params}, "*");
  const theme = context => {
    if (context?.theme) root.dataset.theme = context.theme;
    const given = context?.styles?.variables || {}, ours = {
      "--color-text": "--color-text-primary", "--color-background": "--color-background-primary", "--color-raised": "--color-background-secondary",
      "--color-faint": "--color-text-secondary", "--color-line": "--color-border-primary",
    };
    for (const name in ours) if (given[ours[name]]) root.style.setProperty(name, given[ours[name]]);
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
    const id = m.params?.structuredContent?.execution_id;
    if (m.method === "ui/notifications/tool-result" && id && id !== run) [run, seq] = [id, 0], read();
    if (m.method === "ui/notifications/host-context-changed") theme(m.params);
    if (m.method === "ui/resource-teardown") reading++;
    if (m.id !== undefined) host.postMessage({jsonrpc: "2.0", id: m.id, result: {}}, "*");
  });

  // Parts are replaced if they differ; the form of a question that stays is the person's.
  const name = part => part.dataset.part + " " + (part.dataset.key || "");
  const show = (html, answered) => {
    const now = document.createElement("template");
    now.innerHTML = html;
    const old = new Map([...main.children].map(part => [name(part), part]));
    main.replaceChildren(...[...now.content.children].map(part => {
      const before = old.get(name(part));
      if (!before) return part;
      if (part.dataset.part === "question" && !answered) return before;
      if (part.dataset.part === "graph") part.open = before.open;
      return before.outerHTML === part.outerHTML ? before : part;
    }));
  };
  const call = async (tool, args) => {
    const result = await ask("tools/call", {name: tool, arguments: args});
    if (result.isError) throw new Error(result.content?.[0]?.text || "The call failed.");
    return result.structuredContent;
  };

  // Reading. A newer reader ends an older one.
  const pause = ms => new Promise(done => setTimeout(done, ms));
  const read = async () => {
    const mine = ++reading;
    for (let failed = 0, ended = false; !ended && mine === reading;) {
      try {
        const card = await call("workflow_card", seq ? {execution_id: run, since_seq: seq, wait_ms: 25000} : {execution_id: run});
        if (mine !== reading) return;
        failed = 0;
        if (card.seq !== seq) show(card.html);
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
    const fields = {};
    for (const [key, value] of new FormData(form)) (fields[key] ||= []).push(value);
    if (button.name) fields[button.name] = [button.value];
    const ticket = fields.form?.[0];
    delete fields.form;
    busy = true;
    said.textContent = "Sending the answer.";
    for (const b of form.querySelectorAll("button")) b.disabled = true;
    try {
      const card = await call("workflow_card_answer", {ticket, fields});
      show(card.html, true);
      said.textContent = card.said;
      if (card.taken) {
        ask("ui/update-model-context", {content: [{type: "text", text: card.context}]}).catch(() => {});
        [go.hidden, seq] = [false, card.seq];
        read();
      }
    } catch (e) {
      said.textContent = e.message;
    }
    for (const b of form.querySelectorAll("button")) b.disabled = false;
    busy = false;
  };
  main.addEventListener("click", e => {
    const button = e.target.closest("button"), form = button?.form;
    if (e.target.closest("a[href]")) e.preventDefault();
    if (!form) return;
    e.preventDefault();
    if (!busy && form.reportValidity()) answer(form, button);
  });
  main.addEventListener("submit", e => e.preventDefault());
  go.firstChild.onclick = () => {
    go.hidden = true;
    ask("ui/message", {role: "user", content: [{type: "text", text: "I answered run " + run + ". Go on with workflow_status."}]}).catch(() => {});
  };

  new ResizeObserver(() => tell("ui/notifications/size-changed", {width: root.scrollWidth, height: Math.ceil(root.getBoundingClientRect().height)})).observe(root);
  ask("ui/initialize", {
    appInfo: {name: "workflows-engine-run", version: "1"}, appCapabilities: {availableDisplayModes: ["inline", "fullscreen"]}, protocolVersion: "2026-01-26",
  }).then(r => {
    theme(r.hostContext);
    tell("ui/notifications/initialized", {});
  });
})();
