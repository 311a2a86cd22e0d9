// A chat with the real AppBridge. It does what the extension asks of a host: the card runs in a frame of another origin, and only tools that
// the server marks for cards are called for it. The test drives it by window.chat.
import {AppBridge, PostMessageTransport} from "/appbridge.js";

const cardURI = "ui://workflows-engine/run";
const rpc = async (method, params) => {
  const answer = await (await fetch("/rpc", {method: "POST", body: JSON.stringify({method, params})})).json();
  if (answer.error) throw new Error(answer.error);
  return answer.result;
};
const query = new URLSearchParams(location.search);
const chat = window.chat = {calls: [], contexts: [], messages: [], links: [], sizes: [], initialized: 0, tools: [], meta: null};

const dark = {"--color-text-primary": "#e0f0e0", "--color-background-primary": "#102010", "--color-background-secondary": "#203020", "--color-text-secondary": "#b0c0b0", "--color-border-primary": "#406040"};
const light = {"--color-text-primary": "#102010", "--color-background-primary": "#f4fff4", "--color-background-secondary": "#e4f4e4", "--color-text-secondary": "#405040", "--color-border-primary": "#a0c0a0"};
const themed = theme => ({theme, styles: {variables: theme === "dark" ? dark : light}});
chat.themed = theme => {
  document.documentElement.dataset.theme = theme;
  context = {...context, ...themed(theme)};
  bridge.setHostContext(context);
};
let context = {
  ...(query.get("theme") ? themed(query.get("theme")) : {}), displayMode: "inline",
  availableDisplayModes: query.has("small") ? ["inline"] : ["inline", "fullscreen"], containerDimensions: {maxHeight: 6000},
};
if (query.get("theme")) document.documentElement.dataset.theme = query.get("theme");

const frame = document.createElement("iframe");
frame.title = "Card";
frame.setAttribute("sandbox", "allow-scripts allow-same-origin");
const capabilities = {serverTools: {}, updateModelContext: {text: {}}, message: {text: {}}, ...(query.has("small") ? {} : {openLinks: {}})};
const bridge = chat.bridge = new AppBridge(null, {name: "pagetest", version: "1"}, capabilities, {hostContext: context});

const resource = (await rpc("resources/read", {uri: cardURI})).contents[0];
chat.meta = resource._meta;
chat.tools = (await rpc("tools/list", {})).tools;
bridge.onsandboxready = () => bridge.sendSandboxResourceReady({html: resource.text, csp: resource._meta.ui.csp});
bridge.oncalltool = async params => {
  chat.calls.push(params.name);
  const tool = chat.tools.find(t => t.name === params.name);
  if (!tool?._meta?.ui?.visibility?.includes("app")) throw new Error("not a tool for cards: " + params.name);
  return rpc("tools/call", params);
};
bridge.onsizechange = ({height}) => {
  chat.sizes.push(height);
  if (height) frame.style.height = height + "px";
};
bridge.onupdatemodelcontext = async params => (chat.contexts.push(params.content[0].text), {});
bridge.onmessage = async params => (chat.messages.push(params.content[0].text), {});
bridge.onopenlink = async params => (chat.links.push(params.url), {});
bridge.onrequestdisplaymode = async ({mode}) => {
  document.body.className = mode;
  context = {...context, displayMode: mode};
  bridge.setHostContext(context);
  return {mode};
};
bridge.oninitialized = async () => {
  chat.initialized++;
  await bridge.sendToolInput({arguments: {execution_id: query.get("run")}});
  await bridge.sendToolResult(await rpc("tools/call", {name: "workflow_show", arguments: {execution_id: query.get("run")}}));
};
document.querySelector("main").append(frame);
await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
frame.src = query.get("sandbox");
