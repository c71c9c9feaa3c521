// Keeps the parts of a page that are marked `data-live` as the server has them, by fetching the page again while it is
// seen. For pages that show states and figures of runs; what somebody is at with keyboard or pointer stays.

const EVERY = 10_000;
let busy = false;

const canPop = "popover" in HTMLElement.prototype;
const inUse = (part) => part.contains(document.activeElement) || part.querySelector("details[open]") !== null || (canPop && part.querySelector(":popover-open") !== null) || part.matches(":active") || (getSelection()?.containsNode(part, true) && !getSelection().isCollapsed);

async function renew() {
  if (document.hidden || busy) return;
  busy = true;
  try {
    const reply = await fetch(location.pathname + location.search, { headers: { accept: "text/html" }, signal: AbortSignal.timeout(EVERY) });
    if (!reply.ok || reply.redirected) return;
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const now = page.getElementById(part.id);
      if (now && now.innerHTML !== part.innerHTML && !inUse(part)) part.replaceChildren(...now.childNodes);
    }
  } catch { /* No connection: the next time, perhaps. */ } finally {
    busy = false;
  }
}

setInterval(renew, EVERY);
document.addEventListener("visibilitychange", renew);
