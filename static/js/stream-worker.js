// The shared worker of all dashboards of this browser: it has the one event stream.

import { Hub } from "./stream-hub.js";

const ports = new Map();
const hub = new Hub(new URLSearchParams(location.search).get("events"), (client, message) => ports.get(client)?.postMessage(message));
let next = 0;

addEventListener("connect", ({ ports: [port] }) => {
  if (!globalThis.EventSource) {
    port.postMessage({ type: "unable" });
    return;
  }
  const client = (next += 1);
  ports.set(client, port);
  port.addEventListener("message", ({ data: { type, runs } }) => {
    if (type === "want") hub.want(client, runs);
    else if (type === "here") hub.here(client, runs);
    else hub.leave(client);
  });
  // Browsers that tell when a page is gone save the wait until it is missed.
  port.addEventListener("close", () => {
    hub.leave(client);
    ports.delete(client);
  });
  port.start();
});
