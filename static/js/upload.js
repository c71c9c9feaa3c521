// Forms whose work takes a while: those with files, those that bring in what was sent before, and those that remove much. What is too large is
// said before it is sent; while something is sent, read and stored, the page says how much of it is done and how long the rest takes. Without
// this script the browser sends such a form like any other.

import { remaining } from "./estimate.js";
import { bytes, count, el } from "./format.js";
import { ask, newKey } from "./net.js";

const BEAT = 400;
// A pace is judged by from this time on.
const JUDGED_AFTER = 1000;
// Answers that are the page itself, with what is to be changed.
const PAGES = [200, 409, 422];
const sending = new WeakSet();

const size = (form) => [...form.querySelectorAll("input[type=file]")].flatMap((field) => [...field.files]).reduce((sum, file) => sum + file.size, 0);
const tooLarge = (form) => size(form) > Number(form.dataset.limit) && `These are ${bytes(size(form))}, and at most ${bytes(Number(form.dataset.limit))} can be sent. Send fewer or smaller files.`;
const say = (form, sentence) => { form.querySelector(".upload-state").textContent = sentence; };

document.addEventListener("change", (event) => {
  const form = event.target.closest?.("form.upload");
  if (form) say(form, tooLarge(form) || "");
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("form.upload, form.sent")) return;
  event.preventDefault();
  const sentence = form.matches(".upload") && tooLarge(form);
  if (sentence) return say(form, sentence);
  if (sending.has(form)) return;
  sending.add(form);
  send(form, event.submitter);
});

// The bar below a form's buttons, and the sentence beside it. Each figure is not read out; the steps are.
function bar(form) {
  const words = el("span", { class: "muted small" });
  const meter = el("progress", { "aria-label": "Share done" });
  const box = el("div", { class: "work-progress", "aria-live": "off" }, meter, words);
  form.querySelector(".upload-do, .actions").after(box);
  let step = "";
  return {
    box,
    show(next, figures, done, all) {
      if (next !== step) say(form, `${next}…`);
      step = next;
      words.textContent = figures;
      meter.max = all > 0 ? all : 1;
      if (all > 0) meter.value = done;
      else meter.removeAttribute("value");
    },
    end() {
      box.remove();
      say(form, "");
    },
  };
}

// What the server says about a step, in words.
export function figures({ unit, done, all, seconds_left: left }) {
  if (!(all > 0)) return "";
  const of = unit === "bytes" ? `${bytes(done)} of ${bytes(all)}` : `${count(done)} of ${count(all)} ${all === 1 ? unit.replace(/s$/, "") : unit}`;
  return `${of}${remaining(left)}`;
}

function send(form, submitter) {
  const ticket = newKey();
  const url = new URL(form.action);
  url.searchParams.set("ticket", ticket);
  const fields = new FormData(form);
  if (submitter?.name) fields.append(submitter.name, submitter.value);
  const request = new XMLHttpRequest();
  const shown = bar(form);
  const began = performance.now();
  const cancel = el("button", { type: "button", class: "button small" }, "Cancel");
  cancel.addEventListener("click", () => request.abort());
  let over = false;

  const follow = async () => {
    cancel.remove();
    while (!over) {
      await new Promise((done) => setTimeout(done, BEAT));
      if (over) return;
      // Work that has not begun yet is not known, and a question that is lost is asked again.
      const at = await ask(`${form.dataset.progress}?ticket=${ticket}`).catch(() => null);
      if (!over && at?.stage === "going") shown.show(at.step, figures(at), at.done, at.all);
    }
  };
  const end = (sentence) => {
    over = true;
    sending.delete(form);
    shown.end();
    if (sentence) say(form, sentence);
  };

  if (form.matches(".upload")) {
    shown.box.append(cancel);
    shown.show("Sending", "", 0, size(form));
    request.upload.addEventListener("progress", ({ loaded, total }) => {
      const spent = performance.now() - began;
      const left = loaded > 0 && spent >= JUDGED_AFTER ? (spent / 1000) * (total - loaded) / loaded : null;
      shown.show("Sending", `${bytes(loaded)} of ${bytes(total)}${remaining(left)}`, loaded, total);
    });
    request.upload.addEventListener("load", () => {
      shown.show("Waiting for the server", "", 0, 0);
      follow();
    });
  } else {
    shown.show(form.dataset.step, "", 0, 0);
    follow();
  }
  request.addEventListener("load", () => {
    if (request.responseURL.split("?")[0] !== url.href.split("?")[0]) {
      // The page to which the answer leads.
      over = true;
      location.assign(request.responseURL);
      return;
    }
    const main = request.response?.querySelector("main");
    if (main && PAGES.includes(request.status)) return show(main, request.response.title);
    end(main?.querySelector(".lead")?.textContent ?? "The server did not answer as it should. Try again in a moment.");
  });
  request.addEventListener("abort", () => end("Cancelled; nothing was stored."));
  request.addEventListener("error", () => end(form.matches(".upload")
    ? "The connection broke off, or the file has changed since it was chosen. Choose it again, and press the button once more."
    : "The connection broke off. Press the button once more: what is done already is said then."));

  // The answer takes the place of this page, which has no other script that would have to know.
  const show = (main, title) => {
    over = true;
    document.title = title;
    document.querySelector("main").replaceWith(document.adoptNode(main));
    const told = main.querySelector("#told, #faults, .problem") ?? main;
    told.tabIndex = -1;
    told.focus({ preventScroll: true });
    told.scrollIntoView({ block: "nearest" });
  };

  request.open("POST", url);
  request.responseType = "document";
  request.setRequestHeader("accept", "text/html");
  request.send(form.enctype === "multipart/form-data" ? fields : new URLSearchParams(fields));
}

// Whoever comes back to a page that the browser kept can send again.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const form of document.querySelectorAll("form.upload, form.sent")) {
    sending.delete(form);
    form.querySelector(".work-progress")?.remove();
    say(form, "");
  }
});
