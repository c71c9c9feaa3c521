// Talking to the server. Every failure becomes a Problem whose sentence can be shown as it is.

export class Problem extends Error {
  constructor(status, code, detail, members = {}) {
    super(detail);
    Object.assign(this, { status, code, detail, members });
  }

  // The request may or may not have arrived; sending it again is safe and may help.
  get passing() {
    return [0, 408, 429, 502, 503, 504, 507].includes(this.status);
  }
}

const PATIENCE = 25_000;

export async function ask(url, { body, method = body === undefined ? "GET" : "POST" } = {}) {
  const init = { method, headers: { accept: "application/json" }, signal: AbortSignal.timeout(PATIENCE) };
  if (body !== undefined) {
    init.headers["content-type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(url, init);
  } catch {
    throw new Problem(0, "no-connection", "There is no connection to the server at the moment.");
  }
  let text = null;
  try { text = await response.text(); } catch { /* It broke off on the way, or took too long. */ }
  if (response.ok && text === null) throw new Problem(0, "no-connection", "The connection to the server broke off.");
  let data = null;
  let foreign = false;
  // A proxy may answer with a page of its own.
  try { data = text ? JSON.parse(text) : null; } catch { foreign = true; }
  if (response.ok && !foreign) return data;
  const detail = data?.detail ?? "The server did not answer as it should. Try again in a moment.";
  if (response.ok) throw new Problem(502, "failed", detail);
  throw new Problem(response.status, data?.code ?? "failed", detail, data ?? {});
}

// All items of a list of /api/v1, which comes in pages.
export async function askItems(url) {
  const items = [];
  for (let next = null, first = true; first || next !== null; first = false) {
    const joint = url.includes("?") ? "&" : "?";
    const page = await ask(next === null ? url : `${url}${joint}cursor=${encodeURIComponent(next)}`);
    items.push(...page.items);
    next = page.next;
  }
  return items;
}

// A key for one answer. randomUUID exists on secure pages only, and a local network is none.
export function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}

// JSON has no half characters; a text box can hold one when a pair was cut.
export function whole(text) {
  return text.toWellFormed ? text.toWellFormed() : text.replace(/\p{Surrogate}/gu, "\ufffd");
}
